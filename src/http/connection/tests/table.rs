//! The table of the module's documentation, walked.

use proptest::prelude::*;

use super::*;

/// What can happen to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// `take`: a request that keeps the connection, and nothing after it.
    Request,
    /// `take`: such a request with input after it.
    RequestAndMore,
    /// `take`: a request that asks for the end of the connection, with input after it.
    LastRequest,
    /// `take`: a request with a body of five bytes.
    RequestWithBody,
    /// `take`: such a request that asks for the end of the connection.
    LastRequestWithBody,
    /// `take`: a request with a body that is too large.
    LargeRequest,
    /// `take`: nothing but what was seen already: of a body, nothing.
    Nothing,
    /// `take`: a part of a head, or a part of a chunked body.
    Part,
    /// `take`: the rest of a chunked body, and nothing after it.
    RestOfBody,
    /// `take`: the rest of a chunked body, with input after it.
    RestOfBodyAndMore,
    /// `take`: what is neither head nor chunk.
    Bad,
    Refuse,
    DeclineBody,
    Answered,
    PeerEnded,
    Drain,
}

const EVENTS: [Event; 16] = [
    Event::Request,
    Event::RequestAndMore,
    Event::LastRequest,
    Event::RequestWithBody,
    Event::LastRequestWithBody,
    Event::LargeRequest,
    Event::Nothing,
    Event::Part,
    Event::RestOfBody,
    Event::RestOfBodyAndMore,
    Event::Bad,
    Event::Refuse,
    Event::DeclineBody,
    Event::Answered,
    Event::PeerEnded,
    Event::Drain,
];

impl Event {
    /// What is taken from in a state that awaits a head, and in one that awaits chunks.
    fn input(self, is_in_body: bool) -> Vec<u8> {
        match self {
            Self::Request => GET.to_vec(),
            Self::RequestAndMore => [GET, PART].concat(),
            Self::LastRequest => [GET_CLOSE, PART].concat(),
            Self::RequestWithBody => POST.to_vec(),
            Self::LastRequestWithBody => POST_CLOSE.to_vec(),
            Self::LargeRequest => POST_LARGE.to_vec(),
            Self::Nothing => Vec::new(),
            Self::Part if is_in_body => b"1\r".to_vec(),
            Self::Part => PART.to_vec(),
            Self::RestOfBody => b"0\r\n\r\n".to_vec(),
            Self::RestOfBodyAndMore => b"0\r\n\r\nG".to_vec(),
            Self::Bad => BAD.to_vec(),
            Self::Refuse | Self::DeclineBody | Self::Answered | Self::PeerEnded | Self::Drain => {
                unreachable!("no input comes with {self:?}")
            }
        }
    }

    /// Whether it is one of a peer that sends heads where heads are awaited, and chunks in a body.
    fn fits(self, reading: Reading) -> bool {
        let is_in_body = matches!(reading, Reading::Body(_));
        match self {
            Self::Request
            | Self::RequestAndMore
            | Self::LastRequest
            | Self::RequestWithBody
            | Self::LastRequestWithBody
            | Self::LargeRequest => !is_in_body,
            Self::RestOfBody | Self::RestOfBodyAndMore => !matches!(reading, Reading::Head { .. }),
            _ => true,
        }
    }
}

/// What `take` has said, without what it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Request,
    Body,
    LastOfBody,
    Incomplete,
    Refused(Refusal),
    Busy,
    Nothing,
}

fn apply(connection: &mut Connection, event: Event) -> Said {
    match event {
        Event::Refuse => connection.refuse(b""),
        Event::DeclineBody => connection.decline_body(),
        Event::Answered => connection.answered(),
        Event::PeerEnded => connection.peer_ended(),
        Event::Drain => connection.drain(),
        _ => {
            let is_in_body = matches!(connection.reading, Reading::Body(_));
            return match connection.take(&event.input(is_in_body), &LIMITS) {
                Take::Request(_) => Said::Request,
                Take::Body(BodyPiece { is_last: true, .. }) => Said::LastOfBody,
                Take::Body(_) => Said::Body,
                Take::Incomplete => Said::Incomplete,
                Take::Refused(refusal) => Said::Refused(refusal),
                Take::Busy => Said::Busy,
            };
        }
    }
    Said::Nothing
}

