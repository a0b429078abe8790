//! A line that could not be written, to a full disk or a pipe that nobody reads, was reported on
//! standard error, which was the very place: the shard panicked, and the server ended.

use std::fs::File;

use crate::support::server::run;
use crate::support::{Args, Client, Server, Site};

#[test]
fn by_a_line_of_a_shard() {
    let site = Site::with("small", "small\n");
    site.write("large", vec![b'x'; 16 << 20]);
    let server = Server::start(site.serve().stderr_to("/dev/full"));
    let mut client = Client::connect(server.address());
    client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.head();
    let large = File::options().write(true).open(site.path("large")).expect("the file is ours");
    large.set_len(1).expect("the file is ours");
    client.until_the_end();
    assert_eq!(Client::connect(server.address()).get("/small").status, 200);
    assert_eq!(server.stop().total("truncated_files"), 1);
}

#[test]
fn with_a_status_that_says_nothing() {
    let nowhere = Args::of(["serve", "/nowhere"]);
    let (said, unsaid) =
        (run(nowhere), run(Args::of(["serve", "/nowhere"]).stderr_to("/dev/full")));
    assert_eq!(unsaid.status.code(), said.status.code());
}
