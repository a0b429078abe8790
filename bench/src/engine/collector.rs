//! What the threads tell, put together: windows for the result, seconds for whoever watches.

use super::client::UserTally;
use super::thread::{Message, Part, WindowEnd};
use super::windows::{Phase, Windows};
use crate::process::{ProcessError, Usage};
use crate::result::latencies::Latencies;
use crate::result::window::Second;
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A measured window of the whole run.
#[derive(Debug)]
pub(super) struct Measured {
    /// When it began, since 1970.
    pub(super) begin_unix: Duration,
    /// How long it was, as the thread that accounts for the server has measured it.
    pub(super) duration: Duration,
    pub(super) tally: Tally,
    pub(super) usage: Usage,
    pub(super) busiest_thread: Duration,
    /// How long the thread had something to do that had the most, whether it had a CPU or not.
    pub(super) busiest_with_waits: Duration,
    pub(super) enters: u64,
    pub(super) server: Option<Result<Usage, ProcessError>>,
    /// By second of the wall clock.
    pub(super) seconds: BTreeMap<u64, Second>,
    pub(super) users: Vec<UserTally>,
}

/// A part of the run that is over on every thread.
#[derive(Debug)]
pub struct Progress<'a> {
    /// What went on.
    pub phase: Phase,
    /// How long that had been going on at the end of the part.
    pub elapsed: Duration,
    /// How long it will; `None` where nobody knows.
    pub of: Option<Duration>,
    /// How long the part was.
    pub length: Duration,
    /// What was counted in it.
    pub tally: &'a Tally,
    /// Requests in flight at its end.
    pub in_flight: usize,
    /// What the server has consumed in it, where that is known.
    pub server: Option<Usage>,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    windows: &'a Windows,
    threads: usize,
    /// Parts that are not over on every thread: how many they are over on, and their sum.
    parts: BTreeMap<usize, (usize, Box<Part>)>,
    /// Of each second only what the result has of it: a tally with its histograms takes a MB, and there
    /// may be a day of them.
    tallies: BTreeMap<usize, (Tally, BTreeMap<u64, Second>)>,
    ends: BTreeMap<usize, Vec<WindowEnd>>,
    /// The last window that a part belonged to.
    window: usize,
}

impl<'a> Collector<'a> {
    pub(super) fn new(windows: &'a Windows, threads: usize) -> Self {
        Self {
            windows,
            threads,
            parts: BTreeMap::new(),
            tallies: BTreeMap::new(),
            ends: BTreeMap::new(),
            window: 0,
        }
    }

    /// Takes in what a thread has told, and tells `watch` of a part that is over with it, and of the
    /// phase that goes on from there.
    pub(super) fn take(&mut self, message: Message, watch: &mut dyn FnMut(Progress<'_>, Phase)) {
        match message {
            Message::Window(end) => self.ends.entry(end.number).or_default().push(end),
            Message::Part(part) => {
                let number = part.number;
                let count = match self.parts.get_mut(&number) {
                    None => {
                        self.parts.insert(number, (1, part));
                        1
                    }
                    Some((count, sum)) => {
                        sum.tally.add(&part.tally);
                        sum.in_flight += part.in_flight;
                        *count += 1;
                        *count
                    }
                };
                if count == self.threads
                    && let Some((_, part)) = self.parts.remove(&number)
                {
                    self.over(*part, watch);
                }
            }
        }
    }

    fn over(&mut self, mut part: Part, watch: &mut dyn FnMut(Progress<'_>, Phase)) {
        let end = self.windows.edge(part.from);
        let (since, until) = self.windows.span(part.from);
        let progress = Progress {
            phase: part.phase,
            elapsed: end - since,
            of: until.map(|until| until - since),
            length: end - part.from,
            tally: &part.tally,
            in_flight: part.in_flight,
            server: None,
        };
        watch(progress, self.windows.phase(end));
        match part.phase {
            Phase::WarmUp | Phase::Between => return,
            Phase::Measured(number) => self.window = number,
            // Late answers to what the window has planned, which did not come in it.
            Phase::Draining => {
                part.tally.schedule.iter_mut().for_each(|schedule| schedule.completed = 0);
            }
        }
        let unix_s = self.windows.unix(part.from).as_secs();
        let (tally, seconds) = self.tallies.entry(self.window).or_default();
        let second = second(unix_s, &part.tally);
        // More than can be counted is not reached.
        let sum = seconds.get(&unix_s).and_then(|sum| sum.and(&second));
        seconds.insert(unix_s, sum.unwrap_or(second));
        if tally.classes.is_empty() {
            *tally = part.tally;
        } else {
            tally.add(&part.tally);
        }
    }

    /// The windows that are over, when nobody tells any more. Parts that some threads did not come
    /// to, because they were stopped, count as well.
    pub(super) fn windows(mut self, watch: &mut dyn FnMut(Progress<'_>, Phase)) -> Vec<Measured> {
        for (_, part) in std::mem::take(&mut self.parts).into_values() {
            self.over(*part, watch);
        }
        let mut windows = Vec::new();
        for (number, ends) in std::mem::take(&mut self.ends) {
            let (tally, seconds) = self.tallies.remove(&number).unwrap_or_default();
            windows.extend(self.window(ends, tally, seconds));
        }
        windows
    }

    fn window(
        &self,
        ends: Vec<WindowEnd>,
        tally: Tally,
        seconds: BTreeMap<u64, Second>,
    ) -> Option<Measured> {
        let accountant = ends.iter().position(|end| end.server.is_some()).unwrap_or(0);
        let first: &WindowEnd = ends.get(accountant)?;
        let (begin, duration): (Instant, Duration) = (first.begin, first.duration);
        let mut measured = Measured {
            begin_unix: self.windows.unix(begin),
            duration,
            tally,
            usage: Usage::default(),
            busiest_thread: Duration::ZERO,
            busiest_with_waits: Duration::ZERO,
            enters: 0,
            server: None,
            seconds,
            users: Vec::new(),
        };
        for end in ends {
            measured.usage = measured.usage.and(end.usage);
            measured.busiest_thread = measured.busiest_thread.max(end.usage.cpu);
            let with_waits = end.usage.cpu + end.cpu_awaited;
            measured.busiest_with_waits = measured.busiest_with_waits.max(with_waits);
            measured.enters += end.enters;
            measured.server = measured.server.or(end.server);
            measured.users.extend(end.users);
        }
        Some(measured)
    }
}

fn second(unix_s: u64, tally: &Tally) -> Second {
    Second {
        unix_s,
        requests: tally.requests(),
        received_bytes: tally.received_bytes,
        errors: tally.errors.total(),
        latencies: Latencies::from(tally.waiting().histogram()),
    }
}
