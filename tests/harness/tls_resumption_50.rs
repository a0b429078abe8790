//! Layer 50: OpenSSL's client resumes its sessions, by id and by ticket, on whichever shard a
//! connection comes to, whatever has become of the certificate meanwhile; on another server that has
//! the same secret; and not where they do not hold.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use nix::sys::signal::Signal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::support::secure::{Identity, SecureServer, SecureSite, VERSIONS};
use crate::support::server::Stats;
use crate::support::{Client, repeats, skip, tools, wait_until};

/// How often a session is resumed in a row.
const TIMES: usize = 40;

const LAST_REQUEST: &str = "GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// OpenSSL's client with what it keeps of one session.
struct Openssl {
    program: PathBuf,
    words: Vec<String>,
    session: PathBuf,
}

/// How a handshake began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Began {
    New,
    Reused,
}

impl Openssl {
    /// One that trusts a site's authority; or the test is skipped.
    fn new(site: &SecureSite, words: &[&str]) -> Option<Openssl> {
        let Some(program) = tools::find("openssl") else {
            skip("openssl is not installed");
            return None;
        };
        let authority = site.site.keep("authority.pem", site.authority.pem());
        let session = site.site.keep("session.pem", "");
        fs::remove_file(&session).expect("it is ours");
        let common = ["-servername", "localhost", "-verify_return_error", "-ign_eof", "-CAfile"];
        let authority = authority.display().to_string();
        let words = words.iter().chain(&common).copied().chain([&*authority]);
        Some(Openssl { program, words: words.map(str::to_owned).collect(), session })
    }

    /// Asks for the file on a connection of its own, with the session of the connection before, if
    /// there is one.
    #[track_caller]
    fn ask(&self, server: &SecureServer) -> Began {
        let address = server.address().to_string();
        let session = self.session.display().to_string();
        let mut words = vec!["s_client", "-connect", &address, "-sess_out", &session];
        if self.session.exists() {
            words.extend(["-sess_in", &session]);
        }
        words.extend(self.words.iter().map(String::as_str));
        let said = tools::run(&self.program, words, LAST_REQUEST);
        assert!(said.text.contains("HTTP/1.1 200 OK") && said.text.contains("content"), "{said:?}");
        let began = |word| said.text.lines().any(|line| line.starts_with(word));
        match (began("New, TLSv1"), began("Reused, TLSv1")) {
            (true, false) => Began::New,
            (false, true) => Began::Reused,
            _ => panic!("neither new nor reused: {said:?}"),
        }
    }

    /// Does so `times`; every session must be resumed.
    #[track_caller]
    fn resume(&self, server: &SecureServer, times: usize) {
        for time in 0..times {
            assert_eq!(self.ask(server), Began::Reused, "after {time} times: {:?}", self.words);
        }
    }
}

fn site() -> SecureSite {
    SecureSite::with("file", "content")
}

/// Puts another certificate in the place of the server's.
fn replace_certificate(site: &SecureSite) -> Identity {
    let identity = site.authority.issue(&["localhost"]);
    // Each whole at once: a server that looks at any moment sees one or the other.
    for (name, text) in [("server.pem", &identity.certificate), ("server.key", &identity.key)] {
        let new = site.site.keep("new", text);
        fs::rename(&new, new.with_file_name(name)).expect("the directory is ours");
    }
    identity
}

/// Waits until connections are answered with this certificate, by every shard that they come to.
#[track_caller]
fn await_certificate(site: &SecureSite, server: &SecureServer, identity: &Identity) {
    let expected = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("PEM");
    let config = Arc::new(site.client(&VERSIONS));
    let shows = || {
        let client = Client::secure(server.address(), &config);
        client.stream().conn.peer_certificates().expect("a certificate")[0] == expected
    };
    wait_until("the new certificate is shown", || (0..16).all(|_| shows()));
}

/// Resumes sessions with a client that has these words, across a certificate's replacement in
/// either way.
#[track_caller]
fn resumes(settings: &str, words: &[&str]) -> Option<Stats> {
    let site = site();
    let openssl = Openssl::new(&site, words)?;
    let server = SecureServer::start(site.serve_with(settings));
    assert_eq!(openssl.ask(&server), Began::New);
    openssl.resume(&server, repeats(TIMES));

    let identity = replace_certificate(&site);
    server.signal(Signal::SIGHUP);
    await_certificate(&site, &server, &identity);
    openssl.resume(&server, repeats(TIMES / 4));

    // Nobody tells the server this time.
    let identity = replace_certificate(&site);
    await_certificate(&site, &server, &identity);
    openssl.resume(&server, repeats(TIMES / 4));

    let stats = server.stop();
    let accepted = stats.of_shards("accepted");
    assert!(accepted.iter().all(|&accepted| accepted > 0), "{accepted:?}");
    assert_eq!(stats.total("handshakes_resumed") as usize, repeats(TIMES) + 2 * repeats(TIMES / 4));
    Some(stats)
}

