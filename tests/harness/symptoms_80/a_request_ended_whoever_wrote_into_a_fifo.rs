//! A request for a FIFO opened it for a moment: a process of the host that was waiting for a reader went
//! on, found none, and was ended by SIGPIPE.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Client, Server, Site};

#[test]
fn a_fifo_has_the_reader_that_it_is_for() {
    let site = Site::with("directory/other", "");
    let fifo = site.path("fifo");
    mkfifo(&fifo, Mode::from_bits_truncate(0o644)).expect("the root is ours");
    std::os::unix::fs::symlink("../fifo", site.path("directory/index.html")).expect("so is this");
    let server = Server::start(site.serve());
    let path = fifo.clone();
    let writer = thread::spawn(move || fs::write(path, "for its reader"));
    let mut client = Client::connect(server.address());
    for (path, status) in [("/fifo", 404), ("//fifo", 404), ("/./fifo", 404), ("/directory/", 403)]
    {
        for spelling in ["", "?"] {
            assert_eq!(client.get(&format!("{path}{spelling}")).status, status, "{path}");
        }
    }
    let _reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(fifo);
    writer.join().expect("no panic").expect("its reader is there");
}
