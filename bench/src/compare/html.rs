//! The comparison as one self-contained page: ratios with their intervals as bars, every figure in a
//! table, and what it was measured with.

use super::analysis::{CellResult, FigureResult, ServerResult};
use super::comparison::Comparison;
use super::figure::Figure;
use super::table::words;
use crate::result::html::{self, RatioBar, ratio_bars};
use crate::statistics::Better;
use maud::{Markup, html};

impl Comparison {
    /// The page.
    pub fn html(&self) -> String {
        let title = format!("{} beside other servers", self.settings.reference);
        let contents = html! {
            header {
                h1 { (title) }
                @for line in self.head().lines() { p.soft { (line) } }
            }
            main {
                section {
                    h2 { "Lost cells" }
                    ul { @for line in self.losses() { li { (line) } } }
                }
                @for (index, cell) in self.cells.iter().enumerate() {
                    (section(index, cell, self.settings.rounds as usize))
                }
                @if !self.skipped.is_empty() {
                    section {
                        h2 { "Skipped" }
                        ul { @for skipped in &self.skipped {
                            li { (skipped.what) ": " (skipped.why) }
                        } }
                    }
                }
                (self.circumstances())
            }
        };
        html::page(&title, &contents)
    }

    fn circumstances(&self) -> Markup {
        html! {
            section {
                h2 { "Measured with" }
                pre { (self.fingerprint) }
                @for contender in &self.contenders {
                    details {
                        summary { (contender.program.name) }
                        pre { (contender.program.command.join(" ")) }
                        p.soft { "SHA-256 of the program: " (contender.sha256) }
                        @for configuration in &contender.configurations {
                            pre { (configuration.text) }
                        }
                    }
                }
            }
        }
    }
}

fn section(index: usize, cell: &CellResult, rounds: usize) -> Markup {
    let decisive = cell.servers.iter().flat_map(|server| &server.figures);
    let mut figures: Vec<Figure> = Vec::new();
    for figure in decisive.filter(|figure| figure.decisive).map(|figure| figure.figure) {
        if !figures.contains(&figure) {
            figures.push(figure);
        }
    }
    html! {
        section {
            h2 { (cell.title) "; client: " (cell.client) }
            @for (nth, figure) in figures.iter().enumerate() {
                (ratio_bars(
                    &format!("cell{index}-{nth}"),
                    &format!("{figure} ÷ {}; {}", cell.reference, direction(*figure)),
                    &bars(cell, *figure),
                ))
            }
            (medians(cell))
            ul { @for line in cell.warnings(rounds) { li { (line) } } }
        }
    }
}

fn direction(figure: Figure) -> &'static str {
    match figure.better() {
        Better::More => "more is better",
        Better::Less => "less is better",
    }
}

/// What has an interval; the others are in the table of medians only.
fn bars(cell: &CellResult, figure: Figure) -> Vec<RatioBar> {
    let bar = |server: &ServerResult| {
        let result = server.figures.iter().find(|result| result.figure == figure)?;
        let ratio = result.to_reference?;
        let [low, high] = ratio.interval?;
        Some(RatioBar {
            name: server.server.clone(),
            ratio: ratio.centre,
            low,
            high,
            verdict: result.verdict.map_or("", words).to_owned(),
        })
    };
    cell.servers.iter().filter_map(bar).collect()
}

fn medians(cell: &CellResult) -> Markup {
    let row = |server: &ServerResult, result: &FigureResult| {
        let [least, greatest] = result.range.map(|value| result.figure.text(value));
        html! {
            tr {
                th scope="row" { (server.server) }
                td { (result.figure) }
                td { (result.figure.text(result.median)) }
                td { (least) }
                td { (greatest) }
                td { (server.repeats) }
                td { (server.errors) }
            }
        }
    };
    html! {
        div.scroll { table {
            caption { "Medians of the repeats" }
            thead { tr {
                th { "" } th { "figure" } th { "median" } th { "least" } th { "greatest" }
                th { "repeats" } th { "errors" }
            } }
            tbody {
                @for server in &cell.servers {
                    @for result in &server.figures { (row(server, result)) }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use crate::compare::peer::Server;
    use crate::compare::table::tests::comparison;

    #[test]
    fn the_page_has_bars_for_what_has_intervals_and_a_table_of_all() {
        let shares = [(Server::Onering, 1.0), (Server::Nginx, 0.8), (Server::Lighttpd, 1.1)];
        let page = comparison(&shares).html();
        for part in [
            "<h2>Lost cells</h2><ul><li>lost: 1k-64, client run: onering is behind lighttpd",
            "requests/s ÷ onering; more is better",
            "server CPU µs/request ÷ onering; less is better",
            "nginx: 0.80×, behind",
            "lighttpd: 1.10×, ahead",
            "Medians of the repeats",
            "h2o: not here",
        ] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(!page.contains("<script") && !page.contains("http://"), "{page}");
    }

    #[test]
    fn ids_are_unique() {
        let page = comparison(&[(Server::Onering, 1.0), (Server::Nginx, 0.8)]).html();
        let mut ids: Vec<_> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
