//! A fact that may be missing, and where facts are read: files beneath a root, and what other
//! programs print. Nothing here fails: what cannot be read is absent, with the reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is known, or why it is not. In JSON the value itself, or `{"absent": "why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact<T> {
    /// It could not be read.
    Absent {
        /// Why.
        absent: String,
    },
    /// It was read.
    Known(T),
}

impl<T> Fact<T> {
    pub(super) fn absent(why: impl fmt::Display) -> Self {
        Self::Absent { absent: why.to_string() }
    }

    /// The fact, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent { .. } => None,
        }
    }

    pub(super) fn map<U>(self, then: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Known(then(value)))
    }

    pub(super) fn and_then<U>(self, then: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(value) => then(value),
            Self::Absent { absent } => Fact::Absent { absent },
        }
    }

    pub(super) fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Known(_) => self,
            Self::Absent { .. } => other(),
        }
    }
}

impl Fact<String> {
    /// The number that the text is.
    pub(super) fn number(self) -> Fact<u64> {
        self.and_then(|text| match text.parse() {
            Ok(number) => Fact::Known(number),
            Err(_) => Fact::absent(format_args!("{text:?} is not a number")),
        })
    }

    /// What stands behind `name:` at the beginning of a line, as in `/proc/cpuinfo`.
    pub(super) fn field(&self, name: &str) -> Fact<String> {
        match self {
            Self::Known(text) => match field(text, name) {
                Some(value) => Fact::Known(value.to_owned()),
                None => Fact::absent(format_args!("no {name:?} is told")),
            },
            Self::Absent { absent } => Fact::absent(absent),
        }
    }
}

/// What stands behind `name:` at the beginning of the first such line of `text`.
pub(super) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        (before.trim() == name).then(|| after.trim())
    })
}

/// The choice in brackets, as in `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(choice, _)| choice)
}

/// The tree in which `/proc` and `/sys` are found: `/`, save in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree<'r> {
    root: &'r Path,
}

impl<'r> Tree<'r> {
    pub(super) fn new(root: &'r Path) -> Self {
        Self { root }
    }

    fn at(self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn has(self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The text of a file, blanks at its ends excluded.
    pub(super) fn text(self, path: &str) -> Fact<String> {
        match fs::read(self.at(path)) {
            Ok(bytes) => Fact::Known(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(error) => Fact::absent(format_args!("/{path}: {error}")),
        }
    }

    /// The names in a directory, sorted.
    pub(super) fn names(self, path: &str) -> Fact<Vec<String>> {
        let names = fs::read_dir(self.at(path)).and_then(|entries| {
            let names: Result<Vec<_>, _> = entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect();
            names
        });
        match names {
            Ok(mut names) => {
                names.sort_unstable();
                Fact::Known(names)
            }
            Err(error) => Fact::absent(format_args!("/{path}: {error}")),
        }
    }

    /// The directories `stem`0, `stem`1, … in the order of their numbers.
    pub(super) fn numbered(self, path: &str, stem: &str) -> Fact<Vec<u32>> {
        self.names(path).map(|names| {
            let mut numbers: Vec<u32> =
                names.iter().filter_map(|name| name.strip_prefix(stem)?.parse().ok()).collect();
            numbers.sort_unstable();
            numbers
        })
    }

    /// What a link leads to.
    pub(super) fn link(self, path: &str) -> Fact<PathBuf> {
        match fs::read_link(self.at(path)) {
            Ok(to) => Fact::Known(to),
            Err(error) => Fact::absent(format_args!("/{path}: {error}")),
        }
    }

    /// What a program tells of this machine; of another tree there is nothing to ask.
    pub(super) fn ask(self, program: &str, arguments: &[&str]) -> Fact<String> {
        if self.root != Path::new("/") {
            return Fact::absent(format_args!("{program} tells of this machine only"));
        }
        ask(Path::new(program), arguments, &[Path::new("/usr/sbin"), Path::new("/sbin")])
    }
}

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What `program` prints, to standard output or else to standard error. `more` are directories in
/// which it may be although users' search paths lack them.
pub(super) fn ask(program: &Path, arguments: &[&str], more: &[&Path]) -> Fact<String> {
    let name = program.display();
    let mut candidates = vec![program.to_owned()];
    candidates.extend(more.iter().map(|directory| directory.join(program)));
    let spawned = candidates.iter().find_map(|candidate| {
        let child = Command::new(candidate)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.ok()
    });
    let Some(mut child) = spawned else {
        return Fact::absent(format_args!("{name} is not installed"));
    };
    // What is asked for here fits into a pipe: a program that waits for its reader is given up.
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) | Err(_) => {
                // It has ended by itself in the meantime, or ends now.
                let _ = child.kill();
                let _ = child.wait();
                return Fact::absent(format_args!("{name} does not answer"));
            }
        }
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match child.wait_with_output() {
        Ok(output) => match (said(&output.stdout), said(&output.stderr)) {
            (text, complaint) if text.is_empty() && !output.status.success() => {
                Fact::absent(format_args!("{name}: {complaint}"))
            }
            (text, complaint) if text.is_empty() => Fact::Known(complaint),
            (text, _) => Fact::Known(text),
        },
        Err(error) => Fact::absent(format_args!("{name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_value_or_the_reason() {
        let json = |fact: &Fact<u64>| serde_json::to_string(fact).unwrap();
        let absent = Fact::absent("it is gone");
        assert_eq!(json(&Fact::Known(3)), "3");
        assert_eq!(json(&absent), r#"{"absent":"it is gone"}"#);
        assert_eq!(serde_json::from_str::<Fact<u64>>(&json(&absent)).unwrap(), absent);
        assert_eq!(serde_json::from_str::<Fact<u64>>("3").unwrap(), Fact::Known(3));
        let none: Fact<Option<f64>> = serde_json::from_str("null").unwrap();
        assert_eq!(none, Fact::Known(None));
    }

    #[test]
    fn fields_and_choices() {
        assert_eq!(field("a b\t: 1\nb: 2\n", "a b"), Some("1"));
        assert_eq!(field("a b\t: 1\nb: 2\n", "b"), Some("2"));
        assert_eq!(field("a b\t: 1\n", "a"), None);
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn programs_answer_on_either_stream_or_are_absent_with_the_reason() {
        let shell = |script| ask(Path::new("sh"), &["-c", script], &[]);
        assert_eq!(shell("echo one"), Fact::Known("one".into()));
        assert_eq!(shell("echo two >&2"), Fact::Known("two".into()));
        assert_eq!(shell("echo no >&2; exit 3"), Fact::absent("sh: no"));
        let missing = ask(Path::new("no-such-program"), &[], &[Path::new("/usr/sbin")]);
        assert_eq!(missing, Fact::absent("no-such-program is not installed"));
    }

    #[test]
    fn another_tree_is_never_asked() {
        let root = tempfile::tempdir().unwrap();
        assert!(Tree::new(root.path()).ask("true", &[]).known().is_none());
    }
}
