//! The way to the target: congestion control, queueing discipline, and the interface with what its
//! hardware does. What only an ioctl would tell is read from what `ethtool` and `tc` print, where
//! they are installed.

use super::fact::{Fact, Tree, field};
use nix::ifaddrs::getifaddrs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// `net.ipv4.tcp_congestion_control`, of connections whose route and socket name no other.
    pub congestion_control: Fact<String>,
    /// `net.core.default_qdisc`, of interfaces that come up later.
    pub default_qdisc: Fact<String>,
    /// The interface through which the target is reached.
    pub interface: Fact<Interface>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Such as `eth0`.
    pub name: String,
    /// Whether it is the loopback interface, behind which there is no hardware.
    pub loopback: bool,
    /// The module that drives it.
    pub driver: Fact<String>,
    /// The driver's version and that of the firmware.
    pub driver_versions: Fact<String>,
    /// What was agreed with the other end, in Mbit/s.
    pub speed_mbit: Fact<u64>,
    /// Bytes of the greatest packet.
    pub mtu: Fact<u64>,
    /// The queueing disciplines that are in effect; the root first.
    pub qdisc: Fact<Vec<String>>,
    /// Queues of packets received.
    pub rx_queues: Fact<u64>,
    /// Queues of packets to be sent.
    pub tx_queues: Fact<u64>,
    /// How long packets wait so that an interrupt tells of several, as `ethtool -c` says it.
    pub coalescing: Fact<BTreeMap<String, String>>,
    /// How many packets may wait, as `ethtool -g` says it.
    pub rings: Fact<BTreeMap<String, String>>,
    /// What the hardware, or the kernel in its place, does with packets, as `ethtool -k` says it.
    pub offloads: Fact<BTreeMap<String, String>>,
    /// How long aggregated packets may wait, in ns.
    pub gro_flush_timeout_ns: Fact<u64>,
    /// How often interrupts stay off although nothing has come.
    pub napi_defer_hard_irqs: Fact<u64>,
    /// Whether packets are received on threads of the kernel and not in soft interrupts.
    pub threaded_napi: Fact<bool>,
}

impl Network {
    pub(super) fn read(tree: Tree<'_>, target: Option<IpAddr>) -> Self {
        let interface = match target {
            Some(target) => interface_towards(target),
            None => Fact::absent("no target was named"),
        };
        Self {
            congestion_control: tree.text("proc/sys/net/ipv4/tcp_congestion_control"),
            default_qdisc: tree.text("proc/sys/net/core/default_qdisc"),
            interface: interface.map(|name| Interface::read(tree, name)),
        }
    }
}

/// The name of the interface through which packets to `target` leave, by the kernel's own choice.
fn interface_towards(target: IpAddr) -> Fact<String> {
    let any: IpAddr = match target {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // To connect a datagram socket chooses a route and sends nothing. Any port will do.
    let local = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((target, 9))?;
        socket.local_addr()
    });
    let local = match local {
        // An address of this host's own is reached through loopback, whichever interface has it.
        Ok(local) if local.ip() == target || target.is_loopback() => {
            return Fact::Known("lo".to_owned());
        }
        Ok(local) => local.ip(),
        Err(error) => return Fact::absent(format_args!("there is no route to {target}: {error}")),
    };
    let addresses = match getifaddrs() {
        Ok(addresses) => addresses,
        Err(errno) => return Fact::absent(format_args!("interfaces cannot be listed: {errno}")),
    };
    let name = addresses.into_iter().find_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from(*v4));
        let v6 = address.as_sockaddr_in6().map(|v6| SocketAddr::from(*v6));
        (v4.or(v6)?.ip() == local).then_some(interface.interface_name)
    });
    match name {
        Some(name) => Fact::Known(name),
        None => Fact::absent(format_args!("no interface has the address {local}")),
    }
}

/// What `ethtool -k` calls the features that change what a server costs.
const OFFLOADS: [&str; 14] = [
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "rx-gro-hw",
    "rx-gro-list",
    "receive-hashing",
    "ntuple-filters",
    "tx-nocache-copy",
    "tls-hw-tx-offload",
    "tls-hw-rx-offload",
];

