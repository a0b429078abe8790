//! Users against the reference responder, without a socket: what is right is found right however it
//! is cut, and each fault is found by its kind.

use super::parameters::{Paths, Wanted};
use super::posts::PostVerdict;
use super::responder::{Fault, Responder, request_bytes};
use super::*;
use crate::request::Version;
use onering_fileset::plan::Directories;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::time::Duration;

const SET_SEED: u64 = 5;
const NOW_S: u64 = 1_790_000_000;
const USERS: u32 = 4;

fn parameters(version: Version, mix: Mix) -> Arc<Parameters> {
    let wanted = Wanted {
        host: "127.0.0.1:8080".to_owned(),
        version,
        directories: Directories::new(12).unwrap(),
        set_seed: SET_SEED,
        seed: 3,
        mix,
        paths: Paths::default(),
        users: USERS,
        duration: Duration::from_secs(60),
    };
    Arc::new(Parameters::new(wanted).unwrap())
}

/// A connection that carries one command to the responder.
struct Wire<'r> {
    responder: &'r mut Responder,
    sent: Vec<u8>,
    answer: Cursor<Vec<u8>>,
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sent.extend_from_slice(bytes);
        if request_bytes(&self.sent).is_some() {
            self.answer = Cursor::new(self.responder.answer(&self.sent, NOW_S).bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Wire<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // Cut anywhere.
        let length = out.len().min(100);
        self.answer.read(&mut out[..length])
    }
}

/// What a session has come to.
#[derive(Debug, Default)]
struct Session {
    right: u64,
    wrong: BTreeMap<String, u64>,
    posts: PostVerdict,
}

/// So many requests of each user, whose responses come in pieces of `piece_bytes`; every
/// `lost_every`th is lost after the server has acted on it.
fn session(
    parameters: &Arc<Parameters>,
    fault: Option<Fault>,
    requests: u64,
    piece_bytes: usize,
    lost_every: u64,
) -> Session {
    let mut responder = Responder::new(SET_SEED);
    let ledger = Ledger::default();
    let mut web99 = Web99::new(parameters, &ledger, 0, USERS as usize);
    let mut session = Session::default();
    control::reset(parameters, &mut wire(&mut responder)).unwrap();
    responder.set_fault(fault);
    for user in 0..USERS as usize {
        let mut left = 0;
        for number in 1..=requests {
            if left == 0 {
                left = web99.connection(user);
            }
            left -= 1;
            let persistence = if left == 0 { Persistence::Close } else { Persistence::Persist };
            let request = web99.ask(user, persistence);
            let sent = request.bytes.as_slice();
            assert_eq!(request_bytes(sent), Some(sent.len()));
            let answer = responder.answer(sent, NOW_S);
            assert_eq!(answer.persistent, persistence == Persistence::Persist);
            assert_eq!(answer.request, Some((request.asked.kind(), request.asked.name())));
            if number % lost_every == 0 {
                web99.lost(user, request.asked);
                continue;
            }
            match judge(&mut web99, user, request.asked, &answer.bytes, piece_bytes) {
                Ok(()) => session.right += 1,
                Err(wrong) => *session.wrong.entry(format!("{wrong:?}")).or_default() += 1,
            }
        }
    }
    responder.set_fault(None);
    let log = control::fetch(parameters, &mut wire(&mut responder), &mut || false).unwrap();
    let files = &parameters.wanted().paths.files;
    drop(web99);
    session.posts = ledger.take().judge(&log, files, 0..USERS, true);
    session
}

/// A connection for one command.
fn wire(responder: &mut Responder) -> Wire<'_> {
    Wire { responder, sent: Vec::new(), answer: Cursor::default() }
}

fn judge(
    web99: &mut Web99,
    user: usize,
    mut asked: Asked,
    answer: &[u8],
    piece_bytes: usize,
) -> Result<(), Wrong> {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(head_bytes) = response.parse(answer).unwrap() else {
        panic!("a whole head");
    };
    let body = &answer[head_bytes..];
    let status = response.code.unwrap();
    let head = Head { status, body_bytes: body.len() as u64, persistent: true };
    web99.head(user, &mut asked, head, &answer[..head_bytes])?;
    let mut offset = 0;
    for piece in body.chunks(piece_bytes) {
        web99.body(user, &mut asked, offset, piece)?;
        offset += piece.len() as u64;
    }
    web99.end(user, asked)
}

#[test]
fn everything_of_the_reference_responder_is_right() {
    for version in [Version::Http10, Version::Http11] {
        for mix in [Mix::Full, Mix::Static] {
            let session = session(&parameters(version, mix), None, 500, 1460, u64::MAX);
            assert_eq!((session.right, session.wrong.len()), (2000, 0), "{session:?}");
            assert_eq!(session.posts.total(), 0, "{}", session.posts);
            assert_eq!(session.posts.records > 0, mix == Mix::Full);
        }
    }
}

#[test]
fn cuts_change_nothing() {
    let parameters = parameters(Version::Http11, Mix::Full);
    for (piece_bytes, requests) in [(1, 20), (7, 60), (61, 100), (4096, 300), (1 << 20, 300)] {
        let session = session(&parameters, None, requests, piece_bytes, u64::MAX);
        assert_eq!(session.wrong.len(), 0, "by {piece_bytes}: {session:?}");
    }
}

