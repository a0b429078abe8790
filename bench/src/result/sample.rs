//! Results made up for tests: whole and consistent, of any shape.

use super::cost::{ClientCost, Resident, ServerCost, ServerUsage, Usage};
use super::latencies::Latencies;
use super::load::{
    Arrivals, Generator, HttpVersion, Load, Model, Pacing, Parameter, RequestsPerConnection,
};
use super::window::{Class, Conformity, Counts, Handshakes, Schedule, Second, Window};
use super::{RunResult, SchemaName};
use crate::histogram;
use std::collections::BTreeMap;

/// 2026-11-30 16:00:00 UTC.
const STARTED_UNIX_NS: u64 = 1_796_054_400_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// What a made-up result is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Tells generators of one run apart, and gives each its own figures.
    pub(crate) generator: u64,
    /// How much later than others it began.
    pub(crate) late_ns: u64,
    pub(crate) workload: &'static str,
    pub(crate) classes: &'static [&'static str],
    pub(crate) windows: u64,
    pub(crate) window_s: u64,
    pub(crate) requests_per_s: u64,
    /// A connection count for SPECweb99-style results.
    pub(crate) load: u64,
    /// Whether requests are due at planned moments.
    pub(crate) open: bool,
    /// Whether the server stands still for two seconds.
    pub(crate) frozen: bool,
    /// 0: not asked; 1: unknown; else: known, and the same for the same number.
    pub(crate) server: u8,
}

impl Shape {
    pub(crate) fn get() -> Self {
        Self {
            generator: 1,
            late_ns: 0,
            workload: "get",
            classes: &["get"],
            windows: 1,
            window_s: 10,
            requests_per_s: 200,
            load: 100,
            open: false,
            frozen: false,
            server: 2,
        }
    }

    pub(crate) fn web99() -> Self {
        let classes = &["class 0", "class 1", "class 2", "class 3", "CAD"];
        Self { workload: "web99", classes, windows: 3, window_s: 6, ..Self::get() }
    }

    pub(crate) fn web96() -> Self {
        Self { workload: "web96", windows: 10, window_s: 2, open: true, ..Self::get() }
    }
}

pub(crate) fn closed() -> RunResult {
    of(Shape::get())
}

pub(crate) fn open() -> RunResult {
    of(Shape { open: true, frozen: true, ..Shape::get() })
}

pub(crate) fn web99() -> RunResult {
    of(Shape::web99())
}

pub(crate) fn web96() -> RunResult {
    of(Shape::web96())
}

/// A result of this shape; the same for the same shape.
pub(crate) fn of(shape: Shape) -> RunResult {
    let mut parameters = BTreeMap::new();
    if shape.workload == "web99" {
        parameters.insert("load".to_owned(), Parameter::Count(shape.load));
        parameters.insert("mix".to_owned(), Parameter::Text("full".to_owned()));
    }
    let connections = shape.load * shape.generator.max(1);
    let model = if shape.open {
        let rate_per_s = shape.requests_per_s as f64;
        Model::Open { rate_per_s, arrivals: Arrivals::Poisson, connections }
    } else {
        Model::Closed { connections }
    };
    RunResult {
        schema: SchemaName::Run2,
        load: Load {
            workload: shape.workload.to_owned(),
            parameters,
            target: "http://127.0.0.1:8080/<\"&".to_owned(),
            targets: 1,
            pipeline: 1,
            requests_per_connection: RequestsPerConnection::Unlimited,
            http: HttpVersion::Http11,
            fields: Vec::new(),
            status: 200,
            pacing: Pacing::None,
            tls: None,
        },
        generators: vec![Generator {
            started_unix_ns: STARTED_UNIX_NS,
            tool: "onering-bench".to_owned(),
            version: "0.1.0".to_owned(),
            command_line: vec!["onering-bench".to_owned(), format!("run-{}", shape.generator)],
            model,
            seed: Some(shape.generator),
            cpus: vec![1],
            fingerprint: None,
        }],
        windows: (0..shape.windows).map(|number| Window::new(counts(shape, number))).collect(),
    }
}

/// The latencies of one class in one second, ns: a long tail, and what waited out a freeze.
fn drawn(shape: Shape, seed: u64, second: u64, requests: u64) -> (Latencies, Latencies) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut service, mut response) = (histogram::empty(), histogram::empty());
    let thaw = shape.frozen && second == 5;
    for i in 0..requests {
        let own = (180_000.0 * (-(1.0 - random.f64()).ln()).powf(1.5)) as u64 + 60_000;
        let stalled = thaw && i % 2 == 0;
        let waited = if stalled { 2 * SECOND_NS / requests.max(1) * (requests - i) } else { 0 };
        service.saturating_record(if stalled && i == 0 { 2 * SECOND_NS } else { own });
        response.saturating_record(own + waited + 20_000);
    }
    (Latencies::from(&service), Latencies::from(&response))
}

