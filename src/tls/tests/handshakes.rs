//! Handshakes that succeed, in all their kinds, and those that must not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rcgen::{BasicConstraints, CertifiedIssuer, DnType, IsCa};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{Ticketer, cipher_suite, kx_group};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, HandshakeKind, version};

use super::*;

const SUITE_12: SupportedCipherSuite = cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
const SUITE_13: SupportedCipherSuite = cipher_suite::TLS13_AES_128_GCM_SHA256;

#[test]
fn what_was_settled_is_told() {
    for suite in [SUITE_12, SUITE_13] {
        let mut config = client_config(&[suite]);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut server = server_config();
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        let session = shake(&mut Client::new(config), server, &Options::default()).unwrap();
        let info = session.info();
        assert_eq!(info.suite, suite.suite());
        let version = if suite == SUITE_12 { Version::Tls12 } else { Version::Tls13 };
        assert_eq!(info.version, version);
        assert_eq!(session.stage(), Stage::Session(version));
        assert_eq!(info.server_name.as_deref(), Some("localhost"));
        assert_eq!(info.protocol.as_deref(), Some(&b"http/1.1"[..]));
        assert!(info.client.is_none());
        assert_eq!(info.handshake, HandshakeKind::Full);
        assert!(!info.is_resumed());
    }
}

#[test]
fn sessions_are_resumed_by_ticket_and_by_id() {
    for suite in [SUITE_12, SUITE_13] {
        for tickets in [false, true] {
            let mut server = server_config();
            if tickets {
                server.ticketer = Ticketer::new().unwrap();
            }
            let server = Arc::new(server);
            let mut config = client_config(&[suite]);
            config.resumption = Resumption::in_memory_sessions(8);
            for round in 0..3 {
                let mut client = Client::new(config.clone());
                let mut session =
                    shake(&mut client, Arc::clone(&server), &Options::default()).unwrap();
                assert_eq!(session.info().is_resumed(), round > 0, "{suite:?}, {tickets}");
                let data = noise(5000);
                assert_eq!(client.receive(&seal_data(&mut session, &data)).unwrap(), data);
                let records = client.seal(&data);
                assert_eq!(open_data(&mut session, records), data);
            }
        }
    }
}

#[test]
fn another_group_costs_a_round_trip() {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![kx_group::SECP384R1];
    let server = server_config_with(provider, rustls::ALL_VERSIONS, None);
    let mut client = Client::new(client_config(&[SUITE_13]));
    let mut session = shake(&mut client, server, &Options::default()).unwrap();
    assert_eq!(session.info().handshake, HandshakeKind::FullWithHelloRetryRequest);
    assert_eq!(client.receive(&seal_data(&mut session, b"data")).unwrap(), b"data");
}

#[test]
fn the_name_decides_who_answers() {
    struct ByName(Mutex<Vec<Option<String>>>, Arc<ServerConfig>);
    impl Choose for ByName {
        fn choose(&self, server_name: Option<&str>) -> Arc<ServerConfig> {
            self.0.lock().unwrap().push(server_name.map(str::to_owned));
            Arc::clone(&self.1)
        }
    }
    let choice = Arc::new(ByName(Mutex::default(), Arc::new(server_config())));
    let mut client = Client::new(client_config(&[SUITE_13]));
    let mut handshake = Handshake::choosing(Arc::clone(&choice) as Arc<dyn Choose>);
    while handshake.advance() == Progress::More {
        for record in client.sent() {
            handshake.push(&record);
            handshake.advance();
        }
        client.receive(&handshake.outgoing()).unwrap();
    }
    assert_eq!(handshake.advance(), Progress::Done);
    assert_eq!(*choice.0.lock().unwrap(), [Some("localhost".to_owned())]);
}

/// Cuts what is in a record into records of `bytes` each.
fn cut(record: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let (header, text) = record.split_at(HEADER_BYTES);
    let pieces = text.chunks(bytes).map(|piece| {
        let length = (piece.len() as u16).to_be_bytes();
        [&header[..3], &length, piece].concat()
    });
    pieces.collect()
}

#[test]
fn messages_may_come_in_many_records() {
    for suite in [SUITE_12, SUITE_13] {
        for bytes in [1, 7, 100] {
            let mut client = Client::new(client_config(&[suite]));
            let mut handshake = Handshake::new(Arc::new(server_config()));
            let mut sealed = false;
            while handshake.advance() == Progress::More {
                for record in client.sent() {
                    sealed |= record[0] == 20;
                    let whole = sealed || record[0] != 22;
                    let pieces = if whole { vec![record] } else { cut(&record, bytes) };
                    for piece in pieces {
                        handshake.push(&piece);
                        assert!(!matches!(handshake.advance(), Progress::Failed(_)));
                    }
                }
                client.receive(&handshake.outgoing()).unwrap();
            }
            let mut session = handshake.finish(&Options::default()).unwrap();
            assert_eq!(client.receive(&seal_data(&mut session, b"data")).unwrap(), b"data");
        }
    }
}

