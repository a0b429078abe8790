//! Whole answers were made for as many requests as a turn allows, however large: peers that read
//! nothing made the server hold half a megabyte each.

use crate::support::{Client, Server, Site, pattern, wait_for};

/// The most memory that the server has had, in KiB, once it has not grown for a while.
fn settled_peak_kib(server: &Server) -> u64 {
    let (mut peak, mut same) = (0, 0);
    wait_for("the memory does not grow", || {
        let now = server.memory_kib("VmHWM");
        same = if now == peak { same + 1 } else { 0 };
        peak = now;
        (same == 100).then_some(peak)
    })
}

#[test]
fn by_many_parts_of_a_small_file() {
    const CLIENTS: u64 = 200;
    let site = Site::with("file", pattern(30_000));
    let server = Server::start(site.serve().cpus("0"));
    assert_eq!(Client::connect(server.address()).get("/file").status, 200);
    let before_kib = settled_peak_kib(&server);
    // More than the kernel keeps for them; each part is made for its request alone.
    let requests = "GET /file HTTP/1.1\r\nHost: localhost\r\nRange: bytes=1-\r\n\r\n".repeat(500);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::narrow(server.address(), 4096);
        client.send(&requests);
        clients.push(client);
    }
    let more_kib = settled_peak_kib(&server) - before_kib;
    assert!(more_kib < CLIENTS * 256, "{more_kib} KiB for {CLIENTS} clients");
    clients.into_iter().for_each(Client::reset);
    server.stop();
}
