//! Tickets across rotations, hosts, skewed clocks, contexts and secrets, with the time injected.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const PERIOD_S: u64 = 1000;
/// The beginning of an epoch.
const START_S: u64 = 1_800_000_000;

/// Secrets that consist of one byte, over and over.
fn secrets(bytes: &[u8]) -> Secrets {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets");
    let lines: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}").repeat(32)).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    Secrets::read(&path).unwrap()
}

/// A host with a clock of its own.
struct Host {
    clock: Arc<Clock>,
    secrets: Arc<TicketSecrets>,
    counters: Arc<TicketCounters>,
}

impl Host {
    fn new(bytes: &[u8]) -> Host {
        Host {
            clock: Arc::new(Clock::at(START_S)),
            secrets: Arc::new(TicketSecrets::new(secrets(bytes))),
            counters: Arc::default(),
        }
    }

    fn shard(&self, context: &str) -> ContextTickets {
        ContextTickets::new(
            Arc::clone(&self.secrets),
            ContextId::of(&[context.as_bytes()]),
            Period::new(PERIOD_S as u32).unwrap(),
            Arc::clone(&self.clock),
            Arc::clone(&self.counters),
        )
    }
}

#[track_caller]
fn accepted(tickets: &ContextTickets, ticket: &[u8]) {
    assert_eq!(tickets.decrypt(ticket).as_deref(), Some(&b"session"[..]));
}

#[track_caller]
fn refused(tickets: &ContextTickets, ticket: &[u8]) {
    assert_eq!(tickets.decrypt(ticket), None);
}

fn ticket(tickets: &ContextTickets) -> Vec<u8> {
    tickets.encrypt(b"session").unwrap()
}

#[test]
fn the_shards_of_a_host_accept_each_others_tickets() {
    let host = Host::new(&[1]);
    let (one, other) = (host.shard("a"), host.shard("a"));
    accepted(&one, &ticket(&other));
    accepted(&other, &ticket(&one));
}

#[test]
fn a_ticket_is_accepted_until_the_epoch_after_its_own_ends() {
    let host = Host::new(&[1]);
    let tickets = host.shard("a");
    for issued in [START_S, START_S + 1, START_S + PERIOD_S - 1] {
        host.clock.tick(issued);
        let ticket = ticket(&tickets);
        let end = START_S + 2 * PERIOD_S;
        assert_eq!(issued + u64::from(tickets.lifetime()), end, "what the client is told");
        for time in [issued, START_S + PERIOD_S, end - 1] {
            host.clock.tick(time);
            accepted(&tickets, &ticket);
        }
        host.clock.tick(end);
        refused(&tickets, &ticket);
    }
}

#[test]
fn hosts_with_one_secret_resume_each_others_sessions_across_a_rotation() {
    let (one, other) = (Host::new(&[1]), Host::new(&[1]));
    let (on_one, on_other) = (one.shard("a"), other.shard("a"));
    // Across the change from one epoch to the next, with the other's clock behind, equal, and ahead.
    for skew in [-(PERIOD_S as i64), -5, 0, 5, PERIOD_S as i64] {
        for time in START_S + PERIOD_S - 10..START_S + PERIOD_S + 10 {
            one.clock.tick(time);
            other.clock.tick(time.checked_add_signed(skew).unwrap());
            accepted(&on_other, &ticket(&on_one));
            accepted(&on_one, &ticket(&on_other));
        }
    }
}

#[test]
fn a_host_that_is_two_epochs_ahead_is_not_followed() {
    let (one, other) = (Host::new(&[1]), Host::new(&[1]));
    other.clock.tick(START_S + 2 * PERIOD_S);
    refused(&one.shard("a"), &ticket(&other.shard("a")));
    refused(&other.shard("a"), &ticket(&one.shard("a")));
}

#[test]
fn hosts_with_different_secrets_are_strangers() {
    let (one, other) = (Host::new(&[1]), Host::new(&[2]));
    refused(&other.shard("a"), &ticket(&one.shard("a")));
    assert_eq!(other.counters.values().unknown, 1);
}

#[test]
fn a_ticket_of_one_context_is_of_no_use_in_another() {
    let host = Host::new(&[1]);
    let (one, other) = (host.shard("one"), host.shard("other"));
    refused(&other, &ticket(&one));
    // Not even under the name of a key that is known there.
    let mut renamed = ticket(&one);
    renamed[..16].copy_from_slice(&ticket(&other)[..16]);
    refused(&other, &renamed);
    let values = host.counters.values();
    assert_eq!((values.accepted, values.unknown, values.forged), (0, 1, 1));
}

#[test]
fn a_secret_is_replaced_in_three_steps_without_a_refusal() {
    let (one, other) = (Host::new(&[1]), Host::new(&[1]));
    let (on_one, on_other) = (one.shard("a"), other.shard("a"));
    let both_accept = || {
        accepted(&on_other, &ticket(&on_one));
        accepted(&on_one, &ticket(&on_other));
    };
    let before = ticket(&on_one);
    for step in [&[1, 2][..], &[2, 1]] {
        assert!(one.secrets.replace(secrets(step)));
        both_accept();
        assert!(other.secrets.replace(secrets(step)));
        both_accept();
        accepted(&on_other, &before);
    }
    let after = ticket(&on_one);
    assert!(one.secrets.replace(secrets(&[2])));
    both_accept();
    accepted(&on_one, &after);
    refused(&on_one, &before);
}