#[test]
fn what_comes_with_the_last_record_is_the_sessions() {
    for suite in [SUITE_12, SUITE_13] {
        let mut client = Client::new(client_config(&[suite]));
        let mut handshake = Handshake::new(Arc::new(server_config()));
        assert_eq!(handshake.stage(), Stage::First);
        // The client's data waits until it may send it, which is with its last record in TLS 1.3.
        client.connection.writer().write_all(b"early bird").unwrap();
        let mut data = Vec::new();
        while handshake.advance() == Progress::More {
            for record in client.sent() {
                handshake.push(&record);
            }
            let progress = handshake.advance();
            client.receive(&handshake.outgoing()).unwrap();
            if progress == Progress::Done {
                data = split(&handshake.unused());
                break;
            }
            assert_eq!(handshake.stage(), Stage::Handshake);
        }
        let version = if suite == SUITE_12 { Version::Tls12 } else { Version::Tls13 };
        assert_eq!(handshake.stage(), Stage::Session(version));
        let mut session = handshake.finish(&Options::default()).unwrap();
        data.extend(client.sent());
        assert_eq!(open_data(&mut session, data), b"early bird", "{suite:?}");
    }
}

#[test]
fn a_handshake_goes_on_in_another_thread() {
    let mut client = Client::new(client_config(&[SUITE_13]));
    let mut handshake = Handshake::new(Arc::new(server_config()));
    for record in client.sent() {
        handshake.push(&record);
    }
    let mut handshake = thread::spawn(move || {
        assert_eq!(handshake.advance(), Progress::More);
        handshake
    })
    .join()
    .unwrap();
    client.receive(&handshake.outgoing()).unwrap();
    for record in client.sent() {
        handshake.push(&record);
    }
    assert_eq!(handshake.advance(), Progress::Done);
}

#[test]
fn an_unfinished_handshake_is_no_session() {
    let handshake = Handshake::new(Arc::new(server_config()));
    assert_eq!(handshake.finish(&Options::default()).err(), Some(Fault::Internal));
    let mut client = Client::new(client_config(&[SUITE_13]));
    let mut handshake = Handshake::new(Arc::new(server_config()));
    for record in client.sent() {
        handshake.push(&record);
    }
    assert_eq!(handshake.advance(), Progress::More);
    assert_eq!(handshake.finish(&Options::default()).err(), Some(Fault::Internal));
}

static ISSUERS: AtomicU64 = AtomicU64::new(0);

/// An authority for clients, and a verifier that trusts it.
struct Clients {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Clients {
    fn new() -> Clients {
        let mut params = CertificateParams::new([]).unwrap();
        // Of two issuers of one name, another's certificate would look like a bad one of this one's.
        let name = format!("issuer {}", ISSUERS.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Clients { issuer }
    }

    fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::new(aws_lc_rs::default_provider()),
        )
        .build()
        .unwrap()
    }

    /// A client's configuration with a certificate, and others that have nothing to do with it.
    fn client(
        &self,
        suite: SupportedCipherSuite,
        others: usize,
        change: fn(&mut CertificateParams),
    ) -> ClientConfig {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["client".to_owned()]).unwrap();
        change(&mut params);
        let mut chain = vec![params.signed_by(&key, &self.issuer).unwrap().into()];
        chain.extend(std::iter::repeat_n(self.issuer.der().clone(), others));
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider =
            CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() };
        ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_root_certificates(roots())
            .with_client_auth_cert(chain, key)
            .unwrap()
    }
}

#[test]
fn a_clients_certificates_are_told_however_many_they_are() {
    let clients = Clients::new();
    for suite in [SUITE_12, SUITE_13] {
        for others in [0, 100] {
            let server = server_config_with(
                aws_lc_rs::default_provider(),
                rustls::ALL_VERSIONS,
                Some(clients.verifier()),
            );
            let mut client = Client::new(clients.client(suite, others, |_| ()));
            let mut session = shake(&mut client, server, &Options::default()).unwrap();
            let chain = session.info().client.clone().unwrap();
            assert_eq!(chain.len(), 1 + others);
            let bytes: usize = chain.iter().map(|certificate| certificate.len()).sum();
            assert!(others == 0 || bytes > 2 * PLAIN_BYTES_MAX, "{bytes} are too few");
            assert_eq!(client.receive(&seal_data(&mut session, b"data")).unwrap(), b"data");
        }
    }
}

