//! The client against the floor and against servers that misbehave, over sockets.
//!
//! A run ends when what a test is about has been counted, however long that takes; only an open loop
//! has a window of its own length, since what it plans follows from that.

use super::super::*;
use crate::dial::DialError;
use crate::floor::Floor;
use crate::request::{Version, Wording};
use crate::result::cost::ServerCost;
use crate::result::window::Counts;
use crate::tally::Tally;
use crate::target::Target;
use crate::workload::get::{Get, Plan as GetPlan};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Until then everything that is waited for has come, on the slowest machine.
const GUARD: Duration = Duration::from_secs(30);

/// A window for which an open loop plans.
const PLANNED: Duration = Duration::from_millis(400);

/// A run of `get`.
#[derive(Clone)]
pub(in crate::engine) struct Run {
    pub(in crate::engine) plan: Plan,
    pub(in crate::engine) get: GetPlan,
}

fn target(address: SocketAddr) -> Target {
    format!("http://{address}/").parse().unwrap()
}

pub(in crate::engine) fn plan(address: SocketAddr) -> Run {
    Run {
        plan: Plan {
            server: address,
            tls: None,
            model: Model::Closed,
            seed: 0,
            connections: 4,
            pipeline: 1,
            kept: true,
            from_connect: false,
            pace: None,
            ramp: Duration::ZERO,
            answer_bytes: 1024,
            cpus: affinity::allowed_cpus()[..1].to_vec(),
            windows: vec![Window { from: Duration::ZERO, length: GUARD }],
            timeout: GUARD,
            server_process: None,
        },
        get: GetPlan {
            targets: vec![target(address)],
            wording: Wording::plain(Version::Http11),
            requests_per_connection: None,
            pipeline: 1,
            status: 200,
            body_bytes: None,
        },
    }
}

/// Ends a run when enough was counted.
struct Until {
    enough: fn(&Tally) -> bool,
    counted: Option<Tally>,
}

fn until(enough: fn(&Tally) -> bool) -> Until {
    Until { enough, counted: None }
}

impl Watcher for Until {
    fn part(&mut self, progress: &Progress<'_>) {
        match &mut self.counted {
            None => self.counted = Some(progress.tally.clone()),
            Some(sum) => sum.add(progress.tally),
        }
    }

    fn wants_to_stop(&mut self) -> bool {
        self.counted.as_ref().is_some_and(self.enough)
    }
}

impl Run {
    fn windows(&self, mut watcher: impl Watcher) -> Result<Vec<WindowResult>, RunError> {
        run(
            &self.plan,
            &|share| Get::new(&self.get, share.part),
            &|number| number.to_string(),
            &mut watcher,
        )
    }

    /// The only window of an open loop, for which so much is planned in a second.
    fn planned(&mut self, rate_per_s: f64, arrivals: Arrivals) -> Counts {
        self.plan.model = Model::Open { rate_per_s, arrivals };
        self.plan.windows[0].length = PLANNED;
        self.counts_until(until(|_| false))
    }

    /// The only window, which is over when some requests have been answered.
    fn counts(&self) -> Counts {
        self.counts_until(until(|tally| tally.requests() > 12))
    }

    /// The only window, which is over early when `watcher` wants it so.
    pub(in crate::engine) fn counts_until(&self, watcher: impl Watcher) -> Counts {
        let [window] = &*self.windows(watcher).unwrap() else { panic!() };
        window.counts().clone()
    }
}

/// What a failed test says of a window.
fn told(counts: &Counts) -> impl std::fmt::Debug {
    (counts.requests, counts.connects, counts.schedule.as_ref().map(|s| (s.planned, s.never_sent)))
}

/// How often each kind of error has occurred.
fn errors(counts: &Counts) -> BTreeMap<&str, u64> {
    counts.errors.kinds().collect()
}

/// A floor that answers for the rest of the process's life.
fn floor(floor: Floor) -> SocketAddr {
    let (address, mut listeners) = floor.listen("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let listener = listeners.remove(0);
    std::thread::spawn(move || floor.answer(listener, None, || {}).unwrap());
    address
}

const FLOOR: Floor = Floor { body_bytes: 1024, close: false, defer_accept: false };

/// A server that does `answer` with each connection, for the rest of the process's life. The
/// number is that of the connection.
pub(in crate::engine) fn server(
    answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(number, &mut stream.unwrap()));
        }
    });
    address
}

