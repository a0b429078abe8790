//! The servers: where their programs are, which cells they can take part in, and how each is told
//! to serve.

use super::cell::{Cell, Handshakes, Load, Part};
use super::configuration::{Assignment, render};
use crate::tls::ResumeBy;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Server {
    /// This project's server.
    Onering,
    /// A former build of it.
    Former,
    /// A bare ring that answers canned bytes.
    Floor,
    /// nginx.
    Nginx,
    /// h2o.
    H2o,
    /// lighttpd.
    Lighttpd,
    /// Apache, with its event module.
    Apache,
    /// Caddy.
    Caddy,
    /// HAProxy, with a canned answer.
    Haproxy,
}

/// The largest file that HAProxy answers with: with its head it must fit into one of its buffers,
/// which have 16 KiB (`tune.bufsize`) unless it is told to spend more on every connection.
const HAPROXY_BYTES_MAX: usize = 10 << 10;

impl Server {
    /// Those that are compared if nothing else is said, in the order of the tables.
    pub const ALL: [Self; 8] = [
        Self::Onering,
        Self::Floor,
        Self::Nginx,
        Self::H2o,
        Self::Lighttpd,
        Self::Apache,
        Self::Caddy,
        Self::Haproxy,
    ];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Onering => "onering",
            Self::Former => "former",
            Self::Floor => "floor",
            Self::Nginx => "nginx",
            Self::H2o => "h2o",
            Self::Lighttpd => "lighttpd",
            Self::Apache => "apache",
            Self::Caddy => "caddy",
            Self::Haproxy => "haproxy",
        }
    }

    /// The server of that name.
    pub fn named(name: &str) -> Option<Self> {
        <Self as clap::ValueEnum>::value_variants().iter().copied().find(|s| s.name() == name)
    }

    /// How its program comes onto the machine.
    pub fn origin(self) -> &'static str {
        match self {
            Self::Onering => "cargo build --release",
            Self::Former => "--former PATH",
            Self::Floor => "this program",
            Self::Nginx => "Debian's package nginx",
            Self::H2o => "Debian's package h2o",
            Self::Lighttpd => "Debian's packages lighttpd and lighttpd-mod-openssl",
            Self::Apache => "Debian's package apache2-bin",
            Self::Caddy => "Debian's package caddy",
            Self::Haproxy => "Debian's package haproxy",
        }
    }

    /// Its program, if there is one that need not be named: this project's beside the running one,
    /// others in the search path and where packages put servers.
    pub fn program(self) -> Option<PathBuf> {
        match self {
            Self::Floor => std::env::current_exe().ok(),
            Self::Onering => {
                let beside = std::env::current_exe().ok()?.with_file_name(self.name());
                if is_program(&beside) { Some(beside) } else { find(self.name()) }
            }
            Self::Former => None,
            Self::Apache => find("apache2"),
            Self::Nginx | Self::H2o | Self::Lighttpd | Self::Caddy | Self::Haproxy => {
                find(self.name())
            }
        }
    }

    /// The arguments to which its program answers with its version.
    pub(super) fn version_question(self) -> &'static [&'static str] {
        match self {
            Self::Onering | Self::Former | Self::Floor => &["--version"],
            Self::Caddy => &["version"],
            Self::Nginx | Self::H2o | Self::Lighttpd | Self::Apache | Self::Haproxy => &["-v"],
        }
    }

    /// Why it takes no part in a cell, if it does not.
    pub fn objection(self, cell: Cell) -> Option<&'static str> {
        let request = cell.request();
        let canned = "it answers every request with the same bytes";
        match self {
            Self::Floor if cell.tls() => Some("it has no TLS"),
            Self::H2o | Self::Lighttpd if cell.load == Load::Handshakes(Handshakes::Ticket) => {
                Some("it gives no ticket with a resumed handshake, and a ticket is used once")
            }
            Self::Lighttpd | Self::Caddy if cell.resumed_by() == Some(ResumeBy::Id) => {
                Some("it keeps no sessions: it resumes them by tickets alone")
            }
            Self::Floor | Self::Haproxy if cell.load == Load::Web99 => Some(canned),
            Self::Floor | Self::Haproxy if request.is_some_and(|get| get.part != Part::Whole) => {
                Some(canned)
            }
            Self::Haproxy if request.is_some_and(|get| get.file_bytes > HAPROXY_BYTES_MAX) => {
                Some("it answers from memory, and the file does not fit into its buffer of 16 KiB")
            }
            _ => None,
        }
    }

    /// Whether it reads the file that is asked for, so that the body can be checked and not only
    /// its length.
    pub fn serves_the_file(self) -> bool {
        self != Self::Floor
    }

    /// Its configuration; none for those that are told everything on the command line.
    pub(super) fn template(self) -> Option<&'static str> {
        match self {
            Self::Onering | Self::Former | Self::Floor => None,
            Self::Nginx => Some(include_str!("../../peers/nginx.conf.template")),
            Self::H2o => Some(include_str!("../../peers/h2o.conf.template")),
            Self::Lighttpd => Some(include_str!("../../peers/lighttpd.conf.template")),
            Self::Apache => Some(include_str!("../../peers/apache.conf.template")),
            Self::Caddy => Some(include_str!("../../peers/caddy.conf.template")),
            Self::Haproxy => Some(include_str!("../../peers/haproxy.conf.template")),
        }
    }

    /// The configuration for an assignment.
    pub(super) fn configuration(self, assignment: &Assignment<'_>) -> Option<String> {
        self.template().map(|template| render(template, assignment))
    }

    /// The command that serves in the foreground, with the configuration where
    /// [`Server::prepare`] puts it.
    pub(super) fn command(self, program: &Path, assignment: &Assignment<'_>) -> Command {
        let Assignment { address, root, scratch, cpus, cell, certificate } = *assignment;
        let mut command = Command::new(program);
        let list = || cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let file = scratch.join(CONFIGURATION);
        match self {
            Self::Onering | Self::Former => {
                let listen = if cell.tls() { "--tls-listen" } else { "--listen" };
                command.arg("serve").arg(root).args([listen, &address.to_string()]);
                if cell.tls() {
                    command.arg("--cert").arg(certificate.certificate());
                    command.arg("--key").arg(certificate.key());
                }
                command.args(["--cpus", &list()]);
            }
            Self::Floor => {
                command.args(["floor", "--listen", &address.to_string(), "--cpus", &list()]);
                command.arg("--defer-accept");
                if let Some(get) = cell.request() {
                    command.args(["--bytes", &get.file_bytes.to_string()]);
                    command.args(get.close.then_some("--close"));
                }
            }
            Self::Nginx => {
                command.arg("-c").arg(file).arg("-p").arg(scratch);
            }
            Self::H2o => {
                command.arg("-c").arg(file).env("OPENSSL_CONF", scratch.join(OPENSSL));
            }
            Self::Lighttpd => {
                command.arg("-D").arg("-f").arg(file);
            }
            Self::Apache => {
                command.arg("-DFOREGROUND").arg("-f").arg(file);
            }
            Self::Caddy => {
                command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
                command.env("GOMAXPROCS", cpus.len().to_string());
                for place in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
                    command.env(place, scratch);
                }
            }
            Self::Haproxy => {
                command.arg("-db").arg("-f").arg(file);
            }
        }
        command
    }

    /// Writes what the command reads into the assignment's directory.
    pub(super) fn prepare(self, assignment: &Assignment<'_>) -> io::Result<()> {
        if let Some(text) = self.configuration(assignment) {
            fs::write(assignment.scratch.join(CONFIGURATION), text)?;
            fs::write(assignment.scratch.join(OPENSSL), OPENSSL_SETTINGS)?;
        }
        Ok(())
    }
}

