//! A buffer for reads that is being sent cannot be written to.

use std::rc::Rc;

use onering::ring::{Lease, Ring, SendBuf, Socket, Token};

fn main() {}

fn send(ring: &mut Ring, socket: &Socket, lease: Lease, token: Token) {
    let mut lease = Rc::new(lease);
    ring.send(socket, SendBuf::Leased(Rc::clone(&lease), 0..4096), token);
    lease[0] = 1;
}
