//! Making a ring: the ladder of set-up flags, and the reason when there is none to be had.

use std::io;
use std::path::Path;
use std::time::Duration;

use io_uring::{IoUring, cqueue, squeue};

use crate::sys::environment::{Environment, IoUringPolicy, Seccomp};
use crate::sys::limits::{self, Limit};

use super::probe::{self, Capabilities};

/// Sizes of a ring and its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Submission entries, a power of two. The completion queue has four times as many, and at
    /// least twice the receive buffers, so that it overflows only in a storm.
    pub entries: u32,
    /// Provided receive buffers, a power of two.
    pub recv_buffers: u16,
    /// Bytes of one of them.
    pub recv_buffer_bytes: u32,
    /// Buffers for file reads, registered if RLIMIT_MEMLOCK allows.
    pub fixed_buffers: u16,
    /// Bytes of one of them.
    pub fixed_buffer_bytes: usize,
    /// How long a timed wait gathers completions; zero, and kernels before 6.12, do not.
    pub min_wait: Duration,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            entries: 1024,
            recv_buffers: 1024,
            recv_buffer_bytes: 4096,
            fixed_buffers: 0,
            fixed_buffer_bytes: 4096,
            min_wait: Duration::ZERO,
        }
    }
}

/// Why no ring can be had, with the remedy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetupError {
    /// The sysctl forbids it.
    #[error(
        "io_uring is switched off: kernel.io_uring_disabled = {level}\n  \
         fix: sysctl -w kernel.io_uring_disabled=0   (in /etc/sysctl.d/ to keep it{})",
        if *.level == 1 { "; or run as a member of the group in kernel.io_uring_group" } else { "" }
    )]
    Disabled {
        /// 1: for those outside `kernel.io_uring_group`; 2: for everybody.
        level: u8,
    },
    /// A seccomp filter or a security module forbids it.
    #[error(
        "io_uring is forbidden by a seccomp filter or a security module (io_uring_setup: {errno})\n  \
         fix: allow io_uring_setup, io_uring_enter and io_uring_register; in Docker or Podman \
         --security-opt seccomp=FILE with a profile that has the three (contrib/README.md says how to \
         make one), in systemd SystemCallFilter=@system-service (its @aio holds them)"
    )]
    Forbidden {
        /// What io_uring_setup(2) answered.
        errno: &'static str,
    },
    /// The kernel has no io_uring at all.
    #[error(
        "this kernel has no io_uring (io_uring_setup: ENOSYS)\n  \
         fix: run Linux 6.1 or later, built with CONFIG_IO_URING=y"
    )]
    Missing,
    /// The kernel lacks a set-up flag.
    #[error(
        "this kernel's io_uring lacks {flag}, which came with Linux {since}\n  \
         fix: run Linux 6.1 or later"
    )]
    MissingFlag {
        /// The flag's name.
        flag: &'static str,
        /// The kernel version that has it.
        since: &'static str,
    },
    /// The kernel lacks an operation.
    #[error(
        "this kernel's io_uring lacks {operation}, which came with Linux {since}\n  \
         fix: run Linux 6.1 or later"
    )]
    MissingOperation {
        /// The operation's name.
        operation: &'static str,
        /// The kernel version that has it.
        since: &'static str,
    },
    /// RLIMIT_MEMLOCK is too small even for the smallest ring.
    #[error(
        "the memlock limit is too small for a ring: {limit_kib} KiB\n  \
         fix: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit, \
         or --ulimit memlock=-1 for a container"
    )]
    Memlock {
        /// The limit in force, in KiB.
        limit_kib: u64,
    },
    /// No descriptor is left for the ring.
    #[error(
        "no file descriptor is left for a ring ({errno})\n  \
         fix: ulimit -n 65536, or LimitNOFILE=65536 in the unit"
    )]
    Descriptors {
        /// EMFILE or ENFILE.
        errno: &'static str,
    },
    /// Memory for buffers could not be had.
    #[error("no memory for the ring's buffers: {0}\n  fix: fewer or smaller buffers in [ring]")]
    Memory(String),
    /// Anything else.
    #[error("io_uring cannot be set up: {0}")]
    Unexpected(String),
}

impl SetupError {
    pub(super) fn memory(errno: nix::errno::Errno) -> SetupError {
        SetupError::Memory(errno.desc().to_owned())
    }

    pub(super) fn from_registration(error: io::Error) -> SetupError {
        match error.raw_os_error() {
            Some(libc::ENOMEM) => memlock_or_memory(),
            Some(libc::EINVAL) => SetupError::MissingOperation {
                operation: "IORING_REGISTER_PBUF_RING",
                since: "5.19",
            },
            _ => SetupError::Unexpected(error.to_string()),
        }
    }
}

/// The flags that are not optional, oldest first, with the version that brought each.
const FLAGS: [(&str, &str, SetFlag); 6] = [
    ("IORING_SETUP_CQSIZE", "5.5", |builder| {
        builder.setup_cqsize(PROBE_ENTRIES * 4);
    }),
    ("IORING_SETUP_SUBMIT_ALL", "5.18", |builder| {
        builder.setup_submit_all();
    }),
    ("IORING_SETUP_COOP_TASKRUN", "5.19", |builder| {
        builder.setup_coop_taskrun();
    }),
    // The kernel takes this one only beside one of the two task-run modes.
    ("IORING_SETUP_TASKRUN_FLAG", "5.19", |builder| {
        builder.setup_coop_taskrun().setup_taskrun_flag();
    }),
    ("IORING_SETUP_SINGLE_ISSUER", "6.0", |builder| {
        builder.setup_single_issuer();
    }),
    // Likewise only beside SINGLE_ISSUER.
    ("IORING_SETUP_DEFER_TASKRUN", "6.1", |builder| {
        builder.setup_single_issuer().setup_defer_taskrun();
    }),
];

