//! Layer 60: running the program on a host that is not as one would wish it.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::support::seccomp::Confinement;
use crate::support::server::{Exit, run, unused_address};
use crate::support::{Args, Client, Server, skip};

/// IORING_SETUP_DEFER_TASKRUN, since 6.1: every ring of ours has it.
const DEFER_TASKRUN: u32 = 1 << 13;
/// IORING_SETUP_NO_SQARRAY, since 6.6: rings have it where they can.
const NO_SQARRAY: u32 = 1 << 16;

/// A directory with one file, for everyone to read.
fn site() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory can be made");
    let everyone = Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
    std::fs::write(directory.path().join("hello"), "hello\n").expect("the directory is ours");
    directory
}

/// How the program ends that is to serve `site` and cannot.
fn refusal(site: &TempDir, confine: impl FnOnce(Args) -> Args) -> Exit {
    let args = Args::serve(site.path()).arg("--listen").arg(unused_address().to_string());
    run(confine(args))
}

/// Fails unless the exit is that for a lacking environment, with each of `phrases` in its message.
#[track_caller]
fn assert_refused(exit: &Exit, phrases: &[&str]) {
    assert_eq!(exit.status.code(), Some(3), "{exit:#?}");
    for phrase in phrases {
        assert!(exit.stderr.contains(phrase), "nothing of {phrase:?} in {exit:#?}");
    }
}

/// The program, run by one who may not open what everyone is locked out of.
fn powerless(args: Args) -> Args {
    if nix::unistd::geteuid().is_root() { args.unprivileged() } else { args }
}

/// Fails unless the exit has this code, with each of `phrases` in its message.
#[track_caller]
fn assert_ends(args: Args, code: i32, phrases: &[&str]) {
    let exit = run(args.arg("--listen").arg(unused_address().to_string()));
    assert_eq!(exit.status.code(), Some(code), "{exit:#?}");
    for phrase in phrases {
        assert!(exit.stderr.contains(phrase), "nothing of {phrase:?} in {exit:#?}");
    }
}

#[test]
fn a_permission_that_is_missing_has_an_exit_code_of_its_own() {
    let site = site();
    let locked = site.path().join("locked");
    std::fs::create_dir(&locked).expect("the directory is ours");
    let lock = |mode| {
        std::fs::set_permissions(&locked, Permissions::from_mode(mode)).expect("it is ours");
    };
    lock(0);
    let config = site.path().join("onering.toml");
    std::fs::write(&config, "[[site]]\nroot = \"locked\"\n").expect("the directory is ours");
    std::fs::set_permissions(&config, Permissions::from_mode(0o644)).expect("it is ours");

    let serve = |path: &Path| powerless(Args::serve(path));
    let with_config = |path: &Path| powerless(Args::of(["serve", "--config"]).arg(path));
    let unreadable = locked.join("onering.toml");
    assert_ends(with_config(&unreadable), 4, &["locked/onering.toml: ", "fix: "]);
    assert_ends(serve(&locked), 4, &["command line: site.root: ", "`chmod o+x`"]);
    assert_ends(serve(&locked.join("below")), 4, &["command line: site.root: ", "`chmod o+x`"]);
    assert_ends(with_config(&config), 4, &["onering.toml:1:1: site.root: ", "`chmod o+x`"]);
    let stats = locked.join("stats.json");
    assert_ends(serve(site.path()).arg("--stats").arg(stats), 4, &["stats.json: ", "fix: "]);
    lock(0o700);
}

#[test]
fn a_privileged_port_is_a_missing_permission() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if first.is_ok_and(|first| first.trim().parse().is_ok_and(|first: u16| first <= 81)) {
        return skip("needs ports that only the privileged may have");
    }
    let site = site();
    let exit = run(powerless(Args::serve(site.path())).arg("--listen").arg("127.0.0.1:81"));
    assert_eq!(exit.status.code(), Some(4), "{exit:#?}");
    assert!(exit.stderr.contains("cap_net_bind_service"), "{exit:#?}");
}

#[test]
fn what_the_host_lacks_and_what_is_written_wrong_differ() {
    let site = site();
    assert_ends(Args::serve(site.path()).ulimit("-n", 64), 3, &["`LimitNOFILE=524288`"]);
    assert_ends(Args::serve(&site.path().join("absent")), 2, &["no directory", "create it"]);
    let absent = site.path().join("absent.toml");
    assert_ends(Args::of(["serve", "--config"]).arg(absent), 2, &["absent.toml", "fix: "]);
    let stats = site.path().join("absent/stats.json");
    assert_ends(Args::serve(site.path()).arg("--stats").arg(stats), 3, &["stats.json", "fix: "]);
}

#[test]
fn a_port_that_is_taken_is_refused_with_the_name_of_the_taker() {
    let site = site();
    let held = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let address = held.local_addr().expect("a bound socket").to_string();
    let exit = run(Args::serve(site.path()).arg("--listen").arg(&address));
    let kill = format!("`kill {}`", std::process::id());
    assert_refused(&exit, &[&address, "in use by", &kill]);
}

#[test]
fn a_filter_that_forbids_io_uring_is_named_with_the_remedy() {
    let site = site();
    let exit = refusal(&site, |args| args.confined(Confinement::Refused(libc::EPERM)));
    assert_refused(&exit, &["seccomp", "io_uring_setup", "EPERM", "--security-opt"]);
}

#[test]
fn a_filter_that_denies_that_io_uring_exists_is_seen_through() {
    let site = site();
    let exit = refusal(&site, |args| args.confined(Confinement::Refused(libc::ENOSYS)));
    assert_refused(&exit, &["seccomp", "io_uring_setup", "ENOSYS", "--security-opt"]);
}

#[test]
fn a_kernel_without_a_needed_flag_is_named_with_the_remedy() {
    let site = site();
    let exit = refusal(&site, |args| args.confined(Confinement::WithoutFlags(DEFER_TASKRUN)));
    assert_refused(&exit, &["IORING_SETUP_DEFER_TASKRUN", "Linux 6.1"]);
}

#[test]
fn a_kernel_without_an_optional_flag_is_good_enough() {
    let site = site();
    let without = Confinement::WithoutFlags(NO_SQARRAY);
    let server = Server::start(Args::serve(site.path()).cpus("0").confined(without));
    let response = Client::connect(server.address()).get("/hello");
    assert_eq!((response.status, response.body), (200, b"hello\n".to_vec()));
    assert_eq!(server.stop().total("requests"), 1);
}

#[test]
fn without_lockable_memory_the_server_serves_or_names_the_limit() {
    if !nix::unistd::geteuid().is_root() {
        return skip("needs root, to become a user who may not lock memory without limit");
    }
    let site = site();
    match Server::try_start(Args::serve(site.path()).cpus("0").unprivileged().ulimit("-l", 0)) {
        // Kernels from 6.14 charge the ring itself to the limit.
        Err(exit) => assert_refused(&exit, &["memlock limit", "0 KiB", "ulimit -l unlimited"]),
        Ok(server) => {
            assert_eq!(Client::connect(server.address()).get("/hello").status, 200);
            assert_eq!(server.stop().total("fixed_reads"), 0);
        }
    }
}