#[test]
fn an_ad_may_come_in_the_file_alone() {
    let parameters = parameters(Version::Http11, Mix::Full);
    let mut responder = Responder::new(SET_SEED);
    control::reset(&parameters, &mut wire(&mut responder)).unwrap();
    let mut web99 = Web99::new(&parameters, &Ledger::default(), 0, 1);
    let mut right = 0;
    while right < 100 {
        let request = web99.ask(0, Persistence::Persist);
        if request.asked.kind() != RequestKind::CustomAd {
            continue;
        }
        let answer = responder.answer(request.bytes.as_slice(), NOW_S).bytes;
        let head_bytes = memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4;
        let (head, page) = answer.split_at(head_bytes);
        let file = onering_fileset::dynamic::Page::content(page).unwrap();
        let alone = [head, file].concat();
        assert_eq!(judge(&mut web99, 0, request.asked, &alone, 1460), Ok(()));
        right += 1;
    }
}

#[test]
fn what_was_lost_may_have_been_recorded() {
    let session = session(&parameters(Version::Http11, Mix::Full), None, 500, 1460, 3);
    assert_eq!((session.wrong.len(), session.posts.total()), (0, 0), "{session:?}");
    assert!(session.posts.records > 4 * 500 * 4 / 100);
}

#[test]
fn each_fault_is_found_by_its_kind() {
    let parameters = parameters(Version::Http11, Mix::Full);
    for fault in Fault::ALL {
        let (kind, of_posts) = match fault {
            Fault::Status => ("Status", ""),
            Fault::Length => ("Length", ""),
            Fault::FirstLine => ("FirstLine", ""),
            Fault::Marker => ("Marker", ""),
            Fault::Tag | Fault::StaleAd | Fault::Page => ("Page", ""),
            Fault::NoCookie | Fault::OtherCookie => ("Cookie", ""),
            Fault::DuplicatePosts => ("", "duplicated"),
            Fault::LosePosts => ("", "missing"),
            Fault::AlterPosts => ("", "altered"),
            Fault::SkipNumbers => ("", "gaps"),
            // Told by the framing, before a workload sees anything.
            Fault::Cut | Fault::Garbage => continue,
        };
        let Session { wrong, posts, .. } = session(&parameters, Some(fault), 200, 1460, u64::MAX);
        let kinds: Vec<_> =
            wrong.keys().map(String::as_str).filter(|&wrong| wrong != kind).collect();
        assert_eq!(kinds, [""; 0], "{fault:?}");
        assert_eq!(wrong.contains_key(kind), !kind.is_empty(), "{fault:?}: {wrong:?}");
        let faults: Vec<_> =
            posts.kinds().iter().filter(|(_, count)| *count > 0).map(|(kind, _)| *kind).collect();
        let expected: &[&str] = if of_posts.is_empty() { &[] } else { &[of_posts] };
        assert_eq!(faults, expected, "{fault:?}: {posts}");
    }
}

#[test]
fn generators_and_threads_differ_and_repeat_themselves() {
    let parameters = parameters(Version::Http11, Mix::Full);
    let asked = |first, user: usize| {
        let mut web99 = Web99::new(&parameters, &Ledger::default(), first, 4);
        let requests = (0..50).map(|_| {
            let request = web99.ask(user, Persistence::Persist);
            request.bytes.as_slice().to_vec()
        });
        requests.collect::<Vec<_>>()
    };
    assert_eq!(asked(0, 3), asked(3, 0), "the user of a number asks the same in any thread");
    assert_ne!(asked(0, 0), asked(0, 1));
    assert_ne!(asked(0, 0), asked(4, 0));
}

#[test]
fn requests_are_as_published() {
    let mut web99 = Web99::new(&parameters(Version::Http10, Mix::Full), &Ledger::default(), 7, 1);
    let mut seen = BTreeMap::new();
    for _ in 0..5_000 {
        let Request { asked, class, bytes } = web99.ask(0, Persistence::Persist);
        let text = String::from_utf8(bytes.as_slice().to_vec()).unwrap();
        seen.entry(web99.classes()[class].clone()).or_insert((text, asked.name));
        web99.lost(0, asked);
    }
    let names: Vec<_> = seen.keys().map(String::as_str).collect();
    let expected =
        ["cgi", "custom ad", "dynamic", "post", "static 0", "static 1", "static 2", "static 3"];
    assert_eq!(names, expected);
    let common = "HTTP/1.0\r\nHost: 127.0.0.1:8080\r\nConnection: keep-alive\r\n";
    let request = |class: &str| seen[class].clone();
    let (text, name) = request("static 1");
    assert_eq!(text, format!("GET /{name} {common}\r\n"));
    let (text, name) = request("cgi");
    assert_eq!(text, format!("GET /web99/cgi?/{name} {common}\r\n"));
    let (text, name) = request("custom ad");
    let begin =
        format!("GET /web99/dynamic?/{name} {common}Cookie: my_cookie=user_id=10007&last_ad=");
    assert!(text.starts_with(&begin), "{text}");
    let (text, name) = request("post");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("POST /web99/dynamic {common}Cookie: my_cookie=")), "{head}");
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
    let expected = format!("urlroot=/file_set/&dir={}&", name.directory());
    assert!(body.starts_with(&expected) && body.ends_with("&client=7"), "{body}");
}

#[test]
fn commands_that_fail_say_why() {
    struct Canned(&'static [u8]);
    impl Read for Canned {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0.read(out)
        }
    }
    impl Write for Canned {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let parameters = parameters(Version::Http11, Mix::Full);
    for (answer, why) in [
        ("HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n", "with status 404"),
        ("garbage\r\n\r\n", "malformed"),
        ("", "closed the connection"),
        ("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nlog", "closed the connection"),
        ("HTTP/1.0 200 OK\r\nContent-Length: 999999999\r\n\r\n", "999999999 bytes"),
        ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nlog", "not a page"),
    ] {
        let error =
            control::fetch(&parameters, &mut Canned(answer.as_bytes()), &mut || false).unwrap_err();
        assert!(error.to_string().contains(why), "{answer:?}: {error}");
    }
}
