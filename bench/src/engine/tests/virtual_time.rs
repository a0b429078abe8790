//! What comes of a run is what the server did, to the microsecond: in virtual time.

use super::super::client::Client;
use super::super::collector::Collector;
use super::super::thread::{Clockwork, orders};
use super::super::{Model, Plan, shares, summary};
use super::played::{Played, Server};
use crate::engine::windows::{Window, Windows};
use crate::line::{Pace, READ_BYTES};
use crate::request::{Version, Wording};
use crate::result::load::Arrivals;
use crate::result::window::Counts;
use crate::workload::Workload;
use crate::workload::get::{Get, Plan as GetPlan};
use crate::workload::web99::Web99;
use crate::workload::web99::parameters::{Mix, Parameters, Paths, Wanted};
use crate::workload::web99::posts::Ledger;
use crate::workload::web99::responder::{Responder, request_bytes};
use onering_fileset::plan::Directories;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

fn plan(model: Model, connections: usize) -> Plan {
    Plan {
        server: "127.0.0.1:1".parse().unwrap(),
        tls: None,
        model,
        seed: 1,
        connections,
        pipeline: 1,
        kept: true,
        from_connect: false,
        pace: None,
        ramp: Duration::ZERO,
        answer_bytes: 1,
        cpus: vec![0],
        windows: vec![Window { from: S, length: 10 * S }],
        timeout: 5 * S,
        server_process: None,
    }
}

/// Runs `plan` against a server that is played, in no time.
fn run<W: Workload>(plan: &Plan, workload: W, server: Server<'_>) -> Vec<Counts> {
    let beginning = Instant::now();
    let windows = Windows::new(beginning, S, plan.windows.clone());
    let share = shares(plan).remove(0);
    let receive_bytes = if plan.pace.is_some() { READ_BYTES } else { 1 << 16 };
    let network = Played::new(beginning, server, receive_bytes);
    let classes = workload.classes();
    let client = Client::new(network, workload, orders(plan, &share, &windows));
    let (sender, messages) = mpsc::channel();
    let clockwork = Clockwork {
        windows: &windows,
        stop: &AtomicBool::new(false),
        server: None,
        reading: None,
        messages: &sender,
    };
    clockwork.run(client, plan.timeout).unwrap();
    drop(sender);
    let mut collector = Collector::new(&windows, 1);
    messages.into_iter().for_each(|message| collector.take(message, &mut |_, _| {}));
    let measured = collector.windows(&mut |_, _| {}).into_iter();
    let paced = plan.pace.is_some();
    measured
        .map(|measured| {
            summary::window(String::new(), measured, &classes, paced, None).counts().clone()
        })
        .collect()
}

fn get() -> Get {
    let plan = GetPlan {
        targets: vec!["http://h/".parse().unwrap()],
        wording: Wording::plain(Version::Http11),
        requests_per_connection: None,
        pipeline: 1,
        status: 200,
        body_bytes: None,
    };
    Get::new(&plan, (0, 1))
}

/// A server that takes 100 µs for each of its small answers, and stands still at `stopped`.
fn server(stopped: Option<Range<Duration>>) -> Server<'static> {
    let answer = |requests: &mut Vec<u8>, _| {
        let end = requests.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        requests.drain(..end);
        Some((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(), true))
    };
    Server {
        answer: Box::new(answer),
        way: 10 * US,
        service: 100 * US,
        stopped: stopped.into_iter().collect(),
        refuses: false,
    }
}

/// Whether a latency is `expected`, to the histogram's three digits.
fn near(us: f64, expected: Duration) -> bool {
    let expected = expected.as_secs_f64() * 1e6;
    (us - expected).abs() <= expected / 500.0
}

#[test]
fn a_freeze_shows_in_the_p99_of_an_open_loop() {
    let open = Model::Open { rate_per_s: 1000.0, arrivals: Arrivals::Constant };
    let [counts] = &*run(&plan(open, 64), get(), server(Some(4 * S..6 * S))) else { panic!() };
    let schedule = counts.schedule.as_ref().unwrap();
    assert_eq!((schedule.planned, counts.requests, counts.errors.total()), (10_000, 10_000, 0));
    assert!(counts.completed().abs_diff(10_000) <= 1, "{}", counts.completed());
    assert!(!schedule.behind, "the server stood still, not the generator");
    let (response, service) = (counts.response().unwrap(), counts.service());
    // The request that was planned just when it began waited for all of the two seconds.
    assert!(near(response.max_us(), 2 * S), "{}", response.max_us());
    // 2 000 requests were planned meanwhile, and queue up for another 222 ms at 10 000 a second: the
    // hundredth part of all from the top is the 100th that waited, less what was served before it.
    let waited = 2 * S - 100 * MS + 10 * MS;
    assert!(near(response.quantile_us(0.99), waited), "{}", response.quantile_us(0.99));
    // Half of all were not touched by it.
    assert!(near(response.quantile_us(0.5), 120 * US), "{}", response.quantile_us(0.5));
    // Of the service times only those of the 64 connections show it: that is why both are told.
    assert!(near(service.max_us(), 2 * S), "{}", service.max_us());
    assert!(service.quantile_us(0.99) < 10_000.0, "{}", service.quantile_us(0.99));
    // In the seconds of the freeze nothing was answered.
    let answered: Vec<u64> = counts.seconds.iter().map(|second| second.requests).collect();
    assert_eq!(answered.iter().filter(|&&requests| requests < 10).count(), 2, "{answered:?}");
}