#[test]
fn a_revoked_secret_is_of_no_use_from_then_on() {
    let host = Host::new(&[1]);
    let shards = [host.shard("a"), host.shard("a")];
    let before = ticket(&shards[0]);
    for shard in &shards {
        accepted(shard, &before);
    }
    assert!(host.secrets.replace(secrets(&[2])));
    for shard in &shards {
        refused(shard, &before);
        accepted(shard, &ticket(shard));
    }
}

#[test]
fn a_reload_without_a_change_changes_nothing() {
    let host = Host::new(&[1, 2]);
    assert!(!host.secrets.replace(secrets(&[1, 2])));
    assert_eq!(host.secrets.generation(), 0);
    assert!(host.secrets.replace(secrets(&[2, 1])), "the first one is another");
}

#[test]
fn no_bit_of_a_ticket_can_be_changed_and_nothing_cut_off_or_added() {
    let host = Host::new(&[1]);
    let tickets = host.shard("a");
    let good = ticket(&tickets);
    for bit in 0..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        refused(&tickets, &changed);
    }
    for length in 0..good.len() {
        refused(&tickets, &good[..length]);
    }
    for more in [1, 16, 128, 65_000] {
        refused(&tickets, &[&good[..], &vec![0; more]].concat());
    }
    accepted(&tickets, &good);
}

#[test]
fn two_tickets_of_one_session_have_nothing_in_common_but_the_name() {
    let host = Host::new(&[1]);
    let tickets = host.shard("a");
    let (one, other) = (ticket(&tickets), ticket(&tickets));
    assert_eq!(one[..16], other[..16]);
    assert_ne!(one[16..28], other[16..28]);
    let equal = one[28..].iter().zip(&other[28..]).filter(|(a, b)| a == b).count();
    assert!(equal < 20, "{equal} of {} bytes are equal", one.len() - 28);
}

#[test]
fn the_length_of_a_ticket_tells_the_session_to_128_bytes() {
    let host = Host::new(&[1]);
    let tickets = host.shard("a");
    for (session, blocks) in [(0, 1), (111, 1), (126, 1), (127, 2), (254, 2), (255, 3)] {
        let session = vec![9; session];
        let ticket = tickets.encrypt(&session).unwrap();
        assert_eq!(ticket.len(), 16 + 12 + 128 * blocks + 16);
        assert_eq!(tickets.decrypt(&ticket), Some(session));
    }
}

#[test]
fn a_session_that_is_too_large_gets_no_ticket_and_is_counted() {
    let host = Host::new(&[1]);
    let tickets = host.shard("a");
    let largest = vec![3; SESSION_BYTES_MAX];
    assert_eq!(tickets.decrypt(&tickets.encrypt(&largest).unwrap()), Some(largest));
    assert_eq!(tickets.encrypt(&vec![3; SESSION_BYTES_MAX + 1]), None);
    let values = host.counters.values();
    assert_eq!((values.issued, values.accepted, values.too_large), (1, 1, 1));
}

#[test]
fn a_ticket_lasts_a_week_at_most() {
    assert_eq!(Period::new(0), None);
    assert_eq!(Period::new(Period::MAX_S + 1), None);
    let longest = Period::new(Period::MAX_S).unwrap();
    let host = Host::new(&[1]);
    host.clock.tick(0);
    let (secrets, clock) = (Arc::clone(&host.secrets), Arc::clone(&host.clock));
    let context = ContextId::of(&[]);
    let tickets = ContextTickets::new(secrets, context, longest, clock, Arc::default());
    assert_eq!(tickets.lifetime(), 7 * 24 * 60 * 60);
}

#[test]
fn a_clock_at_the_beginning_and_at_the_end_of_time_is_no_trouble() {
    let host = Host::new(&[1]);
    let tickets = host.shard("a");
    for time in [0, u64::MAX] {
        host.clock.tick(time);
        accepted(&tickets, &ticket(&tickets));
        assert!(tickets.lifetime() > 0);
    }
}

/// Hosts of different versions share a secret: what the keys are is for ever, or has another label.
#[test]
fn keys_are_the_same_everywhere() {
    let host = Host::new(&[1]);
    let name: String =
        ticket(&host.shard("a"))[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(name, "1fb4b0dec410a753bd211fc511be16e0");
}

#[test]
fn nothing_secret_is_shown() {
    let host = Host::new(&[1]);
    let shown = format!("{:?} {:?}", host.shard("a"), host.secrets);
    assert!(shown.starts_with("ContextTickets { context: ContextId("), "{shown}");
    assert!(
        shown.ends_with(
            "generation: 0, secrets: Mutex { data: Secrets([Secret(..)]), poisoned: false, .. } }"
        ),
        "{shown}"
    );
}
