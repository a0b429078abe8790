//! `compare`: servers that are really started and measured, for moments only.
//!
//! Nothing here looks at how fast anybody was.

use crate::floor::PROGRAM;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onering::sys::affinity::allowed_cpus;
use onering_bench::compare::comparison::Comparison;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// `compare` of two cells, with a server and a client CPU; or why that cannot be here.
fn compare(directory: &Path) -> Result<Command, &'static str> {
    let [server, client, ..] = allowed_cpus()[..] else { return Err("it takes two CPUs") };
    let (server, client) = (server.to_string(), client.to_string());
    let mut command = Command::new(PROGRAM);
    command.args(["compare", "--profile", "smoke", "--clients", "run", "--seed", "7"]);
    command.args(["--cells", "1k-64,1k-close-64", "--servers", "onering,floor"]);
    command.args(["--server-cpus", &server, "--client-cpus", &client]);
    command.arg("--json").arg(directory.join("result.json"));
    command.stdin(Stdio::null());
    Ok(command)
}

fn result(directory: &Path) -> Comparison {
    let json = fs::read(directory.join("result.json")).expect("a result");
    serde_json::from_slice(&json).expect("a comparison")
}

/// Runs it to its end: what it printed, unless a namespace is not to be had here.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Some(4) => Err(said),
        Some(3) if said.contains("iproute2") => Err(said),
        other => panic!("{other:?}: {said}"),
    }
}

/// How many servers are compared: this project's own is built with the workspace's tests only.
fn servers() -> usize {
    match Path::new(PROGRAM).with_file_name("onering").is_file() {
        true => 2,
        false => {
            eprintln!("skipped: onering, for it is not built beside onering-bench");
            1
        }
    }
}

#[test]
fn two_servers_are_compared_and_half_a_comparison_is_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let mut command = match compare(directory.path()) {
        Ok(command) => command,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let text = match run(command.arg("--journal").arg(&journal)) {
        Ok(text) => text,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let (whole, servers) = (result(directory.path()), servers());
    assert_eq!(whole.measurements.len(), 2 * servers);
    for measurement in &whole.measurements {
        assert!(measurement.requests > 0 && measurement.sampled > 0, "{measurement:?}");
        assert!(measurement.figures.server_cpu_us_per_request.is_some_and(|cpu| cpu > 0.0));
    }
    assert_eq!(whole.cells.len(), 2);
    assert!(whole.cells.iter().all(|cell| cell.servers.len() == servers));
    assert!(whole.contenders.iter().all(|contender| contender.sha256.len() == 64));
    assert!(!whole.interrupted);
    assert!(text.contains("1 KiB, one request per connection, 64 connections; client: run"));
    assert!(text.contains("1 hold the true ratio in 0.0 % of cases"), "{text}");

    // The first block is whole, the second one was cut off in the middle of a line.
    let lines = fs::read(&journal).unwrap();
    let ends: Vec<_> = (0..lines.len()).filter(|at| lines[*at] == b'\n').collect();
    fs::write(&journal, &lines[..ends[servers] + 20]).unwrap();
    let mut command = compare(directory.path()).unwrap();
    run(command.arg("--resume").arg(&journal)).unwrap();
    let resumed = result(directory.path());
    assert_eq!(resumed.measurements.len(), 2 * servers);
    assert_eq!(resumed.measurements[..servers], whole.measurements[..servers]);
    assert_ne!(resumed.measurements[servers..], whole.measurements[servers..]);

    let mut command = compare(directory.path()).unwrap();
    let refused = command.args(["--rounds", "2", "--resume"]).arg(&journal).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("rounds was 1 and is 2"), "{said}");
}

#[test]
fn an_interrupt_prints_what_was_measured_so_far() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = match compare(directory.path()) {
        Ok(command) => command,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    command.args(["--rounds", "100"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let (mut line, mut all) = (String::new(), String::new());
    while !line.starts_with("[1/") {
        line.clear();
        if said.read_line(&mut line).unwrap() == 0 {
            child.wait().unwrap();
            return eprintln!("skipped: {all}");
        }
        all.push_str(&line);
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{all}{rest}");
    let comparison = result(directory.path());
    assert!(comparison.interrupted);
    assert!((1..200).contains(&comparison.measurements.len()));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("interrupted: not all rounds were measured\n"), "{text}");
}