fn counts(shape: Shape, number: u64) -> Counts {
    let begin_unix_ns =
        STARTED_UNIX_NS + shape.late_ns + (2 + number * (shape.window_s + 3)) * SECOND_NS;
    let rate = if shape.workload == "web96" {
        (number + 1) * shape.requests_per_s
    } else {
        shape.requests_per_s
    };
    let mut classes: Vec<Class> =
        shape.classes.iter().map(|name| empty_class(name, shape.open)).collect();
    let mut seconds = Vec::new();
    let mut all = Latencies::default();
    for second in 0..shape.window_s {
        let still = shape.frozen && (3..5).contains(&second);
        let mut waiting = Latencies::default();
        for (i, class) in classes.iter_mut().enumerate() {
            let seed = shape.generator * 7919 + number * 101 + second * 13 + i as u64;
            let requests = if still { 0 } else { rate / shape.classes.len() as u64 };
            let (service, response) = drawn(shape, seed, second, requests);
            class.requests += requests;
            class.received_bytes += requests * 1400;
            class.service = class.service.and(&service).unwrap();
            class.first_byte = class.service.clone();
            all = all.and(&service).unwrap();
            let shown = if shape.open { &response } else { &service };
            waiting = waiting.and(shown).unwrap();
            class.response = class.response.take().map(|sum| sum.and(&response).unwrap());
        }
        seconds.push(Second {
            unix_s: begin_unix_ns / SECOND_NS + second,
            requests: waiting.count(),
            received_bytes: waiting.count() * 1400,
            errors: if still { 3 } else { 0 },
            latencies: waiting,
        });
    }
    let requests = classes.iter().map(|class| class.requests).sum();
    let errors = seconds.iter().map(|second| second.errors).sum();
    let duration_ns = shape.window_s * SECOND_NS;
    let connects = if number == 0 { 0 } else { requests / 3 };
    Counts {
        name: match shape.workload {
            "web99" => format!("iteration {}", number + 1),
            "web96" => format!("{rate}/s"),
            _ => "measured".to_owned(),
        },
        begin_unix_ns,
        duration_ns,
        requests,
        received_bytes: requests * 1400,
        sent_bytes: requests * 120,
        connects,
        handshakes: Handshakes::default(),
        errors: [("timeout", errors)].into_iter().collect(),
        classes,
        connect: drawn(shape, number, 0, connects).0,
        tls: Latencies::default(),
        schedule: shape.open.then(|| Schedule {
            planned: rate * shape.window_s,
            never_sent: 0,
            unanswered: 0,
            completed: None,
            lag: all.clone(),
            behind: false,
        }),
        seconds,
        client: ClientCost {
            usage: Usage { cpu_ns: 20_000 * requests, ..Usage::default() },
            busiest_thread_ns: 20_000 * requests,
            enters: requests / 3,
        },
        server: server(shape.server, requests),
        conformity: (shape.workload == "web99").then(|| Conformity {
            requested_connections: shape.load,
            conforming_connections: shape.load - number % 2,
            operations: requests,
            response_ns_sum: requests * 351_000_000,
            bits_per_s_sum: shape.load * 339_900,
            opened: connects,
        }),
    }
}

pub(crate) fn empty_class(name: &str, open: bool) -> Class {
    Class {
        name: name.to_owned(),
        requests: 0,
        received_bytes: 0,
        first_byte: Latencies::default(),
        service: Latencies::default(),
        response: open.then(Latencies::default),
    }
}

fn server(kind: u8, requests: u64) -> ServerCost {
    match kind {
        0 => ServerCost::NotAsked,
        1 => ServerCost::Unknown { reason: "the process ended".to_owned() },
        _ => ServerCost::Known {
            cost: ServerUsage {
                usage: Usage {
                    cpu_ns: 3910 * requests * u64::from(kind),
                    voluntary_switches: requests / 50,
                    involuntary_switches: 7,
                },
                processes: 2,
                resident: Some(Resident {
                    begin_bytes: 12 << 20,
                    peak_bytes: 14 << 20,
                    end_bytes: 13 << 20,
                }),
            },
        },
    }
}
