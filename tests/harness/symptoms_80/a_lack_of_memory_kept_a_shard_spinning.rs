//! The kernel had no memory to send a file with. The shard asked it whether the socket had room, which
//! it had, tried at once, and so on.

use crate::support::seccomp::Confinement;
use crate::support::{Client, Server, Site, pattern};

/// A loop that spins turns a hundred thousand times in a second.
const TURNS_MAX: u64 = 2000;

#[test]
fn it_tries_again_a_little_later() {
    let site = Site::with("large", pattern(1 << 20));
    let args = site.serve_with("[timeouts]\nwrite_stall = \"1s\"");
    let server = Server::start(args.cpus("0").confined(Confinement::NoMemoryForSendfile));
    let mut client = Client::connect(server.address());
    client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // It does not try for ever, either.
    let head = String::from_utf8(client.until_the_end()).expect("no body");
    assert!(head.contains("\r\nContent-Length: 1048576\r\n"), "{head}");
    let stats = server.stop();
    assert_eq!(stats.total("timeouts_write_stall"), 1);
    assert!(stats.total("send_no_memory") > 1);
    let turns = stats.total("turns");
    assert!(turns < TURNS_MAX, "{turns} turns");
}
