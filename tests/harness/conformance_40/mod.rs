//! Layer 40: one table of cases, run in every way in which the same bytes can reach the server.
//!
//! A [`Case`] says what a peer sends on a connection of its own, and exactly what this server says
//! to it: each status, the fields and bodies that matter, and whether the connection lives on. The
//! cases are grouped by the section of the RFC that they are about, a file for each group, in
//! `rfc9112_40`, `rfc9110_40` and `rfc3986_40`.
//!
//! [`hold`] runs a group. What the HTTP machine and the file cache say to all bytes at once, without
//! a socket, is held against what the case expects. Every other way must give the same bytes, but for
//! the date and for the boundary between parts:
//!
//! | | without a socket ([`pure`]) | over a socket ([`socket`]) |
//! |---|---|---|
//! | all at once | × | × |
//! | byte by byte | × | × |
//! | in two pieces | at every byte | at every byte where the connection lives on; else at a few, for each takes a connection |
//! | behind another request, all at once | × | × |
//! | in front of another request, all at once | × | × |
//!
//! Over a socket each way comes without TLS and with both versions of it, a record for each piece; only
//! the cuts on a connection that lives on come without.
//!
//! Where an answer is the last, the request behind it must get none.
//!
//! In the emulator, which is slow, every case comes over a socket at once; the other ways are for a
//! few of them.

mod case;
mod judge;
mod pure;
mod site;
mod socket;

pub(crate) use case::{Answer, Case, case, get, page, request};
pub(crate) use site::{
    ALPHA, CSS, CSS_GZIP, INDEX, MODIFIED, TEST_INDEX, alpha, css, css_gzip, css_gzip_tag, dir,
    empty, index, large, large_file, spaced, tag,
};

use crate::support::repeats;
use judge::masked;
use pure::Machine;
use socket::{Target, Transport};

/// Longer requests come in larger pieces than bytes, and are cut in two at fewer places.
const SHORT_BYTES: usize = 1000;

/// In how many pieces a longer one comes.
const PIECES: usize = 50;

/// At how many places a request is cut in two where each takes a connection, or much time.
const CUTS: usize = 3;

/// More than that, sent or received, takes much time.
const MUCH_BYTES: usize = 100_000;

