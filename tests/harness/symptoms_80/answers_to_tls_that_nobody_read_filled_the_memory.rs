//! A peer asked for a large file, read none of it, and had us answer what is TLS's own affair: each
//! answer was kept behind the file, and one byte of a request in between let it go on.

use crate::support::secure::{SecureServer, SecureSite};
use crate::support::wire::{APPLICATION_DATA, Crafted, HANDSHAKE};

/// The answer, and what ends it (RFC 5246 §7.2).
const NO_RENEGOTIATION: u8 = 100;
const UNEXPECTED_MESSAGE: u8 = 10;

/// A ClientHello without anything in it, which asks for another handshake in TLS 1.2.
const HELLO: [u8; 4] = [1, 0, 0, 0];

#[test]
fn they_are_bounded() {
    let site = SecureSite::with("file", "content");
    let large = std::fs::File::create(site.site.path("large")).expect("a file");
    large.set_len(64 << 20).expect("a hole");
    // Where the kernel seals, there are no such answers: it ends in good order.
    let server = SecureServer::start(site.serve_with("ktls = \"off\""));
    let mut peer = Crafted::connect(server.address(), &site.authority, &rustls::version::TLS12);
    peer.send(APPLICATION_DATA, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    peer.send(APPLICATION_DATA, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    // Far more than is kept, and more than is sent along while the sockets still have room.
    for _ in 0..1000 {
        let mut round = peer.seal(APPLICATION_DATA, b"x");
        (0..31).for_each(|_| round.extend(peer.seal(HANDSHAKE, &HELLO)));
        peer.send_raw(&round);
    }
    let end = loop {
        match peer.until_the_end() {
            (_, Some(NO_RENEGOTIATION)) => {}
            (_, end) => break end,
        }
    };
    assert_eq!(end, Some(UNEXPECTED_MESSAGE));
    assert_eq!(server.stop().total("tls_unproductive"), 1);
}
