//! Certificates as they should be, and each way in which they should not.

use rcgen::{CertificateParams, DnType, KeyPair};
use x509_parser::time::ASN1Time;

use super::super::pki::{Identity, NOW_S, Pki};
use super::*;

fn load(files: &CertificateFiles) -> (Option<Certificate>, Problems) {
    let mut problems = Problems::default();
    let loaded = Certificate::load(files, NOW_S, &mut problems);
    (loaded, problems)
}

/// One problem is found, as bad as this, of this file, in these words.
#[track_caller]
fn assert_problem(files: &CertificateFiles, severity: Severity, file: &Path, says: &str) {
    let (loaded, problems) = load(files);
    let found: Vec<_> = problems.iter().collect();
    let [problem] = found[..] else { panic!("{problems}") };
    assert_eq!(problem.severity, severity, "{problem}");
    assert_eq!(problem.file.as_deref(), Some(file), "{problem}");
    assert!(problem.message.contains(says), "{problem}");
    assert_eq!(loaded.is_none(), severity == Severity::Fatal, "{problem}");
}

#[track_caller]
fn assert_fatal(files: &CertificateFiles, file: &Path, says: &str) {
    assert_problem(files, Severity::Fatal, file, says);
}

#[test]
fn a_chain_and_its_key_are_taken_with_all_their_names() {
    let pki = Pki::new();
    let files = pki.issue("site", &["A.example", "*.b.example", "192.0.2.1", "2001:db8::1"]);
    let (loaded, problems) = load(&files);
    assert_eq!(problems, Problems::default());
    let certificate = loaded.expect("it is right");
    assert_eq!(certificate.names(), ["a.example", "*.b.example", "192.0.2.1", "2001:db8::1"]);
    assert_eq!(certificate.kind(), KeyKind::Ecdsa);
    assert_eq!(certificate.certified_key().cert.len(), 2);
}

#[test]
fn one_file_may_hold_both() {
    let pki = Pki::new();
    let Identity { certificate, key, .. } = pki.identity(&["a.example"]);
    let path = pki.write("both.pem", &format!("{key}{certificate}"));
    let (loaded, problems) = load(&CertificateFiles { chain: path.clone(), key: path });
    assert!(loaded.is_some(), "{problems}");
}

#[test]
fn every_kind_of_key_in_every_form_is_taken() {
    let pki = Pki::new();
    for (name, content, kind) in [
        ("sec1", include_str!("kinds/sec1.pem"), KeyKind::Ecdsa),
        ("p384", include_str!("kinds/p384.pem"), KeyKind::Ecdsa),
        ("pkcs1", include_str!("kinds/pkcs1.pem"), KeyKind::Rsa { bits: 2048 }),
        ("ed25519", include_str!("kinds/ed25519.pem"), KeyKind::Ed25519),
    ] {
        let path = pki.write(name, content);
        let (loaded, problems) = load(&CertificateFiles { chain: path.clone(), key: path });
        let certificate = loaded.unwrap_or_else(|| panic!("{name}: {problems}"));
        assert_eq!(certificate.kind(), kind, "{name}");
        assert_eq!(certificate.names(), [format!("{name}.example")]);
        assert_eq!(problems, Problems::default());
    }
}

#[test]
fn keys_that_clients_refuse_are_named() {
    let pki = Pki::new();
    let both = |content: &str| {
        let path = pki.write("both.pem", content);
        CertificateFiles { chain: path.clone(), key: path }
    };
    let weak = both(include_str!("kinds/weak.pem"));
    assert_fatal(&weak, &weak.chain, "an RSA key of 1024 bits, and clients take 2048 to 8192");
    let unsupported = both(include_str!("kinds/unsupported.pem"));
    assert_fatal(&unsupported, &unsupported.key, "RSA with 2048 to 8192 bits, Ed25519");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example"]);
    let absent = pki.path("absent");
    let without_chain = CertificateFiles { chain: absent.clone(), ..files.clone() };
    assert_fatal(&without_chain, &absent, "cannot be read: No such file");
    let without_key = CertificateFiles { key: absent.clone(), ..files.clone() };
    assert_fatal(&without_key, &absent, "cannot be read: No such file");
    let directory = CertificateFiles { key: pki.path("."), ..files };
    assert_fatal(&directory, &directory.key, "is no regular file");
    // Both are told at once.
    let nothing = CertificateFiles { chain: absent.clone(), key: absent };
    assert_eq!(load(&nothing).1.iter().count(), 2);
}

#[test]
fn a_fifo_is_not_waited_for() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example"]);
    let fifo = pki.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).expect("mkfifo");
    let files = CertificateFiles { key: fifo, ..files };
    assert_fatal(&files, &files.key, "is no regular file");
}

