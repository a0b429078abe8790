//! The path was resolved, and then compared with the root by the beginning of its text: a directory
//! beside the root whose name begins like the root's was served.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Client, Server, Site};

#[test]
fn whose_name_begins_alike() {
    let site = Site::with("file", "content");
    let sibling = site.path("../root-evil");
    fs::create_dir(&sibling).expect("the directory is ours");
    fs::write(sibling.join("secret"), "secret").expect("the directory is ours");
    symlink("../root-evil", site.path("link")).expect("the root is ours");
    symlink("../root-evil/secret", site.path("link-to-file")).expect("the root is ours");
    symlink(&sibling, site.path("absolute-link")).expect("the root is ours");
    let server = Server::start(site.serve());
    for target in [
        "/../root-evil/secret",
        "/%2e%2e/root-evil/secret",
        "/.%2E/root-evil/secret",
        "/x/../../root-evil/secret",
        "/..%2froot-evil/secret",
        "/%2e%2e%2froot-evil%2fsecret",
        "/..\\root-evil\\secret",
        "/..%5croot-evil%5csecret",
        "/../root-evil/../root/file",
        "/-evil/secret",
        "-evil/secret",
        "/.-evil/secret",
        "http://localhost-evil/../root-evil/secret",
        "/link/secret",
        "/link-to-file",
        "/absolute-link/secret",
    ] {
        let mut client = Client::connect(server.address());
        let response = client.get(target);
        assert!([400, 403, 404].contains(&response.status), "{target}: {}", response.status);
        assert!(memchr::memmem::find(&response.body, b"secret").is_none(), "{target}");
    }
    assert_eq!(Client::connect(server.address()).get("/file").body, b"content");
}
