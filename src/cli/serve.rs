//! `onering serve`: from the command line and the file to a running server.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::PathBuf;

use clap::ValueEnum;

use super::{Exit, Failure};
use crate::config::{self, CertificateFiles, Config, Facts, Overrides, Steer, units};
use crate::files::OpenError;
use crate::server::{self, BindError, Registry, Steering};
use crate::shard::StartError;
use crate::sys::socket::ListenError;
use crate::sys::{affinity, limits};
use crate::tls::Severity;

const AFTER_HELP: &str = "\
Examples:
  onering serve
      the welcome site on http://127.0.0.1:8080/ and https://127.0.0.1:8443/, whose certificate is made
      for the trial
  onering serve /srv/www --listen 0.0.0.0:80 --listen '[::]:80'
      a directory, to everyone
  onering serve /srv/www --tls-listen 0.0.0.0:443 --cert site.pem --key site.key
      a directory, to everyone, with TLS
  onering serve /srv/www --cpus 0-3 --steer cpu --stats stats.json
      four shards, each with the connections of its own CPU, and all counters at the end
  onering serve --config /etc/onering.toml --listen-fd 3
      a configuration file, on a socket that the service manager has opened

SIGTERM and SIGINT (Ctrl-C) end it in good order: running responses are completed, for which there are
30 s (`timeouts.grace`). A second one cuts off what is left. The exit code is 0 either way, and standard
error says how many connections were cut off. SIGHUP reads certificates again, which happens by itself
too when their files change; bad ones are not taken.

The command line wins over the file. A path on the command line is relative to the current directory,
one in the file to the file's. Exit codes are those of `onering --help`.";

/// Serve a directory, the sites of a configuration file, or else the welcome site.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The directory to serve.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The configuration file, in TOML; onering.example.toml has every key with its default.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; may be repeated. Port 0 lets the kernel choose. If nothing is said of where
    /// to listen: 127.0.0.1:8080, and 127.0.0.1:8443 with TLS.
    #[arg(long, value_name = "ADDR:PORT", value_parser = units::parse_address)]
    listen: Vec<SocketAddr>,
    /// Where to listen for TLS; may be repeated. Without a certificate, one is made for the time being.
    #[arg(long, value_name = "ADDR:PORT", value_parser = units::parse_address)]
    tls_listen: Vec<SocketAddr>,
    /// A certificate with its chain, PEM; may be repeated, each with its `--key`.
    #[arg(long, value_name = "FILE")]
    cert: Vec<PathBuf>,
    /// The private key of the certificate, PEM. Not needed where the same file holds both.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// A listening socket that was inherited, by its number; may be repeated.
    #[arg(long, value_name = "FD")]
    listen_fd: Vec<RawFd>,
    /// The CPUs that serve, one shard each: `0-3,8`. All that are allowed, if not given.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<Cpus>,
    /// How new connections find their shard.
    #[arg(long, value_name = "HOW")]
    steer: Option<SteerArgument>,
    /// Where all counters are written as JSON at the end.
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
}

/// A list of CPUs as one argument: clap takes a bare `Vec` for an argument that is repeated.
#[derive(Clone, Debug)]
struct Cpus(Vec<usize>);

fn cpus(text: &str) -> Result<Cpus, units::UnitError> {
    units::parse_cpus(text).map(Cpus)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SteerArgument {
    /// By CPU where every serving CPU takes a NIC queue's interrupts, else by hash.
    Auto,
    /// To the shard of the CPU that handled the connection's first packet.
    Cpu,
    /// By the kernel's hash over addresses and ports.
    Hash,
}

impl From<SteerArgument> for Steer {
    fn from(argument: SteerArgument) -> Self {
        match argument {
            SteerArgument::Auto => Self::Auto,
            SteerArgument::Cpu => Self::Cpu,
            SteerArgument::Hash => Self::Hash,
        }
    }
}

/// Serves until it is told to stop.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let config = resolve_here(args)?;
    let shards = config.cpus.len();
    server::run(config, |registry| announce(registry, shards)).map_err(failure)
}

/// Says where the server is to be reached: the URLs on standard output, a line each.
fn announce(registry: &Registry, shards: usize) {
    for (address, steering) in registry.bound() {
        let how = how_connections_are_spread(shards, steering);
        tracing::info!("listening on {address}: {how}");
    }
    let urls: String = registry.urls().iter().map(|url| format!("{url}\n")).collect();
    if let Err(failure) = super::print(&urls) {
        tracing::warn!("{failure}");
    }
}

/// Says who serves a connection, for someone who has not read how this server works.
fn how_connections_are_spread(shards: usize, steering: &Steering) -> String {
    if shards == 1 {
        return "one thread on one CPU serves every connection".into();
    }
    let threads = format!("{shards} threads, one on each CPU");
    match steering {
        Steering::Cpu => {
            format!("{threads}; a connection is served by the CPU that its packets arrive on")
        }
        Steering::Hash { why } => format!(
            "{threads}; the kernel deals connections out to them evenly (not by the CPU that a \
             connection's packets arrive on: {why})"
        ),
        Steering::Shared => format!("{threads}; whichever is free first takes a connection"),
    }
}

