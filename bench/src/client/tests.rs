//! The client against the floor and against servers that misbehave, over sockets.

use super::*;
use crate::floor::Floor;

use crate::tally::Errors;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Long enough for the slowest event awaited here, a refused connection tried again by a sweep.
const DURATION: Duration = Duration::from_millis(400);

fn plan(address: SocketAddr) -> Plan {
    Plan {
        targets: Targets::read(&[format!("http://{address}/")], &[]).unwrap(),
        connections: 4,
        pipeline: 1,
        requests_per_connection: None,
        wording: Wording::plain(Version::Http11),
        status: 200,
        cpus: onering::sys::affinity::allowed_cpus()[..1].to_vec(),
        warmup: Duration::ZERO,
        duration: DURATION,
        timeout: Duration::from_secs(30),
        server: None,
    }
}

fn report(plan: &Plan) -> RunReport {
    let Outcome { report, accounting } = run(plan).unwrap();
    accounting.unwrap();
    report
}

/// A floor that answers for the rest of the process's life.
fn floor(floor: Floor) -> SocketAddr {
    let (address, mut listeners) = floor.listen("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let listener = listeners.remove(0);
    std::thread::spawn(move || floor.answer(listener, None, || {}).unwrap());
    address
}

const FLOOR: Floor = Floor { body_bytes: 1024, close: false, defer_accept: false };

/// A server that does `answer` with each connection, for the rest of the process's life. The
/// number is that of the connection; number 0 is the preflight's.
fn server(answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(number, &mut stream.unwrap()));
        }
    });
    address
}

