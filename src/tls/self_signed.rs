//! A certificate for a trial: made in memory, signed by itself, and gone with the process.
//!
//! No client trusts it unless it is told to, which is as it should be: nobody vouches for it.

use std::net::IpAddr;

use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::time::ASN1Time;

use super::certificate::Certificate;
use super::pem::PrivateKey;

/// Long enough for a trial, too short to be forgotten in production.
const VALID_S: i64 = 30 * 86_400;

/// Clocks of clients may be behind ours.
const SKEW_S: i64 = 3600;

/// Makes a certificate for this host and these names, of which addresses may stand in brackets. `None`:
/// the library refuses, for want of randomness.
pub(super) fn make<'n>(
    names: impl IntoIterator<Item = &'n str>,
    now_s: i64,
) -> Option<Certificate> {
    let mut params = CertificateParams::default();
    for name in ["localhost", "127.0.0.1", "::1"].into_iter().chain(names) {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let name = match bare.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(bare.try_into().ok()?),
        };
        if !params.subject_alt_names.contains(&name) {
            params.subject_alt_names.push(name);
        }
    }
    params.distinguished_name.push(DnType::CommonName, "onering, for a trial");
    let time = |unix_s| ASN1Time::from_timestamp(unix_s).ok().map(|time| time.to_datetime());
    params.not_before = time(now_s - SKEW_S)?;
    params.not_after = time(now_s + VALID_S)?;
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).ok()?;
    let certificate = params.self_signed(&key).ok()?;
    let key = PrivateKey::of(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())));
    Some(Certificate::made(vec![certificate.der().clone()], &key, now_s))
}

/// Whether half of its time is over, so that a new one is due where that disturbs nobody.
pub(super) fn is_half_over(certificate: &Certificate, now_s: i64) -> bool {
    certificate.not_after_s() - now_s < VALID_S / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_this_host_and_the_sites_once_each() {
        let names = ["a.example", "localhost", "[::2]", "192.0.2.1"];
        let certificate = make(names, 1_800_000_000).expect("there is randomness");
        let expected = ["localhost", "127.0.0.1", "::1", "a.example", "::2", "192.0.2.1"];
        assert_eq!(certificate.names(), expected);
    }

    #[test]
    fn it_is_due_when_half_of_its_time_is_over() {
        let certificate = make([], 1_800_000_000).expect("there is randomness");
        assert!(!is_half_over(&certificate, 1_800_000_000));
        assert!(is_half_over(&certificate, 1_800_000_000 + VALID_S));
    }
}
