//! `onering doctor`: can this host run onering well? Each thing that stands in the way is named with
//! the command that removes it. Changes nothing.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::{Exit, Failure};
use crate::config::defaults;
use crate::ring::{Capabilities, Ring, Setup, SetupError};
use crate::sys::affinity;
use crate::sys::environment::{Environment, Seccomp};
use crate::sys::ktls::{self, Support, Unavailable};
use crate::sys::limits::{self, Limit};
use crate::sys::steering::{self, Queues};

const AFTER_HELP: &str = "\
Examples:
  onering doctor
  onering doctor --json | jq '.checks[] | select(.verdict != \"good\")'

Exit codes: 0 when onering runs here, even if not at its best; 3 when something that it needs is
missing.";

/// Tell whether this host can run onering well, and what to do where it cannot.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// As it should be.
    Good,
    /// Works, but not as well as it could.
    Advice,
    /// The server does not start.
    Fatal,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    /// What was found.
    found: String,
    /// What to do about it.
    fix: Option<String>,
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
struct Report<'h> {
    checks: Vec<Check>,
    /// The bare facts, for those who want to judge for themselves.
    environment: &'h Environment,
}

/// What the checks are made from.
struct Host {
    environment: Environment,
    /// The features of a ring as a shard would make it, and whether its buffers could be registered.
    ring: Result<(Capabilities, bool), SetupError>,
    nofile: io::Result<Limit>,
    memlock: io::Result<Limit>,
    cpus: Vec<usize>,
    queues: Vec<Queues>,
    ktls: Result<Support, Unavailable>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let host = Host::examine();
    let report = Report { checks: host.checks(), environment: &host.environment };
    let text = if args.json {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::new(Exit::Environment, error))?;
        json + "\n"
    } else {
        report.as_text()
    };
    super::print(&text)?;
    match host.ring {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::new(Exit::Environment, "onering does not run here")),
    }
}

impl Host {
    fn examine() -> Self {
        let root = Path::new("/");
        let setup = Setup {
            entries: defaults::RING_ENTRIES,
            recv_buffers: defaults::RECV_BUFFERS,
            recv_buffer_bytes: defaults::RECV_BUFFER_BYTES,
            fixed_buffers: defaults::FIXED_BUFFERS,
            fixed_buffer_bytes: defaults::COLD_WINDOW_BYTES,
            min_wait: defaults::MIN_WAIT,
        };
        Self {
            environment: Environment::read(root),
            ring: Ring::new(&setup).map(|ring| (*ring.capabilities(), ring.arena_registered())),
            nofile: limits::nofile(),
            memlock: limits::memlock(),
            cpus: affinity::allowed_cpus(),
            queues: steering::queues(root),
            ktls: ktls::available(),
        }
    }

    fn checks(&self) -> Vec<Check> {
        let mut checks = vec![self.kernel(), self.io_uring()];
        checks.extend(self.features());
        checks.extend([self.memlock(), self.nofile(), self.cpus(), self.nic_queues()]);
        checks.extend([self.backlog(), self.congestion_control(), self.ktls()]);
        checks
    }

    fn kernel(&self) -> Check {
        let release = self.environment.kernel_release.as_deref().unwrap_or("unknown");
        good("kernel", format!("Linux {release}; what it can do was tried, not read from this"))
    }

    fn io_uring(&self) -> Check {
        let confined = match self.environment.seccomp {
            Some(Seccomp::Filter) => "; a seccomp filter is in force and lets it through",
            _ => "",
        };
        match &self.ring {
            Ok((capabilities, _)) => {
                let entries = capabilities.entries;
                good("io_uring", format!("a ring of {entries} entries was set up{confined}"))
            }
            Err(error) => {
                let message = error.to_string();
                let (found, fix) = match message.split_once("fix: ") {
                    Some((found, fix)) => (found.trim_end().to_owned(), Some(fix.to_owned())),
                    None => (message, None),
                };
                Check { name: "io_uring", verdict: Verdict::Fatal, found, fix }
            }
        }
    }

