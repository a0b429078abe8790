//! What holds this process in: virtual machine, container, control groups, limits.

use super::fact::{Fact, Tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds this process in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confinement {
    /// The virtual machine, by the name that its firmware gives where it gives one; `none` on bare
    /// metal.
    pub hypervisor: Fact<String>,
    /// What says that this is a container; `none` where nothing does.
    pub container: String,
    /// The namespaces in which this process is not with process 1.
    pub own_namespaces: Fact<Vec<String>>,
    /// The CPUs on which this process may run.
    pub cpus_allowed: Fact<String>,
    /// CPU time that the control groups give, in CPUs; null: no limit.
    pub cpu_limit: Fact<Option<f64>>,
    /// Memory that the control groups give; null: no limit.
    pub memory_limit_bytes: Fact<Option<u64>>,
    /// Open files: what is enforced, and up to what it may be raised.
    pub open_files: Fact<Limit>,
    /// Locked memory in bytes, as above.
    pub locked_memory: Fact<Limit>,
    /// `kernel.io_uring_disabled`: 0 nobody is kept from io_uring, 1 all but a group, 2 all.
    pub io_uring_disabled: Fact<u64>,
}

/// A resource limit, as `/proc/self/limits` has it: a number or `unlimited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What is enforced.
    pub soft: String,
    /// What the soft limit may be raised to.
    pub hard: String,
}

impl Confinement {
    pub(super) fn read(tree: Tree<'_>) -> Self {
        let groups = tree.text("proc/self/cgroup");
        Self {
            hypervisor: hypervisor(tree),
            container: container(tree, groups.known().map_or("", String::as_str)),
            own_namespaces: own_namespaces(tree),
            cpus_allowed: tree.text("proc/self/status").field("Cpus_allowed_list"),
            cpu_limit: groups.clone().and_then(|groups| cpu_limit(tree, &groups)),
            memory_limit_bytes: groups.and_then(|groups| memory_limit(tree, &groups)),
            open_files: limit(tree, "Max open files"),
            locked_memory: limit(tree, "Max locked memory"),
            io_uring_disabled: tree.text("proc/sys/kernel/io_uring_disabled").number(),
        }
    }
}

fn hypervisor(tree: Tree<'_>) -> Fact<String> {
    let name = tree
        .text("sys/hypervisor/type")
        .or_else(|| tree.text("sys/class/dmi/id/sys_vendor"))
        .known()
        .cloned();
    let cpuinfo = tree.text("proc/cpuinfo");
    match (cpuinfo.field("flags"), name) {
        (Fact::Known(flags), name) if flags.split(' ').any(|flag| flag == "hypervisor") => {
            Fact::Known(name.unwrap_or_else(|| "of a kind that does not say".to_owned()))
        }
        (Fact::Known(_), _) => Fact::Known("none".to_owned()),
        // Other machines than x86 have no such flag.
        (Fact::Absent { .. }, Some(name)) => Fact::Known(format!("perhaps {name}")),
        (Fact::Absent { absent }, None) => Fact::Absent { absent },
    }
}

/// The inode of the first process-id namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

fn container(tree: Tree<'_>, groups: &str) -> String {
    let known = [
        (tree.has(".dockerenv"), "docker"),
        (tree.has("run/.containerenv"), "podman"),
        (groups.contains("kubepods"), "kubernetes"),
        (groups.contains("/docker"), "docker"),
        (groups.contains("/lxc"), "lxc"),
    ];
    if let Some((_, name)) = known.into_iter().find(|(there, _)| *there) {
        return name.to_owned();
    }
    if let Some(name) = tree.text("run/systemd/container").known() {
        return name.clone();
    }
    match tree.link("proc/self/ns/pid") {
        Fact::Known(link) if link.as_os_str() != FIRST_PID_NAMESPACE => {
            "a process-id namespace of its own".to_owned()
        }
        _ => "none".to_owned(),
    }
}

