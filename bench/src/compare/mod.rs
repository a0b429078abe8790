//! Servers side by side: the same load on each, one after the other, in random order.
//!
//! Everything runs in a network namespace of its own, with [each server](peer) on the same CPUs by
//! an equal configuration from `bench/peers/`. For each [`cell`], client and round the servers are a
//! block: taken one after the other in an order drawn anew, each started for its one measurement,
//! checked byte for byte, measured, and stopped. Ratios are taken within blocks, and
//! [what follows from them](analysis) has intervals and verdicts.
//!
//! | module | what it is |
//! |---|---|
//! | [`cell`], [`options`] | what is measured, by whom, how often |
//! | [`peer`], [`configuration`], `certificate`, `contender` | the servers and what they are told |
//! | `order`, `journal` | when what is measured, and what came already |
//! | `namespace`, `stage`, `running`, `answer`, `load`, `interrupt` | one measurement |
//! | [`figure`], [`comparison`], [`analysis`], `table`, `html` | the result |

pub mod analysis;
mod answer;
pub mod cell;
mod certificate;
pub mod comparison;
pub mod configuration;
pub mod contender;
pub mod figure;
mod html;
mod journal;
mod load;
pub mod namespace;
pub mod options;
mod order;
pub mod peer;
mod running;
mod stage;
mod table;