/// A handshake that fails: why, and that the client was told so.
#[track_caller]
fn fails(mut client: Client, server: ServerConfig, expected: Fault, alert: u8) {
    let (fault, told) = shake(&mut client, server, &Options::default()).unwrap_err();
    assert_eq!(fault, expected);
    let Some(rustls::Error::AlertReceived(told)) = told else { panic!("{told:?} is no alert") };
    assert_eq!(u8::from(told), alert);
}

#[test]
fn clients_that_have_nothing_in_common_with_us() {
    let provider = aws_lc_rs::default_provider;
    for (suite, version) in [(SUITE_12, &version::TLS13), (SUITE_13, &version::TLS12)] {
        let server = server_config_with(provider(), &[version], None);
        fails(Client::new(client_config(&[suite])), server, Fault::NoSharedVersion, 70);
    }
    for (suite, other) in [
        (SUITE_12, cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        (SUITE_13, cipher_suite::TLS13_AES_256_GCM_SHA384),
    ] {
        let provider = CryptoProvider { cipher_suites: vec![other], ..provider() };
        let server = server_config_with(provider, &[suite.version()], None);
        fails(Client::new(client_config(&[suite])), server, Fault::NoSharedSuite, 40);
    }
    for suite in [SUITE_12, SUITE_13] {
        let mut client = client_config(&[suite]);
        client.alpn_protocols = vec![b"h2".to_vec()];
        let mut server = server_config();
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        fails(Client::new(client), server, Fault::NoSharedProtocol, 120);
    }
}

#[test]
fn a_name_without_a_certificate() {
    #[derive(Debug)]
    struct Nobody;
    impl ResolvesServerCert for Nobody {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            None
        }
    }
    for suite in [SUITE_12, SUITE_13] {
        let mut server = server_config();
        server.cert_resolver = Arc::new(Nobody);
        fails(Client::new(client_config(&[suite])), server, Fault::NoCertificate, 49);
    }
}

#[test]
fn clients_that_are_not_let_in() {
    let clients = Clients::new();
    let long_ago = |params: &mut CertificateParams| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    };
    let not_yet = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2999, 1, 1);
    };
    for suite in [SUITE_12, SUITE_13] {
        let server = || {
            server_config_with(
                aws_lc_rs::default_provider(),
                rustls::ALL_VERSIONS,
                Some(clients.verifier()),
            )
        };
        let none = client_config(&[suite]);
        fails(Client::new(none), server(), Fault::ClientCertificateMissing, 116);
        let expired = clients.client(suite, 0, long_ago);
        fails(Client::new(expired), server(), Fault::ClientCertificateExpired, 45);
        let early = clients.client(suite, 0, not_yet);
        fails(Client::new(early), server(), Fault::ClientCertificateExpired, 45);
        let stranger = Clients::new().client(suite, 0, |_| ());
        fails(Client::new(stranger), server(), Fault::ClientCertificateUnknownIssuer, 48);
        let many = clients.client(suite, 300, |_| ());
        fails(Client::new(many), server(), Fault::HandshakeTooLarge, 50);
    }
}

#[test]
fn a_client_that_does_not_trust_us_says_so() {
    for suite in [SUITE_12, SUITE_13] {
        let provider =
            CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() };
        let mut elsewhere = RootCertStore::empty();
        elsewhere.add(Clients::new().issuer.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_root_certificates(elsewhere)
            .with_no_client_auth();
        let mut client = Client::new(config);
        let mut handshake = Handshake::new(Arc::new(server_config()));
        for record in client.sent() {
            handshake.push(&record);
            handshake.advance();
        }
        client.receive(&handshake.outgoing()).unwrap_err();
        let mut last = Progress::More;
        for record in client.sent() {
            handshake.push(&record);
            last = handshake.advance();
        }
        let Progress::Failed(Fault::PeerAlert(alert)) = last else { panic!("{last:?}") };
        assert!([42, 48].contains(&alert.number()), "{alert:?}");
        assert!(handshake.outgoing().is_empty(), "an alert is not answered");
    }
}

