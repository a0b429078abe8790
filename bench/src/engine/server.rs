//! The memory of the server's processes, looked at by whoever collects the counts: reading it takes
//! milliseconds, which a thread that makes load has not got.

use super::windows::Phase;
use crate::process::{Consumption, Group, ProcessError, Usage};
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
    /// What had been consumed in it at the last look.
    seen: Usage,
    windows: BTreeMap<usize, Known>,
}

impl ServerWatch {
    pub(super) fn new(root: Pid) -> Self {
        Self { root, current: None, seen: Usage::default(), windows: BTreeMap::new() }
    }

    /// A part of the run is over; from now on `phase` goes on. Gives what the server has consumed
    /// in the part, where that is known.
    pub(super) fn turn(&mut self, phase: Phase) -> Option<Usage> {
        let consumed = self.look();
        if self.current.as_ref().is_some_and(|(number, _)| phase != Phase::Measured(*number)) {
            self.end();
        }
        if let (None, Phase::Measured(number)) = (&self.current, phase) {
            self.seen = Usage::default();
            self.current = Some((number, Group::watch(self.root)));
        }
        consumed
    }

    fn look(&mut self) -> Option<Usage> {
        let (_, group) = self.current.as_mut()?;
        match group.as_mut().ok()?.look() {
            Ok(usage) => {
                let before = std::mem::replace(&mut self.seen, usage);
                Some(usage.since(before))
            }
            Err(error) => {
                *group = Err(error);
                None
            }
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
