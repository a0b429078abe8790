//! Fingerprints of made-up machines, and of this one.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A made-up machine: files beneath a root, the text of each as the kernel would have it.
struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn fingerprint(&self) -> Fingerprint {
        let target = Some("127.0.0.1".parse().unwrap());
        let command = vec!["onering-bench".into(), "run".into()];
        Fingerprint::read_beneath(self.0.path(), Subject { target, command, programs: vec![] })
    }
}

fn server() -> Machine {
    let machine = Machine::new(&[
        ("proc/sys/kernel/osrelease", "6.12.4-test\n"),
        ("proc/sys/kernel/version", "#1 SMP\n"),
        ("proc/cmdline", "root=/dev/sda quiet\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Example 9000\nmicrocode\t: 0x12\nflags\t\t: fpu vme\n\
             \nprocessor\t: 1\nmodel name\t: Example 9000\n",
        ),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/smt/active", "1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-1\n"),
        ("sys/devices/system/cpu/cpu1/online", "1\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
        ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\nSwapTotal: 0 kB\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16777216 kB\n"),
        ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n"),
        (
            "proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max locked memory         8388608              unlimited            bytes     \n\
             Max open files            1024                 524288               files     \n",
        ),
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/a/memory.max", "max\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/b/memory.max", "1073741824\n"),
        ("proc/sys/kernel/io_uring_disabled", "0\n"),
        ("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/sys/net/ipv4/tcp_mem", "1\t2\t3\n"),
        ("proc/sys/net/core/default_qdisc", "fq\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
        ("proc/sys/vm/swappiness", "10\n"),
        ("sys/class/net/lo/mtu", "65536\n"),
        ("sys/class/net/lo/queues/rx-0/rps_cpus", "0\n"),
        ("sys/class/net/lo/queues/tx-0/xps_cpus", "0\n"),
        ("sys/class/net/lo/threaded", "0\n"),
    ]);
    for kind in ["cgroup", "ipc", "mnt", "pid", "user", "uts"] {
        machine.link(&format!("proc/1/ns/{kind}"), &format!("{kind}:[4026531836]"));
        machine.link(&format!("proc/self/ns/{kind}"), &format!("{kind}:[4026531836]"));
    }
    machine.link("proc/1/ns/net", "net:[4026531833]");
    machine.link("proc/self/ns/net", "net:[4026532000]");
    machine
}

fn known<T: Clone>(fact: &Fact<T>) -> T {
    fact.known().unwrap().clone()
}

#[test]
fn a_machine_is_read_from_its_files() {
    let fingerprint = server().fingerprint();
    let Fingerprint { kernel, cpu, memory, confinement, network, .. } = &fingerprint;
    assert_eq!(known(&kernel.release), "6.12.4-test");
    assert_eq!(known(&cpu.model), "Example 9000");
    assert_eq!(known(&cpu.present), 2);
    assert!(known(&cpu.smt));
    assert_eq!(known(&cpu.governor), "performance, powersave");
    assert_eq!(known(&cpu.microcode), "0x12");
    let cache = Cache { level: 1, kind: "Data".into(), size: "32K".into(), cpus: "0-1".into() };
    assert_eq!(known(&cpu.caches), [cache]);
    assert_eq!(known(&fingerprint.mitigations)["spectre_v2"], "Mitigation: Retpolines");
    assert_eq!(known(&fingerprint.clock_source), "tsc");
    assert_eq!(known(&memory.total_bytes), 16 << 30);
    assert_eq!(known(&memory.transparent_huge_pages), "madvise");
    assert_eq!(known(&known(&memory.nodes)[0].total_bytes), 16 << 30);
    assert_eq!(known(&confinement.hypervisor), "none");
    assert_eq!(confinement.container, "none");
    assert_eq!(known(&confinement.own_namespaces), ["net"]);
    assert_eq!(known(&confinement.open_files).soft, "1024");
    assert_eq!(known(&confinement.locked_memory).hard, "unlimited");
    assert_eq!(known(&network.congestion_control), "bbr");
    let interface = known(&network.interface);
    assert!(interface.loopback && interface.name == "lo");
    assert_eq!(known(&interface.mtu), 65536);
    assert_eq!(known(&interface.rx_queues), 1);
}

#[test]
fn the_tightest_control_group_counts() {
    let confinement = server().fingerprint().confinement;
    assert_eq!(known(&confinement.cpu_limit), Some(1.5));
    assert_eq!(known(&confinement.memory_limit_bytes), Some(1 << 30));
    let first_version = Machine::new(&[
        ("proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/c\n0::/\n"),
        ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"),
        ("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
    ]);
    let confinement = first_version.fingerprint().confinement;
    assert_eq!(known(&confinement.cpu_limit), Some(0.5));
    assert_eq!(known(&confinement.memory_limit_bytes), None);
    let unlimited = Machine::new(&[("proc/self/cgroup", "2:cpu:/\n")]);
    unlimited.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    assert_eq!(known(&unlimited.fingerprint().confinement.cpu_limit), None);
}

#[test]
fn sysctls_that_differ_are_told_with_the_default_of_the_kernels_release() {
    let machine = server();
    let sysctls = known(&machine.fingerprint().sysctls);
    let keys: Vec<_> = sysctls.changed.keys().map(String::as_str).collect();
    let expected = ["net.core.default_qdisc", "net.ipv4.tcp_congestion_control", "vm.swappiness"];
    assert_eq!(keys, expected);
    assert_eq!(sysctls.changed["vm.swappiness"].default, "60");
    assert!(sysctls.changed["vm.swappiness"].source.contains("vm.rst"));
    assert_eq!(sysctls.computed["net.ipv4.tcp_mem"], "1 2 3");
    // Six megabytes were the default until 6.16.
    machine.write("proc/sys/kernel/osrelease", "6.18.1\n");
    let sysctls = known(&machine.fingerprint().sysctls);
    assert_eq!(sysctls.changed["net.ipv4.tcp_rmem"].default, "4096 131072 33554432");
}

#[test]
fn containers_and_virtual_machines_are_told() {
    let machine = server();
    machine.write("proc/cpuinfo", "model name : X\nflags : fpu hypervisor lm\n");
    machine.write("sys/class/dmi/id/sys_vendor", "QEMU\n");
    machine.write("run/.containerenv", "");
    let confinement = machine.fingerprint().confinement;
    assert_eq!(known(&confinement.hypervisor), "QEMU");
    assert_eq!(confinement.container, "podman");
    let pod = Machine::new(&[("proc/self/cgroup", "0::/kubepods/besteffort/pod1\n")]);
    assert_eq!(pod.fingerprint().confinement.container, "kubernetes");
    let bare = Machine::new(&[]);
    bare.link("proc/self/ns/pid", "pid:[4026532999]");
    let container = bare.fingerprint().confinement.container;
    assert_eq!(container, "a process-id namespace of its own");
}

#[test]
fn of_an_empty_tree_everything_is_absent_with_the_reason_and_the_text_still_stands() {
    let empty = Machine::new(&[]).fingerprint();
    let Fact::Absent { absent } = &empty.kernel.release else { panic!("{empty:?}") };
    assert!(absent.starts_with("/proc/sys/kernel/osrelease: "), "{absent}");
    assert!(empty.sysctls.known().is_none() && empty.cpu.smt.known().is_none());
    assert!(empty.one_line().starts_with("Linux ?, ? × ?, ?, ? over lo"), "{}", empty.one_line());
    assert!(empty.to_string().contains("governor     unknown (/sys/devices"), "{empty}");
}

#[test]
fn json_reads_back_as_it_was() {
    for fingerprint in [server().fingerprint(), Machine::new(&[]).fingerprint(), here()] {
        let json = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), fingerprint, "{json}");
    }
}

#[test]
fn what_is_unlike_is_named() {
    let machine = server();
    let first = machine.fingerprint();
    assert_eq!(difference(&first, &first), []);
    machine.write("proc/sys/kernel/osrelease", "6.12.5-test\n");
    machine.write("proc/sys/vm/swappiness", "60\n");
    fs::remove_file(machine.0.path().join("sys/devices/system/cpu/smt/active")).unwrap();
    let unlike = difference(&first, &machine.fingerprint());
    let fields: Vec<_> = unlike.iter().map(|unlike| unlike.field.as_str()).collect();
    assert_eq!(fields, ["cpu.smt", "kernel.release", "sysctls.changed.vm.swappiness"]);
    assert_eq!(unlike[1].to_string(), r#"kernel.release: "6.12.4-test" against "6.12.5-test""#);
    assert!(unlike[2].to_string().ends_with("against nothing"), "{}", unlike[2]);
}

#[test]
fn the_text_names_what_matters() {
    let fingerprint = server().fingerprint();
    let expected = "Linux 6.12.4-test, 2 × Example 9000, 16.0 GiB, bbr over lo";
    assert_eq!(fingerprint.one_line(), expected);
    let text = fingerprint.to_string();
    for line in [
        "  mitigations  spectre_v2: Mitigation: Retpolines\n",
        "  caches       L1d 32K for 0-1\n",
        "  sysctl       vm.swappiness = 10 (default 60)\n",
        "  limits       open files 1024 up to 524288, locked bytes 8388608 up to unlimited\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

fn here() -> Fingerprint {
    let target = Some("127.0.0.1".parse().unwrap());
    let shell = Program::ask("shell", Path::new("sh"), &["-c", "echo 1.0; echo more"], vec![]);
    Fingerprint::read(Subject { target, command: vec![], programs: vec![shell] })
}

#[test]
fn this_machine_answers_and_answers_the_same_again() {
    let fingerprint = here();
    assert!(fingerprint.kernel.release.known().is_some());
    assert!(known(&fingerprint.cpu.present) > 0);
    assert!(known(&fingerprint.network.interface).loopback);
    assert_eq!(fingerprint.programs[0].version, Fact::Known("1.0".into()));
    assert_eq!(difference(&fingerprint, &here()), []);
}

#[test]
fn there_is_a_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(Fingerprint)).unwrap();
    assert!(schema["properties"]["kernel"].is_object(), "{schema}");
}