#[test]
fn files_with_something_else_in_them_are_told_what_it_is() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example"]);
    let chain = |name: &str, content: &str| CertificateFiles {
        chain: pki.write(name, content),
        ..files.clone()
    };
    let key = |name: &str, content: &str| CertificateFiles {
        key: pki.write(name, content),
        ..files.clone()
    };
    let empty = chain("empty", "");
    assert_fatal(&empty, &empty.chain, "has no certificate in it");
    let empty = key("empty", "");
    assert_fatal(&empty, &empty.key, "has no private key in it");
    let exchanged = CertificateFiles { chain: files.key.clone(), ..files.clone() };
    assert_fatal(&exchanged, &exchanged.chain, "exchanged");
    let exchanged = CertificateFiles { key: files.chain.clone(), ..files.clone() };
    assert_fatal(&exchanged, &exchanged.key, "exchanged");
    let der = pki.path("der");
    std::fs::write(&der, pki.identity(&["a.example"]).shown().0[0].as_ref()).expect("it is ours");
    let der_chain = CertificateFiles { chain: der.clone(), ..files.clone() };
    assert_fatal(&der_chain, &der, "`openssl x509 -inform der");
    let der_key = CertificateFiles { key: der.clone(), ..files.clone() };
    assert_fatal(&der_key, &der, "`openssl pkey -inform der");
    for (content, says) in [
        ("-----BEGIN CERTIFICATE-----\nAAAA\n", "`END CERTIFICATE` is missing"),
        ("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", "not base64"),
        ("-----BEGIN CERTIFICATE----\n", "does not end well"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate 1 of it is damaged",
        ),
    ] {
        let damaged = chain("damaged", content);
        assert_fatal(&damaged, &damaged.chain, says);
    }
    let damaged = key("damaged", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    assert_fatal(&damaged, &damaged.key, "is damaged, or of a kind");
}

#[test]
fn an_encrypted_key_is_told_how_to_be_decrypted() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example"]);
    for content in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n\
         -----END RSA PRIVATE KEY-----\n",
    ] {
        let files = CertificateFiles { key: pki.write("secret.key", content), ..files.clone() };
        assert_fatal(&files, &files.key, "`openssl pkey -in ");
    }
}

#[test]
fn a_key_of_another_certificate_is_found_out() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example"]);
    let other = pki.issue("other", &["a.example"]);
    let mixed = CertificateFiles { key: other.key.clone(), ..files };
    assert_fatal(&mixed, &other.key, "is not the key of ");
}

#[test]
fn a_chain_out_of_order_is_told_the_order() {
    let pki = Pki::new();
    let Identity { certificate, key, .. } = pki.identity(&["a.example"]);
    let files = |content: &str| CertificateFiles {
        chain: pki.write("chain.pem", content),
        key: pki.write("key.pem", &key),
    };
    let (intermediate, root) = (pki.intermediate(), pki.root());
    let reversed = files(&format!("{intermediate}{certificate}"));
    assert_fatal(&reversed, &reversed.chain, "the key is that of certificate 2");
    let swapped = files(&format!("{certificate}{root}{intermediate}"));
    let says = "certificate 1 was signed by certificate 3";
    assert_problem(&swapped, Severity::Refused, &swapped.chain, says);
    let gap = files(&format!("{certificate}{root}"));
    let says = "certificate 1 was signed by `CN=intermediate`, and the next one is `CN=root`";
    assert_problem(&gap, Severity::Refused, &gap.chain, says);
    let (loaded, problems) = load(&files(&format!("{certificate}{intermediate}{root}")));
    assert!(loaded.is_some() && problems == Problems::default(), "{problems}");
}

#[test]
fn a_chain_of_another_authority_of_that_name_is_found_out() {
    let [ours, theirs] = [Pki::new(), Pki::new()];
    let Identity { certificate, key, .. } = ours.identity(&["a.example"]);
    let files = CertificateFiles {
        chain: ours.write("chain.pem", &format!("{certificate}{}", theirs.intermediate())),
        key: ours.write("key.pem", &key),
    };
    assert_problem(
        &files,
        Severity::Refused,
        &files.chain,
        "not signed with the key of the next one",
    );
}

#[test]
fn times_are_judged_by_the_time_given() {
    let pki = Pki::new();
    let at = |unix_s| ASN1Time::from_timestamp(unix_s).expect("a time").to_datetime();
    let files = |before, after| {
        let change = |params: &mut CertificateParams| {
            (params.not_before, params.not_after) = (at(before), at(after));
        };
        let kind = &rcgen::PKCS_ECDSA_P256_SHA256;
        pki.files("timed", &pki.identity_with(&["a.example"], kind, change))
    };
    let expired = files(NOW_S - 200, NOW_S - 100);
    assert_problem(&expired, Severity::Refused, &expired.chain, "has expired on Jan 15");
    let early = files(NOW_S + 100, NOW_S + 200);
    assert_problem(&early, Severity::Refused, &early.chain, "is this host's clock right?");
    let (_, problems) = load(&files(NOW_S - 100, NOW_S + 100));
    assert_eq!(problems, Problems::default());
}

#[test]
fn a_common_name_alone_names_nobody() {
    let pki = Pki::new();
    let change = |params: &mut CertificateParams| {
        params.distinguished_name.push(DnType::CommonName, "a.example");
    };
    let identity = pki.identity_with(&[], &rcgen::PKCS_ECDSA_P256_SHA256, change);
    let files = pki.files("nameless", &identity);
    assert_problem(&files, Severity::Refused, &files.chain, "`subjectAltName`");
}

#[test]
fn a_key_that_all_can_read_is_warned_of() {
    let pki = Pki::new();
    let files = pki.issue("site", &["a.example"]);
    let open = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&files.key, mode).expect("it is ours");
    };
    open(0o644);
    assert_problem(&files, Severity::Warning, &files.key, "(mode 0644)");
    open(0o640);
    assert_eq!(load(&files).1, Problems::default());
}

#[test]
fn no_key_is_ever_shown() {
    let pki = Pki::new();
    let certificate = load(&pki.issue("site", &["a.example"])).0.expect("it is right");
    assert_eq!(format!("{certificate:?}"), "Certificate { kind: Ecdsa, names: [\"a.example\"] }");
    let key = KeyPair::generate().expect("a key");
    let der = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    assert_eq!(format!("{:?}", PrivateKey::of(der)), "PrivateKey");
}
