//! Bytes that go away before the kernel has read them cannot be sent.

use onering::ring::{Ring, SendBuf, Socket, Token};

fn main() {}

fn send(ring: &mut Ring, socket: &Socket, token: Token) {
    let bytes = [7; 4096];
    ring.send(socket, SendBuf::Static(&bytes), token);
}
