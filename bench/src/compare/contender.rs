//! Who takes part: the programs of servers and clients, found before anything is measured, and what
//! a result says of them.

use super::cell::{CELLS, Cell};
use super::certificate::Certificate;
use super::comparison::Skipped;
use super::configuration::Assignment;
use super::options::{Client, Options};
use super::peer::{self, Server};
use crate::fingerprint::Program;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// A server or client that is there.
#[derive(Clone, Debug)]
pub(super) struct Found<T> {
    /// Which.
    pub(super) who: T,
    /// Its program.
    pub(super) program: PathBuf,
}

/// What a result says of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// Its name, its version as it says it, and its command line in the first cell it takes part
    /// in, with names in place of the address and directories.
    pub program: Program,
    /// SHA-256 of the program's file, hexadecimal.
    pub sha256: String,
    /// Its configurations, with names in place of the address and directories; none if everything
    /// is said on the command line.
    pub configurations: Vec<Configuration>,
}

/// One configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Whether it is that of TLS cells.
    pub tls: bool,
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    /// The text.
    pub text: String,
}

/// The servers of `options` that are installed; the others are skipped, with a word on how to get
/// them.
pub(super) fn servers(options: &Options, skipped: &mut Vec<Skipped>) -> Vec<Found<Server>> {
    let program = |server: Server| match server {
        Server::Onering => options.onering.clone().or_else(|| server.program()),
        Server::Former => options.former.clone(),
        _ => server.program(),
    };
    found(&options.servers, program, skipped, |server| {
        (server.name(), format!("not installed; it comes with: {}", server.origin()))
    })
}

/// The same for clients.
pub(super) fn clients(options: &Options, skipped: &mut Vec<Skipped>) -> Vec<Found<Client>> {
    let program = |client| match client {
        Client::Run => std::env::current_exe().ok(),
        Client::Wrk => peer::find("wrk"),
    };
    found(&options.clients, program, skipped, |client| {
        (client.name(), "not installed; it comes with: Debian's package wrk".to_owned())
    })
}

fn found<T: Copy>(
    asked_for: &[T],
    program: impl Fn(T) -> Option<PathBuf>,
    skipped: &mut Vec<Skipped>,
    missing: impl Fn(T) -> (&'static str, String),
) -> Vec<Found<T>> {
    let mut all = Vec::new();
    for &who in asked_for {
        match program(who) {
            Some(program) => all.push(Found { who, program }),
            None => {
                let (what, why) = missing(who);
                skipped.push(Skipped { what: what.to_owned(), why });
            }
        }
    }
    all
}

impl Contender {
    /// Asks a server's program what it is.
    pub(super) fn of(server: &Found<Server>, cpus: &[usize]) -> io::Result<Self> {
        let Found { who, program } = server;
        let certificate = Certificate::kept_in(Path::new("CERTIFICATE"));
        let assignment = |cell| Assignment {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            root: Path::new("ROOT"),
            scratch: Path::new("SCRATCH"),
            cpus,
            cell,
            certificate: &certificate,
        };
        let taking_part = |cell: &&Cell| who.objection(**cell).is_none();
        let cell = CELLS.iter().find(taking_part).map_or(CELLS[0], |cell| *cell);
        let command = who.command(program, &assignment(cell));
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let command = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let configuration = |tls: bool| {
            let mut cells = CELLS.iter().filter(taking_part);
            let cell = cells.find(|cell| cell.tls() == tls)?;
            let text = who.configuration(&assignment(*cell))?;
            Some(Configuration { tls, sha256: sha256(text.as_bytes()), text })
        };
        Ok(Self {
            program: Program::ask(who.name(), program, who.version_question(), command),
            sha256: sha256(&fs::read(program)?),
            configurations: [false, true].into_iter().filter_map(configuration).collect(),
        })
    }
}

/// SHA-256, hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().expect("a suite of TLS 1.3");
    let digest = suite.common.hash_provider.hash(bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_what_sha256sum_prints() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }

    #[test]
    fn a_contender_says_what_it_is_and_how_it_is_configured() {
        let shell = Found { who: Server::Nginx, program: peer::find("sh").unwrap() };
        let contender = Contender::of(&shell, &[0]).unwrap();
        assert_eq!(contender.program.name, "nginx");
        assert_eq!(contender.sha256.len(), 64);
        let [plain, tls] = &contender.configurations[..] else { panic!("{contender:?}") };
        assert!(!plain.tls && plain.text.contains("listen 127.0.0.1:1 backlog"));
        assert!(tls.tls && tls.text.contains("ssl_certificate CERTIFICATE/certificate.pem"));
        let floor = Found { who: Server::Floor, ..shell };
        assert_eq!(Contender::of(&floor, &[0]).unwrap().configurations, []);
    }

    #[test]
    fn what_is_missing_is_skipped_with_a_word_on_how_to_get_it() {
        let mut skipped = Vec::new();
        let none = found(
            &[Server::Caddy],
            |_| None,
            &mut skipped,
            |server| (server.name(), server.origin().to_owned()),
        );
        assert!(none.is_empty());
        assert_eq!(skipped[0].what, "caddy");
        assert!(skipped[0].why.contains("package caddy"));
    }
}
