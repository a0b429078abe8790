//! The table of the module's documentation, walked, and the stories that it is made for.

use proptest::prelude::*;

use super::*;
use crate::http::{Method, Version};

const LIMITS: HeadLimits = HeadLimits { request_line_bytes: 8192, head_bytes: 16384, fields: 100 };

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const GET_OLD: &[u8] = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
const PART: &[u8] = b"GET / HTTP/1.1\r\nHo";
const BAD: &[u8] = b"BAD\r\n";

/// What can happen to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// `take`: a request that keeps the connection, and nothing after it.
    Request,
    /// `take`: such a request with input after it.
    RequestAndMore,
    /// `take`: a request that asks for the end of the connection, with input after it.
    LastRequest,
    /// `take`: a request with a body.
    RequestWithBody,
    /// `take`: a part of a head.
    Part,
    /// `take`: what is no head.
    Bad,
    Refuse,
    Answered,
    PeerEnded,
    Drain,
}

const EVENTS: [Event; 10] = [
    Event::Request,
    Event::RequestAndMore,
    Event::LastRequest,
    Event::RequestWithBody,
    Event::Part,
    Event::Bad,
    Event::Refuse,
    Event::Answered,
    Event::PeerEnded,
    Event::Drain,
];

impl Event {
    fn input(self) -> Vec<u8> {
        match self {
            Self::Request => GET.to_vec(),
            Self::RequestAndMore => [GET, PART].concat(),
            Self::LastRequest => [GET_CLOSE, PART].concat(),
            Self::RequestWithBody => POST.to_vec(),
            Self::Part => PART.to_vec(),
            Self::Bad => BAD.to_vec(),
            Self::Refuse | Self::Answered | Self::PeerEnded | Self::Drain => {
                unreachable!("no input comes with {self:?}")
            }
        }
    }
}

/// What `take` has said, without what it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Request,
    Incomplete,
    Refused,
    Busy,
    Nothing,
}

fn apply(connection: &mut Connection, event: Event) -> Said {
    match event {
        Event::Refuse => connection.refuse(),
        Event::Answered => connection.answered(),
        Event::PeerEnded => connection.peer_ended(),
        Event::Drain => connection.drain(),
        _ => {
            return match connection.take(&event.input(), &LIMITS) {
                Take::Request(_) => Said::Request,
                Take::Incomplete => Said::Incomplete,
                Take::Refused(_) => Said::Refused,
                Take::Busy => Said::Busy,
            };
        }
    }
    Said::Nothing
}

const FRESH: Reading = Reading::Head { first: true, seen_bytes: 0 };
const BETWEEN: Reading = Reading::Head { first: false, seen_bytes: 0 };
const ANSWER: Writing = Writing::Answer { asked: Persistence::KeepAlive };
const LAST_ANSWER: Writing = Writing::Answer { asked: Persistence::Close };

/// The table: what an event says and where it leads.
fn expected(before: Connection, event: Event) -> (Said, Connection) {
    use Event::*;
    let Connection { reading, writing, draining } = before;
    let to = |reading, writing| Connection { reading, writing, draining };
    let done = Reading::Done;
    let seen = |first| Reading::Head { first, seen_bytes: PART.len() as u32 };
    match (event, reading, writing) {
        (Answered, ..) => (Said::Nothing, to(reading, Writing::Idle)),
        (PeerEnded, Reading::Head { .. }, _) => (Said::Nothing, to(Reading::Ended, writing)),
        (PeerEnded, ..) => (Said::Nothing, before),
        (Drain, _, Writing::Idle) => (Said::Nothing, Connection { draining: true, ..before }),
        (Drain, ..) => (Said::Nothing, Connection { reading: done, draining: true, ..before }),
        (Refuse, Reading::Done, _) => (Said::Nothing, before),
        (Refuse, _, Writing::Idle) => (Said::Nothing, to(done, LAST_ANSWER)),
        (Refuse, ..) => (Said::Nothing, to(done, writing)),

        (_, Reading::Done, _) | (_, _, Writing::Answer { .. }) => (Said::Busy, before),
        (Bad, ..) => (Said::Refused, to(done, LAST_ANSWER)),
        (Part, Reading::Head { first, .. }, _) => (Said::Incomplete, to(seen(first), writing)),
        (Part, Reading::Ended, _) => (Said::Incomplete, to(done, writing)),
        (LastRequest, ..) => (Said::Request, to(done, LAST_ANSWER)),
        (RequestWithBody, ..) => (Said::Request, to(done, ANSWER)),
        (Request | RequestAndMore, ..) if draining => (Said::Request, to(done, ANSWER)),
        (Request | RequestAndMore, Reading::Head { .. }, _) => (Said::Request, to(BETWEEN, ANSWER)),
        (RequestAndMore, Reading::Ended, _) => (Said::Request, to(Reading::Ended, ANSWER)),
        (Request, Reading::Ended, _) => (Said::Request, to(done, ANSWER)),
    }
}