/// Whether a request (a small one, in one piece) came.
fn request(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0)
}

/// The port of tcpmux, at which nobody listens. (One that was free a moment ago may be another
/// test's by now.)
const NOWHERE: &str = "127.0.0.1:1";

pub(in crate::engine) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What has come of a server that does `answer` with each connection when `enough` was counted.
fn misbehaving(
    enough: fn(&Tally) -> bool,
    answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static,
) -> (Counts, BTreeMap<String, u64>) {
    let counts = plan(server(answer)).counts_until(until(enough));
    let errors = counts.errors.kinds().map(|(kind, count)| (kind.to_owned(), count)).collect();
    (counts, errors)
}

/// Something went wrong.
fn an_error(tally: &Tally) -> bool {
    tally.errors.total() > 0
}

/// Something went wrong, and something went right.
fn an_error_and_an_answer(tally: &Tally) -> bool {
    an_error(tally) && tally.requests() > 0
}

/// That nothing but errors of this kind have occurred, and some of them.
pub(in crate::engine) fn only(errors: &BTreeMap<String, u64>, kind: &str) {
    assert!(errors.len() == 1 && errors.contains_key(kind), "{errors:?}");
}

#[test]
fn keep_alive_keeps_its_connections() {
    let counts = plan(floor(FLOOR)).counts();
    assert!(counts.requests > 12);
    assert_eq!((counts.connects, counts.errors.total()), (4, 0));
    assert!(counts.received_bytes >= counts.requests * 1024, "{:?}", told(&counts));
    assert!(counts.client.enters > 0 && counts.sent_bytes > 0);
    assert_eq!(counts.service().count(), counts.requests);
    assert_eq!(counts.response(), None);
    assert_eq!(counts.seconds.iter().map(|second| second.requests).sum::<u64>(), counts.requests);
}

#[test]
fn pipelined_requests_are_all_answered() {
    let mut run = plan(floor(FLOOR));
    (run.plan.pipeline, run.get.pipeline) = (16, 16);
    let counts = run.counts();
    assert!(counts.requests > 0);
    assert_eq!(errors(&counts), BTreeMap::new());
}

#[test]
fn one_request_per_connection() {
    let mut run = plan(floor(Floor { close: true, ..FLOOR }));
    (run.get.requests_per_connection, run.plan.kept) = (Some(1), false);
    let counts = run.counts();
    assert!(counts.requests > 4, "{:?}", told(&counts));
    assert_eq!(errors(&counts), BTreeMap::new());
    let in_the_making = 4;
    assert!(counts.connects.abs_diff(counts.requests) <= in_the_making, "{:?}", told(&counts));
    assert_eq!(counts.connect.count(), counts.connects);
}

