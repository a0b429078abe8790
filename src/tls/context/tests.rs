//! Handshakes with clients of rustls, by the configurations that shards have.

use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use super::super::pki::{Identity, Pki};
use super::super::{Fault, Info, Options, Progress, Stage, record_bytes};
use super::*;

/// A client, as the tests want it.
struct Wants<'a> {
    versions: &'a [&'static SupportedProtocolVersion],
    alpn: &'a [&'a str],
    identity: Option<&'a Identity>,
}

const WANTS: Wants<'static> =
    Wants { versions: &[&TLS13, &TLS12], alpn: &["http/1.1"], identity: None };

fn client(pki: &Pki, wants: &Wants<'_>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(pki.root_der()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(wants.versions)
        .expect("versions")
        .with_root_certificates(roots);
    let mut config = match wants.identity.map(Identity::shown) {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).expect("it is right"),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = wants.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.time_provider = Arc::new(super::super::clock::Clock::at(1_800_000_000));
    config
}

/// Connects a client: what the server knows of it, and how many certificates it was shown; or why
/// there is no session.
fn connect(
    context: &Context,
    config: &Arc<ClientConfig>,
    name: &str,
) -> Result<(Info, usize), Fault> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut handshake = context.handshake();
    for _ in 0..8 {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).expect("memory");
        }
        let mut rest = &sent[..];
        let mut progress = Progress::More;
        while !rest.is_empty() {
            let bytes = record_bytes(rest, Stage::Handshake).expect("a record").expect("whole");
            handshake.push(&rest[..bytes]);
            rest = &rest[bytes..];
            progress = handshake.advance();
        }
        let outgoing = handshake.outgoing();
        let mut outgoing = &outgoing[..];
        while !outgoing.is_empty() {
            client.read_tls(&mut outgoing).expect("memory");
            if let Err(error) = client.process_new_packets() {
                assert!(matches!(progress, Progress::Failed(_)), "{error}");
            }
        }
        match progress {
            Progress::More => {}
            Progress::Done => {
                let shown = client.peer_certificates().map_or(0, |chain| chain.len());
                return Ok((handshake.finish(&Options::default())?.info().clone(), shown));
            }
            Progress::Failed(fault) => return Err(fault),
        }
    }
    panic!("a handshake without end");
}

fn contexts(pki: &Pki, text: &str) -> Contexts {
    Contexts::new(&pki.material(text), &Arc::default())
}

const SITE: &str = "tls_listen = [\"127.0.0.1:0\"]\n[tls]\n\
                    certificates = [{ cert = \"site.pem\", key = \"site.key\" }]\n";

/// Who resumes: the handshakes of two connections of one client.
fn twice(context: &Context, config: ClientConfig) -> [HandshakeKind; 2] {
    let config = Arc::new(config);
    [(); 2].map(|()| connect(context, &config, "a.example").expect("it is served").0.handshake)
}

#[test]
fn both_versions_are_served_and_a_listener_may_want_the_later() {
    let pki = Pki::new();
    pki.issue("site", &["a.example"]);
    let [both, later] =
        ["", "min_version = \"1.3\"\n"].map(|more| contexts(&pki, &format!("{SITE}{more}")));
    let served = |contexts: &Contexts, versions: &[&'static SupportedProtocolVersion]| {
        let config = Arc::new(client(&pki, &Wants { versions, ..WANTS }));
        let context = contexts.of_listener(0).expect("TLS");
        connect(context, &config, "a.example").map(|(info, shown)| (info.version, shown))
    };
    use super::super::Version::{Tls12, Tls13};
    assert_eq!(served(&both, &[&TLS12]), Ok((Tls12, 2)));
    assert_eq!(served(&both, &[&TLS13]), Ok((Tls13, 2)));
    assert_eq!(served(&later, &[&TLS13]), Ok((Tls13, 2)));
    assert_eq!(served(&later, &[&TLS12]), Err(Fault::NoSharedVersion));
}

#[test]
fn one_application_protocol_is_spoken_and_none_need_be_asked_for() {
    let pki = Pki::new();
    pki.issue("site", &["a.example"]);
    let contexts = contexts(&pki, SITE);
    let agreed = |alpn: &[&str]| {
        let config = Arc::new(client(&pki, &Wants { alpn, ..WANTS }));
        let context = contexts.of_listener(0).expect("TLS");
        connect(context, &config, "a.example").map(|(info, _)| info.protocol)
    };
    assert_eq!(agreed(&["h2", "http/1.1"]), Ok(Some(b"http/1.1"[..].into())));
    assert_eq!(agreed(&[]), Ok(None));
    assert_eq!(agreed(&["h2"]), Err(Fault::NoSharedProtocol));
}

#[test]
fn a_client_is_shown_a_certificate_that_it_can_verify() {
    let pki = Pki::new();
    let names = ["a.example"];
    pki.files("site", &pki.identity_with(&names, &rcgen::PKCS_ECDSA_P256_SHA256, |_| {}));
    pki.files("other", &pki.identity_with(&names, &rcgen::PKCS_ED25519, |_| {}));
    let text = SITE.replace("[{ cert", "[{ cert = \"other.pem\", key = \"other.key\" }, { cert");
    let contexts = contexts(&pki, &text);
    let context = contexts.of_listener(0).expect("TLS");
    let config = |scheme: Option<SignatureScheme>| {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(scheme) = scheme {
            let algorithms = &mut provider.signature_verification_algorithms;
            let found = algorithms.mapping.iter().position(|(other, _)| *other == scheme);
            let at = found.expect("it is supported");
            algorithms.mapping = &algorithms.mapping[at..=at];
        }
        let mut roots = RootCertStore::empty();
        roots.add(pki.root_der()).expect("a root");
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.time_provider = Arc::new(super::super::clock::Clock::at(1_800_000_000));
        Arc::new(config)
    };
    let ecdsa = Some(SignatureScheme::ECDSA_NISTP256_SHA256);
    for scheme in [None, ecdsa, Some(SignatureScheme::ED25519)] {
        connect(context, &config(scheme), "a.example").expect("one fits");
    }
    let rsa = config(Some(SignatureScheme::RSA_PSS_SHA256));
    assert_eq!(connect(context, &rsa, "a.example").err(), Some(Fault::NoSharedSuite));
}

