//! Whether what a result says can be: counts that contradict each other, figures that do not follow
//! from them, and amounts that no machine reaches.

use super::RunResult;
use super::load::{Load, Model, Parameter, RequestsPerConnection};
use super::window::{Class, Conformity, Counts, Errors, Handshakes, Schedule, Second, Window};

const SECOND_NS: u64 = 1_000_000_000;

/// Longest window that is believed: a week, in ns.
const DURATION_NS_MAX: u64 = 7 * 24 * 3600 * SECOND_NS;

/// Most CPUs that anything is believed to have kept busy.
const CPUS_MAX: u64 = 1 << 16;

/// Longest name of a kind of error.
const KIND_MAX: usize = 32;

/// What cannot be, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Absurd {
    /// Such as `window "iteration 2", class "class 0"`.
    place: String,
    what: &'static str,
}

/// Fails unless `holds`.
fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

/// What was found at `place`.
fn at<T>(place: impl Into<String>, result: Result<T, &'static str>) -> Result<T, Absurd> {
    result.map_err(|what| Absurd { place: place.into(), what })
}

/// The sum, unless it is more than can be counted.
fn sum(amounts: impl Iterator<Item = u64>) -> Option<u64> {
    let mut amounts = amounts;
    amounts.try_fold(0_u64, |sum, amount| sum.checked_add(amount))
}

impl RunResult {
    /// Whether all of it can be.
    pub(super) fn check(&self) -> Result<(), Absurd> {
        at("load", check_load(&self.load))?;
        at("generators", self.check_generators())?;
        at("windows", ensure(!self.windows.is_empty(), "there is none"))?;
        let ordered = self.windows.is_sorted_by_key(|window| window.counts().begin_unix_ns);
        at("windows", ensure(ordered, "they are not in the order of their beginning"))?;
        self.windows.iter().try_for_each(|window| check_window(window, self.is_open_loop()))
    }

    fn check_generators(&self) -> Result<(), &'static str> {
        ensure(!self.generators.is_empty(), "there is none")?;
        let open = self.is_open_loop();
        let alike = self.generators.iter().all(|generator| generator.model.is_open() == open);
        ensure(alike, "some are open loops and some are closed ones")?;
        for generator in &self.generators {
            ensure(generator.model.connections() > 0, "one has no connection")?;
            if let Model::Open { rate_per_s, .. } = generator.model {
                ensure(rate_per_s.is_finite() && rate_per_s > 0.0, "a rate is not above zero")?;
            }
        }
        Ok(())
    }
}

fn check_load(load: &Load) -> Result<(), &'static str> {
    ensure(load.targets > 0 && load.pipeline > 0, "nothing is asked for")?;
    ensure((100..600).contains(&load.status), "the status is none of HTTP's")?;
    let endless = load.requests_per_connection == RequestsPerConnection::Fixed { count: 0 };
    ensure(!endless, "connections end after no request")?;
    let share = load.tls.as_ref().map_or(0.0, |tls| tls.resumption_share);
    ensure((0.0..=1.0).contains(&share), "the share of resumptions is not between 0 and 1")?;
    let finite = |p: &Parameter| !matches!(p, Parameter::Figure(figure) if !figure.is_finite());
    ensure(load.parameters.values().all(finite), "a parameter is not a number")
}

fn check_window(window: &Window, open: bool) -> Result<(), Absurd> {
    let counts = window.counts();
    let place = format!("window {:?}", counts.name);
    at(&*place, check_time(window))?;
    at(&*place, check_counts(counts))?;
    for class in &counts.classes {
        at(format!("{place}, class {:?}", class.name), check_class(class, open))?;
    }
    at(format!("{place}, errors"), check_errors(&counts.errors))?;
    at(format!("{place}, seconds"), check_seconds(counts, open))?;
    at(format!("{place}, schedule"), check_schedule(counts.schedule.as_ref(), open))?;
    at(format!("{place}, conformity"), check_conformity(counts.conformity.as_ref()))?;
    at(format!("{place}, cost"), check_cost(counts))?;
    let agree = window.figures().agree_with(&counts.figures());
    at(place, ensure(agree, "the figures do not follow from the counts"))
}

fn check_time(window: &Window) -> Result<(), &'static str> {
    let (counts, common) = (window.counts(), window.common());
    ensure((1..=DURATION_NS_MAX).contains(&counts.duration_ns), "it has no believable duration")?;
    let end = counts.begin_unix_ns.checked_add(counts.duration_ns);
    let within = counts.begin_unix_ns <= common.begin_unix_ns
        && common.begin_unix_ns < common.end_unix_ns
        && end.is_some_and(|end| common.end_unix_ns <= end);
    ensure(within, "the time common to all generators is not in it")
}

