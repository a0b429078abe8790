//! What is common to all users of a run: the set's size and seed, the mix, where the server has what,
//! and what it is reset to.

use crate::request::Version;
use onering_fileset::dynamic::{
    ADS, Choice, RequestCookie, Reset, Tables, USER_ID_BASE, USERS_MAX,
};
use onering_fileset::laws::{Popularity, RequestKind};
use onering_fileset::name::Name;
use onering_fileset::plan::Directories;
use onering_fileset::random::Random;
use std::sync::Arc;
use std::time::Duration;

/// Any instant of any run, in Unix time: see the head of [`web99`](super).
const DURING_S: u64 = 1_000_000_000;

/// The least time for which a run resets ads to be valid is twice this, as published.
const PTTIME_MIN_S: u64 = 1800;

/// The longest run. Ads that a reset makes expired are so by 366 days, less twice the run.
pub const RUN_MAX: Duration = Duration::from_secs(150 * 24 * 60 * 60);

/// Where the two runs of expired ads begin: anywhere, as long as they do not overlap.
const EXPIRED_FROM: [u16; 2] = [48, 200];

/// What a run sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// 70 % static requests, 30 % dynamic ones of four kinds.
    #[default]
    Full,
    /// Static requests alone, for servers without the dynamic side.
    Static,
}

/// Where the server has what: paths as they stand in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// What precedes `dir00012/class1_4`; of no more than 43 bytes, for the POST log's records.
    pub files: String,
    /// What answers dynamic GETs and commands.
    pub dynamic: String,
    /// What answers POST.
    pub post: String,
    /// What starts a process for each GET.
    pub cgi: String,
}

impl Default for Paths {
    fn default() -> Self {
        let dynamic = "/web99/dynamic".to_owned();
        let cgi = "/web99/cgi".to_owned();
        Self { files: "/file_set/".to_owned(), post: dynamic.clone(), dynamic, cgi }
    }
}

/// What a run is to be like.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Of the Host field.
    pub host: String,
    /// The version of HTTP that is spoken.
    pub version: Version,
    /// The size of the file set.
    pub directories: Directories,
    /// The seed of the file set, from which the server makes users and ads.
    pub set_seed: u64,
    /// The seed of what is asked for.
    pub seed: u64,
    /// What is sent.
    pub mix: Mix,
    /// Where it is sent.
    pub paths: Paths,
    /// Users of all generators.
    pub users: u32,
    /// From the reset to the last request.
    pub duration: Duration,
}

/// Why there is no such run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// A path that no request can have.
    #[error(
        "{path:?} is no path: it begins with `/`, and has neither blanks nor `?` nor `#` in it"
    )]
    Path {
        /// As given.
        path: String,
    },
    /// A path of files that the POST log has no room for, or that no name can follow.
    #[error("{path:?} cannot precede the names of files: it ends in `/` and has 43 bytes at most")]
    Files {
        /// As given.
        path: String,
    },
    /// More users than `User.Personality` can have.
    #[error("the workload has users for {USERS_MAX} connections, not for {users}")]
    Users {
        /// How many it would be.
        users: u32,
    },
    /// A run in which ads would expire.
    #[error("the workload is made for runs of {} days at most", RUN_MAX.as_secs() / 86_400)]
    Duration,
}

/// What is common to all users of a run.
#[derive(Clone, Debug)]
pub struct Parameters {
    wanted: Wanted,
    pttime_s: u32,
    popularity: Arc<Popularity>,
    tables: Tables,
}

impl Parameters {
    /// Checks what is wanted, and makes the tables of popularity and rotation.
    pub fn new(wanted: Wanted) -> Result<Self, ParametersError> {
        let Wanted { paths, users, duration, .. } = &wanted;
        let Paths { files, dynamic, post, cgi } = paths;
        for path in [files, dynamic, post, cgi] {
            let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#&=".contains(&byte);
            if !path.starts_with('/') || !path.bytes().all(plain) {
                return Err(ParametersError::Path { path: path.clone() });
            }
        }
        let room = onering_fileset::dynamic::PATH_MAX - Name::SHORT_BYTES;
        if !files.ends_with('/') || files.len() > room {
            return Err(ParametersError::Files { path: files.clone() });
        }
        if *users > USERS_MAX {
            return Err(ParametersError::Users { users: *users });
        }
        if *duration > RUN_MAX {
            return Err(ParametersError::Duration);
        }
        let pttime_s = duration.as_secs().max(PTTIME_MIN_S) as u32;
        let reset = reset(&wanted, pttime_s);
        let tables = Tables::reset(wanted.set_seed, DURING_S, &reset);
        let popularity = Arc::new(Popularity::new(wanted.directories));
        Ok(Self { pttime_s, popularity, tables, wanted })
    }