/// A server that closes after the request that asks for it.
fn closing_when_told() -> SocketAddr {
    server(|_, stream| {
        let mut left = true;
        while left {
            let mut bytes = [0; 1024];
            let Ok(length @ 1..) = stream.read(&mut bytes) else { return };
            left = !bytes[..length].windows(5).any(|window| window == b"close");
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    })
}

#[test]
fn connections_of_several_requests() {
    let mut run = plan(closing_when_told());
    run.get.requests_per_connection = Some(3);
    let counts = run.counts();
    assert!(counts.requests > 12, "{:?}", told(&counts));
    assert_eq!(errors(&counts), BTreeMap::new());
    assert!((3 * counts.connects).abs_diff(counts.requests) <= 12, "{:?}", told(&counts));
}

#[test]
fn http_1_0_without_persistence_reconnects() {
    let address = server(|_, stream| {
        if request(stream) {
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let mut run = plan(address);
    run.get.wording = Wording::plain(Version::Http10);
    let counts = run.counts();
    assert!(counts.connects > 4, "{:?}", told(&counts));
    assert_eq!(errors(&counts), BTreeMap::new());
}

#[test]
fn bodies_larger_than_any_buffer() {
    let counts = plan(floor(Floor { body_bytes: 1 << 20, ..FLOOR })).counts();
    assert!(counts.requests > 0);
    assert_eq!(errors(&counts), BTreeMap::new());
}

#[test]
fn several_threads_share_the_load() {
    let cpus = affinity::allowed_cpus();
    if cpus.len() < 2 {
        eprintln!("skipped: needs two CPUs");
        return;
    }
    let mut run = plan(floor(FLOOR));
    (run.plan.cpus, run.plan.connections) = (cpus[..2].to_vec(), 5);
    let shares: Vec<_> =
        shares(&run.plan).iter().map(|s| (s.cpu, s.connections, s.first_connection)).collect();
    assert_eq!(shares, [(cpus[0], 3, 0), (cpus[1], 2, 3)]);
    let counts = run.counts();
    assert!(counts.requests > 0);
    assert_eq!(errors(&counts), BTreeMap::new());
    // Each thread has its parts; those of one second are one.
    let mut seconds: Vec<_> = counts.seconds.iter().map(|second| second.unix_s).collect();
    seconds.dedup();
    assert_eq!(seconds.len(), counts.seconds.len());
}

#[test]
fn the_servers_process_is_accounted_for() {
    let mut run = plan(floor(FLOOR));
    run.plan.server_process = Some(Pid::this());
    match run.counts().server {
        // The floor runs in this process, so does the client.
        ServerCost::Known { cost } => {
            assert!(cost.usage.cpu_ns > 0 && cost.processes > 0);
            assert!(cost.resident.unwrap().peak_bytes > 1 << 20);
        }
        other => panic!("{other:?}"),
    }
    run.plan.server_process = Some(Pid::from_raw(i32::MAX));
    let gone = run.windows(until(|_| false));
    assert!(matches!(gone, Err(RunError::Process(_))));
}

#[test]
fn a_run_that_is_stopped_tells_what_it_has_measured() {
    let mut run = plan(floor(FLOOR));
    run.plan.windows[0].length = Duration::from_secs(3600);
    let windows = run.windows(until(|tally| tally.requests() > 0)).unwrap();
    let counts = windows[0].counts();
    assert!(counts.requests > 0 && counts.seconds_f64() < 3600.0, "{:?}", told(counts));
}

#[test]
fn an_open_loop_sends_what_is_planned() {
    let mut run = plan(floor(FLOOR));
    run.plan.windows[0].from = Duration::from_millis(100);
    let counts = run.planned(2000.0, Arrivals::Constant);
    let schedule = counts.schedule.as_ref().unwrap();
    assert_eq!(schedule.planned, 800, "{:?}", told(&counts));
    assert_eq!((schedule.never_sent, schedule.unanswered), (0, 0));
    assert_eq!((counts.requests, counts.errors.total()), (800, 0));
    assert_eq!(counts.response().unwrap().count(), 800);
    // A start that waited for a connection is not the generator's lateness.
    assert!(schedule.lag.count() <= 800);
}

#[test]
fn an_open_loop_opens_a_connection_for_each_request_that_has_its_own() {
    let mut run = plan(closing_when_told());
    (run.get.requests_per_connection, run.plan.kept) = (Some(1), false);
    let counts = run.planned(500.0, Arrivals::Poisson);
    let planned = counts.schedule.as_ref().unwrap().planned;
    assert!(planned > 100, "{:?}", told(&counts));
    assert_eq!((counts.requests, counts.connects, counts.errors.total()), (planned, planned, 0));
}

#[test]
fn an_open_loop_keeps_its_plan_when_the_server_closes_idle_connections() {
    let address = server(|_, stream| {
        if request(stream) {
            let _ = stream.write_all(OK);
        }
    });
    let counts = plan(address).planned(200.0, Arrivals::Constant);
    let planned = counts.schedule.as_ref().unwrap().planned;
    // A request may cross the server's close, and is lost then.
    assert_eq!(counts.requests + counts.errors.total(), planned, "{:?}", told(&counts));
    assert!(counts.requests > 0 && counts.connects > 4);
}

#[test]
fn what_an_open_loop_never_sent_is_told() {
    let mut run = plan(server(|_, stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    }));
    run.plan.timeout = PLANNED * 2;
    let counts = run.planned(1000.0, Arrivals::Constant);
    let schedule = counts.schedule.as_ref().unwrap();
    assert_eq!(schedule.planned, 400);
    assert_eq!(counts.requests, 0);
    let lost = schedule.never_sent + schedule.unanswered + counts.errors.total();
    assert_eq!(lost, 400, "{:?}", told(&counts));
    assert!(schedule.never_sent > 300);
}

#[test]
fn a_server_that_resets() {
    let (_, errors) = misbehaving(an_error, |_, stream| {
        if request(stream) {
            onering::sys::socket::reset(&*stream).unwrap();
        }
    });
    only(&errors, "reset");
}

#[test]
fn a_server_that_closes_in_the_middle() {
    let (counts, errors) = misbehaving(an_error, |_, stream| {
        if request(stream) {
            let _ = stream.write_all(&OK[..OK.len() - 1]);
        }
    });
    only(&errors, "ended");
    assert_eq!(counts.requests, 0);
}

#[test]
fn a_server_that_says_nothing() {
    let mut run = plan(server(|_, stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    }));
    run.plan.timeout = Duration::from_millis(100);
    let counts = run.counts_until(until(an_error));
    assert_eq!(errors(&counts).keys().collect::<Vec<_>>(), [&"timeout"]);
}

#[test]
fn a_server_that_talks_nonsense() {
    let (_, errors) = misbehaving(an_error, |_, stream| {
        if request(stream) {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n\r\n");
        }
    });
    only(&errors, "framing");
}

#[test]
fn a_server_that_sends_too_much() {
    let (counts, errors) = misbehaving(an_error_and_an_answer, |_, stream| {
        if request(stream) {
            let _ = stream.write_all(&[OK, b"!"].concat());
        }
    });
    only(&errors, "framing");
    assert!(counts.requests > 0);
}

#[test]
fn a_server_with_wrong_answers() {
    let (counts, errors) = misbehaving(an_error_and_an_answer, |number, stream| {
        while request(stream) {
            let answer: &[u8] = match number {
                1 => b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                _ => OK,
            };
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    });
    only(&errors, "status");
    assert!(counts.requests > 0);
}

#[test]
fn a_server_that_is_not_there() {
    let counts = plan(NOWHERE.parse().unwrap()).counts_until(until(an_error));
    assert_eq!(counts.requests, 0);
    assert_eq!(errors(&counts).keys().collect::<Vec<_>>(), [&"connect"]);
}

#[test]
fn a_server_that_dies_in_mid_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // Each connection has one answer; then none is there, and there is no other.
        let mut streams: Vec<_> = (0..4).map(|_| listener.accept().unwrap().0).collect();
        drop(listener);
        for stream in &mut streams {
            assert!(request(stream));
            stream.write_all(OK).unwrap();
        }
    });
    let counts = plan(address).counts_until(until(|tally| tally.errors.connect > 0));
    let errors = errors(&counts);
    assert!(counts.requests > 0 && counts.requests <= 4, "{:?}", told(&counts));
    let lost = ["ended", "reset"].iter().filter_map(|kind| errors.get(kind)).sum::<u64>();
    assert!((1..=4).contains(&lost) && errors.contains_key("connect"), "{errors:?}");
    let kinds = ["connect", "ended", "reset"];
    assert!(errors.keys().all(|kind| kinds.contains(kind)), "{errors:?}");
}

#[test]
fn a_server_that_is_wrong_from_the_start() {
    let ask = |address| {
        let wording = Wording::plain(Version::Http11);
        preflight::ask(address, None, &target(address), &wording, 200, Duration::from_secs(30))
    };
    let with = |answer: &'static [u8]| {
        ask(server(move |_, stream| drop(request(stream).then(|| stream.write_all(answer)))))
    };
    assert_eq!(with(OK).unwrap().bytes, OK.len() as u64);
    let missing = with(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    assert!(matches!(missing, Err(PreflightError::Status { status: 404, .. })));
    assert!(matches!(with(b"hello\r\n\r\n"), Err(PreflightError::Framing(_))));
    assert!(matches!(with(b"HTTP/1.1 200 OK\r\n"), Err(PreflightError::Ended)));
    assert!(matches!(
        ask(NOWHERE.parse().unwrap()),
        Err(PreflightError::Dial(DialError::Connect { .. }))
    ));
}
