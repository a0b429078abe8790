//! A run's result from what was measured.

use super::client::UserTally;
use super::collector::Measured;
use super::server::Known;
use crate::process::{Consumption, ProcessError, Usage};
use crate::result::cost::{CLIENT_LIMIT, ClientCost, Resident, ServerCost, ServerUsage};
use crate::result::latencies::Latencies;
use crate::result::window::{Class, Conformity, Counts, Handshakes, Schedule, Window};
use crate::tally::{ClassTally, ScheduleTally, Tally};
use std::time::Duration;

/// A connection conforms from here on, bit/s. Both limits are those of the SPECweb99-style workload.
const CONFORMING_BITS_PER_S: f64 = 320_000.0;

/// A connection conforms with fewer errors than this share of its operations.
const CONFORMING_ERROR_SHARE: f64 = 0.01;

/// A generator without time left is behind its schedule if more than this share of the planned
/// starts waited for a connection: nobody knows whom they waited for.
const WAITED_SHARE: f64 = 0.01;

/// A window of the result. `paced` says whether there were lines, so that users conform or do not;
/// `server` is what was known of the server, if its process was named.
pub(super) fn window(
    name: String,
    measured: Measured,
    classes: &[String],
    paced: bool,
    server: Option<Option<Known>>,
) -> Window {
    let Measured { tally, .. } = &measured;
    let conformity = paced.then(|| conformity(&measured.users, tally.connects));
    // While others have its CPU, a thread is as late as one that has too much to do.
    let busiest = measured.busiest_with_waits.as_secs_f64();
    let busy = busiest > CLIENT_LIMIT * measured.duration.as_secs_f64();
    Window::new(Counts {
        name,
        begin_unix_ns: ns(measured.begin_unix),
        duration_ns: ns(measured.duration),
        requests: tally.requests(),
        received_bytes: tally.received_bytes,
        sent_bytes: tally.sent_bytes,
        connects: tally.connects,
        handshakes: Handshakes {
            full: tally.handshakes_full,
            resumed: tally.handshakes_resumed,
            refused: tally.handshakes_refused,
            without_session: tally.handshakes_without_session,
        },
        errors: tally.errors.kinds().into_iter().collect(),
        classes: classes.iter().zip(&tally.classes).map(class).collect(),
        connect: Latencies::from(tally.connect.histogram()),
        tls: Latencies::from(tally.tls.histogram()),
        schedule: tally.schedule.as_ref().map(|schedule| plan_kept(schedule, tally, busy)),
        seconds: measured.seconds.into_values().collect(),
        client: ClientCost {
            usage: measured.usage.into(),
            busiest_thread_ns: ns(measured.busiest_thread),
            enters: measured.enters,
        },
        server: cost(measured.server, server),
        conformity,
    })
}

fn class((name, tally): (&String, &ClassTally)) -> Class {
    Class {
        name: name.clone(),
        requests: tally.requests,
        received_bytes: tally.received_bytes,
        first_byte: Latencies::from(tally.first_byte.histogram()),
        service: Latencies::from(tally.service.histogram()),
        response: tally.response.as_ref().map(|response| Latencies::from(response.histogram())),
    }
}

/// `busy`: a thread of the generator had no time left.
fn plan_kept(schedule: &ScheduleTally, tally: &Tally, busy: bool) -> Schedule {
    let waited = schedule.waited() as f64 > WAITED_SHARE * schedule.planned as f64;
    Schedule {
        planned: schedule.planned,
        never_sent: schedule.unsent,
        unanswered: schedule.unanswered,
        completed: Some(schedule.completed),
        lag: Latencies::from(schedule.lag.histogram()),
        behind: tally.is_behind() || (busy && waited),
    }
}