#[test]
fn a_freeze_shows_in_the_maximum_alone_of_a_closed_loop() {
    let [counts] = &*run(&plan(Model::Closed, 16), get(), server(Some(4 * S..6 * S))) else {
        panic!()
    };
    let service = counts.service();
    assert_eq!(counts.response(), None);
    assert!(service.max_us() >= 2e6 && service.max_us() < 2.01e6, "{}", service.max_us());
    // 16 connections take turns: each waits for 16 services.
    assert!(near(service.quantile_us(0.99), 16 * 100 * US), "{}", service.quantile_us(0.99));
    // Eight seconds of the ten.
    assert!(counts.requests.abs_diff(80_000) < 40, "{}", counts.requests);
}

#[test]
fn a_server_that_is_too_slow_for_the_plan_is_not_the_generators_lateness() {
    let open = Model::Open { rate_per_s: 20_000.0, arrivals: Arrivals::Poisson };
    let [counts] = &*run(&plan(open, 32), get(), server(None)) else { panic!() };
    let schedule = counts.schedule.as_ref().unwrap();
    let sigma = (schedule.planned as f64).sqrt();
    assert!((schedule.planned as f64 - 200_000.0).abs() < 3.0 * sigma, "{}", schedule.planned);
    assert!(!schedule.behind);
    // It serves 10 000 a second, and those of the warm-up first; five more are waited for.
    assert!(schedule.never_sent > 40_000, "{}", schedule.never_sent);
    let told = counts.requests + schedule.never_sent + schedule.unanswered;
    assert_eq!(told, schedule.planned);
    // Its rate is what it can, and not what it was given time for.
    let completed = counts.completed();
    assert!(completed.abs_diff(100_000) < 10, "{completed}");
    assert!(counts.requests > 120_000, "{}", counts.requests);
    // Who came last of those that were served had waited for longer than the window.
    assert!(counts.response().unwrap().max_us() > 7e6);
}

#[test]
fn a_request_of_the_warm_up_that_fails_later_is_no_error_of_the_window() {
    let open = Model::Open { rate_per_s: 10.0, arrivals: Arrivals::Constant };
    let gone = server(Some(500 * MS..60 * S));
    let [counts] = &*run(&plan(open, 64), get(), gone) else { panic!() };
    let schedule = counts.schedule.as_ref().unwrap();
    // Those of the last half second of the warm-up are given up in the window, after five seconds.
    assert_eq!((schedule.planned, counts.requests), (100, 0));
    assert!(counts.errors.total() > 0);
    let told = counts.errors.total() + schedule.never_sent + schedule.unanswered;
    assert_eq!(told, schedule.planned);
}

#[test]
fn a_server_that_refuses_is_asked_again_by_and_by() {
    for model in [Model::Closed, Model::Open { rate_per_s: 100.0, arrivals: Arrivals::Constant }] {
        let refusing = Server { refuses: true, ..server(None) };
        let [counts] = &*run(&plan(model, 4), get(), refusing) else { panic!() };
        assert_eq!(counts.requests, 0);
        let refused: u64 = counts.errors.kinds().map(|(_, count)| count).sum();
        // Four connections, ten times a second, for as long as anything is waited for.
        assert!(refused > 0 && refused <= 4 * 160, "{refused}");
    }
}

