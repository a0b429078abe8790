//! New keys in mid-session: the peer's, ours, and what happens when a key is used up.

use super::*;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256,
};

fn suites_13() -> impl Iterator<Item = SupportedCipherSuite> {
    suites().filter(|suite| suite.tls13().is_some())
}

#[test]
fn a_new_key_that_asks_for_ours_is_answered() {
    for suite in suites_13() {
        let (mut client, mut session) = pair(suite);
        for round in 0..5 {
            client.connection.refresh_traffic_keys().unwrap();
            let [mut update] = client.sent().try_into().unwrap();
            assert_eq!(session.open(&mut update), Ok(Opened::KeyUpdated { asked: true }));
            let data = noise(3000 + round);
            let records = client.seal(&data);
            assert_eq!(open_data(&mut session, records), data, "{suite:?}");

            let mut out = seal_data(&mut session, b"before");
            session.update_keys(&mut out).unwrap();
            out.extend(seal_data(&mut session, b" and after"));
            assert_eq!(client.receive(&out).unwrap(), b"before and after", "{suite:?}");
        }
    }
}

#[test]
fn a_new_key_that_asks_for_nothing_is_taken() {
    for suite in suites_13() {
        let (mut peer, mut session) = Peer::pair(suite);
        for _ in 0..5 {
            let mut update = peer.seal(Content::Handshake, &[24, 0, 0, 1, 0]);
            assert_eq!(session.open(&mut update), Ok(Opened::KeyUpdated { asked: false }));
            peer.update_keys();
            let record = peer.seal(Content::ApplicationData, b"data");
            assert_eq!(open_data(&mut session, vec![record]), b"data");
        }
        assert_eq!(peer.open(&seal_data(&mut session, b"same key")), Ok((b"same key".into(), 0)));
    }
}

#[test]
fn a_new_key_may_come_in_pieces() {
    for cuts in 0_u8..16 {
        let (mut peer, mut session) = Peer::pair(TLS13_AES_128_GCM_SHA256);
        let mut pieces = vec![vec![]];
        for (index, byte) in [24, 0, 0, 1, 1].into_iter().enumerate() {
            pieces.last_mut().unwrap().push(byte);
            if index < 4 && cuts & 1 << index != 0 {
                pieces.push(vec![]);
            }
        }
        let last = pieces.pop().unwrap();
        for piece in pieces {
            let opened = session.open(&mut peer.seal(Content::Handshake, &piece));
            assert_eq!(opened, Ok(Opened::Nothing));
        }
        let opened = session.open(&mut peer.seal(Content::Handshake, &last));
        assert_eq!(opened, Ok(Opened::KeyUpdated { asked: true }));
        peer.update_keys();
        let record = peer.seal(Content::ApplicationData, b"data");
        assert_eq!(open_data(&mut session, vec![record]), b"data");
    }
}

#[test]
fn a_record_with_the_old_key_is_refused_after_the_new_one() {
    let (mut peer, mut session) = Peer::pair(TLS13_AES_128_GCM_SHA256);
    session.open(&mut peer.seal(Content::Handshake, &[24, 0, 0, 1, 0])).unwrap();
    let mut record = peer.seal(Content::ApplicationData, b"data");
    assert_eq!(session.open(&mut record), Err(Fault::BadRecord));
}

#[test]
fn the_peers_key_may_change_once_the_kernel_seals() {
    for suite in suites_13() {
        let (mut client, mut session) = pair(suite);
        session.transmit_secrets().unwrap();
        session.hand_over();
        client.connection.refresh_traffic_keys().unwrap();
        let [mut update] = client.sent().try_into().unwrap();
        assert_eq!(session.open(&mut update), Ok(Opened::KeyUpdated { asked: true }));
        let records = client.seal(b"data");
        assert_eq!(open_data(&mut session, records), b"data");
        assert_eq!(session.update_keys(&mut Vec::new()), Err(Fault::Closed));
    }
}

#[test]
fn our_key_changes_before_it_is_used_up() {
    for suite in suites_13() {
        let (mut peer, mut session) = Peer::pair(suite);
        session.limit_records(10);
        // Eight records are kept back: two of data with each key.
        let out = seal_data(&mut session, &noise(1369 * 9));
        assert_eq!(peer.open(&out), Ok((noise(1369 * 9), 4)), "{suite:?}");
        assert!(!session.is_limit_near());
    }
}

#[test]
fn a_key_of_tls_12_ends_with_its_session() {
    let (mut peer, mut session) = Peer::pair(TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
    session.limit_records(20);
    // Finished was the first.
    let mut out = Vec::new();
    for _ in 0..11 {
        session.seal(Content::ApplicationData, &[b"data"], &mut out).unwrap();
    }
    assert_eq!(
        session.seal(Content::ApplicationData, &[b"data"], &mut out),
        Err(Fault::LimitReached)
    );
    assert_eq!(peer.open(&out).unwrap().0.len(), 44);
    let mut out = Vec::new();
    session.close_notify(&mut out);
    assert!(!out.is_empty(), "it can still say that it ends");
}

#[test]
fn the_end_of_a_key_is_seen_coming() {
    let (_, mut session) = Peer::pair(TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
    session.limit_records(320);
    let mut out = Vec::new();
    for sealed in 1.. {
        assert_eq!(session.is_limit_near(), sealed >= 300);
        if sealed == 312 {
            break;
        }
        session.seal(Content::ApplicationData, &[b"data"], &mut out).unwrap();
    }
}

#[test]
fn the_kernels_records_are_counted() {
    let (_, mut session) = pair(TLS13_AES_128_GCM_SHA256);
    session.limit_records(320);
    session.hand_over();
    // Four tickets and answers are fewer than twelve records.
    for _ in 0..280 {
        assert!(!session.is_limit_near());
        session.sent_by_kernel(1).unwrap();
    }
    session.sent_by_kernel(20 * (1 << 14)).unwrap();
    assert!(session.is_limit_near());
    assert_eq!(session.sent_by_kernel(20 * (1 << 14)), Err(Fault::LimitReached));
}
