//! A server process of the test's own, on an address of its own.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::seccomp::Confinement;
use super::wait_for;

/// A user and group that own nothing, and whom no other process of tests runs servers as: what a user
/// may have, such as locked memory, is counted over all that the user runs.
fn nobody() -> u32 {
    60_000 + std::process::id() % 5000
}

/// The program under test. In the emulator, the environment says where it is.
pub(crate) fn program() -> OsString {
    std::env::var_os("ONERING_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_onering").into())
}

/// What `onering` is run with.
///
/// ```ignore
/// let server = Server::start(Args::serve(directory.path()).cpus("0"));
/// ```
pub(crate) struct Args {
    words: Vec<OsString>,
    /// Shell commands that run before it in its process, such as `ulimit -n 64;`.
    limits: String,
    confinement: Option<Confinement>,
    unprivileged: bool,
}

impl Args {
    /// `onering` with these words.
    pub(crate) fn of<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Args {
        Args {
            words: words.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            limits: String::new(),
            confinement: None,
            unprivileged: false,
        }
    }

    /// `onering serve DIRECTORY`.
    pub(crate) fn serve(directory: &Path) -> Args {
        Args::of([OsStr::new("serve"), directory.as_os_str()])
    }

    /// One more word.
    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Args {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// `--cpus LIST`.
    pub(crate) fn cpus(self, list: &str) -> Args {
        self.arg("--cpus").arg(list)
    }

    /// A limit in the shell's terms, such as `ulimit("-n", 64)`.
    pub(crate) fn ulimit(mut self, option: &str, value: u64) -> Args {
        self.limits.push_str(&format!("ulimit {option} {value} && "));
        self
    }

    /// With its standard error there, instead of where the test reads it.
    pub(crate) fn stderr_to(mut self, path: &str) -> Args {
        self.limits.push_str(&format!("exec 2>{path} && "));
        self
    }

    /// Runs it as a user without any capability. Needs root.
    pub(crate) fn unprivileged(mut self) -> Args {
        self.unprivileged = true;
        self
    }

    /// Confines it by a seccomp filter.
    pub(crate) fn confined(mut self, confinement: Confinement) -> Args {
        self.confinement = Some(confinement);
        self
    }

    fn spawn(self) -> Child {
        let program = program();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{}exec \"$@\"", self.limits)).arg("sh");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.unprivileged {
            // Such a user may not be able to walk the path to the program: it is handed over open.
            let program = File::open(program).expect("the program is there");
            command.stdin(program).arg("/proc/self/fd/0").gid(nobody()).uid(nobody());
        } else {
            command.arg(program);
        }
        command.args(self.words);
        let child = match self.confinement {
            Some(confinement) => confinement.spawn(command),
            None => command.spawn(),
        };
        child.expect("the program can be started")
    }
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program to its end.
pub(crate) fn run(args: Args) -> Exit {
    let mut process = Process::start(args);
    let status = process.wait();
    process.exit(status)
}

/// A running process, what it has printed so far, and its end on drop.
struct Process {
    child: Child,
    stdout: Printed,
    stderr: Printed,
}

impl Process {
    fn start(args: Args) -> Process {
        let mut child = args.spawn();
        let stdout = Printed::follow(child.stdout.take().expect("standard output is a pipe"));
        let stderr = Printed::follow(child.stderr.take().expect("standard error is a pipe"));
        Process { child, stdout, stderr }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child is ours")
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        wait_for("the process ends", || self.ended())
    }

    /// All that the process, which has ended, has printed.
    fn exit(&mut self, status: ExitStatus) -> Exit {
        Exit { status, stdout: self.stdout.whole(), stderr: self.stderr.whole() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is then waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes out of a pipe, read as it comes so that the writer never waits.
struct Printed {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Printed {
    fn follow(pipe: impl Read + Send + 'static) -> Printed {
        let text = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                let text = String::from_utf8_lossy(&line).into_owned();
                sink.lock().expect("no holder panics").push_str(&text);
                line.clear();
            }
        });
        Printed { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        self.text.lock().expect("no holder panics").clone()
    }

    /// Everything, once the writer has ended.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
        self.so_far()
    }
}

/// A server that is serving. Dropped, it is killed.
pub(crate) struct Server {
    process: Process,
    address: SocketAddr,
    stats: tempfile::TempPath,
}

impl Server {
    /// Starts a server with `--listen` and `--stats` added to `args`, and returns when it says that
    /// it serves.
    #[track_caller]
    pub(crate) fn start(args: Args) -> Server {
        Server::try_start(args).unwrap_or_else(|exit| panic!("the server did not start: {exit:#?}"))
    }

