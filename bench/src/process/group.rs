//! A server watched over an interval: looked at when it begins, once a second or so in between, and
//! when it ends.

use super::memory::{Looks, Memory};
use super::sample::{Member, Sample, tick};
use super::{ProcessError, Usage};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A server that is watched.
///
/// Each look reads `/proc` for all processes of the machine, which takes some milliseconds, and the
/// page tables of the server's, which takes some more for each GiB: look from a thread that makes no
/// load. The more often is looked, the less of processes that nobody waits for is missed.
#[derive(Debug)]
pub struct Group {
    pub(super) last: Sample,
    ledger: Ledger,
    memory: Looks,
}

/// What a server has consumed while it was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumption {
    /// Of all its processes together.
    pub usage: Usage,
    /// By how much the CPU time may be off for ended processes that were waited for: two ticks for
    /// each parent.
    pub cpu_error: Duration,
    /// Processes that had been seen and ended with nobody of the group waiting for them: what they
    /// consumed after the last look at them is missing.
    pub lost: u64,
    /// Whether some process ignores SIGCHLD: children that it starts and that end between two looks
    /// are not seen at all.
    pub children_ignored: bool,
    /// Processes at the end.
    pub processes: u64,
    /// Memory.
    pub memory: Memory,
}

impl Group {
    /// Begins to watch the process `root` with all that belong to it.
    pub fn watch(root: Pid) -> Result<Self, ProcessError> {
        // Memory takes longest to read. It stands outside the interval at both ends.
        let members = Sample::of_tree(root)?.members.into_keys();
        let memory =
            Looks::begin(members).map_err(|error| ProcessError::Unreadable { pid: root, error })?;
        Ok(Self { last: Sample::of_tree(root)?, ledger: Ledger::default(), memory })
    }

    /// Looks at the processes, and says what they have consumed since the beginning.
    pub fn look(&mut self) -> Result<Usage, ProcessError> {
        let root = self.last.root;
        let now = Sample::read(root, &self.last.members)?;
        self.ledger.enter(&self.last, &now)?;
        self.last = now;
        self.memory
            .look(self.last.members.keys().copied())
            .map_err(|error| ProcessError::Unreadable { pid: root, error })?;
        Ok(self.ledger.usage)
    }

    /// Looks for the last time. Fails where the root has ended: what it consumed since the look
    /// before is then not known.
    pub fn finish(mut self) -> Result<Consumption, ProcessError> {
        self.look()?;
        let parents = u32::try_from(self.ledger.parents.len()).unwrap_or(u32::MAX);
        Ok(Consumption {
            usage: self.ledger.usage,
            cpu_error: slack().saturating_mul(parents),
            lost: self.ledger.lost,
            children_ignored: self.last.members.values().any(|member| member.ignores_children),
            processes: self.last.members.len() as u64,
            memory: self.memory.memory(),
        })
    }
}

/// By how much `cutime` and `cstime` together may be less than they are: each is rounded down.
fn slack() -> Duration {
    tick() * 2
}

/// What was consumed from one look to the next, added up.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    usage: Usage,
    lost: u64,
    /// Parents that have waited for children.
    parents: BTreeSet<Pid>,
    /// What a parent's figure still lacks of children that have been counted already: it is rounded
    /// down, and what is missing now will be there at a later look.
    owed: BTreeMap<Pid, Duration>,
}

