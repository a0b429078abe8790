//! Searches over made-up servers, in virtual time.

use super::*;
use crate::histogram;
use crate::result::latencies::Latencies;
use fastrand::Rng;
use std::convert::Infallible;

/// One server that answers one request after another, each after a time drawn from an exponential
/// distribution (M/M/1): at `rate` of `capacity`, response times are exponential with the mean
/// 1 / (capacity − rate).
struct Queue {
    capacity_per_s: f64,
    random: Rng,
}

impl Queue {
    fn new(capacity_per_s: f64) -> Self {
        Self { capacity_per_s, random: Rng::with_seed(99) }
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.random.f64()).ln() / rate
    }

    /// Response times of so many requests: each waits for what the one before it leaves to be done
    /// (Lindley's recursion).
    fn observe(&mut self, rate: f64, requests: u64) -> Observation {
        let mut histogram = histogram::empty();
        let mut waiting_s = 0.0_f64;
        for _ in 0..requests {
            let response_s = waiting_s + self.exponential(self.capacity_per_s);
            histogram.saturating_record((response_s * 1e9) as u64);
            waiting_s = (response_s - self.exponential(rate)).max(0.0);
        }
        Observation {
            response: Latencies::from(&histogram),
            answered_per_s: rate.min(self.capacity_per_s),
            ..Observation::default()
        }
    }
}

fn objectives(texts: &[&str]) -> Vec<Objective> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A server whose longest response takes as many µs as it is asked requests per second, at each of
/// the given moods in turn.
fn proportional(rate: f64, mood: f64) -> Observation {
    let mut histogram = histogram::empty();
    histogram.saturating_record_n((rate * mood * 1e3) as u64, 1000);
    Observation { response: Latencies::from(&histogram), ..Observation::default() }
}

fn search(
    texts: &[&str],
    search: Search,
    mut measure: impl FnMut(f64) -> Option<Observation>,
) -> Sweep {
    let measure = |rate| Ok::<_, Infallible>(measure(rate));
    match sweep(&objectives(texts), search, measure, |_| {}) {
        Ok(sweep) => sweep,
        Err(never) => match never {},
    }
}

#[test]
fn the_knee_of_a_queue_is_found_where_theory_has_it() {
    let mut queue = Queue::new(10_000.0);
    let sweep = search(&["p99=5ms"], Search::default(), |rate| Some(queue.observe(rate, 400_000)));
    // p99 = ln 100 / (capacity − rate), which is 5 ms at 9 079/s.
    let expected = 10_000.0 - 100_f64.ln() / 0.005;
    let best = sweep.best_per_s.unwrap();
    assert!((best / expected - 1.0).abs() < 0.03, "{best} {expected}\n{sweep:#?}");
    let End::Knee { missed_per_s } = sweep.end else { panic!("{:?}", sweep.end) };
    assert!(missed_per_s > best && missed_per_s <= best * 1.02, "{missed_per_s}");
}

#[test]
fn of_several_objectives_the_hardest_decides() {
    let mut queue = Queue::new(10_000.0);
    let hard = search(&["p50=1s", "p99.9=4ms", "errors=1%"], Search::default(), |rate| {
        Some(queue.observe(rate, 400_000))
    });
    let expected = 10_000.0 - 1000_f64.ln() / 0.004;
    let best = hard.best_per_s.unwrap();
    assert!((best / expected - 1.0).abs() < 0.03, "{best} {expected}");
    let missed = hard.steps.iter().filter_map(|step| match step.verdict {
        Verdict::Missed { objective } => Some(objective.to_string()),
        _ => None,
    });
    assert!(missed.collect::<Vec<_>>().iter().all(|objective| objective == "p99.9=4ms"));
}

