//! The client against rustls' own server, in memory.

mod resumption;

use super::*;
use onering::ring::SendBuf;
use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::OutboundPlainMessage;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ServerConfig, ServerConnection};
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite,
    SupportedProtocolVersion,
};
use std::io::{Read, Write};
use std::sync::Arc;

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A server's certificate for `localhost`, as PEM, and its key.
struct Identity {
    pem: String,
    config: ServerConfig,
}

impl Identity {
    fn new(versions: &[&'static SupportedProtocolVersion]) -> Self {
        Self::with(versions, |_| {})
    }

    fn with(
        versions: &[&'static SupportedProtocolVersion],
        adapt: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        adapt(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        Self { pem: certificate.pem(), config }
    }

    fn server(&self) -> ServerConnection {
        ServerConnection::new(Arc::new(self.config.clone())).unwrap()
    }
}

fn settings(options: &TlsOptions) -> TlsSettings {
    options.check("localhost").unwrap()
}

fn client(resume_percent: u8) -> TlsClient {
    TlsClient::new(&settings(&TlsOptions::default()), resume_percent, 1)
}

/// Two ends and what has come out of them.
struct Pair {
    client: TlsConnection,
    server: ServerConnection,
    scratch: Vec<u8>,
    at_client: Vec<u8>,
    at_server: Vec<u8>,
}

impl Pair {
    fn new(client: TlsConnection, server: ServerConnection) -> Self {
        let nothing = Vec::new;
        Self { client, server, scratch: nothing(), at_client: nothing(), at_server: nothing() }
    }

    /// A pair whose handshake is done.
    fn open(client: &mut TlsClient, identity: &Identity) -> Self {
        let mut pair = Self::new(client.connect().unwrap(), identity.server());
        pair.settle().unwrap();
        assert!(pair.client.handshake().is_some());
        pair
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), TlsError> {
        self.client.received(bytes, &mut self.scratch, |plaintext| {
            self.at_client.extend_from_slice(plaintext);
            Ok(())
        })
    }

    /// Hands over what the client has to send; whether it had something.
    fn deliver(&mut self) -> bool {
        let Some(bytes) = self.client.outgoing() else { return false };
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            self.server.read_tls(&mut bytes).unwrap();
            // What is wrong is told to the client by an alert.
            if self.server.process_new_packets().is_ok() {
                let _ = self.server.reader().read_to_end(&mut self.at_server);
            }
        }
        true
    }

    /// What the server has to send.
    fn flight(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Lets both talk until neither has anything to say.
    fn settle(&mut self) -> Result<(), TlsError> {
        loop {
            let sent = self.deliver();
            let bytes = self.flight();
            if !sent && bytes.is_empty() {
                return Ok(());
            }
            self.receive(&bytes)?;
        }
    }

    fn say(&mut self, answer: &[u8]) -> Vec<u8> {
        let mut said = Vec::new();
        for piece in answer.chunks(16 * 1024) {
            self.server.writer().write_all(piece).unwrap();
            said.extend(self.flight());
        }
        said
    }
}

/// What a connection with this client comes to.
fn failure(client: &mut TlsClient, identity: &Identity) -> (TlsError, Pair) {
    let mut pair = Pair::new(client.connect().unwrap(), identity.server());
    (pair.settle().unwrap_err(), pair)
}

#[test]
fn a_request_and_its_answer_cross_in_both_versions() {
    for (version, protocol) in BOTH.into_iter().zip([TlsVersion::Tls12, TlsVersion::Tls13]) {
        let mut identity = Identity::new(&[version]);
        identity.config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut pair = Pair::open(&mut client(0), &identity);
        let handshake = pair.client.handshake().unwrap();
        assert_eq!(handshake.negotiated.version, protocol);
        assert_eq!(
            (handshake.resumed, handshake.intent, handshake.retried),
            (false, Intent::Full, false)
        );
        assert_eq!(pair.server.alpn_protocol(), Some(b"http/1.1".as_slice()));
        assert_eq!(pair.server.server_name(), Some("localhost"));
        pair.client.send(b"question").unwrap();
        pair.settle().unwrap();
        assert_eq!(pair.at_server, b"question");
        let answer = pair.say(b"answer");
        pair.receive(&answer).unwrap();
        assert_eq!(pair.at_client, b"answer");
        assert!(pair.client.outgoing().is_none());
    }
}

#[test]
fn a_long_request_is_cut_into_records() {
    let mut pair = Pair::open(&mut client(0), &Identity::new(&BOTH));
    let long: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
    pair.client.send(&long).unwrap();
    pair.settle().unwrap();
    assert_eq!(pair.at_server, long);
}

#[test]
fn cuts_change_nothing() {
    for version in BOTH {
        for piece in [1, 2, 7, 1000, 20_000] {
            let mut pair =
                Pair::new(client(0).connect().unwrap(), Identity::new(&[version]).server());
            while pair.client.handshake().is_none() {
                pair.deliver();
                for bytes in pair.flight().chunks(piece) {
                    pair.receive(bytes).unwrap();
                }
            }
            pair.settle().unwrap();
            let answer: Vec<u8> = (0..50_000_u32).map(|i| (i % 251) as u8).collect();
            for bytes in pair.say(&answer).chunks(piece) {
                pair.receive(bytes).unwrap();
            }
            assert!(pair.at_client == answer, "{version:?} {piece}");
        }
    }
}

#[test]
fn a_request_may_be_sent_while_a_record_is_incomplete() {
    let mut pair = Pair::open(&mut client(0), &Identity::new(&BOTH));
    let answer = pair.say(b"answer");
    pair.receive(&answer[..9]).unwrap();
    pair.client.send(b"second").unwrap();
    pair.receive(&answer[9..]).unwrap();
    assert_eq!(pair.at_client, b"answer");
    pair.settle().unwrap();
    assert_eq!(pair.at_server, b"second");
}

#[test]
fn another_key_share_costs_a_round_trip_only_once() {
    let mut identity = Identity::new(&[&TLS13]);
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::SECP384R1];
    let with_other_group = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(identity.config.cert_resolver.clone());
    identity.config = with_other_group;
    let mut client = client(0);
    let mut retried = || Pair::open(&mut client, &identity).client.handshake().unwrap().retried;
    assert_eq!([retried(), retried()], [true, false]);
}

#[test]
fn versions_and_ciphers_are_those_asked_for() {
    let handshake = |versions: &[&str], ciphers: &[&str]| {
        let options = TlsOptions {
            versions: versions.iter().map(|v| v.parse().unwrap()).collect(),
            ciphers: ciphers.iter().map(|c| c.parse().unwrap()).collect(),
            ..TlsOptions::default()
        };
        let mut client = TlsClient::new(&settings(&options), 0, 1);
        let handshake = Pair::open(&mut client, &Identity::new(&BOTH)).client.handshake().unwrap();
        let Negotiated { version, cipher } = handshake.negotiated;
        (version, cipher.to_string())
    };
    use TlsVersion::{Tls12, Tls13};
    let spoken = |version, cipher: &str| (version, cipher.to_owned());
    assert_eq!(handshake(&[], &[]), spoken(Tls13, "TLS_AES_256_GCM_SHA384"));
    assert_eq!(handshake(&["1.2"], &[]), spoken(Tls12, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"));
    assert_eq!(
        handshake(&[], &["TLS_AES_128_GCM_SHA256"]),
        spoken(Tls13, "TLS_AES_128_GCM_SHA256")
    );
    assert_eq!(
        handshake(&[], &["ECDHE-ECDSA-AES128-GCM-SHA256"]),
        spoken(Tls12, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    );
}

#[test]
fn options_that_cannot_be_met_are_refused() {
    let check = |options: TlsOptions| options.check("localhost").unwrap_err();
    let ciphers = vec!["ECDHE-RSA-AES128-GCM-SHA256".parse().unwrap()];
    let only_13 =
        TlsOptions { ciphers, versions: vec![TlsVersion::Tls13], ..TlsOptions::default() };
    assert!(matches!(check(only_13), TlsOptionsError::NoCipher(TlsVersion::Tls13)));
    let by_id = |versions: &[TlsVersion], ciphers: &[&str]| TlsOptions {
        versions: versions.to_vec(),
        ciphers: ciphers.iter().map(|cipher| cipher.parse().unwrap()).collect(),
        resume_by: ResumeBy::Id,
        ..TlsOptions::default()
    };
    let both = [TlsVersion::Tls12, TlsVersion::Tls13];
    assert!(matches!(check(by_id(&both, &[])), TlsOptionsError::NoId));
    let none = check(by_id(&[], &["TLS_AES_128_GCM_SHA256"]));
    assert!(matches!(none, TlsOptionsError::NoCipher(TlsVersion::Tls12)));
    let sni = TlsOptions { sni: Some("a name".into()), ..TlsOptions::default() };
    assert!(matches!(check(sni), TlsOptionsError::Name(_)));
    let missing = TlsOptions { cacert: Some("/nowhere/ca.pem".into()), ..TlsOptions::default() };
    assert!(matches!(check(missing), TlsOptionsError::Certificates { .. }));
    let empty = tempfile::NamedTempFile::new().unwrap();
    let nothing = TlsOptions { cacert: Some(empty.path().into()), ..TlsOptions::default() };
    assert!(matches!(check(nothing), TlsOptionsError::NoCertificate { .. }));
    let unknown = "RC4-SHA".parse::<Cipher>().unwrap_err().to_string();
    assert!(
        unknown.contains("`RC4-SHA`") && unknown.contains("TLS_AES_128_GCM_SHA256"),
        "{unknown}"
    );
    assert!("1.1".parse::<TlsVersion>().is_err() && "P-256".parse::<Group>().is_ok());
}

/// The client of somebody who trusts only what is in `pem`.
fn verifying(pem: &str, sni: Option<&str>) -> TlsClient {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    let options = TlsOptions {
        cacert: Some(file.path().into()),
        sni: sni.map(str::to_owned),
        ..TlsOptions::default()
    };
    let settings = settings(&options);
    assert!(settings.verifies());
    TlsClient::new(&settings, 0, 1)
}

#[test]
fn a_certificate_is_verified_only_if_someone_may_vouch_for_it() {
    use CertificateFault as F;
    let wrong = |client: &mut TlsClient, identity: &Identity, fault| {
        let (error, mut pair) = failure(client, identity);
        assert_eq!(error, TlsError::Certificate(fault));
        // The server is told.
        assert!(pair.deliver());
        assert!(pair.server.process_new_packets().is_err());
        // The same certificate is good enough for who does not ask.
        Pair::open(&mut super::tests::client(0), identity);
    };
    for version in BOTH {
        let good = Identity::new(&[version]);
        Pair::open(&mut verifying(&good.pem, None), &good);
        wrong(&mut verifying(&good.pem, Some("example.org")), &good, F::Name);
        let stranger = Identity::with(&BOTH, |p| {
            p.distinguished_name.push(DnType::CommonName, "somebody else");
        });
        wrong(&mut verifying(&stranger.pem, None), &good, F::Issuer);
        // It has the issuer's name, but not its key.
        wrong(&mut verifying(&Identity::new(&BOTH).pem, None), &good, F::Signature);
        let old = Identity::with(&[version], |p| p.not_after = date_time_ymd(2001, 1, 1));
        wrong(&mut verifying(&old.pem, None), &old, F::Expired);
        let young = Identity::with(&[version], |p| p.not_before = date_time_ymd(2999, 1, 1));
        wrong(&mut verifying(&young.pem, None), &young, F::NotYetValid);
    }
}

#[test]
fn an_alert_is_named() {
    let only_12 = TlsOptions { versions: vec![TlsVersion::Tls12], ..TlsOptions::default() };
    let mut client = TlsClient::new(&settings(&only_12), 0, 1);
    let (error, mut pair) = failure(&mut client, &Identity::new(&[&TLS13]));
    assert_eq!(error, TlsError::Alert(AlertDescription::ProtocolVersion));
    assert_eq!(pair.receive(b"more"), Err(error), "it stays failed");
}

#[test]
fn what_is_no_tls_is_told_apart() {
    let answers: [(&[u8], TlsError); 3] = [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", TlsError::Malformed),
        // Application data before any handshake.
        (b"\x17\x03\x03\x00\x01x", TlsError::Unexpected),
        // A record longer than any may be.
        (b"\x16\x03\x03\xff\xff", TlsError::Malformed),
    ];
    for (answer, expected) in answers {
        let mut pair = Pair::new(client(0).connect().unwrap(), Identity::new(&BOTH).server());
        assert_eq!(pair.receive(answer), Err(expected), "{answer:?}");
    }
}

#[test]
fn an_altered_record_is_found() {
    for version in BOTH {
        let mut pair = Pair::open(&mut client(0), &Identity::new(&[version]));
        let mut answer = pair.say(b"answer");
        *answer.last_mut().unwrap() ^= 1;
        assert_eq!(pair.receive(&answer), Err(TlsError::Undecryptable));
        assert!(pair.at_client.is_empty());
    }
}

#[test]
fn a_flight_that_is_cut_short_completes_nothing() {
    for version in BOTH {
        let identity = Identity::new(&[version]);
        let mut pair = Pair::new(client(0).connect().unwrap(), identity.server());
        pair.deliver();
        let flight = pair.flight();
        pair.receive(&flight[..flight.len() - 1]).unwrap();
        assert!(pair.client.handshake().is_none() && !pair.client.ended());
        // No more than the change of ciphers that middleboxes like to see (RFC 8446 §D.4).
        let said = pair.client.outgoing().map_or(0, |bytes| bytes.len());
        assert!(said == 0 || said == b"\x14\x03\x03\x00\x01\x01".len(), "{said}");
    }
}

#[test]
fn new_keys_from_the_server_are_taken_and_answered() {
    let mut pair = Pair::open(&mut client(0), &Identity::new(&[&TLS13]));
    for _ in 0..3 {
        pair.server.refresh_traffic_keys().unwrap();
        let answer = pair.say(b"answer");
        pair.receive(&answer).unwrap();
        pair.client.send(b"question").unwrap();
        pair.settle().unwrap();
    }
    assert_eq!(pair.at_client, b"answer".repeat(3));
    assert_eq!(pair.at_server, b"question".repeat(3));
}

#[test]
fn a_request_to_renegotiate_is_refused_and_nothing_is_lost() {
    let ciphers = vec!["ECDHE-ECDSA-CHACHA20-POLY1305".parse().unwrap()];
    let options = TlsOptions { ciphers, ..TlsOptions::default() };
    let mut identity = Identity::new(&[&TLS12]);
    identity.config.enable_secret_extraction = true;
    let mut pair = Pair::open(&mut TlsClient::new(&settings(&options), 0, 1), &identity);
    let Some(SupportedCipherSuite::Tls12(suite)) = pair.server.negotiated_cipher_suite() else {
        panic!("TLS 1.2 was offered");
    };
    let secrets =
        std::mem::replace(&mut pair.server, identity.server()).dangerous_extract_secrets().unwrap();
    let (sequence, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = secrets.tx else {
        panic!("ChaCha20-Poly1305 was offered");
    };
    let mut encrypter = suite.aead_alg.encrypter(key, iv.as_ref(), &[]);
    let hello_request = OutboundPlainMessage {
        typ: ContentType::Handshake,
        version: ProtocolVersion::TLSv1_2,
        payload: [0, 0, 0, 0].as_slice().into(),
    };
    let record = encrypter.encrypt(hello_request, sequence).unwrap().encode();
    pair.receive(&record).unwrap();
    const ALERT: u8 = 21;
    let refusal = pair.client.outgoing().unwrap();
    assert_eq!(refusal.as_slice()[0], ALERT);
    pair.client.send(b"question").unwrap();
    assert!(pair.client.outgoing().is_some());
}

#[test]
fn either_side_says_that_it_closes() {
    for version in BOTH {
        let mut pair = Pair::open(&mut client(0), &Identity::new(&[version]));
        let mut last = pair.say(b"last");
        pair.server.send_close_notify();
        last.extend(pair.flight());
        last.extend(b"and then some");
        pair.receive(&last).unwrap();
        assert!(pair.client.ended());
        assert_eq!(pair.at_client, b"last");
        pair.receive(b"more").unwrap();
        pair.client.close().unwrap();
        assert!(pair.deliver());
        assert!(pair.server.process_new_packets().unwrap().peer_has_closed());
    }
}

#[test]
fn a_connection_without_a_handshake_has_nothing_to_close() {
    let mut connection = client(0).connect().unwrap();
    let hello = connection.outgoing();
    assert!(matches!(hello, Some(SendBuf::Shared(..))));
    connection.close().unwrap();
    assert!(connection.outgoing().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_never_panics(
        before in 0..3_usize,
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..6),
        kind in 20..25_u8,
    ) {
        let identity = Identity::new(&BOTH);
        let mut pair = Pair::new(client(0).connect().unwrap(), identity.server());
        for _ in 0..before {
            pair.deliver();
            let bytes = pair.flight();
            pair.receive(&bytes).unwrap();
        }
        for piece in pieces {
            // As records, so that more than the first byte is looked at.
            let record = [&[kind, 3, 3, 0, piece.len() as u8], piece.as_slice()].concat();
            let _ = pair.receive(&record);
            let _ = pair.client.outgoing();
            let _ = pair.client.send(b"question");
            let _ = pair.client.close();
        }
    }

    #[test]
    fn a_flipped_bit_never_panics(at in any::<prop::sample::Index>(), bit in 0..8_u32, old in any::<bool>()) {
        let identity = Identity::new(&[BOTH[usize::from(old)]]);
        let mut pair = Pair::new(client(0).connect().unwrap(), identity.server());
        pair.deliver();
        let mut flight = pair.flight();
        let at = at.index(flight.len());
        flight[at] ^= 1 << bit;
        let _ = pair.receive(&flight);
        let _ = pair.client.outgoing();
        let _ = pair.client.send(b"question");
    }
}