const FRESH: Reading = Reading::Head { first: true, seen_bytes: 0 };
const BETWEEN: Reading = Reading::Head { first: false, seen_bytes: 0 };
const ANSWER: Writing = Writing::Answer { asked: Persistence::KeepAlive, head_only: false };
const LAST_ANSWER: Writing = Writing::Answer { asked: Persistence::Close, head_only: false };

/// A body of which nothing has come.
fn body(framing: RequestBody) -> Reading {
    let reader = BodyReader::new(framing, LIMITS.body_bytes).expect("it is small");
    Reading::Body(reader.expect("there is one"))
}

/// A chunked body of which [`Event::Part`] has come.
fn begun_body() -> Reading {
    let Reading::Body(mut reader) = body(RequestBody::Chunked) else { unreachable!("it is one") };
    reader.next(&Event::Part.input(true), &LIMITS.head).expect("it is a good one");
    Reading::Body(reader)
}

/// The table: what an event says and where it leads.
fn expected(before: Connection, event: Event) -> (Said, Connection) {
    use Event::*;
    let Connection { reading, writing, ended, draining, .. } = before;
    let to = |reading, writing| Connection { reading, writing, ..before };
    let done = Reading::Done;
    let is_last = draining || writing == LAST_ANSWER;
    let next = |is_last| if is_last { done } else { BETWEEN };
    match (event, reading, writing) {
        (Answered, Reading::Body(_), _) if is_last => (Said::Nothing, to(done, Writing::Idle)),
        (Answered, ..) => (Said::Nothing, to(reading, Writing::Idle)),
        (PeerEnded, ..) => (Said::Nothing, Connection { ended: true, ..before }),
        (Drain, Reading::Head { .. }, Writing::Answer { .. })
        | (Drain, Reading::Body(_), Writing::Idle) => {
            (Said::Nothing, Connection { reading: done, draining: true, ..before })
        }
        (Drain, ..) => (Said::Nothing, Connection { draining: true, ..before }),
        (Refuse, Reading::Head { .. }, Writing::Idle) => (Said::Nothing, to(done, LAST_ANSWER)),
        (Refuse, ..) | (DeclineBody, Reading::Body(_), _) => (Said::Nothing, to(done, writing)),
        (DeclineBody, ..) => (Said::Nothing, before),

        (_, Reading::Done, _) | (_, Reading::Head { .. }, Writing::Answer { .. }) => {
            (Said::Busy, before)
        }

        (Nothing, Reading::Body(_), Writing::Answer { .. }) if ended => {
            (Said::Refused(Refusal::BodyCut), to(done, writing))
        }
        (Bad, Reading::Body(_), Writing::Answer { .. }) => {
            // `BAD` is a size of eleven, and no more digits follow.
            (Said::Refused(Refusal::BodyTooLarge), to(done, writing))
        }
        (Bad, Reading::Body(_), _) => (Said::Busy, to(done, writing)),
        (Nothing, Reading::Body(_), _) if ended => (Said::Busy, to(done, writing)),
        (Nothing, Reading::Body(_), _) => (Said::Incomplete, before),
        (Part, Reading::Body(_), _) => (Said::Body, to(begun_body(), writing)),
        (RestOfBody, Reading::Body(_), _) => {
            (Said::LastOfBody, to(next(is_last || ended), writing))
        }
        (_, Reading::Body(_), _) => (Said::LastOfBody, to(next(is_last), writing)),

        (Bad, ..) => (Said::Refused(Refusal::RequestLine), to(done, LAST_ANSWER)),
        (LargeRequest, ..) => (Said::Refused(Refusal::BodyTooLarge), to(done, LAST_ANSWER)),
        (Part | Nothing, ..) if ended => (Said::Incomplete, to(done, writing)),
        (Part | Nothing, Reading::Head { first, .. }, _) => {
            let seen_bytes = event.input(false).len() as u32;
            (Said::Incomplete, to(Reading::Head { first, seen_bytes }, writing))
        }
        (LastRequest, ..) => (Said::Request, to(done, LAST_ANSWER)),
        (RequestWithBody, ..) => (Said::Request, to(body(RequestBody::Length(5)), ANSWER)),
        (LastRequestWithBody, ..) => (Said::Request, to(body(RequestBody::Length(5)), LAST_ANSWER)),
        (Request, ..) => (Said::Request, to(next(draining || ended), ANSWER)),
        (RequestAndMore, ..) => (Said::Request, to(next(draining), ANSWER)),
        (RestOfBody | RestOfBodyAndMore, ..) => unreachable!("no head begins with a chunk"),
    }
}

