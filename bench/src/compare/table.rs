//! The comparison as text: for each cell and client a table of each figure, the lost cells last.

use super::analysis::{CellResult, FigureResult, Loss, ServerResult, Warning};
use super::comparison::{Comparison, Skipped};
use super::peer::Server;
use crate::statistics::{PAIRS_FOR_LEVEL, Ratio, Verdict, level_of};
use std::fmt;

/// A ratio with its interval, or with its range in round brackets where there is no interval.
struct Shown(Option<Ratio>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            None => String::new(),
            Some(Ratio { centre, interval: Some([low, high]), .. }) => {
                format!("{centre:.2} [{low:.2}, {high:.2}]")
            }
            Some(Ratio { centre, range: [least, greatest], interval: None, .. }) => {
                format!("{centre:.2} ({least:.2}–{greatest:.2})")
            }
        };
        f.pad(&text)
    }
}

/// A verdict as the tables have it.
pub(super) fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ahead => "ahead",
        Verdict::Behind => "behind",
        Verdict::NoDifferenceShown => "no difference shown",
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        for cell in &self.cells {
            write_cell(f, cell, self.settings.rounds as usize)?;
        }
        if !self.skipped.is_empty() {
            writeln!(f)?;
        }
        for Skipped { what, why } in &self.skipped {
            writeln!(f, "skipped: {what}: {why}")?;
        }
        writeln!(f)?;
        for line in self.losses() {
            writeln!(f, "{line}")?;
        }
        if self.interrupted {
            writeln!(f, "\ninterrupted: not all rounds were measured")?;
        }
        Ok(())
    }
}

impl Comparison {
    /// What was asked for, and how to read what came.
    pub(super) fn head(&self) -> String {
        let settings = &self.settings;
        let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let mut text = format!(
            "Rounds: {}, of {} s; servers on CPU {}, clients on CPU {}; {}; seed {}\n\
             Medians (least–greatest); ratios within blocks: geometric mean [interval], or \
             (least–greatest) where there are too few.\n",
            settings.rounds,
            settings.duration_ms as f64 / 1e3,
            list(&settings.server_cpus),
            list(&settings.client_cpus),
            settings.congestion_control,
            settings.seed
        );
        let rounds = settings.rounds as usize;
        if rounds < PAIRS_FOR_LEVEL {
            let warning = Warning::TooFewRepeats { repeats: rounds, needed: PAIRS_FOR_LEVEL };
            text += &format!("{warning}.\n");
        }
        let figures = self.cells.iter().flat_map(|cell| &cell.servers).flat_map(|s| &s.figures);
        let verdicts = figures.filter(|figure| figure.verdict.is_some()).count();
        if verdicts > 0 {
            let wrong = (1.0 - level_of(rounds)) * verdicts as f64;
            text += &format!(
                "Of {verdicts} verdicts, {wrong:.1} at most are to be expected to be wrong by chance.\n"
            );
        }
        text
    }

    /// The lost cells, a line each.
    pub(super) fn losses(&self) -> Vec<String> {
        let lost = self.cells.iter().filter(|cell| !cell.lost_to.is_empty());
        let line = |CellResult { cell, client, reference, lost_to, .. }: &CellResult| {
            let ahead = |Loss { server, figure }: &Loss| format!("{server} ({figure})");
            let ahead = lost_to.iter().map(ahead).collect::<Vec<_>>().join(", ");
            format!("lost: {cell}, client {client}: {reference} is behind {ahead}")
        };
        let lines: Vec<_> = lost.map(line).collect();
        match lines.is_empty() {
            true => vec![format!("no cell is shown to be lost by {}", self.settings.reference)],
            false => lines,
        }
    }
}

impl CellResult {
    /// Its warnings, a line each: what several servers are warned of alike is said once, and what
    /// the head has said of all `rounds` is not said again.
    pub(super) fn warnings(&self, rounds: usize) -> Vec<String> {
        let mut all: Vec<(String, Vec<&str>)> = Vec::new();
        for server in &self.servers {
            for warning in &server.warnings {
                if matches!(warning, Warning::TooFewRepeats { repeats, .. } if *repeats == rounds) {
                    continue;
                }
                let text = warning.to_string();
                match all.iter_mut().find(|(other, _)| *other == text) {
                    Some((_, names)) => names.push(&server.server),
                    None => all.push((text, vec![&server.server])),
                }
            }
        }
        all.into_iter().map(|(text, names)| format!("{}: {text}", names.join(", "))).collect()
    }
}

