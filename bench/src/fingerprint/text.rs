//! A fingerprint for people: one line, or a block.

use super::{Fact, Fingerprint, Interface};
use std::fmt;

/// The fact, or a question mark.
fn or_unknown<T: fmt::Display>(fact: &Fact<T>) -> String {
    fact.known().map_or_else(|| "?".to_owned(), ToString::to_string)
}

/// The fact, or why it is not known.
fn or_why<T: fmt::Display>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Known(value) => value.to_string(),
        Fact::Absent { absent } => format!("unknown ({absent})"),
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

impl Fingerprint {
    /// The machine in one line.
    pub fn one_line(&self) -> String {
        let mut line = format!(
            "Linux {}, {} × {}, {}, {}",
            or_unknown(&self.kernel.release),
            or_unknown(&self.cpu.present),
            or_unknown(&self.cpu.model),
            self.memory.total_bytes.known().map_or_else(|| "?".to_owned(), |bytes| gib(*bytes)),
            or_unknown(&self.network.congestion_control),
        );
        if let Some(interface) = self.network.interface.known() {
            line += &format!(" over {}", interface.name);
        }
        if let Some(hypervisor) = self.confinement.hypervisor.known()
            && hypervisor != "none"
        {
            line += ", virtual";
        }
        if self.confinement.container != "none" {
            line += ", in a container";
        }
        line
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, cpu, confinement, network, .. } = self;
        let mut line = |name: &str, text: String| writeln!(f, "  {name:<12} {text}");
        line("tool", format!("onering-bench {}", self.tool.version))?;
        line("command", self.tool.command.join(" "))?;
        for program in &self.programs {
            line(&program.name, or_why(&program.version))?;
        }
        line("kernel", format!("{} {}", or_why(&kernel.release), or_unknown(&kernel.version)))?;
        line("started by", or_why(&kernel.command_line))?;
        line("CPU", cpu_text(self))?;
        if let Some(caches) = cpu.caches.known() {
            let caches = caches.iter().map(|cache| {
                let kind = cache.kind.chars().next().filter(|kind| *kind != 'U');
                let kind = kind.map(|kind| kind.to_ascii_lowercase().to_string());
                let level = format!("L{}{}", cache.level, kind.unwrap_or_default());
                format!("{level} {} for {}", cache.size, cache.cpus)
            });
            line("caches", caches.collect::<Vec<_>>().join(", "))?;
        }
        line("governor", or_why(&cpu.governor))?;
        line("clock", or_why(&self.clock_source))?;
        line("mitigations", mitigations_text(self))?;
        line("memory", memory_text(self))?;
        let limits =
            [("open files", &confinement.open_files), ("locked bytes", &confinement.locked_memory)];
        let limits = limits.map(|(name, limit)| {
            let limit = limit.known();
            let values = limit.map(|limit| format!("{} up to {}", limit.soft, limit.hard));
            format!("{name} {}", values.unwrap_or_else(|| "?".to_owned()))
        });
        line("limits", limits.join(", "))?;
        line("confined", confinement_text(self))?;
        line(
            "TCP",
            format!(
                "congestion control {}, default qdisc {}",
                or_unknown(&network.congestion_control),
                or_unknown(&network.default_qdisc)
            ),
        )?;
        match &network.interface {
            Fact::Known(interface) => line("interface", interface_text(interface))?,
            Fact::Absent { absent } => line("interface", format!("unknown ({absent})"))?,
        }
        match &self.sysctls {
            Fact::Known(sysctls) if sysctls.changed.is_empty() => {
                line("sysctls", "as the kernel makes them".to_owned())
            }
            Fact::Known(sysctls) => sysctls.changed.iter().try_for_each(|(key, changed)| {
                line("sysctl", format!("{key} = {} (default {})", changed.value, changed.default))
            }),
            Fact::Absent { absent } => line("sysctls", format!("unknown ({absent})")),
        }
    }
}

fn cpu_text(fingerprint: &Fingerprint) -> String {
    let cpu = &fingerprint.cpu;
    let smt = match cpu.smt.known() {
        Some(true) => "several threads per core",
        Some(false) => "one thread per core",
        None => "threads per core unknown",
    };
    format!(
        "{}, {} logical, {} online, {smt}, microcode {}",
        or_why(&cpu.model),
        or_unknown(&cpu.present),
        or_unknown(&cpu.online),
        or_unknown(&cpu.microcode)
    )
}

/// Only what is not `Not affected`.
fn mitigations_text(fingerprint: &Fingerprint) -> String {
    let Some(states) = fingerprint.mitigations.known() else {
        return or_why(&fingerprint.mitigations.clone().map(|_| ""));
    };
    let affected: Vec<_> = states
        .iter()
        .filter(|(_, state)| *state != "Not affected")
        .map(|(name, state)| format!("{name}: {state}"))
        .collect();
    if affected.is_empty() { "none needed".to_owned() } else { affected.join("; ") }
}

fn memory_text(fingerprint: &Fingerprint) -> String {
    let memory = &fingerprint.memory;
    let nodes =
        memory.nodes.known().map_or_else(|| "?".to_owned(), |nodes| nodes.len().to_string());
    format!(
        "{}, swap {}, NUMA nodes {nodes}, transparent huge pages {}",
        or_why(&memory.total_bytes.clone().map(gib)),
        or_unknown(&memory.swap_bytes.clone().map(gib)),
        or_unknown(&memory.transparent_huge_pages)
    )
}

fn confinement_text(fingerprint: &Fingerprint) -> String {
    let confinement = &fingerprint.confinement;
    let cpus = confinement.cpu_limit.clone().map(|limit| match limit {
        Some(cpus) => format!("{cpus:.2} CPUs"),
        None => "none".to_owned(),
    });
    let memory = confinement.memory_limit_bytes.clone().map(|limit| match limit {
        Some(bytes) => gib(bytes),
        None => "none".to_owned(),
    });
    let namespaces = confinement
        .own_namespaces
        .clone()
        .map(|own| if own.is_empty() { "none".to_owned() } else { own.join(" ") });
    format!(
        "hypervisor {}, container {}, own namespaces {}, CPUs {}, CPU limit {}, memory limit {}, \
         io_uring_disabled {}",
        or_unknown(&confinement.hypervisor),
        confinement.container,
        or_unknown(&namespaces),
        or_unknown(&confinement.cpus_allowed),
        or_unknown(&cpus),
        or_unknown(&memory),
        or_unknown(&confinement.io_uring_disabled)
    )
}

fn interface_text(interface: &Interface) -> String {
    let speed = match interface.speed_mbit.known() {
        Some(speed) => format!(", {speed} Mbit/s"),
        None => String::new(),
    };
    let on = |map: &std::collections::BTreeMap<String, String>| {
        let on: Vec<_> =
            map.iter().filter(|(_, state)| *state == "on").map(|(name, _)| name.as_str()).collect();
        on.join(" ")
    };
    format!(
        "{}, driver {}{speed}, MTU {}, qdisc {}, queues {} rx {} tx, on: {}",
        interface.name,
        or_unknown(&interface.driver),
        or_unknown(&interface.mtu),
        or_unknown(&interface.qdisc.clone().map(|kinds| kinds.join(" of "))),
        or_unknown(&interface.rx_queues),
        or_unknown(&interface.tx_queues),
        or_unknown(&interface.offloads.clone().map(|map| on(&map)))
    )
}