/// All states that there can be, and some more.
fn states() -> impl Iterator<Item = Connection> {
    let readings = [FRESH, BETWEEN, body(RequestBody::Chunked), Reading::Done];
    readings.into_iter().flat_map(|reading| {
        [Writing::Idle, ANSWER, LAST_ANSWER].into_iter().flat_map(move |writing| {
            [(false, false), (false, true), (true, false), (true, true)].map(
                move |(ended, draining)| {
                    let scheme = Scheme::Http;
                    Connection { scheme, reading, writing, ended, draining }
                },
            )
        })
    })
}

#[test]
fn the_table_holds_for_every_state_and_event() {
    for before in states() {
        for event in EVENTS.into_iter().filter(|event| event.fits(before.reading)) {
            let mut after = before;
            let said = apply(&mut after, event);
            assert_eq!((said, after), expected(before, event), "{before:?} {event:?}");
        }
    }
}

#[test]
fn every_state_awaits_something() {
    use Awaiting::{Answer, Body, Close, FirstHead, Head, NextRequest};
    for state in states() {
        let Connection { reading, writing, ended, draining, .. } = state;
        let (without_input, with_input) = match (reading, writing) {
            (Reading::Body(_), _) => (Body, Body),
            (_, Writing::Answer { .. }) => (Answer, Answer),
            (Reading::Done, Writing::Idle) => (Close, Close),
            (Reading::Head { .. }, Writing::Idle) if ended => (Close, Head),
            (Reading::Head { first: true, .. }, Writing::Idle) => (FirstHead, Head),
            (Reading::Head { .. }, Writing::Idle) if draining => (Close, Head),
            (Reading::Head { .. }, Writing::Idle) => (NextRequest, Head),
        };
        assert_eq!(state.awaiting(false), without_input, "{state:?}");
        assert_eq!(state.awaiting(true), with_input, "{state:?}");
    }
}

proptest! {
    /// Whatever happens, nothing is answered after a response that could say that it is the last.
    #[test]
    fn the_last_answer_is_the_last(events in prop::collection::vec(prop::sample::select(EVENTS.to_vec()), 0..24)) {
        let (mut connection, mut last, mut over) = (Connection::new(), false, false);
        for event in events {
            let said = apply(&mut connection, event);
            prop_assert!(!over || matches!(said, Said::Busy | Said::Nothing), "{event:?} {said:?}");
            // Its body may still come, and be refused in its place.
            prop_assert!(!last || said != Said::Request, "{event:?} {said:?}");
            last |= connection.writing != Writing::Idle && connection.persistence() == Close;
            over |= last && event == Event::Answered;
        }
        connection.answered();
        prop_assert!(!last || connection.awaiting(true) == Awaiting::Close);
    }
}
