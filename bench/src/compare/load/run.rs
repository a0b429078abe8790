//! This program's `run` as the client, in a process of its own.

use super::{LoadError, Taken, first_line, watch};
use crate::compare::answer::Expected;
use crate::compare::cell::{Cell, Get, Handshakes, Load, TAILS_SHARE};
use crate::compare::certificate::cipher;
use crate::compare::figure::Figures;
use crate::compare::options::{KNEE, WARMUP};
use crate::interrupt::Interrupt;
use crate::result::RunResult;
use crate::result::window;
use crate::tls::ResumeBy;
use nix::unistd::Pid;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What is loaded, by what, where.
#[derive(Clone, Copy, Debug)]
pub(in crate::compare) struct Run<'a> {
    /// This program.
    pub(in crate::compare) program: &'a Path,
    pub(in crate::compare) address: SocketAddr,
    pub(in crate::compare) cell: Cell,
    pub(in crate::compare) cpus: &'a [usize],
    pub(in crate::compare) duration: Duration,
    /// The server's process.
    pub(in crate::compare) server: Pid,
    /// The certificate that TLS servers have.
    pub(in crate::compare) certificate: &'a Path,
    /// The directory that the file set of the SPECweb99-style mix lies in.
    pub(in crate::compare) file_set: &'a Path,
    /// A directory for the result.
    pub(in crate::compare) scratch: &'a Path,
}

