//! What to compare, and the part of it that results record and that an interrupted comparison must
//! be resumed with.

use super::cell::{CELLS, Cell, Load};
use super::namespace::CONGESTION_CONTROL;
use super::peer::Server;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Our own client's warm-up. wrk has none.
pub(super) const WARMUP: Duration = Duration::from_millis(300);

/// How long a server is loaded at most to learn the rate of which [`Load::Tails`] offers a share.
pub(super) const KNEE: Duration = Duration::from_secs(1);

/// The load that the file set of [`Load::Web99`] is made for: the smallest set, 25 directories and
/// 122 MB, since what is compared is servers and not disks.
pub(super) const FILE_SET_LOAD: u64 = 1;

/// How long connections wait before memory is read in [`Load::Idle`].
pub(super) const SETTLE: Duration = Duration::from_secs(1);

/// What starting, checking and stopping a server take, for estimates only.
const OVERHEAD: Duration = Duration::from_millis(500);

/// What opening idle connections and closing them takes, for estimates only.
const OPENING: Duration = Duration::from_secs(3);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// This program's `run`.
    Run,
    /// wrk.
    Wrk,
}

impl Client {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Wrk => "wrk",
        }
    }

    /// Whether it can make the load of a cell. wrk sends one request at a time, as fast as it can.
    pub fn can_make(self, cell: Cell) -> bool {
        match self {
            Self::Run => true,
            Self::Wrk => matches!(cell.load, Load::Get(get) if get.pipeline == 1),
        }
    }

    /// About how long one measurement takes, all in all.
    pub fn time_for(self, cell: Cell, duration: Duration) -> Duration {
        let measured = match (self, cell.load) {
            (_, Load::Idle { .. }) => OPENING + SETTLE,
            (Self::Run, Load::Tails(_)) => WARMUP * 2 + KNEE.min(duration) + duration,
            (Self::Run, _) => WARMUP + duration,
            (Self::Wrk, _) => Duration::from_secs(duration.as_secs_f64().ceil().max(1.0) as u64),
        };
        OVERHEAD + measured
    }
}

/// Cells, servers, repeats and durations that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// 1 round of 0.5 s of everything: does it all work?
    Smoke,
    /// 5 rounds of 3 s of eight cells and five servers: under 20 minutes
    Quick,
    /// 6 rounds of 3 s of what is TLS: about half an hour
    Tls,
    /// 10 rounds of 3 s of everything, with a journal: some hours
    Full,
}

/// The cells of [`Profile::Quick`]: requests that are all overhead, and bodies that are all
/// transfer; connections that stay and connections that do not; a client that does not wait; a mix;
/// times when nobody is swamped; and what a connection costs that only waits.
const QUICK_CELLS: [&str; 8] = [
    "1k-64",
    "100k-64",
    "1m-16",
    "1k-close-64",
    "1k-pipe16-64",
    "web99-64",
    "tails-1k-64",
    "idle-4000",
];

/// The servers of [`Profile::Quick`].
const QUICK_SERVERS: [Server; 5] =
    [Server::Onering, Server::Floor, Server::Nginx, Server::H2o, Server::Lighttpd];

/// The servers of [`Profile::Tls`].
const TLS_SERVERS: [Server; 5] =
    [Server::Onering, Server::Nginx, Server::H2o, Server::Apache, Server::Haproxy];

impl Profile {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Tls => "tls",
            Self::Full => "full",
        }
    }

    /// Its cells.
    pub fn cells(self) -> Vec<Cell> {
        let in_profile = |cell: &Cell| match self {
            Self::Smoke | Self::Full => true,
            Self::Quick => QUICK_CELLS.contains(&cell.name),
            Self::Tls => cell.tls(),
        };
        CELLS.into_iter().filter(in_profile).collect()
    }

    /// Its servers.
    pub fn servers(self) -> Vec<Server> {
        match self {
            Self::Smoke | Self::Full => Server::ALL.into(),
            Self::Quick => QUICK_SERVERS.into(),
            Self::Tls => TLS_SERVERS.into(),
        }
    }

    /// Its clients.
    pub fn clients(self) -> Vec<Client> {
        match self {
            Self::Smoke | Self::Full => vec![Client::Run, Client::Wrk],
            Self::Quick | Self::Tls => vec![Client::Run],
        }
    }

    /// How often everything is measured.
    pub fn rounds(self) -> u32 {
        match self {
            Self::Smoke => 1,
            Self::Quick => 5,
            Self::Tls => 6,
            Self::Full => 10,
        }
    }

    /// How long each time.
    pub fn duration(self) -> Duration {
        match self {
            Self::Smoke => Duration::from_millis(500),
            Self::Quick | Self::Tls | Self::Full => Duration::from_secs(3),
        }
    }
}

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it is called.
    pub profile: Profile,
    /// The loads.
    pub cells: Vec<Cell>,
    /// The servers.
    pub servers: Vec<Server>,
    /// The server that ratios are to.
    pub reference: Server,
    /// The clients.
    pub clients: Vec<Client>,
    /// How often each is measured.
    pub rounds: u32,
    /// How long each time; wrk rounds up to whole seconds.
    pub duration: Duration,
    /// The CPUs of each server.
    pub server_cpus: Vec<usize>,
    /// The CPUs of each client.
    pub client_cpus: Vec<usize>,
    /// Whether they may be the same.
    pub share_cpus: bool,
    /// What orders are drawn from; absent: the journal's, or a new one.
    pub seed: Option<u64>,
    /// This project's server, if not beside this program or in the search path.
    pub onering: Option<PathBuf>,
    /// A former build of it.
    pub former: Option<PathBuf>,
    /// Where measurements are kept as they come.
    pub journal: Option<JournalFile>,
}

