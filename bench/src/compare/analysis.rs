//! What follows from measurements: for each cell and client, each server's figures beside those of
//! a reference, with intervals, verdicts and warnings.
//!
//! Ratios are taken within blocks. The reference is the one asked for, or, where that takes no part
//! in a cell, the first server that does. The floor is no server, so that nothing is lost to it; it
//! says how far there is to go.

use super::cell::{CELLS, Cell};
use super::comparison::Measurement;
use super::figure::Figure;
use super::options::{Client, Settings};
use super::peer::Server;
use crate::statistics::{self, PAIRS_FOR_LEVEL, Ratio, Verdict, median};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One cell with one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// Name of the cell.
    pub cell: String,
    /// What it is.
    pub title: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server that ratios are to.
    pub reference: String,
    /// Those that were measured.
    pub servers: Vec<ServerResult>,
    /// The servers that are ahead of the reference in a figure that the cell is about: where there
    /// are some, it has lost the cell to them.
    pub lost_to: Vec<Loss>,
}

/// One server in one cell with one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerResult {
    /// Its name.
    pub server: String,
    /// How often it was measured.
    pub repeats: usize,
    /// What went wrong in all repeats.
    pub errors: u64,
    /// Its figures, the decisive ones first.
    pub figures: Vec<FigureResult>,
    /// What to think of before believing the figures.
    pub warnings: Vec<Warning>,
}

/// One figure of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureResult {
    /// Which.
    pub figure: Figure,
    /// Whether the cell is won and lost by it.
    pub decisive: bool,
    /// Median of the repeats.
    pub median: f64,
    /// The least and the greatest of them.
    pub range: [f64; 2],
    /// To the reference; absent for the reference itself, and where no block has both.
    pub to_reference: Option<Ratio>,
    /// What the interval of that ratio says; absent without an interval.
    pub verdict: Option<Verdict>,
    /// To the floor.
    pub to_floor: Option<Ratio>,
}

/// A server that is ahead of the reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Its name.
    pub server: String,
    /// In which figure.
    pub figure: Figure,
}

/// What to think of before believing figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Warning {
    /// Intervals hold the truth less often than 95 of 100 times.
    TooFewRepeats {
        /// How many there are.
        repeats: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A figure rose or fell from block to block: the machine was changing.
    Drift {
        /// Which.
        figure: Figure,
        /// From the first block to the last, as a share of the median.
        change: f64,
    },
    /// A figure has two values, and the median is either by chance.
    TwoGroups {
        /// Which.
        figure: Figure,
        /// The medians of the two.
        medians: [f64; 2],
    },
    /// The client had no time left: the rate says more about it than about the server.
    ClientIsTheLimit {
        /// In so many repeats.
        repeats: usize,
    },
    /// Some requests failed.
    Errors {
        /// So many.
        count: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewRepeats { repeats, needed } => {
                let level = statistics::level_of(*repeats) * 100.0;
                write!(
                    f,
                    "too few repeats: intervals of {repeats} hold the true ratio in {level:.1} % of \
                     cases at best; 95 % takes {needed}"
                )
            }
            Self::Drift { figure, change } => {
                write!(f, "drift: {figure} changed by {:+.0} % over the blocks", change * 100.0)
            }
            Self::TwoGroups { figure, medians: [low, high] } => {
                let (low, high) = (figure.text(*low), figure.text(*high));
                write!(f, "two groups: {figure} was about {low} or about {high}")
            }
            Self::ClientIsTheLimit { repeats } => {
                write!(f, "the client was the limit in {repeats} repeats: compare CPU per request")
            }
            Self::Errors { count } => write!(f, "{count} errors"),
        }
    }
}

/// All cells and clients that something was measured of, in the order of the tables.
pub(super) fn analyse(measurements: &[Measurement], settings: &Settings) -> Vec<CellResult> {
    let mut results = Vec::new();
    for cell in CELLS {
        for client in Client::value_variants() {
            let ours: Vec<_> = measurements
                .iter()
                .filter(|m| m.place.cell == cell.name && m.place.client == client.name())
                .collect();
            results.extend(Together { cell, settings, measurements: ours }.result(*client));
        }
    }
    results
}

/// The measurements of one cell and client.
struct Together<'a> {
    cell: Cell,
    settings: &'a Settings,
    measurements: Vec<&'a Measurement>,
}