/// A SPECweb99-style run in two windows against a responder that does everything right, at once,
/// unless `adapt` has it otherwise.
fn web99(
    users: u32,
    pace: Pace,
    seconds: u32,
    adapt: impl FnOnce(&mut Plan, &mut Server<'_>),
) -> Vec<Counts> {
    let directories = Directories::for_load(users.into()).unwrap();
    let parameters = Arc::new(
        Parameters::new(Wanted {
            host: "h".to_owned(),
            version: Version::Http11,
            directories,
            set_seed: 7,
            seed: 11,
            mix: Mix::Full,
            paths: Paths::default(),
            users,
            duration: 3600 * S,
        })
        .unwrap(),
    );
    let mut responder = Responder::new(7);
    let (path, query) = (&parameters.wanted().paths.dynamic, parameters.reset().to_query());
    let reset = format!("GET {path}?{query} HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(responder.answer(reset.as_bytes(), 1_000_000_000).bytes.starts_with(b"HTTP/1.1 200"));
    let answer = |requests: &mut Vec<u8>, _: Instant| {
        let bytes = request_bytes(requests)?;
        let answer = responder.answer(&requests[..bytes], 1_000_000_000);
        requests.drain(..bytes);
        Some((answer.bytes, answer.persistent))
    };
    let mut server = Server {
        answer: Box::new(answer),
        way: 20 * US,
        service: Duration::ZERO,
        stopped: Vec::new(),
        refuses: false,
    };
    let window = |from| Window { from, length: S * seconds };
    let mut plan = Plan {
        pace: Some(pace),
        ramp: S,
        windows: vec![window(3 * S), window((6 + seconds) * S)],
        ..plan(Model::Closed, users as usize)
    };
    adapt(&mut plan, &mut server);
    let workload = Web99::new(&parameters, &Ledger::default(), 0, users as usize);
    run(&plan, workload, server)
}

#[test]
fn an_idle_server_gives_340_kbit_a_second_on_calibrated_lines() {
    for counts in web99(10, Pace::CALIBRATED, 300, |_, _| {}) {
        assert_eq!(counts.errors.total(), 0, "{:?}", counts.errors);
        let conformity = counts.conformity.unwrap();
        let operations = conformity.operations as f64;
        let mean_ms = conformity.response_ns_sum as f64 / operations / 1e6;
        let bytes: u64 = counts.classes.iter().map(|class| class.received_bytes).sum();
        let kbit = bytes as f64 * 8.0 / 1000.0 / counts.requests as f64;
        // What one operation brings is drawn; the rate follows from it: see `line`.
        let expected = 1.0 / (1.0 / 400.0 + 52.812e-3 / kbit);
        let rate = kbit / mean_ms * 1000.0;
        assert!((rate - expected).abs() < 1.0, "{rate} {expected}");
        assert_eq!(conformity.requested_connections, 10);
        // Whose files happen to be small, with less than 85 kbit an operation, is below the limit by
        // the hold alone: in five minutes hardly anybody, in a minute one in ten.
        assert!(conformity.conforming_connections >= 9, "{conformity:?}");
        // Users are busy all the time.
        let busy = conformity.response_ns_sum as f64 / (10.0 * 300e9);
        assert!((busy - 1.0).abs() < 0.03, "{busy}");
    }
}

#[test]
fn the_time_that_a_server_takes_counts_whole_on_a_line() {
    // 25 ms for each of some 57 operations a second: it is busy all the time, and users wait.
    let slow = web99(20, Pace::CALIBRATED, 60, |_, server| server.service = 25 * MS);
    let conformity = slow[0].conformity.unwrap();
    assert!(conformity.conforming_connections < 4, "{conformity:?}");
    let mean_ms = conformity.response_ns_sum as f64 / conformity.operations as f64 / 1e6;
    assert!(mean_ms > 375.0, "{mean_ms}");
}

#[test]
fn a_connect_is_the_servers_time_on_a_line() {
    let way = 4 * MS;
    let [counts, _] = &*web99(10, Pace::CALIBRATED, 300, |_, server| server.way = way) else {
        panic!()
    };
    let conformity = counts.conformity.unwrap();
    let operations = conformity.operations as f64;
    let mean_ms = conformity.response_ns_sum as f64 / operations / 1e6;
    let bytes: u64 = counts.classes.iter().map(|class| class.received_bytes).sum();
    let kbit = bytes as f64 * 8.0 / 1000.0 / counts.requests as f64;
    // Each operation has a way there and back, and another one if it has a connection of its own.
    let ways = 2.0 * (1.0 + conformity.opened as f64 / operations);
    let expected = kbit / 0.4 + 52.812 + ways * way.as_secs_f64() * 1e3;
    assert!((mean_ms - expected).abs() < 1.0, "{mean_ms} {expected}");
}

#[test]
fn a_server_that_stands_still_to_the_end_has_no_conforming_connection() {
    let [counts, _] = &*web99(10, Pace::CALIBRATED, 60, |plan, server| {
        plan.timeout = 600 * S;
        server.stopped.push(33 * S..3600 * S);
    }) else {
        panic!()
    };
    let conformity = counts.conformity.unwrap();
    // Until then it was as fast as it must be, and nothing has failed.
    assert!(conformity.operations > 500 && counts.errors.total() == 0, "{conformity:?}");
    assert_eq!(conformity.conforming_connections, 0, "{conformity:?}");
}

#[test]
fn the_time_of_an_operation_that_was_given_up_is_not_forgotten() {
    let [counts, _] = &*web99(10, Pace::CALIBRATED, 60, |plan, server| {
        plan.timeout = 10 * S;
        server.stopped.push(33 * S..45 * S);
    }) else {
        panic!()
    };
    let conformity = counts.conformity.unwrap();
    // One error in more than a hundred operations is allowed; 12 s of 60 are not.
    assert!(counts.errors.total() > 0 && counts.errors.total() <= 10, "{:?}", counts.errors);
    assert!(conformity.conforming_connections < 5, "{conformity:?} {:?}", counts.errors);
}
