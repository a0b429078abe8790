//! A socket that was given up to be closed cannot be used: its number may be another's.

use std::os::fd::AsRawFd;

use onering::ring::{Ring, Socket};

fn main() {}

fn close(ring: &mut Ring, socket: Socket) -> i32 {
    ring.close(socket);
    socket.as_raw_fd()
}
