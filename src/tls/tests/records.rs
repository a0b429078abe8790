//! Data in both directions: with every suite, of every length, in records of the lengths that are asked
//! for; and as the kernel would go on with it.

use ::aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};

use super::*;
use crate::sys::ktls::Cipher;

#[test]
fn every_suite_carries_data_both_ways() {
    for suite in suites() {
        let (mut client, mut session) = pair(suite);
        for bytes in [1, 2, 15, 16, 17, 1368, 1369, 1370, 16_383, 16_384, 16_385, 200_000] {
            let data = noise(bytes);
            let records = client.seal(&data);
            assert_eq!(open_data(&mut session, records), data, "{suite:?}: {bytes} received");

            let mut out = Vec::new();
            let (head, body) = data.split_at(bytes / 3);
            session.seal(Content::ApplicationData, &[head, b"", body], &mut out).unwrap();
            assert_eq!(client.receive(&out).unwrap(), data, "{suite:?}: {bytes} sent");
        }
    }
}

/// The plaintext in each of these records, by the length of its header.
fn lengths(out: &[u8], overhead_bytes: usize) -> Vec<usize> {
    split(out).iter().map(|record| record.len() - overhead_bytes).collect()
}

#[test]
fn records_are_small_at_first_and_after_a_pause() {
    let mut client =
        Client::new(client_config(&[aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256]));
    let options = Options { records: RecordSizes::new(10, 100, 25), ktls: false };
    let mut session = shake(&mut client, server_config(), &options).unwrap();
    const OVERHEAD_BYTES: usize = 5 + 1 + 16;
    for _ in 0..2 {
        let out = seal_data(&mut session, &noise(230));
        assert_eq!(lengths(&out, OVERHEAD_BYTES), [10, 10, 10, 100, 100]);
        assert_eq!(client.receive(&out).unwrap(), noise(230));
        let out = seal_data(&mut session, &noise(101));
        assert_eq!(lengths(&out, OVERHEAD_BYTES), [100, 1]);
        assert_eq!(client.receive(&out).unwrap(), noise(101));
        session.paused();
    }
}

#[test]
fn a_small_answer_is_one_record_from_the_start() {
    let mut client =
        Client::new(client_config(&[aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256]));
    let mut session = shake(&mut client, server_config(), &Options::default()).unwrap();
    for (bytes, expected) in [(4096, &[4096][..]), (4097, &[1369, 1369, 1359])] {
        let out = seal_data(&mut session, &noise(bytes));
        assert_eq!(lengths(&out, 22), expected);
        assert_eq!(client.receive(&out).unwrap(), noise(bytes));
    }
}

#[test]
fn lengths_that_no_record_can_have_are_mended() {
    const LONGEST: usize = PLAIN_BYTES_MAX;
    for (sizes, bytes) in [
        (RecordSizes::new(0, 0, 1), 1),
        (RecordSizes::new(1 << 20, 1 << 20, 1), LONGEST),
        (RecordSizes::new(10, LONGEST, usize::MAX), 10),
    ] {
        let mut client =
            Client::new(client_config(&[aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256]));
        let options = Options { records: sizes, ktls: false };
        let mut session = shake(&mut client, server_config(), &options).unwrap();
        let out = seal_data(&mut session, &noise(bytes * 2));
        assert_eq!(lengths(&out, 22), [bytes, bytes]);
        assert_eq!(client.receive(&out).unwrap(), noise(bytes * 2));
    }
}

#[test]
fn room_is_made_once_and_no_more_than_is_needed() {
    for suite in suites() {
        let (_, mut session) = pair(suite);
        for bytes in [1, 1369, 20_000, 65_536, 100_000] {
            session.paused();
            let data = noise(bytes);
            let mut out = Vec::new();
            session.seal(Content::ApplicationData, &[&data], &mut out).unwrap();
            assert_eq!(out.capacity(), out.len(), "{suite:?}: {bytes}");
        }
    }
}

#[test]
fn nothing_makes_no_record() {
    let (_, mut session) = pair(aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256);
    let mut out = Vec::new();
    session.seal(Content::ApplicationData, &[b"", b""], &mut out).unwrap();
    assert!(out.is_empty());
}

/// Every explicit nonce that TLS 1.2 with GCM sends is one that was not sent before, rustls's among
/// them.
#[test]
fn no_explicit_nonce_comes_twice() {
    for suite in [
        aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ] {
        let mut client = Client::new(client_config(&[suite]));
        let mut handshake = Handshake::new(Arc::new(server_config()));
        let mut sent = Vec::new();
        while handshake.advance() != Progress::Done {
            for record in client.sent() {
                handshake.push(&record);
                handshake.advance();
            }
            let outgoing = handshake.outgoing();
            client.receive(&outgoing).unwrap();
            sent.extend(outgoing);
        }
        let mut session = handshake.finish(&Options::default()).unwrap();
        sent.extend(seal_data(&mut session, &noise(50_000)));
        // The handshake's one sealed record is its last: Finished.
        let records = split(&sent);
        let sealed = records.iter().skip_while(|record| record[0] != 20).skip(1);
        let mut nonces: Vec<_> = sealed.map(|record| record[5..13].to_vec()).collect();
        let count = nonces.len();
        assert!(count > 30);
        nonces.sort();
        nonces.dedup();
        assert_eq!(nonces.len(), count);
    }
}

