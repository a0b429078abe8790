//! A part was sent to who had the beginning of something that is only about the same.

use crate::support::{Client, Server, Site, pattern};

#[test]
fn of_a_file_long_settled() {
    let site = Site::with("file", pattern(5000));
    site.settle("file");
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let tag = client.get("/file").field("etag").expect("a tag").to_owned();
    assert!(!tag.starts_with("W/"));
    for (validator, status) in [(format!("W/{tag}"), 200), ("\"x\"".to_owned(), 200), (tag, 206)] {
        let fields = format!("If-Range: {validator}\r\nRange: bytes=4000-\r\n");
        let response = client.get_with("/file", &fields);
        assert_eq!(response.status, status, "{validator}");
        let first = if status == 206 { 4000 } else { 0 };
        assert!(response.body == pattern(5000)[first..]);
    }
}