    fn features(&self) -> Option<Check> {
        let (capabilities, _) = self.ring.as_ref().ok()?;
        let (present, absent): (Vec<_>, Vec<_>) =
            capabilities.list().into_iter().partition(|(_, _, is_here)| *is_here);
        let name = "io_uring features";
        if absent.is_empty() {
            let names: Vec<&str> = present.iter().map(|(name, ..)| *name).collect();
            return Some(good(name, format!("all there: {}", names.join(", "))));
        }
        let absent: Vec<String> =
            absent.iter().map(|(name, since, _)| format!("{name} (Linux {since})")).collect();
        let found = format!("does without {}", absent.join(", "));
        Some(advice(name, found, "a newer kernel; nothing breaks without"))
    }

    fn memlock(&self) -> Check {
        let name = "locked memory";
        let limit = match &self.memlock {
            Ok(Limit { soft: Limit::NONE, .. }) => "no limit".to_owned(),
            Ok(_) if self.environment.cap_ipc_lock == Some(true) => "CAP_IPC_LOCK: no limit".into(),
            Ok(Limit { soft, .. }) => format!("{} KiB for all shards together", soft >> 10),
            Err(error) => format!("unknown: {error}"),
        };
        let per_shard = usize::from(defaults::FIXED_BUFFERS) * defaults::COLD_WINDOW_BYTES;
        let wanted = (per_shard * self.cpus.len().max(1)) as u64;
        let limited = matches!(&self.memlock, Ok(limit) if limit.soft < wanted)
            && self.environment.cap_ipc_lock != Some(true);
        let registered = self.ring.as_ref().map_or(true, |(_, registered)| *registered);
        if registered && !limited {
            return good(name, limit);
        }
        let kib = (wanted >> 10).next_power_of_two().max(8192);
        advice(
            name,
            format!("{limit}; {} KiB are wanted for reads of cold files", wanted >> 10),
            format!(
                "`ulimit -l {kib}`; systemd: `LimitMEMLOCK={kib}K`; Docker: `--ulimit memlock=-1`"
            ),
        )
    }

    fn nofile(&self) -> Check {
        let name = "open files";
        match &self.nofile {
            Ok(limit) if limit.hard >= NOFILE_AMPLE => {
                good(name, format!("up to {} (raised from {} at start)", limit.hard, limit.soft))
            }
            Ok(limit) => advice(
                name,
                format!("up to {}, shared by connections and cached files", limit.hard),
                "systemd: `LimitNOFILE=524288`; Docker: `--ulimit nofile=524288`; a shell: \
                 `ulimit -n 524288` as root",
            ),
            Err(error) => advice(name, format!("unknown: {error}"), "see `ulimit -n`"),
        }
    }

    fn cpus(&self) -> Check {
        match self.cpus.len() {
            0 => advice("CPUs", "unknown".into(), "name them: `--cpus 0`"),
            _ => good("CPUs", format!("may run on {}", shown(&self.cpus))),
        }
    }

    fn nic_queues(&self) -> Check {
        let name = "NIC queues";
        let devices: Vec<String> = self
            .queues
            .iter()
            .map(|queues| format!("{} interrupts CPU {}", queues.device, shown(&queues.cpus)))
            .collect();
        match steering::covers(&self.queues, &self.cpus) {
            Ok(()) => good(name, format!("{}: steered by CPU", devices.join("; "))),
            Err(why) if self.queues.is_empty() => good(name, format!("{why}: steered by hash")),
            Err(why) => {
                let device = &self.queues[0].device;
                let count = self.cpus.len();
                let fix = if self.queues.iter().any(|queues| queues.rps) {
                    format!("`echo 0 | tee /sys/class/net/{device}/queues/rx-*/rps_cpus`")
                } else {
                    format!(
                        "`ethtool -L {device} combined {count}` if the device has that many, and one \
                         interrupt for each CPU (`/proc/irq/*/smp_affinity_list`); or serve on the \
                         CPUs that are interrupted: `--cpus`"
                    )
                };
                advice(name, format!("{}; {why}: steered by hash", devices.join("; ")), fix)
            }
        }
    }

    fn backlog(&self) -> Check {
        let name = "accept queue";
        match self.environment.somaxconn {
            Some(limit) if limit < defaults::BACKLOG as u64 => advice(
                name,
                format!(
                    "net.core.somaxconn = {limit} shortens the backlog of {}",
                    defaults::BACKLOG
                ),
                format!("`sysctl -w net.core.somaxconn={}`", defaults::BACKLOG),
            ),
            Some(limit) => good(name, format!("net.core.somaxconn = {limit}")),
            None => advice(name, "net.core.somaxconn is unknown".into(), "mount /proc"),
        }
    }

