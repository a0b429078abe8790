//! A file was rewritten to the same size within the second, or within the step of the file system's
//! clock: its tag was the same, so that who had the old bytes was told that they were the new ones, or
//! had parts of both joined.

use crate::support::{Client, Server, Site, repeats};

#[test]
fn nor_were_its_parts() {
    // Whatever is in the cache is looked at for each request.
    for settings in ["[cache]\nvalid = \"0s\"", ""] {
        let site = Site::new();
        let server = Server::start(site.serve_with(settings));
        let mut client = Client::connect(server.address());
        for round in 0..repeats(200) {
            let path = format!("/file{}", round % 3);
            site.write(&path[1..], "A".repeat(26));
            let first = client.get(&path);
            if first.body != [b'A'; 26] {
                // As it was in an earlier round, and is for as long as an entry is valid.
                continue;
            }
            let tag = first.field("etag").expect("a tag").to_owned();
            site.write(&path[1..], "B".repeat(26));
            for condition in [
                format!("If-None-Match: {tag}\r\n"),
                format!("If-None-Match: {}\r\n", tag.trim_start_matches("W/")),
                format!("If-Range: {tag}\r\nRange: bytes=13-\r\n"),
            ] {
                let second = client.get_with(&path, &condition);
                assert_eq!((second.status, second.body), (200, vec![b'B'; 26]), "round {round}");
            }
        }
    }
}
