//! Who watches a run: shows its seconds, and ends it when a signal asks for that.

use crate::engine::windows::Phase;
use crate::engine::{Progress, Watcher};
use crate::interrupt::Interrupt;
use crate::live::{self, Live, Second, Waiting};
use crate::result::latencies::Latencies;
use crate::tally::Tally;
use std::io;

pub(super) struct Watch {
    interrupt: Interrupt,
    live: Live,
    interrupted: bool,
    /// Whether a failure of TLS was told.
    tls_failed: bool,
    /// Whether windows are iterations, and what lies between them ramps.
    iterations: bool,
}

impl Watch {
    pub(super) fn new(interrupt: Interrupt, options: live::Options, iterations: bool) -> Self {
        let live = Live::new(options);
        Self { interrupt, live, interrupted: false, tls_failed: false, iterations }
    }

    /// Takes what is shown away, and says whether the run was ended early.
    pub(super) fn finish(self) -> bool {
        self.live.finish();
        self.interrupted
    }

    /// The first signal is obeyed, and the next one ends the process.
    fn obey(&mut self) -> io::Result<()> {
        if !self.interrupted && self.interrupt.has_come()? {
            self.interrupted = true;
            self.live.note("interrupted: what was measured until now follows");
            self.interrupt.let_go()?;
        }
        Ok(())
    }

    fn phase(&self, phase: Phase) -> live::Phase {
        match phase {
            Phase::WarmUp => live::Phase::WarmUp,
            Phase::Measured(number) if self.iterations => {
                live::Phase::Iteration(u32::try_from(number + 1).unwrap_or(u32::MAX))
            }
            Phase::Measured(_) => live::Phase::Measured,
            Phase::Between => live::Phase::RampUp,
            Phase::Draining => live::Phase::RampDown,
        }
    }
}

impl Watcher for Watch {
    fn part(&mut self, progress: &Progress<'_>) {
        let Progress { phase, elapsed, of, length, tally, in_flight, server } = progress;
        if let Some(error) = tally.tls_failure.filter(|_| !self.tls_failed) {
            // The first one tells what the count of them means.
            self.live.note(&format!("TLS failed: {error}"));
            self.tls_failed = true;
        }
        let requests = tally.requests();
        // Parts end with the seconds of the wall clock and with phases: many are shorter.
        let per_s = |count: u64| (count as f64 / length.as_secs_f64().max(1e-9)).round() as u64;
        let cpu_us = server.map(|usage| usage.cpu.as_secs_f64() * 1e6);
        self.live.second(&Second {
            elapsed_s: elapsed.as_secs_f64(),
            of_s: of.map(|of| of.as_secs_f64()),
            phase: self.phase(*phase),
            requests: per_s(requests),
            errors: tally.errors.kinds().into_iter().collect(),
            bytes: per_s(tally.received_bytes),
            in_flight: *in_flight as u64,
            waiting: waiting(tally),
            behind: tally.is_behind(),
            server_cpu_us_per_request: cpu_us
                .filter(|_| requests > 0)
                .map(|cpu_us| cpu_us / requests as f64),
        });
    }

    fn wants_to_stop(&mut self) -> bool {
        if let Err(error) = self.obey() {
            self.live.note(&format!("cannot wait for signals any more: {error}"));
        }
        self.interrupted
    }
}

fn waiting(tally: &Tally) -> Option<Waiting> {
    let waiting = Latencies::from(tally.waiting().histogram());
    (!waiting.is_empty()).then(|| Waiting {
        p50_us: waiting.quantile_us(0.5),
        p99_us: waiting.quantile_us(0.99),
        max_us: waiting.max_us(),
    })
}
