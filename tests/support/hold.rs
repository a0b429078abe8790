//! Holding a server: still, while requests queue up, or to fewer descriptors than it began with.

#![allow(
    unsafe_code,
    reason = "prlimit(2) on another process has no safe wrapper among our crates"
)]

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ptr;

use nix::sys::signal::Signal;

use super::{Server, wait_until};

impl Server {
    /// Stops every thread of the server where it stands. The kernel goes on answering for it:
    /// connections and their requests queue up.
    #[track_caller]
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        wait_until("every thread stands still", || self.states().iter().all(|&state| state == 'T'));
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// The states of the server's threads, in the letters of proc(5).
    fn states(&self) -> Vec<char> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid()));
        tasks
            .expect("the server is running")
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok())
            // The name before it may have anything in it, but for a last parenthesis.
            .filter_map(|stat| stat.rsplit(") ").next()?.chars().next())
            .collect()
    }

    /// Leaves the server room for `more` descriptors beyond those that it has open; negative, for
    /// fewer than it has.
    #[track_caller]
    pub(crate) fn leave_descriptors(&self, more: isize) {
        // The limit is on a descriptor's number, and a new one gets the lowest that is free. There
        // may be higher ones, inherited from whoever runs the tests.
        let open: HashSet<usize> = fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .expect("the server is running")
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        let free =
            (0_usize..).find(|number| !open.contains(number)).expect("there are more numbers");
        let soft = free.saturating_add_signed(more) as libc::rlim_t;
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: soft };
        let pid = self.pid() as libc::pid_t;
        // SAFETY: the kernel reads `limit` during the call and writes nothing back.
        let set =
            unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, ptr::null_mut()) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
    }
}
