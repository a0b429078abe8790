//! The memory of processes.

use super::sample::is_gone;
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs;
use std::io;

/// What of memory was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Proportional set size: pages shared by several processes are divided among them.
    Proportional,
    /// Resident set size: pages shared by several processes count for each.
    Resident {
        /// Why not the proportional one.
        why: String,
    },
}

/// Memory of a set of processes, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What was measured.
    pub measure: Measure,
    /// At the beginning.
    pub begin_bytes: u64,
    /// The most that was seen at a look.
    pub peak_bytes: u64,
    /// At the end.
    pub end_bytes: u64,
}

/// Memory at some moments, by both measures as long as both can be read.
#[derive(Debug)]
pub(super) struct Looks {
    proportional: Result<Course, String>,
    resident: Course,
}

#[derive(Clone, Copy, Debug)]
struct Course {
    begin: u64,
    peak: u64,
    end: u64,
}

impl Course {
    fn begin(bytes: u64) -> Self {
        Self { begin: bytes, peak: bytes, end: bytes }
    }

    fn go_on(&mut self, bytes: u64) {
        self.peak = self.peak.max(bytes);
        self.end = bytes;
    }
}

impl Looks {
    pub(super) fn begin(members: impl Iterator<Item = Pid>) -> io::Result<Self> {
        let (proportional, resident) = together(members)?;
        Ok(Self {
            proportional: proportional.map(Course::begin),
            resident: Course::begin(resident),
        })
    }

    pub(super) fn look(&mut self, members: impl Iterator<Item = Pid>) -> io::Result<()> {
        let (proportional, resident) = together(members)?;
        self.resident.go_on(resident);
        match (&mut self.proportional, proportional) {
            (Ok(course), Ok(bytes)) => course.go_on(bytes),
            (Ok(_), Err(why)) => self.proportional = Err(why),
            (Err(_), _) => {}
        }
        Ok(())
    }

    pub(super) fn memory(&self) -> Memory {
        let (measure, course) = match &self.proportional {
            Ok(course) => (Measure::Proportional, course),
            Err(why) => (Measure::Resident { why: why.clone() }, &self.resident),
        };
        let Course { begin, peak, end } = *course;
        Memory { measure, begin_bytes: begin, peak_bytes: peak, end_bytes: end }
    }
}

/// Proportional set size, or why it may not be read, and resident set size. Of processes that have
/// ended there is none.
fn together(members: impl Iterator<Item = Pid>) -> io::Result<(Result<u64, String>, u64)> {
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE)?.map_or(4096, i64::unsigned_abs);
    let (mut proportional, mut resident) = (Ok(0), 0);
    for pid in members {
        resident += read(pid, "statm")?.map_or(0, |statm| {
            let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
            pages.unwrap_or(0) * page_bytes
        });
        if let Ok(bytes) = &mut proportional {
            match read(pid, "smaps_rollup") {
                Ok(rollup) => {
                    *bytes += rollup.and_then(|text| proportional_bytes(&text)).unwrap_or(0)
                }
                Err(error) => proportional = Err(format!("/proc/{pid}/smaps_rollup: {error}")),
            }
        }
    }
    Ok((proportional, resident))
}

/// A file of a process, unless it has ended.
fn read(pid: Pid, file: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(format!("/proc/{pid}/{file}")) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn proportional_bytes(rollup: &str) -> Option<u64> {
    let kib = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rollup_is_understood() {
        let text = "5600-7ff0 ---p 00000000 00:00 0 [rollup]\nRss:  884 kB\nPss:  385 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(proportional_bytes(text), Some(385 << 10));
        assert_eq!(proportional_bytes("Rss: 884 kB\n"), None);
    }

    #[test]
    fn the_peak_is_the_most_that_was_seen() {
        let mut course = Course::begin(5);
        for bytes in [9, 2] {
            course.go_on(bytes);
        }
        assert_eq!((course.begin, course.peak, course.end), (5, 9, 2));
    }

    #[test]
    fn where_shares_may_not_be_read_once_the_resident_size_is_told_with_the_reason() {
        let looks = Looks { proportional: Err("no".to_owned()), resident: Course::begin(7) };
        let memory = looks.memory();
        assert_eq!(memory.measure, Measure::Resident { why: "no".to_owned() });
        assert_eq!(memory.peak_bytes, 7);
    }

    #[test]
    fn memory_that_is_taken_is_seen() {
        let us = || std::iter::once(Pid::this());
        let mut looks = Looks::begin(us()).unwrap();
        let taken = vec![1_u8; 64 << 20];
        std::hint::black_box(&taken);
        looks.look(us()).unwrap();
        let memory = looks.memory();
        // Other tests take and give back memory meanwhile, but not that much.
        assert!(memory.peak_bytes > memory.begin_bytes + (32 << 20), "{memory:?}");
    }
}
