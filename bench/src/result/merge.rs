//! Results of several generators that loaded one server at the same time, as one result.
//!
//! Merging is exact: histograms, counts and sums add up, seconds are those of the wall clock, and
//! what is read follows from the sums. It is associative and commutative, refusals included: whatever
//! the order, the same results are merged to the same one, or are refused.

use super::RunResult;
use super::cost::{ClientCost, ServerCost, Usage};
use super::latencies::Latencies;
use super::load::{Arrivals, Generator, Load, Model};
use super::window::{
    Class, Conformity, Counts, Errors, Handshakes, Schedule, Second, Span, Window,
};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The generators of one run start together: this share of the time in which any of them measured,
/// all of them must have measured, or the sum of their rates would be no rate.
const COMMON_SHARE_MIN: f64 = 0.9;

/// Why two results are not of one run: the first difference found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// Something that must be the same is not.
    #[error("{what}: {left} and {right}")]
    Differs {
        /// The field.
        what: String,
        /// In the one result.
        left: String,
        /// In the other.
        right: String,
    },
    /// The windows do not lie upon each other.
    #[error(
        "window {window:?}: the generators measured together in only {common_percent} % of it\n  \
         fix: start them at the same moment (--start-at)"
    )]
    Apart {
        /// The window's name.
        window: String,
        /// How much of the time is common to all.
        common_percent: u64,
    },
    /// A generator is in both.
    #[error("both hold the result of the generator started as {0:?}")]
    Twice(String),
    /// The sums are beyond 2⁶⁴.
    #[error("there is more than can be counted")]
    TooMuch,
}

/// `left` if `right` is the same.
fn same<T: PartialEq + Debug>(what: impl Into<String>, left: T, right: T) -> Result<T, Unlike> {
    if left == right {
        return Ok(left);
    }
    let (left, right) = (format!("{left:?}"), format!("{right:?}"));
    Err(Unlike::Differs { what: what.into(), left, right })
}

/// The sum.
fn add(left: u64, right: u64) -> Result<u64, Unlike> {
    left.checked_add(right).ok_or(Unlike::TooMuch)
}

/// All latencies of both.
fn join(left: &Latencies, right: &Latencies) -> Result<Latencies, Unlike> {
    left.and(right).ok_or(Unlike::TooMuch)
}

/// Both, or neither.
fn both<T>(
    what: &str,
    left: Option<&T>,
    right: Option<&T>,
    merge: impl FnOnce(&T, &T) -> Result<T, Unlike>,
) -> Result<Option<T>, Unlike> {
    same(format!("whether there is a {what}"), left.is_some(), right.is_some())?;
    left.zip(right).map(|(left, right)| merge(left, right)).transpose()
}

impl RunResult {
    /// This result and another of the same run, by other generators.
    pub fn merge(self, other: Self) -> Result<Self, Unlike> {
        let load = merge_load(self.load, other.load)?;
        let generators = merge_generators(self.generators, other.generators)?;
        same("the number of windows", self.windows.len(), other.windows.len())?;
        let pairs = self.windows.into_iter().zip(other.windows);
        let windows =
            pairs.map(|(left, right)| merge_window(&left, &right)).collect::<Result<_, _>>()?;
        Ok(Self { schema: self.schema, load, generators, windows })
    }
}

fn merge_load(left: Load, right: Load) -> Result<Load, Unlike> {
    same("the workload", &left.workload, &right.workload)?;
    same("the target", &left.target, &right.target)?;
    let names = left.parameters.keys().chain(right.parameters.keys());
    for name in names {
        same(
            format!("the parameter {name}"),
            left.parameters.get(name),
            right.parameters.get(name),
        )?;
    }
    same("the number of targets", left.targets, right.targets)?;
    same("the depth of the pipeline", left.pipeline, right.pipeline)?;
    same(
        "the requests per connection",
        left.requests_per_connection,
        right.requests_per_connection,
    )?;
    same("the version of HTTP", left.http, right.http)?;
    same("the fields of requests", &left.fields, &right.fields)?;
    same("the right status", left.status, right.status)?;
    same("the pacing", &left.pacing, &right.pacing)?;
    same("TLS", &left.tls, &right.tls)?;
    Ok(left)
}