    fn congestion_control(&self) -> Check {
        let name = "congestion control";
        match self.environment.congestion_control.as_deref() {
            // 100 KiB over loopback: 24 300 answers/s against 42 800 with cubic.
            Some("bbr") => advice(
                name,
                "bbr paces by timer, which halves the rate of large answers on short, fast paths"
                    .into(),
                "`sysctl -w net.ipv4.tcp_congestion_control=cubic`, unless clients are far away",
            ),
            Some(control) => good(name, control.into()),
            None => advice(name, "unknown".into(), "mount /proc"),
        }
    }

    fn ktls(&self) -> Check {
        let name = "kernel TLS";
        let why = match self.ktls {
            Ok(Support { chacha20_poly1305, rekey }) => {
                let ciphers = match chacha20_poly1305 {
                    true => "AES-GCM, ChaCha20-Poly1305",
                    false => "AES-GCM",
                };
                let rekeys = match rekey {
                    true => "keys of a connection can be changed",
                    false => {
                        "a connection ends where its keys would have to be changed (Linux 6.14)"
                    }
                };
                return good(name, format!("seals what is sent: {ciphers}; {rekeys}"));
            }
            Err(why) => why,
        };
        let fix = match why {
            Unavailable::NotLoaded => LOAD_TLS.into(),
            Unavailable::NotLoadedOrNotBuilt => {
                format!("{LOAD_TLS}; outside, if this is a container")
            }
            Unavailable::NotBuilt => "a kernel with CONFIG_TLS; nothing breaks without".into(),
            Unavailable::NoCipher => "`modprobe gcm`, or a kernel with CONFIG_CRYPTO_GCM".into(),
            Unavailable::Forbidden => {
                "let the sandbox allow setsockopt(2) of TCP_ULP and of level SOL_TLS".into()
            }
            Unavailable::Failed(_) => "`dmesg` may say more; nothing breaks without".to_owned(),
        };
        advice(name, format!("{why}: onering seals by itself, and sendfile(2) is not used"), fix)
    }
}

/// How the kernel's TLS is loaded, now and at every start of the host.
const LOAD_TLS: &str = "`modprobe tls`, and `echo tls >/etc/modules-load.d/tls.conf` as root";

/// Descriptors with which nobody runs short: systemd's own default of the hard limit.
const NOFILE_AMPLE: u64 = 524_288;

fn good(name: &'static str, found: String) -> Check {
    Check { name, verdict: Verdict::Good, found, fix: None }
}

fn advice(name: &'static str, found: String, fix: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Advice, found, fix: Some(fix.into()) }
}

