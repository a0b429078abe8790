//! `onering-bench run --workload web99` and `--workload web96`.

use super::watch::Watch;
use super::{Arguments, tls};
use crate::cli::output::tell_error;
use crate::cli::{CommandError, Verdict};
use crate::dial::Connection;
use crate::engine::windows::Window;
use crate::engine::{self, Model, Plan, Watcher};
use crate::line::Pace;
use crate::once::OnceError;
use crate::request::Version;
use crate::result::load::{HttpVersion, Load, Pacing, Parameter, RequestsPerConnection};
use crate::result::window::{Counts, Window as WindowResult};
use crate::target::{Scheme, Target, Targets};
use crate::workload::web96::{self, Web96};
use crate::workload::web99::control::ControlError;
use crate::workload::web99::parameters::{self, Parameters, Paths, Wanted};
use crate::workload::web99::posts::Ledger;
use crate::workload::web99::{Web99, control};
use clap::ValueEnum;
use onering::config::units::parse_duration;
use onering_fileset::laws::{Popularity, mean_body_bytes};
use onering_fileset::plan::Directories;
use onering_fileset::store::Manifest;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const FILESET_SEED: u64 = 1;
const ITERATIONS: u32 = 3;
const RAMP: Duration = Duration::from_secs(1);
const FILES_PATH: &str = "/file_set/";
const DYNAMIC_PATH: &str = "/web99/dynamic";
const CGI_PATH: &str = "/web99/cgi";

/// What only these workloads have.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Workloads web99 and web96")]
pub(super) struct Options {
    /// web99: simultaneous connections, one for each user, in place of --connections; also the load
    /// that the file set was generated for, unless --fileset tells
    #[arg(long, value_name = "N", conflicts_with = "connections", value_parser = clap::value_parser!(u64).range(1..))]
    load: Option<u64>,
    /// The directory into which `onering fileset generate` has written the file set that the server
    /// serves: its size and seed are taken from there
    #[arg(long, value_name = "DIR")]
    fileset: Option<PathBuf>,
    /// The seed with which the file set was generated, unless --fileset tells
    #[arg(long, value_name = "N", default_value_t = FILESET_SEED, conflicts_with = "fileset")]
    fileset_seed: u64,
    /// web99: the mix of requests
    #[arg(long, value_enum, default_value_t)]
    mix: Mix,
    /// web99: the bandwidth of each user's line
    #[arg(long, value_enum, default_value_t)]
    pacer: Pacer,
    /// web99: measured intervals of --duration each; the median is the result
    #[arg(long, value_name = "N", default_value_t = ITERATIONS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    iterations: u32,
    /// web99, where several generators load one server: how many users the others before this one have;
    /// the one with 0 resets the server
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_user: u32,
    /// web99, where several generators load one server: users of all of them
    #[arg(long, value_name = "N")]
    all_users: Option<u32>,
    /// How long to load between iterations or load points, uncounted
    #[arg(long, value_name = "T", default_value = "1s", value_parser = parse_duration)]
    ramp: Duration,
    /// Path of the file set on the server
    #[arg(long, value_name = "PATH", default_value = FILES_PATH)]
    files_path: String,
    /// Path of dynamic GETs, and of the commands that reset the server and fetch its POST log
    #[arg(long, value_name = "PATH", default_value = DYNAMIC_PATH)]
    dynamic_path: String,
    /// Path of POSTs; --dynamic-path if not given
    #[arg(long, value_name = "PATH")]
    post_path: Option<String>,
    /// Path of CGI GETs, each of which starts a process
    #[arg(long, value_name = "PATH", default_value = CGI_PATH)]
    cgi_path: String,
}

/// What is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Mix {
    /// 70 % static, 30 % dynamic
    #[default]
    Full,
    /// Static requests alone, for servers without the dynamic side
    Static,
}

/// How fast a user's line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Pacer {
    /// 400 000 bit/s and a hold: 340 kbit/s with an idle server, as in published results
    #[default]
    Calibrated,
    /// 400 000 bit/s
    #[value(name = "ideal-400")]
    Ideal400,
    /// As fast as it goes
    None,
}