#[test]
fn openssl_resumes_tls_1_2_by_id() {
    resumes("", &["-tls1_2", "-no_ticket"]);
}

#[test]
fn openssl_resumes_tls_1_2_by_ticket() {
    resumes("session_cache = 0", &["-tls1_2"]);
}

#[test]
fn openssl_resumes_tls_1_3_by_ticket() {
    resumes("session_cache = 0", &["-tls1_3"]);
}

/// Without tickets that hold a session, TLS 1.3 has such as name one in the cache.
#[test]
fn openssl_resumes_tls_1_3_from_the_cache() {
    resumes("tickets = false", &["-tls1_3"]);
}

/// Writes a secret that only its owner may read.
fn write_secret(site: &SecureSite, secret: &str) {
    let new = site.site.keep("new", secret);
    fs::set_permissions(&new, Permissions::from_mode(0o600)).expect("it is ours");
    fs::rename(&new, new.with_file_name("ticket.secret")).expect("the directory is ours");
}

const SECRET_SETTINGS: &str = "ticket_secret = \"ticket.secret\"\nsession_cache = 0";

#[test]
fn two_servers_with_one_secret_resume_each_others_sessions() {
    let site = site();
    write_secret(&site, &"0123456789abcdef".repeat(4));
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(openssl) = Openssl::new(&site, &[version]) else { return };
        let servers = [(), ()].map(|()| SecureServer::start(site.serve_with(SECRET_SETTINGS)));
        assert_eq!(openssl.ask(&servers[0]), Began::New);
        for _ in 0..4 {
            openssl.resume(&servers[1], 1);
            openssl.resume(&servers[0], 1);
        }
        for server in servers {
            assert_eq!(server.stop().total("handshakes_resumed"), 4);
        }
    }
}

#[test]
fn without_the_same_secret_no_session_is_resumed() {
    let site = site();
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(openssl) = Openssl::new(&site, &[version]) else { return };
        let servers = [(), ()].map(|()| site.start());
        assert_eq!(openssl.ask(&servers[0]), Began::New);
        assert_eq!(openssl.ask(&servers[1]), Began::New);
        assert_eq!(openssl.ask(&servers[1]), Began::Reused);
    }
}

/// What was made with a secret is resumed for as long as the file has it, and no longer.
#[test]
fn when_the_secret_has_changed_handshakes_are_full() {
    let [old, new] = ["0123456789abcdef", "fedcba9876543210"].map(|part| part.repeat(4));
    let site = site();
    write_secret(&site, &old);
    let server = SecureServer::start(site.serve_with(SECRET_SETTINGS));
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(openssl) = Openssl::new(&site, &[version]) else { return };
        let await_new = |secret: &str| {
            write_secret(&site, secret);
            // The secret is read with the certificates, of which one can be seen.
            let identity = replace_certificate(&site);
            server.signal(Signal::SIGHUP);
            await_certificate(&site, &server, &identity);
        };
        await_new(&old);
        assert_eq!(openssl.ask(&server), Began::New);
        assert_eq!(openssl.ask(&server), Began::Reused);
        await_new(&format!("{new}\n{old}\n"));
        assert_eq!(openssl.ask(&server), Began::Reused);
        await_new(&"0011223344556677".repeat(4));
        assert_eq!(openssl.ask(&server), Began::New);
        assert_eq!(openssl.ask(&server), Began::Reused);
    }
}

/// A server that is restarted has forgotten them, but for those under a secret of a file.
#[test]
fn a_restart_keeps_what_is_under_a_secret() {
    let site = site();
    write_secret(&site, &"0123456789abcdef".repeat(4));
    let Some(openssl) = Openssl::new(&site, &["-tls1_3"]) else { return };
    assert_eq!(openssl.ask(&SecureServer::start(site.serve_with(SECRET_SETTINGS))), Began::New);
    assert_eq!(openssl.ask(&SecureServer::start(site.serve_with(SECRET_SETTINGS))), Began::Reused);
    assert_eq!(openssl.ask(&site.start()), Began::New);
}

/// A key that others may read is no secret.
#[test]
fn a_secret_that_others_may_read_is_refused() {
    let site = site();
    let path = site.site.keep("ticket.secret", "0123456789abcdef".repeat(4));
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
    let refused = SecureServer::try_start(site.serve_with(SECRET_SETTINGS)).err();
    let said = refused.expect("it does not start").stderr;
    assert!(said.contains("ticket.secret") && said.contains("chmod"), "{said}");
}
