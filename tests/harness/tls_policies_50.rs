//! Layer 50: what a site asks for over TLS, and without it.

use std::sync::Arc;

use rustls::ClientConfig;

use crate::support::Client;
use crate::support::secure::{
    SecureServer, SecureSite, TlsStream, VERSIONS, Version, client_config_of,
};

/// A server of two sites, `all.example` and `members.example`, of which the second is told `tls`.
fn sites(tls: &str) -> (SecureSite, SecureServer) {
    let secure = SecureSite::with("file", "content");
    secure.authority.issue(&["all.example", "members.example"]).keep(&secure.site, "server");
    secure.site.keep("ca.pem", secure.authority.pem());
    let config = format!(
        "[tls]\ncertificates = [{{ cert = \"server.pem\", key = \"server.key\" }}]\n\
         [[site]]\nnames = [\"all.example\"]\nroot = \"root\"\n\
         [[site]]\nnames = [\"members.example\"]\nroot = \"root\"\n[site.tls]\n{tls}\n"
    );
    let config = secure.site.keep("onering.toml", config);
    let server = SecureServer::start(crate::support::Args::of(["serve", "--config"]).arg(config));
    (secure, server)
}

fn get(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn connect(server: &SecureServer, config: &Arc<ClientConfig>, name: &str) -> Client<TlsStream> {
    Client::try_secure(server.address(), config, name).expect("the handshake is right")
}

#[track_caller]
fn assert_status(client: &mut Client<TlsStream>, host: &str, status: u16) {
    client.send(get(host, "/file"));
    assert_eq!(client.response().status, status, "{host}");
}

#[test]
fn strict_transport_security_and_a_redirect_are_for_those_who_need_them() {
    let (secure, server) = sites("hsts = \"max-age=1000\"\nredirect = true");
    let config = Arc::new(secure.client(&VERSIONS));
    for (name, expected) in [("members.example", Some("max-age=1000")), ("all.example", None)] {
        let mut client = connect(&server, &config, name);
        client.send(get(name, "/file"));
        let answer = client.response();
        assert_eq!((answer.status, answer.field("strict-transport-security")), (200, expected));
    }
    let mut client = Client::connect(server.plain_address());
    client.send(get("members.example:80", "/file?q=%20"));
    let answer = client.response();
    let place = format!("https://members.example:{}/file?q=%20", server.address().port());
    assert_eq!((answer.status, answer.field("location")), (308, Some(&*place)));
    assert_eq!(answer.field("strict-transport-security"), None);
    client.send(get("all.example", "/file"));
    assert_eq!(client.response().body, b"content");
}

#[test]
fn a_site_for_members_is_for_those_who_have_shown_that_they_are() {
    let (secure, server) = sites("client_ca = \"ca.pem\"");
    let me = secure.authority.issue(&["me"]);
    let strangers_refused = |version: &'static Version| {
        let stranger = Arc::new(secure.client(&[version]));
        // In TLS 1.3 a client learns with the answer that its handshake was not enough.
        match Client::try_secure(server.address(), &stranger, "members.example") {
            Ok(mut client) => {
                client.send(get("members.example", "/file"));
                let mut byte = [0];
                std::io::Read::read(client.stream_mut(), &mut byte).is_err()
            }
            Err(_) => true,
        }
    };
    for version in VERSIONS {
        assert!(strangers_refused(version));
        let member = Arc::new(client_config_of(&me, &secure.authority, &[version]));
        let mut client = connect(&server, &member, "members.example");
        // Whoever was asked for one site has not been asked for the other, either way.
        assert_status(&mut client, "members.example", 200);
        assert_status(&mut client, "all.example", 421);
        assert_status(&mut client, "members.example", 200);
        for config in [Arc::new(secure.client(&[version])), member] {
            let mut client = connect(&server, &config, "all.example");
            assert_status(&mut client, "members.example", 421);
            assert_status(&mut client, "all.example", 200);
        }
    }
    assert_eq!(server.stop().total("tls_client_certificates"), 2);
}

#[test]
fn the_scheme_of_a_uri_is_that_of_its_connection() {
    let (secure, server) = sites("");
    let config = Arc::new(secure.client(&VERSIONS));
    for (uri, status) in [("https://all.example/file", 200), ("http://all.example/file", 421)] {
        let mut client = connect(&server, &config, "all.example");
        client.send(get("all.example", uri));
        assert_eq!(client.response().status, status, "{uri}");
    }
    let mut client = Client::connect(server.plain_address());
    client.send(get("all.example", "https://all.example/file"));
    assert_eq!(client.response().status, 421);
}
