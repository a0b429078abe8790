//! The comparison as text: for each cell and client a table of the servers.

use super::cell::{CELLS, Cell};
use super::peer::Server;
use super::{Client, Comparison, Measurement, Skipped};
use clap::ValueEnum;
use std::fmt;

/// Servers that the others are put in relation to, where they were measured.
const REFERENCES: [Server; 3] = [Server::Former, Server::Floor, Server::Nginx];

/// Ratios to one reference, each within one round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    median: f64,
    least: f64,
    greatest: f64,
}

impl Ratio {
    fn of(values: Vec<f64>) -> Option<Self> {
        Some(Self {
            median: median(values.clone())?,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            greatest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.2} ({:.2}–{:.2})", self.median, self.least, self.greatest))
    }
}

/// The middle value, or the mean of the two middle ones.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

/// The measurements of one cell with one client.
struct Block<'a> {
    measurements: Vec<&'a Measurement>,
}

type Figure = fn(&Measurement) -> Option<f64>;

const RATE: Figure = |m| Some(m.requests_per_s);
const CPU: Figure = |m| m.server_cpu_us_per_request;

impl<'a> Block<'a> {
    fn new(all: &'a [Measurement], cell: Cell, client: Client) -> Self {
        let ours = |m: &&Measurement| m.cell == cell.name && m.client == client.name();
        Self { measurements: all.iter().filter(ours).collect() }
    }

    fn of(&self, server: Server) -> impl Iterator<Item = &'a Measurement> {
        self.measurements.iter().copied().filter(move |m| m.server == server.name())
    }

    fn median(&self, server: Server, figure: Figure) -> Option<f64> {
        median(self.of(server).filter_map(figure).collect())
    }

    /// `server` to `reference`, over the rounds in which both were measured.
    fn ratio(&self, server: Server, reference: Server, figure: Figure) -> Option<Ratio> {
        let pairs = self.of(server).filter_map(|m| {
            let other = self.of(reference).find(|other| other.round == m.round)?;
            Some(figure(m)? / figure(other)?)
        });
        Ratio::of(pairs.collect())
    }
}

/// Left-aligned in so many characters; a dash for what is missing.
fn column(value: Option<impl fmt::Display>, width: usize) -> String {
    match value {
        Some(value) => format!("{value:<width$}"),
        None => format!("{:<width$}", "–"),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} rounds of {} s; server on CPU {}, client on CPU {}; {}; seed {}",
            self.rounds,
            self.duration_s,
            self.server_cpu,
            self.client_cpu,
            self.congestion_control,
            self.seed
        )?;
        writeln!(f, "Medians; ratios within a round: median (least–greatest).")?;
        for cell in CELLS {
            for client in [Client::Run, Client::Wrk] {
                let block = Block::new(&self.measurements, cell, client);
                if !block.measurements.is_empty() {
                    writeln!(f, "\n{cell}; client: {}", client.name())?;
                    write_block(f, &block)?;
                }
            }
        }
        if !self.skipped.is_empty() {
            writeln!(f)?;
        }
        for Skipped { what, why } in &self.skipped {
            writeln!(f, "skipped: {what}: {why}")?;
        }
        if self.interrupted {
            writeln!(f, "\ninterrupted: not all rounds were measured")?;
        }
        Ok(())
    }
}

fn write_block(f: &mut fmt::Formatter<'_>, block: &Block<'_>) -> fmt::Result {
    let references =
        REFERENCES.map(Some).map(|server| server.filter(|&s| block.of(s).next().is_some()));
    let references = || references.into_iter().flatten();
    write!(f, "  {:<9} {:<11} {:<11}", "server", "requests/s", "CPU µs/req")?;
    for figure in ["rate", "CPU"] {
        for reference in references() {
            write!(f, " {:<18}", format!("{figure} ÷ {}", reference.name()))?;
        }
    }
    writeln!(f)?;
    for &server in Server::value_variants() {
        let Some(rate) = block.median(server, RATE) else { continue };
        let cpu = block.median(server, CPU).map(|cpu| format!("{cpu:.2}"));
        write!(f, "  {:<9} {rate:<11.0} {}", server.name(), column(cpu, 11))?;
        for figure in [RATE, CPU] {
            for reference in references() {
                let ratio = block.ratio(server, reference, figure);
                write!(f, " {}", column(ratio.filter(|_| server != reference), 18))?;
            }
        }
        let errors: u64 = block.of(server).map(|m| m.errors).sum();
        if errors > 0 {
            write!(f, " {errors} errors")?;
        }
        let (limited, rounds) =
            (block.of(server).filter(|m| m.client_is_the_limit).count(), block.of(server).count());
        if limited > 0 {
            write!(f, " client is the limit in {limited} of {rounds}: compare CPU")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::COMPARE_SCHEMA;

    fn measurement(round: u32, server: Server, rate: f64, cpu: Option<f64>) -> Measurement {
        Measurement {
            round,
            cell: "1k-64".into(),
            client: "run".into(),
            server: server.name().into(),
            requests_per_s: rate,
            server_cpu_us_per_request: cpu,
            errors: 0,
            client_is_the_limit: server == Server::Floor,
        }
    }

    fn measurements() -> Vec<Measurement> {
        vec![
            measurement(0, Server::Floor, 200.0, Some(4.0)),
            measurement(0, Server::Nginx, 100.0, Some(8.0)),
            measurement(1, Server::Nginx, 50.0, None),
            measurement(1, Server::Floor, 200.0, Some(4.0)),
            // Without a partner.
            measurement(2, Server::Nginx, 400.0, Some(8.0)),
        ]
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let all = measurements();
        let block = Block::new(&all, CELLS[0], Client::Run);
        let ratio = |figure| block.ratio(Server::Nginx, Server::Floor, figure).unwrap();
        assert_eq!(ratio(RATE), Ratio { median: 0.375, least: 0.25, greatest: 0.5 });
        assert_eq!(ratio(CPU), Ratio { median: 2.0, least: 2.0, greatest: 2.0 });
        assert_eq!(block.ratio(Server::H2o, Server::Floor, RATE), None);
        assert_eq!(block.median(Server::Nginx, RATE), Some(100.0));
    }

    #[test]
    fn the_table_shows_what_there_is_and_names_what_is_not() {
        let comparison = Comparison {
            schema: COMPARE_SCHEMA.into(),
            seed: 1,
            rounds: 3,
            duration_s: 3.0,
            congestion_control: "cubic".into(),
            server_cpu: 0,
            client_cpu: 1,
            measurements: measurements(),
            skipped: vec![Skipped { what: "h2o".into(), why: "not here".into() }],
            interrupted: true,
        };
        let text = comparison.to_string();
        for part in [
            "1 KiB, keep-alive, 64 connections; client: run",
            "0.38 (0.25–0.50)",
            "2.00 (2.00–2.00)",
            "client is the limit in 2 of 2",
            "skipped: h2o: not here",
            "interrupted",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("wrk") && !text.contains("lighttpd"), "{text}");
        let json = serde_json::to_string(&comparison).unwrap();
        assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), comparison);
    }
}
