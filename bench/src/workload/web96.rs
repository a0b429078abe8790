//! The SPECweb96-style workload: static GETs by HTTP/1.0, one on each connection, in an open loop at
//! ten load points up to a target.
//!
//! Class mix, sizes and names are those of the SPECweb99-style set, which took them from here. Two
//! things are choices, for what is published of them is not enough: within a class, files are as
//! popular as there ("not uniform" is what is known); and the set has 10 · √(ops / 5) directories, as
//! is remembered, rounded up: 680 for the 23 104 operations a second of the one disclosure at hand,
//! whose ten points are equal steps to that target.

use super::file::FileCheck;
use super::{Request, Workload, Wrong};
use crate::request::Persistence;
use crate::response::{Head, HeadMemory};
use onering::ring::SendBuf;
use onering_fileset::laws::{Draws, Popularity};
use onering_fileset::name::{CLASSES, Name};
use onering_fileset::plan::{Directories, PlanError};
use std::sync::Arc;

/// Load points of a run.
pub const POINTS: u32 = 10;

/// The set for a target of so many operations a second.
pub fn directories(target_ops_s: u64) -> Result<Directories, PlanError> {
    // 10 · √(ops / 5) is √(20 · ops).
    let square = target_ops_s.saturating_mul(20);
    let root = square.isqrt();
    Directories::new(if root * root < square { root + 1 } else { root })
}

/// The rates of the load points, in operations a second: equal steps to the target.
pub fn load_points(target_ops_s: f64) -> impl Iterator<Item = f64> {
    (1..=POINTS).map(move |point| target_ops_s * f64::from(point) / f64::from(POINTS))
}

/// What is common to all threads of a run.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Of the Host field.
    pub host: String,
    /// What precedes `dir00012/class1_4` in a request's path.
    pub files: String,
    /// The size of the file set, and what is asked for in it.
    pub popularity: Arc<Popularity>,
    /// The seed of what is asked for.
    pub seed: u64,
}

/// The requests of one thread, whoever makes them.
#[derive(Debug)]
pub struct Web96 {
    host: String,
    files: String,
    draws: Draws,
    memory: HeadMemory,
}

impl Web96 {
    /// Those of thread number `thread` among all threads of all generators.
    pub fn new(parameters: &Parameters, thread: u32) -> Self {
        let Parameters { host, files, popularity, seed } = parameters;
        let draws = Draws::new(Arc::clone(popularity), *seed, thread.into());
        let (host, files) = (host.clone(), files.clone());
        Self { host, files, draws, memory: HeadMemory::default() }
    }
}

/// A request whose response is awaited, and what of it has come.
#[derive(Debug)]
pub struct Asked {
    name: Name,
    file: FileCheck,
}

impl Asked {
    /// The file that was asked for.
    pub fn name(&self) -> Name {
        self.name
    }
}

impl Workload for Web96 {
    type Asked = Asked;

    fn classes(&self) -> Vec<String> {
        (0..CLASSES).map(|class| format!("static {class}")).collect()
    }

    fn connection(&mut self, _: usize) -> u64 {
        1
    }

    fn ask(&mut self, _: usize, _: Persistence) -> Request<Asked> {
        let name = self.draws.draw();
        let parts = [
            b"GET ",
            self.files.as_bytes(),
            &name.short(),
            b" HTTP/1.0\r\nHost: ",
            self.host.as_bytes(),
        ];
        let bytes = [parts.concat().as_slice(), b"\r\n\r\n"].concat();
        let end = bytes.len() as u32;
        Request {
            asked: Asked { name, file: FileCheck::new(name, name) },
            class: name.class().into(),
            bytes: SendBuf::Shared(bytes.into(), 0..end),
        }
    }

    fn memory(&mut self, _: &Asked) -> &mut HeadMemory {
        &mut self.memory
    }

    fn head(&mut self, _: usize, asked: &mut Asked, head: Head, _: &[u8]) -> Result<(), Wrong> {
        match head {
            Head { status: 200, body_bytes, .. } if body_bytes == u64::from(asked.name.size()) => {
                Ok(())
            }
            Head { status: 200, .. } => Err(Wrong::Length),
            Head { .. } => Err(Wrong::Status),
        }
    }

    fn body(
        &mut self,
        _: usize,
        asked: &mut Asked,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), Wrong> {
        asked.file.piece(offset as usize, piece)
    }

    fn end(&mut self, _: usize, asked: Asked) -> Result<(), Wrong> {
        asked.file.end()
    }

    fn lost(&mut self, _: usize, _: Asked) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use onering_fileset::content::Contents;

    fn web96() -> Web96 {
        let popularity = Arc::new(Popularity::new(Directories::new(12).unwrap()));
        let (host, files) = ("h:1".to_owned(), "/file_set/".to_owned());
        Web96::new(&Parameters { host, files, popularity, seed: 1 }, 0)
    }

    #[test]
    fn the_set_grows_with_the_root_of_the_target() {
        for (target, expected) in
            [(1, 5), (5, 10), (500, 100), (501, 101), (2_000, 200), (23_104, 680)]
        {
            assert_eq!(directories(target).unwrap().count(), expected, "{target}");
        }
        assert_eq!(directories(0), Err(PlanError::NoDirectory));
        assert!(matches!(directories(u64::MAX), Err(PlanError::TooMany { .. })));
    }

    /// Those of the disclosure: 2310.4 to 23 104.
    #[test]
    fn the_points_are_equal_steps_to_the_target() {
        let points: Vec<f64> = load_points(23_104.0).collect();
        assert_eq!(points.len(), 10);
        assert!((points[0] - 2_310.4).abs() < 1e-9 && (points[9] - 23_104.0).abs() < 1e-9);
    }

    #[test]
    fn a_request_says_what_it_must_and_no_more() {
        let mut web96 = web96();
        assert_eq!(web96.connection(0), 1);
        let Request { asked, class, bytes } = web96.ask(0, Persistence::Close);
        let name = asked.name();
        assert_eq!(class, usize::from(name.class()));
        let expected = format!("GET /{name} HTTP/1.0\r\nHost: h:1\r\n\r\n");
        assert_eq!(bytes.as_slice(), expected.as_bytes());
    }

    #[test]
    fn classes_are_exact_in_each_deck() {
        let mut web96 = web96();
        for _ in 0..3 {
            let mut counts = [0; 4];
            (0..1000).for_each(|_| counts[web96.ask(0, Persistence::Close).class] += 1);
            assert_eq!(counts, [350, 500, 140, 10]);
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_kind() {
        let judge = |status, change: fn(&mut Vec<u8>)| {
            let mut web96 = web96();
            let mut asked = web96.ask(0, Persistence::Close).asked;
            let mut body = Contents::new(1).of(asked.name());
            change(&mut body);
            let head = Head { status, body_bytes: body.len() as u64, persistent: false };
            web96.head(0, &mut asked, head, b"")?;
            web96.body(0, &mut asked, 0, &body)?;
            web96.end(0, asked)
        };
        assert_eq!(judge(200, |_| {}), Ok(()));
        assert_eq!(judge(404, |_| {}), Err(Wrong::Status));
        assert_eq!(judge(200, |body| body.push(b'x')), Err(Wrong::Length));
        assert_eq!(judge(200, |body| body[20] = b'x'), Err(Wrong::FirstLine));
        assert_eq!(judge(200, |body| body[64] = b'x'), Err(Wrong::Marker));
    }
}
