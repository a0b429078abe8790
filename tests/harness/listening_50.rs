//! Layer 50: where the server listens, and how it says where something is.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::support::peer::two_cpus;
use crate::support::{Args, Client, Server, Site, skip, wait_for};

#[test]
fn both_families_can_have_one_port() {
    if TcpListener::bind("[::1]:0").is_err() {
        return skip("needs IPv6");
    }
    let site = Site::with("dir/file", "content");
    let (server, port) = wait_for("a port that is free in both families", || {
        let probe = TcpListener::bind("[::]:0").expect("there are ports");
        let port = probe.local_addr().expect("a bound socket").port();
        drop(probe);
        let both = ["--listen", &format!("[::]:{port}"), "--listen", &format!("0.0.0.0:{port}")];
        match Server::try_start(both.into_iter().fold(site.serve(), Args::arg)) {
            Ok(server) => Some((server, port)),
            // A client of another test has it meanwhile, for its own end.
            Err(exit) if exit.stderr.contains("in use") => None,
            Err(exit) => panic!("{exit:#?}"),
        }
    });
    for (host, address) in [
        ("[::1]", SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))),
        ("127.0.0.1", SocketAddr::from(([127, 0, 0, 1], port))),
    ] {
        let mut client = Client::connect(address);
        client.send(format!("GET /dir/file HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"));
        assert_eq!(client.response().body, b"content");
        client.send(format!("GET /dir HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"));
        let response = client.response();
        assert_eq!((response.status, response.field("location")), (301, Some("/dir/")));
    }
    assert_eq!(server.stop().total("accepted"), 2);
}

/// A listening socket that programs started meanwhile inherit.
struct Inherited(TcpListener);

impl Inherited {
    fn new() -> Inherited {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
        fcntl(&listener, FcntlArg::F_SETFD(FdFlag::empty())).expect("the socket is ours");
        Inherited(listener)
    }

    fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound socket")
    }
}

#[test]
fn an_inherited_socket_is_served_by_all_shards_and_outlives_the_server() {
    let cpus = two_cpus().map_or("0".into(), |[first, second]| format!("{first},{second}"));
    let site = Site::with("file", "content");
    let inherited = Inherited::new();
    let number = inherited.number().to_string();
    for _ in 0..2 {
        let args = site.serve().cpus(&cpus).arg("--listen-fd").arg(&number);
        let server = Server::start(args);
        let mut clients: Vec<_> = (0..100).map(|_| Client::connect(inherited.address())).collect();
        for client in &mut clients {
            assert_eq!(client.get("/file").body, b"content");
        }
        drop(clients);
        assert_eq!(server.stop().total("accepted"), 100);
    }
    // Nobody serves it now; the service manager still has it.
    Client::connect(inherited.address());
}
