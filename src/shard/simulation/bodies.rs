//! Requests with bodies: made up, good and bad, with their answers.

use std::fmt::Write as _;

use super::client::{Body, Exchange};
use super::site::BODY_BYTES;

/// What looks like something else, if the body's end is looked for in the wrong place.
const WORDS: [&str; 8] = [
    "a",
    "hello",
    "\r\n",
    "0\r\n\r\n",
    "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
    "5\r\n",
    ";",
    "\n",
];

const EXTENSIONS: [&str; 5] = ["", "", ";a", ";a=b;c", " ; a = \"b;\\\"c\\\"\""];
const TRAILERS: [&str; 4] = ["", "", "X: y\r\n", "Content-Length: 5\r\nTransfer-Encoding: x\r\n"];

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    TooLarge,
    /// A chunk has more data than its size says.
    Data,
    Size,
    Extension,
    Trailer,
}

pub(super) fn exchange(random: &mut fastrand::Rng) -> Exchange {
    let (line, mut status, mut body) = *random
        .choice(&[
            ("POST / HTTP/1.1", 405, Body::Any),
            ("PUT /small.txt HTTP/1.1", 405, Body::Any),
            ("FROB / HTTP/1.1", 501, Body::Any),
            ("GET /small.txt HTTP/1.1", 200, Body::Small),
            ("GET /large.bin HTTP/1.1", 200, Body::Large),
            ("OPTIONS * HTTP/1.1", 204, Body::None),
        ])
        .expect("there are some");
    let is_chunked = random.bool();
    let fault = match random.u8(..12) {
        0 => Fault::TooLarge,
        1 if is_chunked => Fault::Data,
        2 if is_chunked => Fault::Size,
        3 if is_chunked => Fault::Extension,
        4 if is_chunked => Fault::Trailer,
        _ => Fault::None,
    };
    let is_last = fault != Fault::None || random.u8(..8) == 0;
    // Whether a fault in a body is seen that may be declined depends on what comes with the head.
    let may_be_declined = fault == Fault::None && random.u8(..6) == 0;
    if fault != Fault::None {
        status = if fault == Fault::TooLarge { 413 } else { 400 };
        body = Body::Any;
    }
    let mut request = format!("{line}\r\nHost: a\r\n");
    if may_be_declined {
        request.push_str("Expect: 100-continue\r\n");
    }
    if is_last && fault == Fault::None {
        request.push_str("Connection: close\r\n");
    }
    let data = data(fault, random);
    if is_chunked {
        request.push_str("Transfer-Encoding: chunked\r\n\r\n");
        chunks(&data, fault, &mut request, random);
    } else {
        let _ = write!(request, "Content-Length: {}\r\n\r\n{data}", data.len());
    }
    Exchange { request: request.into(), status, body, is_last, parts: false, may_be_declined }
}

fn data(fault: Fault, random: &mut fastrand::Rng) -> String {
    let most = [1, 20, BODY_BYTES][random.usize(..3)];
    let bytes = match fault {
        Fault::TooLarge => BODY_BYTES + random.usize(1..100),
        _ => random.usize(1..=most),
    };
    let mut data = String::new();
    while data.len() < bytes {
        data.push_str(WORDS[random.usize(..WORDS.len())]);
    }
    data.truncate(bytes);
    data
}

fn chunks(mut data: &str, fault: Fault, request: &mut String, random: &mut fastrand::Rng) {
    let most = [1, 7, 300, usize::MAX][random.usize(..4)];
    while !data.is_empty() {
        let (chunk, rest) = data.split_at(random.usize(1..=most.min(data.len())));
        let extensions = EXTENSIONS[random.usize(..EXTENSIONS.len())];
        let _ = write!(request, "{:x}{extensions}\r\n{chunk}\r\n", chunk.len());
        data = rest;
    }
    let (last, trailers) = match fault {
        Fault::None | Fault::TooLarge => ("0", TRAILERS[random.usize(..TRAILERS.len())]),
        Fault::Data => ("1\r\nab\r\n0", ""),
        Fault::Size => ("0x0", ""),
        Fault::Extension => ("1;\nxx\r\n2f\r\n0", ""),
        Fault::Trailer => ("0", "GET / HTTP/1.1\r\n"),
    };
    let _ = write!(request, "{last}\r\n{trailers}\r\n");
}
