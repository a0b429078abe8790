//! TLS on the client's side of a simulated connection.
//!
//! It is rustls, whole; what is simulated is below it. All lengths on the wire are the same for the same
//! seed, since the server's key is one whose signatures have one length.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::wire::Pipe;

/// Both sides' configurations, for each version. The server is the same in every simulation of the
/// process; its clients do not look at what it shows.
pub(in crate::shard) static CONFIGS: LazyLock<[(Arc<ServerConfig>, Arc<ClientConfig>); 2]> =
    LazyLock::new(|| [&rustls::version::TLS12, &rustls::version::TLS13].map(configs));

fn configs(version: &'static SupportedProtocolVersion) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("keys can be made");
    let parameters = rcgen::CertificateParams::new(["a".to_owned()]).expect("it is a name");
    let certificate = parameters.self_signed(&key).expect("it can be signed");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is a key");
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .expect("there are suites for it")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("they are of one another");
    server.enable_secret_extraction = true;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("it is a certificate");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("there are suites for it")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    (Arc::new(server), Arc::new(client))
}

/// Plaintext that is sealed at a time, at most.
const PIECE_BYTES: usize = 3000;

/// A client's TLS.
pub(super) struct Secure {
    tls: ClientConnection,
    /// Records that are not on the wire yet.
    outbound: Vec<u8>,
    /// Plaintext bytes that are in them.
    sealed: usize,
    /// Bytes of plaintext that were sent by then, and where on the wire that was.
    marks: Vec<(usize, u64)>,
    /// It puts so many bytes on the wire, and no more.
    falls_silent_after: Option<u64>,
    has_ended: bool,
    is_told_of_the_end: bool,
}

impl Secure {
    pub(super) fn new(config: &Arc<ClientConfig>, random: &mut fastrand::Rng) -> Self {
        let name = "a".try_into().expect("it is a name");
        let tls = ClientConnection::new(Arc::clone(config), name).expect("it can be made");
        Self {
            tls,
            outbound: Vec::new(),
            sealed: 0,
            marks: Vec::new(),
            falls_silent_after: (random.u8(..12) == 0).then(|| random.u64(..600)),
            has_ended: false,
            is_told_of_the_end: false,
        }
    }

    /// Puts some of `plain`, or of what TLS has to say for itself, on the wire. Says how many bytes of
    /// `plain` are on it now that were not, and whether anything has moved.
    pub(super) fn write(
        &mut self,
        plain: &[u8],
        wire: &mut Pipe,
        random: &mut fastrand::Rng,
    ) -> (usize, bool) {
        if self.outbound.is_empty() && !plain.is_empty() && !self.tls.is_handshaking() {
            self.sealed = random.usize(1..=plain.len().min(PIECE_BYTES));
            self.tls.writer().write_all(&plain[..self.sealed]).expect("it takes a record");
        }
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.outbound).expect("memory takes it");
        }
        let mut most = self.outbound.len();
        if let Some(limit) = self.falls_silent_after {
            most = most.min(limit.saturating_sub(wire.written) as usize);
        }
        let taken = wire.write(&self.outbound[..most], random);
        self.outbound.drain(..taken);
        if taken == 0 || !self.outbound.is_empty() {
            return (0, taken > 0);
        }
        let sealed = std::mem::take(&mut self.sealed);
        let before = self.marks.last().map_or(0, |&(plain, _)| plain);
        self.marks.push((before + sealed, wire.written));
        (sealed, true)
    }

    /// Whether so many bytes of plaintext have come to the server whole.
    pub(super) fn has_arrived(&self, plain: usize, wire: &Pipe) -> bool {
        self.marks.iter().any(|&(end, at)| end >= plain && at <= wire.acked)
    }

    /// Ends its side; with a word or without. Says whether the wire may end: not in the midst of a
    /// handshake that goes on.
    pub(super) fn end(&mut self, is_over: bool, random: &mut fastrand::Rng) -> bool {
        if self.is_silent() || is_over {
            return true;
        }
        if self.tls.is_handshaking() {
            return false;
        }
        if !std::mem::replace(&mut self.has_ended, true) && random.u8(..4) > 0 {
            self.tls.send_close_notify();
        }
        self.outbound.is_empty() && !self.tls.wants_write()
    }

    /// Whether it was to fall silent: then nothing can be expected for it.
    pub(super) fn is_silent(&self) -> bool {
        self.falls_silent_after.is_some()
    }

    /// Takes some of what has arrived; says how many bytes on the wire that was.
    pub(super) fn read(
        &mut self,
        input: &mut Vec<u8>,
        wire: &mut Pipe,
        random: &mut fastrand::Rng,
    ) -> usize {
        let mut records = Vec::new();
        let taken = wire.read(&mut records, random);
        let mut rest = &records[..];
        while !rest.is_empty() {
            self.tls.read_tls(&mut rest).expect("memory can be read");
            let state = self.tls.process_new_packets().expect("the server keeps to TLS");
            let start = input.len();
            input.resize(start + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut input[start..]).expect("so many are there");
            self.is_told_of_the_end |= state.peer_has_closed();
        }
        taken
    }

    /// Whether a connection that has ended in good order did so with a word.
    pub(super) fn ends_well(&self) -> bool {
        self.is_told_of_the_end || self.tls.is_handshaking()
    }
}
