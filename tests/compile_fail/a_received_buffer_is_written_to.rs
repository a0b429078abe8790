//! What was received lies in memory that goes back to the kernel: it can be looked at only.

use onering::ring::{Event, Ring};

fn main() {}

fn receive(ring: &mut Ring) {
    while let Some(completion) = ring.completion() {
        if let Event::Received(mut bytes) = completion.event {
            bytes[0] = 0;
        }
    }
}
