//! What the host allows, read from `/proc`: the facts behind `onering doctor` and behind the message
//! of a server that may not use io_uring.

use std::fs;
use std::path::Path;

/// How this process is confined by seccomp (`Seccomp:` in `/proc/self/status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seccomp {
    /// Not at all.
    Off,
    /// Only read, write, exit.
    Strict,
    /// By a filter, as containers are.
    Filter,
}

/// Who may set up a ring (`kernel.io_uring_disabled`, since 6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IoUringPolicy {
    /// Everyone: the value 0.
    Everyone,
    /// CAP_SYS_ADMIN and the group of `kernel.io_uring_group`: the value 1.
    Group,
    /// Nobody: the value 2.
    Nobody,
    /// The kernel has no such setting.
    Unset,
}

/// What the host allows this process. A fact that cannot be read is `None`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Environment {
    /// The kernel's release, to be shown and never to be parsed: features are probed.
    pub kernel_release: Option<String>,
    /// Who may set up a ring.
    pub io_uring: IoUringPolicy,
    /// `kernel.io_uring_group`, whose members may where the policy is `Group`; -1 is nobody.
    pub io_uring_group: Option<i64>,
    /// How this process is confined.
    pub seccomp: Option<Seccomp>,
    /// Whether CAP_IPC_LOCK is effective: locked memory is then not limited.
    pub cap_ipc_lock: Option<bool>,
    /// Whether CAP_SYS_ADMIN is effective.
    pub cap_sys_admin: Option<bool>,
    /// Whether CAP_NET_BIND_SERVICE is effective: ports below 1024 are then ours to take.
    pub cap_net_bind_service: Option<bool>,
    /// `net.core.somaxconn`, which clamps every backlog.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_congestion_control`.
    pub congestion_control: Option<String>,
}

/// Bits of `CapEff:` (linux/capability.h).
const CAP_NET_BIND_SERVICE: u32 = 10;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;

impl Environment {
    /// Reads the facts beneath `root`, which is `/` save in tests.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| {
            fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned())
        };
        let status = text("proc/self/status").unwrap_or_default();
        let of_status =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let effective = of_status("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let capability = |bit: u32| effective.map(|bits| bits >> bit & 1 == 1);
        Self {
            kernel_release: text("proc/sys/kernel/osrelease"),
            io_uring: match text("proc/sys/kernel/io_uring_disabled").as_deref() {
                Some("0") => IoUringPolicy::Everyone,
                Some("1") => IoUringPolicy::Group,
                Some(_) => IoUringPolicy::Nobody,
                None => IoUringPolicy::Unset,
            },
            io_uring_group: text("proc/sys/kernel/io_uring_group")
                .and_then(|text| text.parse().ok()),
            seccomp: match of_status("Seccomp:") {
                Some("0") => Some(Seccomp::Off),
                Some("1") => Some(Seccomp::Strict),
                Some("2") => Some(Seccomp::Filter),
                _ => None,
            },
            cap_ipc_lock: capability(CAP_IPC_LOCK),
            cap_sys_admin: capability(CAP_SYS_ADMIN),
            cap_net_bind_service: capability(CAP_NET_BIND_SERVICE),
            somaxconn: text("proc/sys/net/core/somaxconn").and_then(|text| text.parse().ok()),
            congestion_control: text("proc/sys/net/ipv4/tcp_congestion_control"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> Environment {
        let root = tempfile::tempdir().expect("tempdir");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        }
        Environment::read(root.path())
    }

    #[test]
    fn a_confined_host() {
        let read = host(&[
            ("proc/sys/kernel/osrelease", "6.12.1-test\n"),
            ("proc/sys/kernel/io_uring_disabled", "1\n"),
            ("proc/sys/kernel/io_uring_group", "-1\n"),
            ("proc/self/status", "Name:\tx\nCapEff:\t0000000000004400\nSeccomp:\t2\n"),
        ]);
        let expected = Environment {
            kernel_release: Some("6.12.1-test".into()),
            io_uring: IoUringPolicy::Group,
            io_uring_group: Some(-1),
            seccomp: Some(Seccomp::Filter),
            cap_ipc_lock: Some(true),
            cap_sys_admin: Some(false),
            cap_net_bind_service: Some(true),
            somaxconn: None,
            congestion_control: None,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn policies() {
        let policy = |value| host(&[("proc/sys/kernel/io_uring_disabled", value)]).io_uring;
        assert_eq!(policy("0\n"), IoUringPolicy::Everyone);
        assert_eq!(policy("2\n"), IoUringPolicy::Nobody);
        assert_eq!(host(&[]).io_uring, IoUringPolicy::Unset);
        assert_eq!(host(&[]).seccomp, None);
    }

    #[test]
    fn this_host_answers() {
        let here = Environment::read(Path::new("/"));
        assert!(here.kernel_release.is_some());
        assert!(here.cap_ipc_lock.is_some());
    }
}