/// Seals data as the kernel does: from what it was told, with counters of its own.
fn seal_as_the_kernel(keys: &mut Keys, content: Content, data: &[u8]) -> Vec<u8> {
    let (algorithm, key): (_, &[u8]) = match &keys.cipher {
        Cipher::Aes128Gcm(key) => (&aead::AES_128_GCM, key),
        Cipher::Aes256Gcm(key) => (&aead::AES_256_GCM, key),
        Cipher::ChaCha20Poly1305(key) => (&aead::CHACHA20_POLY1305, key),
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).unwrap());
    let counts_up =
        keys.version == Version::Tls12 && !matches!(keys.cipher, Cipher::ChaCha20Poly1305(_));
    let mut out = Vec::new();
    for piece in data.chunks(5000) {
        let number = u64::from_be_bytes(keys.sequence);
        keys.sequence = (number + 1).to_be_bytes();
        let mut nonce = keys.iv;
        if counts_up {
            let low: &mut [u8; 8] = keys.iv.last_chunk_mut().unwrap();
            *low = u64::from_be_bytes(*low).wrapping_add(1).to_be_bytes();
        } else {
            let low: &mut [u8; 8] = nonce.last_chunk_mut().unwrap();
            *low = (u64::from_be_bytes(*low) ^ number).to_be_bytes();
        }
        let mut text = piece.to_vec();
        if keys.version == Version::Tls13 {
            text.push(content as u8);
        }
        let explicit = if counts_up { nonce[4..].to_vec() } else { Vec::new() };
        let length = (text.len() + explicit.len() + 16) as u16;
        let header = [&[23, 3, 3][..], &length.to_be_bytes()].concat();
        let aad = match keys.version {
            Version::Tls13 => header.clone(),
            Version::Tls12 => {
                let plain = (piece.len() as u16).to_be_bytes();
                [&number.to_be_bytes()[..], &[23, 3, 3], &plain].concat()
            }
        };
        let nonce = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut text).unwrap();
        out.extend([header, explicit, text].concat());
    }
    out
}

#[test]
fn the_kernel_goes_on_with_the_next_record() {
    for suite in suites() {
        let (mut client, mut session) = pair(suite);
        let out = seal_data(&mut session, b"ours");
        assert_eq!(client.receive(&out).unwrap(), b"ours");
        let mut out = Vec::new();
        if session.info().version == Version::Tls13 {
            // The key that is handed over is the one in use.
            session.update_keys(&mut out).unwrap();
            out.extend(seal_data(&mut session, b"ours again"));
            assert_eq!(client.receive(&out).unwrap(), b"ours again");
        }
        let mut keys = session.transmit_secrets().unwrap();
        session.hand_over();
        assert!(session.transmit_secrets().is_none());
        let data = noise(40_000);
        let out = seal_as_the_kernel(&mut keys, Content::ApplicationData, &data);
        assert_eq!(client.receive(&out).unwrap(), data, "{suite:?}");

        let records = client.seal(&data);
        assert_eq!(open_data(&mut session, records), data, "{suite:?}");
        let mut out = Vec::new();
        let sealed = session.seal(Content::ApplicationData, &[b"data"], &mut out);
        assert_eq!(sealed, Err(Fault::Closed));
        session.close_notify(&mut out);
        assert!(out.is_empty(), "the kernel seals it");
    }
}

#[test]
fn the_kernel_may_be_given_the_next_key() {
    for suite in suites() {
        let (mut client, mut session) = pair(suite);
        assert_eq!(session.rekey_kernel().err(), Some(Fault::LimitReached), "we seal");
        let mut keys = session.transmit_secrets().unwrap();
        session.hand_over();
        if session.info().version == Version::Tls12 {
            assert_eq!(session.rekey_kernel().err(), Some(Fault::LimitReached));
            continue;
        }
        for round in 0..3 {
            let update = seal_as_the_kernel(&mut keys, Content::Handshake, &Session::KEY_UPDATE);
            client.receive(&update).unwrap();
            keys = session.rekey_kernel().unwrap();
            let data = noise(9000 + round);
            let out = seal_as_the_kernel(&mut keys, Content::ApplicationData, &data);
            assert_eq!(client.receive(&out).unwrap(), data, "{suite:?}");
        }
    }
}

#[test]
fn secrets_are_kept_only_for_the_kernel() {
    let suite = aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let mut client = Client::new(client_config(&[suite]));
    let session = shake(&mut client, server_config(), &Options::default()).unwrap();
    assert!(session.transmit_secrets().is_none());
}

#[test]
fn no_secret_is_shown() {
    let (_, session) = pair(aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256);
    let keys = session.transmit_secrets().unwrap();
    let Cipher::Aes128Gcm(key) = &keys.cipher else { panic!("another cipher") };
    let shown = format!("{session:?}");
    assert!(!shown.contains(&format!("{key:?}")) && !shown.contains(&format!("{:?}", keys.iv)));
}
