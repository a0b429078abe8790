//! GET of a list of targets in turn.

use super::{Request, Workload, Wrong};
use crate::request::{Persistence, Script, Wording};
use crate::response::{Head, HeadMemory};
use crate::target::Target;

/// What is asked for, and what is right.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In this order; not empty.
    pub targets: Vec<Target>,
    /// What every request says.
    pub wording: Wording,
    /// After how many requests (at least 1) a connection ends; `None`: never.
    pub requests_per_connection: Option<u64>,
    /// Most requests in flight on a connection.
    pub pipeline: usize,
    /// The status of right responses.
    pub status: u16,
    /// Body length of right responses to the first target, where it is known beforehand.
    pub body_bytes: Option<u64>,
}

/// What is known of a target from its responses.
#[derive(Clone, Debug, Default)]
struct TargetMemory {
    head: HeadMemory,
    /// Body length of the first right response, before the run or in it; all others must have it.
    body_bytes: Option<u64>,
}

/// The targets in turn, over all connections of a thread.
#[derive(Debug)]
pub struct Get {
    persist: Script,
    close: Script,
    /// Of the next request.
    place: usize,
    requests_per_connection: u64,
    status: u16,
    targets: Vec<TargetMemory>,
}

impl Get {
    /// For part `part` of `parts` equal ones of the load, which begin at different targets.
    pub fn new(plan: &Plan, (part, parts): (usize, usize)) -> Self {
        let script =
            |persistence| Script::new(&plan.targets, &plan.wording, persistence, plan.pipeline);
        let mut targets = vec![TargetMemory::default(); plan.targets.len()];
        if let Some(first) = targets.first_mut() {
            first.body_bytes = plan.body_bytes;
        }
        Self {
            persist: script(Persistence::Persist),
            close: script(Persistence::Close),
            place: plan.targets.len() * part / parts,
            requests_per_connection: plan.requests_per_connection.unwrap_or(u64::MAX),
            status: plan.status,
            targets,
        }
    }
}

impl Workload for Get {
    /// The target.
    type Asked = usize;

    fn classes(&self) -> Vec<String> {
        vec!["get".to_owned()]
    }

    #[inline]
    fn connection(&mut self, _user: usize) -> u64 {
        self.requests_per_connection
    }

    #[inline]
    fn ask(&mut self, _user: usize, persistence: Persistence) -> Request<usize> {
        let script = match persistence {
            Persistence::Persist => &self.persist,
            Persistence::Close => &self.close,
        };
        let (asked, bytes) = (script.target(self.place), script.request(self.place));
        self.place = script.after(self.place);
        Request { asked, class: 0, bytes }
    }

    #[inline]
    fn memory(&mut self, asked: &usize) -> &mut HeadMemory {
        &mut self.targets[*asked].head
    }

    #[inline]
    fn head(
        &mut self,
        _user: usize,
        asked: &mut usize,
        head: Head,
        _bytes: &[u8],
    ) -> Result<(), Wrong> {
        if head.status != self.status {
            return Err(Wrong::Status);
        }
        let right = self.targets[*asked].body_bytes.get_or_insert(head.body_bytes);
        if *right == head.body_bytes { Ok(()) } else { Err(Wrong::Length) }
    }

    #[inline]
    fn body(
        &mut self,
        _user: usize,
        _asked: &mut usize,
        _offset: u64,
        _piece: &[u8],
    ) -> Result<(), Wrong> {
        Ok(())
    }

    #[inline]
    fn end(&mut self, _user: usize, _asked: usize) -> Result<(), Wrong> {
        Ok(())
    }

    fn lost(&mut self, _user: usize, _asked: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Version;

    fn get(targets: usize, part: (usize, usize)) -> Get {
        let plan = Plan {
            targets: (0..targets).map(|i| format!("http://h/{i}").parse().unwrap()).collect(),
            wording: Wording::plain(Version::Http11),
            requests_per_connection: Some(7),
            pipeline: 2,
            status: 200,
            body_bytes: Some(10),
        };
        Get::new(&plan, part)
    }

    #[test]
    fn threads_begin_at_different_targets_and_the_last_request_says_close() {
        let asked = |part| {
            let mut get = get(4, (part, 2));
            [0, 1, 2].map(|_| get.ask(0, Persistence::Persist).asked)
        };
        assert_eq!((asked(0), asked(1)), ([0, 1, 2], [2, 3, 0]));
        let mut get = get(4, (0, 1));
        assert_eq!(get.connection(0), 7);
        let request = get.ask(0, Persistence::Close);
        assert!(request.bytes.as_slice().ends_with(b"Connection: close\r\n\r\n"));
    }

    #[test]
    fn status_and_length_are_judged_for_each_target() {
        let mut get = get(2, (0, 1));
        let mut judge = |mut target, status, body_bytes| {
            get.head(0, &mut target, Head { status, body_bytes, persistent: true }, b"")
        };
        assert_eq!(judge(0, 404, 5), Err(Wrong::Status));
        assert_eq!(judge(0, 200, 9), Err(Wrong::Length), "it was answered rightly before the run");
        assert_eq!(judge(0, 200, 10), Ok(()));
        assert_eq!(judge(0, 200, 11), Err(Wrong::Length));
        assert_eq!(judge(1, 200, 11), Ok(()));
    }
}