fn own_namespaces(tree: Tree<'_>) -> Fact<Vec<String>> {
    let kinds = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];
    let mut own = Vec::new();
    for kind in kinds {
        let ours = tree.link(&format!("proc/self/ns/{kind}"));
        match ours
            .and_then(|ours| tree.link(&format!("proc/1/ns/{kind}")).map(|first| ours != first))
        {
            Fact::Known(true) => own.push(kind.to_owned()),
            Fact::Known(false) => {}
            Fact::Absent { absent } => return Fact::Absent { absent },
        }
    }
    Fact::Known(own)
}

/// Where the limits of a controller are: those of this process's group and of all above it.
/// Groups of version 2 are mounted at `/sys/fs/cgroup`, or at `unified` there beside those of
/// version 1.
struct Groups {
    version: u8,
    directories: Vec<String>,
}

fn groups(tree: Tree<'_>, groups: &str, controller: &str) -> Option<Groups> {
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        Some((parts.next()?, parts.next()?, parts.next()?))
    });
    let (mut first, mut second) = (None, None);
    for (number, controllers, path) in lines {
        if controllers.split(',').any(|name| name == controller) {
            first = Some(path);
        } else if number == "0" && controllers.is_empty() {
            second = Some(path);
        }
    }
    let (version, mount, path) = match (first, second) {
        (Some(path), _) => (1, format!("sys/fs/cgroup/{controller}"), path),
        (None, Some(path)) if tree.has("sys/fs/cgroup/cgroup.controllers") => {
            (2, "sys/fs/cgroup".to_owned(), path)
        }
        (None, Some(path)) => (2, "sys/fs/cgroup/unified".to_owned(), path),
        (None, None) => return None,
    };
    let mut directories = vec![mount];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        // What a container sees of its path may not exist in what it sees of the mount.
        let below = format!("{}/{name}", directories[directories.len() - 1]);
        if !tree.has(&below) {
            break;
        }
        directories.push(below);
    }
    Some(Groups { version, directories })
}

/// The tightest of the limits that `of` finds in each directory.
fn tightest<T: PartialOrd>(
    groups: Option<Groups>,
    of: impl Fn(u8, &str) -> Option<T>,
) -> Fact<Option<T>> {
    let Some(Groups { version, directories }) = groups else {
        return Fact::absent("no control group is told");
    };
    let limits = directories.iter().filter_map(|directory| of(version, directory));
    Fact::Known(limits.reduce(|least, limit| if limit < least { limit } else { least }))
}

fn cpu_limit(tree: Tree<'_>, text: &str) -> Fact<Option<f64>> {
    tightest(groups(tree, text, "cpu"), |version, directory| {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
        let file = |name: &str| tree.text(&format!("{directory}/{name}")).known().cloned();
        let (quota, period) = if version == 2 {
            let max = file("cpu.max")?;
            let (quota, period) = max.split_once(' ')?;
            (number(quota)?, number(period)?)
        } else {
            (number(&file("cpu.cfs_quota_us")?)?, number(&file("cpu.cfs_period_us")?)?)
        };
        Some(quota / period)
    })
}

/// Version 1 has no word for "no limit": it says the greatest number of pages there can be.
const UNLIMITED_V1: u64 = 1 << 60;

fn memory_limit(tree: Tree<'_>, text: &str) -> Fact<Option<u64>> {
    tightest(groups(tree, text, "memory"), |version, directory| {
        let name = if version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        let bytes = tree.text(&format!("{directory}/{name}")).number();
        bytes.known().copied().filter(|bytes| *bytes < UNLIMITED_V1)
    })
}

fn limit(tree: Tree<'_>, name: &str) -> Fact<Limit> {
    tree.text("proc/self/limits").and_then(|limits| {
        let values = limits.lines().find_map(|line| line.strip_prefix(name));
        let mut values = values.unwrap_or_default().split_whitespace();
        match (values.next(), values.next()) {
            (Some(soft), Some(hard)) => {
                Fact::Known(Limit { soft: soft.to_owned(), hard: hard.to_owned() })
            }
            _ => Fact::absent(format_args!("/proc/self/limits does not tell {name:?}")),
        }
    })
}
