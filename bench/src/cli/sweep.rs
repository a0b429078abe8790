//! `onering-bench sweep`: each rate is measured by a `run` of its own, so that no rate begins with
//! what the one before it has left behind.

use super::output::{Outputs, tell_error};
use super::{CommandError, Verdict};
use crate::interrupt::Interrupt;
use crate::result::RunResult;
use crate::sweep::{self, End, Objective, Observation, Search};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Find the highest rate at which a server meets objectives.
///
/// Rates are stepped up until one is too high, and the interval between is halved. Each is measured by
/// `onering-bench run --rate`, with the options that follow those of sweep.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "onering-bench sweep --slo <OBJECTIVE> [OPTIONS] <RUN OPTIONS>...",
    after_help = "Examples:
  onering-bench sweep --slo p99=5ms --target http://127.0.0.1:8080/ --connections 256
  onering-bench sweep --slo p99.9=20ms,errors=0.1% --from 20000 --target http://127.0.0.1:8080/ --cpus 1
  onering-bench sweep --slo max=1s --json sweep.json --target http://127.0.0.1:8080/ --duration 30s

Objectives are about response times, from the planned start: p99=5ms, p99.9=20ms, max=1s, and
errors=0.1%. The options of sweep come first, those of run behind them. Exit codes: 0 a rate was
found, 1 no rate meets the objectives, 5 the generator fell behind its own schedule before the server
missed one, 130 interrupted; and those of run. The JSON's schema is named by its first field,
onering-bench/sweep/1."
)]
pub(super) struct Arguments {
    /// Objectives, all of which are to be met, such as p99=5ms,errors=0.1%
    #[arg(long, value_name = "OBJECTIVE", value_delimiter = ',')]
    slo: Vec<Objective>,
    /// The first rate, requests per second
    #[arg(long, value_name = "R", default_value = "1000", value_parser = rate)]
    from: f64,
    /// The highest rate tried, requests per second
    #[arg(long, value_name = "R", default_value = "100000000", value_parser = rate)]
    most: f64,
    /// End the search where the lowest rate that missed is so little above the highest that met
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    tolerance: f64,
    /// Write the result as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print nothing but the result: no progress
    #[arg(long)]
    quiet: bool,
    /// Options of run, --target among them
    #[arg(
        value_name = "RUN OPTIONS",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    run: Vec<String>,
}

/// A rate in requests per second.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (1.0..=1e8).contains(&rate) => Ok(rate),
        _ => Err("a rate is a number of requests per second, from 1 to 100000000".to_owned()),
    }
}

/// A share, written as `2%`.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a tolerance is from 0.1% to 50%".to_owned()),
    }
}

/// Why a rate could not be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum SweepError {
    /// The program could not be started.
    #[error("cannot start a run: {0}")]
    Start(#[from] io::Error),
    /// It did not measure.
    #[error("the run at {rate:.0}/s did not measure:\n{said}")]
    Run {
        /// The rate.
        rate: f64,
        /// What it said.
        said: String,
        /// Its exit code.
        code: u8,
    },
}

impl SweepError {
    /// Of the run, where it has one.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Start(_) => 3,
            Self::Run { code, .. } => *code,
        }
    }
}

/// Exit codes of `run` with which there is a result: see `onering-bench --help`.
const MEASURED: [i32; 3] = [0, 1, 5];

/// Options of sweep: behind the first one of run they would be taken for its own.
const OWN: [&str; 6] = ["--slo", "--from", "--most", "--tolerance", "--json", "--quiet"];

/// Options of run that make no sense for each of many.
const OF_ONE_RUN: [&str; 3] = ["--rate", "--html", "--start-at"];

