//! A file was replaced: the size was that of the old one, the bytes those of the new one.

use std::fs;

use crate::support::{Client, Server, Site, during};

const MIB: usize = 1 << 20;

#[test]
fn a_file_that_is_replaced_is_the_old_one_or_the_new_one() {
    // Both answered from memory, both pulled, and one of each.
    for [old, new] in [[1000, 3000], [MIB, 3 * MIB], [1000, 3 * MIB]] {
        let site = Site::new();
        let put = |letter: u8, bytes: usize| {
            site.write("new", vec![letter; bytes]);
            fs::rename(site.path("new"), site.path("file")).expect("the root is ours");
        };
        put(b'a', old);
        // Looked at with each request, so that every change is met.
        let server = Server::start(site.serve_with("[cache]\nvalid = \"0s\""));
        let replace = || {
            put(b'b', new);
            put(b'a', old);
        };
        during(replace, || {
            let mut client = Client::connect(server.address());
            for _ in 0..200 {
                let response = client.get("/file");
                assert_eq!(response.status, 200);
                let expected = match response.body[0] {
                    b'a' => vec![b'a'; old],
                    letter => vec![letter; new],
                };
                assert!(response.body == expected, "{} bytes", response.body.len());
            }
        });
        server.stop();
    }
}
