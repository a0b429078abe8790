//! One site without TLS and with it: where requests are sent on, what is said of that, who reaches it.

use super::*;
use crate::config::{Admission, ClientAuth, Policies, PolicyId, Redirect, SiteTls};
use crate::http::{HeadLimits, head};

/// A site by this name, whose files are in `root`.
fn named(root: &Path, name: &str, tls: SiteTls) -> config::Site {
    config::Site { names: vec![name.into()], tls, ..site(root) }
}

struct Server {
    files: Files,
    policies: Policies,
}

impl Server {
    fn of(sites: &[config::Site]) -> Self {
        Self { files: Files::open(sites, &cache()).expect("roots"), policies: Policies::of(sites) }
    }

    /// The channel of a client that was asked for this.
    fn tls(&self, asked: &ClientAuth) -> Channel {
        let [of_listener, asked]: [PolicyId; 2] =
            [&ClientAuth::Off, asked].map(|client_auth| self.policies.id(client_auth));
        Channel::Tls(Admission { of_listener, asked })
    }

    fn over_tls(&self) -> Channel {
        self.tls(&ClientAuth::Off)
    }

    /// The status and the head of an answer to a whole request.
    fn ask(&mut self, request: &str, channel: Channel) -> (u16, String) {
        let limits = HeadLimits { request_line_bytes: 1000, head_bytes: 10_000, fields: 10 };
        let head = head::parse(request.as_bytes(), &limits).expect("right").expect("whole");
        let reply = self.files.answer(&head, head.persistence, channel, &Now::new(LATER_S, 0));
        let text = String::from_utf8(reply.head.as_slice().to_vec()).expect("text");
        let (head, _) = text.split_once("\r\n\r\n").expect("a head");
        (reply.status.code(), head.to_owned())
    }

    fn get(&mut self, host: &str, target: &str, channel: Channel) -> (u16, String) {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"), channel)
    }
}

fn directory() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("page.html"), "page").unwrap();
    root
}

const HSTS: &str = "max-age=63072000; includeSubDomains";

#[test]
fn strict_transport_security_is_said_over_tls_alone() {
    let root = directory();
    let tls = SiteTls { hsts: Some(HSTS.into()), ..SiteTls::default() };
    let mut server = Server::of(&[named(root.path(), "a.example", tls), site(root.path())]);
    let line = format!("Strict-Transport-Security: {HSTS}");
    let over_tls = server.over_tls();
    // In either order: what is kept of the one must not be sent in the other.
    for channels in [[Channel::Plain, over_tls], [over_tls, Channel::Plain]] {
        for (target, status) in [("/page.html", 200), ("/none", 404), ("/%", 400)] {
            for channel in channels {
                let (answered, head) = server.get("a.example", target, channel);
                let expected = usize::from(channel == over_tls);
                assert_eq!((answered, head.matches(&line).count()), (status, expected), "{head}");
            }
        }
    }
    for method in ["OPTIONS", "POST"] {
        let request = format!("{method} /page.html HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert!(server.ask(&request, over_tls).1.contains(&line));
        assert!(!server.ask(&request, Channel::Plain).1.contains(&line));
    }
    let conditional = "GET /page.html HTTP/1.1\r\nHost: a.example\r\nIf-None-Match: *\r\n\r\n";
    assert!(server.ask(conditional, over_tls).1.contains(&line));
}

#[test]
fn a_site_without_more_to_say_is_one_over_either() {
    let root = directory();
    let mut server = Server::of(&[site(root.path())]);
    server.get("a", "/page.html", Channel::Plain);
    let over_tls = server.over_tls();
    server.get("a", "/page.html", over_tls);
    assert_eq!(server.files.counters().hits, 1);
    assert_eq!(server.files.counters().entries, 1);
}

#[test]
fn requests_without_tls_are_sent_on_whatever_they_ask_for() {
    let root = directory();
    let tls = SiteTls { redirect: Redirect::ToPort(8443), ..SiteTls::default() };
    let other = named(root.path(), "other.example", SiteTls::default());
    let mut server = Server::of(&[named(root.path(), "a.example", tls), other]);
    for target in ["/page.html", "/none?q=1"] {
        let (status, head) = server.get("A.example:8080", target, Channel::Plain);
        assert_eq!(status, 308);
        assert!(head.contains(&format!("Location: https://A.example:8443{target}")), "{head}");
        assert!(!head.contains("Strict-Transport-Security"));
    }
    let post = "POST /page.html HTTP/1.1\r\nHost: a.example\r\n\r\n";
    assert_eq!(server.ask(post, Channel::Plain).0, 308);
    // A name that no site has is the first site's.
    let (status, head) = server.get("b.example", "/x", Channel::Plain);
    assert_eq!(status, 308);
    assert!(head.contains("Location: https://b.example:8443/x"), "{head}");
    let (status, head) = server.ask("GET / HTTP/1.0\r\n\r\n", Channel::Plain);
    assert_eq!(status, 308);
    assert!(head.contains("Location: https://a.example:8443/"), "{head}");
    let (status, _) = server.ask("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", Channel::Plain);
    assert_eq!(status, 204);
    let over_tls = server.over_tls();
    assert_eq!(server.get("a.example", "/page.html", over_tls).0, 200);
    assert_eq!(server.get("other.example", "/page.html", Channel::Plain).0, 200);
    assert_eq!(server.files.counters().bad_targets, 0);
}

#[test]
fn where_nobody_names_a_host_a_request_cannot_be_sent_on() {
    let root = directory();
    let tls = SiteTls { redirect: Redirect::ToPort(443), ..SiteTls::default() };
    let mut server = Server::of(&[config::Site { tls, ..site(root.path()) }]);
    assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n", Channel::Plain).0, 403);
    assert_eq!(server.get("a.example", "/", Channel::Plain).0, 308);
}

#[test]
fn a_site_for_other_clients_is_not_reached() {
    let root = directory();
    let required = ClientAuth::Required { authorities: "ca.pem".into() };
    let optional = ClientAuth::Optional { authorities: "ca.pem".into() };
    let asking = |client_auth: &ClientAuth| SiteTls {
        client_auth: Some(client_auth.clone()),
        hsts: Some(HSTS.into()),
        ..SiteTls::default()
    };
    let mut server = Server::of(&[
        named(root.path(), "all.example", SiteTls::default()),
        named(root.path(), "members.example", asking(&required)),
        named(root.path(), "also.example", asking(&required)),
        named(root.path(), "guests.example", asking(&optional)),
    ]);
    for (asked, reached) in [
        (&ClientAuth::Off, &["all.example"][..]),
        (&required, &["members.example", "also.example"]),
        (&optional, &["guests.example"]),
    ] {
        let channel = server.tls(asked);
        for host in ["all.example", "members.example", "also.example", "guests.example"] {
            let expected = if reached.contains(&host) { 200 } else { 421 };
            for method in ["GET", "HEAD"] {
                let request = format!("{method} /page.html HTTP/1.1\r\nHost: {host}\r\n\r\n");
                let (status, head) = server.ask(&request, channel);
                assert_eq!(status, expected, "{asked:?} {host} {head}");
            }
            let request = format!("OPTIONS /page.html HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(server.ask(&request, channel).0 == 421, expected == 421);
        }
    }
    // Without TLS nobody can show who he is.
    for (host, status) in [("all.example", 200), ("members.example", 421), ("guests.example", 200)]
    {
        assert_eq!(server.get(host, "/page.html", Channel::Plain).0, status, "{host}");
    }
}