    /// The same for a server that may refuse to start.
    #[track_caller]
    pub(crate) fn try_start(args: Args) -> Result<Server, Exit> {
        Server::try_start_on(unused_address(), args)
    }

    /// The same on an address that was used before.
    #[track_caller]
    pub(crate) fn try_start_on(address: SocketAddr, args: Args) -> Result<Server, Exit> {
        let stats = tempfile::Builder::new().prefix("onering-stats-").tempfile();
        let stats = stats.expect("a temporary file can be made").into_temp_path();
        if args.unprivileged {
            let everyone = Permissions::from_mode(0o666);
            std::fs::set_permissions(&stats, everyone).expect("the file is ours");
        }
        let args = args.arg("--listen").arg(address.to_string()).arg("--stats").arg(&stats);
        let mut process = Process::start(args);
        let url = format!("http://{address}");
        let ended = wait_for("the server prints its URL", || {
            let ended = process.ended();
            (ended.is_some() || process.stdout.so_far().contains(&url)).then_some(ended)
        });
        match ended {
            Some(status) => Err(process.exit(status)),
            None => Ok(Server { process, address, stats }),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of `path`, which begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Sends `signal`.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("process ids are small");
        kill(Pid::from_raw(pid), signal).expect("the server is running");
    }

    /// What the server has written to standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.process.stdout.so_far()
    }

    /// What the server has written to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.process.stderr.so_far()
    }

    /// The names of the server's threads, kernel workers among them.
    pub(crate) fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        tasks
            .expect("the server is running")
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .map(|name| name.trim_end().to_owned())
            .collect()
    }

    /// What a line of /proc/PID/status says of the server's memory, such as `VmHWM`, in KiB.
    pub(crate) fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("the server is running");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.expect("a line of proc(5)").parse().expect("a number")
    }

    /// How many descriptors the server has open.
    pub(crate) fn descriptors(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        open.expect("the server is running").count()
    }

    /// How many sockets the server has open, those that listen among them.
    pub(crate) fn sockets(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        let open = open.expect("the server is running").flatten();
        let target = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
        open.filter_map(target)
            .filter(|target| target.to_string_lossy().starts_with("socket:"))
            .count()
    }

    /// Asks the server to end, which it must do with status 0, and returns its counters.
    #[track_caller]
    pub(crate) fn stop(self) -> Stats {
        self.stop_and_say().0
    }

    /// The same, with all that it has written to standard error.
    #[track_caller]
    pub(crate) fn stop_and_say(self) -> (Stats, String) {
        self.signal(Signal::SIGTERM);
        self.finish_and_say()
    }

    /// Waits for the end of a server that has been told to end.
    #[track_caller]
    pub(crate) fn finish(self) -> Stats {
        self.finish_and_say().0
    }

    /// The same, with all that it has written to standard error.
    #[track_caller]
    pub(crate) fn finish_and_say(mut self) -> (Stats, String) {
        let status = self.process.wait();
        let exit = self.process.exit(status);
        assert!(status.success(), "{exit:#?}");
        let json = std::fs::read(&self.stats).expect("the counters were written");
        (Stats(serde_json::from_slice(&json).expect("the counters are JSON")), exit.stderr)
    }
}

/// The counters of a server that has ended.
#[derive(Debug)]
pub(crate) struct Stats(serde_json::Value);

impl Stats {
    /// A counter of the server's own.
    #[track_caller]
    pub(crate) fn server(&self, counter: &str) -> u64 {
        Self::number(&self.0["server"], counter)
    }

    /// A counter's sum over all shards.
    #[track_caller]
    pub(crate) fn total(&self, counter: &str) -> u64 {
        Self::number(&self.0["total"], counter)
    }

    /// A counter of each shard, in the order of the shards.
    #[track_caller]
    pub(crate) fn of_shards(&self, counter: &str) -> Vec<u64> {
        let shards = self.0["shards"].as_array().expect("there are shards");
        shards.iter().map(|shard| Self::number(shard, counter)).collect()
    }

    #[track_caller]
    fn number(values: &serde_json::Value, counter: &str) -> u64 {
        values[counter].as_u64().unwrap_or_else(|| panic!("no counter is named {counter}"))
    }
}

/// An address on the loopback network that no other test, and no other process of tests, uses: all
/// of 127.0.0.0/8 is ours to listen on. Two servers of one user on one address would share it.
pub(crate) fn unused_address() -> SocketAddr {
    /// Hosts of a network of 256 addresses: neither its first nor its last.
    const HOSTS: u16 = 254;
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let host = u8::try_from(1 + count % HOSTS).expect("there are no more hosts than that");
    // 127.0.0.1 is where others listen.
    SocketAddr::from(([127, high.max(1), low, host], 8080 + count / HOSTS))
}
