//! Accounting for real processes. Nothing here depends on how long something takes: what is burned
//! is told by the processes themselves.

use super::*;
use nix::sys::signal::{Signal, kill};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Until then everything that is waited for has come, on the slowest machine.
const GUARD: Duration = Duration::from_secs(30);

/// A shell that does what it is told line by line, and can be asked for its `times`.
struct Shell {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Shell {
    fn new() -> Self {
        let mut child =
            Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Runs a line, and waits until it is done.
    fn run(&mut self, line: &str) -> String {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}\necho done").unwrap();
        let mut said = String::new();
        loop {
            let mut answer = String::new();
            assert!(self.answers.read_line(&mut answer).unwrap() > 0, "{line}: {said}");
            if answer == "done\n" {
                return said;
            }
            said += &answer;
        }
    }

    /// CPU time of the children for which the shell has waited, as it says itself.
    fn children(&mut self) -> Duration {
        let times = self.run("times");
        let of_children = times.lines().nth(1).unwrap();
        of_children.split_whitespace().map(minutes_and_seconds).sum()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// `0m0.12s`, as `times` has it.
fn minutes_and_seconds(text: &str) -> Duration {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
    let minutes: f64 = minutes.parse().unwrap();
    Duration::from_secs_f64(minutes * 60.0 + seconds.parse::<f64>().unwrap())
}

/// Burns some CPU time in a child of the shell, and waits for it.
const BURN: &str = "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done)";

#[test]
fn own_cpu_time_is_seen_and_grows() {
    let earlier = Sample::of_tree(Pid::this()).unwrap();
    let before = Usage::of_this_thread().unwrap();
    let mut value = 1_u64;
    for i in 0..3_000_000_u64 {
        value = std::hint::black_box(value.wrapping_mul(31) ^ i);
    }
    let burned = Usage::of_this_thread().unwrap().since(before);
    let usage = Sample::of_tree(Pid::this()).unwrap().since(&earlier).unwrap();
    assert!(usage.cpu >= burned.cpu, "{usage:?} {burned:?}");
}

#[test]
fn children_that_come_and_go_between_two_looks_are_accounted_for() {
    let mut shell = Shell::new();
    shell.run(BURN);
    let told_before = shell.children();
    let group = Group::watch(shell.pid()).unwrap();
    for _ in 0..5 {
        shell.run(BURN);
    }
    let consumption = group.finish().unwrap();
    let told = shell.children() - told_before;
    let error = consumption.cpu_error + Duration::from_millis(40);
    assert!(consumption.usage.cpu + error >= told, "{consumption:?} {told:?}");
    assert!(told > Duration::from_millis(50), "the children burned too little: {told:?}");
    assert_eq!((consumption.processes, consumption.lost), (1, 0));
    assert_eq!(consumption.cpu_error, Duration::from_millis(20));
}

#[test]
fn a_child_that_is_seen_alive_and_ends_is_counted_once() {
    let mut shell = Shell::new();
    let mut group = Group::watch(shell.pid()).unwrap();
    // Burns, and stands still until it is told to go on.
    let fifo = tempfile::tempdir().unwrap();
    let fifo = fifo.path().join("go").display().to_string();
    shell.run(&format!("mkfifo {fifo}; ( {BURN}; {BURN}; {BURN}; read line < {fifo} ) &"));
    let begun = Instant::now();
    while group.look().unwrap().cpu < Duration::from_millis(10) {
        assert!(begun.elapsed() < GUARD, "it does not burn");
        std::thread::yield_now();
    }
    shell.run(&format!("echo go > {fifo}; wait"));
    let told = shell.children();
    let consumption = group.finish().unwrap();
    let own = Sample::of_tree(shell.pid()).unwrap().members[&shell.pid()].cpu;
    assert!(
        consumption.usage.cpu <= told + own + Duration::from_millis(60),
        "{consumption:?} {told:?}"
    );
    assert!(consumption.usage.cpu + Duration::from_millis(60) >= told, "{consumption:?} {told:?}");
    assert_eq!(consumption.lost, 0);
}

#[test]
fn an_orphan_stays_a_member() {
    let mut shell = Shell::new();
    let mut group = Group::watch(shell.pid()).unwrap();
    let middle = shell.run("sh -c 'sleep 60 & wait' > /dev/null & echo $!");
    let middle = Pid::from_raw(middle.trim().parse().unwrap());
    // The one in the middle is ended once its child has been seen.
    let begun = Instant::now();
    let sleeper = loop {
        assert!(begun.elapsed() < GUARD, "no child is seen");
        group.look().unwrap();
        let child = group.last.members.iter().find(|(_, member)| member.parent == middle);
        if let Some((&pid, _)) = child {
            break pid;
        }
        std::thread::yield_now();
    };
    kill(middle, Signal::SIGKILL).unwrap();
    shell.run("wait");
    group.look().unwrap();
    let members: Vec<_> = group.last.members.keys().copied().collect();
    kill(sleeper, Signal::SIGKILL).unwrap();
    assert_eq!(members.len(), 2, "{members:?}");
    assert!(members.contains(&sleeper), "{members:?}");
}

#[test]
fn memory_of_a_child_is_seen_while_it_lives() {
    let mut shell = Shell::new();
    let mut group = Group::watch(shell.pid()).unwrap();
    // A child that holds 16 MB of text in a variable until its input ends.
    let line = "{ x=$(head -c 16000000 /dev/zero | tr '\\0' x); echo filled; } ; echo ${#x}";
    assert!(shell.run(line).contains("16000000"));
    group.look().unwrap();
    shell.run("unset x");
    let memory = group.finish().unwrap().memory;
    assert!(memory.peak_bytes >= memory.begin_bytes + 16_000_000, "{memory:?}");
}

#[test]
fn a_root_that_ends_is_told() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut group = Group::watch(Pid::from_raw(child.id() as i32)).unwrap();
    group.look().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let root = Pid::from_raw(child.id() as i32);
    assert!(matches!(Sample::of_tree(root), Err(ProcessError::Unreadable { .. })));
    assert!(group.finish().is_err());
}
