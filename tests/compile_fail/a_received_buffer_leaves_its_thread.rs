//! What was received goes back to the ring of its own thread.

use onering::ring::RecvBuf;

fn main() {}

fn is_send<T: Send>(_: T) {}

fn hand_over(bytes: RecvBuf) {
    is_send(bytes);
}
