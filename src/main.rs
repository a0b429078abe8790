//! The `onering` program: parse, dispatch, print the error, exit code.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use onering::cli::Cli;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // It would report that a line could not be written on standard error, which panics when that
        // is what cannot be written to: a full disk would end the server.
        .log_internal_errors(false)
        .init();
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where it cannot be said, the exit code still tells.
            let _ = writeln!(io::stderr(), "onering: {failure}");
            failure.exit_code()
        }
    }
}
