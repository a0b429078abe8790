//! Servers that answer one request well and all others badly: whatever they do is counted by its kind,
//! in closed and in open loops, and nothing hangs or is lost.

use crate::floor::PROGRAM;
use onering_bench::result::RunResult;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";

/// What becomes of a connection after the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Close,
}

/// Reads a request; `None` where there is none.
fn request(stream: &mut TcpStream) -> io::Result<Option<Then>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    Ok(Some(if head.contains("connection: close") { Then::Close } else { Then::GoOn }))
}

/// How a connection is dealt with.
type Manner = fn(&mut TcpStream) -> io::Result<()>;

/// Answers each request with the same bytes.
fn answer(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    while request(stream)?.is_some() {
        stream.write_all(bytes)?;
    }
    Ok(())
}

/// Answers each request with the same bytes, and closes when it is told to.
fn answer_all(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    while let Some(then) = request(stream)? {
        stream.write_all(bytes)?;
        if then == Then::Close {
            break;
        }
    }
    Ok(())
}

/// Answers one request and closes.
fn answer_once(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    request(stream)?;
    stream.write_all(bytes)
}

/// A server whose first connection, which asks whether it answers as it must, is dealt with well.
fn start(manner: Manner) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        let mut streams = listener.incoming().map_while(Result::ok);
        // A client that is gone ends a connection; what it means is the client's to tell.
        let _ = streams.next().map(|mut stream| answer_once(&mut stream, GOOD));
        for mut stream in streams {
            thread::spawn(move || manner(&mut stream));
        }
    });
    url
}

fn run(url: &str, timeout: &str, options: &[&str]) -> Output {
    let load = ["--connections", "2", "--warmup", "0s", "--duration", "400ms", "--quiet"];
    Command::new(PROGRAM)
        .args(["run", "--target", url, "--timeout", timeout, "--json", "-"])
        .args(load)
        .args(options)
        .output()
        .expect("the program runs")
}

#[track_caller]
fn counts(output: &Output) -> Value {
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    result["windows"][0]["counts"].clone()
}

const MANNERS: [(&str, &str, Manner); 14] = [
    ("closes at once", "ended", |_| Ok(())),
    ("closes when it is asked", "ended", |stream| request(stream).map(drop)),
    ("closes in the body", "ended", |stream| answer_once(stream, &GOOD[..GOOD.len() - 1])),
    ("never answers", "timeout", |stream| answer(stream, b"")),
    ("stops in the head", "timeout", |stream| answer(stream, &GOOD[..20])),
    ("stops in the body", "timeout", |stream| answer(stream, &GOOD[..GOOD.len() - 1])),
    ("speaks something else", "framing", |stream| answer(stream, b"220 ready\r\n\r\n")),
    ("switches protocols", "framing", |stream| {
        answer(stream, b"HTTP/1.1 101 Switching Protocols\r\n\r\n\0\r\n\r\n")
    }),
    ("answers twice", "framing", |stream| answer(stream, &[GOOD, GOOD].concat())),
    ("sends chunks", "framing", |stream| {
        answer(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    }),
    ("ends bodies by the close", "framing", |stream| {
        answer_once(stream, b"HTTP/1.1 200 OK\r\n\r\nbody")
    }),
    ("has no end of a head", "framing", |stream| {
        answer(stream, &[b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; 1 << 17]].concat())
    }),
    ("has another status", "status", |stream| {
        answer_all(stream, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    }),
    ("has another length", "length", |stream| {
        answer_all(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbod")
    }),
];

#[test]
fn whatever_a_server_does_wrong_is_counted_by_its_kind() {
    for (what, kind, manner) in MANNERS {
        // Only what is a timeout is to be one, however busy the machine is.
        let timeout = if kind == "timeout" { "200ms" } else { "30s" };
        for model in [&[][..], &["--close"], &["--rate", "50"], &["--rate", "50", "--close"]] {
            let output = run(&start(manner), timeout, model);
            let counts = counts(&output);
            let errors = counts["errors"].as_object().expect("kinds");
            // A connection that is closed at once may be so before or after the request is sent.
            let kinds: Vec<_> = errors.keys().filter(|kind| *kind != "reset").collect();
            assert!(kinds == [kind] || kinds.is_empty(), "{what} {model:?}: {errors:?}");
            assert!(!errors.is_empty(), "{what} {model:?}");
            // A busy machine is late.
            assert!(matches!(output.status.code(), Some(1 | 5)), "{what} {model:?}: {output:?}");
        }
    }
}

#[test]
fn answers_that_come_after_the_end_are_in_a_result_that_can_be_read() {
    let url = start(|stream| {
        while request(stream)?.is_some() {
            thread::sleep(Duration::from_millis(2500));
            stream.write_all(GOOD)?;
        }
        Ok(())
    });
    let output = run(&url, "30s", &["--rate", "4"]);
    let result = RunResult::parse(&output.stdout).expect("it is a result");
    let counts = result.windows[0].counts();
    let schedule = counts.schedule.as_ref().expect("an open loop");
    assert_eq!(counts.requests, schedule.planned, "{output:?}");
    assert!(!schedule.behind, "it is the server that is slow");
}

#[test]
fn a_rate_that_a_server_does_not_reach_is_no_success() {
    // Two connections, each of which is answered once in 100 ms, and 200 requests a second.
    let url = start(|stream| {
        while request(stream)?.is_some() {
            thread::sleep(Duration::from_millis(100));
            stream.write_all(GOOD)?;
        }
        Ok(())
    });
    let output = run(&url, "1s", &["--rate", "200"]);
    let result = RunResult::parse(&output.stdout).expect("it is a result");
    assert!(result.missed() > 0, "{output:?}");
    assert!(matches!(output.status.code(), Some(1 | 5)), "{output:?}");
}
