//! Layer 50: certificates, keys and authorities in files: what is said of those that will not do, and how
//! they are exchanged while the server runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use nix::sys::signal::Signal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::support::secure::{Authority, Identity, SecureServer, SecureSite, TlsStream, VERSIONS};
use crate::support::server::run;
use crate::support::{Args, Client, Site, skip, wait_until};

/// `onering COMMAND` with these certificates.
fn with(site: &Site, command: &str, certificates: &str) -> Args {
    let text = format!("tls_listen = [\"127.0.0.1:0\"]\n[tls]\ncertificates = [{certificates}]\n");
    Args::of([command, "--config"]).arg(site.keep("onering.toml", text))
}

/// Fails unless it ends with this exit code and says so on standard error.
#[track_caller]
fn assert_ends(args: Args, code: i32, phrases: &[&str]) {
    let exit = run(args);
    assert_eq!(exit.status.code(), Some(code), "{exit:#?}");
    for phrase in phrases {
        assert!(exit.stderr.contains(phrase), "nothing of {phrase:?} in {exit:#?}");
    }
}

const SERVER: &str = "{ cert = \"server.pem\", key = \"server.key\" }";

#[test]
fn a_right_certificate_is_no_news() {
    let secure = SecureSite::with("file", "content");
    assert_ends(with(&secure.site, "check", SERVER), 0, &[]);
}

#[test]
fn everything_that_is_wrong_with_certificates_is_told_at_once() {
    let (site, authority) = (Site::new(), Authority::new("an authority"));
    authority.issue(&["localhost"]).keep(&site, "one");
    authority.issue(&["localhost"]).keep(&site, "other");
    let old = authority.issue_with(&["localhost"], |params| {
        params.not_after = rcgen::date_time_ymd(2001, 9, 9);
    });
    old.keep(&site, "old");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    site.keep("encrypted.key", encrypted);
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
    let check = with(&site, "check", certificates);
    assert_ends(check, 2, &[&fatal[..], &[expired]].concat());
    assert_ends(with(&site, "serve", certificates), 2, &fatal);
}

#[test]
fn a_key_that_may_not_be_read_is_a_matter_of_permission() {
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    let (site, authority) = (Site::new(), Authority::new("an authority"));
    let [_, key] = authority.issue(&["localhost"]).keep(&site, "server");
    std::fs::set_permissions(key, Permissions::from_mode(0o600)).expect("it is ours");
    for command in ["check", "serve"] {
        let args = with(&site, command, SERVER).unprivileged();
        assert_ends(args, 4, &["server.key: cannot be read by this user"]);
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
    let secure = SecureSite::with("file", "content");
    let server = SecureServer::start(secure.site.serve());
    let config = Arc::new(secure.client(&VERSIONS));
    let refused = Client::try_secure(server.address(), &config, "localhost").err();
    let refused = refused.expect("nobody vouches for it").to_string();
    assert!(refused.contains("UnknownIssuer"), "{refused}");
    let said = server.stderr();
    assert!(said.contains("for localhost, 127.0.0.1, ::1; name files by `--cert`"), "{said}");
}

fn connect(secure: &SecureSite, server: &SecureServer) -> Client<TlsStream> {
    Client::secure(server.address(), &Arc::new(secure.client(&VERSIONS)))
}

/// Whether a connection was shown this certificate.
fn shows(client: &Client<TlsStream>, identity: &Identity) -> bool {
    let expected = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("PEM");
    client.stream().conn.peer_certificates().expect("a certificate")[0] == expected
}

const GET: &str = "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn certificates_are_exchanged_when_their_files_change_and_connections_stay() {
    let secure = SecureSite::with("file", "content");
    let server = secure.start();
    let mut early = connect(&secure, &server);
    early.send(GET);
    assert_eq!(early.response().body, b"content");
    let second = secure.authority.issue(&["localhost"]);
    assert!(!shows(&early, &second));
    second.keep(&secure.site, "server");
    wait_until("the new certificate is shown", || shows(&connect(&secure, &server), &second));
    early.send(GET);
    assert_eq!(early.response().body, b"content");
    assert_eq!(server.stop().server("certificates_loaded"), 1);
}

#[test]
fn bad_certificates_do_not_take_the_place_of_good_ones() {
    let secure = SecureSite::with("file", "content");
    let first = secure.authority.issue(&["localhost"]);
    first.keep(&secure.site, "server");
    let server = secure.start();
    secure.site.keep("server.key", "nothing");
    server.signal(Signal::SIGHUP);
    wait_until("it is said", || server.stderr().contains("server.key: has no private key in it"));
    assert!(shows(&connect(&secure, &server), &first));
    let second = secure.authority.issue(&["localhost"]);
    second.keep(&secure.site, "server");
    server.signal(Signal::SIGHUP);
    wait_until("the new certificate is shown", || shows(&connect(&secure, &server), &second));
    let stats = server.stop();
    assert!(stats.server("certificates_refused") >= 1);
    assert!(stats.server("certificates_loaded") >= 1);
}
