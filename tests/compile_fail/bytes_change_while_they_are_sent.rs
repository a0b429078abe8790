//! Bytes that the kernel may be reading cannot be changed.

use std::rc::Rc;

use onering::ring::{Ring, SendBuf, Socket, Token};

fn main() {}

fn send(ring: &mut Ring, socket: &Socket, token: Token) {
    let mut bytes: Rc<[u8]> = Rc::from(&b"hello"[..]);
    ring.send(socket, SendBuf::Shared(Rc::clone(&bytes), 0..5), token);
    bytes[0] = b'j';
}
