//! The listeners: bound once, before any shard exists, and kept until the process ends.
//!
//! A SO_REUSEPORT group is ordered by the time at which its sockets were bound, and steering counts on
//! that order: listener `i` is shard `i`'s. Closing one would move the last one into its place and
//! reset the connections that wait in it. Hence this registry owns every listener, shards borrow
//! theirs, and nothing here closes one early. It accepts nothing itself.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::config::{Config, Endpoint, Listener, Redirect, Steer};
use crate::sys::holder::{Holder, holder};
use crate::sys::socket::{self, AdoptError, ListenError, ListenOptions};
use crate::sys::steering::{self, Queues};

/// How often, and after how long each time, a port is tried that is in use: one second in all.
const BIND_TRIES: u32 = 50;
const BIND_AGAIN: Duration = Duration::from_millis(20);

/// How connections of one listener find their shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steering {
    /// The shard of the CPU that ran the SYN.
    Cpu,
    /// The kernel's hash over addresses and ports, and why.
    Hash {
        /// A clause to be shown.
        why: String,
    },
    /// All shards wait on one socket; whichever comes first takes the connection.
    Shared,
}

/// Why a listener cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Another program listens there.
    #[error(
        "cannot listen on {address}: the port is in use by {holder}; stop that (`kill {}`), or choose \
         another port", holder.pid
    )]
    Held {
        /// Where it was tried.
        address: SocketAddr,
        /// By whom.
        holder: Holder,
    },
    /// An inherited descriptor will not do.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// The kernel does not take the steering program.
    #[error("cannot steer the connections of {address}: {source}; `steer = \"hash\"` does without")]
    Steer {
        /// The listener's address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A socket does not say where it is bound.
    #[error("cannot tell the address of a listener: {0}")]
    Address(io::Error),
}

/// Every listener of the server.
#[derive(Debug)]
pub struct Registry {
    groups: Vec<Group>,
    urls: Vec<String>,
}

/// One configured listener.
#[derive(Debug)]
struct Group {
    address: SocketAddr,
    has_tls: bool,
    /// One for each shard, in their order; or one for all.
    sockets: Vec<Arc<OwnedFd>>,
    steering: Steering,
}

impl Registry {
    /// Binds everything that is configured. Looks at the host's NICs where `steer` is `Auto`.
    pub fn bind(config: &Config) -> Result<Self, BindError> {
        let queues = match config.steer {
            Steer::Auto => steering::queues(Path::new("/")),
            Steer::Cpu | Steer::Hash => Vec::new(),
        };
        Self::bind_with(config, &queues)
    }

    fn bind_with(config: &Config, queues: &[Queues]) -> Result<Self, BindError> {
        let group = |listener: &Listener| match listener.endpoint {
            Endpoint::Address(address) => {
                Group::bind(address, listener.tls.is_some(), config, queues)
            }
            Endpoint::Descriptor(fd) => {
                let socket = socket::adopt_listener(fd)?;
                let address = socket::local_addr(&socket).map_err(BindError::Address)?;
                let sockets = vec![Arc::new(socket)];
                let (has_tls, steering) = (listener.tls.is_some(), Steering::Shared);
                Ok(Group { address, has_tls, sockets, steering })
            }
        };
        let groups: Vec<Group> = config.listeners.iter().map(group).collect::<Result<_, _>>()?;
        let urls = groups.iter().map(|group| url(group.address, group.has_tls)).collect();
        Ok(Self { groups, urls })
    }

    /// What shard `shard` accepts from: one socket for each configured listener, in their order.
    pub fn lend(&self, shard: usize) -> Vec<Arc<OwnedFd>> {
        self.groups.iter().map(|group| group.of_shard(shard)).collect()
    }

    /// Where each listener is bound, its port resolved, and how its connections find their shard.
    pub fn bound(&self) -> impl Iterator<Item = (SocketAddr, &Steering)> {
        self.groups.iter().map(|group| (group.address, &group.steering))
    }

    /// Whether every connection comes to the shard of the CPU that ran its SYN.
    pub fn steered(&self) -> bool {
        self.bound().all(|(_, steering)| *steering == Steering::Cpu)
    }

