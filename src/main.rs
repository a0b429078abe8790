//! The `onering` program: parse, dispatch, print the error, exit code.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use onering::cli::Cli;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("onering: {failure}");
            failure.exit_code()
        }
    }
}
