//! Layer 60: running the program on a host that is not as one would wish it.

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
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().expect("a temporary directory can be made");
    let everyone = std::fs::Permissions::from_mode(0o755);
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
