//! What a peer may send besides data, and what it may not.

use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 as SUITE_12, TLS13_AES_128_GCM_SHA256 as SUITE_13,
};

use super::*;

const UPDATE: &[u8] = &[24, 0, 0, 1, 0];
const CLOSE_NOTIFY: &[u8] = &[1, 0];
const USER_CANCELED: &[u8] = &[1, 90];

/// Records that a peer sends, before they are sealed.
type Records<'a> = &'a [(Content, &'a [u8])];

/// What becomes of the last of these records.
fn last(suite: SupportedCipherSuite, records: Records<'_>) -> Result<Opened, Fault> {
    let (mut peer, mut session) = Peer::pair(suite);
    let (&(content, text), before) = records.split_last().unwrap();
    for (content, text) in before {
        session.open(&mut peer.seal(*content, text)).unwrap();
    }
    session.open(&mut peer.seal(content, text))
}

#[test]
fn what_is_no_data() {
    use Content::{
        Alert as A, ApplicationData as Data, ChangeCipherSpec as Change, Handshake as H,
    };
    let fatal = |number| Err(Fault::PeerAlert(Alert::from_byte(number)));
    let unexpected = Err(Fault::Unexpected);
    let hello = &[1, 0, 0, 2, 7, 7][..];
    let table: &[(&[SupportedCipherSuite], Records<'_>, Result<Opened, Fault>)] = &[
        (&[SUITE_12, SUITE_13], &[(Data, b"")], Ok(Opened::Nothing)),
        (&[SUITE_12, SUITE_13], &[(A, CLOSE_NOTIFY)], Ok(Opened::Closed)),
        (&[SUITE_12, SUITE_13], &[(A, &[2, 0])], Ok(Opened::Closed)),
        (&[SUITE_12, SUITE_13], &[(A, CLOSE_NOTIFY), (Data, b"late")], Ok(Opened::Closed)),
        (&[SUITE_12, SUITE_13], &[(A, USER_CANCELED)], Ok(Opened::Nothing)),
        (&[SUITE_12, SUITE_13], &[(A, USER_CANCELED), (A, CLOSE_NOTIFY)], Ok(Opened::Closed)),
        (&[SUITE_12], &[(A, &[1, 100])], Ok(Opened::Nothing)),
        (&[SUITE_13], &[(A, &[1, 100])], fatal(100)),
        (&[SUITE_12, SUITE_13], &[(A, &[2, 48])], fatal(48)),
        (&[SUITE_12, SUITE_13], &[(A, &[9, 200])], fatal(200)),
        (&[SUITE_12, SUITE_13], &[(A, &[1])], Err(Fault::Malformed)),
        (&[SUITE_12, SUITE_13], &[(A, &[1, 0, 1, 0])], Err(Fault::Malformed)),
        (&[SUITE_12, SUITE_13], &[(A, b"")], Err(Fault::Malformed)),
        (&[SUITE_12, SUITE_13], &[(Change, &[1])], unexpected.clone()),
        // TLS 1.3: KeyUpdate, and nothing else.
        (&[SUITE_13], &[(H, UPDATE)], Ok(Opened::KeyUpdated { asked: false })),
        (&[SUITE_13], &[(H, &[24, 0, 0, 1, 2])], Err(Fault::IllegalParameter)),
        (&[SUITE_13], &[(H, &[24, 0, 0, 2, 0])], unexpected.clone()),
        (&[SUITE_13], &[(H, &[24, 0, 0, 1, 0, 24])], unexpected.clone()),
        (&[SUITE_13], &[(H, &[24, 0, 0]), (H, &[1, 0, 24])], unexpected.clone()),
        (&[SUITE_13], &[(H, &[24, 0, 0]), (H, &[0])], unexpected.clone()),
        (&[SUITE_13], &[(H, &[24, 0, 0]), (H, b"")], unexpected.clone()),
        (&[SUITE_13], &[(H, &[24, 0, 0]), (Data, b"data")], unexpected.clone()),
        (&[SUITE_13], &[(H, &[24, 0, 0]), (A, CLOSE_NOTIFY)], unexpected.clone()),
        (&[SUITE_13], &[(H, hello)], unexpected.clone()),
        (&[SUITE_13], &[(H, b"")], unexpected.clone()),
        // TLS 1.2: the wish for another handshake, and nothing else.
        (&[SUITE_12], &[(H, hello)], Ok(Opened::Renegotiation)),
        (&[SUITE_12], &[(H, &hello[..5])], Ok(Opened::Nothing)),
        (&[SUITE_12], &[(H, &hello[..5]), (H, &hello[5..])], Ok(Opened::Renegotiation)),
        (&[SUITE_12], &[(H, &hello[..5]), (H, &[7, 7])], unexpected.clone()),
        (&[SUITE_12], &[(H, &hello[..5]), (Data, b"data")], unexpected.clone()),
        (&[SUITE_12], &[(H, &[1, 0, 0])], unexpected.clone()),
        (&[SUITE_12], &[(H, &[1, 1, 0, 1])], Err(Fault::HandshakeTooLarge)),
        (&[SUITE_12], &[(H, UPDATE)], unexpected.clone()),
        (&[SUITE_12], &[(H, b"")], unexpected.clone()),
    ];
    for (suites, records, expected) in table {
        for &suite in *suites {
            assert_eq!(&last(suite, records), expected, "{suite:?}: {records:?}");
        }
    }
}

#[test]
fn a_handshake_that_is_refused_does_not_end_the_session() {
    let (mut peer, mut session) = Peer::pair(SUITE_12);
    let mut record = peer.seal(Content::Handshake, &[1, 0, 0, 1, 7]);
    assert_eq!(session.open(&mut record), Ok(Opened::Renegotiation));
    let mut out = Vec::new();
    session.refuse_renegotiation(&mut out).unwrap();
    out.extend(seal_data(&mut session, b"data"));
    let mut records = split(&out).into_iter();
    let warning = records.next().unwrap();
    assert_eq!((warning[0], warning.len()), (Content::Alert as u8, 5 + 8 + 2 + 16));
    // The peer's opener takes a warning for nothing; here it must not be anything worse.
    assert_eq!(peer.open_one(&mut warning.clone()), Ok(Opened::Nothing));
    assert_eq!(peer.open(&records.next().unwrap()), Ok((b"data".into(), 0)));
}

#[test]
fn records_that_bring_no_data_are_bounded() {
    let table: &[(SupportedCipherSuite, Content, &[u8])] = &[
        (SUITE_12, Content::ApplicationData, b""),
        (SUITE_13, Content::ApplicationData, b""),
        (SUITE_12, Content::Alert, USER_CANCELED),
        (SUITE_13, Content::Alert, USER_CANCELED),
        (SUITE_12, Content::Handshake, &[1, 0, 0, 0]),
        (SUITE_13, Content::Handshake, UPDATE),
    ];
    for &(suite, content, text) in table {
        let (mut peer, mut session) = Peer::pair(suite);
        for _ in 0..3 {
            for _ in 0..32 {
                session.open(&mut peer.seal(content, text)).unwrap();
                if text == UPDATE {
                    peer.update_keys();
                }
            }
            // Data makes good for them.
            let record = peer.seal(Content::ApplicationData, b"data");
            assert_eq!(open_data(&mut session, vec![record]), b"data");
        }
        for _ in 0..32 {
            session.open(&mut peer.seal(content, text)).unwrap();
            if text == UPDATE {
                peer.update_keys();
            }
        }
        let opened = session.open(&mut peer.seal(content, text));
        assert_eq!(opened, Err(Fault::Unproductive), "{suite:?}: {content:?}");
    }
}

#[test]
fn a_changed_byte_is_found() {
    for suite in suites() {
        let (mut peer, _) = Peer::pair(suite);
        let length = peer.seal(Content::ApplicationData, b"some data").len();
        for place in 0..length {
            let (mut peer, mut session) = Peer::pair(suite);
            let mut record = peer.seal(Content::ApplicationData, b"some data");
            record[place] ^= 1;
            match session.open(&mut record) {
                Err(Fault::BadRecord) => {}
                // Another type is refused for what it is; lengths and a version that is of no meaning
                // in TLS 1.3 are looked at before.
                Err(Fault::Unexpected) if place == 0 => {}
                Ok(_) if (3..5).contains(&place) => {}
                Ok(_) if (1..3).contains(&place) && suite.tls13().is_some() => {}
                other => panic!("{suite:?}, byte {place}: {other:?}"),
            }
        }
    }
}

#[test]
fn records_are_taken_in_their_order_and_once() {
    for suite in suites() {
        let (mut peer, mut session) = Peer::pair(suite);
        let first = peer.seal(Content::ApplicationData, b"first");
        let second = peer.seal(Content::ApplicationData, b"second");
        assert_eq!(session.open(&mut second.clone()), Err(Fault::BadRecord), "{suite:?}");
        let (mut peer, mut session) = Peer::pair(suite);
        let again = peer.seal(Content::ApplicationData, b"first");
        session.open(&mut again.clone()).unwrap();
        assert_eq!(session.open(&mut again.clone()), Err(Fault::BadRecord), "{suite:?}");
        drop(first);
    }
}

#[test]
fn a_record_too_short_for_its_tag_is_refused() {
    for suite in suites() {
        let (_, mut session) = Peer::pair(suite);
        for bytes in 0..30 {
            let mut record = vec![23, 3, 3, 0, bytes];
            record.resize(5 + usize::from(bytes), 0);
            assert_eq!(session.open(&mut record), Err(Fault::BadRecord), "{suite:?}: {bytes}");
        }
    }
}

#[test]
fn a_record_that_holds_more_than_it_may_is_refused() {
    for suite in suites() {
        let (mut peer, mut session) = Peer::pair(suite);
        let mut longest = peer.seal(Content::ApplicationData, &noise(1 << 14));
        assert!(matches!(session.open(&mut longest), Ok(Opened::Data(_))), "{suite:?}");
        let mut longer = peer.seal(Content::ApplicationData, &noise((1 << 14) + 1));
        assert_eq!(session.open(&mut longer), Err(Fault::RecordOverflow), "{suite:?}");
    }
}

#[test]
fn bytes_that_are_no_record_never_panic() {
    for suite in suites() {
        let (_, mut session) = Peer::pair(suite);
        for bytes in 0..200 {
            assert!(session.open(&mut noise(bytes)).is_err());
        }
    }
}

#[test]
fn the_end_is_said_once_and_is_the_end() {
    for suite in suites() {
        let (mut client, mut session) = pair(suite);
        let mut out = Vec::new();
        session.close_notify(&mut out);
        let length = out.len();
        session.close_notify(&mut out);
        session.alert(Fault::Internal, &mut out);
        assert_eq!(out.len(), length);
        let sealed = session.seal(Content::ApplicationData, &[b"data"], &mut out);
        assert_eq!(sealed, Err(Fault::Closed));
        client.connection.read_tls(&mut &out[..]).unwrap();
        let state = client.connection.process_new_packets().unwrap();
        assert!(state.peer_has_closed());
        // The other direction goes on.
        let records = client.seal(b"data");
        assert_eq!(open_data(&mut session, records), b"data");
        client.connection.send_close_notify();
        let [mut record] = client.sent().try_into().unwrap();
        assert_eq!(session.open(&mut record), Ok(Opened::Closed));
    }
}

#[test]
fn a_fault_is_told_by_its_alert() {
    for &fault in Fault::ALL {
        for suite in [SUITE_12, SUITE_13] {
            let (mut client, mut session) = pair(suite);
            let mut out = Vec::new();
            session.alert(fault, &mut out);
            match (fault.alert(), client.receive(&out)) {
                (None, Ok(_)) => assert!(out.is_empty()),
                (Some(alert), Err(rustls::Error::AlertReceived(received))) => {
                    assert_eq!(alert.number(), u8::from(received), "{fault:?}");
                }
                other => panic!("{fault:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn every_fault_has_a_name_of_its_own() {
    let mut names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Fault::ALL.len());
}

#[test]
fn a_peers_alert_is_named() {
    assert_eq!(Fault::PeerAlert(Alert::from_byte(48)).to_string(), "peer's alert: UnknownCA (48)");
    assert_eq!(Fault::PeerAlert(Alert::from_byte(200)).to_string(), "peer's alert: 200");
    assert_eq!(Fault::BadRecord.to_string(), Fault::BadRecord.name());
}
