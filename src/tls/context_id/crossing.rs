//! Nothing resumes past its policy: handshakes between rustls's client and its server, in memory, with
//! the same name on two policies of which one asks for a client's certificate.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{StoresServerSessions, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};

use super::super::cache::{ContextSessions, SessionCache, Settings, VALUE_BYTES};
use super::super::clock::Clock;
use super::super::secret::Secrets;
use super::super::tickets::{ContextTickets, Period, TicketSecrets};
use super::*;

const START_S: u64 = 1_800_000_000;
const PERIOD_S: u32 = 1000;
const NAME: &str = "www.example.com";

/// How sessions are resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Id12,
    Ticket12,
    Stateful13,
    Ticket13,
}

impl By {
    const ALL: [By; 4] = [By::Id12, By::Ticket12, By::Stateful13, By::Ticket13];

    fn versions(self) -> [&'static SupportedProtocolVersion; 1] {
        [if matches!(self, By::Id12 | By::Ticket12) { &TLS12 } else { &TLS13 }]
    }

    fn is_ticket(self) -> bool {
        matches!(self, By::Ticket12 | By::Ticket13)
    }
}

/// A host: what its contexts and shards share.
struct Host {
    authority: CertifiedIssuer<'static, KeyPair>,
    clock: Arc<Clock>,
    cache: Arc<SessionCache>,
    secrets: Arc<TicketSecrets>,
}