impl Pacer {
    fn pace(self) -> Option<Pace> {
        match self {
            Self::Calibrated => Some(Pace::CALIBRATED),
            Self::Ideal400 => Some(Pace::IDEAL_400),
            Self::None => None,
        }
    }
}

/// How often an interrupt is looked for while the POST log is awaited.
const ASK: Duration = Duration::from_millis(100);

/// Of a hundred connections of web99-ssl, how many resume a session. The original's share is not
/// known; of the shares that are reported, 0, 90 and 100, this is the headline (WORKLOAD.md §3).
const RESUME_PERCENT: u8 = 90;

impl Options {
    /// The options of those workloads that have users of a file set, and whether each was given. (What
    /// is given as it is by default changes nothing.)
    pub(super) fn of_users(&self) -> [(&'static str, bool); 9] {
        [
            ("--load", self.load.is_some()),
            ("--mix", self.mix != Mix::default()),
            ("--pacer", self.pacer != Pacer::default()),
            ("--iterations", self.iterations != ITERATIONS),
            ("--first-user", self.first_user != 0),
            ("--all-users", self.all_users.is_some()),
            ("--dynamic-path", self.dynamic_path != DYNAMIC_PATH),
            ("--post-path", self.post_path.is_some()),
            ("--cgi-path", self.cgi_path != CGI_PATH),
        ]
    }

    /// The options of all workloads that have a file set, and whether each was given.
    pub(super) fn of_file_set(&self) -> [(&'static str, bool); 4] {
        [
            ("--fileset", self.fileset.is_some()),
            ("--fileset-seed", self.fileset_seed != FILESET_SEED),
            ("--ramp", self.ramp != RAMP),
            ("--files-path", self.files_path != FILES_PATH),
        ]
    }

    /// The size and the seed of the server's file set: as its manifest says, or those for `planned`.
    fn set(&self, planned: Directories) -> Result<(Directories, u64), CommandError> {
        let Some(root) = &self.fileset else { return Ok((planned, self.fileset_seed)) };
        let manifest = Manifest::read(root)?;
        Ok((manifest.directories(), manifest.seed()))
    }

    fn paths(&self) -> Paths {
        let dynamic = self.dynamic_path.clone();
        Paths {
            files: self.files_path.clone(),
            post: self.post_path.clone().unwrap_or_else(|| dynamic.clone()),
            dynamic,
            cgi: self.cgi_path.clone(),
        }
    }
}

impl Arguments {
    pub(super) fn web99(
        &self,
        name: &str,
        scheme: Scheme,
        targets: &Targets,
    ) -> Result<Verdict, CommandError> {
        if targets.list[0].scheme != scheme {
            let words =
                "web99 needs a target that begins with http://, web99-ssl one with https://";
            return Err(CommandError::Usage(words));
        }
        if self.rate.is_some() || self.pipeline != 1 {
            let words =
                "web99 is a closed loop with one request in flight: no --rate, no --pipeline";
            return Err(CommandError::Usage(words));
        }
        let options = &self.web99;
        let connections = options.load.unwrap_or(self.connections);
        let planned = Directories::for_load(options.all_users.map_or(connections, u64::from))?;
        let (directories, set_seed) = options.set(planned)?;
        if directories.count() != planned.count() {
            tell_error(&format_args!(
                "the file set has {} directories, and a load of so many users {}: this is not the \
                 workload that the rules have\n  fix: onering fileset generate DIR --load N",
                directories.count(),
                planned.count()
            ));
        }
        let tls = self.tls.tls(targets, RESUME_PERCENT)?;
        let spoken = tls::try_out(tls.as_ref(), targets.address, self.timeout)?;
        let mean_bytes = mean_body_bytes(None) as u64;
        let mut plan = self.plan(targets, tls, mean_bytes, true, self.drawn_from());
        plan.connections = connections as usize;
        plan.pace = options.pacer.pace();
        let windows = (0..options.iterations).map(|i| Window {
            from: self.warmup + (self.duration + options.ramp) * i,
            length: self.duration,
        });
        plan.windows = windows.collect();
        let length = plan.windows.last().map_or(Duration::ZERO, |last| last.from + last.length);
        let wording = self.wording();
        let users = u32::try_from(connections).unwrap_or(u32::MAX);
        let own = options.first_user..options.first_user.saturating_add(users);
        let wanted = Wanted {
            host: targets.list[0].authority.clone(),
            version: wording.version,
            directories,
            set_seed,
            seed: plan.seed,
            mix: match options.mix {
                Mix::Full => parameters::Mix::Full,
                Mix::Static => parameters::Mix::Static,
            },
            paths: options.paths(),
            users: options.all_users.unwrap_or(own.end),
            duration: length,
        };
        if wanted.users < own.end {
            return Err(CommandError::Usage(
                "--all-users is less than the users of this generator",
            ));
        }
        let run = Web99Run { parameters: Arc::new(Parameters::new(wanted)?), own, plan: &plan };
        if options.first_user == 0 {
            run.reset()?;
        }
        let load = Load {
            parameters: run.described(options, connections),
            requests_per_connection: RequestsPerConnection::Drawn,
            pacing: pacing(options.pacer),
            tls: spoken,
            ..self.load(name, &targets.list[0], wording.version)
        };
        let mut log = None;
        let verdict = self.tell(&plan, load, |watch| {
            run.measure(&mut log, watch, |ledger, watch| {
                Ok(engine::run(
                    &plan,
                    &|share| {
                        let first = run.own.start + share.first_connection as u32;
                        Web99::new(&run.parameters, ledger, first, share.connections)
                    },
                    &|number| format!("iteration {}", number + 1),
                    watch,
                )?)
            })
        })?;
        if let Some(log) = log {
            tell_error(&log);
        }
        Ok(verdict)
    }

    pub(super) fn web96(&self, targets: &Targets) -> Result<Verdict, CommandError> {
        let Some(target) = self.rate else {
            return Err(CommandError::Usage("web96 needs --rate: the last of its ten load points"));
        };
        let planned = web96::directories(target.ceil() as u64)?;
        let (directories, _) = self.web99.set(planned)?;
        let tls = self.tls.tls(targets, 0)?;
        let spoken = tls::try_out(tls.as_ref(), targets.address, self.timeout)?;
        let mean_bytes = mean_body_bytes(None) as u64;
        let plan = self.plan(targets, tls, mean_bytes, false, self.drawn_from());
        let parameters = web96::Parameters {
            host: targets.list[0].authority.clone(),
            files: self.web99.files_path.clone(),
            popularity: Arc::new(Popularity::new(directories)),
            seed: plan.seed,
        };
        let load = Load {
            parameters: BTreeMap::from([
                ("target".to_owned(), Parameter::Figure(target)),
                ("directories".to_owned(), Parameter::Count(directories.count().into())),
            ]),
            requests_per_connection: RequestsPerConnection::Fixed { count: 1 },
            tls: spoken,
            ..self.load("web96", &targets.list[0], Version::Http10)
        };
        self.tell(&plan, load, |watch| {
            let mut measured = Vec::new();
            for (number, rate_per_s) in web96::load_points(target).enumerate() {
                if watch.wants_to_stop() {
                    break;
                }
                let warmup = if number == 0 { self.warmup } else { self.web99.ramp };
                let point = Plan {
                    model: Model::Open { rate_per_s, arrivals: self.arrivals },
                    windows: vec![Window { from: warmup, length: self.duration }],
                    ..plan.clone()
                };
                measured.extend(engine::run(
                    &point,
                    &|share| Web96::new(&parameters, share.part.0 as u32),
                    &|_| format!("{rate_per_s:.0}/s"),
                    watch,
                )?);
            }
            Ok(measured)
        })
    }

    /// What every workload that makes its own requests says of itself.
    fn load(&self, workload: &str, target: &Target, version: Version) -> Load {
        Load {
            workload: workload.to_owned(),
            parameters: BTreeMap::new(),
            target: format!("{}{}", target.origin(), self.web99.files_path),
            targets: 1,
            pipeline: 1,
            requests_per_connection: RequestsPerConnection::Unlimited,
            http: match version {
                Version::Http10 => HttpVersion::Http10,
                Version::Http11 => HttpVersion::Http11,
            },
            fields: Vec::new(),
            status: 200,
            pacing: Pacing::None,
            tls: None,
        }
    }
}

fn pacing(pacer: Pacer) -> Pacing {
    let Some(pace) = pacer.pace() else { return Pacing::None };
    let name = pacer.to_possible_value().map(|value| value.get_name().to_owned());
    Pacing::Line {
        name: name.unwrap_or_default(),
        bits_per_s: pace.rate_bits_s(),
        hold_us: pace.hold().as_micros() as u64,
    }
}

/// A web99 run: the server is reset before it, and its POST log looked through after it.
struct Web99Run<'r> {
    parameters: Arc<Parameters>,
    /// The users of this generator, among those of all.
    own: Range<u32>,
    plan: &'r Plan,
}

impl Web99Run<'_> {
    fn has_posts(&self) -> bool {
        self.parameters.wanted().mix == parameters::Mix::Full
    }

