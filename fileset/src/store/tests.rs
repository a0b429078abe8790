//! Sets in temporary directories: written, stopped, gone on with, damaged, verified.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::content::Contents;
use crate::plan::Directories;

const TWO: NonZero<usize> = NonZero::new(2).unwrap();

fn order(directories: u64, seed: Option<u64>) -> Order {
    Order { directories: Directories::new(directories).unwrap(), seed, writers: TWO }
}

#[track_caller]
fn generated(root: &Path, directories: u64, seed: Option<u64>) -> Control {
    let control = Control::default();
    let generated = generate(root, &order(directories, seed), &control).unwrap();
    assert!(generated.whole);
    assert_eq!(control.done_bytes(), generated.directories.bytes());
    control
}

fn verified(root: &Path) -> Verified {
    verify(root, TWO, &Control::default()).unwrap()
}

/// What a run says that is refused.
#[track_caller]
fn refusal(root: &Path, directories: u64, seed: Option<u64>) -> String {
    let error = generate(root, &order(directories, seed), &Control::default()).unwrap_err();
    assert!(error.is_usage(), "{error}");
    error.to_string().replace(root.to_str().unwrap(), "DIR")
}

/// All files below a directory and what is in them.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn file(root: &Path, path: &str) -> PathBuf {
    root.join("file_set").join(path)
}

#[test]
fn a_set_is_written_and_is_whole() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().join("new/set");
    let control = generated(&root, 2, Some(7));
    assert_eq!(control.written_bytes(), 2 * 5_119_484);
    let files = tree(&root);
    assert_eq!(files.len(), 72 + 1);
    for (path, content) in files.iter().filter(|(path, _)| path.starts_with("file_set")) {
        let name = Name::at_end_of(path.to_str().unwrap().as_bytes()).unwrap();
        assert!(*content == Contents::new(7).of(name), "{name}");
    }
    let found = verified(&root);
    assert_eq!((found.findings, found.extra), (vec![], vec![]));
    assert_eq!((found.manifest.seed(), found.manifest.directories().count()), (7, 2));

    let again = generated(&root, 2, None);
    assert_eq!(again.written_bytes(), 0);
    assert_eq!(tree(&root), files);
}

#[test]
fn a_set_grows_and_does_not_shrink() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    generated(root, 1, Some(9));
    let control = generated(root, 2, None);
    assert_eq!(control.written_bytes(), 5_119_484);
    assert_eq!(verified(root).manifest.seed(), 9);
    let message = refusal(root, 1, None);
    assert!(message.starts_with("DIR holds a set of 2 directories, more than 1: "), "{message}");
}

#[test]
fn two_seeds_do_not_mix() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    generated(root, 1, None);
    assert_eq!(verified(root).manifest.seed(), 1);
    let message = refusal(root, 3, Some(2));
    assert!(message.starts_with("DIR holds a set of seed 1, not 2: "), "{message}");
    generated(root, 1, Some(1));
}

#[test]
fn files_of_unknown_origin_are_left_alone() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("file_set")).unwrap();
    assert!(refusal(root, 1, None).starts_with("DIR has a file_set, but neither "));
    fs::write(root.join(MANIFEST), "{\"format\": \"onering-fileset/9\", \"x\": 1}").unwrap();
    let message = refusal(root, 1, None);
    assert!(message.contains("it is of the format `onering-fileset/9`"), "{message}");
    fs::write(root.join(MANIFEST), "{\"format\": \"onering-").unwrap();
    assert!(refusal(root, 1, None).contains("EOF while parsing"));
    let manifest = serde_json::to_string(&Manifest::new(Directories::new(3).unwrap(), 1)).unwrap();
    fs::write(root.join(MANIFEST), manifest.replace("108", "109")).unwrap();
    assert!(refusal(root, 1, None).contains("its numbers do not go together"));
}

#[test]
fn a_run_that_is_stopped_is_gone_on_with() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    let control = Control::default();
    control.stop();
    let stopped = generate(root, &order(3, Some(4)), &control).unwrap();
    assert!(!stopped.whole);
    let error = verify(root, TWO, &Control::default()).unwrap_err();
    let message = error.to_string();
    assert!(error.is_usage() && message.contains("onering fileset generate"), "{message}");
    assert!(message.ends_with("--dirs 3"), "{message}");

    assert!(refusal(root, 3, Some(5)).starts_with("DIR holds a set of seed 4, not 5: "));
    assert!(refusal(root, 2, None).starts_with("DIR holds a set of 3 directories"));
    generated(root, 3, None);
    assert_eq!(verified(root).findings, []);
    assert!(!root.join(UNFINISHED).exists());
}