impl Together<'_> {
    fn result(&self, client: Client) -> Option<CellResult> {
        let servers: Vec<_> = Server::value_variants()
            .iter()
            .copied()
            .filter(|server| self.of(*server).next().is_some())
            .collect();
        let asked_for = servers.iter().find(|server| server.name() == self.settings.reference);
        let reference = *asked_for.or_else(|| servers.first())?;
        let results: Vec<_> = servers.iter().map(|&s| self.server(s, reference)).collect();
        let lost_to = results
            .iter()
            .filter(|result| result.server != Server::Floor.name())
            .flat_map(|result| {
                let ahead = |f: &&FigureResult| f.decisive && f.verdict == Some(Verdict::Ahead);
                result
                    .figures
                    .iter()
                    .filter(ahead)
                    .map(|figure| Loss { server: result.server.clone(), figure: figure.figure })
            })
            .collect();
        Some(CellResult {
            cell: self.cell.name.to_owned(),
            title: self.cell.to_string(),
            client: client.name().to_owned(),
            reference: reference.name().to_owned(),
            servers: results,
            lost_to,
        })
    }

    fn of(&self, server: Server) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().copied().filter(move |m| m.place.server == server.name())
    }

    fn server(&self, server: Server, reference: Server) -> ServerResult {
        let load = self.cell.load;
        let decisive = Figure::decisive(load).iter().map(|figure| (*figure, true));
        let shown = Figure::shown(load).iter().map(|figure| (*figure, false));
        let figures: Vec<_> = decisive
            .chain(shown)
            .filter_map(|(figure, decisive)| self.figure(server, reference, figure, decisive))
            .collect();
        ServerResult {
            server: server.name().to_owned(),
            repeats: self.of(server).count(),
            errors: self.of(server).map(Measurement::errors).sum(),
            warnings: self.warnings(server),
            figures,
        }
    }

    fn figure(
        &self,
        server: Server,
        reference: Server,
        figure: Figure,
        decisive: bool,
    ) -> Option<FigureResult> {
        let values = self.values(server, figure);
        let to_reference =
            (server != reference).then(|| self.ratio(server, reference, figure)).flatten();
        Some(FigureResult {
            figure,
            decisive,
            median: median(&values)?,
            range: [
                values.iter().copied().fold(f64::INFINITY, f64::min),
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ],
            verdict: to_reference.and_then(|ratio| ratio.verdict(figure.better())),
            to_reference,
            to_floor: (server != Server::Floor)
                .then(|| self.ratio(server, Server::Floor, figure))
                .flatten(),
        })
    }

    /// In the order in which they were measured.
    fn values(&self, server: Server, figure: Figure) -> Vec<f64> {
        self.of(server).filter_map(|m| figure.of(&m.figures)).collect()
    }

    /// Over the blocks in which both were measured.
    fn ratio(&self, server: Server, reference: Server, figure: Figure) -> Option<Ratio> {
        let pairs = self.of(server).filter_map(|m| {
            let other = self.of(reference).find(|other| other.place.round == m.place.round)?;
            Some((figure.of(&m.figures)?, figure.of(&other.figures)?))
        });
        Ratio::of(pairs, self.settings.seed)
    }

    fn warnings(&self, server: Server) -> Vec<Warning> {
        let repeats = self.of(server).count();
        let mut warnings = Vec::new();
        if repeats < PAIRS_FOR_LEVEL {
            warnings.push(Warning::TooFewRepeats { repeats, needed: PAIRS_FOR_LEVEL });
        }
        for &figure in Figure::decisive(self.cell.load) {
            let values = self.values(server, figure);
            let drift = statistics::drift(&values);
            warnings.extend(drift.map(|change| Warning::Drift { figure, change }));
            let groups = statistics::two_groups(&values);
            warnings.extend(groups.map(|medians| Warning::TwoGroups { figure, medians }));
        }
        let limited = self.of(server).filter(|m| m.client_is_the_limit).count();
        if limited > 0 {
            warnings.push(Warning::ClientIsTheLimit { repeats: limited });
        }
        let count = self.of(server).map(Measurement::errors).sum();
        if count > 0 {
            warnings.push(Warning::Errors { count });
        }
        warnings
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::compare::comparison::Place;
    use crate::compare::figure::Figures;
    use std::collections::BTreeMap;

    pub(in crate::compare) fn settings() -> Settings {
        Settings {
            profile: "quick".into(),
            cells: vec!["1k-64".into()],
            servers: vec!["onering".into(), "floor".into(), "nginx".into()],
            reference: "onering".into(),
            clients: vec!["run".into()],
            rounds: 6,
            duration_ms: 3000,
            warmup_ms: 300,
            server_cpus: vec![0],
            client_cpus: vec![1],
            congestion_control: "cubic".into(),
            seed: 1,
        }
    }

    pub(in crate::compare) fn measurement(
        round: u32,
        server: Server,
        rate: f64,
        cpu: Option<f64>,
    ) -> Measurement {
        Measurement {
            place: Place {
                round,
                cell: "1k-64".into(),
                client: "run".into(),
                server: server.name().into(),
            },
            figures: Figures {
                requests_per_s: Some(rate),
                server_cpu_us_per_request: cpu,
                ..Figures::default()
            },
            requests: 1000,
            errors: BTreeMap::new(),
            sampled: 4,
            client_is_the_limit: server == Server::Floor,
        }
    }

    /// Six rounds in which each server's rate is its own share of what the machine gave.
    pub(in crate::compare) fn measurements(shares: &[(Server, f64)]) -> Vec<Measurement> {
        let machine = [100.0, 130.0, 90.0, 140.0, 80.0, 120.0];
        let wobble = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99];
        let mut all = Vec::new();
        for round in 0..6 {
            for (place, (server, share)) in shares.iter().enumerate() {
                let rate = machine[round] * share * wobble[(round + place) % 6] * 1000.0;
                let cpu = Some(400.0 / share / machine[round]);
                all.push(measurement(round as u32, *server, rate, cpu));
            }
        }
        all
    }

    fn result(measurements: &[Measurement]) -> CellResult {
        let results = analyse(measurements, &settings());
        assert_eq!(results.len(), 1);
        results.into_iter().next().unwrap()
    }

    fn rate(result: &CellResult, server: Server) -> &FigureResult {
        let server = result.servers.iter().find(|s| s.server == server.name()).unwrap();
        &server.figures[0]
    }

    #[test]
    fn ratios_within_blocks_hold_where_the_machine_swings() {
        let all = measurements(&[
            (Server::Onering, 1.0),
            (Server::Floor, 1.2),
            (Server::Nginx, 0.9),
            (Server::H2o, 1.0),
        ]);
        let result = result(&all);
        assert_eq!((&*result.cell, &*result.reference), ("1k-64", "onering"));
        let nginx = rate(&result, Server::Nginx);
        assert_eq!(nginx.verdict, Some(Verdict::Behind));
        assert!((nginx.to_reference.unwrap().centre - 0.9).abs() < 0.01);
        assert!((nginx.to_floor.unwrap().centre - 0.75).abs() < 0.01);
        assert_eq!(rate(&result, Server::H2o).verdict, Some(Verdict::NoDifferenceShown));
        let onering = rate(&result, Server::Onering);
        assert_eq!((onering.to_reference, onering.verdict), (None, None));
        assert_eq!(rate(&result, Server::Floor).verdict, Some(Verdict::Ahead));
        assert_eq!(result.lost_to, [], "the floor is no server");
    }

    #[test]
    fn a_cell_is_lost_to_whoever_is_ahead() {
        let all = measurements(&[(Server::Onering, 1.0), (Server::Lighttpd, 1.1)]);
        let lost: Vec<_> =
            result(&all).lost_to.into_iter().map(|loss| (loss.server, loss.figure)).collect();
        let expected = [Figure::RequestsPerS, Figure::ServerCpuUsPerRequest];
        assert_eq!(lost, expected.map(|figure| ("lighttpd".to_owned(), figure)));
    }

    #[test]
    fn pairs_are_of_one_round_and_another_reference_steps_in() {
        let all = [
            measurement(0, Server::Nginx, 100.0, Some(8.0)),
            measurement(0, Server::H2o, 200.0, Some(4.0)),
            measurement(1, Server::Nginx, 50.0, None),
            measurement(1, Server::H2o, 200.0, Some(4.0)),
            measurement(2, Server::H2o, 400.0, Some(8.0)),
        ];
        let result = result(&all);
        assert_eq!(result.reference, "nginx");
        let ratio = rate(&result, Server::H2o).to_reference.unwrap();
        assert_eq!((ratio.pairs, ratio.interval), (2, None));
        assert!((ratio.centre - 8.0_f64.sqrt()).abs() < 1e-9);
        let cpu = &result.servers[1].figures[1];
        assert_eq!(cpu.to_reference.unwrap().pairs, 1);
        assert_eq!(rate(&result, Server::H2o).verdict, None);
    }

    #[test]
    fn warnings_say_what_to_think_of() {
        let mut all: Vec<_> = (0..5)
            .map(|round| measurement(round, Server::Floor, 100.0 - f64::from(round) * 5.0, None))
            .collect();
        all[1].errors.insert("reset".into(), 3);
        let result = result(&all);
        let texts: Vec<_> = result.servers[0].warnings.iter().map(Warning::to_string).collect();
        let parts = ["5 hold the true ratio in 93.8 %", "by -22 %", "limit in 5", "3 errors"];
        for part in parts {
            assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
        }
        assert_eq!(texts.len(), parts.len());
    }
}
