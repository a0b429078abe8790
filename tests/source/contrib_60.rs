//! Layer 60: what is shipped for those who deploy must fit the program.

use std::collections::BTreeMap;
use std::time::Duration;

use onering::config::defaults;
use serde_json::Value;

const UNIT: &str = include_str!("../../contrib/systemd/onering.service");
const PROFILE: &str = include_str!("../../contrib/container/io_uring.json");

/// The settings of the unit's `[Service]`, those that are written several times joined by a space.
fn service() -> BTreeMap<&'static str, String> {
    let section = UNIT.split("[Service]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    let lines = section.expect("there is one").lines();
    let mut settings = BTreeMap::<_, String>::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("no setting: {line}"));
        let setting = settings.entry(key).or_default();
        *setting = format!("{setting} {value}").trim_start().to_owned();
    }
    settings
}

#[test]
fn the_unit_leaves_time_for_the_end_and_allows_what_is_needed() {
    let service = service();
    let stop: u64 = service["TimeoutStopSec"].parse().expect("whole seconds");
    assert!(Duration::from_secs(stop) > defaults::GRACE, "{stop} s");
    for call in ["io_uring_setup", "io_uring_enter", "io_uring_register", "@system-service"] {
        assert!(service["SystemCallFilter"].split(' ').any(|word| word == call), "{call}");
    }
    for (key, value) in [
        ("AmbientCapabilities", "CAP_NET_BIND_SERVICE"),
        ("CapabilityBoundingSet", "CAP_NET_BIND_SERVICE"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("LimitNOFILE", "524288"),
        ("LimitMEMLOCK", "infinity"),
        // Configuration and permission: `onering --help`.
        ("RestartPreventExitStatus", "2 4"),
    ] {
        assert_eq!(service[key], value, "{key}");
    }
}

#[test]
fn the_profile_is_one_element_of_a_profiles_system_calls() {
    let element: Value = serde_json::from_str(PROFILE).expect("JSON");
    let element = element.as_object().expect("an object");
    // The format's own (github.com/opencontainers/runtime-spec, `LinuxSyscall`, and Docker's).
    let known = ["names", "action", "args", "errnoRet", "comment", "includes", "excludes"];
    assert!(element.keys().all(|key| known.contains(&&**key)), "{element:?}");
    assert_eq!(element["action"], "SCMP_ACT_ALLOW");
    let names = ["io_uring_enter", "io_uring_register", "io_uring_setup"];
    assert_eq!(element["names"], Value::from(names.as_slice()));
}
