//! A server for the other modules: this program's own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_onering-bench");

/// `onering-bench floor`, ended with its owner.
pub(crate) struct Floor {
    child: Child,
    pub(crate) url: String,
}

impl Floor {
    /// One that answers; the reason, if the environment does not allow it.
    pub(crate) fn attempt() -> Result<Self, String> {
        // The kernel chooses the port: one that was free a moment ago may be taken by now.
        let mut child = Command::new(PROGRAM)
            .args(["floor", "--listen", "127.0.0.1:0", "--bytes", "100", "--cpus", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("output is text");
        match line.trim().strip_prefix("answering at ") {
            Some(url) => Ok(Self { child, url: url.to_owned() }),
            None => {
                let ended = child.wait_with_output().expect("it ends");
                let why = String::from_utf8_lossy(&ended.stderr).into_owned();
                assert!(matches!(ended.status.code(), Some(3 | 4)), "{why}");
                Err(why)
            }
        }
    }

    pub(crate) fn start() -> Self {
        Self::attempt().expect("the environment allows it")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // It may have ended by itself, which the test that needs it has noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
