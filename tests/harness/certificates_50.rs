//! Layer 50: certificates, keys and authorities in files, and what is said of those that will not do.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::support::server::run;
use crate::support::{Args, skip};

/// A directory that everyone may enter, with a configuration and what it names.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let everyone = Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), everyone).expect("the directory is ours");
        Self(directory)
    }

    fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).expect("the directory is ours");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        path
    }

    /// A certificate and its key, as `NAME.pem` and `NAME.key`.
    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let certificate = params.self_signed(&key).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem(), 0o644);
        self.write(&format!("{name}.key"), &key.serialize_pem(), 0o600);
    }

    /// `onering check` of a configuration with these certificates.
    fn check(&self, certificates: &str) -> Args {
        let text =
            format!("tls_listen = [\"127.0.0.1:0\"]\n[tls]\ncertificates = [{certificates}]\n");
        Args::of(["check", "--config"]).arg(self.write("onering.toml", &text, 0o644))
    }
}

/// The exit code, and what was said on standard error.
#[track_caller]
fn assert_ends(args: Args, code: i32, phrases: &[&str]) {
    let exit = run(args);
    assert_eq!(exit.status.code(), Some(code), "{exit:#?}");
    for phrase in phrases {
        assert!(exit.stderr.contains(phrase), "nothing of {phrase:?} in {exit:#?}");
    }
}

#[test]
fn a_right_certificate_is_no_news() {
    let directory = Directory::new();
    directory.issue("site", |_| {});
    assert_ends(directory.check("{ cert = \"site.pem\", key = \"site.key\" }"), 0, &[]);
}

#[test]
fn everything_that_is_wrong_with_certificates_is_told_at_once() {
    let directory = Directory::new();
    directory.issue("one", |_| {});
    directory.issue("other", |_| {});
    directory.issue("old", |params| params.not_after = rcgen::date_time_ymd(2001, 9, 9));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    directory.write("encrypted.key", encrypted, 0o600);
    let certificates = "{ cert = \"one.pem\", key = \"other.key\" }, \
                        { cert = \"old.pem\", key = \"old.key\" }, \
                        { cert = \"one.pem\", key = \"encrypted.key\" }, \
                        { cert = \"gone.pem\", key = \"one.key\" }";
    let phrases = [
        "other.key: is not the key of ",
        "old.pem: has expired on Sep  9",
        "encrypted.key: is encrypted",
        "gone.pem: cannot be read: No such file",
    ];
    assert_ends(directory.check(certificates), 2, &phrases);
}

#[test]
fn a_key_that_may_not_be_read_is_a_matter_of_permission() {
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    let directory = Directory::new();
    directory.issue("site", |_| {});
    let args = directory.check("{ cert = \"site.pem\", key = \"site.key\" }").unprivileged();
    assert_ends(args, 4, &["site.key: cannot be read by this user"]);
}

#[test]
fn certificates_and_keys_on_the_command_line_come_in_pairs() {
    let args = Args::of(["serve", "--tls-listen", "127.0.0.1:0", "--cert", "a", "--cert", "b"]);
    let args = args.arg("--key").arg("a");
    assert_ends(args, 2, &["--cert is there 2 times and --key 1", "a `--key` for each `--cert`"]);
}
