//! What a run shows of itself while it lasts: a few lines of a terminal that are drawn anew each
//! second, or one plain line a second where nobody sees a terminal, or nothing.
//!
//! Everything goes to standard error. The terminal is left as it is found: no raw mode, no other
//! screen, the cursor always visible and below what is drawn. So there is nothing to restore when
//! the process panics or is ended by a second Ctrl-C. A view that cannot be drawn is given up: it
//! never ends a measurement.

mod course;
mod line;
mod view;

use crate::result::window::Errors;
use course::Course;
use ratatui::backend::CrosstermBackend;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::fmt;
use std::io::{self, IsTerminal, Stderr, Write};

/// One second of a run, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// How long the phase has lasted, s.
    pub elapsed_s: f64,
    /// How long the phase will last, s; absent if nobody knows.
    pub of_s: Option<f64>,
    /// What the run does.
    pub phase: Phase,
    /// Right responses per second.
    pub requests: u64,
    /// What went wrong, by kind.
    pub errors: Errors,
    /// Bytes received per second.
    pub bytes: u64,
    /// Requests that wait for their response at the end of the second.
    pub in_flight: u64,
    /// Response time in an open loop, service time in a closed one; absent if nothing was answered.
    pub waiting: Option<Waiting>,
    /// Whether the generator is behind its own schedule.
    pub behind: bool,
    /// The server's CPU time for each right response, µs; absent if it is not known.
    pub server_cpu_us_per_request: Option<f64>,
}

/// How long responses took, µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Half of them no longer.
    pub p50_us: f64,
    /// 99 of 100 no longer.
    pub p99_us: f64,
    /// None longer.
    pub max_us: f64,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is counted yet.
    WarmUp,
    /// Load grows; nothing is counted.
    RampUp,
    /// What is counted.
    Measured,
    /// One of several intervals that are counted, from 1 on.
    Iteration(u32),
    /// Nothing is counted any more.
    RampDown,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WarmUp => f.pad("warm-up"),
            Self::RampUp => f.pad("ramp-up"),
            Self::Measured => f.pad("measured"),
            Self::Iteration(number) => f.pad(&format!("iteration {number}")),
            Self::RampDown => f.pad("ramp-down"),
        }
    }
}

/// How a run shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// Not at all.
    Quiet,
    /// A line each second.
    Lines,
    /// Drawn in the terminal, with colours or without.
    Terminal {
        /// Whether there are any.
        colors: bool,
    },
}

impl Options {
    /// As the user and the surroundings have it: `--quiet`; whether standard error is a terminal
    /// that can be drawn in; `NO_COLOR` (no-color.org: any value but an empty one).
    pub fn here(quiet: bool) -> Self {
        // To learn where the cursor is, the terminal is asked through standard output: where that
        // leads elsewhere, the question would stand in somebody's file.
        let terminal = io::stderr().is_terminal() && io::stdout().is_terminal();
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = variable("TERM").is_none_or(|term| term == "dumb");
        Self::choose(quiet, terminal && !dumb, variable("NO_COLOR").is_some())
    }

    fn choose(quiet: bool, terminal: bool, no_color: bool) -> Self {
        match (quiet, terminal) {
            (true, _) => Self::Quiet,
            (false, false) => Self::Lines,
            (false, true) => Self::Terminal { colors: !no_color },
        }
    }
}

/// The view of a run that lasts.
pub struct Live {
    screen: Screen,
    course: Course,
}

/// Where it is seen.
enum Screen {
    Nowhere,
    Lines,
    Terminal { terminal: Terminal<CrosstermBackend<Stderr>>, colors: bool },
}

impl Live {
    /// A view. Where the terminal does not say where its cursor is, or has no size, there will be
    /// lines.
    pub fn new(options: Options) -> Self {
        let screen = match options {
            Options::Quiet => Screen::Nowhere,
            Options::Lines => Screen::Lines,
            Options::Terminal { colors } => {
                let viewport = Viewport::Inline(view::ROWS);
                let backend = CrosstermBackend::new(io::stderr());
                let terminal = Terminal::with_options(backend, TerminalOptions { viewport }).ok();
                let has_size = |terminal: &mut Terminal<_>| !terminal.get_frame().area().is_empty();
                match terminal.and_then(|mut terminal| has_size(&mut terminal).then_some(terminal))
                {
                    Some(terminal) => Screen::Terminal { terminal, colors },
                    None => Screen::Lines,
                }
            }
        };
        Self { screen, course: Course::default() }
    }

    /// Shows the second that has just passed.
    pub fn second(&mut self, second: &Second) {
        self.course.add(second);
        let shown = match &mut self.screen {
            Screen::Nowhere => Ok(()),
            Screen::Lines => writeln!(io::stderr(), "{}", line::Line(second)),
            Screen::Terminal { terminal, colors } => {
                let drawn = terminal.draw(|frame| view::draw(frame, second, &self.course, *colors));
                drawn.map(|_| ())
            }
        };
        if shown.is_err() {
            self.screen = Screen::Nowhere;
        }
    }

    /// Says something that is to remain, above what is drawn.
    pub fn note(&mut self, text: &str) {
        let said = match &mut self.screen {
            Screen::Nowhere => Ok(()),
            Screen::Lines => writeln!(io::stderr(), "{text}"),
            Screen::Terminal { terminal, .. } => {
                let rows = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
                terminal.insert_before(rows, |buffer| view::note(buffer, text))
            }
        };
        if said.is_err() {
            self.screen = Screen::Nowhere;
        }
    }

    /// Takes away what is drawn, so that the result may stand there.
    pub fn finish(mut self) {
        self.take_away();
    }

    fn take_away(&mut self) {
        if let Screen::Terminal { mut terminal, .. } =
            std::mem::replace(&mut self.screen, Screen::Nowhere)
        {
            let top = terminal.get_frame().area().as_position();
            // A terminal that has gone away needs no tidying.
            let _ = terminal.clear().and_then(|()| terminal.set_cursor_position(top));
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // What a panic says stands below the view by now, and would be taken away with it.
        if !std::thread::panicking() {
            self.take_away();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_sees_a_terminal_there_are_lines() {
        assert_eq!(Options::choose(false, false, false), Options::Lines);
        assert_eq!(Options::choose(false, true, false), Options::Terminal { colors: true });
        assert_eq!(Options::choose(false, true, true), Options::Terminal { colors: false });
        for (terminal, no_color) in [(false, false), (true, false), (true, true)] {
            assert_eq!(Options::choose(true, terminal, no_color), Options::Quiet);
        }
    }
}