/// Whether a request (a small one, in one piece) came.
fn request(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Serves the preflight, and the rest in another way.
fn misbehaving(
    answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static,
) -> (RunReport, Errors) {
    let address = server(move |number, stream| match number {
        0 => drop(request(stream).then(|| stream.write_all(OK))),
        _ => answer(number, stream),
    });
    let report = report(&Plan { timeout: Duration::from_millis(100), ..plan(address) });
    let errors = report.errors;
    (report, errors)
}

#[test]
fn keep_alive_keeps_its_connections() {
    let mut plan = plan(floor(FLOOR));
    // Connecting comes first; then none is made in the measured interval.
    plan.warmup = Duration::from_millis(200);
    let report = report(&plan);
    assert!(report.requests > 0);
    assert_eq!((report.connects, report.errors), (0, Errors::default()));
    let bytes = report.megabytes_per_s * 1e6 * report.measured_s;
    assert!(bytes >= report.requests as f64 * 1024.0, "{report}");
    assert!(report.client.enters_per_request.unwrap() > 0.0);
    assert!(report.latency_us.unwrap().max > 0.0);
}

#[test]
fn pipelined_requests_are_all_answered() {
    let report = report(&Plan { pipeline: 16, ..plan(floor(FLOOR)) });
    assert!(report.requests > 0);
    assert_eq!(report.errors, Errors::default());
}

#[test]
fn one_request_per_connection() {
    let address = floor(Floor { close: true, ..FLOOR });
    let report = report(&Plan { requests_per_connection: Some(1), ..plan(address) });
    assert!(report.requests > 4, "{report}");
    assert_eq!(report.errors, Errors::default());
    let in_the_making = 4;
    assert!(report.connects.abs_diff(report.requests) <= in_the_making, "{report}");
}

#[test]
fn connections_of_several_requests() {
    let address = server(|_, stream| {
        // The preflight's only request is a last one, too.
        let mut left = true;
        while left {
            let mut bytes = [0; 1024];
            let Ok(length @ 1..) = stream.read(&mut bytes) else { return };
            left = !bytes[..length].windows(5).any(|window| window == b"close");
            stream.write_all(OK).unwrap();
        }
    });
    let report = report(&Plan { requests_per_connection: Some(3), ..plan(address) });
    assert!(report.requests > 12, "{report}");
    assert_eq!(report.errors, Errors::default());
    assert!((3 * report.connects).abs_diff(report.requests) <= 12, "{report}");
}

#[test]
fn http_1_0_without_persistence_reconnects() {
    let address = server(|_, stream| {
        if request(stream) {
            stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    });
    let report = report(&Plan { wording: Wording::plain(Version::Http10), ..plan(address) });
    assert!(report.connects > 4, "{report}");
    assert_eq!(report.errors, Errors::default());
}

#[test]
fn bodies_larger_than_any_buffer() {
    let address = floor(Floor { body_bytes: 1 << 20, ..FLOOR });
    let report = report(&plan(address));
    assert!(report.requests > 0);
    assert_eq!(report.errors, Errors::default());
}

#[test]
fn several_threads_share_the_load() {
    let cpus = onering::sys::affinity::allowed_cpus();
    if cpus.len() < 2 {
        eprintln!("skipped: needs two CPUs");
        return;
    }
    let mut plan = Plan { cpus: cpus[..2].to_vec(), connections: 5, ..plan(floor(FLOOR)) };
    let urls = ["a", "b", "c", "d"].map(|path| format!("http://{}/{path}", plan.targets.address));
    plan.targets = Targets::read(&urls, &[]).unwrap();
    let shares: Vec<_> =
        shares(&plan).iter().map(|s| (s.cpu, s.connections, s.first_target)).collect();
    assert_eq!(shares, [(cpus[0], 3, 0), (cpus[1], 2, 2)]);
    let report = report(&plan);
    assert!(report.requests > 0);
    assert_eq!(report.errors, Errors::default());
}

#[test]
fn the_servers_process_is_accounted_for() {
    let plan = Plan { server: Some(Pid::this()), ..plan(floor(FLOOR)) };
    let Outcome { report, accounting } = run(&plan).unwrap();
    // The floor runs in this process, so does the client.
    assert!(accounting.is_ok() && report.server.unwrap().cpus_busy > 0.0);
    let gone = Plan { server: Some(Pid::from_raw(i32::MAX)), ..plan };
    assert!(matches!(run(&gone), Err(RunError::Process(_))));
}

#[test]
fn a_server_that_resets() {
    let (_, errors) = misbehaving(|_, stream| {
        if request(stream) {
            onering::sys::socket::reset(&*stream).unwrap();
        }
    });
    assert!(errors.reset > 0, "{errors:?}");
}

#[test]
fn a_server_that_closes_in_the_middle() {
    let (report, errors) = misbehaving(|_, stream| {
        if request(stream) {
            let _ = stream.write_all(&OK[..OK.len() - 1]);
        }
    });
    assert!(errors.ended > 0 && report.requests == 0, "{errors:?}");
}

#[test]
fn a_server_that_says_nothing() {
    let (_, errors) = misbehaving(|_, stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(errors.timeout > 0, "{errors:?}");
    assert_eq!(errors.total(), errors.timeout);
}

#[test]
fn a_server_that_talks_nonsense() {
    let (_, errors) = misbehaving(|_, stream| {
        if request(stream) {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n\r\n");
        }
    });
    assert!(errors.framing > 0, "{errors:?}");
}

#[test]
fn a_server_that_sends_too_much() {
    let (report, errors) = misbehaving(|_, stream| {
        if request(stream) {
            let _ = stream.write_all(&[OK, b"!"].concat());
        }
    });
    assert!(errors.framing > 0 && report.requests > 0, "{errors:?}");
}

#[test]
fn a_server_with_wrong_answers() {
    let (report, errors) = misbehaving(|number, stream| {
        while request(stream) {
            let answer: &[u8] = match number {
                1 => b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                _ => OK,
            };
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    });
    assert!(errors.status > 0 && report.requests > 0, "{errors:?}");
    assert_eq!(errors.total(), errors.status);
}

#[test]
fn a_server_that_goes_away() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        request(&mut stream);
        stream.write_all(OK).unwrap();
        // The listener is closed before the preflight's connection, whose end is not awaited:
        // hold it until the client has been refused for sure.
        drop(listener);
        let _ = stream.read(&mut [0; 8]);
    });
    let report = report(&plan(address));
    assert_eq!(report.requests, 0);
    assert!(report.errors.connect > 0, "{report}");
}

#[test]
fn a_server_that_is_wrong_from_the_start() {
    let with = |answer: &'static [u8]| {
        let address =
            server(move |_, stream| drop(request(stream).then(|| stream.write_all(answer))));
        match run(&plan(address)) {
            Err(RunError::Preflight(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let missing = with(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    assert!(matches!(missing, PreflightError::Status { status: 404, .. }));
    assert!(matches!(with(b"hello\r\n\r\n"), PreflightError::Framing(_)));
    assert!(matches!(with(b"HTTP/1.1 200 OK\r\n"), PreflightError::Ended));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = run(&plan(closed));
    assert!(matches!(refused, Err(RunError::Preflight(PreflightError::Connect { .. }))));
}