fn write_cell(f: &mut fmt::Formatter<'_>, cell: &CellResult, rounds: usize) -> fmt::Result {
    let CellResult { title, client, reference, servers, .. } = cell;
    writeln!(f, "\n{title}; client: {client}")?;
    let first = servers.first().map_or(&[][..], |server| &server.figures[..]);
    let mut figures: Vec<_> = first.iter().map(|figure| figure.figure).collect();
    for figure in servers.iter().flat_map(|server| &server.figures) {
        if !figures.contains(&figure.figure) {
            figures.push(figure.figure);
        }
    }
    for figure in figures {
        let line = format!(
            "  {:<24} {:>10}  {:<23} {:<40} {}",
            figure.to_string(),
            "median",
            "(least–greatest)",
            format!("÷ {reference}"),
            if servers.iter().any(|server| server.server == Server::Floor.name()) {
                "÷ floor"
            } else {
                ""
            }
        );
        writeln!(f, "{}", line.trim_end())?;
        for server in servers {
            if let Some(result) = server.figures.iter().find(|result| result.figure == figure) {
                write_line(f, server, result)?;
            }
        }
    }
    for line in cell.warnings(rounds) {
        writeln!(f, "  {line}")?;
    }
    Ok(())
}

fn write_line(
    f: &mut fmt::Formatter<'_>,
    server: &ServerResult,
    result: &FigureResult,
) -> fmt::Result {
    let FigureResult { figure, median, range: [least, greatest], .. } = *result;
    let range = format!("({}–{})", figure.text(least), figure.text(greatest));
    let line = format!(
        "    {:<22} {:>10}  {range:<23} {:<20} {:<19} {}",
        server.server,
        figure.text(median),
        Shown(result.to_reference),
        result.verdict.map_or("", words),
        Shown(result.to_floor),
    );
    writeln!(f, "{}", line.trim_end())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::compare::analysis::analyse;
    use crate::compare::analysis::tests::{measurements, settings};
    use crate::compare::comparison::SchemaName;
    use crate::fingerprint::{Fingerprint, Subject};

    pub(in crate::compare) fn comparison(shares: &[(Server, f64)]) -> Comparison {
        let measurements = measurements(shares);
        let subject = Subject { target: None, command: Vec::new(), programs: Vec::new() };
        Comparison {
            schema: SchemaName::Compare2,
            settings: settings(),
            fingerprint: Fingerprint::read(subject),
            contenders: Vec::new(),
            cells: analyse(&measurements, &settings()),
            measurements,
            skipped: vec![Skipped { what: "h2o".into(), why: "not here".into() }],
            interrupted: true,
        }
    }

    #[test]
    fn the_table_shows_what_there_is_and_names_what_is_not() {
        let comparison = comparison(&[
            (Server::Onering, 1.0),
            (Server::Floor, 1.25),
            (Server::Nginx, 0.8),
            (Server::Lighttpd, 1.1),
        ]);
        let text = comparison.to_string();
        for part in [
            "Rounds: 6, of 3 s; servers on CPU 0, clients on CPU 1; cubic; seed 1\n",
            "Of 6 verdicts, 0.3 at most are to be expected to be wrong by chance.\n",
            "1 KiB, keep-alive, 64 connections; client: run\n  requests/s ",
            "    onering                    109400  (80800–140000)",
            " behind ",
            " ahead ",
            "÷ onering",
            "÷ floor",
            "  floor: the client was the limit in 6 repeats",
            "skipped: h2o: not here\n",
            "lost: 1k-64, client run: onering is behind lighttpd (requests/s), lighttpd (server CPU",
            "interrupted",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("wrk") && !text.contains("behind floor"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 140), "{text}");
    }

    #[test]
    fn what_is_not_lost_is_said_too() {
        let text = comparison(&[(Server::Onering, 1.0), (Server::Nginx, 1.0)]).to_string();
        assert!(text.contains("no difference shown"), "{text}");
        assert!(text.contains("no cell is shown to be lost by onering\n"), "{text}");
    }

    #[test]
    fn json_reads_back_as_it_was_and_another_version_is_refused() {
        let comparison = comparison(&[(Server::Onering, 1.0), (Server::Nginx, 0.8)]);
        let json = serde_json::to_string(&comparison).unwrap();
        assert!(json.starts_with(r#"{"schema":"onering-bench/compare/2","#), "{json}");
        assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), comparison);
        let former = json.replace("compare/2", "compare/1");
        assert!(serde_json::from_str::<Comparison>(&former).is_err());
    }
}
