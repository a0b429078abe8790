//! The kernel had no memory to send a file with. The shard asked it whether the socket had room, which
//! it had, tried at once, and so on.

use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::seccomp::Confinement;
use crate::support::{Client, Server, Site, pattern};

/// A spell in which little is to be done. What happens in it is counted, not timed: a loop that spins
/// turns a hundred thousand times.
const SPELL: Duration = Duration::from_secs(1);
const TURNS_MAX: u64 = 2000;

#[test]
fn it_tries_again_a_little_later() {
    let site = Site::with("large", pattern(1 << 20));
    let confined = site.serve().cpus("0").confined(Confinement::NoMemoryForSendfile);
    let server = Server::start(confined);
    let mut client = Client::connect(server.address());
    client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    thread::sleep(SPELL);
    // There will be no memory in time for an end in good order.
    server.signal(Signal::SIGTERM);
    server.signal(Signal::SIGINT);
    let stats = server.finish();
    assert_eq!(stats.total("drain_cut_off"), 1);
    assert!(stats.total("send_no_memory") > 1);
    let turns = stats.total("turns");
    assert!(turns < TURNS_MAX, "{turns} turns");
}
