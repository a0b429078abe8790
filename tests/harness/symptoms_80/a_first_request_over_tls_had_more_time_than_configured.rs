//! A peer that said nothing after its handshake was given what was left of the handshake's time.

use std::sync::Arc;

use crate::support::Client;
use crate::support::secure::{SecureServer, SecureSite, VERSIONS, until_close_notify};

#[test]
fn it_has_the_time_of_a_head() {
    let site = SecureSite::with("file", "content");
    let settings = "[timeouts]\nhead = \"300ms\"\nhandshake = \"1h\"";
    let server = SecureServer::start(site.serve_with(settings));
    let mut client = Client::secure(server.address(), &Arc::new(site.client(&VERSIONS)));
    assert_eq!(until_close_notify(&mut client).expect("the end of TLS"), b"");
    let stats = server.stop();
    assert_eq!((stats.total("timeouts_head"), stats.total("timeouts_handshake")), (1, 0));
}
