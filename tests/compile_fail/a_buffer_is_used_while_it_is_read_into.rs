//! The buffer that a read fills is the ring's until the read is over.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use onering::ring::{Lease, Ring, Token};

fn main() {}

fn read(ring: &mut Ring, file: &Rc<OwnedFd>, lease: Lease, token: Token) -> u8 {
    ring.read(file, 0, lease, 4096, token);
    lease[0]
}
