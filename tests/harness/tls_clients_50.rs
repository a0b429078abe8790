//! Layer 50: clients that others have written are served over TLS as they are without it.

use std::path::PathBuf;

use crate::support::secure::{SecureServer, SecureSite};
use crate::support::{pattern, skip, tools};

const MIB: usize = 1 << 20;

/// A site with a small and a large file, and a server of it.
fn serve() -> (SecureSite, SecureServer) {
    let site = SecureSite::with("file", "content");
    site.site.write("large", pattern(MIB));
    let server = site.start();
    (site, server)
}

/// A program, or the test is skipped.
fn program(name: &str) -> Option<PathBuf> {
    let found = tools::find(name);
    if found.is_none() {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// What curl says to these words; it trusts the site's authority and no other.
#[track_caller]
fn curl(
    program: &PathBuf,
    site: &SecureSite,
    server: &SecureServer,
    words: &[&str],
) -> tools::Said {
    let authority = site.site.keep("authority.pem", site.authority.pem()).display().to_string();
    let resolve = server.resolve();
    let common = ["--silent", "--show-error", "--max-time", "30", "--cacert", &authority];
    let all = [&common[..], &["--resolve", &resolve], words].concat();
    tools::run(program, all, "")
}

#[test]
fn curl_is_served_in_both_versions() {
    let Some(program) = program("curl") else { return };
    let (site, server) = serve();
    let (small, large) = (server.url("/file"), server.url("/large"));
    for version in [&["--tlsv1.2", "--tls-max", "1.2"][..], &["--tlsv1.3"]] {
        let ask = |words: &[&str]| {
            let said = curl(&program, &site, &server, &[version, words].concat());
            assert_eq!(said.code, Some(0), "{version:?} {words:?}: {}", said.text);
            said
        };
        assert_eq!(ask(&[&small]).stdout, b"content");
        assert!(ask(&[&large]).stdout == pattern(MIB), "{version:?}");
        assert!(ask(&["--range", "1000-99999", &large]).stdout == pattern(MIB)[1000..100_000]);
        let head = String::from_utf8(ask(&["--head", &large]).stdout).expect("a text");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.to_lowercase().contains("\r\ncontent-length: 1048576\r\n"), "{head}");
        // One connection for both, and the protocol is agreed upon.
        let said = ask(&["--verbose", "--write-out", "%{num_connects}", &small, &small]);
        assert_eq!(said.stdout, b"content1content0", "{}", said.text);
        assert!(said.text.contains("http/1.1"), "{}", said.text);
    }
    // What nobody vouches for is for the client to refuse.
    let stranger = SecureSite::with("file", "content");
    let refused = curl(&program, &stranger, &server, &[&small]);
    assert_eq!(refused.code, Some(60), "{}", refused.text);
    assert!(server.stop().total("tls_peer_alerts") >= 1);
}

#[test]
fn curl_shows_who_it_is() {
    let Some(program) = program("curl") else { return };
    let site = SecureSite::with("file", "content");
    site.site.keep("clients.pem", site.authority.pem());
    let settings = "[site.tls]\nclient_ca = \"clients.pem\"\nclient_auth = \"required\"";
    let server = SecureServer::start(site.serve_with(settings));
    let url = server.url("/file");
    let [certificate, key] = site.authority.issue(&["a client"]).keep(&site.site, "client");
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    for version in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
        let words = [version, &["--cert", &certificate, "--key", &key, &url]].concat();
        let known = curl(&program, &site, &server, &words);
        assert_eq!((known.code, &*known.stdout), (Some(0), &b"content"[..]), "{}", known.text);
        let unknown = curl(&program, &site, &server, &[version, &[&url]].concat());
        assert_ne!(unknown.code, Some(0), "{version:?}");
        assert_eq!(unknown.stdout, b"", "{version:?}");
    }
    assert_eq!(server.stop().total("tls_client_certificates"), 2);
}

#[test]
fn wrk_is_served_without_an_error() {
    let Some(program) = program("wrk") else { return };
    let (_site, server) = serve();
    for path in ["file", "large"] {
        let url = format!("https://{}/{path}", server.address());
        let said = tools::run(&program, ["-t1", "-c8", "-d1s", &url], "");
        assert_eq!(said.code, Some(0), "{}", said.text);
        let requests = said.text.lines().find_map(|line| line.trim().split_once(" requests in "));
        let requests: u64 = requests.expect("a result").0.parse().expect("a number");
        assert!(requests > 0, "{}", said.text);
        for error in ["Socket errors", "Non-2xx"] {
            assert!(!said.text.contains(error), "{}", said.text);
        }
    }
    assert_eq!(server.stop().total("tls_failed"), 0);
}

#[test]
fn h2load_is_served_without_an_error() {
    let Some(program) = program("h2load") else { return };
    let (_site, server) = serve();
    for (path, count) in [("file", "2000"), ("large", "100")] {
        let url = format!("https://{}/{path}", server.address());
        let said = tools::run(&program, ["--h1", "-n", count, "-c", "8", "-t", "1", &url], "");
        assert_eq!(said.code, Some(0), "{}", said.text);
        let right = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
        assert!(said.text.contains(&right), "{}", said.text);
        assert!(said.text.contains(&format!("{count} 2xx")), "{}", said.text);
    }
    assert_eq!(server.stop().total("tls_failed"), 0);
}
