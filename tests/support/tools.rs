//! Programs that others have written, which some tests have ask our server.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Where a program is, if it is installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// What a program has printed, and how it has ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// Both outputs as text.
    pub(crate) text: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        let both = [&*output.stdout, b"\n", &output.stderr].concat();
        Said {
            code: output.status.code(),
            stdout: output.stdout,
            text: String::from_utf8_lossy(&both).into_owned(),
        }
    }
}

/// Runs a program to its end, with `input` on its standard input.
#[track_caller]
pub(crate) fn run<W: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    words: impl IntoIterator<Item = W>,
    input: impl AsRef<[u8]>,
) -> Said {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program is installed");
    // It may have ended before it has read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_ref());
    child.wait_with_output().expect("the child is ours").into()
}
