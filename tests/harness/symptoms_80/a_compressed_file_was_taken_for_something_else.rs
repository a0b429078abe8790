//! A compressed file beside another was compressed again, was named by its extension (`zst`), had the
//! type of an archive, or had the tag of the one that it stands for.

use std::collections::BTreeSet;

use crate::support::{Client, Server, Site, pattern};

#[test]
fn than_one_coding_of_the_original() {
    let site = Site::with("app.css", pattern(6000));
    let codings = [("br", "br"), ("zst", "zstd"), ("gz", "gzip")];
    for (bytes, (extension, _)) in (1000..).step_by(1000).zip(codings) {
        site.write(&format!("app.css.{extension}"), pattern(bytes));
        site.settle(&format!("app.css.{extension}"));
    }
    site.settle("app.css");
    let server = Server::start(site.serve());
    let mut client = Client::connect(server.address());
    let plain = client.get("/app.css");
    assert_eq!(plain.field("content-encoding"), None);
    let mut tags = BTreeSet::from([plain.field("etag").expect("a tag").to_owned()]);
    for (bytes, (_, coding)) in (1000..).step_by(1000).zip(codings) {
        let response = client.get_with("/app.css", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(response.field("content-encoding"), Some(coding));
        assert_eq!(response.field("content-type"), plain.field("content-type"));
        assert_eq!(response.field("vary"), Some("Accept-Encoding"));
        assert!(response.body == pattern(bytes), "{coding}");
        tags.insert(response.field("etag").expect("a tag").to_owned());
    }
    assert_eq!(tags.len(), 4, "each has its own");
    assert!(tags.iter().all(|tag| tag.starts_with('"')));
}
