//! Steering: which listener of a SO_REUSEPORT group takes a new connection.
//!
//! By default the kernel hashes addresses and ports. [`attach`] replaces that by a small classic BPF
//! program which the kernel runs on the CPU that handles the SYN, and which answers with the index of
//! that CPU's listener. Then a connection is handled by one CPU from the interrupt to the response, if
//! and only if the NIC interrupts that CPU: [`queues`] finds out.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::socket::{setsockopt, sockopt};

use super::count_call;

/// CPUs that one program can tell apart: the kernel takes 4096 instructions (BPF_MAXINSNS), two for
/// each CPU and three around them.
pub const CPUS_MAX: usize = (4096 - 3) / 2;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const MODULO: u16 = (libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K) as u16;
const RETURN_CONSTANT: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const RETURN_ACCUMULATOR: u16 = (libc::BPF_RET | libc::BPF_A) as u16;
/// Not a packet's byte but the CPU's number.
const CPU: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_CPU) as u32;

/// Makes the group that `listener` belongs to steer by CPU: listener `i`, counted in the order in
/// which the group was bound, takes the connections whose SYN ran on `cpus[i]`. A SYN on another CPU
/// goes to `cpu % cpus.len()`.
///
/// Needs no privilege. Attaching to one listener counts for all; none of them may be closed while
/// the group lives, for the last one would take its place in the order.
///
/// # Errors
/// `InvalidInput` when there are no CPUs or more than [`CPUS_MAX`]; otherwise what the kernel says.
pub fn attach(listener: impl AsFd, cpus: &[usize]) -> io::Result<()> {
    let mut program = program(cpus)?;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).expect("CPUS_MAX keeps a program below 4096"),
        filter: program.as_mut_ptr(),
    };
    count_call();
    Ok(setsockopt(&listener, sockopt::AttachReusePortCbpf, &filter)?)
}

/// `cpu == cpus[i] → i`, for each `i` in turn; otherwise `cpu % n`.
fn program(cpus: &[usize]) -> io::Result<Vec<libc::sock_filter>> {
    if cpus.is_empty() || cpus.len() > CPUS_MAX {
        let message = format!("steering knows 1 to {CPUS_MAX} CPUs, not {}", cpus.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![instruction(LOAD_WORD, 0, 0, CPU)];
    // Where CPU i has listener i the remainder alone says so, however many there are.
    let identity = cpus.iter().enumerate().all(|(index, &cpu)| index == cpu);
    if !identity {
        for (index, &cpu) in (0_u32..).zip(cpus) {
            let cpu = u32::try_from(cpu).map_err(io::Error::other)?;
            program.push(instruction(JUMP_IF_EQUAL, 0, 1, cpu));
            program.push(instruction(RETURN_CONSTANT, 0, 0, index));
        }
    }
    program.push(instruction(MODULO, 0, 0, cpus.len() as u32));
    program.push(instruction(RETURN_ACCUMULATOR, 0, 0, 0));
    Ok(program)
}

/// The receive queues of one network device.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Queues {
    /// The device's name.
    pub device: String,
    /// CPUs that take an interrupt of a receive queue, ascending.
    pub cpus: Vec<usize>,
    /// Whether the kernel moves packets on to other CPUs (RPS): then the CPU of the interrupt is not
    /// the one that handles the SYN.
    pub rps: bool,
}

/// The network devices that are up and have interrupts of their own, by name. Loopback, bridges,
/// tunnels and devices whose interrupts cannot be told are not among them.
///
/// Reads `/sys/class/net`, `/proc/interrupts` and `/proc/irq` beneath `root`, which is `/` save in
/// tests.
pub fn queues(root: &Path) -> Vec<Queues> {
    let interrupts = fs::read_to_string(root.join("proc/interrupts")).unwrap_or_default();
    let Ok(devices) = fs::read_dir(root.join("sys/class/net")) else { return Vec::new() };
    let mut all: Vec<Queues> = devices
        .flatten()
        .filter_map(|device| queues_of_device(root, &device.path(), &interrupts))
        .collect();
    all.sort_by(|a, b| a.device.cmp(&b.device));
    all
}

/// Whether steering by CPU brings each connection to the CPU that its packets arrive on: some device
/// interrupts CPUs, and each device that does interrupts each of `cpus`.
///
/// # Errors
/// The reason why not, as a clause to be shown.
pub fn covers(queues: &[Queues], cpus: &[usize]) -> Result<(), String> {
    if queues.is_empty() {
        return Err("no network device with interrupts of its own is up".into());
    }
    for Queues { device, cpus: interrupted, rps } in queues {
        if *rps {
            return Err(format!("{device} spreads packets by RPS"));
        }
        if let Some(cpu) = cpus.iter().find(|cpu| !interrupted.contains(cpu)) {
            return Err(format!("no receive queue of {device} interrupts CPU {cpu}"));
        }
    }
    Ok(())
}

fn queues_of_device(root: &Path, device: &Path, interrupts: &str) -> Option<Queues> {
    let up = fs::read_to_string(device.join("operstate")).ok()?;
    // Drivers that do not report a state ("unknown") may well be up; loopback has no interrupts.
    if up.trim() == "down" {
        return None;
    }
    // A virtio device's interrupts are listed with the PCI device it sits on.
    let bus = fs::canonicalize(device.join("device")).ok()?;
    let list = [Some(bus.as_path()), bus.parent()]
        .into_iter()
        .flatten()
        .find_map(|bus| fs::read_dir(bus.join("msi_irqs")).ok())?;
    let cpus: BTreeSet<usize> = list
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&irq| action(interrupts, irq).is_some_and(is_receive_queue))
        .flat_map(|irq| {
            let path = format!("proc/irq/{irq}/effective_affinity_list");
            let list = fs::read_to_string(root.join(path)).unwrap_or_default();
            parse_kernel_list(&list).unwrap_or_default()
        })
        .collect();
    let rps = fs::read_dir(device.join("queues")).is_ok_and(|queues| {
        queues.flatten().any(|queue| {
            fs::read_to_string(queue.path().join("rps_cpus")).is_ok_and(|mask| {
                mask.bytes().any(|byte| matches!(byte, b'1'..=b'9' | b'a'..=b'f'))
            })
        })
    });
    let name = device.file_name()?.to_str()?.to_owned();
    (!cpus.is_empty()).then(|| Queues { device: name, cpus: cpus.into_iter().collect(), rps })
}

