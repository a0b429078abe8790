//! Certificates for tests, in files of a directory that goes with them.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SignatureAlgorithm,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{CertificateFiles, Config, Facts, File, Overrides, resolve};

use super::clock::Clock;
use super::material::Material;
use super::problem::Problems;
use super::resumption::Resumption;

/// The time of tests; certificates that are made here are valid then.
pub(super) const NOW_S: i64 = 1_800_000_000;

/// Who signs, and where what was signed lies.
pub(super) struct Pki {
    directory: tempfile::TempDir,
    root: CertifiedIssuer<'static, KeyPair>,
    intermediate: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, not in a file yet.
pub(super) struct Identity {
    pub(super) certificate: String,
    pub(super) key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Identity {
    /// What a client of rustls shows.
    pub(super) fn shown(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::try_from(self.key_der.clone()).expect("a key");
        (vec![self.der.clone()], key)
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Pki {
    pub(super) fn new() -> Self {
        Self::named("")
    }

    /// One whose authorities' names end in this.
    pub(super) fn named(suffix: &str) -> Self {
        let authority = |name: &str| authority(&format!("{name}{suffix}"));
        let key = || KeyPair::generate().expect("a key");
        let root = CertifiedIssuer::self_signed(authority("root"), key()).expect("a root");
        let intermediate = authority("intermediate");
        let intermediate =
            CertifiedIssuer::signed_by(intermediate, key(), &root).expect("an intermediate");
        Self { directory: tempfile::tempdir().expect("a directory"), root, intermediate }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("it is ours");
        let only_ours = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, only_ours).expect("it is ours");
        path
    }

    /// One for these names, signed by the intermediate, with a change of the test's.
    pub(super) fn identity_with(
        &self,
        names: &[&str],
        kind: &'static SignatureAlgorithm,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let key = KeyPair::generate_for(kind).expect("a key");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let signed = params.signed_by(&key, &self.intermediate).expect("a certificate");
        Identity {
            certificate: signed.pem(),
            key: key.serialize_pem(),
            der: signed.der().clone(),
            key_der: key.serialize_der(),
        }
    }

    pub(super) fn identity(&self, names: &[&str]) -> Identity {
        self.identity_with(names, &rcgen::PKCS_ECDSA_P256_SHA256, |_| {})
    }

    /// The certificates of those who sign.
    pub(super) fn intermediate(&self) -> String {
        self.intermediate.pem()
    }

    pub(super) fn root(&self) -> String {
        self.root.pem()
    }

    pub(super) fn root_der(&self) -> CertificateDer<'static> {
        self.root.der().clone()
    }

    /// Puts an identity into files, with its chain.
    pub(super) fn files(&self, name: &str, identity: &Identity) -> CertificateFiles {
        let chain = format!("{}{}", identity.certificate, self.intermediate());
        CertificateFiles {
            chain: self.write(&format!("{name}.pem"), &chain),
            key: self.write(&format!("{name}.key"), &identity.key),
        }
    }

    /// A new certificate for these names, in `NAME.pem` and `NAME.key`.
    pub(super) fn issue(&self, name: &str, names: &[&str]) -> CertificateFiles {
        self.files(name, &self.identity(names))
    }

    /// What is configured by this text, in a file beside the certificates.
    pub(super) fn config(&self, text: &str) -> Config {
        let facts = Facts { allowed_cpus: vec![0], nofile: 65_536 };
        let file = File { path: &self.path("onering.toml"), text };
        resolve(Some(file), &Overrides::default(), &facts).expect(text)
    }

    /// The material of a configuration, which is right but for warnings.
    pub(super) fn material(&self, text: &str) -> Material {
        let mut problems = Problems::default();
        let config = self.config(text);
        let material = Material::load(&config, &resumption(&config), None, NOW_S, &mut problems);
        material.unwrap_or_else(|| panic!("{problems}"))
    }
}

/// What sessions of a test are resumed from.
pub(super) fn resumption(config: &Config) -> Arc<Resumption> {
    let clock = Arc::new(Clock::at(NOW_S as u64));
    let mut problems = Problems::default();
    let resumption = Resumption::new(&config.tls, 1, clock, &mut problems);
    Arc::new(resumption.unwrap_or_else(|| panic!("{problems}")))
}