/// Name of the configuration in the server's directory.
const CONFIGURATION: &str = "conf";

/// Name of OpenSSL's settings in the server's directory.
const OPENSSL: &str = "openssl.cnf";

/// For what has no settings of its own for TLS 1.3.
pub(super) const OPENSSL_SETTINGS: &str = include_str!("../../peers/openssl.cnf");

/// A program by its name, in the search path and the directories of system programs.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|directory| directory.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cell::CELLS;
    use crate::compare::certificate::Certificate;
    use clap::ValueEnum;

    #[test]
    fn every_place_of_a_template_is_filled_in() {
        let certificate = Certificate::kept_in(Path::new("/c"));
        for cell in CELLS {
            let assignment = Assignment {
                address: "127.0.0.1:8000".parse().unwrap(),
                root: Path::new("/a/root"),
                scratch: Path::new("/a/scratch"),
                cpus: &[0],
                cell,
                certificate: &certificate,
            };
            for &server in Server::value_variants() {
                let Some(text) = server.configuration(&assignment) else { continue };
                assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
                assert!(text.contains("/a/root") && text.contains("8000"), "{text}");
                let certified = text.contains("/c/");
                assert_eq!(certified, cell.tls(), "{} {}", server.name(), cell.name);
            }
        }
    }

    #[test]
    fn every_template_and_server_is_described() {
        let described = include_str!("../../peers/README.md");
        for server in Server::ALL {
            assert!(described.contains(&format!(" {} |", server.name())), "{}", server.name());
        }
    }

    #[test]
    fn servers_take_part_in_what_they_can_do() {
        let objects = |server: Server, cell| server.objection(Cell::named(cell).unwrap()).is_some();
        for &server in Server::value_variants() {
            assert_eq!(Server::named(server.name()), Some(server));
            assert!(!objects(server, "1k-64") && !objects(server, "10k-close-64"));
        }
        assert!(objects(Server::Floor, "tls-1k-64") && !objects(Server::Onering, "tls-1k-64"));
        assert!(objects(Server::Caddy, "tls12-id-64") && !objects(Server::Caddy, "tls-ticket-64"));
        assert!(objects(Server::H2o, "tls-ticket-64") && !objects(Server::H2o, "tls12-ticket-64"));
        assert!(objects(Server::Floor, "1k-304-64") && !objects(Server::Onering, "1k-304-64"));
        assert!(objects(Server::Haproxy, "100k-64") && !objects(Server::Floor, "100k-64"));
        assert!(objects(Server::Haproxy, "web99-64") && !objects(Server::Apache, "web99-64"));
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