impl Arguments {
    /// Refuses options in the wrong place with the right one, which the parser cannot know.
    fn check_options(&self) -> Result<(), CommandError> {
        let name = |word: &'static str| {
            let is_it = |given: &String| given.split('=').next() == Some(word);
            self.run.iter().any(is_it).then_some(word)
        };
        if let Some(option) = OWN.into_iter().find_map(name) {
            return Err(CommandError::Behind { option });
        }
        if let Some(option) = OF_ONE_RUN.into_iter().find_map(name) {
            return Err(CommandError::OfOneRun { option });
        }
        if self.slo.is_empty() {
            return Err(CommandError::Usage(
                "sweep needs --slo: what the server is to keep to, such as --slo p99=5ms,errors=0.1%",
            ));
        }
        Ok(())
    }

    pub(super) fn execute(&self) -> Result<Verdict, CommandError> {
        self.check_options()?;
        let outputs = Outputs::new(self.json.as_deref(), None)?;
        let interrupt = Interrupt::hold().map_err(CommandError::Signals)?;
        let search = Search {
            from_per_s: self.from,
            most_per_s: self.most,
            tolerance: self.tolerance,
            ..Search::default()
        };
        let sweep = sweep::sweep(
            &self.slo,
            search,
            |rate| self.measure(rate, &interrupt),
            |step| {
                if !self.quiet {
                    tell_error(step);
                }
            },
        )?;
        outputs.write(&sweep, &sweep, String::new)?;
        Ok(match sweep.end {
            End::Knee { .. } | End::Highest => Verdict::Clean,
            End::NoneMet => Verdict::Errors,
            End::GeneratorBehind { .. } => Verdict::Behind,
            End::Interrupted => Verdict::Interrupted,
        })
    }

    /// Runs at a rate; `None` where somebody asks to stop.
    fn measure(&self, rate: f64, interrupt: &Interrupt) -> Result<Option<Observation>, SweepError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("run").args(&self.run).args(["--rate", &rate.to_string()]);
        command.args(["--json", "-", "--quiet"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = match interrupt.spawn(&mut command) {
            Ok(child) => output(child, interrupt)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if interrupt.has_come()? {
            return Ok(None);
        }
        let code = output.status.code();
        let failed = |said: String| {
            let code = code.filter(|code| !MEASURED.contains(code));
            let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(3);
            SweepError::Run { rate, said, code }
        };
        if !code.is_some_and(|code| MEASURED.contains(&code)) {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let result = RunResult::parse(&output.stdout).map_err(|error| failed(error.to_string()))?;
        Ok(Some(Observation::of(&result)))
    }
}

/// How often an interrupt is looked for while a run lasts.
const ASK: Duration = Duration::from_millis(100);

/// All that a run has said, once it has ended. An interrupt is passed on to it: it may have come to
/// this process alone, and runs may take long.
fn output(child: Child, interrupt: &Interrupt) -> io::Result<Output> {
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let run = thread::spawn(move || child.wait_with_output());
    while !run.is_finished() {
        if interrupt.wait(ASK)? && !run.is_finished() {
            // It fails only where the run has just ended.
            let _ = kill(pid, Signal::SIGINT);
            break;
        }
    }
    run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn shares_and_rates_are_read() {
        assert_eq!(percent("2%"), Ok(0.02));
        assert_eq!(percent("0.5"), Ok(0.005));
        assert!(percent("0%").is_err() && percent("x").is_err() && percent("100%").is_err());
        assert_eq!(rate("20000"), Ok(20_000.0));
        assert!(rate("0").is_err() && rate("NaN").is_err() && rate("-5").is_err());
    }

    #[test]
    fn what_stands_behind_belongs_to_the_run() {
        let line =
            "onering-bench sweep --slo p99=5ms,errors=0% --target http://127.0.0.1/ --json x";
        assert!(Cli::try_parse_from(line.split(' ')).is_ok());
        assert!(Cli::try_parse_from(["onering-bench", "sweep", "--slo", "p99=5ms"]).is_err());
    }

    #[test]
    fn an_option_in_the_wrong_place_is_refused_with_the_right_one() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let refusal = |line: &str| {
            let words = ["sweep"].into_iter().chain(line.split(' '));
            let checked = Line::try_parse_from(words).unwrap().arguments.check_options();
            checked.err().map(|error| (error.exit_code(), error.to_string()))
        };
        assert_eq!(refusal("--slo p99=5ms --target x --cpus 1"), None);
        for (line, part) in [
            ("--target x --slo p99=5ms", "--slo is an option of sweep"),
            ("--slo p99=5ms --target x --json=y", "--json is an option of sweep"),
            ("--slo p99=5ms --target x --rate 5", "has no use for --rate"),
            ("--target x", "needs --slo"),
        ] {
            let (code, text) = refusal(line).unwrap();
            assert!(code == 2 && text.contains(part), "{line}: {text}");
        }
    }

    #[test]
    fn the_exit_code_of_a_run_that_failed_is_passed_on() {
        let error = SweepError::Run { rate: 5.0, said: "no server".into(), code: 4 };
        assert_eq!(error.exit_code(), 4);
        assert!(error.to_string().ends_with("no server"));
    }
}