#[test]
fn a_changed_finished_is_found_and_the_alert_is_sealed() {
    for suite in [SUITE_12, SUITE_13] {
        let mut client = Client::new(client_config(&[suite]));
        let mut handshake = Handshake::new(Arc::new(server_config()));
        for record in client.sent() {
            handshake.push(&record);
            handshake.advance();
        }
        client.receive(&handshake.outgoing()).unwrap();
        let mut records = client.sent();
        *records.last_mut().unwrap().last_mut().unwrap() ^= 1;
        let mut last = Progress::More;
        for record in records {
            handshake.push(&record);
            last = handshake.advance();
        }
        assert_eq!(last, Progress::Failed(Fault::BadRecord));
        let told = client.receive(&handshake.outgoing()).unwrap_err();
        assert_eq!(told, rustls::Error::AlertReceived(AlertDescription::BadRecordMac));
        assert_eq!(handshake.advance(), Progress::Failed(Fault::BadRecord));
        assert!(handshake.outgoing().is_empty(), "it is told once");
    }
}

#[test]
fn a_fault_of_the_callers_is_told_at_any_stage() {
    for suite in [SUITE_12, SUITE_13] {
        for flights in 0..=1 {
            let mut client = Client::new(client_config(&[suite]));
            let mut handshake = Handshake::new(Arc::new(server_config()));
            for _ in 0..flights {
                for record in client.sent() {
                    handshake.push(&record);
                    handshake.advance();
                }
                client.receive(&handshake.outgoing()).unwrap();
            }
            handshake.fail(Fault::RecordOverflow);
            handshake.fail(Fault::Internal);
            let out = handshake.outgoing();
            assert_eq!(split(&out).len(), 1);
            // Once TLS 1.3 has keys, only rustls can seal, and what it says is another thing.
            let expected = match (suite == SUITE_13, flights) {
                (true, 1) => AlertDescription::DecodeError,
                _ => AlertDescription::RecordOverflow,
            };
            let told = client.receive(&out).unwrap_err();
            assert_eq!(told, rustls::Error::AlertReceived(expected), "{suite:?}, {flights}");
            assert_eq!(handshake.advance(), Progress::Failed(Fault::RecordOverflow));
        }
    }
}

#[test]
fn what_has_no_alert_is_not_told() {
    let mut handshake = Handshake::new(Arc::new(server_config()));
    handshake.fail(Fault::PlainHttp);
    assert!(handshake.outgoing().is_empty());
}

#[test]
fn records_that_never_make_a_message_are_bounded() {
    // A ClientHello that says it has 16 MiB.
    let mut handshake = Handshake::new(Arc::new(server_config()));
    let mut piece = [&[22, 3, 1, 0x10, 0][..], &[0; 0x1000]].concat();
    piece[5..9].copy_from_slice(&[1, 0xff, 0xff, 0xff]);
    let mut pushed = 0;
    let fault = loop {
        handshake.push(&piece);
        pushed += piece.len();
        match handshake.advance() {
            Progress::More => assert!(pushed <= HANDSHAKE_BYTES_MAX),
            Progress::Failed(fault) => break fault,
            Progress::Done => panic!("it is never done"),
        }
    };
    assert_eq!(fault, Fault::HandshakeTooLarge);
    assert_eq!(handshake.outgoing(), [21, 3, 3, 0, 2, 2, 50]);
}

#[test]
fn records_that_are_out_of_place() {
    let table: &[(&[u8], Fault, u8)] = &[
        (&[23, 3, 3, 0, 4, 1, 2, 3, 4], Fault::Unexpected, 10),
        (&[22, 3, 3, 0, 5, 24, 0, 0, 1, 0], Fault::Unexpected, 10),
        (&[22, 3, 3, 0, 4, 1, 0, 0, 0], Fault::Malformed, 50),
        (&[20, 3, 3, 0, 1, 1], Fault::Unexpected, 10),
    ];
    for &(record, expected, alert) in table {
        let mut handshake = Handshake::new(Arc::new(server_config()));
        handshake.push(record);
        assert_eq!(handshake.advance(), Progress::Failed(expected), "{record:?}");
        assert_eq!(handshake.outgoing()[..], [21, 3, 3, 0, 2, 2, alert], "{record:?}");
    }
}

#[test]
fn middleboxes_may_have_their_change_cipher_spec() {
    let mut client = Client::new(client_config(&[SUITE_13]));
    let mut handshake = Handshake::new(Arc::new(server_config()));
    for record in client.sent() {
        handshake.push(&record);
        handshake.advance();
    }
    client.receive(&handshake.outgoing()).unwrap();
    let records = client.sent();
    // rustls's client sends one by itself.
    assert_eq!(records[0][0], 20);
    for record in records {
        handshake.push(&record);
    }
    assert_eq!(handshake.advance(), Progress::Done);
    let mut session = handshake.finish(&Options::default()).unwrap();
    let late = session.open(&mut [20, 3, 3, 0, 1, 1]);
    assert_eq!(late, Err(Fault::Unexpected), "after the handshake there is no place for it");
}
