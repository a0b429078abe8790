//! wrk as a second client: what it prints, read.

use super::{LoadError, Taken, first_line, watch};
use crate::compare::answer::Expected;
use crate::compare::cell::{Cell, Get};
use crate::compare::figure::Figures;
use crate::interrupt::Interrupt;
use crate::process::Group;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Why wrk gave no figures.
#[derive(Debug, thiserror::Error)]
pub(in crate::compare) enum WrkError {
    /// It failed.
    #[error("wrk failed: {0}")]
    Failed(String),
    /// It printed something else than expected.
    #[error("wrk printed no `{0}`")]
    Output(&'static str),
}

/// What wrk printed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Printed {
    /// Requests answered.
    requests: u64,
    /// Requests answered per second.
    requests_per_s: f64,
    /// Socket errors of all kinds and statuses other than 2xx and 3xx.
    errors: u64,
}

/// Loads a server by `command`. wrk tells no times that would be comparable, so there are none.
pub(in crate::compare) fn measure(
    mut command: Command,
    server: Pid,
    expected: Option<&Expected>,
    interrupt: &Interrupt,
) -> Result<Taken, LoadError> {
    let group = Group::watch(server)?;
    let watched = watch(&mut command, expected, interrupt)?;
    let server = group.finish()?;
    let printed = read(&watched.output)?;
    let errors = (printed.errors > 0).then(|| ("all kinds".to_owned(), printed.errors));
    Ok(Taken {
        figures: Figures {
            requests_per_s: Some(printed.requests_per_s),
            server_cpu_us_per_request: (printed.requests > 0)
                .then(|| server.usage.cpu.as_secs_f64() * 1e6 / printed.requests as f64),
            server_memory_bytes: Some(server.memory.end_bytes as f64),
            ..Figures::default()
        },
        requests: printed.requests,
        errors: BTreeMap::from_iter(errors),
        sampled: watched.sampled,
        client_is_the_limit: false,
    })
}

/// wrk with a thread for each CPU. Its durations are whole seconds.
pub(in crate::compare) fn command(
    program: &Path,
    url: &str,
    cell: Cell,
    get: Get,
    cpus: usize,
    duration: Duration,
) -> Command {
    let mut command = Command::new(program);
    command.args([&format!("-t{cpus}"), &format!("-c{}", cell.connections)]);
    command.arg(format!("-d{}s", duration.as_secs_f64().ceil().max(1.0)));
    if get.close {
        command.args(["-H", "Connection: close"]);
    }
    if let Some(field) = get.part.field() {
        command.args(["-H", &field]);
    }
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The figures in what it printed.
fn read(output: &Output) -> Result<Printed, WrkError> {
    if !output.status.success() {
        return Err(WrkError::Failed(first_line(&output.stderr)));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(text: &str) -> Result<Printed, WrkError> {
    let after = |name: &'static str| {
        text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim)
    };
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))
        .and_then(|(count, _)| count.parse().ok())
        .ok_or(WrkError::Output("requests in"))?;
    let requests_per_s = after("Requests/sec:")
        .and_then(|rate| rate.parse().ok())
        .ok_or(WrkError::Output("Requests/sec:"))?;
    // "connect 0, read 3, write 0, timeout 0"
    let socket_errors = after("Socket errors:").map_or(0, |kinds| {
        let counts = kinds.split(',').filter_map(|kind| kind.trim().split_once(' '));
        counts.filter_map(|(_, count)| count.parse::<u64>().ok()).sum()
    });
    let statuses =
        after("Non-2xx or 3xx responses:").and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(Printed { requests, requests_per_s, errors: socket_errors + statuses })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "\
Running 3s test @ http://127.0.0.1:8000/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   372.11us  103.77us   4.60ms   85.53%
    Req/Sec   171.24k     4.71k  178.57k    77.42%
  527893 requests in 3.10s, 643.31MB read
Requests/sec: 170291.05
Transfer/sec:    207.53MB
";

    #[test]
    fn a_clean_run_is_read() {
        let printed = parse(CLEAN).unwrap();
        assert_eq!(printed, Printed { requests: 527_893, requests_per_s: 170_291.05, errors: 0 });
    }

    #[test]
    fn errors_are_added_up() {
        let text = format!(
            "{CLEAN}  Socket errors: connect 1, read 2, write 3, timeout 4\n  \
             Non-2xx or 3xx responses: 5\n"
        );
        assert_eq!(parse(&text).unwrap().errors, 15);
    }

    #[test]
    fn other_output_is_refused() {
        assert!(matches!(parse("hello"), Err(WrkError::Output("requests in"))));
        let cut = CLEAN.split("Requests/sec").next().unwrap();
        assert!(matches!(parse(cut), Err(WrkError::Output("Requests/sec:"))));
    }
}