    /// Tells sites that send requests on to TLS at which port that is found: that of the first listener
    /// with TLS, now that it is bound.
    pub fn point_redirects(&self, config: &mut Config) {
        let Some(group) = self.groups.iter().find(|group| group.has_tls) else { return };
        for site in &mut config.sites {
            if site.tls.redirect == Redirect::ToListener {
                site.tls.redirect = Redirect::ToPort(group.address.port());
            }
        }
    }

    /// What to type into a browser, for each listener.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }
}

fn url(address: SocketAddr, has_tls: bool) -> String {
    let (scheme, port) = if has_tls { ("https", 443) } else { ("http", 80) };
    match address {
        SocketAddr::V4(v4) if v4.port() == port => format!("{scheme}://{}/", v4.ip()),
        SocketAddr::V6(v6) if v6.port() == port => format!("{scheme}://[{}]/", v6.ip()),
        other => format!("{scheme}://{other}/"),
    }
}

impl Group {
    fn bind(
        address: SocketAddr,
        has_tls: bool,
        config: &Config,
        queues: &[Queues],
    ) -> Result<Self, BindError> {
        let shards = config.cpus.len();
        let options = ListenOptions {
            reuse_port: shards > 1,
            defer_accept_s: u32::try_from(config.timeouts.defer_accept.as_secs())
                .unwrap_or(u32::MAX),
            backlog: config.limits.backlog,
        };
        // Someone else's group would take us in without a word.
        wait_until_free(address)?;
        let first = socket::listen(address, &options)?;
        // Port 0 has become one of the kernel's choosing, which the others share.
        let address = socket::local_addr(&first).map_err(BindError::Address)?;
        let mut sockets = vec![Arc::new(first)];
        for _ in 1..shards {
            sockets.push(Arc::new(socket::listen(address, &options)?));
        }
        let steering = steering_of(address, config, queues);
        if steering == Steering::Cpu {
            steering::attach(&sockets[0], &config.cpus)
                .map_err(|source| BindError::Steer { address, source })?;
        }
        Ok(Self { address, has_tls, sockets, steering })
    }

    fn of_shard(&self, shard: usize) -> Arc<OwnedFd> {
        let index = if self.sockets.len() == 1 { 0 } else { shard };
        Arc::clone(&self.sockets[index])
    }
}

/// Tries for a while to have a port that is in use. The kernel ends a killed server's ring, which holds
/// its listeners, after the process: up to 43 ms were seen after SIGKILL, and whoever starts it again at
/// once would find its own port taken.
fn wait_until_free(address: SocketAddr) -> Result<(), BindError> {
    let mut tries = 1;
    loop {
        match socket::ensure_free(address) {
            Err(ListenError::InUse { .. }) if tries < BIND_TRIES => {
                tries += 1;
                thread::sleep(BIND_AGAIN);
            }
            Err(ListenError::InUse { .. }) => {
                return Err(match holder(Path::new("/"), address) {
                    Some(holder) => BindError::Held { address, holder },
                    None => ListenError::InUse { address }.into(),
                });
            }
            result => return Ok(result?),
        }
    }
}