fn merge_generators(left: Vec<Generator>, right: Vec<Generator>) -> Result<Vec<Generator>, Unlike> {
    let kind = |generators: &[Generator]| -> Option<Option<Arrivals>> {
        generators.first().map(|generator| match generator.model {
            Model::Closed { .. } => None,
            Model::Open { arrivals, .. } => Some(arrivals),
        })
    };
    same("the arrivals of an open loop", kind(&left), kind(&right))?;
    // The text of a generator orders those that began at the same moment.
    let key = |generator: &Generator| {
        let text = serde_json::to_string(generator).unwrap_or_default();
        (generator.started_unix_ns, text)
    };
    let mut all = BTreeMap::new();
    for generator in left.into_iter().chain(right) {
        if let Some(twin) = all.insert(key(&generator), generator) {
            return Err(Unlike::Twice(twin.command_line.join(" ")));
        }
    }
    Ok(all.into_values().collect())
}

fn merge_window(left: &Window, right: &Window) -> Result<Window, Unlike> {
    let name = same("the name of a window", &left.counts().name, &right.counts().name)?;
    let common = Span {
        begin_unix_ns: left.common().begin_unix_ns.max(right.common().begin_unix_ns),
        end_unix_ns: left.common().end_unix_ns.min(right.common().end_unix_ns),
    };
    let counts = merge_counts(left.counts(), right.counts())?;
    let common_ns = common.end_unix_ns.saturating_sub(common.begin_unix_ns);
    let share = common_ns as f64 / counts.duration_ns as f64;
    if share < COMMON_SHARE_MIN {
        let common_percent = (share * 100.0) as u64;
        return Err(Unlike::Apart { window: name.clone(), common_percent });
    }
    Ok(Window::merged(counts, common))
}

fn merge_counts(left: &Counts, right: &Counts) -> Result<Counts, Unlike> {
    let begin_unix_ns = left.begin_unix_ns.min(right.begin_unix_ns);
    let end_unix_ns = left.end_unix_ns().max(right.end_unix_ns());
    same("the number of classes", left.classes.len(), right.classes.len())?;
    let classes = left.classes.iter().zip(&right.classes);
    Ok(Counts {
        name: left.name.clone(),
        begin_unix_ns,
        duration_ns: end_unix_ns - begin_unix_ns,
        requests: add(left.requests, right.requests)?,
        received_bytes: add(left.received_bytes, right.received_bytes)?,
        sent_bytes: add(left.sent_bytes, right.sent_bytes)?,
        connects: add(left.connects, right.connects)?,
        handshakes: Handshakes {
            full: add(left.handshakes.full, right.handshakes.full)?,
            resumed: add(left.handshakes.resumed, right.handshakes.resumed)?,
            refused: add(left.handshakes.refused, right.handshakes.refused)?,
            without_session: add(
                left.handshakes.without_session,
                right.handshakes.without_session,
            )?,
        },
        errors: merge_errors(&left.errors, &right.errors),
        classes: classes.map(|(left, right)| merge_class(left, right)).collect::<Result<_, _>>()?,
        connect: join(&left.connect, &right.connect)?,
        tls: join(&left.tls, &right.tls)?,
        schedule: both(
            "schedule",
            left.schedule.as_ref(),
            right.schedule.as_ref(),
            merge_schedule,
        )?,
        seconds: merge_seconds(&left.seconds, &right.seconds)?,
        client: ClientCost {
            usage: merge_usage(left.client.usage, right.client.usage)?,
            busiest_thread_ns: left.client.busiest_thread_ns.max(right.client.busiest_thread_ns),
            enters: add(left.client.enters, right.client.enters)?,
        },
        server: merge_server(&left.server, &right.server)?,
        conformity: both(
            "conformity",
            left.conformity.as_ref(),
            right.conformity.as_ref(),
            merge_conformity,
        )?,
    })
}

fn merge_errors(left: &Errors, right: &Errors) -> Errors {
    left.kinds().chain(right.kinds()).collect()
}

fn merge_class(left: &Class, right: &Class) -> Result<Class, Unlike> {
    same("the name of a class", &left.name, &right.name)?;
    Ok(Class {
        name: left.name.clone(),
        requests: add(left.requests, right.requests)?,
        received_bytes: add(left.received_bytes, right.received_bytes)?,
        first_byte: join(&left.first_byte, &right.first_byte)?,
        service: join(&left.service, &right.service)?,
        response: both("response time", left.response.as_ref(), right.response.as_ref(), join)?,
    })
}

