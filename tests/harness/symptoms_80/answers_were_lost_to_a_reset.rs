//! Reading was being stopped, for too much had come, when the last answer was sent: the connection
//! was then closed with bytes unread, and the reset could overtake the answer.

use crate::support::{Client, Server, Site};

#[test]
fn a_refused_peer_may_go_on_sending() {
    let site = Site::with("small", "small\n");
    let server = Server::start(site.serve());
    let much = vec![b'b'; 2_000_000];
    for round in 0..20 {
        let mut client = Client::connect(server.address());
        assert_eq!(client.get("/small").status, 200);
        // More than the server keeps of a peer lies ready when it looks.
        server.pause();
        client.send("POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n");
        client.send(&much);
        server.resume();
        assert_eq!(client.response().status, 413, "round {round}");
        assert_eq!(client.rest(), b"", "round {round}");
        client.send(&much);
    }
    let stats = server.stop();
    assert!(stats.total("receives_stopped") > 0);
    assert_eq!(stats.total("resets"), 0);
}
