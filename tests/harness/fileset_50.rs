//! Layer 50: the file set from the command line: planned, written, interrupted at any point, gone on
//! with, damaged, verified.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::server::{Exit, program, run};
use crate::support::{Args, repeats, skip, wait_until};

/// Directories of the sets that are written here.
const DIRS: &str = "2";

fn fileset(words: &[&str]) -> Exit {
    run(Args::of(["fileset"].iter().chain(words)))
}

#[track_caller]
fn succeeds(words: &[&str]) -> Exit {
    let exit = fileset(words);
    assert!(exit.status.success(), "{exit:?}");
    exit
}

/// What is in a directory, from its root on.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("the directory can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let content = fs::read(&path).expect("the file can be read");
                let path = path.strip_prefix(root).expect("it is below the root").to_owned();
                files.insert(path, content);
            }
        }
    }
    files
}

/// The set that every run of this seed must give.
fn whole() -> &'static BTreeMap<PathBuf, Vec<u8>> {
    static WHOLE: OnceLock<BTreeMap<PathBuf, Vec<u8>>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let directory = TempDir::new().expect("a directory");
        let root = directory.path().to_str().expect("a plain name");
        succeeds(&["generate", root, "--dirs", DIRS, "--seed", "5", "--quiet"]);
        let tree = tree(directory.path());
        assert_eq!(tree.len(), 2 * 36 + 1);
        tree
    })
}

/// A fresh copy of that set.
fn copy() -> TempDir {
    let directory = TempDir::new().expect("a directory");
    for (path, content) in whole() {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, content).expect("the file can be written");
    }
    directory
}

/// Goes on with an interrupted run, and compares what comes of it.
#[track_caller]
fn goes_on_to_the_same_bytes(root: &Path) {
    let words = ["generate", root.to_str().expect("a plain name"), "--dirs", DIRS, "--quiet"];
    // The journal knows the seed; there is none when it was interrupted before that was written.
    let seed: &[&str] = if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        &[]
    } else {
        &["--seed", "5"]
    };
    succeeds(&[&words, seed].concat());
    assert!(tree(root) == *whole(), "other bytes than without an interruption");
}

fn files_in(root: &Path) -> usize {
    let count = |directory: u32| {
        let entries = fs::read_dir(root.join(format!("file_set/dir{directory:05}")));
        entries.map_or(0, Iterator::count)
    };
    (0..2).map(count).sum()
}

/// Starts a run, and sends it signals as soon as so many files are there.
fn interrupted_after(files: usize, root: &Path, signal: impl FnOnce(Pid)) -> std::process::Output {
    let words = ["generate", root.to_str().expect("a plain name"), "--dirs", DIRS, "--seed", "5"];
    let mut command = Command::new(program());
    command.arg("fileset").args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child: Child = command.spawn().expect("the program can be started");
    wait_until("so many files are there", || {
        files_in(root) >= files || child.try_wait().expect("the child is ours").is_some()
    });
    // It is not waited for yet, so that its number is still its own.
    signal(Pid::from_raw(child.id().cast_signed()));
    child.wait_with_output().expect("the child is ours")
}

#[test]
fn the_sizes_of_published_results_follow_from_their_loads() {
    for disclosed in [
        "Requested Connections 2540 Fileset Size (MB) 8247.20",
        "Requested Connections 4250 Fileset Size (MB) 13717.68",
        "Requested Connections 5700 Fileset Size (MB) 18358.56",
    ] {
        let words: Vec<&str> = disclosed.split(' ').collect();
        let (load, size) = (words[2], words[6]);
        let plan = succeeds(&["plan", "--load", load]).stdout;
        assert!(plan.contains(&format!("\nsize MB      {size}\n")), "{plan}");
        let json = succeeds(&["plan", "--load", load, "--json"]).stdout;
        let plan: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(plan["size_mb"].as_f64(), size.parse().ok());
        assert_eq!(plan["load"].as_u64(), load.parse().ok());
        assert_eq!(plan["files"].as_u64(), plan["directories"].as_u64().map(|dirs| dirs * 36));
    }
    assert_eq!(fileset(&["plan", "--load", "999999"]).status.code(), Some(2));
}