/// What comes before or behind a case on its connection.
const NEIGHBOUR: &[u8] = b"GET /alpha.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Holds each case against the server, in every way; fails with all that went wrong.
#[track_caller]
pub(crate) fn hold(cases: Vec<Case>) {
    let site = site::site();
    let mut machine = Machine::new(&site);
    let target = Target::start(&site);
    let neighbour = machine.answers(&[NEIGHBOUR], false).bytes;
    let mut faults = Vec::new();
    let thorough = cases.len().div_ceil(repeats(cases.len()));
    for (at, case) in cases.iter().enumerate() {
        let is_thorough = at % thorough == 0;
        let mut fault = |way: &str, what: String| {
            let sends = &case.sends[..case.sends.len().min(100)];
            faults.push(format!("{} \"{}\" {way}: {what}", case.name, sends.escape_ascii()));
        };
        let reference = machine.answers(&[&case.sends], case.ends);
        if let Err(what) = judge::judge(case, &reference) {
            fault("as such", format!("{what}\n    in {reference}"));
            continue;
        }
        for way in ways(case, reference.bytes.len()) {
            let mut expected = match way.behind {
                true => [&*neighbour, &reference.bytes].concat(),
                false => reference.bytes.clone(),
            };
            if way.in_front && !case.closes {
                expected.extend_from_slice(&neighbour);
            }
            let sends = way.among_others(&case.sends);
            let pieces = way.cut.pieces(&sends);
            let expected = masked(&expected, case);
            let outcome = machine.answers(&pieces, case.ends);
            if outcome.is_over != case.closes || masked(&outcome.bytes, case) != expected {
                fault(&format!("{} without a socket", way.name), outcome.to_string());
            }
            if !way.is_for_sockets || !(is_thorough || way.is_plain()) {
                continue;
            }
            for transport in Transport::ALL {
                let sends = way.among_others(&transport.asks(&case.sends));
                let pieces = way.cut.pieces(&sends);
                let way = format!("{} over {transport:?}", way.name);
                match target.answers(transport, &pieces, case, expected.len()) {
                    Ok(bytes) if masked(&bytes, case) == expected => (),
                    Ok(bytes) => fault(&way, bytes.escape_ascii().to_string()),
                    Err(error) => fault(&way, error.to_string()),
                }
            }
        }
        if !case.closes && case.may_be_cut && is_thorough {
            let count = match reference.bytes.len().max(case.sends.len()) {
                0..MUCH_BYTES => repeats(case.sends.len().min(SHORT_BYTES)),
                _ => repeats(CUTS),
            };
            let places = cuts(case.sends.len(), count);
            let expected = masked(&reference.bytes, case);
            if let Err(what) = target.answers_however_cut(case, places, &expected) {
                fault("cut in two on one connection", what);
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}\n", faults.len(), faults.join("\n"));
}

/// One way in which a case reaches the server.
struct Way {
    name: &'static str,
    cut: Cut,
    behind: bool,
    in_front: bool,
    is_for_sockets: bool,
}

impl Way {
    /// What is sent, with the requests besides.
    fn among_others(&self, sends: &[u8]) -> Vec<u8> {
        let besides = |is: bool| if is { NEIGHBOUR } else { &[] };
        [besides(self.behind), sends, besides(self.in_front)].concat()
    }

    /// Just what the case says, at once.
    fn is_plain(&self) -> bool {
        matches!(self.cut, Cut::Nowhere) && !self.behind && !self.in_front
    }
}

/// Where what is sent is cut.
#[derive(Clone, Copy)]
enum Cut {
    Nowhere,
    /// After each so many bytes.
    Each(usize),
    /// Before this byte.
    At(usize),
}

impl Cut {
    fn pieces(self, bytes: &[u8]) -> Vec<&[u8]> {
        match self {
            Cut::Nowhere => vec![bytes],
            Cut::Each(piece_bytes) => bytes.chunks(piece_bytes).collect(),
            Cut::At(place) => vec![&bytes[..place], &bytes[place..]],
        }
    }
}

fn ways(case: &Case, answer_bytes: usize) -> Vec<Way> {
    let way = |name, cut| Way { name, cut, behind: false, in_front: false, is_for_sockets: true };
    let mut ways = vec![
        way("at once", Cut::Nowhere),
        Way { behind: true, ..way("behind another request", Cut::Nowhere) },
    ];
    let may_have_more = case.may_be_cut || !case.closes;
    if !case.ends && may_have_more {
        ways.push(Way { in_front: true, ..way("in front of another request", Cut::Nowhere) });
    }
    let bytes = case.sends.len();
    if !case.may_be_cut || bytes < 2 {
        return ways;
    }
    ways.push(way(
        "byte by byte",
        Cut::Each(if bytes <= SHORT_BYTES { 1 } else { bytes / PIECES }),
    ));
    let pure_cuts =
        if answer_bytes.max(bytes) < MUCH_BYTES { repeats(SHORT_BYTES) } else { repeats(CUTS) };
    for place in cuts(bytes, pure_cuts) {
        ways.push(Way { is_for_sockets: false, ..way("cut in two", Cut::At(place)) });
    }
    if case.closes {
        ways.extend(cuts(bytes, repeats(CUTS)).map(|place| way("cut in two", Cut::At(place))));
    }
    ways
}

/// Places within so many bytes, `count` at most, alike far apart.
fn cuts(bytes: usize, count: usize) -> impl Iterator<Item = usize> {
    let step = bytes.div_ceil(count + 1);
    (step..bytes).step_by(step)
}
