//! The table of a SPECweb99-style disclosure: what each iteration's row says, and which is the
//! result. Pure arithmetic over sums.

use super::RunResult;
use super::window::Conformity;
use std::fmt;

/// One iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Counted from 1.
    pub iteration: usize,
    /// Connections asked for.
    pub requested: u64,
    /// Connections that conformed.
    pub conforming: u64,
    /// Conforming of requested connections, per cent.
    pub percent_conform: f64,
    /// Operations of all requested connections per second.
    pub ops_per_s: f64,
    /// Mean time of an operation, its paced transfer included, ms.
    pub response_ms: f64,
    /// Operations per second for each requested connection.
    pub ops_per_s_per_connection: f64,
    /// Mean bit rate of a connection, units of 1000 bit/s.
    pub kbit_per_s: f64,
    /// TCP connections opened per operation.
    pub opened_per_op: f64,
}

impl Row {
    /// From the sums of an iteration of `duration_s`; a figure that nothing happened for is 0.
    pub fn new(iteration: usize, sums: &Conformity, duration_s: f64) -> Self {
        let ratio = |amount: f64, of: f64| if of > 0.0 { amount / of } else { 0.0 };
        let (requested, operations) = (sums.requested_connections as f64, sums.operations as f64);
        let ops_per_s = ratio(operations, duration_s);
        Self {
            iteration,
            requested: sums.requested_connections,
            conforming: sums.conforming_connections,
            percent_conform: 100.0 * ratio(sums.conforming_connections as f64, requested),
            ops_per_s,
            response_ms: ratio(sums.response_ns_sum as f64 / 1e6, operations),
            ops_per_s_per_connection: ratio(ops_per_s, requested),
            kbit_per_s: ratio(sums.bits_per_s_sum as f64 / 1e3, requested),
            opened_per_op: ratio(sums.opened as f64, operations),
        }
    }
}

/// The table.
#[derive(Clone, Debug, PartialEq)]
pub struct Disclosure {
    /// The iterations in order; at least one.
    pub rows: Vec<Row>,
    /// Which row is the median by conforming connections: the first of those equal to it, and the
    /// lesser one of the two in the middle.
    pub median: usize,
}

impl Disclosure {
    /// Of the sums of each iteration and its duration in seconds; `None` without iterations.
    pub fn new(iterations: impl IntoIterator<Item = (Conformity, f64)>) -> Option<Self> {
        let iterations = iterations.into_iter().enumerate();
        let rows: Vec<Row> =
            iterations.map(|(i, (sums, duration_s))| Row::new(i + 1, &sums, duration_s)).collect();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&row| rows[row].conforming);
        let middle = *order.get(order.len().checked_sub(1)? / 2)?;
        let median = rows.iter().position(|row| row.conforming == rows[middle].conforming)?;
        Some(Self { rows, median })
    }

    /// Of a result; `None` if its workload has none.
    pub fn of(result: &RunResult) -> Option<Self> {
        let counts = result.windows.iter().map(|window| window.counts());
        Self::new(counts.filter_map(|counts| Some((counts.conformity?, counts.seconds_f64()))))
    }

    /// The result: conforming connections of the median iteration.
    pub fn conforming(&self) -> u64 {
        self.rows[self.median].conforming
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9}  {:>10}  {:>7}  {:>8.1}  {:>8.1}  {:>7.2}  {:>6.1}",
            self.iteration,
            self.conforming,
            format!("{:.1}%", self.percent_conform),
            self.ops_per_s,
            self.response_ms,
            self.ops_per_s_per_connection,
            self.kbit_per_s
        )
    }
}