#[test]
fn a_set_is_written_with_lines_that_say_how_far_it_is() {
    let directory = TempDir::new().expect("a directory");
    let root = directory.path().join("set");
    let root = root.to_str().expect("a plain name");
    let exit = succeeds(&["generate", root, "--dirs", "1"]);
    assert!(exit.stderr.contains("100 %, 5 of 5 MB, "), "{exit:?}");
    assert!(exit.stdout.contains(": 1 directories, 36 files, 5119484 bytes, seed 1; "), "{exit:?}");
    let exit = succeeds(&["verify", root, "--quiet"]);
    assert!(exit.stdout.contains(": whole; ") && exit.stderr.is_empty(), "{exit:?}");
}

#[test]
fn a_run_that_is_killed_is_gone_on_with_to_the_same_bytes() {
    let mut killed = 0;
    for _ in 0..repeats(8) {
        let directory = TempDir::new().expect("a directory");
        let files = fastrand::usize(0..60);
        let output = interrupted_after(files, directory.path(), |run| {
            let _ = kill(run, Signal::SIGKILL);
        });
        if !output.status.success() {
            killed += 1;
        }
        goes_on_to_the_same_bytes(directory.path());
    }
    assert!(killed > 0, "none of the runs was killed before its end");
}

/// The kernel ends a process that writes more than it may to a file: in the middle of one, here of
/// each class and of the manifest.
#[test]
fn a_run_that_ends_within_a_file_is_gone_on_with_to_the_same_bytes() {
    for half_kib in [1, 3, 20, 130, 1000] {
        let directory = TempDir::new().expect("a directory");
        let words = ["fileset", "generate", directory.path().to_str().expect("a plain name")];
        let args = Args::of(words).arg("--dirs").arg(DIRS).arg("--seed").arg("5");
        let exit = run(args.ulimit("-f", half_kib));
        assert!(!exit.status.success(), "{half_kib}: {exit:?}");
        let files = tree(directory.path());
        let partial =
            files.keys().filter(|path| path.to_str().is_some_and(|p| p.ends_with("partial")));
        assert!(partial.count() > 0, "{half_kib}: no file was interrupted: {:?}", files.keys());
        let verified = fileset(&["verify", words[2]]);
        assert_eq!(verified.status.code(), Some(2), "{verified:?}");
        goes_on_to_the_same_bytes(directory.path());
    }
}