/// CPU time is that which the thread read that accounts for it, at the very ends of the window.
fn cost(usage: Option<Result<Usage, ProcessError>>, known: Option<Option<Known>>) -> ServerCost {
    let Some(known) = known else { return ServerCost::NotAsked };
    match usage {
        Some(Ok(usage)) => {
            let known = known.and_then(Result::ok);
            let resident = |Consumption { memory, .. }: &Consumption| Resident {
                begin_bytes: memory.begin_bytes,
                peak_bytes: memory.peak_bytes,
                end_bytes: memory.end_bytes,
            };
            ServerCost::Known {
                cost: ServerUsage {
                    usage: usage.into(),
                    processes: known.as_ref().map_or(0, |known| known.processes),
                    resident: known.as_ref().map(resident),
                },
            }
        }
        Some(Err(error)) => ServerCost::Unknown { reason: error.to_string() },
        None => ServerCost::Unknown { reason: "the window was over before it was read".to_owned() },
    }
}

/// What the users of a paced run have come to. A user's bit rate is that of all its time: connecting,
/// waiting for the server, and what came to nothing are in it.
fn conformity(users: &[UserTally], opened: u64) -> Conformity {
    let mut sums =
        Conformity { requested_connections: users.len() as u64, opened, ..Conformity::default() };
    for user in users {
        let elapsed_s = user.elapsed.as_secs_f64();
        let bits = user.received_bytes as f64 * 8.0;
        let bits_per_s = if elapsed_s > 0.0 { bits / elapsed_s } else { 0.0 };
        let few_errors = (user.errors as f64) < CONFORMING_ERROR_SHARE * user.operations as f64
            || user.errors == 0;
        let conforms = bits_per_s >= CONFORMING_BITS_PER_S && few_errors;
        sums.conforming_connections += u64::from(conforms);
        sums.operations += user.operations;
        sums.response_ns_sum += ns(user.busy);
        sums.bits_per_s_sum += bits_per_s.round() as u64;
    }
    sums
}

/// 584 years are not reached.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(operations: u64, kbit: u64, busy_ms: u64, errors: u64) -> UserTally {
        let busy = Duration::from_millis(busy_ms);
        UserTally { operations, busy, received_bytes: kbit * 125, elapsed: busy, errors }
    }

    #[test]
    fn a_connection_conforms_that_is_fast_enough_and_mostly_right() {
        let users = [
            user(100, 340, 1000, 0),
            user(100, 320, 1000, 0),
            user(100, 319, 1000, 0),
            user(200, 340, 1000, 1),
            user(100, 340, 1000, 1),
            user(0, 0, 0, 0),
            user(0, 0, 0, 3),
        ];
        let conforms = |user: &UserTally| conformity(&[*user], 0).conforming_connections;
        assert_eq!(users.each_ref().map(conforms), [1, 1, 0, 1, 0, 0, 0]);
        let sums = conformity(&users, 37);
        assert_eq!((sums.requested_connections, sums.conforming_connections), (7, 3));
        assert_eq!((sums.operations, sums.opened), (600, 37));
        assert_eq!(sums.response_ns_sum, 5_000_000_000);
        assert_eq!(sums.bits_per_s_sum, 1_659_000);
        let waits = UserTally { elapsed: Duration::from_millis(1100), ..users[0] };
        let sums = conformity(&[waits], 0);
        assert_eq!((sums.conforming_connections, sums.response_ns_sum), (0, 1_000_000_000));
    }

    #[test]
    fn a_generator_without_time_left_is_behind_if_starts_waited_for_a_connection() {
        let behind = |waited: u64, busy| {
            let mut schedule = ScheduleTally { planned: 1000, ..ScheduleTally::default() };
            (waited..1000).for_each(|_| schedule.lag.record(Duration::from_micros(5)));
            let tally = Tally { schedule: Some(schedule.clone()), ..Tally::default() };
            plan_kept(&schedule, &tally, busy).behind
        };
        assert!(behind(11, true) && behind(1000, true));
        assert!(!behind(10, true) && !behind(1000, false));
    }
}
