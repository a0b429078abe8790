//! The stories that the machine is made for. Its table is walked in `table`.

mod table;

use proptest::prelude::*;

use super::*;
use crate::http::{Method, RequestBody, Version};

const LIMITS: RequestLimits = RequestLimits {
    head: HeadLimits { request_line_bytes: 8192, head_bytes: 16384, fields: 100 },
    body_bytes: 10,
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const GET_OLD: &[u8] = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
const POST_CLOSE: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
    3\r\nhel\r\n2;x=\"y\"\r\nlo\r\n0\r\nHost: b\r\n\r\n";
const CHUNKED_BAD: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n";
const CHUNKED_LARGE: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\nghijk\r\n";
const POST_LARGE: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nabcdefghijk";
const PART: &[u8] = b"GET / HTTP/1.1\r\nHo";
const BAD: &[u8] = b"BAD\r\n";

/// Takes and answers all that `input` holds, each request once its body has ended. Returns what each
/// answer said of the connection, and what was left.
fn serve(connection: &mut Connection, mut input: &[u8]) -> (Vec<Persistence>, usize) {
    let (mut answers, mut held) = (Vec::new(), None);
    loop {
        let said = match connection.take(input, &LIMITS) {
            Take::Request(head) => {
                input = &input[head.bytes..];
                held = Some(connection.persistence());
                if head.body == RequestBody::None { held.take() } else { None }
            }
            Take::Body(piece) => {
                input = &input[piece.bytes..];
                held.take_if(|_| piece.is_last)
            }
            Take::Refused(_) => Some(connection.persistence()),
            Take::Incomplete | Take::Busy => return (answers, input.len()),
        };
        let Some(said) = said else { continue };
        answers.push(said);
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
fn what_follows_a_body_is_the_next_request() {
    let mut connection = Connection::new();
    let input = [POST, GET, CHUNKED, CHUNKED, POST, GET].concat();
    assert_eq!(serve(&mut connection, &input), (vec![KeepAlive; 6], 0));
    assert_eq!(connection.awaiting(false), Awaiting::NextRequest);
    assert_eq!(serve(&mut connection, &[POST_CLOSE, GET].concat()), (vec![Close], GET.len()));
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn the_data_of_a_body_is_handed_out_where_it_lies() {
    for (request, expected) in [(POST, &b"hello"[..]), (CHUNKED, b"hello")] {
        let mut connection = Connection::new();
        let (mut rest, mut data) = (request, Vec::new());
        while !rest.is_empty() {
            match connection.take(rest, &LIMITS) {
                Take::Request(head) => rest = &rest[head.bytes..],
                Take::Body(piece) => {
                    rest = &rest[piece.bytes..];
                    data.extend_from_slice(piece.data);
                    assert_eq!(piece.is_last, rest.is_empty());
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(data, expected);
    }
}

#[test]
fn a_bad_body_is_refused_in_place_of_its_answer() {
    for (request, refusal) in [
        (CHUNKED_BAD, Refusal::ChunkDataEnd),
        (CHUNKED_LARGE, Refusal::BodyTooLarge),
        (POST_LARGE, Refusal::BodyTooLarge),
    ] {
        let mut connection = Connection::new();
        let input = [request, GET].concat();
        assert_eq!(serve(&mut connection, &[GET, &input].concat()).0.len(), 2, "{refusal:?}");
        assert_eq!(connection.awaiting(true), Awaiting::Close);
        let outcomes = outcomes(&input, &[]);
        assert_eq!(outcomes.last(), Some(&Err(refusal)));
    }
}

#[test]
fn a_declined_body_is_not_looked_at() {
    let mut connection = Connection::new();
    let head = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let Take::Request(head) = connection.take(head.as_bytes(), &LIMITS) else {
        panic!("it is whole");
    };
    assert!(head.expects_continue);
    assert_eq!((connection.persistence(), connection.takes_more()), (KeepAlive, true));
    connection.decline_body();
    assert_eq!((connection.persistence(), connection.takes_more()), (Close, false));
    assert_eq!(connection.take(b"hello", &LIMITS), Take::Busy);
    connection.answered();
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn a_body_is_taken_after_its_answer_too() {
    let mut connection = Connection::new();
    let (head, rest) = POST.split_at(POST.len() - 3);
    assert!(matches!(connection.take(head, &LIMITS), Take::Request(_)));
    connection.answered();
    assert_eq!(connection.awaiting(true), Awaiting::Body);
    assert!(matches!(connection.take(&head[head.len() - 2..], &LIMITS), Take::Body(_)));
    assert!(matches!(connection.take(rest, &LIMITS), Take::Body(BodyPiece { is_last: true, .. })));
    assert_eq!(connection.awaiting(false), Awaiting::NextRequest);
    assert_eq!(serve(&mut connection, GET).0, [KeepAlive]);
}

#[test]
fn a_fin_within_a_body_is_refused() {
    for request in [POST, CHUNKED] {
        let head_bytes = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        for end in head_bytes..request.len() {
            let mut connection = Connection::new();
            assert_eq!(serve(&mut connection, &request[..end]), (vec![], 0));
            assert_eq!(connection.awaiting(false), Awaiting::Body);
            connection.peer_ended();
            assert_eq!(connection.take(b"", &LIMITS), Take::Refused(Refusal::BodyCut));
            assert_eq!(connection.persistence(), Close);
            connection.answered();
            assert_eq!(connection.awaiting(false), Awaiting::Close);
        }
    }
}

#[test]
fn draining_waits_for_a_body_and_answers_it_last() {
    let mut connection = Connection::new();
    let (head, rest) = POST.split_at(POST.len() - 5);
    assert!(matches!(connection.take(head, &LIMITS), Take::Request(_)));
    connection.drain();
    assert_eq!((connection.persistence(), connection.awaiting(false)), (Close, Awaiting::Body));
    assert!(matches!(connection.take(rest, &LIMITS), Take::Body(BodyPiece { is_last: true, .. })));
    assert_eq!(connection.awaiting(false), Awaiting::Answer);
    connection.answered();
    assert_eq!(connection.awaiting(false), Awaiting::Close);
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
    connection.refuse(PART);
    assert_eq!(connection.persistence(), Close);
    connection.answered();
    assert_eq!(connection.awaiting(true), Awaiting::Close);
}

#[test]
fn an_answer_to_head_is_known_as_one_whatever_becomes_of_it() {
    let chunked = "HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (input, refusal) in [
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", None),
        ("\r\nHEAD / HTTP/1.1\r\n\r\n", Some(Refusal::HostMissing)),
        (&*format!("{chunked}x"), Some(Refusal::ChunkSize)),
    ] {
        let mut connection = Connection::new();
        let mut input = input.as_bytes();
        let refused = loop {
            match connection.take(input, &LIMITS) {
                Take::Request(head) => input = &input[head.bytes..],
                Take::Refused(refusal) => break Some(refusal),
                _ => break None,
            }
        };
        assert_eq!(refused, refusal);
        assert!(connection.head_only());
        connection.answered();
        assert!(!connection.head_only());
    }
    for (part, head_only) in [(&b"HEAD /"[..], true), (b"HEAD", false), (PART, false), (BAD, false)]
    {
        let mut connection = Connection::new();
        connection.refuse(part);
        assert_eq!(connection.head_only(), head_only);
    }
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

/// What a connection makes of a request: its head and the data of its body, or why not.
type Outcome = Result<(Method, Version, Vec<u8>), Refusal>;

/// What a connection makes of `input` that comes in pieces which end at `ends`, and a FIN after it.
fn outcomes(input: &[u8], ends: &[usize]) -> Vec<Outcome> {
    let (mut connection, mut consumed, mut outcomes) = (Connection::new(), 0, Vec::new());
    let mut held: Option<(Method, Version, Vec<u8>)> = None;
    for (index, &end) in ends.iter().chain([&input.len()]).enumerate() {
        if index == ends.len() {
            connection.peer_ended();
        }
        loop {
            let is_whole = match connection.take(&input[consumed..end.max(consumed)], &LIMITS) {
                Take::Request(head) => {
                    consumed += head.bytes;
                    held = Some((head.method, head.version, Vec::new()));
                    head.body == RequestBody::None
                }
                Take::Body(piece) => {
                    consumed += piece.bytes;
                    let held = held.as_mut().expect("its head has come");
                    held.2.extend_from_slice(piece.data);
                    piece.is_last
                }
                Take::Refused(refusal) => {
                    outcomes.push(Err(refusal));
                    connection.answered();
                    continue;
                }
                Take::Incomplete | Take::Busy => break,
            };
            if let Some(request) = held.take_if(|_| is_whole) {
                outcomes.push(Ok(request));
                connection.answered();
            }
        }
    }
    assert_eq!(connection.awaiting(consumed < input.len()), Awaiting::Close);
    outcomes
}

fn conversations() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        GET,
        GET,
        GET_OLD,
        GET_CLOSE,
        POST,
        POST_CLOSE,
        POST_LARGE,
        CHUNKED,
        CHUNKED_BAD,
        CHUNKED_LARGE,
        PART,
        BAD,
        b"\r\n",
        b"\r",
    ]);
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
}

#[test]
fn a_uri_of_the_other_scheme_is_not_here() {
    let taken = |scheme, uri: &str| {
        let request = format!("GET {uri} HTTP/1.1\r\nHost: a\r\n\r\n");
        match Connection::over(scheme).take(request.as_bytes(), &LIMITS) {
            Take::Request(head) => Ok(head.target.to_vec()),
            Take::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    };
    for uri in ["/x", "http://a/x", "HTTP://a/x"] {
        assert_eq!(taken(Scheme::Http, uri), Ok(b"/x".to_vec()), "{uri}");
    }
    for uri in ["/x", "https://a/x", "HTTPS://a:443/x"] {
        assert_eq!(taken(Scheme::Https, uri), Ok(b"/x".to_vec()), "{uri}");
    }
    for uri in ["https://a/x", "HTTPS://a"] {
        assert_eq!(taken(Scheme::Http, uri), Err(Refusal::TargetUnsecured), "{uri}");
    }
    for uri in ["http://a/x", "HTTP://a"] {
        assert_eq!(taken(Scheme::Https, uri), Err(Refusal::TargetSecured), "{uri}");
    }
}
