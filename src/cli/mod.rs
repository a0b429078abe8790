//! The commands, a file each.
//!
//! A command resolves its arguments, calls the library and says what went wrong in words that name the
//! fix. What it prints on standard output may be read by a program; everything else goes to standard
//! error.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Fault;

mod check;
mod doctor;
mod fileset;
mod serve;

const AFTER_HELP: &str = "\
Examples:
  onering serve                        the welcome site on http://127.0.0.1:8080/ and https://127.0.0.1:8443/
  onering serve /srv/www --listen 0.0.0.0:80
  onering serve --config /etc/onering.toml
  onering check --config /etc/onering.toml
  onering doctor                       can this host run it well?
  onering fileset generate /srv/web99 --load 100

Exit codes:
  0  done; for `serve`: ended when asked to, even if connections had to be cut off
  1  a file set is not whole
  2  the command line or the configuration is wrong
  3  the host lacks something (io_uring, descriptors, a free port), or something failed
  4  a permission is missing: to read the configuration or a directory that is served, to write
     the counters, to take a port below 1024";

/// A web server with one thread, one NIC queue and one io_uring per CPU.
#[derive(Debug, Parser)]
#[command(name = "onering", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Check(check::Args),
    Doctor(doctor::Args),
    Fileset(fileset::Args),
}

/// Why a command failed, and the exit code that says so to a program.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

/// The exit codes other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// A file set is not whole: damaged, or its generation was interrupted.
    NotWhole = 1,
    /// The command line or the configuration is wrong. Also clap's code for a command line that it
    /// cannot read.
    Configuration = 2,
    /// The host lacks something, or something failed.
    Environment = 3,
    /// A permission is missing.
    Permission = 4,
}

impl Cli {
    /// Carries the command out.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Serve(args) => serve::run(args),
            Command::Check(args) => check::run(args),
            Command::Doctor(args) => doctor::run(&args),
            Command::Fileset(args) => fileset::run(&args),
        }
    }
}

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Configuration => Self::Configuration,
            Fault::Environment => Self::Environment,
            Fault::Permission => Self::Permission,
        }
    }
}

impl Exit {
    /// That of an error of the operating system: a permission that is missing, or else `otherwise`.
    fn of(error: &io::Error, otherwise: Exit) -> Exit {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Exit::Permission,
            _ => otherwise,
        }
    }
}

impl Failure {
    fn new(exit: Exit, error: impl fmt::Display) -> Self {
        Self { exit, message: error.to_string() }
    }

    /// What the process answers with.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writes to standard output. Whoever has stopped reading has had enough: that is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Environment, format!("cannot write the answer: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        let cli = Cli::command();
        for command in cli.get_subcommands().chain([&cli]) {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Examples:"), "{}", command.get_name());
        }
    }
}