use crate::fingerprint::{Fingerprint, Program, Subject};
use comparison::{Comparison, SchemaName, Skipped};
use contender::{Contender, Found};
use figure::Figure;
use journal::{Entry, Former, Header, Journal, JournalError};
use namespace::NamespaceError;
use onering::sys::affinity;
use options::{Client, JournalFile, Options, Settings};
use order::Block;
use peer::Server;
use stage::Stage;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The namespace could not be made.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Client and server would take time from each other.
    #[error(
        "server and client must be on different CPUs, not both on {0}, unless --share-cpus is given"
    )]
    SameCpu(usize),
    /// Someone would not run where it is to.
    #[error("this process may not run on CPU {cpu}; choose from {}", allowed.iter()
        .map(usize::to_string).collect::<Vec<_>>().join(", "))]
    NoSuchCpu {
        /// Where it was to run.
        cpu: usize,
        /// Where it may.
        allowed: Vec<usize>,
    },
    /// Nobody can do what is to be measured.
    #[error("nothing to compare: {0}")]
    Nothing(&'static str),
    /// Files for the servers could not be written.
    #[error("cannot write the files to be served: {0}")]
    Files(io::Error),
    /// The file set could not be made.
    #[error(transparent)]
    FileSet(#[from] onering_fileset::store::Error),
    /// The file set could not be planned.
    #[error(transparent)]
    Plan(#[from] onering_fileset::plan::PlanError),
    /// A server's program is there and cannot be read.
    #[error("cannot read the program of {0}: {1}")]
    Program(&'static str, io::Error),
    /// The client's CPUs cannot be used.
    #[error("cannot run on the client's CPUs: {0}")]
    Pin(io::Error),
    /// Signals cannot be read.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// Measurements cannot be kept, or those that were kept are of another comparison.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl CompareError {
    /// Whether the command line is to blame.
    pub fn is_usage(&self) -> bool {
        use JournalError::{Empty, Exists, Line, Other};
        matches!(
            self,
            Self::SameCpu(_)
                | Self::NoSuchCpu { .. }
                | Self::Journal(Exists(_) | Empty(_) | Line { .. } | Other { .. })
        )
    }

    /// Whether a permission is missing.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Namespace(NamespaceError::Refused(_)))
    }
}

/// Compares. To be called before any thread is started: the calling thread moves into a network
/// namespace of its own. Progress goes to `progress`, a line each.
pub fn compare(
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Comparison, CompareError> {
    check_cpus(&options.server_cpus, &options.client_cpus, options.share_cpus)?;
    let former = match &options.journal {
        Some(JournalFile::Resumed(path)) => Some(Former::read(path)?),
        Some(JournalFile::New(_)) | None => None,
    };
    let mut skipped = Vec::new();
    let servers = contender::servers(options, &mut skipped);
    let clients = contender::clients(options, &mut skipped);
    for Skipped { what, why } in &skipped {
        progress(&format!("{what} skipped: {why}"));
    }
    let contenders = contenders(&servers, options)?;
    let seed = options.seed.or(former.as_ref().map(Former::seed));
    let settings = Settings::new(options, seed.unwrap_or_else(|| fastrand::u64(..)));
    let header = Header::new(settings.clone(), contenders.clone());
    let blocks = order::blocks(
        settings.seed,
        options.rounds,
        &options.cells,
        &clients.iter().map(|client| client.who).collect::<Vec<_>>(),
        &servers.iter().map(|server| server.who).collect::<Vec<_>>(),
    );
    if blocks.is_empty() {
        return Err(CompareError::Nothing(
            "no server that is installed takes part in a cell that a client can make",
        ));
    }
    let mut journal = journal(options, former, &header, progress)?;
    namespace::enter()?;
    running::keep_to(&options.client_cpus).map_err(CompareError::Pin)?;
    let fingerprint = fingerprint(&clients, &contenders);
    let mut stage = Stage::new(options)?;
    let missing: Vec<_> = blocks.iter().filter(|block| !journal.has(block)).collect();
    let interrupted = measure(&mut stage, &missing, &servers, &clients, &mut journal, progress)?;
    if let Some(path) = journal.path().filter(|_| interrupted) {
        progress(&format!("go on with it by --resume {}", path.display()));
    }
    let (measurements, not_measured) = journal.into_entries();
    skipped.extend(not_measured);
    Ok(Comparison {
        schema: SchemaName::Compare2,
        cells: analysis::analyse(&measurements, &settings),
        settings,
        fingerprint,
        contenders,
        measurements,
        skipped,
        interrupted,
    })
}

fn check_cpus(servers: &[usize], clients: &[usize], shared: bool) -> Result<(), CompareError> {
    if let Some(cpu) = servers.iter().find(|cpu| clients.contains(cpu) && !shared) {
        return Err(CompareError::SameCpu(*cpu));
    }
    let allowed = affinity::allowed_cpus();
    match servers.iter().chain(clients).find(|cpu| !allowed.contains(cpu)) {
        Some(&cpu) => Err(CompareError::NoSuchCpu { cpu, allowed }),
        None => Ok(()),
    }
}

fn contenders(
    servers: &[Found<Server>],
    options: &Options,
) -> Result<Vec<Contender>, CompareError> {
    let contender = |server: &Found<Server>| {
        Contender::of(server, &options.server_cpus)
            .map_err(|error| CompareError::Program(server.who.name(), error))
    };
    servers.iter().map(contender).collect()
}

fn journal(
    options: &Options,
    former: Option<Former>,
    header: &Header,
    progress: &mut dyn FnMut(&str),
) -> Result<Journal, CompareError> {
    Ok(match (former, &options.journal) {
        (Some(former), _) => {
            if former.cut_off {
                progress("the last line of the journal was cut off: it is dropped");
            }
            former.resume(header)?
        }
        (None, Some(JournalFile::New(path) | JournalFile::Resumed(path))) => {
            Journal::begin(path, header)?
        }
        (None, None) => Journal::default(),
    })
}

/// Of this machine as the namespace shows it.
fn fingerprint(clients: &[Found<Client>], contenders: &[Contender]) -> Fingerprint {
    let wrk = clients.iter().filter(|client| client.who == Client::Wrk);
    let wrk = wrk.map(|c| Program::ask("wrk", &c.program, &["-v"], Vec::new()));
    let servers = contenders.iter().map(|contender| contender.program.clone());
    Fingerprint::read(Subject {
        target: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        command: std::env::args().collect(),
        programs: servers.chain(wrk).collect(),
    })
}

/// Measures what is missing; says whether it was interrupted.
fn measure(
    stage: &mut Stage<'_>,
    blocks: &[&Block],
    servers: &[Found<Server>],
    clients: &[Found<Client>],
    journal: &mut Journal,
    progress: &mut dyn FnMut(&str),
) -> Result<bool, CompareError> {
    let total: usize = blocks.iter().map(|block| block.servers.len()).sum();
    let time: Duration = blocks.iter().map(|block| stage.time_for(block)).sum();
    progress(&format!("{total} measurements, about {}", minutes(time)));
    let mut done = 0;
    for block in blocks {
        let client = clients.iter().find(|client| client.who == block.client);
        let of = |who| servers.iter().find(|server| server.who == who);
        for (client, server) in block.servers.iter().filter_map(|who| client.zip(of(*who))) {
            let place = block.place(server.who);
            let outcome = stage.measure(block, client, server);
            if stage.is_interrupted()? {
                return Ok(true);
            }
            done += 1;
            let head = format!("[{done}/{total}] {place}");
            journal.add(match outcome {
                Ok(measurement) => {
                    let shown = Figure::decisive(block.cell.load).iter().filter_map(|figure| {
                        let value = figure.of(&measurement.figures)?;
                        Some(format!("{} {figure}", figure.text(value)))
                    });
                    progress(&format!("{head}: {}", shown.collect::<Vec<_>>().join(", ")));
                    Entry::Measured(measurement)
                }
                Err(error) => {
                    progress(&format!("{head}: skipped: {error}"));
                    Entry::Skipped { place, why: error.to_string() }
                }
            })?;
        }
    }
    Ok(false)
}

/// A time that need not be exact.
fn minutes(time: Duration) -> String {
    match time.as_secs().div_ceil(60) {
        1 => "a minute".to_owned(),
        minutes @ ..120 => format!("{minutes} minutes"),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_will_not_do_are_refused_before_anything_is_begun() {
        let here = affinity::allowed_cpus()[0];
        for (server_cpus, client_cpus) in
            [(vec![0, 1], vec![2, 1]), (vec![here], vec![1023]), (vec![1023], vec![here])]
        {
            let error = check_cpus(&server_cpus, &client_cpus, false).unwrap_err();
            assert!(error.is_usage() && !error.is_permission(), "{error}");
        }
        assert!(check_cpus(&[here], &[here], true).is_ok());
    }

    #[test]
    fn a_time_is_said_as_people_say_it() {
        let said = |seconds| minutes(Duration::from_secs(seconds));
        assert_eq!(said(20), "a minute");
        assert_eq!(said(61), "2 minutes");
        assert_eq!(said(11_160), "3 h 6 min");
    }
}
