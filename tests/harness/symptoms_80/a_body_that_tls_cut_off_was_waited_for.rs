//! The peer said in TLS that it sends no more, in the midst of a request's body. Its FIN was waited for,
//! which was not received as long as nothing had been answered on the connection: until `timeouts.body`.

use std::sync::Arc;

use crate::support::Client;
use crate::support::secure::{SecureServer, SecureSite, VERSIONS, until_close_notify};

#[test]
fn it_is_refused_at_once() {
    let site = SecureSite::with("file", "content");
    let server = SecureServer::start(site.serve_with("[timeouts]\nbody = \"1h\""));
    for version in VERSIONS {
        let mut client = Client::secure(server.address(), &Arc::new(site.client(&[version])));
        client.send("POST /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello");
        client.close_sending();
        assert_eq!(client.response().status, 400, "{version:?}");
        assert_eq!(until_close_notify(&mut client).expect("the end of TLS"), b"", "{version:?}");
    }
    assert_eq!(server.stop().total("refused_body_cut"), 2);
}
