//! The servers: where their programs are and how each is told to serve a directory.

use super::cell::{Cell, Part};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
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
}

/// What a server is to serve, where.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// The document root.
    pub root: &'a Path,
    /// An empty directory of its own.
    pub scratch: &'a Path,
    /// The CPU it runs on.
    pub cpu: usize,
    /// What will be asked.
    pub cell: Cell,
}

impl Server {
    /// Those that are compared if nothing else is said, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Onering, Self::Floor, Self::Nginx, Self::H2o, Self::Lighttpd];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Onering => "onering",
            Self::Former => "former",
            Self::Floor => "floor",
            Self::Nginx => "nginx",
            Self::H2o => "h2o",
            Self::Lighttpd => "lighttpd",
        }
    }

    /// Its program, if there is one that need not be named: this project's beside the running one, others in the search
    /// path and where packages put servers.
    pub fn program(self) -> Option<PathBuf> {
        match self {
            Self::Floor => std::env::current_exe().ok(),
            Self::Onering => {
                let beside = std::env::current_exe().ok()?.with_file_name(self.name());
                if is_program(&beside) { Some(beside) } else { find(self.name()) }
            }
            Self::Nginx | Self::H2o | Self::Lighttpd => find(self.name()),
            Self::Former => None,
        }
    }

    /// Whether it gives this kind of answer at all.
    pub fn takes_part(self, cell: Cell) -> bool {
        self != Self::Floor || cell.part == Part::Whole
    }

    /// The command that serves in the foreground; writes the configuration that it needs.
    pub fn command(self, program: &Path, assignment: &Assignment<'_>) -> io::Result<Command> {
        let Assignment { address, root, scratch, cpu, cell } = *assignment;
        let mut arguments: Vec<OsString> = Vec::new();
        let mut push = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
            arguments.extend(words.iter().map(|word| word.as_ref().to_owned()));
        };
        let (address_text, cpu) = (address.to_string(), cpu.to_string());
        match self {
            Self::Onering | Self::Former => {
                push(&[&"serve", &root, &"--listen", &address_text, &"--cpus", &cpu]);
            }
            Self::Floor => {
                let bytes = cell.file_bytes.to_string();
                push(&[&"floor", &"--listen", &address_text, &"--cpus", &cpu, &"--defer-accept"]);
                push(&[&"--bytes", &bytes]);
                if cell.close {
                    push(&[&"--close"]);
                }
            }
            Self::Nginx | Self::H2o | Self::Lighttpd => {
                let file = scratch.join(self.name()).with_extension("conf");
                fs::write(&file, render(self.template(), assignment))?;
                match self {
                    Self::Nginx => push(&[&"-c", &file, &"-p", &scratch]),
                    Self::H2o => push(&[&"-c", &file]),
                    _ => push(&[&"-D", &"-f", &file]),
                }
            }
        }
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    /// Its configuration; empty for those that are told everything on the command line.
    fn template(self) -> &'static str {
        match self {
            Self::Onering | Self::Former | Self::Floor => "",
            Self::Nginx => include_str!("../../peers/nginx.conf.template"),
            Self::H2o => include_str!("../../peers/h2o.conf.template"),
            Self::Lighttpd => include_str!("../../peers/lighttpd.conf.template"),
        }
    }

    /// Whether it serves the file itself, so that the body can be checked and not only counted.
    pub fn serves_files(self) -> bool {
        self != Self::Floor
    }
}

fn render(template: &str, assignment: &Assignment<'_>) -> String {
    let Assignment { address, root, scratch, .. } = assignment;
    template
        .replace("{{address}}", &address.to_string())
        .replace("{{host}}", &address.ip().to_string())
        .replace("{{port}}", &address.port().to_string())
        .replace("{{root}}", &root.to_string_lossy())
        .replace("{{scratch}}", &scratch.to_string_lossy())
}

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
    use clap::ValueEnum;

    #[test]
    fn every_place_of_a_template_is_filled_in() {
        let assignment = Assignment {
            address: "127.0.0.1:8000".parse().unwrap(),
            root: Path::new("/a/root"),
            scratch: Path::new("/a/scratch"),
            cpu: 0,
            cell: CELLS[0],
        };
        for &server in Server::value_variants() {
            let text = render(server.template(), &assignment);
            assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
            if !server.template().is_empty() {
                assert!(text.contains("/a/root") && text.contains("8000"), "{text}");
            }
        }
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