impl Interface {
    fn read(tree: Tree<'_>, name: String) -> Self {
        let file = |file: &str| tree.text(&format!("sys/class/net/{name}/{file}"));
        let queues = |stem: &str| {
            let directory = format!("sys/class/net/{name}/queues");
            tree.numbered(&directory, stem).map(|queues| queues.len() as u64)
        };
        let loopback = name == "lo";
        let of_hardware = |option: &str| {
            if loopback {
                Fact::absent("loopback has no hardware")
            } else {
                tree.ask("ethtool", &[option, &name])
            }
        };
        Self {
            loopback,
            driver: if loopback {
                Fact::Known("loopback".to_owned())
            } else {
                let driver = tree.link(&format!("sys/class/net/{name}/device/driver"));
                driver.and_then(|path| match path.file_name() {
                    Some(driver) => Fact::Known(driver.to_string_lossy().into_owned()),
                    None => Fact::absent("the driver has no name"),
                })
            },
            driver_versions: of_hardware("-i").map(|text| driver_versions(&text)),
            speed_mbit: file("speed").number(),
            mtu: file("mtu").number(),
            qdisc: tree
                .ask("tc", &["-j", "qdisc", "show", "dev", &name])
                .and_then(|text| qdiscs(&text)),
            rx_queues: queues("rx-"),
            tx_queues: queues("tx-"),
            coalescing: of_hardware("-c").map(|text| values(&text)),
            rings: of_hardware("-g").map(|text| values(current(&text))),
            offloads: tree.ask("ethtool", &["-k", &name]).map(|text| offloads(&text)),
            gro_flush_timeout_ns: file("gro_flush_timeout").number(),
            napi_defer_hard_irqs: file("napi_defer_hard_irqs").number(),
            threaded_napi: file("threaded").map(|threaded| threaded != "0"),
            name,
        }
    }
}

/// Of `ethtool -i`.
fn driver_versions(text: &str) -> String {
    let version = |name| field(text, name).filter(|version| !version.is_empty());
    let of_driver = version("version").unwrap_or("unknown");
    match version("firmware-version") {
        Some(firmware) => format!("{of_driver}, firmware {firmware}"),
        None => of_driver.to_owned(),
    }
}

/// Of `tc -j qdisc show`: the kinds, the root's first, each once.
fn qdiscs(json: &str) -> Fact<Vec<String>> {
    #[derive(Deserialize)]
    struct Qdisc {
        kind: String,
        #[serde(default)]
        root: bool,
    }
    match serde_json::from_str::<Vec<Qdisc>>(json) {
        Ok(mut all) => {
            all.sort_by(|a, b| (!a.root, &a.kind).cmp(&(!b.root, &b.kind)));
            let mut kinds: Vec<_> = all.into_iter().map(|qdisc| qdisc.kind).collect();
            kinds.dedup();
            Fact::Known(kinds)
        }
        Err(error) => Fact::absent(format_args!("tc answers otherwise than expected: {error}")),
    }
}

/// The part of `ethtool -g` behind that about what could be set.
fn current(text: &str) -> &str {
    text.split_once("Current hardware settings:").map_or(text, |(_, current)| current)
}

/// Lines `name: value`; what the hardware does not have is left out. Two on one line, as ethtool has
/// them for `Adaptive RX: on  TX: off`, stay together.
fn values(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .filter(|(_, value)| !value.is_empty() && !value.starts_with("n/a"))
        .collect()
}

/// Of `ethtool -k`: those of [`OFFLOADS`] that are told of, without whether they could be set.
fn offloads(text: &str) -> BTreeMap<String, String> {
    let all = values(text);
    let state = |name: &str| {
        let (state, _) = all.get(name).map(|value| value.split_once(' ').unwrap_or((value, "")))?;
        Some((name.to_owned(), state.to_owned()))
    };
    OFFLOADS.iter().filter_map(|name| state(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_the_way_to_this_host() {
        let towards = |address: &str| interface_towards(address.parse().unwrap());
        assert_eq!(towards("127.0.0.1"), Fact::Known("lo".into()));
        assert_eq!(towards("127.1.2.3"), Fact::Known("lo".into()));
        // A namespace may have an interface of no kind that leads further.
        if let Fact::Known(name) = towards("192.0.2.99") {
            assert!(!name.is_empty());
        }
    }

    #[test]
    fn what_ethtool_and_tc_print_is_understood() {
        let coalescing = values(
            "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nrx-usecs: 8\n\
             rx-frames: n/a\n\nCQE mode RX: n/a  TX: n/a\n",
        );
        let expected = [("Adaptive RX", "off  TX: n/a"), ("rx-usecs", "8")];
        assert_eq!(coalescing, expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
        let rings = values(current(
            "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nCurrent hardware \
             settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t128\n",
        ));
        let expected = [("RX", "256"), ("TX", "128")];
        assert_eq!(rings, expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
        let offloads = offloads(
            "Features for eth0:\nrx-checksumming: on [fixed]\ngeneric-receive-offload: off\n\
             \ttx-checksum-ipv4: off [fixed]\n",
        );
        let expected = [("generic-receive-offload", "off"), ("rx-checksumming", "on")];
        assert_eq!(offloads, expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
        assert_eq!(
            driver_versions("driver: ixgbe\nversion: 6.1\nfirmware-version: 0x8\n"),
            "6.1, firmware 0x8"
        );
        assert_eq!(driver_versions("driver: veth\nversion: 1.0\nfirmware-version: \n"), "1.0");
        let qdiscs = |json| qdiscs(json).known().cloned();
        let several = r#"[{"kind":"fq","parent":":2"},{"kind":"fq","parent":":1"},
                          {"kind":"mq","handle":"0:","root":true,"options":{}}]"#;
        assert_eq!(qdiscs(several), Some(vec!["mq".into(), "fq".into()]));
        assert_eq!(qdiscs("no JSON"), None);
    }
}