/// What `/proc/interrupts` calls an interrupt: the last word of its line.
fn action(interrupts: &str, irq: u32) -> Option<&str> {
    let irq = irq.to_string();
    let line = interrupts.lines().find(|line| {
        line.trim_start().strip_prefix(&irq).is_some_and(|rest| rest.starts_with(':'))
    })?;
    line.split_whitespace().next_back()
}

/// Whether a driver's name for an interrupt is that of a receive queue: `virtio0-input.0`,
/// `eth0-TxRx-0`, `ens5-Tx-Rx-0`, `mlx5_comp0@pci:0000:3b:00.0`; but not `virtio0-config`,
/// `virtio0-output.0`, `eth0-tx-0`, `mlx5_async0@…`, `ena-mgmnt@…`, nor the bare `eth0`, which is
/// what several drivers call the interrupt of a change of link.
fn is_receive_queue(action: &str) -> bool {
    let name = action.split('@').next().unwrap_or(action).to_ascii_lowercase();
    let has_any = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let numbered = name.ends_with(|last: char| last.is_ascii_digit());
    let bare_device = !name.contains(['-', '.', '_']);
    let other = ["tx", "output", "async", "mgmnt", "mbx", "misc", "config", "ctrl"];
    numbered && !bare_device && (has_any(&["rx", "input", "comp"]) || !has_any(&other))
}

