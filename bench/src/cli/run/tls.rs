//! How `onering-bench run` speaks TLS.

use crate::cli::CommandError;
use crate::dial::Connection;
use crate::engine::Tls;
use crate::result::load;
use crate::target::{Scheme, Targets};
use crate::tls::{Cipher, Group, Negotiated, ResumeBy, TlsOptions, TlsVersion};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options for `https://` targets.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsArguments {
    /// Share of connections that resume a session, %; 0 if not given, 90 for web99-ssl
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    tls_resume: Option<u8>,
    /// By what they resume it: a ticket where the server gives one, or the id of TLS 1.2, which alone
    /// is offered then
    #[arg(long, value_name = "WHAT", value_enum)]
    tls_resume_by: Option<ResumeBy>,
    /// Versions offered, 1.2 or 1.3; both if not given
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    tls_version: Vec<TlsVersion>,
    /// Cipher suites offered, in order of preference, by IANA's names or OpenSSL's
    #[arg(long, value_name = "CIPHER", value_delimiter = ',')]
    tls_cipher: Vec<Cipher>,
    /// Key exchange groups offered, such as x25519; a key share is sent for the first
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    tls_group: Vec<Group>,
    /// Server name sent (SNI), if not the target's host
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Verify the server's certificate by the CA certificates in this file (PEM); any certificate
    /// is accepted if not given
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

impl TlsArguments {
    /// How TLS is spoken with the server of `targets`, if it is; `resume_percent` if none is given.
    pub(super) fn tls(
        &self,
        targets: &Targets,
        resume_percent: u8,
    ) -> Result<Option<Tls>, CommandError> {
        let first = &targets.list[0];
        if first.scheme == Scheme::Http {
            return if self.is_given() {
                Err(CommandError::Usage("options for TLS need a target that begins with https://"))
            } else {
                Ok(None)
            };
        }
        let options = TlsOptions {
            versions: self.tls_version.clone(),
            ciphers: self.tls_cipher.clone(),
            groups: self.tls_group.clone(),
            sni: self.sni.clone(),
            cacert: self.cacert.clone(),
            resume_by: self.tls_resume_by.unwrap_or_default(),
        };
        let settings = options.check(first.host())?;
        Ok(Some(Tls { settings, resume_percent: self.tls_resume.unwrap_or(resume_percent) }))
    }

    fn is_given(&self) -> bool {
        self.tls_resume.is_some()
            || self.tls_resume_by.is_some()
            || !self.tls_version.is_empty()
            || !self.tls_cipher.is_empty()
            || !self.tls_group.is_empty()
            || self.sni.is_some()
            || self.cacert.is_some()
    }
}

/// What a result says of TLS that was spoken as the first connection has it.
pub(super) fn load(tls: &Tls, negotiated: Negotiated) -> load::Tls {
    load::Tls {
        protocol: format!("TLSv{}", negotiated.version),
        cipher: negotiated.cipher.to_string(),
        resumption_share: f64::from(tls.resume_percent) / 100.0,
        resumed_by: (tls.resume_percent > 0).then(|| tls.settings.resume_by()),
        certificate_verified: tls.settings.verifies(),
    }
}

/// The same, where nothing has been asked yet: a connection of its own tells.
pub(super) fn try_out(
    tls: Option<&Tls>,
    server: SocketAddr,
    timeout: Duration,
) -> Result<Option<load::Tls>, CommandError> {
    let Some(tls) = tls else { return Ok(None) };
    let connection = Connection::dial(server, Some(&tls.settings), timeout)?;
    Ok(connection.negotiated().map(|negotiated| load(tls, negotiated)))
}
