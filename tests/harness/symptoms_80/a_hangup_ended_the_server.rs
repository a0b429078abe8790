//! SIGHUP, which asks a server to read its configuration or to open its log again, ended it: that is
//! what the kernel does for a process that says nothing of it.

use nix::sys::signal::Signal;

use crate::support::{Client, Server, Site, repeats, wait_until};

#[test]
fn while_it_served() {
    let site = Site::with("file", "content");
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    for round in 1..=repeats(20) {
        server.signal(Signal::SIGHUP);
        // Signals that come before the first is read are one.
        wait_until("it is taken note of", || server.stderr().matches("SIGHUP").count() == round);
        assert_eq!(client.get("/file").body, b"content");
        assert_eq!(Client::connect(server.address()).get("/file").body, b"content");
    }
    let stats = server.stop();
    assert_eq!(stats.total("resets"), 0);
}