    fn reset(&self) -> Result<(), CommandError> {
        if self.has_posts() {
            control::reset(&self.parameters, &mut self.dial()?)?;
        }
        Ok(())
    }

    /// Measures by `load`; `log` says what the POST log was like, if there are POSTs.
    fn measure(
        &self,
        log: &mut Option<String>,
        watch: &mut Watch,
        load: impl FnOnce(&Ledger, &mut Watch) -> Result<Vec<WindowResult>, CommandError>,
    ) -> Result<Vec<WindowResult>, CommandError> {
        let ledger = Ledger::default();
        let mut windows = load(&ledger, watch)?;
        if !self.has_posts() {
            return Ok(windows);
        }
        let (fetched, unread) = match self.fetch(watch) {
            Ok(fetched) => (fetched, String::new()),
            Err(CommandError::Control(ControlError::Exchange {
                error: OnceError::Interrupted,
                ..
            })) => {
                *log = Some("POST log: not looked through, because of the interrupt".to_owned());
                return Ok(windows);
            }
            // What was measured stands. A log that nobody can read has no record.
            Err(error) => (Vec::new(), format!("POST log: {error}\n")),
        };
        let Wanted { users, paths, .. } = self.parameters.wanted();
        let alone = self.own == (0..*users);
        let verdict = ledger.take().judge(&fetched, &paths.files, self.own.clone(), alone);
        if let Some(last) = windows.pop() {
            windows.push(with_post_log(&last, verdict.total()));
        }
        *log = Some(format!("{unread}{verdict}"));
        Ok(windows)
    }

