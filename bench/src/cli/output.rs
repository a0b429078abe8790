//! Where a command tells its results: text on standard output, JSON and a page in files.
//!
//! A file that cannot be written is told before anything is measured; one that cannot be written
//! nevertheless, since the disk is full by then, costs no other output. Whoever no longer reads is not
//! told: `run | head` is no failure.

use super::CommandError;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The outputs that were asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outputs<'o> {
    json: Option<&'o Path>,
    html: Option<&'o Path>,
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl<'o> Outputs<'o> {
    /// Looks whether they can be written, and whether no two go to the same place.
    pub(super) fn new(
        json: Option<&'o Path>,
        html: Option<&'o Path>,
    ) -> Result<Self, CommandError> {
        if json.is_some() && json == html {
            return Err(CommandError::Usage("--json and --html would be mixed up in one place"));
        }
        for path in json.into_iter().chain(html).filter(|path| !is_stdout(path)) {
            try_out(path).map_err(|error| failed(path, error))?;
        }
        Ok(Self { json, html })
    }

    /// Writes all of them: the text unless standard output is taken. The first failure is told after
    /// everything else has been written.
    pub(super) fn write(
        self,
        text: &impl fmt::Display,
        json: &impl serde::Serialize,
        html: impl FnOnce() -> String,
    ) -> Result<(), CommandError> {
        let taken = self.json.into_iter().chain(self.html).any(is_stdout);
        let text = if taken { Ok(()) } else { print(text) };
        let json = self.json.map_or(Ok(()), |path| write_json(path, json));
        let html = self.html.map_or(Ok(()), |path| write(path, html().as_bytes()));
        text.and(json).and(html)
    }
}

/// Whether a file can be written; it is left as it was.
fn try_out(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(is) if is.is_file() || is.is_dir() => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        // Whoever reads from a pipe would take the close for the end.
        Ok(_) => Ok(()),
        Err(_) => {
            OpenOptions::new().write(true).create_new(true).open(path)?;
            fs::remove_file(path)
        }
    }
}

/// Prints text to standard output.
pub(super) fn print(text: &impl fmt::Display) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failed(Path::new("-"), error))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error, if anybody reads it.
pub(super) fn tell_error(text: &impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a result as JSON, `-` meaning standard output.
pub(super) fn write_json(path: &Path, result: &impl serde::Serialize) -> Result<(), CommandError> {
    let failed = |error: serde_json::Error| failed(path, error.into());
    let mut json = serde_json::to_vec_pretty(result).map_err(failed)?;
    json.push(b'\n');
    write(path, &json)
}

/// Writes a file, `-` meaning standard output.
pub(super) fn write(path: &Path, contents: &[u8]) -> Result<(), CommandError> {
    let written = if is_stdout(path) {
        let mut stdout = io::stdout().lock();
        stdout.write_all(contents).and_then(|()| stdout.flush())
    } else {
        fs::write(path, contents)
    };
    written.map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: io::Error) -> CommandError {
    CommandError::Write { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_results_do_not_go_to_one_place() {
        let place = Some(Path::new("-"));
        assert!(matches!(Outputs::new(place, place), Err(CommandError::Usage(_))));
        assert!(Outputs::new(place, None).is_ok() && Outputs::new(None, place).is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_beforehand_and_one_that_can_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        fs::write(&old, "before").unwrap();
        assert!(Outputs::new(Some(&new), Some(&old)).is_ok());
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        for nowhere in [directory.path(), Path::new("/nowhere/x"), &old.join("x")] {
            let refused = Outputs::new(Some(nowhere), None).unwrap_err().to_string();
            assert!(refused.starts_with("cannot write "), "{refused}");
        }
    }

    #[test]
    fn one_output_that_fails_does_not_cost_another() {
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("page");
        let outputs = Outputs::new(Some(Path::new("/dev/full")), Some(&page)).unwrap();
        let written = outputs.write(&"", &"json", || "<p>".to_owned());
        assert!(matches!(written, Err(CommandError::Write { .. })));
        assert_eq!(fs::read_to_string(&page).unwrap(), "<p>");
    }
}
