//! `onering-bench`: see the crate documentation of the library.

use clap::Parser;
use onering_bench::cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(&cli::Cli::parse())
}