fn merge_schedule(left: &Schedule, right: &Schedule) -> Result<Schedule, Unlike> {
    Ok(Schedule {
        planned: add(left.planned, right.planned)?,
        never_sent: add(left.never_sent, right.never_sent)?,
        unanswered: add(left.unanswered, right.unanswered)?,
        completed: match (left.completed, right.completed) {
            (Some(left), Some(right)) => Some(add(left, right)?),
            _ => None,
        },
        lag: join(&left.lag, &right.lag)?,
        behind: left.behind || right.behind,
    })
}

fn merge_seconds(left: &[Second], right: &[Second]) -> Result<Vec<Second>, Unlike> {
    let mut seconds: BTreeMap<u64, Second> =
        left.iter().map(|second| (second.unix_s, second.clone())).collect();
    for second in right {
        let sum = match seconds.get(&second.unix_s) {
            Some(sum) => sum.and(second).ok_or(Unlike::TooMuch)?,
            None => second.clone(),
        };
        seconds.insert(second.unix_s, sum);
    }
    Ok(seconds.into_values().collect())
}

fn merge_usage(left: Usage, right: Usage) -> Result<Usage, Unlike> {
    Ok(Usage {
        cpu_ns: add(left.cpu_ns, right.cpu_ns)?,
        voluntary_switches: add(left.voluntary_switches, right.voluntary_switches)?,
        involuntary_switches: add(left.involuntary_switches, right.involuntary_switches)?,
    })
}

/// The server is one, whoever has accounted for it: known beats unknown beats not asked.
fn merge_server(left: &ServerCost, right: &ServerCost) -> Result<ServerCost, Unlike> {
    use ServerCost::{Known, NotAsked, Unknown};
    let cost = match (left, right) {
        (Known { .. }, Known { .. }) => same("what the server consumed", left, right)?,
        (Known { .. }, _) | (_, NotAsked) => left,
        (_, Known { .. }) | (NotAsked, _) => right,
        (Unknown { reason }, Unknown { reason: other }) if reason <= other => left,
        (Unknown { .. }, Unknown { .. }) => right,
    };
    Ok(cost.clone())
}

