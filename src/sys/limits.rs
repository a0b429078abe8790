//! The resource limits a server lives under: open files, and locked memory.

use std::io;

use nix::sys::resource::{self, RLIM_INFINITY, Resource};

use super::count_call;

/// A soft limit, which is enforced, and the hard limit up to which it may be raised.
/// `u64::MAX` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is enforced.
    pub soft: u64,
    /// What the soft limit may be raised to without a privilege.
    pub hard: u64,
}

impl Limit {
    /// No limit at all; RLIM_INFINITY.
    pub const NONE: u64 = RLIM_INFINITY;
}

/// Open file descriptors of this process (RLIMIT_NOFILE).
pub fn nofile() -> io::Result<Limit> {
    limit(Resource::RLIMIT_NOFILE)
}

/// Bytes this process may lock in memory (RLIMIT_MEMLOCK). Registered buffers count against it, and
/// from 6.14 a ring's own memory, unless the process has CAP_IPC_LOCK.
pub fn memlock() -> io::Result<Limit> {
    limit(Resource::RLIMIT_MEMLOCK)
}

/// Raises the soft limit of open files to the hard one, and says what it is now. The low soft limit
/// exists for programs that call select(2), which we do not.
pub fn raise_nofile() -> io::Result<Limit> {
    let Limit { soft, hard } = nofile()?;
    if soft < hard {
        count_call();
        resource::setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    nofile()
}

fn limit(resource: Resource) -> io::Result<Limit> {
    count_call();
    let (soft, hard) = resource::getrlimit(resource)?;
    Ok(Limit { soft, hard })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_reaches_the_hard_limit() {
        let before = nofile().expect("getrlimit");
        let after = raise_nofile().expect("setrlimit");
        assert_eq!(after, Limit { soft: before.hard, hard: before.hard });
        assert_eq!(nofile().expect("getrlimit"), after);
    }

    #[test]
    fn memlock_is_a_limit() {
        let Limit { soft, hard } = memlock().expect("getrlimit");
        assert!(soft <= hard);
    }
}