fn steering_of(address: SocketAddr, config: &Config, queues: &[Queues]) -> Steering {
    let hash = |why: &str| Steering::Hash { why: why.into() };
    if config.cpus.len() == 1 {
        return hash("one shard takes all");
    }
    match config.steer {
        Steer::Cpu => Steering::Cpu,
        Steer::Hash => hash("configured"),
        Steer::Auto if address.ip().to_canonical().is_loopback() => {
            hash("on loopback the CPU is the client's")
        }
        Steer::Auto => match steering::covers(queues, &config.cpus) {
            Ok(()) => Steering::Cpu,
            Err(why) => Steering::Hash { why },
        },
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::config::{
        Certificates, ClientAuth, Facts, ListenerTls, Overrides, Root, Site, SiteTls, resolve,
    };
    use crate::sys::{affinity, environment};

    /// Two shards, whatever the host has: nothing here runs on them.
    fn config(listeners: &[Listener], steer: Steer) -> Config {
        let facts = Facts { allowed_cpus: vec![0, 1], nofile: 4096 };
        let mut config = resolve(None, &Overrides::default(), &facts).expect("defaults hold");
        config.listeners = listeners.to_vec();
        config.steer = steer;
        // The connections of these tests say nothing.
        config.timeouts.defer_accept = std::time::Duration::ZERO;
        config
    }

    fn loopback(port: u16) -> Listener {
        Listener::plain(Endpoint::Address(SocketAddr::from(([127, 0, 0, 1], port))))
    }

    fn address(registry: &Registry) -> SocketAddr {
        registry.bound().next().expect("one listener").0
    }

    fn connect(address: SocketAddr, count: usize) -> Vec<TcpStream> {
        (0..count).map(|_| TcpStream::connect(address).expect("connect")).collect()
    }

    /// Connections that wait for each of two shards.
    fn waiting(registry: &Registry) -> [usize; 2] {
        [0, 1].map(|shard| {
            let sockets = registry.lend(shard);
            std::iter::from_fn(|| socket::accept_nonblocking(&sockets[0]).expect("accept")).count()
        })
    }

    #[test]
    fn by_hash_every_shard_gets_some() {
        let registry = Registry::bind(&config(&[loopback(0)], Steer::Hash)).expect("bind");
        assert!(!registry.steered());
        let clients = connect(address(&registry), 64);
        let [first, second] = waiting(&registry);
        assert_eq!(first + second, clients.len());
        // All on one side would be a chance of two in 2^64.
        assert!(first > 0 && second > 0, "{first} and {second}");
    }

    #[test]
    fn by_cpu_the_clients_cpu_decides_on_loopback() {
        let allowed = affinity::allowed_cpus();
        for cpu in [0, 1].into_iter().filter(|cpu| allowed.contains(cpu)) {
            let registry = Registry::bind(&config(&[loopback(0)], Steer::Cpu)).expect("bind");
            assert!(registry.steered());
            let address = address(&registry);
            let clients = std::thread::spawn(move || {
                affinity::pin(cpu).expect("an allowed CPU");
                connect(address, 64)
            });
            let _clients = clients.join().expect("no panic");
            let mut expected = [0, 0];
            expected[cpu] = 64;
            assert_eq!(waiting(&registry), expected);
        }
    }

    #[test]
    fn auto_steers_by_cpu_where_nics_interrupt_every_serving_cpu() {
        let on_all = [Queues { device: "eth0".into(), cpus: vec![0, 1], rps: false }];
        let on_one = [Queues { device: "eth0".into(), cpus: vec![0], rps: false }];
        let any = SocketAddr::from(([0, 0, 0, 0], 80));
        let here = SocketAddr::from(([127, 0, 0, 1], 80));
        let mut config = config(&[], Steer::Auto);
        assert_eq!(steering_of(any, &config, &on_all), Steering::Cpu);
        let hash = |why: &str| Steering::Hash { why: why.into() };
        let missing = "no receive queue of eth0 interrupts CPU 1";
        assert_eq!(steering_of(any, &config, &on_one), hash(missing));
        let client = "on loopback the CPU is the client's";
        assert_eq!(steering_of(here, &config, &on_all), hash(client));
        config.cpus = vec![0];
        assert_eq!(steering_of(any, &config, &on_all), hash("one shard takes all"));
    }

    #[test]
    fn port_zero_is_one_port_for_all_shards_and_one_per_listener() {
        let registry =
            Registry::bind(&config(&[loopback(0), loopback(0)], Steer::Auto)).expect("bind");
        let mut addresses = registry.bound().map(|(address, _)| address);
        let bound = [(); 2].map(|()| addresses.next().expect("two listeners"));
        assert_ne!(bound[0], bound[1]);
        for shard in [0, 1] {
            let sockets = registry.lend(shard);
            for (socket, address) in sockets.iter().zip(&bound) {
                assert_eq!(socket::local_addr(socket).expect("address"), *address);
            }
        }
        assert_eq!(registry.urls(), bound.map(|address| format!("http://{address}/")));
    }

    #[test]
    fn urls_are_what_a_browser_shows() {
        for (address, has_tls, expected) in [
            ("127.0.0.1:8080", false, "http://127.0.0.1:8080/"),
            ("127.0.0.1:80", false, "http://127.0.0.1/"),
            ("[::1]:443", false, "http://[::1]:443/"),
            ("[::1]:80", false, "http://[::1]/"),
            ("127.0.0.1:8443", true, "https://127.0.0.1:8443/"),
            ("127.0.0.1:443", true, "https://127.0.0.1/"),
            ("[::1]:443", true, "https://[::1]/"),
            ("[::1]:80", true, "https://[::1]:80/"),
        ] {
            assert_eq!(url(address.parse().expect("an address"), has_tls), expected);
        }
    }

    #[test]
    fn redirects_lead_to_the_port_that_was_bound() {
        let tls =
            ListenerTls { certificates: Certificates::SelfSigned, client_auth: ClientAuth::Off };
        let secured = Listener { tls: Some(tls), ..loopback(0) };
        let mut config = config(&[loopback(0), secured], Steer::Hash);
        let site = |redirect| Site {
            tls: SiteTls { redirect, ..SiteTls::default() },
            ..Site::of(Root::Welcome)
        };
        config.sites = [Redirect::Off, Redirect::ToListener, Redirect::ToPort(9)].map(site).into();
        let registry = Registry::bind(&config).expect("bind");
        registry.point_redirects(&mut config);
        let bound = registry.bound().nth(1).expect("the second").0.port();
        let redirects = config.sites.iter().map(|site| site.tls.redirect);
        let expected = [Redirect::Off, Redirect::ToPort(bound), Redirect::ToPort(9)];
        assert_eq!(redirects.collect::<Vec<_>>(), expected);
        assert!(registry.urls()[1].starts_with("https://"));
    }

    #[test]
    fn a_descriptor_is_shared_by_all_shards() {
        let inherited = TcpListener::bind("127.0.0.1:0").expect("bind");
        let listener = Listener::plain(Endpoint::Descriptor(inherited.as_raw_fd()));
        let registry = Registry::bind(&config(&[listener], Steer::Auto)).expect("adopt");
        let bound = registry.bound().next().expect("one listener");
        assert_eq!(bound, (inherited.local_addr().expect("address"), &Steering::Shared));
        let [first, second] = [0, 1].map(|shard| registry.lend(shard).remove(0));
        assert!(Arc::ptr_eq(&first, &second));
        let _clients = connect(address(&registry), 3);
        assert_eq!(waiting(&registry), [3, 0]);
    }

    #[test]
    fn a_second_server_does_not_join_the_first_unnoticed() {
        let first = Registry::bind(&config(&[loopback(0)], Steer::Hash)).expect("bind");
        let taken = loopback(address(&first).port());
        let error = Registry::bind(&config(&[taken], Steer::Hash)).expect_err("taken");
        assert!(error.to_string().contains("the port is in use by "), "{error}");
        assert!(error.to_string().contains(&format!("`kill {}`", std::process::id())), "{error}");
    }

    #[test]
    fn a_port_is_free_again_when_the_registry_is_gone() {
        let first = Registry::bind(&config(&[loopback(0)], Steer::Hash)).expect("bind");
        let again = loopback(address(&first).port());
        let clients = connect(address(&first), 4);
        drop(first);
        drop(clients);
        Registry::bind(&config(&[again], Steer::Hash))
            .expect("what lingers does not hold the port");
    }

    #[test]
    fn errors_name_the_fix() {
        let fails = |listener| {
            Registry::bind(&config(&[listener], Steer::Hash)).expect_err("fails").to_string()
        };
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 80));
        assert!(fails(Listener::plain(Endpoint::Address(elsewhere))).contains("`ip address`"));
        assert!(fails(Listener::plain(Endpoint::Descriptor(-1))).contains("not open"));
        let host = environment::Environment::read(Path::new("/"));
        if host.cap_net_bind_service == Some(false) {
            assert!(fails(loopback(1)).contains("cap_net_bind_service"));
        }
    }
}
