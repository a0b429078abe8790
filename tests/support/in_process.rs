//! A shard in the test's own process, for tools that watch over one process: the address sanitizer,
//! a counting allocator.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use onering::config::{self, Config, Facts, File, Overrides};
use onering::metrics::Counters;
use onering::ring::{Ring, Setup, Wait};
use onering::server::Registry;
use onering::shard::{Assignment, Inbox, Letter, Shard};
use onering::tls::clock::Clock;
use onering::tls::{Material, Problems, Resumption};

use super::Site;
use super::server::unused_address;

/// A shard on a thread of its own. To be stopped.
pub(crate) struct InProcess {
    address: SocketAddr,
    tls_address: SocketAddr,
    inbox: Arc<Inbox>,
    thread: JoinHandle<io::Result<()>>,
    /// What it has counted so far.
    pub(crate) counters: Arc<Counters>,
    /// To wake it with.
    ring: Ring,
    /// Open until it has ended.
    _registry: Registry,
}

/// Certificates and keys, as the configuration wants them.
fn material(config: &Config) -> Arc<Material> {
    let mut problems = Problems::default();
    let now_s = onering::sys::clock::realtime_s();
    let clock = Arc::new(Clock::at(now_s));
    let resumption = Resumption::new(&config.tls, 1, clock, &mut problems).map(Arc::new);
    let material = resumption.and_then(|resumption| {
        Material::load(config, &resumption, None, now_s as i64, &mut problems)
    });
    Arc::new(material.unwrap_or_else(|| panic!("{problems}")))
}

impl InProcess {
    /// Serves a site, with settings as for [`Site::serve_with`]. `begin` runs on the shard's thread
    /// when the shard is made.
    pub(crate) fn start(
        site: &Site,
        settings: &str,
        begin: impl FnOnce() + Send + 'static,
    ) -> InProcess {
        let address = unused_address();
        let text = format!("[[site]]\nroot = {:?}\n{settings}\n", site.path(""));
        let file = File { path: Path::new("in-process.toml"), text: &text };
        // A second listener, which speaks TLS with a certificate of its own making.
        let tls_address = unused_address();
        let overrides = Overrides {
            listen: vec![address],
            tls_listen: vec![tls_address],
            ..Overrides::default()
        };
        let facts = Facts { allowed_cpus: vec![0], nofile: 1024 };
        let config = config::resolve(Some(file), &overrides, &facts).expect("good settings");
        let registry = Registry::bind(&config).expect("an address of our own");
        let counters = Arc::new(Counters::default());
        let assignment = Assignment {
            index: 0,
            cpu: 0,
            steered: false,
            listeners: registry.lend(0),
            material: material(&config),
            kernel_may_seal: false,
            worker: None,
            counters: Arc::clone(&counters),
        };
        let (made, inbox) = mpsc::channel();
        let thread = thread::spawn(move || {
            let shard = Shard::new(Arc::new(config), assignment).expect("there is io_uring");
            let inbox = shard.inbox();
            made.send(Arc::clone(&inbox)).expect("the test waits");
            begin();
            shard.run(Arc::from([inbox]))
        });
        let inbox = inbox.recv().expect("the shard is made");
        let setup = Setup { entries: 64, recv_buffers: 1, ..Setup::default() };
        let ring = Ring::new(&setup).expect("there is io_uring");
        InProcess { address, tls_address, inbox, thread, counters, ring, _registry: registry }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it speaks TLS, with a certificate that it has made itself unless the settings name one.
    pub(crate) fn tls_address(&self) -> SocketAddr {
        self.tls_address
    }

    /// Has it drain, and waits for its end.
    #[track_caller]
    pub(crate) fn stop(self) {
        self.tell(Letter::Drain);
    }

    /// Has it end at once, and waits for that.
    #[track_caller]
    pub(crate) fn cut(self) {
        self.tell(Letter::Cut);
    }

    #[track_caller]
    fn tell(mut self, letter: Letter) {
        self.inbox.send(letter, &mut self.ring);
        self.ring.enter(Wait::No).expect("the ring works");
        let ended = self.thread.join().expect("the shard does not panic");
        ended.expect("its ring works");
    }
}
