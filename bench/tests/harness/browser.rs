//! A browser without a window, driven over a pair of pipes by its debugging protocol: messages in
//! JSON, each ended by a zero byte.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// How long the browser may take for anything.
const GUARD: Duration = Duration::from_secs(30);

/// What one page has in it, and what it asked for and complained about.
pub(crate) struct Browser {
    process: Child,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    /// Events of the page that have been seen, in order.
    pub(crate) events: Vec<Value>,
    _home: TempDir,
}

impl Browser {
    /// Whether there is one on this machine.
    pub(crate) fn is_here() -> bool {
        let ask = Command::new("chromium").arg("--version").stdout(Stdio::null()).status();
        ask.is_ok_and(|status| status.success())
    }

    /// Starts it with an empty page, no name of any host resolving.
    pub(crate) fn start() -> Self {
        let home = TempDir::new().expect("a directory can be made");
        let pipe = |name: &str| {
            let path = home.path().join(name);
            mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe can be made");
            path
        };
        let (input, output) = (pipe("input"), pipe("output"));
        // The protocol is spoken over descriptors 3 and 4, which only a shell can set up without
        // unsafe code.
        let process = Command::new("sh")
            .args(["-c", r#"in=$1 out=$2; shift 2; exec chromium "$@" 3<"$in" 4>"$out""#, "sh"])
            .args([&input, &output])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .args(["--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND"])
            .arg(format!("--user-data-dir={}", home.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        let to = File::options().write(true).open(&input).expect("the browser reads");
        let messages = BufReader::new(File::open(&output).expect("the browser writes"));
        let (send, from) = channel();
        std::thread::spawn(move || {
            for message in messages.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let (sent, events) = (0, Vec::new());
        let mut browser = Self { process, to, from, session: None, sent, events, _home: home };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let ask = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", ask);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Asks, and waits for the answer; events that come meanwhile are kept.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let message = self.next();
            if message["id"] == json!(self.sent) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn next(&mut self) -> Value {
        self.from.recv_timeout(GUARD).expect("the browser answers")
    }

    /// Opens a file and waits until all of it is there.
    pub(crate) fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// Shows the page `width` wide, light or dark.
    pub(crate) fn show(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", scheme);
    }

    /// What an expression is in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", ask);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// The events of one kind so far.
    pub(crate) fn seen(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell has become the browser, and its other processes end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
