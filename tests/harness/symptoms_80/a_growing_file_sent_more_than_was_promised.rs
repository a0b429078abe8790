//! A file grew while it was sent, and with it the body, beyond its Content-Length.

use std::fs;
use std::io::Write;
use std::thread;

use crate::support::{Client, Server, Site, during, pattern};

const MIB: usize = 1 << 20;

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_was_promised() {
    // One that is answered from memory, and one that is pulled.
    for (name, bytes) in [("small", 1000), ("large", 2 * MIB)] {
        let site = Site::with(name, pattern(bytes));
        let server = Server::start(site.serve());
        let mut file = fs::File::options().append(true).open(site.path(name)).expect("it is ours");
        let grow = || {
            file.write_all(&[b'+'; 100]).expect("there is room");
            thread::yield_now();
        };
        during(grow, || {
            let mut clients: Vec<_> = (0..4).map(|_| Client::connect(server.address())).collect();
            let path = format!("/{name}");
            for _ in 0..10 {
                for client in &mut clients {
                    client.send([request(&path), request(&path)].concat());
                }
                for client in &mut clients {
                    for _ in 0..2 {
                        // The next head begins right where the length has said.
                        let response = client.response();
                        assert_eq!(response.status, 200);
                        let (old, new) = response.body.split_at(bytes);
                        assert!(old == pattern(bytes));
                        assert!(new.iter().all(|&byte| byte == b'+'));
                    }
                }
            }
        });
        server.stop();
    }
}