fn check_counts(counts: &Counts) -> Result<(), &'static str> {
    let requests = sum(counts.classes.iter().map(|class| class.requests));
    ensure(requests == Some(counts.requests), "the requests of the classes are not all requests")?;
    let bytes = sum(counts.classes.iter().map(|class| class.received_bytes));
    // They may be more than were received in the window: a response that ends in it counts whole.
    ensure(bytes.is_some(), "the classes received more bytes than can be")?;
    ensure(counts.connect.count() == counts.connects, "not every connect has a latency")?;
    let handshakes = counts.handshakes.full.checked_add(counts.handshakes.resumed);
    ensure(handshakes == Some(counts.tls.count()), "not every TLS handshake has a latency")?;
    let Handshakes { full, refused, without_session, .. } = counts.handshakes;
    let within = refused.checked_add(without_session).is_some_and(|failed| failed <= full);
    ensure(within, "more sessions were not resumed than there were full TLS handshakes")
}

fn check_class(class: &Class, open: bool) -> Result<(), &'static str> {
    let all = |latencies: &super::latencies::Latencies| latencies.count() == class.requests;
    ensure(all(&class.service), "not every request has a service time")?;
    ensure(all(&class.first_byte), "not every request has a first byte")?;
    match &class.response {
        Some(response) if open => ensure(all(response), "not every request has a response time"),
        Some(_) => Err("a closed loop has no response time of its own"),
        None => ensure(!open, "an open loop needs the response time"),
    }
}

fn check_errors(errors: &Errors) -> Result<(), &'static str> {
    let is_name = |kind: &str| {
        (1..=KIND_MAX).contains(&kind.len())
            && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    ensure(errors.kinds().all(|(kind, _)| is_name(kind)), "a kind has no name")?;
    ensure(errors.kinds().all(|(_, count)| count > 0), "a kind is listed that did not occur")
}

fn check_seconds(counts: &Counts, open: bool) -> Result<(), &'static str> {
    let seconds = &counts.seconds;
    let ordered = seconds.is_sorted_by(|a, b| a.unix_s < b.unix_s);
    ensure(ordered, "they are not in order")?;
    // Counting begins at the planned moment, and the clock is read a little later.
    let from = (counts.begin_unix_ns / SECOND_NS).saturating_sub(1);
    // What an open loop has planned is awaited when the window is over.
    let awaited_ns = if open { DURATION_NS_MAX } else { 0 };
    let to = counts.end_unix_ns().saturating_add(awaited_ns) / SECOND_NS;
    let within = seconds.iter().all(|second| (from..=to).contains(&second.unix_s));
    ensure(within, "one lies outside of the window")?;
    let within = |amount: fn(&Second) -> u64, all: u64| {
        sum(seconds.iter().map(amount)).is_some_and(|sum| sum <= all)
    };
    let sums = within(|s| s.requests, counts.requests)
        && within(|s| s.received_bytes, counts.received_bytes)
        && within(|s| s.errors, counts.errors.total());
    ensure(sums, "together they have more than the window")?;
    let all = |second: &Second| second.latencies.count() == second.requests;
    ensure(seconds.iter().all(all), "not every request of one has a latency")
}

fn check_schedule(schedule: Option<&Schedule>, open: bool) -> Result<(), &'static str> {
    let Some(schedule) = schedule else {
        return ensure(!open, "an open loop needs one");
    };
    ensure(open, "a closed loop has none")?;
    let missed = schedule.never_sent.checked_add(schedule.unanswered);
    let within = missed.is_some_and(|missed| missed <= schedule.planned);
    ensure(within, "more requests were missed than planned")
}

fn check_conformity(conformity: Option<&Conformity>) -> Result<(), &'static str> {
    let Some(Conformity { requested_connections, conforming_connections, .. }) = conformity else {
        return Ok(());
    };
    ensure(*requested_connections > 0, "no connection was asked for")?;
    ensure(conforming_connections <= requested_connections, "more conform than were asked for")
}

fn check_cost(counts: &Counts) -> Result<(), &'static str> {
    let believable = |cpu_ns: u64| cpu_ns / CPUS_MAX <= counts.duration_ns;
    let client = &counts.client;
    ensure(believable(client.usage.cpu_ns), "the generators cannot have used so much CPU time")?;
    let part = client.busiest_thread_ns <= client.usage.cpu_ns;
    ensure(part, "the busiest thread used more than all together")?;
    let server = counts.server.known();
    let used = server.is_none_or(|server| believable(server.usage.cpu_ns));
    ensure(used, "the server cannot have used so much CPU time")?;
    let resident = server.and_then(|server| server.resident);
    let most = resident.is_none_or(|r| r.begin_bytes.max(r.end_bytes) <= r.peak_bytes);
    ensure(most, "the server's memory was above its peak")
}