impl fmt::Display for Disclosure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "              conforming  percent            response  ops/s/   kbit")?;
        writeln!(f, "   iteration connections  conform     ops/s        ms  loadgen    /s")?;
        for (i, row) in self.rows.iter().enumerate() {
            let mark = if i == self.median { "=>" } else { "  " };
            writeln!(f, "{mark} {row}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published result: connections asked for, its median, and its rows: conforming, percent,
    /// ops/s, response ms, ops/s/loadgen, kbit/s.
    struct Published {
        requested: u64,
        median: u64,
        rows: [(u64, &'static str, f64, f64, &'static str, f64); 3],
    }

    const PUBLISHED: [Published; 3] = [
        // Dell PowerEdge 6650, Zeus 4.2r2, SPECweb99_SSL, Jan 2004.
        Published {
            requested: 2540,
            median: 2540,
            rows: [
                (2540, "100.0%", 7011.3, 362.0, "2.76", 331.0),
                (2539, "100.0%", 7052.2, 360.0, "2.78", 332.5),
                (2540, "100.0%", 7038.2, 360.7, "2.77", 332.2),
            ],
        },
        // IBM Netfinity 8500R, TUX 1.0, SPECweb99, Dec 2000.
        Published {
            requested: 4250,
            median: 4248,
            rows: [
                (4250, "100.0%", 12077.8, 351.2, "2.84", 339.9),
                (4248, "100.0%", 12016.1, 353.1, "2.83", 338.0),
                (4140, "97.4%", 11693.3, 362.8, "2.75", 329.2),
            ],
        },
        // Dell PowerEdge 2650, IIS 5.0 and SWC 3.0, SPECweb99, Apr 2003.
        Published {
            requested: 5700,
            median: 5698,
            rows: [
                (5570, "97.7%", 15832.8, 359.1, "2.78", 332.0),
                (5700, "100.0%", 16207.3, 350.7, "2.84", 339.9),
                (5698, "100.0%", 16125.5, 352.5, "2.83", 338.3),
            ],
        },
    ];

    /// An iteration of the published schedule, s.
    const ITERATION_S: f64 = 1200.0;

    /// The sums that a generator must have had to publish such a row.
    fn sums(requested: u64, row: &(u64, &str, f64, f64, &str, f64)) -> Conformity {
        let &(conforming_connections, _, ops_per_s, response_ms, _, kbit_per_s) = row;
        let operations = (ops_per_s * ITERATION_S).round();
        Conformity {
            requested_connections: requested,
            conforming_connections,
            operations: operations as u64,
            response_ns_sum: (operations * response_ms * 1e6).round() as u64,
            bits_per_s_sum: (kbit_per_s * 1e3 * requested as f64).round() as u64,
            opened: (operations * 0.37).round() as u64,
        }
    }

    #[test]
    fn every_published_row_follows_from_its_sums() {
        for published in &PUBLISHED {
            let iterations =
                published.rows.iter().map(|row| (sums(published.requested, row), ITERATION_S));
            let table = Disclosure::new(iterations).unwrap();
            assert_eq!(table.conforming(), published.median);
            for (row, expected) in table.rows.iter().zip(&published.rows) {
                let &(conforming, percent, ops, response, per_connection, kbit) = expected;
                assert_eq!(
                    row.to_string().split_whitespace().collect::<Vec<_>>(),
                    [
                        row.iteration.to_string().as_str(),
                        &conforming.to_string(),
                        percent,
                        &format!("{ops:.1}"),
                        &format!("{response:.1}"),
                        per_connection,
                        &format!("{kbit:.1}"),
                    ]
                );
            }
        }
    }

    /// WORKLOAD.md §7.1: a closed loop without pauses is busy all the time, and an operation has as
    /// many bits as the rates say.
    #[test]
    fn the_published_columns_keep_the_laws_of_a_closed_loop() {
        for published in &PUBLISHED {
            for row in &published.rows {
                let row = Row::new(1, &sums(published.requested, row), ITERATION_S);
                let busy = row.ops_per_s_per_connection * row.response_ms / 1e3;
                assert!((0.997..=1.0).contains(&busy), "{row:?}: {busy}");
                let bits_per_op = row.kbit_per_s * 1e3 / row.ops_per_s_per_connection;
                assert!((119_500.0..119_950.0).contains(&bits_per_op), "{row:?}: {bits_per_op}");
            }
        }
    }

    #[test]
    fn the_median_is_marked_once() {
        let table = |conforming: &[u64]| {
            let row = |&n: &u64| Conformity {
                requested_connections: 10,
                conforming_connections: n,
                ..Conformity::default()
            };
            Disclosure::new(conforming.iter().map(row).map(|sums| (sums, 1.0)))
        };
        assert_eq!(table(&[]), None);
        assert_eq!(table(&[10, 9, 10]).unwrap().median, 0);
        assert_eq!(table(&[7, 9, 8]).unwrap().median, 2);
        assert_eq!(table(&[7, 9]).unwrap().median, 0);
        let text = table(&[7, 9, 8]).unwrap().to_string();
        assert_eq!(text.matches("=>").count(), 1, "{text}");
        assert!(text.contains("=>         3"), "{text}");
    }
}
