//! Which sessions are resumed, by what, and how many of them.

use super::*;
use rustls::server::NoServerSessionStorage;

#[test]
fn sessions_are_resumed_in_both_versions() {
    for version in BOTH {
        let identity = Identity::new(&[version]);
        let mut client = client(100);
        let first = Pair::open(&mut client, &identity).client.handshake().unwrap();
        assert_eq!((first.resumed, first.intent), (false, Intent::ResumeWithout));
        for _ in 0..5 {
            let again = Pair::open(&mut client, &identity).client.handshake().unwrap();
            assert_eq!((again.resumed, again.intent), (true, Intent::Resume));
            assert_eq!(again.negotiated.version.supported().version, version.version);
        }
    }
}

#[test]
fn sessions_of_tls_1_2_are_resumed_by_what_was_asked_for() {
    for (tickets, ids, by, resumed) in [
        (true, true, ResumeBy::Id, true),
        (true, false, ResumeBy::Id, false),
        (false, true, ResumeBy::Id, true),
        (true, false, ResumeBy::Ticket, true),
        // There is nothing else to resume it by.
        (false, true, ResumeBy::Ticket, true),
        (false, false, ResumeBy::Ticket, false),
    ] {
        let mut identity = Identity::new(&BOTH);
        if tickets {
            identity.config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
        }
        if !ids {
            identity.config.session_storage = Arc::new(NoServerSessionStorage {});
        }
        let versions = vec![TlsVersion::Tls12];
        let options = TlsOptions { versions, resume_by: by, ..TlsOptions::default() };
        let mut client = TlsClient::new(&settings(&options), 100, 1);
        let mut open = || Pair::open(&mut client, &identity).client.handshake().unwrap();
        let case = format!("tickets {tickets}, ids {ids}, by {by:?}");
        assert_eq!(open().intent, Intent::ResumeWithout, "{case}");
        assert_eq!(open().resumed, resumed, "{case}");
    }
}

#[test]
fn ids_are_those_of_tls_1_2() {
    let options = TlsOptions { resume_by: ResumeBy::Id, ..TlsOptions::default() };
    let mut client = TlsClient::new(&settings(&options), 100, 1);
    let handshake = Pair::open(&mut client, &Identity::new(&BOTH)).client.handshake().unwrap();
    assert_eq!(handshake.negotiated.version, TlsVersion::Tls12);
}

#[test]
fn a_ticket_is_used_once() {
    let mut identity = Identity::new(&[&TLS13]);
    identity.config.send_tls13_tickets = 1;
    let mut client = client(100);
    Pair::open(&mut client, &identity);
    let mut one = Pair::new(client.connect().unwrap(), identity.server());
    let mut two = Pair::new(client.connect().unwrap(), identity.server());
    let intent = |pair: &mut Pair| {
        pair.settle().unwrap();
        let handshake = pair.client.handshake().unwrap();
        (handshake.intent, handshake.resumed)
    };
    assert_eq!(intent(&mut one), (Intent::Resume, true));
    assert_eq!(intent(&mut two), (Intent::ResumeWithout, false));
}

#[test]
fn a_server_that_has_forgotten_the_session_is_seen() {
    for version in BOTH {
        let mut client = client(100);
        Pair::open(&mut client, &Identity::new(&[version]));
        let handshake = Pair::open(&mut client, &Identity::new(&[version])).client.handshake();
        let handshake = handshake.unwrap();
        assert_eq!((handshake.intent, handshake.resumed), (Intent::Resume, false));
    }
}

#[test]
fn full_handshakes_supply_the_resumed_ones() {
    let identity = Identity::new(&BOTH);
    let mut client = client(50);
    let mut seen = [0, 0];
    for _ in 0..100 {
        let Handshake { intent, resumed, .. } =
            Pair::open(&mut client, &identity).client.handshake().unwrap();
        assert_eq!(resumed, intent == Intent::Resume);
        match intent {
            Intent::Full => seen[0] += 1,
            Intent::Resume => seen[1] += 1,
            // Only before the first full one has left a ticket.
            Intent::ResumeWithout => assert_eq!(seen, [0, 0]),
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn the_share_that_resumes_is_the_one_asked_for() {
    const COUNT: u32 = 2000;
    for percent in [0, 10, 90, 100] {
        let drawn = |seed| -> Vec<bool> {
            let mut client = TlsClient::new(&settings(&TlsOptions::default()), percent, seed);
            (0..COUNT).map(|_| client.draw()).collect()
        };
        let resumed = drawn(7).into_iter().filter(|&resume| resume).count() as f64;
        let share = f64::from(percent) / 100.0;
        let sigma = (f64::from(COUNT) * share * (1.0 - share)).sqrt();
        assert!((resumed - f64::from(COUNT) * share).abs() <= 3.0 * sigma, "{percent}: {resumed}");
        assert_eq!(drawn(7), drawn(7));
        assert_eq!(drawn(7) == drawn(8), percent == 0 || percent == 100);
    }
}
