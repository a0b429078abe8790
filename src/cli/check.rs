//! `onering check`: is a configuration right? Everything that is wrong with it at once, before a restart
//! would find out. It opens no socket, no ring and no file that is written: whether a port is free, and
//! what the host is able to do, only `serve` and `doctor` tell.

use super::{Exit, Failure, serve};
use crate::server;
use crate::tls::Severity;

const AFTER_HELP: &str = "\
Examples:
  onering check --config /etc/onering.toml
  onering check --config /etc/onering.toml && systemctl restart onering

Roots, certificates and keys are looked at as the user who asks: run it as the one who serves. A
certificate that has expired fails here, though the server would start with it. Whether a port is free, and
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
    let problems = server::check(&config);
    for warning in problems.iter().filter(|problem| problem.severity == Severity::Warning) {
        tracing::warn!("{warning}");
    }
    if problems.worst() > Some(Severity::Warning) {
        let exit = Exit::from(problems.fault(Severity::Refused));
        return Err(Failure::new(exit, problems.at_least(Severity::Refused)));
    }
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
    fn certificates_are_judged_all_at_once() {
        let text = "tls_listen = [\"127.0.0.1:0\"]\n[tls]\n\
                    certificates = [{ cert = \"/absent.pem\", key = \"/absent.key\" }]\n\
                    [[site]]\nroot = \"/\"\n[site.tls]\nclient_ca = \"/absent.ca\"\n";
        let failure = check(text).expect_err("nothing is there");
        assert_eq!(failure.exit, super::Exit::Configuration);
        for name in ["/absent.pem: cannot be read", "/absent.key: cannot", "/absent.ca: cannot"] {
            assert!(failure.to_string().contains(name), "{failure}");
        }
        check("tls_listen = [\"127.0.0.1:0\"]\n").expect("one is made");
    }

    #[test]
    fn a_wrong_configuration_is_told_without_serving() {
        check("[[site]]\nroot = \"/\"\n").expect("a right one ends at once");
        let failure = check("[limit]\nhead = \"1KiB\"\n").expect_err("an unknown key");
        assert!(failure.to_string().contains(":1:2: limit: unknown key"), "{failure}");
    }
}