#[test]
fn ctrl_c_says_how_to_go_on() {
    for _ in 0..20 {
        let directory = TempDir::new().expect("a directory");
        let output = interrupted_after(1, directory.path(), |run| {
            // It looks for signals from time to time. Held for longer than that, it looks at once
            // when it goes on, and not after its last file.
            for signal in [Signal::SIGSTOP, Signal::SIGINT] {
                let _ = kill(run, signal);
            }
            thread::sleep(Duration::from_millis(200));
            let _ = kill(run, Signal::SIGCONT);
        });
        if output.status.success() {
            // It was too late.
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let how = format!("generate {} --dirs {DIRS}\n", directory.path().display());
        assert!(said.ends_with(&how), "{said}");
        return goes_on_to_the_same_bytes(directory.path());
    }
    panic!("none of the runs was interrupted before its end");
}

#[test]
fn every_kind_of_damage_is_found() {
    let directory = copy();
    let root = directory.path().to_str().expect("a plain name");
    let path = |name: &str| directory.path().join("file_set").join(name);
    let open = |name: &str| OpenOptions::new().write(true).open(path(name)).expect("it is there");

    let flipped = "dir00000/class2_3";
    let bit = fastrand::usize(0..40_960 * 8);
    let (offset, mask) = (bit / 8, 1 << (bit % 8));
    let byte = whole()[Path::new("file_set").join(flipped).as_path()][offset] ^ mask;
    open(flipped).write_all_at(&[byte], offset as u64).expect("it can be written");
    open("dir00000/class1_0").set_len(1_023).expect("it can be cut");
    open("dir00001/class0_8").set_len(922).expect("it can grow");
    fs::remove_file(path("dir00001/class3_0")).expect("it was there");
    fs::write(path("dir00001/class9_9"), "").expect("it can be written");

    let exit = fileset(&["verify", root, "--quiet"]);
    assert_eq!(exit.status.code(), Some(1), "{exit:?}");
    let expected = format!(
        "file_set/dir00000/class1_0: short: 1023 bytes\n\
         file_set/dir00000/class2_3: altered: the first other byte is at {offset}\n\
         file_set/dir00001/class0_8: long: 922 bytes\n\
         file_set/dir00001/class3_0: missing\n\
         file_set/dir00001/class9_9: extra\n"
    );
    assert_eq!(exit.stdout, expected);
    assert!(exit.stderr.contains("4 of 72 files are damaged; remove them, then: "), "{exit:?}");

    let json = fileset(&["verify", root, "--json", "--quiet"]).stdout;
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["whole"], false);
    assert_eq!(report["damaged"][0]["fault"], "short");
    assert_eq!(report["damaged"][1]["offset"].as_u64(), Some(offset as u64));
    assert_eq!(report["extra"][0], "file_set/dir00001/class9_9");

    fs::remove_file(path(flipped)).expect("it was there");
    fs::remove_file(path("dir00001/class9_9")).expect("it was there");
    goes_on_to_the_same_bytes(directory.path());
}

#[test]
fn what_does_not_go_together_is_refused() {
    let directory = copy();
    let root = directory.path().to_str().expect("a plain name");
    for (words, message) in [
        (["--dirs", "3", "--seed", "6"], "holds a set of seed 5, not 6"),
        (["--dirs", "1", "--seed", "5"], "holds a set of 2 directories, more than 1"),
    ] {
        let exit = fileset(&[&["generate", root], words.as_slice()].concat());
        assert_eq!(exit.status.code(), Some(2), "{exit:?}");
        assert!(exit.stderr.contains(message), "{exit:?}");
    }
    assert!(tree(directory.path()) == *whole());
    let empty = TempDir::new().expect("a directory");
    let exit = fileset(&["verify", empty.path().to_str().expect("a plain name")]);
    assert_eq!(exit.status.code(), Some(2), "{exit:?}");
}

#[test]
fn a_disk_that_is_too_small_is_not_written_to() {
    let directory = TempDir::new().expect("a directory");
    let disk = nix::sys::statvfs::statvfs(directory.path()).expect("a file system");
    if disk.blocks_available() * disk.fragment_size() > 500 << 30 {
        return skip("this disk has room for the largest set");
    }
    let root = directory.path().join("set");
    let exit = fileset(&["generate", root.to_str().expect("a plain name"), "--dirs", "100000"]);
    assert_eq!(exit.status.code(), Some(3), "{exit:?}");
    assert!(exit.stderr.contains("bytes and 37"), "{exit:?}");
    assert!(exit.stderr.contains("are free; nothing was written"), "{exit:?}");
    assert!(!root.exists());
}

#[test]
fn a_directory_that_may_not_be_written_is_a_matter_of_permission() {
    if !nix::unistd::geteuid().is_root() {
        return skip("needs root, to run as somebody else");
    }
    let directory = TempDir::new().expect("a directory");
    let root = directory.path().join("set");
    let args = Args::of(["fileset", "generate"]).arg(&root).arg("--dirs").arg("1");
    let exit = run(args.unprivileged());
    assert_eq!(exit.status.code(), Some(4), "{exit:?}");
}