/// A file of measurements that came so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalFile {
    /// To be begun; must not be there.
    New(PathBuf),
    /// To be gone on with.
    Resumed(PathBuf),
}

/// What is recorded of [`Options`]: measurements under other settings are not of this comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Name of the profile; its parts may have been chosen otherwise.
    pub profile: String,
    /// Names of the cells.
    pub cells: Vec<String>,
    /// Names of the servers asked for.
    pub servers: Vec<String>,
    /// Name of the server that ratios are to.
    pub reference: String,
    /// Names of the clients asked for.
    pub clients: Vec<String>,
    /// How often everything is measured.
    pub rounds: u32,
    /// How long each measurement is, ms.
    pub duration_ms: u64,
    /// How long our own client warms up before, ms.
    pub warmup_ms: u64,
    /// CPUs of each server.
    pub server_cpus: Vec<usize>,
    /// CPUs of each client.
    pub client_cpus: Vec<usize>,
    /// Congestion control of all connections.
    pub congestion_control: String,
    /// Seed of the orders and of the intervals.
    pub seed: u64,
}

impl Settings {
    /// The settings of `options` with their seed.
    pub(super) fn new(options: &Options, seed: u64) -> Self {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            profile: options.profile.name().to_owned(),
            cells: options.cells.iter().map(|cell| cell.name.to_owned()).collect(),
            servers: options.servers.iter().map(|server| server.name().to_owned()).collect(),
            reference: options.reference.name().to_owned(),
            clients: options.clients.iter().map(|client| client.name().to_owned()).collect(),
            rounds: options.rounds,
            duration_ms: ms(options.duration),
            warmup_ms: ms(WARMUP),
            server_cpus: options.server_cpus.clone(),
            client_cpus: options.client_cpus.clone(),
            congestion_control: CONGESTION_CONTROL.to_owned(),
            seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// About how long a profile takes with every server and client installed.
    fn time_for(profile: Profile) -> Duration {
        let mut sum = Duration::ZERO;
        for cell in profile.cells() {
            let servers = profile.servers().iter().filter(|s| s.objection(cell).is_none()).count();
            for client in profile.clients().into_iter().filter(|client| client.can_make(cell)) {
                sum += client.time_for(cell, profile.duration())
                    * u32::try_from(servers).unwrap()
                    * profile.rounds();
            }
        }
        sum
    }

    #[test]
    fn profiles_are_as_long_as_they_may_be() {
        let minutes = |profile| time_for(profile).as_secs() / 60;
        assert!(minutes(Profile::Smoke) < 15, "{}", minutes(Profile::Smoke));
        assert!(minutes(Profile::Quick) < 20, "{}", minutes(Profile::Quick));
        assert!(minutes(Profile::Tls) < 30, "{}", minutes(Profile::Tls));
        let full = minutes(Profile::Full);
        assert!((60..4 * 60).contains(&full), "{full}");
    }

    #[test]
    fn the_quick_profile_has_its_eight_cells() {
        let cells: Vec<_> = Profile::Quick.cells().iter().map(|cell| cell.name).collect();
        assert_eq!(cells, QUICK_CELLS);
        assert_eq!(Profile::Full.cells(), CELLS);
    }

    #[test]
    fn wrk_makes_the_loads_that_it_can() {
        let can = |name| Client::Wrk.can_make(Cell::named(name).unwrap());
        assert!(can("1k-64") && can("1k-close-64") && can("tls-1k-64"));
        assert!(!can("1k-pipe16-64") && !can("idle-4000") && !can("web99-64"));
    }
}