/// The kernel's own form of a set of CPUs: `0-3,8`. (What people write is read by `config::units`,
/// which says where they went wrong.)
fn parse_kernel_list(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;
    use crate::sys::affinity::{allowed_cpus, pin};
    use crate::sys::socket::{ListenOptions, accept_nonblocking, listen, local_addr};

    /// What the kernel would answer for a SYN on `cpu`.
    fn run(program: &[libc::sock_filter], cpu: u32) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            match code {
                LOAD_WORD if k == CPU => accumulator = cpu,
                JUMP_IF_EQUAL => at += usize::from(if accumulator == k { jt } else { jf }),
                MODULO => accumulator %= k,
                RETURN_CONSTANT => return k,
                RETURN_ACCUMULATOR => return accumulator,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    proptest! {
        #[test]
        fn each_cpu_finds_its_listener(
            cpus in prop::collection::btree_set(0_usize..256, 1..40).prop_map(Vec::from_iter).prop_shuffle(),
            other in 0_u32..1024,
        ) {
            let program = program(&cpus).expect("a program");
            for (index, &cpu) in cpus.iter().enumerate() {
                prop_assert_eq!(run(&program, cpu as u32) as usize, index);
            }
            prop_assert!((run(&program, other) as usize) < cpus.len());
        }
    }

    #[test]
    fn consecutive_cpus_need_no_table() {
        let cpus: Vec<usize> = (0..128).collect();
        let program = program(&cpus).expect("a program");
        assert_eq!(program.len(), 3);
        assert!((0..128).all(|cpu| run(&program, cpu) == cpu));
    }

    #[test]
    fn the_largest_program_fits_and_the_next_is_refused() {
        let cpus: Vec<usize> = (1..=CPUS_MAX).collect();
        assert!(program(&cpus).expect("a program").len() <= 4096);
        let more: Vec<usize> = (1..=CPUS_MAX + 1).collect();
        assert!(program(&more).is_err());
        assert!(program(&[]).is_err());
    }

    #[test]
    fn the_kernel_steers_by_the_clients_cpu_on_loopback() {
        // Reversed, so that the table is used where the CPUs are 0, 1, …
        let cpus: Vec<usize> = allowed_cpus().into_iter().rev().collect();
        let options = ListenOptions { reuse_port: true, defer_accept_s: 0, backlog: 64 };
        let first = listen(SocketAddr::from(([127, 0, 0, 1], 0)), &options).expect("listen");
        let address = local_addr(&first).expect("address");
        let mut group = vec![first];
        group.extend(cpus.iter().skip(1).map(|_| listen(address, &options).expect("listen")));
        attach(&group[0], &cpus).expect("attach");

        for (index, &cpu) in cpus.iter().enumerate() {
            let clients = std::thread::spawn(move || {
                pin(cpu).expect("an allowed CPU");
                (0..8).map(|_| TcpStream::connect(address).expect("connect")).collect::<Vec<_>>()
            });
            let clients = clients.join().expect("no panic");
            let taken: Vec<usize> = group.iter().map(drain).collect();
            assert_eq!(taken[index], clients.len(), "CPU {cpu}: {taken:?}");
        }
    }

    fn drain(listener: &OwnedFd) -> usize {
        std::iter::from_fn(|| accept_nonblocking(listener).expect("accept")).count()
    }

    #[test]
    fn names_of_interrupts() {
        for name in [
            "virtio2-input.0",
            "eth0-TxRx-3",
            "ens5-Tx-Rx-0",
            "i40e-eth0-TxRx-1",
            "iavf-eth0-TxRx-0",
            "ice-ens1-TxRx-7",
            "mlx5_comp0@pci:0000:3b:00.0",
            "bnxt-eth0-rx-0",
            "eth0-0",
            "gve-ntfy-blk0@pci:0000:00:04.0",
        ] {
            assert!(is_receive_queue(name), "{name}");
        }
        for name in [
            "virtio2-config",
            "virtio2-output.0",
            "eth0-tx-0",
            "mlx5_async0@pci:0000:3b:00.0",
            "ena-mgmnt@pci:0000:00:05.0",
            "eth0",
            "iavf-0000:00:05.0:mbx",
        ] {
            assert!(!is_receive_queue(name), "{name}");
        }
    }

    #[test]
    fn kernel_lists() {
        assert_eq!(parse_kernel_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_kernel_list("\n"), Some(vec![]));
        assert_eq!(parse_kernel_list("x"), None);
    }

    /// An interrupt's number, its action and its CPUs.
    type Interrupt<'a> = (u32, &'a str, &'a str);

    /// A host with these devices, up or down, and their interrupts.
    fn host(devices: &[(&str, bool, &[Interrupt])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("tempdir");
        let write = |path: String, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        };
        let mut interrupts = String::from("           CPU0       CPU1\n  1:   9   0   timer\n");
        for (device, up, irqs) in devices {
            write(format!("sys/class/net/{device}/operstate"), if *up { "up\n" } else { "down\n" });
            write(format!("sys/class/net/{device}/queues/rx-0/rps_cpus"), "00000000,00000000\n");
            if irqs.is_empty() {
                continue;
            }
            write(format!("sys/devices/pci-{device}/virtio/uevent"), "");
            let link = root.path().join(format!("sys/class/net/{device}/device"));
            symlink(format!("../../../devices/pci-{device}/virtio"), link).expect("link");
            for (irq, action, cpus) in *irqs {
                write(format!("sys/devices/pci-{device}/msi_irqs/{irq}"), "msix\n");
                write(format!("proc/irq/{irq}/effective_affinity_list"), cpus);
                interrupts += &format!(" {irq}:  0  7  PCI-MSIX-0000:00:03.0  1-edge  {action}\n");
            }
        }
        write("proc/interrupts".into(), &interrupts);
        root
    }

    #[test]
    fn a_queue_for_each_cpu_is_seen() {
        let root = host(&[
            ("lo", true, &[]),
            (
                "eth0",
                true,
                &[
                    (10, "virtio0-config", "3"),
                    (11, "virtio0-input.0", "0"),
                    (12, "virtio0-output.0", "2"),
                    (13, "virtio0-input.1", "1"),
                ],
            ),
            ("eth1", false, &[(21, "virtio1-input.0", "0")]),
        ]);
        let found = queues(root.path());
        assert_eq!(found, [Queues { device: "eth0".into(), cpus: vec![0, 1], rps: false }]);
        assert_eq!(covers(&found, &[0, 1]), Ok(()));
        assert_eq!(covers(&found, &[1]), Ok(()));
        assert_eq!(
            covers(&found, &[0, 2]),
            Err("no receive queue of eth0 interrupts CPU 2".into())
        );
    }

    #[test]
    fn loopback_alone_is_no_reason_to_steer() {
        assert_eq!(queues(host(&[("lo", true, &[])]).path()), []);
        assert!(covers(&[], &[0]).is_err());
        assert_eq!(queues(Path::new("/nonexistent")), []);
    }

    #[test]
    fn rps_defeats_steering() {
        let root = host(&[("eth0", true, &[(11, "virtio0-input.0", "0")])]);
        let mask = root.path().join("sys/class/net/eth0/queues/rx-0/rps_cpus");
        fs::write(mask, "00000000,00000003\n").expect("write");
        let found = queues(root.path());
        assert_eq!(covers(&found, &[0]), Err("eth0 spreads packets by RPS".into()));
    }
}