/// A certificate of `names`, and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Host {
    fn new() -> Host {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let clock = Arc::new(Clock::at(START_S));
        let settings = Settings {
            entries: NonZeroUsize::new(1024).unwrap(),
            threads: NonZeroUsize::new(2).unwrap(),
            lifetime: Duration::from_secs(PERIOD_S.into()),
        };
        Host {
            authority: CertifiedIssuer::self_signed(params, key).unwrap(),
            cache: Arc::new(SessionCache::new(settings, Arc::clone(&clock))),
            secrets: Arc::new(TicketSecrets::new(Secrets::random().unwrap())),
            clock,
        }
    }

    fn identity(&self, names: &[&str]) -> Identity {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        Arc::new(roots)
    }

    /// What one shard has for a policy: a new one is another shard, or the same after a swap of
    /// certificates.
    fn policy(&self, by: By, context: &str, asks: bool) -> Arc<ServerConfig> {
        let provider = Arc::new(default_provider());
        let clock = Arc::clone(&self.clock);
        let builder = ServerConfig::builder_with_details(Arc::clone(&provider), clock);
        let builder = builder.with_protocol_versions(&by.versions()).unwrap();
        let builder = match asks {
            false => builder.with_no_client_auth(),
            true => {
                let verifier = WebPkiClientVerifier::builder_with_provider(self.roots(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let (chain, key) = self.identity(&[NAME]);
        let mut config = builder.with_single_cert(chain, key).unwrap();
        let context = ContextId::of(&[context.as_bytes()]);
        config.session_storage = Arc::new(ContextSessions::new(Arc::clone(&self.cache), context));
        if by.is_ticket() {
            config.ticketer = Arc::new(ContextTickets::new(
                Arc::clone(&self.secrets),
                context,
                Period::new(PERIOD_S).unwrap(),
                Arc::clone(&self.clock),
                Arc::default(),
            ));
        }
        Arc::new(config)
    }

    fn client(&self, by: By, has_certificate: bool) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&by.versions())
            .unwrap()
            .with_root_certificates(self.roots());
        let mut config = match has_certificate {
            false => builder.with_no_client_auth(),
            true => {
                let (chain, key) = self.identity(&["client"]);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.resumption = Resumption::in_memory_sessions(32).tls12_resumption(match by {
            By::Id12 => Tls12Resumption::SessionIdOnly,
            _ => Tls12Resumption::SessionIdOrTickets,
        });
        Arc::new(config)
    }
}

/// How a handshake went that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Visit {
    resumed: bool,
    /// Whether the server knows a certificate of the client's.
    certificate: bool,
}

const FULL: Visit = Visit { resumed: false, certificate: false };
const RESUMED: Visit = Visit { resumed: true, certificate: false };

/// A handshake, with the tickets that follow it.
fn visit(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<Visit, rustls::Error> {
    visit_as(client, server, NAME)
}

fn visit_as(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<Visit, rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    let mut bytes = Vec::new();
    while client.wants_write() || server.wants_write() {
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
        bytes.clear();
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    assert_eq!(client.handshake_kind(), server.handshake_kind());
    Ok(Visit {
        resumed: server.handshake_kind() == Some(HandshakeKind::Resumed),
        certificate: server.peer_certificates().is_some(),
    })
}

#[test]
fn every_way_resumes_on_every_shard_of_its_own_policy() {
    for by in By::ALL {
        let host = Host::new();
        let shards = [(); 3].map(|()| host.policy(by, "open", false));
        let client = host.client(by, false);
        assert_eq!(visit(&client, &shards[0]), Ok(FULL), "{by:?}");
        for n in 0..40 {
            assert_eq!(visit(&client, &shards[n % 3]), Ok(RESUMED), "{by:?}, visit {n}");
        }
    }
}

#[test]
fn a_session_made_without_a_certificate_is_not_resumed_where_one_is_asked_for() {
    for by in By::ALL {
        let host = Host::new();
        let (open, closed) = (host.policy(by, "open", false), host.policy(by, "closed", true));
        let with = host.client(by, true);
        assert_eq!(visit(&with, &open), Ok(FULL), "{by:?}");
        let full = Visit { resumed: false, certificate: true };
        assert_eq!(visit(&with, &closed), Ok(full), "{by:?}");

        let without = host.client(by, false);
        assert_eq!(visit(&without, &open), Ok(FULL), "{by:?}");
        let refusal = visit(&without, &closed).expect_err("it has no certificate");
        assert!(
            matches!(refusal, rustls::Error::NoCertificatesPresented),
            "{by:?}: refused for another reason: {refusal:?}"
        );
    }
}

#[test]
fn a_session_made_with_a_certificate_is_not_resumed_where_none_is_asked_for() {
    for by in By::ALL {
        let host = Host::new();
        let (open, closed) = (host.policy(by, "open", false), host.policy(by, "closed", true));
        let client = host.client(by, true);
        let full = Visit { resumed: false, certificate: true };
        assert_eq!(visit(&client, &closed), Ok(full), "{by:?}");
        // A ticket holds the chain of the client's; a slot of the cache does not.
        let again = Visit { resumed: by.is_ticket(), certificate: true };
        assert_eq!(visit(&client, &closed), Ok(again), "{by:?}");
        let not_stored = host.cache.values().too_large;
        assert!(not_stored > 0 || by == By::Ticket13, "{by:?}: {not_stored}");
        assert_eq!(visit(&client, &open), Ok(FULL), "{by:?}");
    }
}

/// That it is the context, and nothing else, that keeps sessions apart: with one for both policies, who
/// has no certificate gets in.
#[test]
fn with_one_context_for_two_policies_a_session_would_cross() {
    for by in By::ALL {
        let host = Host::new();
        let (open, closed) = (host.policy(by, "same", false), host.policy(by, "same", true));
        let client = host.client(by, false);
        assert_eq!(visit(&client, &open), Ok(FULL), "{by:?}");
        assert_eq!(visit(&client, &closed), Ok(RESUMED), "{by:?}: the test shows nothing any more");
    }
}

#[test]
fn sessions_end_with_their_time() {
    for by in By::ALL {
        let host = Host::new();
        let policy = host.policy(by, "open", false);
        let client = host.client(by, false);
        assert_eq!(visit(&client, &policy), Ok(FULL), "{by:?}");
        host.clock.tick(START_S + u64::from(PERIOD_S) - 1);
        assert_eq!(visit(&client, &policy), Ok(RESUMED), "{by:?}");
        // What the second visit has brought, ends as well: a ticket's epoch has passed by now.
        host.clock.tick(START_S + 2 * u64::from(PERIOD_S));
        assert_eq!(visit(&client, &policy), Ok(FULL), "{by:?}");
    }
}

#[test]
fn hosts_with_one_secret_resume_each_others_sessions_until_it_is_revoked() {
    for by in [By::Ticket12, By::Ticket13] {
        let (one, other) = (Host::new(), Host::new());
        let secret = Secrets::random().unwrap();
        one.secrets.replace(secret.clone());
        other.secrets.replace(secret);
        let other = Host { authority: Host::new().authority, ..other };
        let (on_one, on_other) = (one.policy(by, "a", false), other.policy(by, "a", false));
        let client = one.client(by, false);
        assert_eq!(visit(&client, &on_one), Ok(FULL), "{by:?}");
        other.clock.tick(START_S + u64::from(PERIOD_S));
        // The client does not even see the other's certificate, which it would not trust.
        assert_eq!(visit(&client, &on_other), Ok(RESUMED), "{by:?}");
        one.secrets.replace(Secrets::random().unwrap());
        assert_eq!(visit(&client, &on_one), Ok(FULL), "{by:?}");
    }
}

/// A storage that notes how large the sessions are.
#[derive(Debug, Default)]
struct Scale(Mutex<Vec<usize>>);

impl StoresServerSessions for Scale {
    fn put(&self, _id: Vec<u8>, session: Vec<u8>) -> bool {
        self.0.lock().unwrap().push(session.len());
        true
    }

    fn get(&self, _id: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _id: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// What a slot of the cache is made for.
#[test]
fn every_session_without_a_clients_chain_fits_a_slot() {
    let host = Host::new();
    let label = "n".repeat(63);
    let longest = [&label[..], &label, &label, &label[..61]].join(".");
    assert_eq!(longest.len(), 253);
    for (by, name, protocols, asks, expected) in [
        (By::Id12, NAME, &[][..], false, 71 + 16..=71 + 16),
        (By::Stateful13, NAME, &[], false, 71 + 16..=71 + 16),
        (By::Id12, &longest, &[b"http/1.1".to_vec()], false, 334..=334),
        (By::Stateful13, &longest, &[b"http/1.1".to_vec()], false, 334..=334),
        (By::Id12, NAME, &[], true, VALUE_BYTES + 1..=1000),
        (By::Stateful13, NAME, &[], true, VALUE_BYTES + 1..=1000),
    ] {
        let scale = Arc::new(Scale::default());
        let mut policy = Arc::unwrap_or_clone(host.policy(by, "a", asks));
        let (chain, key) = host.identity(&[name]);
        let key = default_provider().key_provider.load_private_key(key).unwrap();
        let identity = rustls::sign::CertifiedKey::new(chain, key);
        policy.cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(identity));
        policy.session_storage = Arc::clone(&scale) as Arc<dyn StoresServerSessions>;
        policy.alpn_protocols = protocols.to_vec();
        let mut client = Arc::unwrap_or_clone(host.client(by, asks));
        client.alpn_protocols = protocols.to_vec();
        visit_as(&Arc::new(client), &Arc::new(policy), name).unwrap();
        let lengths = scale.0.lock().unwrap().clone();
        assert!(!lengths.is_empty());
        for length in lengths {
            assert!(expected.contains(&length), "{by:?}, {name}, {asks}: {length}");
        }
    }
}