/// Entries of a ring that is made only to see whether it can be.
const PROBE_ENTRIES: u32 = 8;

/// The smallest ring that is worth having when memory may not be locked.
const ENTRIES_MIN: u32 = 64;

type Builder = io_uring::Builder<squeue::Entry, cqueue::Entry>;
type SetFlag = fn(&mut Builder);

impl Setup {
    /// One ring with every flag of ours, smaller if need be; or why not.
    pub(super) fn build(&self) -> Result<(IoUring, Capabilities), SetupError> {
        let mut entries = self.entries;
        let mut no_sqarray = true;
        loop {
            let error = match self.builder(entries, no_sqarray).build(entries) {
                Ok(uring) => {
                    let capabilities = probe::probe(&uring, no_sqarray)?;
                    return Ok((uring, capabilities));
                }
                Err(error) => error,
            };
            match error.raw_os_error() {
                // Came with 6.6; everything works without it.
                Some(libc::EINVAL) if no_sqarray => no_sqarray = false,
                Some(libc::ENOMEM) if entries / 2 >= ENTRIES_MIN => entries /= 2,
                _ => return Err(diagnose(&error)),
            }
        }
    }

    fn builder(&self, entries: u32, no_sqarray: bool) -> Builder {
        let mut builder = IoUring::builder();
        builder
            // Only the thread that made it enters it: no lock on submission.
            .setup_single_issuer()
            // Completions are worked off inside our own enters, never in between.
            .setup_defer_taskrun()
            // No interrupt of the running thread for task work.
            .setup_coop_taskrun()
            // Says when an enter is needed although nothing is to be submitted.
            .setup_taskrun_flag()
            // One bad submission does not stop those behind it.
            .setup_submit_all()
            .setup_cqsize(entries.saturating_mul(4).max(u32::from(self.recv_buffers) * 2))
            .setup_clamp()
            .dontfork();
        if no_sqarray {
            builder.setup_no_sqarray();
        }
        builder
    }
}

/// Why io_uring_setup(2) with all our flags has failed.
fn diagnose(error: &io::Error) -> SetupError {
    match error.raw_os_error() {
        Some(libc::EPERM) => match Environment::read(Path::new("/")).io_uring {
            IoUringPolicy::Group => SetupError::Disabled { level: 1 },
            IoUringPolicy::Nobody => SetupError::Disabled { level: 2 },
            IoUringPolicy::Everyone | IoUringPolicy::Unset => {
                SetupError::Forbidden { errno: "EPERM" }
            }
        },
        Some(libc::EACCES) => SetupError::Forbidden { errno: "EACCES" },
        Some(libc::ENOSYS) if is_filtered() => SetupError::Forbidden { errno: "ENOSYS" },
        Some(libc::ENOSYS) => SetupError::Missing,
        Some(libc::ENOMEM) => memlock_or_memory(),
        Some(libc::EMFILE) => SetupError::Descriptors { errno: "EMFILE" },
        Some(libc::ENFILE) => SetupError::Descriptors { errno: "ENFILE" },
        Some(libc::EINVAL) => missing_flag()
            .unwrap_or_else(|| SetupError::Unexpected("EINVAL for the flags together".to_owned())),
        _ => SetupError::Unexpected(error.to_string()),
    }
}

/// The oldest flag that a ring cannot be made with.
fn missing_flag() -> Option<SetupError> {
    FLAGS.iter().find_map(|&(flag, since, set)| {
        let mut builder = IoUring::builder();
        set(&mut builder);
        let refused = builder
            .build(PROBE_ENTRIES)
            .is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL));
        refused.then_some(SetupError::MissingFlag { flag, since })
    })
}

/// Whether a seccomp filter is in force for this process.
fn is_filtered() -> bool {
    Environment::read(Path::new("/")).seccomp == Some(Seccomp::Filter)
}

fn memlock_or_memory() -> SetupError {
    match limits::memlock() {
        Ok(Limit { soft, .. }) if soft != Limit::NONE => {
            SetupError::Memlock { limit_kib: soft / 1024 }
        }
        _ => SetupError::Memory("ENOMEM".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_can_be_had_alone_here() {
        assert_eq!(missing_flag(), None);
    }

    #[test]
    fn every_refusal_names_its_remedy() {
        for refusal in [
            SetupError::Disabled { level: 2 },
            SetupError::Forbidden { errno: "EPERM" },
            SetupError::Missing,
            SetupError::MissingFlag { flag: "F", since: "6.1" },
            SetupError::MissingOperation { operation: "O", since: "6.0" },
            SetupError::Memlock { limit_kib: 64 },
            SetupError::Descriptors { errno: "EMFILE" },
        ] {
            assert!(refusal.to_string().contains("fix: "), "{refusal}");
        }
    }
}