#[test]
fn only_one_run_at_a_time() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    let held = std::fs::File::open(root).unwrap();
    let _held = nix::fcntl::Flock::lock(held, nix::fcntl::FlockArg::LockExclusive).unwrap();
    let error = generate(root, &order(1, None), &Control::default()).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
}

/// After the machine went down, files above the journal's mark may have their length and not their
/// bytes.
#[test]
fn above_the_mark_only_bytes_count() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    generated(root, 3, Some(4));
    let whole = tree(root);
    let journal = state::Journal::new(Directories::new(3).unwrap(), 4, 1);
    fs::remove_file(root.join(MANIFEST)).unwrap();
    journal.write(root).unwrap();
    fs::write(file(root, "dir00001/class3_8"), vec![0; 921_600]).unwrap();
    fs::remove_dir_all(file(root, "dir00002")).unwrap();
    fs::create_dir(file(root, "dir00002")).unwrap();
    fs::write(file(root, "dir00002/.class0_3.partial"), "half").unwrap();
    let control = generated(root, 3, None);
    assert_eq!(control.written_bytes(), 921_600 + 5_119_484);
    assert_eq!(tree(root), whole);
}

#[test]
fn what_was_lost_since_is_written_anew() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    generated(root, 2, None);
    let whole = tree(root);
    fs::remove_file(file(root, "dir00000/class1_4")).unwrap();
    fs::write(file(root, "dir00001/class0_0"), "short").unwrap();
    let control = generated(root, 2, None);
    assert_eq!(control.written_bytes(), 5_120 + 102);
    assert_eq!(tree(root), whole);
}

#[test]
fn every_kind_of_damage_is_named() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    generated(root, 3, None);
    let change = |path: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = file(root, path);
        let mut content = fs::read(&path).unwrap();
        change(&mut content);
        fs::write(path, content).unwrap();
    };
    change("dir00000/class0_0", &|content| content[101] ^= 0x01);
    change("dir00000/class3_8", &|content| content[700_000] ^= 0x80);
    change("dir00001/class1_1", &|content| content.truncate(2_047));
    change("dir00001/class1_2", &|content| content.push(b'x'));
    fs::remove_file(file(root, "dir00001/class2_0")).unwrap();
    fs::rename(file(root, "dir00001/class2_1"), file(root, "dir00001/elsewhere")).unwrap();
    symlink("elsewhere", file(root, "dir00001/class2_1")).unwrap();
    fs::remove_dir_all(file(root, "dir00002")).unwrap();
    fs::write(file(root, "dir00002"), "a file").unwrap();
    fs::create_dir(file(root, "dir00003")).unwrap();

    let Verified { findings, extra, .. } = verified(root);
    let said: Vec<String> = findings.iter().map(|f| format!("{}: {}", f.name, f.fault)).collect();
    assert_eq!(
        said[..6],
        [
            "file_set/dir00000/class0_0: altered: the first other byte is at 101",
            "file_set/dir00000/class3_8: altered: the first other byte is at 700000",
            "file_set/dir00001/class1_1: short: 2047 bytes",
            "file_set/dir00001/class1_2: long: 3073 bytes",
            "file_set/dir00001/class2_0: missing",
            "file_set/dir00001/class2_1: not a regular file",
        ]
    );
    assert_eq!(said.len(), 6 + 36);
    assert!(findings[6..].iter().all(|finding| finding.fault == Fault::Missing));
    let extra: Vec<_> = extra.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(extra, ["file_set/dir00001/elsewhere", "file_set/dir00003"]);
}

#[test]
fn a_disk_that_is_too_small_stays_as_it_is() {
    let directory = TempDir::new().unwrap();
    let free = nix::sys::statvfs::statvfs(directory.path()).unwrap();
    if free.blocks_available() * free.fragment_size() > 500 << 30 {
        eprintln!("\nskipped: this disk has room for the largest set");
        return;
    }
    let root = directory.path().join("set");
    for _ in 0..2 {
        let error = generate(&root, &order(100_000, None), &Control::default()).unwrap_err();
        assert!(matches!(error, Error::Shortage(_)), "{error}");
        // The second time, the directory is there already.
        assert!(fs::read_dir(&root).map_or(true, |mut entries| entries.next().is_none()));
        let _ = fs::create_dir(&root);
    }
}

#[test]
fn there_is_nothing_to_verify() {
    let directory = TempDir::new().unwrap();
    let error = verify(directory.path(), TWO, &Control::default()).unwrap_err();
    assert!(matches!(error, Error::NoManifest { .. }) && error.is_usage());
}