#[test]
fn the_table_holds_for_every_state_and_event() {
    let readings = [FRESH, BETWEEN, Reading::Ended, Reading::Done];
    for reading in readings {
        for writing in [Writing::Idle, ANSWER, LAST_ANSWER] {
            for draining in [false, true] {
                for event in EVENTS {
                    let before = Connection { reading, writing, draining };
                    let mut after = before;
                    let said = apply(&mut after, event);
                    assert_eq!((said, after), expected(before, event), "{before:?} {event:?}");
                }
            }
        }
    }
}

#[test]
fn every_state_awaits_something() {
    use Awaiting::{Answer, Close, FirstHead, Head, NextRequest};
    let idle = |reading, draining, has_input| {
        Connection { reading, writing: Writing::Idle, draining }.awaiting(has_input)
    };
    for (reading, draining, without_input, with_input) in [
        (FRESH, false, FirstHead, Head),
        (FRESH, true, FirstHead, Head),
        (BETWEEN, false, NextRequest, Head),
        (BETWEEN, true, Close, Head),
        (Reading::Ended, false, Close, Head),
        (Reading::Ended, true, Close, Head),
        (Reading::Done, false, Close, Close),
        (Reading::Done, true, Close, Close),
    ] {
        assert_eq!(idle(reading, draining, false), without_input, "{reading:?} {draining}");
        assert_eq!(idle(reading, draining, true), with_input, "{reading:?} {draining}");
        for has_input in [false, true] {
            let answering = Connection { reading, writing: ANSWER, draining };
            assert_eq!(answering.awaiting(has_input), Answer);
        }
    }
}

/// Takes and answers all that `input` holds. Returns what each answer said of the connection, and
/// what was left.
fn serve(connection: &mut Connection, mut input: &[u8]) -> (Vec<Persistence>, usize) {
    let mut answers = Vec::new();
    loop {
        match connection.take(input, &LIMITS) {
            Take::Request(head) => input = &input[head.bytes..],
            Take::Refused(_) => {}
            Take::Incomplete | Take::Busy => return (answers, input.len()),
        }
        answers.push(connection.persistence());
        assert_eq!(connection.awaiting(!input.is_empty()), Awaiting::Answer);
        connection.answered();
    }
}

use Persistence::{Close, KeepAlive, KeepAliveExplicit};

#[test]
fn pipelined_requests_are_answered_in_turn() {
    let mut connection = Connection::new();
    assert_eq!(serve(&mut connection, &GET.repeat(3)), (vec![KeepAlive; 3], 0));
    assert_eq!(connection.awaiting(false), Awaiting::NextRequest);
}

#[test]
fn nothing_is_taken_while_a_response_is_under_way() {
    let (mut connection, input) = (Connection::new(), GET.repeat(2));
    assert!(matches!(connection.take(&input, &LIMITS), Take::Request(_)));
    assert_eq!(connection.take(&input[GET.len()..], &LIMITS), Take::Busy);
    connection.answered();
    assert!(matches!(connection.take(&input[GET.len()..], &LIMITS), Take::Request(_)));
}

