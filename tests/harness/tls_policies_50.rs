//! Layer 50: what a site asks for over TLS, and without it.

use std::net::SocketAddr;

use crate::support::server::unused_address;
use crate::support::visitor::{Pki, Visitor};
use crate::support::{Client, Server, Site};

/// A server of two sites, `all.example` and `members.example`, of which the second is told `tls`.
fn server(pki: &Pki, site: &Site, tls: &str) -> (Server, SocketAddr) {
    pki.issue("site", &["all.example", "members.example"]);
    let root = site.path(".");
    let root = root.display();
    let config = format!(
        "[tls]\ncertificates = [{{ cert = \"site.pem\", key = \"site.key\" }}]\n\
         [[site]]\nnames = [\"all.example\"]\nroot = \"{root}\"\n\
         [[site]]\nnames = [\"members.example\"]\nroot = \"{root}\"\n[site.tls]\n{tls}\n"
    );
    let address = unused_address();
    let args = pki.run("serve", &config).arg("--tls-listen").arg(address.to_string());
    (Server::start(args), address)
}

fn get(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[track_caller]
fn assert_status(head: &str, status: u16) {
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
}

#[test]
fn strict_transport_security_and_a_redirect_are_for_those_who_need_them() {
    let (pki, site) = (Pki::new(), Site::with("file", "content"));
    let (server, address) = server(&pki, &site, "hsts = \"max-age=1000\"\nredirect = true");
    let visitor = Visitor::new(&pki, None);
    let ask = |name: &str| visitor.ask(address, name, &get(name, "/file")).expect("an answer");
    let members = ask("members.example");
    assert_status(&members, 200);
    assert!(members.contains("\r\nStrict-Transport-Security: max-age=1000"), "{members}");
    assert!(!ask("all.example").contains("Strict-Transport-Security"));

    let mut client = Client::connect(server.address());
    client.send(get("members.example:80", "/file?q=%20"));
    let answer = client.response();
    let place = format!("https://members.example:{}/file?q=%20", address.port());
    assert_eq!((answer.status, answer.field("location")), (308, Some(&*place)));
    assert_eq!(answer.field("strict-transport-security"), None);
    client.send(get("all.example", "/file"));
    assert_eq!(client.response().body, b"content");
}

#[test]
fn a_site_for_members_is_for_those_who_have_shown_that_they_are() {
    let (pki, site) = (Pki::new(), Site::with("file", "content"));
    let (server, address) = server(&pki, &site, "client_ca = \"ca.pem\"");
    let me = pki.issue("me", &["me"]);
    let (stranger, member) = (Visitor::new(&pki, None), Visitor::new(&pki, Some(&me)));
    // In TLS 1.3 a client learns with the answer that its handshake was not enough.
    let refused = stranger.ask(address, "members.example", &get("members.example", "/file"));
    assert!(refused.is_err(), "{refused:?}");
    let mut visit = member.connect(address, "members.example").expect("it is a member");
    assert_status(&visit.ask(&get("members.example", "/file")).expect("an answer"), 200);
    // Whoever was asked for one site has not been asked for the other, either way.
    assert_status(&visit.ask(&get("all.example", "/file")).expect("an answer"), 421);
    assert_status(&visit.ask(&get("members.example", "/file")).expect("an answer"), 200);
    for visitor in [&stranger, &member] {
        let mut visit = visitor.connect(address, "all.example").expect("it is for all");
        assert_status(&visit.ask(&get("members.example", "/file")).expect("an answer"), 421);
        assert_status(&visit.ask(&get("all.example", "/file")).expect("an answer"), 200);
    }
    let stats = server.stop();
    assert_eq!(stats.total("tls_client_certificates"), 1);
}

#[test]
fn the_scheme_of_a_uri_is_that_of_its_connection() {
    let (pki, site) = (Pki::new(), Site::with("file", "content"));
    let (server, address) = server(&pki, &site, "");
    let visitor = Visitor::new(&pki, None);
    for (uri, status) in [("https://all.example/file", 200), ("http://all.example/file", 421)] {
        let head = visitor.ask(address, "all.example", &get("all.example", uri));
        assert_status(&head.expect("an answer"), status);
    }
    let mut client = Client::connect(server.address());
    client.send(get("all.example", "https://all.example/file"));
    assert_eq!(client.response().status, 421);
}