impl Ledger {
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Adds what was consumed between two samples of the same root.
    pub(super) fn enter(&mut self, earlier: &Sample, now: &Sample) -> Result<(), ProcessError> {
        let still = |pid: Pid| {
            let (before, after) = (earlier.members.get(&pid)?, now.members.get(&pid)?);
            (before.started == after.started).then_some((before, after))
        };
        if still(now.root).is_none() {
            return Err(ProcessError::Ended { pid: now.root });
        }
        for (&pid, member) in &now.members {
            let before = still(pid).map(|(before, _)| before);
            self.usage = self.usage.and(alone(before, member));
        }
        // What ended processes had consumed by the earlier sample, under the parent that is left.
        let mut counted: BTreeMap<Pid, (Duration, u64)> = BTreeMap::new();
        for (&pid, member) in earlier.members.iter().filter(|(pid, _)| still(**pid).is_none()) {
            match surviving_ancestor(pid, earlier, |pid| still(pid).is_some()) {
                Some(ancestor) => {
                    let (duration, ended) = counted.entry(ancestor).or_default();
                    *duration += member.total();
                    *ended += 1;
                }
                None => self.lost += 1,
            }
        }
        for &pid in now.members.keys() {
            let Some((before, after)) = still(pid) else { continue };
            let grown = after.waited_for.saturating_sub(before.waited_for);
            let (counted, ended) = counted.remove(&pid).unwrap_or_default();
            if grown > Duration::ZERO || ended > 0 {
                self.parents.insert(pid);
            }
            self.settle(pid, grown, counted, ended);
        }
        Ok(())
    }

    /// A parent's figure has `grown`, and `ended` children have gone of whom `counted` was counted
    /// already: the rest is new.
    fn settle(&mut self, pid: Pid, grown: Duration, counted: Duration, ended: u64) {
        let counted = counted + self.owed.remove(&pid).unwrap_or_default();
        match grown.checked_sub(counted) {
            Some(new) => self.usage.cpu += new,
            None if counted - grown <= slack() => {
                self.owed.insert(pid, counted - grown);
            }
            // Less has come than had been seen: not all of them were waited for.
            None => self.lost += ended,
        }
    }
}

/// What a process has consumed by itself since `before`, or since it began.
fn alone(before: Option<&Member>, now: &Member) -> Usage {
    let cpu = match before {
        Some(before) => now.cpu.saturating_sub(before.cpu),
        None => now.total(),
    };
    let mut usage = Usage { cpu, ..Usage::default() };
    for (thread, &(voluntary, involuntary)) in &now.switches {
        let earlier = before.and_then(|before| before.switches.get(thread)).copied();
        let (voluntary_before, involuntary_before) = earlier.unwrap_or_default();
        usage.voluntary_switches += voluntary.saturating_sub(voluntary_before);
        usage.involuntary_switches += involuntary.saturating_sub(involuntary_before);
    }
    usage
}