    /// What the server is to be reset to before the run.
    pub fn reset(&self) -> Reset<'_> {
        reset(&self.wanted, self.pttime_s)
    }

    /// What the run is like.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(super) fn seed(&self) -> u64 {
        self.wanted.seed
    }

    pub(super) fn mix(&self) -> Mix {
        self.wanted.mix
    }

    pub(super) fn popularity(&self) -> &Arc<Popularity> {
        &self.popularity
    }

    /// The id in the cookies of a user.
    pub(super) fn user_id(&self, number: u32) -> u32 {
        USER_ID_BASE + number
    }

    /// What a user's first cookie says that it was shown last: any ad, so that users differ.
    pub(super) fn first_ad(&self, random: &mut Random) -> i32 {
        random.below(ADS.into()) as i32
    }

    /// The ad that the server must choose.
    pub(super) fn choose(&self, cookie: RequestCookie) -> Choice {
        self.tables.choose(cookie, DURING_S)
    }

    /// The path that a dynamic request is sent to.
    pub(super) fn script(&self, kind: RequestKind) -> &str {
        let Paths { files, dynamic, post, cgi } = &self.wanted.paths;
        match kind {
            RequestKind::Static => files,
            RequestKind::CustomAd | RequestKind::Dynamic => dynamic,
            RequestKind::Post => post,
            RequestKind::Cgi => cgi,
        }
    }

    /// What a page says of its request.
    pub(super) fn page(&self, kind: RequestKind, name: Name) -> super::page::Expected<'_> {
        let files = (kind != RequestKind::Post).then_some(self.wanted.paths.files.as_str());
        super::page::Expected { script: self.script(kind), files, name }
    }
}

fn reset(wanted: &Wanted, pttime_s: u32) -> Reset<'_> {
    let Wanted { users, paths, .. } = wanted;
    Reset {
        maxload: *users,
        pttime_s,
        threads: *users,
        expired_from: EXPIRED_FROM,
        urlroot: &paths.files,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            host: "h".to_owned(),
            version: Version::Http11,
            directories: Directories::for_load(100).unwrap(),
            set_seed: 1,
            seed: 1,
            mix: Mix::Full,
            paths: Paths::default(),
            users: 100,
            duration: Duration::from_secs(60),
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_the_reason() {
        let refused = |change: &dyn Fn(&mut Wanted)| {
            let mut wanted = wanted();
            change(&mut wanted);
            Parameters::new(wanted).unwrap_err().to_string()
        };
        for path in ["", "x", "/a b", "/a?b", "/\u{e9}"] {
            assert!(
                refused(&|w| w.paths.dynamic = path.to_owned()).contains("is no path"),
                "{path}"
            );
        }
        assert!(refused(&|w| w.paths.files = "/file_set".to_owned()).contains("cannot precede"));
        let long = format!("/{}/", "x".repeat(42));
        assert!(refused(&|w| w.paths.files.clone_from(&long)).contains("43 bytes"));
        assert!(refused(&|w| w.users = 100_001).contains("100000 connections"));
        assert!(refused(&|w| w.duration = RUN_MAX * 2).contains("150 days"));
    }

    /// Whatever the server's clock says when it is reset, and for as long as the run takes.
    #[test]
    fn which_ads_have_expired_does_not_depend_on_when_it_is_asked() {
        for duration in [Duration::from_secs(60), RUN_MAX] {
            let parameters = Parameters::new(Wanted { duration, ..wanted() }).unwrap();
            let reset_s = 1_790_000_000;
            let server = Tables::reset(1, reset_s, &parameters.reset());
            for last_ad in -1_i32..360 {
                let cookie =
                    RequestCookie { user_id: 10_000 + last_ad.unsigned_abs() % 100, last_ad };
                let expected = parameters.choose(cookie);
                for now_s in [reset_s, reset_s + duration.as_secs()] {
                    assert_eq!(server.choose(cookie, now_s), expected, "{last_ad}");
                }
            }
        }
    }
}
