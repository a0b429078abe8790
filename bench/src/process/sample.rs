//! All processes of a server at one moment, and what they had consumed by then.

use super::{ProcessError, Usage};
use nix::time::ClockId;
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;

/// The processes of a server at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    pub(super) root: Pid,
    pub(super) members: BTreeMap<Pid, Member>,
}

/// A process, and what it had consumed.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// When it began, in ticks since the machine did: with its id, what tells it from all others.
    pub(super) started: u64,
    pub(super) parent: Pid,
    /// Of itself, of all threads that it ever had.
    pub(super) cpu: Duration,
    /// Of its children for which it has waited, and of those for which they had.
    pub(super) waited_for: Duration,
    /// Context switches of each thread that lives: voluntary and involuntary.
    pub(super) switches: BTreeMap<Pid, (u64, u64)>,
    /// Whether the kernel throws its children's figures away as they end.
    pub(super) ignores_children: bool,
}

impl Member {
    /// All that is gone with it, if nobody waits for it.
    pub(super) fn total(&self) -> Duration {
        self.cpu + self.waited_for
    }
}

impl Sample {
    /// Reads the process `root`, its descendants, and the process group and session that it leads.
    /// Takes some 10 µs for each process of the machine, whosever it is, for any may belong to it.
    pub fn of_tree(root: Pid) -> Result<Self, ProcessError> {
        Self::read(root, &BTreeMap::new())
    }

    /// The same; whoever is among `known` still belongs to it, though its parent may have ended.
    pub(super) fn read(root: Pid, known: &BTreeMap<Pid, Member>) -> Result<Self, ProcessError> {
        let unreadable = |error| ProcessError::Unreadable { pid: root, error };
        let all = all_processes().map_err(unreadable)?;
        if !all.contains_key(&root) {
            // The error says why: there is none, or it is hidden.
            let error = Stat::read(root).err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
            return Err(unreadable(error));
        }
        let mut members = BTreeMap::new();
        for (pid, stat) in belonging(root, known, &all) {
            match Member::read(pid, &stat) {
                Ok(member) => {
                    members.insert(pid, member);
                }
                // It has ended meanwhile: its parent will tell.
                Err(error) if pid != root && is_gone(&error) => {}
                Err(error) => return Err(ProcessError::Unreadable { pid, error }),
            }
        }
        let mut sample = Self { root, members };
        sample.settle()?;
        Ok(sample)
    }

    /// Reads what the members' ended children had consumed, in such a way that nobody is counted
    /// both as a member and in its parent's figure: all members must be seen alive after all the
    /// figures were read. Whoever is not is dropped, and the figures are read again.
    fn settle(&mut self) -> Result<(), ProcessError> {
        loop {
            let count = self.members.len();
            for look in 0..2 {
                let (root, mut failure) = (self.root, None);
                self.members.retain(|&pid, member| match Stat::read(pid) {
                    Ok(stat) if stat.started != member.started => false,
                    Ok(stat) if look == 0 => {
                        member.waited_for = stat.waited_for;
                        true
                    }
                    Ok(_) => true,
                    Err(error) if is_gone(&error) => false,
                    Err(error) => {
                        failure = Some(ProcessError::Unreadable { pid, error });
                        true
                    }
                });
                if let Some(failure) = failure {
                    return Err(failure);
                }
                if !self.members.contains_key(&root) {
                    return Err(ProcessError::Ended { pid: root });
                }
            }
            if self.members.len() == count {
                return Ok(());
            }
        }
    }

    /// What was consumed since `earlier`, a sample of the same root, by processes that lived at both
    /// moments or at either, or between the two. How exact that is, the module says.
    pub fn since(&self, earlier: &Self) -> Result<Usage, ProcessError> {
        let mut ledger = super::group::Ledger::default();
        ledger.enter(earlier, self)?;
        Ok(ledger.usage())
    }
}

