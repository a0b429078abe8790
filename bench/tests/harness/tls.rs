//! TLS against a real server: nginx on loopback, both versions, handshakes in full and resumed, bodies
//! of all sizes.

use serde_json::Value;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Until then everything that is waited for has come, on the slowest machine.
const GUARD: Duration = Duration::from_secs(30);

const VERSIONS: [(&str, &str); 2] = [("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")];

/// An nginx that speaks TLS, with a certificate for `localhost`.
struct Nginx {
    process: Child,
    directory: TempDir,
    address: SocketAddr,
}

impl Nginx {
    /// `None`, said aloud, where there is no nginx.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let address = free_address();
        let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate");
        let write =
            |name: &str, text: &[u8]| fs::write(directory.path().join(name), text).expect("a file");
        write("certificate.pem", identity.cert.pem().as_bytes());
        write("key.pem", identity.signing_key.serialize_pem().as_bytes());
        write("1k", &body(1 << 10));
        write("100k", &body(100 << 10));
        write("1m", &body(1 << 20));
        write("nginx.conf", configuration(address, directory.path()).as_bytes());
        let started = Command::new("nginx")
            .arg("-p")
            .arg(directory.path())
            .args(["-e", "stderr", "-c", "nginx.conf"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let process = match started {
            Ok(process) => process,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                eprintln!("skipped: nginx is not installed");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let mut nginx = Self { process, directory, address };
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert_eq!(nginx.process.try_wait().expect("a child"), None, "nginx is gone");
            assert!(begin.elapsed() < GUARD, "nginx does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        Some(nginx)
    }

    fn url(&self, file: &str) -> String {
        format!("https://localhost:{}/{file}", self.address.port())
    }

    fn certificate(&self) -> String {
        self.directory.path().join("certificate.pem").display().to_string()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(address: SocketAddr, directory: &Path) -> String {
    let directory = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {directory}/{name};\n"))
        .concat();
    format!(
        "daemon off;
master_process off;
pid {directory}/pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000;
{temporary}
    server {{
        listen {address} ssl;
        root {directory};
        ssl_certificate certificate.pem;
        ssl_certificate_key key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:sessions:1m;
    }}
}}
"
    )
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number")
}

/// Bytes that are nowhere the same as a little later.
fn body(length: usize) -> Vec<u8> {
    (0..length).map(body_byte).collect()
}

fn body_byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// How many [`bench`] holds open.
const CONNECTIONS: u64 = 8;

/// Runs the load generator briefly; more `words` win over those here.
fn bench(url: &str, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onering-bench"))
        .args(["run", "--target", url, "--json", "-"])
        .args(["--connections", &CONNECTIONS.to_string()])
        .args(["--warmup", "300ms", "--duration", "700ms"])
        .args(words)
        .output()
        .expect("the load generator")
}

/// The result of a run in which nothing went wrong.
fn measured(url: &str, words: &[&str]) -> Value {
    let output = bench(url, words);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{words:?}: {text}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn count(result: &Value, path: &str) -> u64 {
    let found = result.pointer(&format!("/windows/0/counts/{path}"));
    found.and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {result}"))
}

#[test]
fn tls_keep_alive_in_both_versions() {
    let Some(nginx) = Nginx::start() else { return };
    for (version, protocol) in VERSIONS {
        let result = measured(&nginx.url("1k"), &["--tls-version", version]);
        // Mostly all are made before the measured interval.
        let full = count(&result, "handshakes/full");
        assert!(full <= CONNECTIONS, "{version}: {full}");
        assert!(count(&result, "requests") > full + CONNECTIONS, "{version}");
        let tls = &result["load"]["tls"];
        assert_eq!(tls["protocol"], protocol);
        assert_eq!(tls["certificate_verified"], false);
    }
}

#[test]
fn tls_full_handshakes_are_as_many_as_connections() {
    let Some(nginx) = Nginx::start() else { return };
    for (version, _) in VERSIONS {
        let result = measured(&nginx.url("1k"), &["--tls-version", version, "--close"]);
        let (full, resumed) =
            (count(&result, "handshakes/full"), count(&result, "handshakes/resumed"));
        assert!(full > 0, "{version}");
        assert_eq!(resumed, 0, "{version}");
        assert_eq!(count(&result, "connects"), full);
    }
}

#[test]
fn tls_sessions_are_resumed_in_the_share_asked_for() {
    let Some(nginx) = Nginx::start() else { return };
    for (version, _) in VERSIONS {
        for percent in ["50", "90", "100"] {
            let words = ["--tls-version", version, "--close", "--tls-resume", percent];
            let result = measured(&nginx.url("1k"), &words);
            let full = count(&result, "handshakes/full") as f64;
            let resumed = count(&result, "handshakes/resumed") as f64;
            let (all, share) = (full + resumed, percent.parse::<f64>().unwrap() / 100.0);
            let sigma = (all * share * (1.0 - share)).sqrt();
            assert!(all > 0.0, "{version} {percent}");
            // The first handshake of each connection is full: there is no session yet.
            assert!(
                (resumed - all * share).abs() <= 4.0 * sigma + CONNECTIONS as f64,
                "{version} {percent} %: {resumed} of {all}"
            );
        }
    }
}

/// By its own record of sessions: nginx does not give the same client tickets.
#[test]
fn tls_sessions_are_resumed_by_id() {
    let Some(nginx) = Nginx::start() else { return };
    let words = ["--workload", "handshake", "--tls-resume", "100", "--tls-resume-by", "id"];
    let result = measured(&nginx.url("1k"), &words);
    assert_eq!(result["load"]["tls"]["protocol"], "TLSv1.2");
    assert_eq!(result["load"]["tls"]["resumed_by"], "id");
    assert!(count(&result, "handshakes/resumed") > 0);
    assert!(count(&result, "handshakes/full") <= CONNECTIONS);
    let refused = bench(&nginx.url("1k"), &["--tls-resume-by", "id", "--tls-version", "1.3"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn tls_handshakes_are_classes_with_times_from_the_beginning_of_the_connection() {
    let Some(nginx) = Nginx::start() else { return };
    let words = ["--workload", "handshake", "--tls-resume", "50"];
    let result = measured(&nginx.url("1k"), &words);
    let window = &result["windows"][0]["counts"];
    let classes = window["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 2);
    for (class, name) in classes.iter().zip(["full", "resumed"]) {
        assert_eq!(class["name"], name);
        assert!(class["requests"].as_u64().unwrap() > 0, "{name}");
        // The connect and the handshake come before the request, and count.
        let p50 = |latencies: &serde_json::Value| latencies["summary"]["p50_us"].as_f64().unwrap();
        assert!(p50(&class["service"]) > p50(&window["connect"]), "{name}");
    }
    assert_eq!(
        result["load"]["parameters"]["service_time_from"],
        "the beginning of the connection"
    );
}

#[test]
fn tls_verifies_the_certificate_if_told_who_vouches_for_it() {
    let Some(nginx) = Nginx::start() else { return };
    let certificate = nginx.certificate();
    let result = measured(&nginx.url("1k"), &["--cacert", &certificate]);
    assert_eq!(result["load"]["tls"]["certificate_verified"], true);
    let refused = bench(&nginx.url("1k"), &["--cacert", &certificate, "--sni", "example.org"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{text}");
    assert!(text.contains("certificate is for another name"), "{text}");
}

#[test]
fn tls_spoken_by_one_side_only_is_told_before_the_run() {
    let Some(nginx) = Nginx::start() else { return };
    let plain = nginx.url("1k").replace("https", "http");
    let text = |url: &str| {
        let output = bench(url, &[]);
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    };
    let told = text(&plain);
    assert!(told.contains("status 400"), "{told}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let told = text(&url);
    assert!(told.contains("is not TLS"), "{told}");
}