#[test]
fn a_first_rate_that_is_too_high_is_stepped_down_from() {
    let from = Search { from_per_s: 64_000.0, ..Search::default() };
    let sweep = search(&["max=5ms"], from, |rate| Some(proportional(rate, 1.0)));
    let best = sweep.best_per_s.unwrap();
    assert!((4900.0..=5000.0).contains(&best), "{best}");
    let hopeless = search(&["max=5ms"], from, |rate| Some(proportional(rate, 1e6)));
    assert_eq!((hopeless.best_per_s, hopeless.end), (None, End::NoneMet));
    assert_eq!(hopeless.steps.last().unwrap().rate_per_s, 1.0);
}

#[test]
fn a_generator_that_falls_behind_ends_the_search_as_the_reason() {
    let sweep = search(&["max=1s"], Search::default(), |rate| {
        Some(Observation { behind: rate > 5000.0, ..proportional(rate, 1.0) })
    });
    assert_eq!(sweep.best_per_s, Some(4000.0));
    assert_eq!(sweep.end, End::GeneratorBehind { rate_per_s: 8000.0 });
    assert!(sweep.to_string().contains("that is its limit, not the server's"), "{sweep}");
    // It was given a second chance, and no third.
    let behind = sweep.steps.iter().filter(|step| step.verdict == Verdict::Behind).count();
    assert_eq!(behind, 2);
}

#[test]
fn a_hiccup_of_the_generator_is_forgiven() {
    let mut measurements = 0;
    let sweep = search(&["max=5ms"], Search::default(), |rate| {
        measurements += 1;
        Some(Observation { behind: measurements == 2, ..proportional(rate, 1.0) })
    });
    assert!(matches!(sweep.end, End::Knee { .. }), "{:?}", sweep.end);
}

#[test]
fn what_is_near_the_limit_is_measured_again_and_the_majority_decides() {
    // Every third measurement is twice as slow.
    let mut measurements = 0;
    let sweep = search(&["max=5ms"], Search::default(), |rate| {
        measurements += 1;
        Some(proportional(rate, if measurements % 3 == 0 { 1.4 } else { 1.0 }))
    });
    let best = sweep.best_per_s.unwrap();
    assert!((4900.0..=5000.0).contains(&best), "{best}\n{sweep:#?}");
    let of = |rate: f64| sweep.steps.iter().filter(|step| step.rate_per_s == rate).count();
    // 1 000 and 2 000 are clear; so is 8 000. What was tried between is not.
    assert_eq!((of(1000.0), of(2000.0), of(8000.0)), (1, 1, 1));
    assert!(of(4000.0) >= 2, "{sweep:#?}");
}

#[test]
fn no_rate_above_the_highest_is_tried() {
    let limited = Search { most_per_s: 3000.0, ..Search::default() };
    let sweep = search(&["max=1s"], limited, |rate| Some(proportional(rate, 1.0)));
    assert_eq!((sweep.best_per_s, sweep.end), (Some(3000.0), End::Highest));
    let rates: Vec<_> = sweep.steps.iter().map(|step| step.rate_per_s).collect();
    assert_eq!(rates, [1000.0, 2000.0, 3000.0]);
}

#[test]
fn an_interruption_keeps_what_was_found() {
    let mut measurements = 0;
    let sweep = search(&["max=1s"], Search::default(), |rate| {
        measurements += 1;
        (measurements < 3).then(|| proportional(rate, 1.0))
    });
    assert_eq!((sweep.best_per_s, sweep.end), (Some(2000.0), End::Interrupted));
    assert_eq!(sweep.steps.len(), 2);
}

#[test]
fn a_measurement_that_fails_ends_the_search() {
    let result = sweep(&objectives(&["max=1s"]), Search::default(), |_| Err("no server"), |_| {});
    assert_eq!(result.unwrap_err(), "no server");
}

#[test]
fn json_reads_back_as_it_was() {
    let sweep = search(&["max=5ms"], Search::default(), |rate| Some(proportional(rate, 1.0)));
    let json = serde_json::to_string(&sweep).unwrap();
    assert!(json.starts_with(r#"{"schema":"onering-bench/sweep/1""#), "{json}");
    assert_eq!(serde_json::from_str::<Sweep>(&json).unwrap(), sweep);
}
