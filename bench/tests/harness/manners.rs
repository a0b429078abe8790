//! How `run` and `sweep` behave towards those who use them: what is shown where, how a run is begun
//! and ended.

use crate::floor::{Floor, PROGRAM};
use onering_bench::result::RunResult;
use onering_bench::sweep::{End, Sweep};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn run(floor: &Floor, options: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["run", "--target", &floor.url, "--connections", "2", "--warmup", "0s"])
        .args(options)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn result(output: &Output) -> RunResult {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {} {}", text(&output.stdout), text(&output.stderr))
    })
}

#[test]
fn in_a_pipe_there_is_a_line_for_each_second_and_with_quiet_there_is_none() {
    let floor = Floor::start();
    let told = run(&floor, &["--duration", "2s", "--json", "-"]);
    let lines = text(&told.stderr);
    assert!(lines.lines().count() >= 2, "{lines}");
    assert!(lines.lines().all(|line| line.contains(" s of 2 s, ")), "{lines}");
    assert!(!lines.contains('\x1b'), "{lines:?}");
    assert!(result(&told).requests() > 0);
    let quiet = run(&floor, &["--duration", "1s", "--json", "-", "--quiet"]);
    assert_eq!(text(&quiet.stderr), "");
    assert!(result(&quiet).requests() > 0);
}

#[test]
fn a_result_names_the_machine_and_what_the_server_took() {
    let floor = Floor::start();
    let pid = floor.pid().to_string();
    let output = run(&floor, &["--duration", "1s", "--json", "-", "--server-pid", &pid]);
    let result = result(&output);
    let fingerprint = result.generators[0].fingerprint.as_ref().unwrap();
    assert!(fingerprint.kernel.release.known().is_some(), "{fingerprint}");
    assert_eq!(fingerprint.network.interface.known().unwrap().name, "lo");
    let cost = result.windows[0].counts().server.known().unwrap();
    assert!(cost.usage.cpu_ns > 0 && cost.processes == 1, "{cost:?}");
    assert!(cost.resident.unwrap().peak_bytes > 0, "{cost:?}");
}

#[test]
fn a_run_begins_at_its_moment_and_not_in_the_past() {
    let floor = Floor::start();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let moment = now() + Duration::from_secs(3);
    let at = moment.as_secs().to_string();
    let output = run(&floor, &["--duration", "1s", "--json", "-", "--start-at", &at]);
    let begun_ns = result(&output).windows[0].counts().begin_unix_ns;
    assert!(begun_ns >= moment.as_secs() * 1_000_000_000, "{begun_ns} {at}");
    for at in [(now().as_secs() - 5).to_string(), (now().as_secs() + 100_000).to_string()] {
        let refused = run(&floor, &["--start-at", &at]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("by this machine's clock"), "{refused:?}");
    }
}

#[test]
fn a_signal_ends_a_run_with_what_was_measured() {
    let floor = Floor::start();
    let mut child = Command::new(PROGRAM)
        .args(["run", "--target", &floor.url, "--connections", "2", "--warmup", "0s"])
        .args(["--duration", "10m", "--json", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first second may be a moment; of the next one there is all when its line comes.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    for _ in 0..2 {
        assert!(said.read_line(&mut String::new()).unwrap() > 0);
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(result(&output).requests() > 0);
}

fn interrupt(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it is there");
}

/// Runs a command in a terminal, made by script(1), that says where its cursor is when it is asked.
/// `answer` may type something at any output. Gives all output, and how the command ended.
fn in_a_terminal(
    command: &str,
    mut answer: impl FnMut(&str) -> &'static str,
) -> (String, ExitStatus) {
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", command, "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script(1) is there");
    let (mut output, mut buffer) = (Vec::new(), [0; 4096]);
    let mut keyboard = script.stdin.take().expect("it is piped");
    let mut screen = script.stdout.take().expect("it is piped");
    let mut questions = 0;
    loop {
        let count = screen.read(&mut buffer).expect("it can be read");
        if count == 0 {
            break;
        }
        output.extend_from_slice(&buffer[..count]);
        let so_far = text(&output);
        let asked = so_far.matches("\x1b[6n").count();
        // The command may have ended before it could be typed.
        for _ in questions..asked {
            let _ = keyboard.write_all(b"\x1b[1;1R");
        }
        questions = asked;
        let _ = keyboard.write_all(answer(&so_far).as_bytes());
    }
    drop(keyboard);
    (text(&output), script.wait().expect("it can be waited for"))
}

#[test]
fn in_a_terminal_a_run_is_drawn_and_ctrl_c_ends_it_with_its_result() {
    let floor = Floor::start();
    // A terminal that script(1) makes has no size where it stands in none itself.
    let command = format!(
        "stty rows 24 cols 80; exec {PROGRAM} run --target {} --connections 2 --warmup 0s \
         --duration 30s",
        floor.url
    );
    let mut pressed = false;
    let (output, status) = in_a_terminal(&command, |so_far| {
        // The second row of the view has been drawn.
        let press = !pressed && so_far.contains("latency");
        pressed |= press;
        if press { "\x03" } else { "" }
    });
    assert_eq!(status.code(), Some(130), "{output:?}");
    assert!(output.contains("measured"), "{output:?}");
    assert!(output.contains("\x1b["), "{output:?}");
    // No other screen, and the cursor was never hidden: nothing had to be restored.
    assert!(!output.contains("\x1b[?1049h") && !output.contains("\x1b[?25l"), "{output:?}");
    let result = &output[output.rfind("\x1b[").unwrap()..];
    assert!(result.contains(&floor.url), "{result:?}");
}

#[test]
fn a_sweep_finds_a_rate_and_says_why_it_ended() {
    let floor = Floor::start();
    let output = Command::new(PROGRAM)
        .args(["sweep", "--slo", "max=60s,errors=50%", "--from", "50", "--most", "200"])
        .args(["--json", "-", "--target", &floor.url, "--connections", "4"])
        .args(["--duration", "500ms", "--warmup", "0s"])
        .output()
        .unwrap();
    let sweep: Sweep = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let steps = text(&output.stderr);
    assert_eq!(steps.lines().count(), sweep.steps.len(), "{steps}");
    match sweep.end {
        End::Highest => {
            assert_eq!((output.status.code(), sweep.best_per_s), (Some(0), Some(200.0)));
        }
        // A machine so busy that a request every 20 ms is sent late.
        End::GeneratorBehind { .. } => assert_eq!(output.status.code(), Some(5)),
        end => panic!("{end:?}: {steps}"),
    }
}

#[test]
fn a_sweep_passes_on_why_a_run_could_not_measure() {
    let output = Command::new(PROGRAM)
        .args(["sweep", "--slo", "p99=5ms", "--target", "http://192.0.2.1/"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("--allow-target"), "{output:?}");
}
