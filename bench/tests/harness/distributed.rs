//! What is shipped for running on several hosts: every script is run with a launcher that starts
//! everything on this one, and the Kubernetes manifest is read.

use crate::floor::{Floor, PROGRAM};
use clap::Parser;
use onering_bench::cli::Cli;
use onering_bench::result::RunResult;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Looks like ssh to the script, and gives its words to a shell as ssh does.
const SSH: &str = "shift\nexec sh -c \"$*\"\n";

/// Looks like srun and like mpirun: starts two of what it is to start.
const LAUNCHER: &str = "\
while [ \"$1\" != bash ]; do shift; done
for rank in 0 1; do SLURM_PROCID=$rank OMPI_COMM_WORLD_RANK=$rank \"$@\" & done
wait
";

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/distributed").join(name)
}

/// A directory to run in, whose `bin` holds the launchers and is looked in first, and then this
/// program's.
struct Place {
    directory: TempDir,
    path: OsString,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("the test can prepare");
        let bin = directory.path().join("bin");
        fs::create_dir(&bin).expect("the test can prepare");
        for (name, body) in [("ssh", SSH), ("srun", LAUNCHER), ("mpirun", LAUNCHER)] {
            let file = bin.join(name);
            fs::write(&file, format!("#!/bin/sh\n{body}")).expect("the test can prepare");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
                .expect("the test can prepare");
        }
        let ours = Path::new(PROGRAM).parent().expect("the test can prepare").to_owned();
        let before = std::env::var_os("PATH").expect("the test can prepare");
        let path = [bin, ours].into_iter().chain(std::env::split_paths(&before));
        Self { path: std::env::join_paths(path).expect("the test can prepare"), directory }
    }

    /// Runs a script, and reads what it has merged.
    fn run(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> RunResult {
        let output = Command::new(contrib(script))
            .args(arguments)
            .current_dir(self.directory.path())
            .env("PATH", &self.path)
            .env("LEAD_S", "8")
            .envs(variables.iter().copied())
            .output()
            .expect("the test can prepare");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {} {said}", output.status);
        RunResult::read(&self.directory.path().join("merged.json")).expect("the test can prepare")
    }
}

fn two_generators_were_merged(merged: &RunResult) {
    assert_eq!(merged.generators.len(), 2);
    assert!(merged.requests() > 0);
    assert_ne!(merged.generators[0].seed, merged.generators[1].seed);
    assert_eq!(merged.errors(), 0);
}

#[test]
fn several_hosts_load_a_server_over_ssh() {
    let floor = Floor::start();
    let arguments =
        ["a", "b", "--", "--target", &floor.url, "--connections", "4", "--duration", "4s"];
    two_generators_were_merged(&Place::new().run("ssh.sh", &arguments, &[]));
}

#[test]
fn several_hosts_load_a_server_with_slurm_and_with_mpi() {
    let floor = Floor::start();
    let variables = [
        ("TARGET", floor.url.as_str()),
        ("ALLOW", "127.0.0.1"),
        ("RATE", "200"),
        ("CONNECTIONS", "8"),
        ("DURATION", "4s"),
    ];
    for script in ["slurm.sh", "mpi.sh"] {
        two_generators_were_merged(&Place::new().run(script, &[], &variables));
    }
}

/// The manifest as JSON, if there is somebody who can read it.
fn manifest() -> Option<Value> {
    let mut python = Command::new("python3")
        .args(["-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let text = fs::read(contrib("kubernetes.yaml")).expect("it is shipped");
    // Where there is no yaml module nobody reads, and there is no output either.
    let _ = python.stdin.take()?.write_all(&text);
    let output = python.wait_with_output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

#[test]
fn the_kubernetes_job_is_sound_and_its_command_is_understood() {
    let Some(job) = manifest() else {
        eprintln!("skipped: the Kubernetes manifest: python3 with its yaml module is not there");
        return;
    };
    assert_eq!(job["kind"], "Job");
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    assert_eq!(spec["completions"], spec["parallelism"]);
    assert_eq!(spec["backoffLimit"], 0);
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    let words = container["command"].as_array().unwrap().iter().map(|word| {
        let word = word.as_str().unwrap();
        word.replace("@TARGET", "http://10.0.0.5/")
            .replace("@ALLOW", "10.0.0.5")
            .replace("@START", "1796061900")
            .replace("$(JOB_COMPLETION_INDEX)", "3")
    });
    if let Err(error) = Cli::try_parse_from(words) {
        panic!("{error}");
    }
}