/// Which exit code an end of the server calls for.
fn failure(error: server::Error) -> Failure {
    use server::Error;
    let exit = match &error {
        Error::Bind(BindError::Listen(ListenError::Privileged { .. }))
        | Error::Shard(StartError::Files(OpenError::Forbidden { .. })) => Exit::Permission,
        Error::Stats { source, .. } => Exit::of(source, Exit::Environment),
        Error::Material(problems) => Exit::from(problems.fault(Severity::Fatal)),
        Error::Bind(_)
        | Error::Ktls(_)
        | Error::Ring(_)
        | Error::Shard(_)
        | Error::ShardFailed { .. }
        | Error::Environment { .. } => Exit::Environment,
    };
    Failure::new(exit, error)
}

/// The configuration that the arguments mean on this host, whose limit of descriptors is raised first.
pub(super) fn resolve_here(args: Args) -> Result<Config, Failure> {
    let nofile = limits::raise_nofile()
        .map_err(|error| Failure::new(Exit::Environment, format!("RLIMIT_NOFILE: {error}")))?;
    resolve(args, &Facts { allowed_cpus: affinity::allowed_cpus(), nofile: nofile.soft })
}

/// The configuration that the arguments mean on a host of these facts.
fn resolve(args: Args, facts: &Facts) -> Result<Config, Failure> {
    let text = match &args.config {
        None => None,
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            let message = format!(
                "cannot read {}: {error}\n  fix: a file that is there and that this user may read, for \
                 `--config`",
                path.display()
            );
            Failure::new(Exit::of(&error, Exit::Configuration), message)
        })?),
    };
    let file = args.config.as_deref().zip(text.as_deref());
    let file = file.map(|(path, text)| config::File { path, text });
    let overrides = Overrides {
        directory: args.directory,
        listen: args.listen,
        listen_fds: args.listen_fd,
        tls_listen: args.tls_listen,
        certificates: certificates(args.cert, args.key)?,
        cpus: args.cpus.map(|cpus| cpus.0),
        steer: args.steer.map(Steer::from),
        stats: args.stats,
    };
    config::resolve(file, &overrides, facts)
        .map_err(|error| Failure::new(Exit::from(error.fault()), error))
}