fn merge_conformity(left: &Conformity, right: &Conformity) -> Result<Conformity, Unlike> {
    Ok(Conformity {
        requested_connections: add(left.requested_connections, right.requested_connections)?,
        conforming_connections: add(left.conforming_connections, right.conforming_connections)?,
        operations: add(left.operations, right.operations)?,
        response_ns_sum: add(left.response_ns_sum, right.response_ns_sum)?,
        bits_per_s_sum: add(left.bits_per_s_sum, right.bits_per_s_sum)?,
        opened: add(left.opened, right.opened)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::cost::ServerUsage;
    use crate::result::load::Parameter;
    use crate::result::sample::{self, Shape};
    use proptest::prelude::*;

    fn part(number: u64) -> RunResult {
        sample::of(Shape { generator: number, ..Shape::web99() })
    }

    #[test]
    fn sums_are_exact() {
        let all = part(1).merge(part(2)).unwrap();
        assert_eq!(all.check(), Ok(()));
        assert_eq!(all.generators.len(), 2);
        assert_eq!(all.connections(), part(1).connections() + part(2).connections());
        assert_eq!(all.requests(), part(1).requests() + part(2).requests());
        let (one, two, both) = (part(1), part(2), all);
        for i in 0..both.windows.len() {
            let [one, two, both] = [&one, &two, &both].map(|result| result.windows[i].counts());
            assert_eq!(both.service(), one.service().and(&two.service()).unwrap());
            assert_eq!(both.errors.total(), one.errors.total() + two.errors.total());
            let sum = |counts: &Counts| counts.conformity.unwrap().response_ns_sum;
            assert_eq!(sum(both), sum(one) + sum(two));
            let second = &both.seconds[1];
            let own = |counts: &Counts| {
                counts.seconds.iter().find(|s| s.unix_s == second.unix_s).map(|s| s.requests)
            };
            assert_eq!(second.requests, own(one).unwrap_or(0) + own(two).unwrap_or(0));
        }
    }

    /// Why a part that was changed is not of the same run.
    fn refusal(change: impl FnOnce(&mut RunResult)) -> String {
        let mut other = part(2);
        change(&mut other);
        let text = part(1).merge(other.clone()).unwrap_err().to_string();
        assert!(other.merge(part(1)).is_err(), "{text}");
        text
    }

    #[test]
    fn unlike_runs_are_refused_and_the_first_difference_is_named() {
        let target = refusal(|other| other.load.target = "http://127.0.0.1:81/".into());
        assert!(target.starts_with("the target: ") && target.contains(":81/"), "{target}");
        let mix = refusal(|other| {
            other.load.parameters.insert("mix".into(), Parameter::Text("static".into()));
        });
        assert!(mix.starts_with("the parameter mix: "), "{mix}");
        let workload = refusal(|other| other.load.workload = "get".into());
        assert_eq!(workload, "the workload: \"web99\" and \"get\"");
        assert!(refusal(|other| other.load.status = 304).starts_with("the right status: "));
        assert!(refusal(|other| drop(other.windows.pop())).starts_with("the number of windows"));
        let twice = refusal(|other| *other = part(1));
        assert!(twice.starts_with("both hold the result of"), "{twice}");
        let apart = refusal(|other| {
            *other = sample::of(Shape { generator: 2, late_ns: 600_000_000_000, ..Shape::web99() });
        });
        assert!(apart.contains("in only 0 % of it") && apart.contains("--start-at"), "{apart}");
        let open = sample::open().merge(sample::closed()).unwrap_err().to_string();
        assert!(open.starts_with("the arrivals of an open loop"), "{open}");
    }

    #[test]
    fn the_server_is_accounted_for_once() {
        let known = |cpu_ns| ServerCost::Known {
            cost: ServerUsage { usage: Usage { cpu_ns, ..Usage::default() }, ..Default::default() },
        };
        let unknown = |reason: &str| ServerCost::Unknown { reason: reason.into() };
        let merge = |a: &ServerCost, b: &ServerCost| {
            assert_eq!(merge_server(a, b).is_ok(), merge_server(b, a).is_ok());
            merge_server(a, b).inspect(|cost| assert_eq!(Ok(cost.clone()), merge_server(b, a)))
        };
        assert_eq!(merge(&known(1), &ServerCost::NotAsked), Ok(known(1)));
        assert_eq!(merge(&known(1), &unknown("ended")), Ok(known(1)));
        assert_eq!(merge(&known(1), &known(1)), Ok(known(1)));
        assert_eq!(merge(&ServerCost::NotAsked, &unknown("ended")), Ok(unknown("ended")));
        assert_eq!(merge(&unknown("a"), &unknown("b")), Ok(unknown("a")));
        assert!(merge(&known(1), &known(2)).is_err());
    }

    fn shapes() -> impl Strategy<Value = Vec<Shape>> {
        let shape = |generator| {
            (0..300_000_000_u64, 0..4_u8, 0..2_u64, 0..40_u64).prop_map(
                move |(late_ns, server, load, requests)| Shape {
                    generator,
                    late_ns,
                    server,
                    load: load / 2 + 100,
                    requests_per_s: requests,
                    windows: 2,
                    window_s: 2,
                    classes: &["class 0", "CAD"],
                    ..Shape::web99()
                },
            )
        };
        (2_u64..5).prop_flat_map(move |n| (0..n).map(shape).collect::<Vec<_>>())
    }

    /// Merges from left to right.
    fn chain(results: impl IntoIterator<Item = RunResult>) -> Option<RunResult> {
        let mut results = results.into_iter();
        let first = results.next()?;
        results.try_fold(first, |sum, result| sum.merge(result).ok())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_order_and_any_grouping_gives_the_same(
            (results, order) in shapes().prop_map(|s| s.into_iter().map(sample::of).collect())
                .prop_flat_map(|r: Vec<_>| (Just(r.clone()), Just(r).prop_shuffle())),
            cut in any::<prop::sample::Index>(),
        ) {
            let expected = chain(results);
            prop_assert!(chain(order.clone()) == expected, "order matters");
            let cut = 1 + cut.index(order.len() - 1);
            let (left, right) = order.split_at(cut);
            let grouped = chain(left.to_vec()).zip(chain(right.to_vec()));
            let grouped = grouped.and_then(|(left, right)| left.merge(right).ok());
            prop_assert!(grouped == expected, "grouping matters");
            if let Some(result) = expected {
                prop_assert_eq!(result.check(), Ok(()));
                let json = serde_json::to_vec(&result).unwrap();
                prop_assert!(RunResult::parse(&json).unwrap() == result, "it reads back otherwise");
            }
        }
    }
}
