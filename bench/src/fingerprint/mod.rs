//! What machine, kernel and programs a result was measured with: enough to say afterwards why two
//! results differ, and to refuse to put together what was not measured alike.
//!
//! Nothing here changes anything, and nothing fails: a fact that cannot be read is a
//! [`Fact::Absent`] with the reason, and is written down as such. Figures that change from one
//! moment to the next (load, free memory, clock rates) are left out, so that two fingerprints of an
//! unchanged machine are equal.

mod confinement;
mod difference;
mod fact;
mod machine;
mod network;
mod sysctls;
mod text;

pub use confinement::{Confinement, Limit};
pub use difference::{Unlike, difference};
pub use fact::Fact;
pub use machine::{Cache, Cpu, Kernel, Memory, Node};
pub use network::{Interface, Network};
pub use sysctls::{Changed, Sysctls};

use fact::Tree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

/// A machine with what runs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// This program.
    pub tool: Tool,
    /// Other programs that were used: servers, generators.
    pub programs: Vec<Program>,
    /// The kernel.
    pub kernel: Kernel,
    /// The CPUs.
    pub cpu: Cpu,
    /// What the kernel does about each weakness of the CPU.
    pub mitigations: Fact<BTreeMap<String, String>>,
    /// What the kernel's clocks are read from.
    pub clock_source: Fact<String>,
    /// Memory.
    pub memory: Memory,
    /// What holds this process in.
    pub confinement: Confinement,
    /// The way to the target.
    pub network: Network,
    /// Settings of the kernel.
    pub sysctls: Fact<Sysctls>,
}

/// This program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its version.
    pub version: String,
    /// The command line, its own name included.
    pub command: Vec<String>,
}

/// Another program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// What it is called in results.
    pub name: String,
    /// The first line that it says of itself.
    pub version: Fact<String>,
    /// The command line that it ran with; empty if it is not known.
    pub command: Vec<String>,
}

impl Program {
    /// Asks the program at `path` for its version with `question`, such as `["-v"]`; `command` is
    /// the line that it runs with.
    pub fn ask(name: &str, path: &Path, question: &[&str], command: Vec<String>) -> Self {
        let version = fact::ask(path, question, &[])
            .map(|text| text.lines().next().unwrap_or_default().to_owned());
        Self { name: name.to_owned(), version, command }
    }
}

/// What a fingerprint is taken of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Where the result was measured against; its interface is looked at.
    pub target: Option<IpAddr>,
    /// This program's command line, [`std::env::args`] as a rule.
    pub command: Vec<String>,
    /// Other programs that were used.
    pub programs: Vec<Program>,
}

impl Fingerprint {
    /// Reads everything about this machine. Takes some ten milliseconds, for it asks `ethtool` and
    /// `tc`: not while something is measured.
    pub fn read(subject: Subject) -> Self {
        Self::read_beneath(Path::new("/"), subject)
    }

    /// The same of a machine whose `/proc` and `/sys` are beneath `root`.
    fn read_beneath(root: &Path, subject: Subject) -> Self {
        let tree = Tree::new(root);
        let kernel = Kernel::read(tree);
        let release = kernel.major_minor();
        Self {
            tool: Tool { version: env!("CARGO_PKG_VERSION").to_owned(), command: subject.command },
            programs: subject.programs,
            kernel,
            cpu: Cpu::read(tree),
            mitigations: machine::mitigations(tree),
            clock_source: machine::clock_source(tree),
            memory: Memory::read(tree),
            confinement: Confinement::read(tree),
            network: Network::read(tree, subject.target),
            sysctls: Sysctls::read(tree, release),
        }
    }
}

#[cfg(test)]
mod tests;
