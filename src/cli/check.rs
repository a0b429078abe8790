//! `onering check`: is a configuration right? Everything that is wrong with it at once, before a restart
//! would find out. It opens no socket, no ring and no file that is written: whether a port is free, and
//! what the host is able to do, only `serve` and `doctor` tell.

use super::{Failure, serve};

const AFTER_HELP: &str = "\
Examples:
  onering check --config /etc/onering.toml
  onering check --config /etc/onering.toml && systemctl restart onering

Roots are looked at as the user who asks: run it as the one who serves. Whether a port is free, and
whether error pages are there, is told at start. Exit codes are those of `onering --help`.";

/// Tell what is wrong with a configuration, without serving it.
///
/// It takes what `serve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct Args {
    #[command(flatten)]
    serve: serve::Args,
}

/// Resolves the configuration, as `serve` does before it serves.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let config = serve::resolve_here(args.serve)?;
    let (sites, listeners) = (config.sites.len(), config.listeners.len());
    super::print(&format!("ok: sites: {sites}, listeners: {listeners}\n"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;

    fn check(text: &str) -> Result<(), super::Failure> {
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), text).expect("write");
        let path = file.path().to_str().expect("a plain name");
        Cli::parse_from(["onering", "check", "--config", path]).run()
    }

    #[test]
    fn a_wrong_configuration_is_told_without_serving() {
        check("[[site]]\nroot = \"/\"\n").expect("a right one ends at once");
        let failure = check("[limit]\nhead = \"1KiB\"\n").expect_err("an unknown key");
        assert!(failure.to_string().contains(":1:2: limit: unknown key"), "{failure}");
    }
}
