//! Layer 50: certificates, keys and authorities in files: what is said of those that will not do, and how
//! they are exchanged while the server runs.

use nix::sys::signal::Signal;

use crate::support::server::{run, unused_address};
use crate::support::visitor::{Pki, Visitor};
use crate::support::{Args, Server, skip, wait_until};

/// A configuration with these certificates.
fn with(certificates: &str) -> String {
    format!("tls_listen = [\"127.0.0.1:0\"]\n[tls]\ncertificates = [{certificates}]\n")
}

const SITE: &str = "{ cert = \"site.pem\", key = \"site.key\" }";

/// Fails unless it ends with this exit code and says so on standard error.
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
    let pki = Pki::new();
    pki.issue("site", &["localhost"]);
    assert_ends(pki.run("check", &with(SITE)), 0, &[]);
}

#[test]
fn everything_that_is_wrong_with_certificates_is_told_at_once() {
    let pki = Pki::new();
    pki.issue("one", &["localhost"]);
    pki.issue("other", &["localhost"]);
    let old = pki.identity(|params| {
        params.subject_alt_names = rcgen::CertificateParams::new(["localhost".to_owned()])
            .expect("a name")
            .subject_alt_names;
        params.not_after = rcgen::date_time_ymd(2001, 9, 9);
    });
    pki.put("old", &old);
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    pki.write("encrypted.key", encrypted, 0o600);
    let certificates = "{ cert = \"one.pem\", key = \"other.key\" }, \
                        { cert = \"old.pem\", key = \"old.key\" }, \
                        { cert = \"one.pem\", key = \"encrypted.key\" }, \
                        { cert = \"gone.pem\", key = \"one.key\" }";
    let fatal = [
        "other.key: is not the key of ",
        "encrypted.key: is encrypted",
        "gone.pem: cannot be read: No such file",
    ];
    let expired = "old.pem: has expired on Sep  9";
    assert_ends(pki.run("check", &with(certificates)), 2, &[&fatal[..], &[expired]].concat());
    assert_ends(pki.run("serve", &with(certificates)), 2, &fatal);
}

#[test]
fn a_key_that_may_not_be_read_is_a_matter_of_permission() {
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    let pki = Pki::new();
    pki.issue("site", &["localhost"]);
    for command in ["check", "serve"] {
        let args = pki.run(command, &with(SITE)).unprivileged();
        assert_ends(args, 4, &["site.key: cannot be read by this user"]);
    }
}

#[test]
fn certificates_and_keys_on_the_command_line_come_in_pairs() {
    let args = Args::of(["serve", "--tls-listen", "127.0.0.1:0", "--cert", "a", "--cert", "b"]);
    let args = args.arg("--key").arg("a");
    assert_ends(args, 2, &["--cert is there 2 times and --key 1", "a `--key` for each `--cert`"]);
}

#[test]
fn without_a_certificate_one_is_made_and_that_is_said() {
    let address = unused_address();
    let args = Args::of(["serve", "--tls-listen"]).arg(address.to_string());
    let server = Server::start(args);
    let refused = Visitor::new(&Pki::new(), None).connect(address, "localhost").err();
    let refused = refused.expect("nobody vouches for it").to_string();
    assert!(refused.contains("UnknownIssuer"), "{refused}");
    let (_, said) = server.stop_and_say();
    assert!(said.contains("for localhost, 127.0.0.1, ::1; name files by `--cert`"), "{said}");
}

/// A server with a certificate that is exchanged.
fn server(pki: &Pki) -> (Server, std::net::SocketAddr) {
    let address = unused_address();
    let args = pki.run("serve", &with(SITE)).arg("--tls-listen").arg(address.to_string());
    (Server::start(args), address)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn certificates_are_exchanged_when_their_files_change_and_connections_stay() {
    let pki = Pki::new();
    let first = pki.issue("site", &["localhost"]);
    let (server, address) = server(&pki);
    let visitor = Visitor::new(&pki, None);
    let mut early = visitor.connect(address, "localhost").expect("it is served");
    assert_eq!(early.shown(), first.certificate);
    assert!(early.ask(GET).expect("an answer").starts_with("HTTP/1.1 200 "));
    let second = pki.issue("site", &["localhost"]);
    let shown =
        || Visitor::new(&pki, None).connect(address, "localhost").map(|visit| visit.shown());
    wait_until("the new certificate is shown", || {
        shown().expect("either is right") == second.certificate
    });
    assert!(early.ask(GET).expect("an answer").starts_with("HTTP/1.1 200 "));
    let stats = server.stop();
    assert_eq!(stats.server("certificates_loaded"), 1);
    assert_eq!(stats.server("certificates_refused"), 0);
}

#[test]
fn bad_certificates_do_not_take_the_place_of_good_ones() {
    let pki = Pki::new();
    let first = pki.issue("site", &["localhost"]);
    let (server, address) = server(&pki);
    pki.write("site.key", "nothing", 0o600);
    server.signal(Signal::SIGHUP);
    wait_until("it is said", || server.stderr().contains("site.key: has no private key in it"));
    let shown =
        || Visitor::new(&pki, None).connect(address, "localhost").map(|visit| visit.shown());
    assert_eq!(shown().expect("it is served"), first.certificate);
    let second = pki.issue("site", &["localhost"]);
    server.signal(Signal::SIGHUP);
    wait_until("the new certificate is shown", || {
        shown().expect("either is right") == second.certificate
    });
    let stats = server.stop();
    assert_eq!(stats.server("certificates_refused"), 1);
    assert_eq!(stats.server("certificates_loaded"), 1);
}
