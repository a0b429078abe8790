//! How far a run is, on standard error: a bar on a terminal, else a line for every tenth. Without
//! colours, so that NO_COLOR has nothing to switch off.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use onering_fileset::store::Control;

/// How often a run is looked at.
const TICK: Duration = Duration::from_millis(100);

/// A run to be watched.
pub(super) struct Watch<'w> {
    /// What the run and its watcher share.
    pub(super) control: &'w Control,
    /// Bytes that the run deals with.
    pub(super) total_bytes: u64,
    /// Bytes that it has moved to or from the disk: their speed is shown.
    pub(super) moved_bytes: fn(&Control) -> u64,
    /// Whether nobody wants to see how far it is.
    pub(super) quiet: bool,
}

impl Watch<'_> {
    /// Does the work on a thread of its own, and shows how far it is; looks at `tick` ten times a
    /// second. Returns what the work did, and how much it moved how fast.
    pub(super) fn over<T: Send>(
        &self,
        mut tick: impl FnMut(),
        work: impl FnOnce() -> T + Send,
    ) -> (T, String) {
        let mut progress = Progress::new(self.total_bytes, self.quiet);
        let done = thread::scope(|scope| {
            let watcher = thread::current();
            let worker = scope.spawn(move || {
                let done = work();
                watcher.unpark();
                done
            });
            while !worker.is_finished() {
                tick();
                progress.show(self.control, (self.moved_bytes)(self.control));
                thread::park_timeout(TICK);
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let moved_bytes = (self.moved_bytes)(self.control);
        progress.show(self.control, moved_bytes);
        (done, progress.finish(moved_bytes))
    }
}

struct Progress {
    display: Display,
    total_bytes: u64,
    started: Instant,
}

enum Display {
    Nothing,
    Bar(ProgressBar),
    Lines {
        /// Tenths that have been told of.
        told: u64,
    },
}

impl Progress {
    fn new(total_bytes: u64, quiet: bool) -> Self {
        let display = if quiet {
            Display::Nothing
        } else if io::stderr().is_terminal() {
            Display::Bar(bar(total_bytes))
        } else {
            Display::Lines { told: 0 }
        };
        Self { display, total_bytes, started: Instant::now() }
    }

    /// Shows what the control says now; the speed is that of `moved_bytes`.
    fn show(&mut self, control: &Control, moved_bytes: u64) {
        let done = control.done_bytes();
        let speed = self.speed(moved_bytes);
        match &mut self.display {
            Display::Nothing => (),
            Display::Bar(bar) => {
                bar.set_message(speed);
                bar.set_position(done);
            }
            Display::Lines { told } => {
                let tenths = done * 10 / self.total_bytes.max(1);
                if tenths > *told {
                    *told = tenths;
                    let total = self.total_bytes / 1_000_000;
                    // Where it cannot be said, the work goes on.
                    let _ = writeln!(
                        io::stderr(),
                        "{:3} %, {} of {total} MB, {speed}",
                        tenths * 10,
                        done / 1_000_000
                    );
                }
            }
        }
    }

    /// Takes the bar away; what it took, for a summary.
    fn finish(self, moved_bytes: u64) -> String {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        let seconds = self.started.elapsed().as_secs_f64();
        format!("{moved_bytes} bytes in {seconds:.1} s, {}", self.speed(moved_bytes))
    }

    fn speed(&self, moved_bytes: u64) -> String {
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        format!("{:.0} MB/s", moved_bytes as f64 / seconds / 1e6)
    }
}

fn bar(total_bytes: u64) -> ProgressBar {
    let template = "[{bar:40}] {percent:>3} %, {bytes} of {total_bytes}, {msg}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(total_bytes).with_style(style.progress_chars("=> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_can_be_made() {
        assert_eq!(bar(10).length(), Some(10));
    }
}