    /// The server's POST log. The first interrupt of the run ends the wait for it.
    fn fetch(&self, watch: &mut Watch) -> Result<Vec<u8>, CommandError> {
        let mut connection = self.dial()?;
        connection.set_read_timeout(ASK).map_err(CommandError::Signals)?;
        // After an earlier one the next ends the process.
        let obeyed = watch.wants_to_stop();
        let mut stop = || !obeyed && watch.wants_to_stop();
        Ok(control::fetch(&self.parameters, &mut connection, &mut stop)?)
    }

    fn dial(&self) -> Result<Connection, CommandError> {
        let tls = self.plan.tls.as_ref().map(|tls| &tls.settings);
        Ok(Connection::dial(self.plan.server, tls, control::TIMEOUT)?)
    }

    fn described(&self, options: &Options, connections: u64) -> BTreeMap<String, Parameter> {
        let wanted = self.parameters.wanted();
        let mix = options.mix.to_possible_value().map(|mix| mix.get_name().to_owned());
        BTreeMap::from([
            ("load".to_owned(), Parameter::Count(connections)),
            ("directories".to_owned(), Parameter::Count(wanted.directories.count().into())),
            ("fileset_seed".to_owned(), Parameter::Count(wanted.set_seed)),
            ("mix".to_owned(), Parameter::Text(mix.unwrap_or_default())),
        ])
    }
}

/// The last window, which also answers for the POST log of the whole run.
fn with_post_log(last: &WindowResult, faults: u64) -> WindowResult {
    let counts = last.counts().clone();
    let errors = counts.errors.kinds().map(|(kind, count)| (kind.to_owned(), count));
    let errors = errors.chain([("post_log".to_owned(), faults)]).collect();
    WindowResult::new(Counts { errors, ..counts })
}