impl Member {
    fn read(pid: Pid, stat: &Stat) -> io::Result<Self> {
        let cpu = ClockId::pid_cpu_clock_id(pid)?.now()?.into();
        let mut switches = BTreeMap::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?;
            let Some(id) = thread.file_name().to_str().and_then(parse_pid) else { continue };
            match fs::read_to_string(thread.path().join("status")) {
                Ok(status) => {
                    let voluntary = field(&status, "voluntary_ctxt_switches:")?;
                    let involuntary = field(&status, "nonvoluntary_ctxt_switches:")?;
                    switches.insert(id, (voluntary, involuntary));
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(Self {
            started: stat.started,
            parent: stat.parent,
            cpu,
            waited_for: stat.waited_for,
            switches,
            ignores_children: ignores_children(&status),
        })
    }
}

/// What `/proc/PID/stat` says of a process (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: Pid,
    group: Pid,
    session: Pid,
    waited_for: Duration,
    started: u64,
}

impl Stat {
    fn read(pid: Pid) -> io::Result<Self> {
        let text = fs::read(format!("/proc/{pid}/stat"))?;
        Self::parse(&String::from_utf8_lossy(&text)).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("/proc/{pid}/stat is not understood"),
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        // The name, in parentheses, may hold anything, parentheses too. Field 3 comes behind it.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<_> = fields.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let pid = |number| field(number).and_then(parse_pid);
        let ticks: u64 = field(16)?.parse::<u64>().ok()? + field(17)?.parse::<u64>().ok()?;
        Some(Self {
            parent: pid(4)?,
            group: pid(5)?,
            session: pid(6)?,
            waited_for: tick() * u32::try_from(ticks).ok()?,
            started: field(22)?.parse().ok()?,
        })
    }
}

/// The unit of times in `/proc/PID/stat`: 10 ms.
pub(super) fn tick() -> Duration {
    let hertz = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let hertz = hertz.and_then(|hertz| u32::try_from(hertz).ok()).filter(|hertz| *hertz > 0);
    Duration::from_secs(1) / hertz.unwrap_or(100)
}

/// Every process that can be seen.
fn all_processes() -> io::Result<BTreeMap<Pid, Stat>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(parse_pid) else { continue };
        match Stat::read(pid) {
            Ok(stat) => {
                all.insert(pid, stat);
            }
            // It has ended, or is nobody's business of ours.
            Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// The processes that belong to `root`. Never this one, which measures, although it may stand in the
/// session that `root` leads: a shell's.
fn belonging(
    root: Pid,
    known: &BTreeMap<Pid, Member>,
    all: &BTreeMap<Pid, Stat>,
) -> BTreeMap<Pid, Stat> {
    let us = Pid::this();
    let by_themselves = |pid: Pid, stat: &Stat| {
        pid == root
            || stat.group == root
            || stat.session == root
            || known.get(&pid).is_some_and(|member| member.started == stat.started)
    };
    let mut belonging = BTreeMap::new();
    loop {
        let before = belonging.len();
        for (&pid, stat) in all.iter().filter(|(pid, _)| **pid != us || root == us) {
            if by_themselves(pid, stat) || belonging.contains_key(&stat.parent) {
                belonging.insert(pid, *stat);
            }
        }
        if belonging.len() == before {
            return belonging;
        }
    }
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().map(Pid::from_raw)
}

/// Whether an error means that a process or a thread has ended. (EINVAL is what clock_gettime(2)
/// says of the clock of a process that is not there.)
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::EINVAL))
}

/// The number behind `name` at the beginning of a line of `/proc/PID/status`.
fn field(status: &str, name: &str) -> io::Result<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value
        .and_then(|value| value.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {name} in status")))
}

/// Whether SIGCHLD is among the signals that are ignored: children then vanish unwaited for.
fn ignores_children(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (libc::SIGCHLD - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:").unwrap(), 15);
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:").unwrap(), 7);
        assert!(field(status, "other:").is_err());
        assert!(ignores_children("SigIgn:\t0000000000010000\n"));
        assert!(!ignores_children("SigIgn:\t0000000000001000\n") && !ignores_children(""));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let text = "7 (a) 1 (b) S 3 5 6 0 -1 4194304 1 2 0 0 8 21 11 23 20 0 1 0 2408721 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            (stat.parent, stat.group, stat.session),
            (Pid::from_raw(3), Pid::from_raw(5), Pid::from_raw(6))
        );
        assert_eq!(stat.waited_for, tick() * 34);
        assert_eq!(stat.started, 2_408_721);
        assert_eq!(Stat::parse("7 (a) S 3"), None);
        assert_eq!(Stat::parse("nothing"), None);
    }

    fn stat(parent: i32, group: i32, session: i32) -> Stat {
        let [parent, group, session] = [parent, group, session].map(Pid::from_raw);
        Stat { parent, group, session, waited_for: Duration::ZERO, started: 1 }
    }

    #[test]
    fn descendants_the_group_and_the_session_that_the_root_leads_belong_to_it() {
        let us = Pid::this().as_raw();
        let all: BTreeMap<_, _> = [
            (900_000_001, stat(1, 900_000_001, 900_000_001)),
            // A child, a grandchild in a session of its own, an orphan of the session, a stranger.
            (900_000_002, stat(900_000_001, 900_000_001, 900_000_001)),
            (900_000_000, stat(900_000_002, 900_000_000, 900_000_000)),
            (900_000_004, stat(1, 900_000_004, 900_000_001)),
            (900_000_005, stat(1, 900_000_005, 900_000_005)),
            // This process, under a shell that is the root, and its own child.
            (us, stat(900_000_001, us, 900_000_001)),
        ]
        .map(|(pid, stat)| (Pid::from_raw(pid), stat))
        .into();
        let pids = |root: i32| {
            let of_root = belonging(Pid::from_raw(root), &BTreeMap::new(), &all);
            of_root.into_keys().map(Pid::as_raw).collect::<Vec<_>>()
        };
        assert_eq!(pids(900_000_001), [900_000_000, 900_000_001, 900_000_002, 900_000_004]);
        // It leads neither its group nor its session.
        assert_eq!(pids(900_000_002), [900_000_000, 900_000_002]);
    }
}