impl Run<'_> {
    /// Loads a server; for tails twice, first to learn how much it can bear.
    pub(in crate::compare) fn measure(
        &self,
        expected: Option<&Expected>,
        interrupt: &Interrupt,
    ) -> Result<Taken, LoadError> {
        let Load::Tails(_) = self.cell.load else {
            return self.once(self.duration, None, expected, interrupt);
        };
        let knee = self.once(self.duration.min(KNEE), None, expected, interrupt)?;
        let rate = knee.figures.requests_per_s.unwrap_or_default() * TAILS_SHARE;
        let taken = self.once(self.duration, Some(rate), expected, interrupt)?;
        let mut errors = knee.errors;
        for (kind, count) in taken.errors {
            *errors.entry(kind).or_default() += count;
        }
        Ok(Taken { errors, sampled: knee.sampled + taken.sampled, ..taken })
    }

    fn once(
        &self,
        duration: Duration,
        rate: Option<f64>,
        expected: Option<&Expected>,
        interrupt: &Interrupt,
    ) -> Result<Taken, LoadError> {
        // A file of its own for each run: one that has failed shall not be taken for the one before.
        let result = self.scratch.join(if rate.is_some() { "rate.json" } else { "run.json" });
        let mut command = self.command(duration, rate);
        command.arg("--json").arg(&result);
        let watched = watch(&mut command, expected, interrupt)?;
        let json =
            fs::read(&result).map_err(|_| LoadError::Client(first_line(&watched.output.stderr)))?;
        let result = RunResult::parse(&json)
            .map_err(|problem| LoadError::Client(format!("its result {problem}")))?;
        let [window] = &*result.windows else {
            return Err(LoadError::Client("it has not measured one window".to_owned()));
        };
        let counts = window.counts();
        check_handshakes(self.cell, counts.handshakes)?;
        let resident = counts.server.known().and_then(|server| server.resident);
        // A quantile of nothing is none.
        let response = counts.response().filter(|response| !response.is_empty());
        let quantile = |quantile| response.as_ref().map(|times| times.quantile_us(quantile));
        let errors = counts.errors.kinds().map(|(kind, count)| (kind.to_owned(), count));
        Ok(Taken {
            figures: Figures {
                requests_per_s: Some(window.figures().requests_per_s),
                server_cpu_us_per_request: window.figures().server_cpu_us_per_request,
                server_memory_bytes: resident.map(|resident| resident.end_bytes as f64),
                response_p99_us: quantile(0.99),
                response_p999_us: quantile(0.999),
                idle_connection_bytes: None,
            },
            requests: counts.requests,
            errors: errors.collect(),
            sampled: watched.sampled,
            client_is_the_limit: result.client_is_the_limit() || result.is_behind_schedule(),
        })
    }

    /// The command without the place of its result, closed loop unless there is a `rate` per
    /// second.
    fn command(&self, duration: Duration, rate: Option<f64>) -> Command {
        let Self { program, address, cell, cpus, server, .. } = *self;
        let cpus = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let mut command = Command::new(program);
        command.args(["run", "--quiet", "--cpus", &cpus]);
        command.args(["--duration", &milliseconds(duration)]);
        command.args(["--warmup", &milliseconds(WARMUP)]);
        command.args(["--server-pid", &server.to_string()]);
        if cell.load != Load::Web99 {
            command.args(["--connections", &cell.connections.to_string()]);
        }
        match cell.load {
            Load::Get(get) | Load::Tails(get) => {
                command.args(["--target", &url(address, get.tls, &get.file_name())]);
                command.args(["--status", &get.part.status().to_string()]);
                wish(&mut command, get);
            }
            Load::Handshakes(_) => {
                command.args(["--workload", "handshake", "--tls-resume"]);
                command.arg(if cell.resumed_by().is_some() { "100" } else { "0" });
                let file = cell.request().map_or(String::new(), |get| get.file_name());
                command.args(["--target", &url(address, true, &file)]);
            }
            Load::Web99 => {
                command.args(["--workload", "web99", "--mix", "static", "--pacer", "none"]);
                command.args(["--iterations", "1", "--load", &cell.connections.to_string()]);
                command.arg("--fileset").arg(self.file_set);
                command.args(["--target", &url(address, false, "")]);
            }
            Load::Idle { tls } => {
                command.args(["--target", &url(address, tls, "")]);
            }
        }
        if cell.tls() {
            let version = cell.tls_version();
            command.args(["--tls-version", &version.to_string(), "--tls-cipher", cipher(version)]);
            command.args((cell.resumed_by() == Some(ResumeBy::Id)).then_some("--tls-resume-by=id"));
            command.arg("--cacert").arg(self.certificate);
        }
        if let Some(rate) = rate {
            command.args(["--rate", &format!("{rate:.0}"), "--arrivals", "poisson"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// Refuses figures for handshakes of one kind that were mostly of the other: servers may decline to
/// resume. (Each connection's first one is full, whatever is asked for.)
fn check_handshakes(
    cell: Cell,
    window::Handshakes { full, resumed, .. }: window::Handshakes,
) -> Result<(), LoadError> {
    let of_the_other_kind = match cell.load {
        Load::Handshakes(Handshakes::Full) => resumed,
        Load::Handshakes(_) => full.saturating_sub(cell.connections as u64),
        _ => 0,
    };
    match of_the_other_kind > (full + resumed) / 10 {
        true => Err(LoadError::Handshakes { full, resumed }),
        false => Ok(()),
    }
}

/// What kind of request is wished for, beyond the file.
fn wish(command: &mut Command, get: Get) {
    command.args(get.close.then_some("--close"));
    if get.pipeline > 1 {
        command.args(["--pipeline", &get.pipeline.to_string()]);
    }
    if let Some(field) = get.part.field() {
        command.args(["--header", &field]);
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

fn url(address: SocketAddr, tls: bool, path: &str) -> String {
    format!("{}://{address}/{path}", if tls { "https" } else { "http" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cell: &str, rate: Option<f64>) -> String {
        let run = Run {
            program: Path::new("bench"),
            address: "127.0.0.1:8000".parse().unwrap(),
            cell: Cell::named(cell).unwrap(),
            cpus: &[1, 2],
            duration: Duration::from_secs(3),
            server: Pid::from_raw(7),
            certificate: Path::new("/c"),
            file_set: Path::new("/f"),
            scratch: Path::new("/s"),
        };
        let command = run.command(run.duration, rate);
        command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn handshakes_of_the_other_kind_are_no_figures_of_this_one() {
        let check = |cell, full, resumed| {
            let made = window::Handshakes { full, resumed, ..window::Handshakes::default() };
            check_handshakes(Cell::named(cell).unwrap(), made)
        };
        assert!(check("tls-full-64", 1000, 0).is_ok() && check("tls-full-64", 0, 1000).is_err());
        for cell in ["tls-ticket-64", "tls12-ticket-64", "tls12-id-64"] {
            assert!(check(cell, 64, 100).is_ok() && check(cell, 1000, 0).is_err());
        }
        assert!(check("tls-1k-64", 500, 500).is_ok());
    }

    #[test]
    fn the_command_line_says_what_the_cell_is() {
        let common = "run --quiet --cpus 1,2 --duration 3000ms --warmup 300ms --server-pid 7 \
                      --connections 64";
        assert_eq!(
            line("1k-pipe16-64", None),
            format!("{common} --target http://127.0.0.1:8000/1024.bin --status 200 --pipeline 16")
        );
        assert_eq!(
            line("10k-206-64", None),
            format!(
                "{common} --target http://127.0.0.1:8000/10240.bin --status 206 --header Range: \
                 bytes=0-1023"
            )
        );
        assert!(line("102b-close-64", None).ends_with("/102.bin --status 200 --close"));
        assert!(line("tails-1k-64", Some(7000.4)).ends_with("--rate 7000 --arrivals poisson"));
        assert!(line("tls-1k-64", None).contains("--target https://127.0.0.1:8000/1024.bin"));
        let web99 = "--pacer none --iterations 1 --load 64 --fileset /f --target";
        assert!(line("web99-64", None).contains(web99));
        assert!(line("tls-full-64", None).contains("--workload handshake --tls-resume 0"));
        assert!(line("tls-ticket-64", None).contains("--workload handshake --tls-resume 100"));
        let by_id = "--tls-version 1.2 --tls-cipher ECDHE-ECDSA-AES128-GCM-SHA256 \
                     --tls-resume-by=id --cacert /c";
        assert!(line("tls12-id-64", None).ends_with(by_id));
        let tls12 = "--tls-version 1.2 --tls-cipher ECDHE-ECDSA-AES128-GCM-SHA256 --cacert /c";
        assert!(line("tls12-ticket-64", None).ends_with(tls12));
        let tls = "--tls-version 1.3 --tls-cipher TLS_AES_128_GCM_SHA256 --cacert /c";
        assert!(line("tls-ticket-64", None).ends_with(tls));
        assert!(line("tls-1k-64", None).ends_with(tls) && !line("1k-64", None).contains("--tls"));
    }
}
