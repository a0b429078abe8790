//! Kernel, CPUs, memory: what the machine is.

use super::fact::{Fact, Tree, chosen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

/// The kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// As `uname -r`.
    pub release: Fact<String>,
    /// As `uname -v`.
    pub version: Fact<String>,
    /// What it was started with.
    pub command_line: Fact<String>,
}

impl Kernel {
    pub(super) fn read(tree: Tree<'_>) -> Self {
        Self {
            release: tree.text("proc/sys/kernel/osrelease"),
            version: tree.text("proc/sys/kernel/version"),
            command_line: tree.text("proc/cmdline"),
        }
    }

    /// (major, minor) of the release.
    pub(super) fn major_minor(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.known()?.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

/// The CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The model of the first.
    pub model: Fact<String>,
    /// Logical CPUs that are there, online or not.
    pub present: Fact<u64>,
    /// Logical CPUs that are online, such as `0-3,6`.
    pub online: Fact<String>,
    /// Whether cores run several threads.
    pub smt: Fact<bool>,
    /// The caches that the first CPU uses.
    pub caches: Fact<Vec<Cache>>,
    /// Who decides on the frequency: the governors of all CPUs, each once.
    pub governor: Fact<String>,
    /// The revision of the microcode of the first.
    pub microcode: Fact<String>,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u64,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// As the kernel says it, such as `32K`.
    pub size: String,
    /// The logical CPUs that share it.
    pub cpus: String,
}

impl Cpu {
    pub(super) fn read(tree: Tree<'_>) -> Self {
        let cpuinfo = tree.text("proc/cpuinfo");
        Self {
            model: cpuinfo.field("model name").or_else(|| cpuinfo.field("CPU part")),
            present: tree.numbered(CPUS, "cpu").map(|cpus| cpus.len() as u64),
            online: tree.text(&format!("{CPUS}/online")),
            smt: tree.text(&format!("{CPUS}/smt/active")).map(|active| active == "1"),
            caches: caches(tree),
            governor: governor(tree),
            microcode: cpuinfo.field("microcode"),
        }
    }
}

fn caches(tree: Tree<'_>) -> Fact<Vec<Cache>> {
    let directory = format!("{CPUS}/cpu0/cache");
    tree.numbered(&directory, "index").map(|indices| {
        let cache = |index| {
            let file = |name| tree.text(&format!("{directory}/index{index}/{name}"));
            Some(Cache {
                level: *file("level").number().known()?,
                kind: file("type").known()?.clone(),
                size: file("size").known()?.clone(),
                cpus: file("shared_cpu_list").known()?.clone(),
            })
        };
        indices.into_iter().filter_map(cache).collect()
    })
}

fn governor(tree: Tree<'_>) -> Fact<String> {
    tree.numbered(&format!("{CPUS}/cpufreq"), "policy").and_then(|policies| {
        let mut governors: Vec<_> = policies
            .iter()
            .map(|policy| tree.text(&format!("{CPUS}/cpufreq/policy{policy}/scaling_governor")))
            .filter_map(|governor| governor.known().cloned())
            .collect();
        governors.sort_unstable();
        governors.dedup();
        if governors.is_empty() {
            Fact::absent("the kernel does not scale the frequency")
        } else {
            Fact::Known(governors.join(", "))
        }
    })
}

/// What the kernel does about each weakness of the CPU, as it says itself.
pub(super) fn mitigations(tree: Tree<'_>) -> Fact<BTreeMap<String, String>> {
    let directory = format!("{CPUS}/vulnerabilities");
    tree.names(&directory).map(|names| {
        let state = |name: String| {
            let state = tree.text(&format!("{directory}/{name}")).known()?.clone();
            Some((name, state))
        };
        names.into_iter().filter_map(state).collect()
    })
}

/// What the kernel's clocks are read from.
pub(super) fn clock_source(tree: Tree<'_>) -> Fact<String> {
    tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// What the kernel can use.
    pub total_bytes: Fact<u64>,
    /// Swap.
    pub swap_bytes: Fact<u64>,
    /// When transparent huge pages are used: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Fact<String>,
    /// What is done to get one.
    pub transparent_huge_pages_defrag: Fact<String>,
    /// The nodes; one on most machines.
    pub nodes: Fact<Vec<Node>>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: Fact<String>,
    /// Its memory.
    pub total_bytes: Fact<u64>,
}

/// A number of KiB, as `/proc/meminfo` has it, in bytes.
fn kib(text: Fact<String>) -> Fact<u64> {
    let number = text.map(|text| text.trim_end_matches("kB").trim().to_owned()).number();
    number.map(|kib| kib.saturating_mul(1024))
}

impl Memory {
    pub(super) fn read(tree: Tree<'_>) -> Self {
        let meminfo = tree.text("proc/meminfo");
        let huge_pages = |file: &str| {
            let path = format!("sys/kernel/mm/transparent_hugepage/{file}");
            tree.text(&path).map(|text| chosen(&text).unwrap_or(&text).to_owned())
        };
        let node = |node| Node {
            node,
            cpus: tree.text(&format!("{NODES}/node{node}/cpulist")),
            total_bytes: kib(tree
                .text(&format!("{NODES}/node{node}/meminfo"))
                // Each line begins with the node's name.
                .map(|text| text.replace(&format!("Node {node} "), ""))
                .field("MemTotal")),
        };
        Self {
            total_bytes: kib(meminfo.field("MemTotal")),
            swap_bytes: kib(meminfo.field("SwapTotal")),
            transparent_huge_pages: huge_pages("enabled"),
            transparent_huge_pages_defrag: huge_pages("defrag"),
            nodes: tree.numbered(NODES, "node").map(|nodes| nodes.into_iter().map(node).collect()),
        }
    }
}
