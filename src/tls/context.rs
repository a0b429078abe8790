//! What a shard answers handshakes with: one rustls configuration for each listener and policy, made on
//! the shard's own thread, so that no count of references is shared.
//!
//! | setting | is | because |
//! |---|---|---|
//! | versions | 1.2 and 1.3 | RFC 8996 has retired the rest |
//! | cipher suites | AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305, by ECDHE only; our order decides | all are strong, and the first is the cheapest for us; scanners count a server without an order of its own as careless. A client that would have ChaCha20 says so by offering nothing else |
//! | groups | X25519, P-256, P-384, X25519MLKEM768; the client's order decides | a hello is never sent back for another share where one can be used |
//! | ALPN | `http/1.1` | a client that offers only others gets `no_application_protocol` (RFC 7301 §3.2), one that offers none is served |
//! | early data | off | it can be replayed (RFC 8446 §8) |
//! | tickets of 1.3 | two; one from the cache | a browser opens several connections; each one takes a slot there |

use std::fmt;
use std::sync::Arc;

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};

use crate::config::{Admission, Version};

use super::certificate::KeyKind;
use super::handshake::{Choose, Handshake};
use super::material::{Choice, Material, OfListener, Policy};
use super::names::Names;
use super::tickets::TicketCounters;

const ALPN: &[u8] = b"http/1.1";

/// The cipher suites, in the order in which they are chosen.
const CIPHER_SUITES: [SupportedCipherSuite; 9] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// What one shard answers with, on all listeners.
#[derive(Debug)]
pub struct Contexts {
    listeners: Vec<Option<Context>>,
}

/// What one shard answers with on one listener.
#[derive(Debug)]
pub struct Context {
    configs: Arc<Configs>,
    is_slow: bool,
}

/// A configuration for each policy of a listener, and who has which.
#[derive(Debug)]
struct Configs {
    by_policy: Vec<Arc<ServerConfig>>,
    admissions: Vec<Admission>,
    policy_of: Arc<Names<usize>>,
}

impl Contexts {
    /// Makes the configurations of a shard. Nothing is read, and nothing can fail: the material was
    /// judged before.
    pub fn new(material: &Material, counters: &Arc<TicketCounters>) -> Self {
        let provider = aws_lc_rs::default_provider();
        let provider =
            Arc::new(CryptoProvider { cipher_suites: CIPHER_SUITES.to_vec(), ..provider });
        let keys = material.certificates.iter();
        let keys: Arc<[_]> = keys.map(|one| Arc::new(one.certified_key())).collect();
        let context = |of: &OfListener| {
            let shown = Shown { choices: Arc::clone(&of.choices), keys: Arc::clone(&keys) };
            let shown: Arc<dyn ResolvesServerCert> = Arc::new(shown);
            let config = |policy: &Policy| {
                Arc::new(config(material, policy, &provider, Arc::clone(&shown), counters))
            };
            let by_policy = of.policies.iter().map(config).collect();
            let admissions = of.policies.iter().map(|policy| policy.admission).collect();
            let policy_of = Arc::clone(&of.policy_of);
            let is_slow = of.choices.values().any(|choice| is_slow(material, choice));
            Context { configs: Arc::new(Configs { by_policy, admissions, policy_of }), is_slow }
        };
        Self { listeners: material.listeners.iter().map(|of| of.as_ref().map(context)).collect() }
    }

    /// One listener, with this configuration.
    #[cfg(test)]
    pub(crate) fn of_config(config: Arc<ServerConfig>) -> Self {
        let off = crate::config::Policies::of(&[]).id(&crate::config::ClientAuth::Off);
        let configs = Configs {
            by_policy: vec![config],
            admissions: vec![Admission { of_listener: off, asked: off }],
            policy_of: Arc::new(Names::all(0)),
        };
        Self { listeners: vec![Some(Context { configs: Arc::new(configs), is_slow: false })] }
    }

    /// That of a listener, by its place in the configuration; `None`: it has no TLS.
    pub fn of_listener(&self, listener: usize) -> Option<&Context> {
        self.listeners.get(listener)?.as_ref()
    }
}

impl Context {
    /// Begins a handshake.
    pub fn handshake(&self) -> Handshake {
        match &self.configs.by_policy[..] {
            [only] => Handshake::new(Arc::clone(only)),
            _ => Handshake::choosing(Arc::clone(&self.configs) as Arc<dyn Choose>),
        }
    }

    /// The configuration for a server name, which is in lower case.
    pub fn config_for(&self, server_name: Option<&str>) -> &Arc<ServerConfig> {
        self.configs.config_for(server_name)
    }

    /// What a client had to be that has asked for this name, which decides what sites it reaches.
    pub fn admission(&self, server_name: Option<&str>) -> Admission {
        self.configs.admissions[*self.configs.policy_of.find(server_name)]
    }

    /// Whether a step of a handshake may take so long that others should not wait for it: some client is
    /// signed for with an RSA key that is long.
    pub fn is_slow(&self) -> bool {
        self.is_slow
    }
}

impl Configs {
    fn config_for(&self, server_name: Option<&str>) -> &Arc<ServerConfig> {
        &self.by_policy[*self.policy_of.find(server_name)]
    }
}

impl Choose for Configs {
    fn choose(&self, server_name: Option<&str>) -> Arc<ServerConfig> {
        Arc::clone(self.config_for(server_name))
    }
}

fn config(
    material: &Material,
    policy: &Policy,
    provider: &Arc<CryptoProvider>,
    shown: Arc<dyn ResolvesServerCert>,
    counters: &Arc<TicketCounters>,
) -> ServerConfig {
    let versions = match material.min_version {
        Version::Tls12 => &[&TLS13, &TLS12][..],
        Version::Tls13 => &[&TLS13],
    };
    let resumption = &material.resumption;
    let clock = Arc::clone(resumption.clock());
    let mut config = ServerConfig::builder_with_details(Arc::clone(provider), clock)
        .with_protocol_versions(versions)
        .expect("the provider has suites for either version")
        .with_client_cert_verifier(policy.asked.verifier(provider))
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ignore_client_order = true;
    config.enable_secret_extraction = true;
    config.session_storage = match resumption.sessions(policy.id) {
        Some(sessions) => Arc::new(sessions),
        None => Arc::new(NoServerSessionStorage {}),
    };
    match resumption.tickets(policy.id, counters) {
        Some(tickets) => config.ticketer = Arc::new(tickets),
        None => config.send_tls13_tickets = 1,
    }
    config
}

/// Whether the preferred certificate is one to be patient with.
fn is_slow(material: &Material, choice: &Choice) -> bool {
    let kind = material.certificates[choice[0]].kind();
    matches!(kind, KeyKind::Rsa { bits } if bits >= material.offload_rsa_bits)
}

/// Chooses the certificate that a client is shown.
struct Shown {
    choices: Arc<Names<Choice>>,
    keys: Arc<[Arc<CertifiedKey>]>,
}

impl ResolvesServerCert for Shown {
    /// One that the client can verify; else the first, so that the alert says what it lacks.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let choice = self.choices.find(hello.server_name());
        let verifiable = |at: &&usize| {
            let key = &self.keys[**at].key;
            choice.len() == 1 || key.choose_scheme(hello.signature_schemes()).is_some()
        };
        let at = choice.iter().find(verifiable).or(choice.first())?;
        Some(Arc::clone(&self.keys[*at]))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").field("choices", &self.choices).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