/// Each certificate with its key, in the order given.
fn certificates(certs: Vec<PathBuf>, keys: Vec<PathBuf>) -> Result<Vec<CertificateFiles>, Failure> {
    if !(keys.is_empty() || keys.len() == certs.len()) {
        let message = format!(
            "--cert is there {} times and --key {}\n  fix: a `--key` for each `--cert`, in the same \
             order; or none, where each file holds both",
            certs.len(),
            keys.len()
        );
        return Err(Failure::new(Exit::Configuration, message));
    }
    let keys = if keys.is_empty() { certs.clone() } else { keys };
    let pair = |(chain, key)| CertificateFiles { chain, key };
    Ok(certs.into_iter().zip(keys).map(pair).collect())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::config::{Certificates, Endpoint, Listener, Root};
    use crate::ring::SetupError;

    fn resolved(arguments: &[&str]) -> Result<Config, Failure> {
        let cli = Cli::try_parse_from(["onering", "serve"].iter().chain(arguments))
            .map_err(|error| Failure::new(Exit::Configuration, error))?;
        let Command::Serve(args) = cli.command else { panic!("not serve") };
        resolve(args, &Facts { allowed_cpus: vec![0, 1, 2], nofile: 65_536 })
    }

    #[test]
    fn every_argument_reaches_the_configuration() {
        let config = resolved(&[
            "/",
            "--listen",
            "127.0.0.1:1",
            "--listen",
            "[::1]:2",
            "--listen-fd",
            "3",
            "--cpus",
            "2,0",
            "--steer",
            "hash",
            "--stats",
            "out.json",
        ])
        .expect("all is well");
        let address = |text: &str| Endpoint::Address(text.parse().expect("an address"));
        let endpoints = [address("127.0.0.1:1"), address("[::1]:2"), Endpoint::Descriptor(3)];
        assert_eq!(config.listeners, endpoints.map(Listener::plain));
        assert_eq!(config.cpus, [2, 0]);
        assert_eq!(config.steer, Steer::Hash);
        assert_eq!(config.stats, Some("out.json".into()));
        assert_eq!(config.sites[0].root, Root::Directory("/".into()));
    }

    #[test]
    fn certificates_and_keys_come_in_pairs() {
        let files = |arguments: &[&str]| {
            let config = resolved(&[&["--tls-listen", "127.0.0.1:0"], arguments].concat())?;
            let [Listener { tls: Some(tls), .. }] = &config.listeners[..] else {
                panic!("{:?}", config.listeners)
            };
            Ok::<_, Failure>(tls.certificates.clone())
        };
        let pair =
            |chain: &str, key: &str| CertificateFiles { chain: chain.into(), key: key.into() };
        assert_eq!(files(&[]).expect("none"), Certificates::SelfSigned);
        let both = Certificates::Files(vec![pair("a.pem", "a.key"), pair("b.pem", "b.key")]);
        let arguments = ["--cert", "a.pem", "--key", "a.key", "--cert", "b.pem", "--key", "b.key"];
        assert_eq!(files(&arguments).expect("two"), both);
        let one = Certificates::Files(vec![pair("a.pem", "a.pem")]);
        assert_eq!(files(&["--cert", "a.pem"]).expect("one file for both"), one);
        for arguments in [&arguments[..6], &arguments[2..4]] {
            let failure = files(arguments).expect_err("a key is missing, or a certificate");
            assert_eq!(failure.exit, Exit::Configuration);
            assert!(failure.message.contains("a `--key` for each `--cert`"), "{failure}");
        }
        let failure = resolved(&["--listen", "127.0.0.1:0", "--cert", "a.pem"]).expect_err("plain");
        assert!(failure.message.contains("add `--tls-listen"), "{failure}");
    }

    #[test]
    fn nothing_given_serves_the_welcome_site_everywhere() {
        let config = resolved(&[]).expect("defaults hold");
        assert_eq!(config.cpus, [0, 1, 2]);
        assert_eq!(config.sites[0].root, Root::Welcome);
    }

    #[test]
    fn a_file_is_read_and_its_problems_carry_its_name() {
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), "steer = \"left\"\ncpus = \"9\"\n").expect("write");
        let path = file.path().to_str().expect("a plain name");
        let failure = resolved(&["--config", path]).expect_err("two problems");
        assert_eq!(failure.exit, Exit::Configuration);
        for line in [format!("{path}:1:9: steer: "), format!("{path}:2:8: cpus: ")] {
            assert!(failure.message.contains(&line), "{failure}");
        }
    }

    #[test]
    fn exit_codes_tell_permission_from_the_rest() {
        let address = "127.0.0.1:80".parse().expect("an address");
        let exit = |error| failure(error).exit;
        let privileged = BindError::Listen(ListenError::Privileged { address });
        assert_eq!(exit(server::Error::Bind(privileged)), Exit::Permission);
        let in_use = BindError::Listen(ListenError::InUse { address });
        assert_eq!(exit(server::Error::Bind(in_use)), Exit::Environment);
        assert_eq!(exit(server::Error::Ring(SetupError::Disabled { level: 2 })), Exit::Environment);
        assert_eq!(exit(server::Error::Ring(SetupError::Missing)), Exit::Environment);
        let forbidden = OpenError::Forbidden { root: "/root".into() };
        assert_eq!(exit(server::Error::Shard(StartError::Files(forbidden))), Exit::Permission);
        let stats = |kind: io::ErrorKind| server::Error::Stats {
            path: "stats.json".into(),
            source: kind.into(),
        };
        assert_eq!(exit(stats(io::ErrorKind::PermissionDenied)), Exit::Permission);
        assert_eq!(exit(stats(io::ErrorKind::NotFound)), Exit::Environment);
    }

    #[test]
    fn a_host_with_few_descriptors_is_not_the_configurations_fault() {
        let exit = |arguments: &[&str], text: &str| {
            let file = tempfile::NamedTempFile::new().expect("tempfile");
            std::fs::write(file.path(), text).expect("write");
            let cli = ["onering", "serve", "--config"].iter().map(OsStr::new);
            let cli = cli.chain([file.path().as_os_str()]);
            let cli = Cli::parse_from(cli.chain(arguments.iter().map(OsStr::new)));
            let Command::Serve(args) = cli.command else { panic!("not serve") };
            let few = Facts { allowed_cpus: vec![0], nofile: 64 };
            resolve(args, &few).expect_err("too few").exit
        };
        assert_eq!(exit(&[], ""), Exit::Environment);
        assert_eq!(exit(&[], "[limits]\nconnections_per_shard = 100"), Exit::Configuration);
        assert_eq!(exit(&["--cpus", "7"], ""), Exit::Configuration);
    }

    #[test]
    fn addresses_are_asked_for_in_the_words_of_the_file() {
        let failure = resolved(&["--listen", "localhost:80"]).expect_err("no address");
        assert!(failure.message.contains("write `127.0.0.1:80`"), "{failure}");
        let failure = resolved(&["--listen", "8080"]).expect_err("no address");
        assert!(failure.message.contains("`0.0.0.0:8080` for everyone"), "{failure}");
    }

    #[test]
    fn the_first_line_needs_no_dictionary() {
        let hash = Steering::Hash { why: "configured".into() };
        for (shards, steering) in
            [(1, &hash), (2, &hash), (2, &Steering::Cpu), (2, &Steering::Shared)]
        {
            let said = how_connections_are_spread(shards, steering);
            assert!(
                !["shard", "hash", "steer", "SYN"].iter().any(|word| said.contains(word)),
                "{said}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let failure = resolved(&["--config", "/absent.toml"]).expect_err("no such file");
        assert!(failure.message.starts_with("cannot read /absent.toml: "), "{failure}");
        let failure = resolved(&["--cpus", "0-"]).expect_err("no list");
        assert!(failure.message.contains("`0-3,8`"), "{failure}");
    }
}