#[test]
fn clients_are_asked_who_they_are_by_the_name_that_they_ask_for() {
    let pki = Pki::new();
    pki.issue("site", &["a.example", "members.example", "guests.example"]);
    pki.write("ca.pem", &pki.intermediate());
    let site = |name: &str, tls: &str| {
        format!("[[site]]\nroot = \"/\"\nnames = [\"{name}\"]\n[site.tls]\n{tls}\n")
    };
    let sites = [
        site("a.example", ""),
        site("members.example", "client_ca = \"ca.pem\""),
        site("guests.example", "client_ca = \"ca.pem\"\nclient_auth = \"optional\""),
    ];
    let contexts = contexts(&pki, &format!("{SITE}{}", sites.concat()));
    let context = contexts.of_listener(0).expect("TLS");
    let (ours, stranger) = (pki.identity(&["me"]), Pki::named(" of others").identity(&["me"]));
    for version in [&TLS12, &TLS13] {
        let connect = |name, identity| {
            let wants = Wants { versions: &[version], identity, ..WANTS };
            let config = Arc::new(client(&pki, &wants));
            connect(context, &config, name).map(|(info, _)| info.client.is_some())
        };
        assert_eq!(connect("a.example", Some(&ours)), Ok(false), "it is not asked");
        assert_eq!(connect("members.example", Some(&ours)), Ok(true));
        assert_eq!(connect("guests.example", Some(&ours)), Ok(true));
        assert_eq!(connect("guests.example", None), Ok(false));
        assert_eq!(connect("members.example", None), Err(Fault::ClientCertificateMissing));
        let unknown = Err(Fault::ClientCertificateUnknownIssuer);
        assert_eq!(connect("members.example", Some(&stranger)), unknown);
        assert_eq!(connect("guests.example", Some(&stranger)), unknown);
    }
}

#[test]
fn sessions_are_resumed_by_tickets_from_the_cache_or_not_at_all() {
    use HandshakeKind::{Full, Resumed};
    let pki = Pki::new();
    pki.issue("site", &["a.example"]);
    for (more, second) in [
        ("", Resumed),
        ("tickets = false\n", Resumed),
        ("session_cache = 0\n", Resumed),
        ("tickets = false\nsession_cache = 0\n", Full),
    ] {
        let contexts = contexts(&pki, &format!("{SITE}{more}"));
        let context = contexts.of_listener(0).expect("TLS");
        for version in [&TLS12, &TLS13] {
            let config = client(&pki, &Wants { versions: &[version], ..WANTS });
            assert_eq!(twice(context, config), [Full, second], "{more}{version:?}");
        }
    }
}

#[test]
fn sessions_outlive_certificates_but_not_policies() {
    use HandshakeKind::{Full, Resumed};
    let pki = Pki::new();
    pki.issue("site", &["a.example"]);
    pki.write("ca.pem", &pki.intermediate());
    let asking = "[[listener]]\naddress = \"127.0.0.2:0\"\ntls = true\nclient_ca = \"ca.pem\"\n\
                  client_auth = \"optional\"\n";
    // A client's chain does not fit into the cache.
    for (tickets, again) in [("tickets = true\n", Resumed), ("tickets = false\n", Full)] {
        let text = format!("{SITE}{tickets}{asking}");
        let config = pki.config(&text);
        let resumption = super::super::pki::resumption(&config);
        let contexts = || {
            pki.issue("site", &["a.example"]);
            let mut problems = Default::default();
            let now_s = super::super::pki::NOW_S;
            let material = Material::load(&config, &resumption, None, now_s, &mut problems);
            Contexts::new(&material.expect("it is right"), &Arc::default())
        };
        let [before, after] = [contexts(), contexts()];
        for version in [&TLS12, &TLS13] {
            let me = pki.identity(&["me"]);
            let wants = Wants { versions: &[version], identity: Some(&me), ..WANTS };
            let client = Arc::new(client(&pki, &wants));
            let connect = |contexts: &Contexts, listener| {
                let context = contexts.of_listener(listener).expect("TLS");
                let (info, _) = connect(context, &client, "a.example").expect("it is served");
                (info.handshake, info.client.is_some())
            };
            assert_eq!(connect(&before, 0), (Full, false));
            assert_eq!(connect(&after, 0), (Resumed, false), "the certificate is another one");
            assert_eq!(connect(&after, 1), (Full, true), "{version:?}: it was not asked before");
            assert_eq!(connect(&after, 1), (again, true), "{version:?}");
        }
    }
}

#[test]
fn long_rsa_keys_are_told_apart() {
    let pki = Pki::new();
    pki.write("site.pem", include_str!("../certificate/kinds/pkcs1.pem"));
    let text = |more: &str| {
        format!(
            "tls_listen = [\"127.0.0.1:0\"]\n[tls]\ncertificates = [{{ cert = \"site.pem\" }}]\n{more}"
        )
    };
    let is_slow = |more: &str| contexts(&pki, &text(more)).of_listener(0).expect("TLS").is_slow();
    assert!(!is_slow(""));
    assert!(is_slow("offload_rsa = 2048\n"));
}