fn shown(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

impl Report<'_> {
    fn as_text(&self) -> String {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for Check { name, verdict, found, fix } in &self.checks {
            let mark = match verdict {
                Verdict::Good => "ok    ",
                Verdict::Advice => "advice",
                Verdict::Fatal => "FATAL ",
            };
            text += &format!("{mark}  {name:width$}  {found}\n");
            if let Some(fix) = fix {
                text += &format!("        {:width$}  fix: {fix}\n", "");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::environment::IoUringPolicy;

    /// A host that leaves nothing to wish for.
    fn ideal() -> Host {
        Host {
            environment: Environment {
                kernel_release: Some("6.18.0".into()),
                io_uring: IoUringPolicy::Everyone,
                io_uring_group: None,
                seccomp: Some(Seccomp::Off),
                cap_ipc_lock: Some(false),
                cap_sys_admin: Some(false),
                cap_net_bind_service: Some(false),
                somaxconn: Some(4096),
                congestion_control: Some("cubic".into()),
            },
            ring: Ok((
                Capabilities {
                    no_sqarray: true,
                    min_wait: true,
                    no_iowait: true,
                    send_zero_copy: true,
                    bundles: true,
                    entries: 1024,
                },
                true,
            )),
            nofile: Ok(Limit { soft: 1024, hard: 524_288 }),
            memlock: Ok(Limit { soft: 8 << 20, hard: 8 << 20 }),
            cpus: vec![0, 1],
            queues: vec![Queues { device: "eth0".into(), cpus: vec![0, 1], rps: false }],
            ktls: Ok(Support { chacha20_poly1305: true, rekey: true }),
        }
    }

    /// The only check that is not good.
    #[track_caller]
    fn only_finding(host: &Host) -> Check {
        let findings: Vec<Check> =
            host.checks().into_iter().filter(|check| check.verdict != Verdict::Good).collect();
        let [finding] = &findings[..] else { panic!("{findings:#?}") };
        finding.clone()
    }

    #[test]
    fn an_ideal_host_has_nothing_to_fix() {
        let checks = ideal().checks();
        assert!(checks.iter().all(|check| check.verdict == Verdict::Good), "{checks:#?}");
    }

    #[test]
    fn each_finding_carries_its_fix() {
        type Spoil = fn(&mut Host);
        let spoilt: [(Spoil, &str, &str); 12] = [
            (
                |host| host.memlock = Ok(Limit { soft: 65_536, hard: 65_536 }),
                "locked memory",
                "`ulimit -l 8192`",
            ),
            (
                |host| host.nofile = Ok(Limit { soft: 1024, hard: 4096 }),
                "open files",
                "`LimitNOFILE=524288`",
            ),
            (|host| host.cpus.clear(), "CPUs", "`--cpus 0`"),
            (|host| host.cpus.push(2), "NIC queues", "`ethtool -L eth0 combined 3`"),
            (|host| host.queues[0].rps = true, "NIC queues", "rps_cpus`"),
            (
                |host| host.environment.somaxconn = Some(128),
                "accept queue",
                "`sysctl -w net.core.somaxconn=4096`",
            ),
            (
                |host| host.environment.congestion_control = Some("bbr".into()),
                "congestion control",
                "=cubic`",
            ),
            (
                |host| host.ring.as_mut().expect("ideal").0.min_wait = false,
                "io_uring features",
                "a newer kernel",
            ),
            (|host| host.ktls = Err(Unavailable::NotLoaded), "kernel TLS", "`modprobe tls`"),
            (
                |host| host.ktls = Err(Unavailable::NotLoadedOrNotBuilt),
                "kernel TLS",
                "/etc/modules-load.d/tls.conf",
            ),
            (|host| host.ktls = Err(Unavailable::NotBuilt), "kernel TLS", "CONFIG_TLS"),
            (|host| host.ktls = Err(Unavailable::Forbidden), "kernel TLS", "TCP_ULP"),
        ];
        for (spoil, name, fix) in spoilt {
            let mut host = ideal();
            spoil(&mut host);
            let finding = only_finding(&host);
            assert_eq!((finding.name, finding.verdict), (name, Verdict::Advice));
            let said = finding.fix.expect("a fix");
            assert!(said.contains(fix), "{name}: {said}");
        }
    }

    #[test]
    fn without_io_uring_the_cause_and_the_remedy_are_told() {
        let mut host = ideal();
        host.ring = Err(SetupError::Disabled { level: 2 });
        let finding = only_finding(&host);
        assert_eq!((finding.name, finding.verdict), ("io_uring", Verdict::Fatal));
        assert!(finding.found.contains("kernel.io_uring_disabled = 2"), "{finding:?}");
        assert!(!finding.found.ends_with(char::is_whitespace));
        assert!(finding.fix.expect("a fix").contains("sysctl -w kernel.io_uring_disabled=0"));
    }

    #[test]
    fn a_privilege_makes_up_for_the_memlock_limit() {
        let mut host = ideal();
        host.memlock = Ok(Limit { soft: 0, hard: 0 });
        host.environment.cap_ipc_lock = Some(true);
        let checks = host.checks();
        assert!(checks.iter().all(|check| check.verdict == Verdict::Good), "{checks:#?}");
    }

    #[test]
    fn the_report_reads_well() {
        let report = Report {
            checks: vec![good("a", "fine".into()), advice("long", "poor".into(), "do this")],
            environment: &ideal().environment,
        };
        let expected = "ok      a     fine\nadvice  long  poor\n              fix: do this\n";
        assert_eq!(report.as_text(), expected);
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(json["checks"][1]["verdict"], "advice");
        assert_eq!(json["environment"]["somaxconn"], 4096);
        assert_eq!(json["checks"][0]["fix"], serde_json::Value::Null);
    }
}
