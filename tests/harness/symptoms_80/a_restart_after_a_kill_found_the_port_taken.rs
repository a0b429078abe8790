//! A server that was killed, and whose clients were many, left its port taken for some milliseconds
//! more: the one that was started in its place at once did not start.

use crate::support::server::unused_address;
use crate::support::{Client, Server, Site, repeats};

#[test]
fn it_is_free_for_the_next() {
    let site = Site::with("file", "content");
    let address = unused_address();
    for round in 0..repeats(20) {
        let server = Server::try_start_on(address, site.serve());
        let server = server.unwrap_or_else(|exit| panic!("round {round}: {exit:#?}"));
        let mut clients: Vec<_> = (0..100).map(|_| Client::connect(address)).collect();
        for client in &mut clients {
            assert_eq!(client.get("/file").body, b"content");
        }
        // By SIGKILL; its connections with it.
        drop(server);
    }
}