#[test]
fn nothing_is_answered_after_close() {
    let mut connection = Connection::new();
    assert_eq!(
        serve(&mut connection, &[GET, GET_CLOSE, GET].concat()),
        (vec![KeepAlive, Close], GET.len())
    );
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn a_body_ends_the_connection_with_its_answer() {
    let mut connection = Connection::new();
    assert_eq!(serve(&mut connection, &[POST, GET].concat()).0, [Close]);
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn a_refusal_is_answered_and_ends_the_connection() {
    let mut connection = Connection::new();
    assert_eq!(serve(&mut connection, &[GET, BAD, GET].concat()).0, [KeepAlive, Close]);
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn a_head_that_takes_too_long_is_refused_by_the_caller() {
    let mut connection = Connection::new();
    assert_eq!(connection.take(PART, &LIMITS), Take::Incomplete);
    connection.refuse();
    assert_eq!(connection.persistence(), Close);
    connection.answered();
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn version_1_0_is_told_that_its_connection_lives() {
    let mut connection = Connection::new();
    assert_eq!(serve(&mut connection, &GET_OLD.repeat(2)).0, [KeepAliveExplicit; 2]);
    assert_eq!(connection.awaiting(false), Awaiting::NextRequest);
    assert_eq!(serve(&mut connection, b"GET / HTTP/1.0\r\n\r\n").0, [Close]);
    assert_eq!(connection.awaiting(false), Awaiting::Close);
}

#[test]
fn all_that_came_before_a_fin_is_answered() {
    let mut connection = Connection::new();
    connection.peer_ended();
    assert_eq!(serve(&mut connection, &GET.repeat(3)), (vec![KeepAlive, KeepAlive, Close], 0));
    assert_eq!(connection.awaiting(false), Awaiting::Close);
}

#[test]
fn a_fin_during_a_response_lets_the_rest_be_answered() {
    let (mut connection, input) = (Connection::new(), GET.repeat(3));
    assert!(matches!(connection.take(&input, &LIMITS), Take::Request(_)));
    connection.peer_ended();
    assert_eq!(connection.persistence(), KeepAlive);
    connection.answered();
    assert_eq!(serve(&mut connection, &input[GET.len()..]).0, [KeepAlive, Close]);
    assert_eq!(connection.awaiting(false), Awaiting::Close);
}

#[test]
fn a_fin_after_the_last_answer_closes() {
    let mut connection = Connection::new();
    serve(&mut connection, GET);
    connection.peer_ended();
    assert_eq!(connection.awaiting(false), Awaiting::Close);
}

#[test]
fn a_fin_within_a_head_closes_without_an_answer() {
    for end in 1..GET.len() {
        let mut connection = Connection::new();
        assert_eq!(connection.take(&GET[..end], &LIMITS), Take::Incomplete);
        connection.peer_ended();
        assert_eq!(connection.awaiting(true), Awaiting::Head, "take() has the last word");
        assert_eq!(connection.take(&GET[..end], &LIMITS), Take::Incomplete);
        assert_eq!(connection.awaiting(true), Awaiting::Close);
    }
}

#[test]
fn empty_lines_at_the_end_are_no_request() {
    let mut connection = Connection::new();
    assert_eq!(serve(&mut connection, &[GET, b"\r\n"].concat()), (vec![KeepAlive], 2));
    connection.peer_ended();
    assert_eq!(serve(&mut connection, b"\r\n"), (vec![], 2));
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn a_fin_before_the_first_byte_closes() {
    let mut connection = Connection::new();
    connection.peer_ended();
    assert_eq!(connection.awaiting(false), Awaiting::Close);
    assert_eq!(connection.take(b"", &LIMITS), Take::Incomplete);
    assert_eq!(connection.awaiting(false), Awaiting::Close);
}

#[test]
fn draining_waits_for_a_first_request_and_answers_it_last() {
    let mut connection = Connection::new();
    connection.drain();
    assert_eq!(connection.awaiting(false), Awaiting::FirstHead);
    assert_eq!(serve(&mut connection, &GET.repeat(2)), (vec![Close], GET.len()));
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn draining_closes_an_idle_connection_and_finishes_a_begun_head() {
    let mut connection = Connection::new();
    serve(&mut connection, GET);
    connection.drain();
    assert_eq!(connection.awaiting(false), Awaiting::Close);
    assert_eq!(connection.awaiting(true), Awaiting::Head);
    assert_eq!(serve(&mut connection, GET).0, [Close]);
}

#[test]
fn draining_makes_the_response_under_way_the_last() {
    let mut connection = Connection::new();
    assert!(matches!(connection.take(GET, &LIMITS), Take::Request(_)));
    connection.drain();
    assert_eq!(connection.persistence(), Close);
    connection.answered();
    assert_eq!(connection.take(GET, &LIMITS), Take::Busy);
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

/// What a connection makes of `input` that comes in pieces which end at `ends`, and a FIN after it.
fn outcomes(input: &[u8], ends: &[usize]) -> Vec<Result<(Method, Version, usize), Refusal>> {
    let (mut connection, mut consumed, mut outcomes) = (Connection::new(), 0, Vec::new());
    for (index, &end) in ends.iter().chain([&input.len()]).enumerate() {
        if index == ends.len() {
            connection.peer_ended();
        }
        loop {
            match connection.take(&input[consumed..end.max(consumed)], &LIMITS) {
                Take::Request(head) => {
                    consumed += head.bytes;
                    outcomes.push(Ok((head.method, head.version, head.bytes)));
                }
                Take::Refused(refusal) => outcomes.push(Err(refusal)),
                Take::Incomplete | Take::Busy => break,
            }
            connection.answered();
        }
    }
    assert_eq!(connection.awaiting(consumed < input.len()), Awaiting::Close);
    outcomes
}

fn conversations() -> impl Strategy<Value = Vec<u8>> {
    let pieces =
        prop::sample::select(vec![GET, GET, GET_OLD, GET_CLOSE, POST, PART, BAD, b"\r\n", b"\r"]);
    prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn it_does_not_matter_how_the_bytes_come(input in conversations(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        ends.sort_unstable();
        let whole = outcomes(&input, &[]);
        prop_assert_eq!(outcomes(&input, &ends), whole.clone());
        let each_byte: Vec<_> = (0..input.len()).collect();
        prop_assert_eq!(outcomes(&input, &each_byte), whole);
    }

    /// Whatever happens, nothing is answered after a response that could say that it is the last.
    #[test]
    fn the_last_answer_is_the_last(events in prop::collection::vec(prop::sample::select(EVENTS.to_vec()), 0..24)) {
        let (mut connection, mut last) = (Connection::new(), false);
        for event in events {
            let said = apply(&mut connection, event);
            if last {
                prop_assert!(matches!(said, Said::Busy | Said::Nothing), "{event:?} {said:?}");
            }
            last |= connection.writing != Writing::Idle && connection.persistence() == Close;
        }
        connection.answered();
        prop_assert!(!last || connection.awaiting(true) == Awaiting::Close);
    }
}
