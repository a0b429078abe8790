//! The memory of the server's processes, looked at by whoever collects the counts: reading it takes
//! milliseconds, which a thread that makes load has not got.

use super::windows::Phase;
use crate::process::{Consumption, Group, ProcessError};
use nix::unistd::Pid;
use std::collections::BTreeMap;

/// What is known of a server in a window.
pub(super) type Known = Result<Consumption, ProcessError>;

/// Watches a server in each window.
#[derive(Debug)]
pub(super) struct ServerWatch {
    root: Pid,
    /// The window that goes on.
    current: Option<(usize, Result<Group, ProcessError>)>,
    windows: BTreeMap<usize, Known>,
}

impl ServerWatch {
    pub(super) fn new(root: Pid) -> Self {
        Self { root, current: None, windows: BTreeMap::new() }
    }

    /// A part of the run is over; from now on `phase` goes on.
    pub(super) fn turn(&mut self, phase: Phase) {
        match (&mut self.current, phase) {
            (Some((window, group)), Phase::Measured(number)) if *window == number => {
                if let Ok(watched) = group
                    && let Err(error) = watched.look()
                {
                    *group = Err(error);
                }
                return;
            }
            _ => self.end(),
        }
        if let Phase::Measured(number) = phase {
            self.current = Some((number, Group::watch(self.root)));
        }
    }

    fn end(&mut self) {
        if let Some((number, group)) = self.current.take() {
            self.windows.insert(number, group.and_then(Group::finish));
        }
    }

    /// What was found, by window.
    pub(super) fn finish(mut self) -> BTreeMap<usize, Known> {
        self.end();
        self.windows
    }
}
