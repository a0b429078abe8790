//! The kernel's own defaults of the settings that matter to a web server or to the machine that
//! loads it, each with the place that says so. The one table of them: whoever asks whether a setting
//! has been changed asks here.
//!
//! Defaults are those of the mainline kernel since 6.1, not of a distribution. A value that the
//! kernel computes from memory or CPUs has no default to be compared with, and is marked so; keys
//! that a running kernel does not have are simply not there.

/// A setting beneath `/proc/sys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name with dots, as sysctl(8) has it.
    pub key: &'static str,
    /// What it is when nobody has set it.
    pub default: Default,
    /// What says so: a page of the kernel's documentation, or a file of its source.
    pub source: &'static str,
}

/// What a setting is when nobody has set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// The same on every machine.
    Value(&'static str),
    /// Another one from a release on: the first value is that of 6.1, then come (major, minor)
    /// and the value from that release on, in rising order.
    Changed(&'static str, &'static [((u32, u32), &'static str)]),
    /// One of a few, by how the kernel was built.
    Built(&'static [&'static str]),
    /// Computed at boot from memory, CPUs or nodes.
    Computed,
}

impl Default {
    /// Whether `value` is the default of the release (major, minor). `None`: there is no telling.
    /// Blanks between the numbers of a value may be of any kind.
    pub fn is(self, value: &str, release: (u32, u32)) -> Option<bool> {
        let same = |default: &str| default.split_whitespace().eq(value.split_whitespace());
        match self {
            Self::Value(default) => Some(same(default)),
            Self::Changed(..) => self.of(release).map(same),
            Self::Built(defaults) => Some(defaults.iter().any(|default| same(default))),
            Self::Computed => None,
        }
    }

    /// The default of the release (major, minor), the usual one where it depends on the build.
    pub fn of(self, release: (u32, u32)) -> Option<&'static str> {
        match self {
            Self::Value(default) => Some(default),
            Self::Changed(first, later) => {
                let reached = later.iter().rev().find(|(since, _)| *since <= release);
                Some(reached.map_or(first, |(_, default)| default))
            }
            Self::Built(defaults) => defaults.first().copied(),
            Self::Computed => None,
        }
    }
}

const NET: &str = "Documentation/admin-guide/sysctl/net.rst";
const IP: &str = "Documentation/networking/ip-sysctl.rst";
const VM: &str = "Documentation/admin-guide/sysctl/vm.rst";
const KERNEL: &str = "Documentation/admin-guide/sysctl/kernel.rst";
const FS: &str = "Documentation/admin-guide/sysctl/fs.rst";

const fn value(key: &'static str, default: &'static str, source: &'static str) -> Setting {
    Setting { key, default: Default::Value(default), source }
}

const fn computed(key: &'static str, source: &'static str) -> Setting {
    Setting { key, default: Default::Computed, source }
}

/// The table, by key.
pub const SETTINGS: &[Setting] = &[
    value("fs.aio-max-nr", "65536", "fs/aio.c"),
    computed("fs.epoll.max_user_watches", "fs/eventpoll.c: 4 % of low memory"),
    computed("fs.file-max", "fs/file_table.c: a tenth of memory in KiB"),
    value("fs.nr_open", "1048576", FS),
    value("fs.pipe-max-size", "1048576", FS),
    value("fs.pipe-user-pages-soft", "16384", FS),
    value("kernel.io_uring_disabled", "0", KERNEL),
    value("kernel.io_uring_group", "-1", KERNEL),
    computed("kernel.nmi_watchdog", "kernel/watchdog.c: where the CPU counts events"),
    computed("kernel.numa_balancing", "mm/mempolicy.c: where there are several nodes"),
    value("kernel.perf_event_paranoid", "2", KERNEL),
    computed("kernel.pid_max", "kernel/pid.c: 1024 for each CPU, 32768 at least"),
    value("kernel.randomize_va_space", "2", KERNEL),
    value("kernel.sched_autogroup_enabled", "1", "kernel/sched/autogroup.c"),
    value("kernel.sched_cfs_bandwidth_slice_us", "5000", "Documentation/scheduler/sched-bwc.rst"),
    value("kernel.sched_rt_period_us", "1000000", "Documentation/scheduler/sched-rt-group.rst"),
    value("kernel.sched_rt_runtime_us", "950000", "Documentation/scheduler/sched-rt-group.rst"),
    value("kernel.split_lock_mitigate", "1", KERNEL),
    computed("kernel.threads-max", "kernel/fork.c: an eighth of memory"),
    value("kernel.timer_migration", "1", "kernel/time/timer.c"),
    value("kernel.watchdog", "1", KERNEL),
    value("kernel.watchdog_thresh", "10", KERNEL),
    Setting {
        key: "net.core.bpf_jit_enable",
        default: Default::Built(&["1", "0"]),
        source: "kernel/bpf/Kconfig: BPF_JIT_DEFAULT_ON",
    },
    value("net.core.bpf_jit_harden", "0", NET),
    value("net.core.busy_poll", "0", NET),
    value("net.core.busy_read", "0", NET),
    value("net.core.default_qdisc", "pfifo_fast", NET),
    value("net.core.dev_weight", "64", NET),
    value("net.core.dev_weight_rx_bias", "1", NET),
    value("net.core.dev_weight_tx_bias", "1", NET),
    value("net.core.flow_limit_cpu_bitmap", "0", "Documentation/networking/scaling.rst"),
    value("net.core.gro_normal_batch", "8", "net/core/hotdata.c"),
    value("net.core.high_order_alloc_disable", "0", NET),
    value("net.core.max_skb_frags", "17", "net/Kconfig: MAX_SKB_FRAGS"),
    value("net.core.mem_pcpu_rsv", "256", "include/net/sock.h: SK_MEMORY_PCPU_RESERVE, 1 MiB"),
    value("net.core.netdev_budget", "300", "net/core/hotdata.c"),
    Setting {
        key: "net.core.netdev_budget_usecs",
        default: Default::Built(&["8000", "2000", "6666", "20000"]),
        source: "net/core/hotdata.c: two ticks",
    },
    value("net.core.netdev_max_backlog", "1000", "net/core/hotdata.c"),
    value("net.core.netdev_tstamp_prequeue", "1", NET),
    Setting {
        key: "net.core.optmem_max",
        default: Default::Changed("20480", &[((6, 8), "131072")]),
        source: "net/core/sock.c",
    },
    value("net.core.rmem_default", "212992", "include/net/sock.h: SK_RMEM_DEFAULT"),
    Setting {
        key: "net.core.rmem_max",
        default: Default::Changed("212992", &[((6, 18), "4194304")]),
        source: "net/core/sock.c",
    },
    value("net.core.rps_sock_flow_entries", "0", "Documentation/networking/scaling.rst"),
    Setting {
        key: "net.core.skb_defer_max",
        default: Default::Changed("64", &[((6, 19), "128")]),
        source: NET,
    },
    value("net.core.somaxconn", "4096", IP),
    value("net.core.txrehash", "1", NET),
    value("net.core.wmem_default", "212992", "include/net/sock.h: SK_WMEM_DEFAULT"),
    Setting {
        key: "net.core.wmem_max",
        default: Default::Changed("212992", &[((6, 18), "4194304")]),
        source: "net/core/sock.c",
    },
    value("net.ipv4.ip_early_demux", "1", IP),
    value("net.ipv4.ip_forward", "0", IP),
    value("net.ipv4.ip_local_port_range", "32768 60999", IP),
    value("net.ipv4.ip_local_reserved_ports", "", IP),
    value("net.ipv4.ip_no_pmtu_disc", "0", IP),
    value("net.ipv4.tcp_abort_on_overflow", "0", IP),
    value("net.ipv4.tcp_autocorking", "1", IP),
    value("net.ipv4.tcp_backlog_ack_defer", "1", IP),
    value("net.ipv4.tcp_child_ehash_entries", "0", IP),
    value("net.ipv4.tcp_comp_sack_delay_ns", "1000000", IP),
    value("net.ipv4.tcp_comp_sack_nr", "44", IP),
    value("net.ipv4.tcp_congestion_control", "cubic", "net/ipv4/Kconfig: DEFAULT_TCP_CONG"),
    value("net.ipv4.tcp_dsack", "1", IP),
    value("net.ipv4.tcp_early_demux", "1", IP),
    value("net.ipv4.tcp_early_retrans", "3", IP),
    value("net.ipv4.tcp_ecn", "2", IP),
    computed("net.ipv4.tcp_ehash_entries", "net/ipv4/tcp.c: from memory"),
    value("net.ipv4.tcp_fastopen", "1", IP),
    value("net.ipv4.tcp_fin_timeout", "60", IP),
    value("net.ipv4.tcp_frto", "2", IP),
    value("net.ipv4.tcp_keepalive_intvl", "75", IP),
    value("net.ipv4.tcp_keepalive_probes", "9", IP),
    value("net.ipv4.tcp_keepalive_time", "7200", IP),
    Setting {
        key: "net.ipv4.tcp_limit_output_bytes",
        default: Default::Changed("1048576", &[((6, 16), "4194304")]),
        source: IP,
    },
    computed("net.ipv4.tcp_max_orphans", "net/ipv4/tcp.c: half of the hash table"),
    computed(
        "net.ipv4.tcp_max_syn_backlog",
        "net/ipv4/tcp_ipv4.c: from the hash table, 128 at least",
    ),
    computed("net.ipv4.tcp_max_tw_buckets", "net/ipv4/tcp_ipv4.c: half of the hash table"),
    computed("net.ipv4.tcp_mem", "net/ipv4/tcp.c: an eighth of memory at most"),
    value("net.ipv4.tcp_migrate_req", "0", IP),
    value("net.ipv4.tcp_min_tso_segs", "2", IP),
    value("net.ipv4.tcp_moderate_rcvbuf", "1", IP),
    value("net.ipv4.tcp_mtu_probing", "0", IP),
    value("net.ipv4.tcp_no_metrics_save", "0", IP),
    value("net.ipv4.tcp_notsent_lowat", "4294967295", IP),
    value("net.ipv4.tcp_orphan_retries", "0", IP),
    value("net.ipv4.tcp_pacing_ca_ratio", "120", IP),
    value("net.ipv4.tcp_pacing_ss_ratio", "200", IP),
    value("net.ipv4.tcp_pingpong_thresh", "1", IP),
    value("net.ipv4.tcp_plb_enabled", "0", IP),
    value("net.ipv4.tcp_recovery", "1", IP),
    value("net.ipv4.tcp_reordering", "3", IP),
    value("net.ipv4.tcp_retries2", "15", IP),
    Setting {
        key: "net.ipv4.tcp_rmem",
        default: Default::Changed("4096 131072 6291456", &[((6, 16), "4096 131072 33554432")]),
        source: "Documentation/networking/ip-sysctl.rst, with at least 4 GiB of memory",
    },
    value("net.ipv4.tcp_rto_min_us", "200000", IP),
    value("net.ipv4.tcp_sack", "1", IP),
    value("net.ipv4.tcp_shrink_window", "0", IP),
    value("net.ipv4.tcp_slow_start_after_idle", "1", IP),
    value("net.ipv4.tcp_syn_retries", "6", IP),
    value("net.ipv4.tcp_synack_retries", "5", IP),
    value("net.ipv4.tcp_syncookies", "1", IP),
    value("net.ipv4.tcp_thin_linear_timeouts", "0", IP),
    value("net.ipv4.tcp_timestamps", "1", IP),
    value("net.ipv4.tcp_tso_rtt_log", "9", IP),
    value("net.ipv4.tcp_tso_win_divisor", "3", IP),
    value("net.ipv4.tcp_tw_reuse", "2", IP),
    value("net.ipv4.tcp_window_scaling", "1", IP),
    value(
        "net.ipv4.tcp_wmem",
        "4096 16384 4194304",
        "Documentation/networking/ip-sysctl.rst, with at least 512 MiB of memory",
    ),
    computed("net.netfilter.nf_conntrack_max", "Documentation/networking/nf_conntrack-sysctl.rst"),
    value("vm.compaction_proactiveness", "20", VM),
    value("vm.dirty_background_bytes", "0", VM),
    value("vm.dirty_background_ratio", "10", "mm/page-writeback.c"),
    value("vm.dirty_bytes", "0", VM),
    value("vm.dirty_expire_centisecs", "3000", "mm/page-writeback.c"),
    value("vm.dirty_ratio", "20", "mm/page-writeback.c"),
    value("vm.dirty_writeback_centisecs", "500", "mm/page-writeback.c"),
    value("vm.max_map_count", "65530", VM),
    computed("vm.min_free_kbytes", "mm/page_alloc.c: by the square root of memory"),
    value("vm.nr_hugepages", "0", VM),
    value("vm.overcommit_memory", "0", VM),
    value("vm.overcommit_ratio", "50", VM),
    value("vm.page-cluster", "3", VM),
    value("vm.stat_interval", "1", VM),
    value("vm.swappiness", "60", VM),
    value("vm.vfs_cache_pressure", "100", VM),
    value("vm.watermark_boost_factor", "15000", VM),
    value("vm.watermark_scale_factor", "10", VM),
    value("vm.zone_reclaim_mode", "0", VM),
];

/// Where a setting of that name is found, relative to `/`. (No key of the table has a dot within a
/// name, as keys of VLAN interfaces may.)
pub fn path(key: &str) -> String {
    format!("proc/sys/{}", key.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_every_one_has_a_source() {
        assert!(SETTINGS.is_sorted_by(|a, b| a.key < b.key));
        for setting in SETTINGS {
            assert!(!setting.source.is_empty(), "{}", setting.key);
            if let Default::Changed(_, later) = setting.default {
                assert!(later.is_sorted_by(|a, b| a.0 < b.0), "{}", setting.key);
            }
        }
    }

    fn named(key: &str) -> Default {
        SETTINGS.iter().find(|setting| setting.key == key).unwrap().default
    }

    #[test]
    fn a_default_is_that_of_its_release() {
        let rmem = named("net.ipv4.tcp_rmem");
        assert_eq!(rmem.of((6, 1)), Some("4096 131072 6291456"));
        assert_eq!(rmem.of((6, 15)), Some("4096 131072 6291456"));
        assert_eq!(rmem.of((6, 16)), Some("4096 131072 33554432"));
        assert_eq!(rmem.of((7, 0)), Some("4096 131072 33554432"));
        assert_eq!(rmem.is("4096\t131072\t6291456", (6, 18)), Some(false));
        assert_eq!(rmem.is("4096\t131072\t33554432", (6, 18)), Some(true));
    }

    #[test]
    fn builds_and_machines_differ() {
        let budget = named("net.core.netdev_budget_usecs");
        assert_eq!(budget.is("2000", (6, 1)), Some(true));
        assert_eq!(budget.is("8000", (6, 1)), Some(true));
        assert_eq!(budget.is("4000", (6, 1)), Some(false));
        assert_eq!(named("net.ipv4.tcp_mem").is("1 2 3", (6, 1)), None);
        assert_eq!(named("net.ipv4.tcp_mem").of((6, 1)), None);
    }

    #[test]
    fn keys_are_paths() {
        assert_eq!(path("net.ipv4.tcp_rmem"), "proc/sys/net/ipv4/tcp_rmem");
    }
}
