//! A server for the other modules: this program's own.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_onering-bench");

/// `onering-bench floor`, ended with its owner.
pub(crate) struct Floor {
    child: Child,
    pub(crate) url: String,
}

impl Floor {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        drop(listener);
        let child = Command::new(PROGRAM)
            .args(["floor", "--bytes", "100", "--cpus", "0", "--listen", &address.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program runs");
        let floor = Self { child, url: format!("http://{address}/") };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the floor does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        floor
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