/// The nearest ancestor that is left: it waits for the children of those who have waited for theirs.
fn surviving_ancestor(pid: Pid, earlier: &Sample, is_left: impl Fn(Pid) -> bool) -> Option<Pid> {
    let mut parent = earlier.members.get(&pid)?.parent;
    while !is_left(parent) {
        parent = earlier.members.get(&parent)?.parent;
    }
    Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: i32 = 10;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A sample of (process, parent, own CPU time in ms, that of waited-for children in ms).
    fn sample(members: &[(i32, i32, u64, u64)]) -> Sample {
        let member = |&(pid, parent, cpu, waited_for): &(i32, i32, u64, u64)| {
            let member = Member {
                started: 1,
                parent: Pid::from_raw(parent),
                cpu: ms(cpu),
                waited_for: ms(waited_for),
                switches: BTreeMap::new(),
                ignores_children: false,
            };
            (Pid::from_raw(pid), member)
        };
        Sample { root: Pid::from_raw(ROOT), members: members.iter().map(member).collect() }
    }

    fn ledger(samples: &[Sample]) -> Ledger {
        let mut ledger = Ledger::default();
        for pair in samples.windows(2) {
            ledger.enter(&pair[0], &pair[1]).unwrap();
        }
        ledger
    }

    #[test]
    fn the_living_are_exact_and_those_born_count_from_their_birth() {
        let ledger = ledger(&[
            sample(&[(ROOT, 1, 500, 70), (11, ROOT, 100, 0)]),
            sample(&[(ROOT, 1, 501, 70), (11, ROOT, 103, 0), (12, ROOT, 7, 5)]),
        ]);
        assert_eq!(ledger.usage().cpu, ms(1 + 3 + 7 + 5));
        assert!(ledger.parents.is_empty() && ledger.lost == 0);
    }

    #[test]
    fn ended_children_count_without_what_was_counted_before() {
        // 11 had used 100 and ends at 130; 12 is never seen and used 20.
        let ledger = ledger(&[
            sample(&[(ROOT, 1, 0, 1000), (11, ROOT, 100, 0)]),
            sample(&[(ROOT, 1, 0, 1150)]),
        ]);
        assert_eq!(ledger.usage().cpu, ms(50));
        assert_eq!((ledger.parents.len(), ledger.lost), (1, 0));
    }

    #[test]
    fn a_whole_branch_that_ends_counts_under_who_is_left() {
        // 12 ends at 45 and is waited for by 11, which ends at 200 of its own.
        let ledger = ledger(&[
            sample(&[(ROOT, 1, 0, 0), (11, ROOT, 100, 30), (12, 11, 40, 0)]),
            sample(&[(ROOT, 1, 0, 200 + 30 + 45)]),
        ]);
        assert_eq!(ledger.usage().cpu, ms(100 + 5));
    }

    #[test]
    fn what_is_rounded_down_at_one_look_is_made_good_at_the_next() {
        // 11 was last seen at 104 and ended at 104; its parent's figure says 90, then 100.
        let first = sample(&[(ROOT, 1, 0, 0), (11, ROOT, 104, 0)]);
        let second = sample(&[(ROOT, 1, 0, 90)]);
        let once = ledger(&[first.clone(), second.clone()]);
        assert_eq!((once.usage().cpu, once.lost), (ms(0), 0));
        let twice = ledger(&[first, second, sample(&[(ROOT, 1, 0, 120)])]);
        assert_eq!(twice.usage().cpu, ms(120 - 104));
    }

    #[test]
    fn children_that_nobody_waits_for_are_counted_as_lost() {
        let unwaited = ledger(&[
            sample(&[(ROOT, 1, 0, 0), (11, ROOT, 100, 0), (12, ROOT, 100, 0)]),
            sample(&[(ROOT, 1, 0, 0)]),
        ]);
        assert_eq!((unwaited.usage().cpu, unwaited.lost), (ms(0), 2));
        let orphan = ledger(&[
            sample(&[(ROOT, 1, 0, 0), (11, 1, 100, 0)]),
            sample(&[(ROOT, 1, 0, 0), (11, 1, 150, 0)]),
            sample(&[(ROOT, 1, 0, 0)]),
        ]);
        assert_eq!((orphan.usage().cpu, orphan.lost), (ms(50), 1));
    }

    #[test]
    fn an_id_that_is_used_again_is_another_process() {
        let mut again = sample(&[(ROOT, 1, 0, 60), (11, ROOT, 3, 0)]);
        let member = again.members.get_mut(&Pid::from_raw(11)).unwrap();
        member.started = 2;
        let ledger = ledger(&[sample(&[(ROOT, 1, 0, 0), (11, ROOT, 50, 0)]), again.clone()]);
        assert_eq!(ledger.usage().cpu, ms(10 + 3));
        again.members.get_mut(&Pid::from_raw(ROOT)).unwrap().started = 2;
        let error = again.since(&sample(&[(ROOT, 1, 0, 0)])).unwrap_err();
        assert!(matches!(error, ProcessError::Ended { .. }), "{error}");
    }

    #[test]
    fn switches_of_threads_that_come_and_go_are_never_negative() {
        let with = |switches: &[(i32, u64)]| {
            let mut sample = sample(&[(ROOT, 1, 0, 0)]);
            let root = sample.members.get_mut(&Pid::from_raw(ROOT)).unwrap();
            root.switches =
                switches.iter().map(|&(tid, count)| (Pid::from_raw(tid), (count, 1))).collect();
            sample
        };
        let ledger = ledger(&[with(&[(10, 5), (11, 900)]), with(&[(10, 7), (12, 3)])]);
        assert_eq!(ledger.usage().voluntary_switches, 2 + 3);
        assert_eq!(ledger.usage().involuntary_switches, 1);
    }
}
