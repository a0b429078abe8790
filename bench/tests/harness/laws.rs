//! What was requested and over which connections, held against the laws of the SPECweb99-style
//! workload: every figure with its standard deviation, computed from the counts.

use std::fmt;

use onering_fileset::laws::{
    CONNECTIONS_PER_REQUEST, DECK, KEPT_CONNECTION_SHARE, KEPT_REQUESTS, Popularity, RequestKind,
    mean_body_bytes,
};
use onering_fileset::name::{CLASSES, FILES_PER_CLASS, Name, size};
use onering_fileset::plan::Directories;

/// Directories whose shares are looked at one by one; all of them together besides.
const DIRECTORIES_ALONE: usize = 20;

/// Requests and connections, counted.
pub(crate) struct Observed {
    popularity: Popularity,
    kinds: [u64; RequestKind::ALL.len()],
    files: [[u64; FILES_PER_CLASS as usize]; CLASSES as usize],
    directories: Vec<u64>,
    body_bytes: u64,
    opened: u64,
    opened_kept: u64,
    /// Connections that were kept and came to their end, by the requests on them.
    ended: [u64; KEPT_ENDED],
}

/// One more than the most requests on a connection.
const KEPT_ENDED: usize = 16;

/// A figure, what the law gives, and how far from it chance may take it.
pub(crate) struct Figure {
    what: String,
    seen: f64,
    expected: f64,
    deviation: f64,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, seen: f64, expected: f64, deviation: f64) -> Self {
        Self { what: what.into(), seen, expected, deviation }
    }

    /// A count of so many independent trials.
    fn binomial(what: impl Into<String>, count: u64, trials: u64, share: f64) -> Self {
        let trials = trials as f64;
        let deviation = (trials * share * (1.0 - share)).sqrt();
        Self::new(what, count as f64, trials * share, deviation)
    }

    /// How many standard deviations the figure is from the law.
    pub(crate) fn sigmas(&self) -> f64 {
        let off = (self.seen - self.expected).abs();
        // What chance has no part in must be exact.
        if off == 0.0 { 0.0 } else { off / self.deviation }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, seen, expected, deviation } = self;
        let sigmas = self.sigmas();
        write!(f, "{what}: {seen:.4}, expected {expected:.4} ± {deviation:.4}: {sigmas:.2} sigma")
    }
}

/// Fails with every figure that is further from its law than so many standard deviations.
#[track_caller]
pub(crate) fn within(sigmas: f64, figures: &[Figure]) {
    let off: Vec<String> =
        figures.iter().filter(|f| f.sigmas() > sigmas).map(Figure::to_string).collect();
    assert!(off.is_empty(), "\n{}\n", off.join("\n"));
}

impl Observed {
    pub(crate) fn new(set: Directories) -> Self {
        Self {
            popularity: Popularity::new(set),
            kinds: [0; RequestKind::ALL.len()],
            files: [[0; FILES_PER_CLASS as usize]; CLASSES as usize],
            directories: vec![0; set.count() as usize],
            body_bytes: 0,
            opened: 0,
            opened_kept: 0,
            ended: [0; KEPT_ENDED],
        }
    }

    pub(crate) fn request(&mut self, kind: RequestKind, name: Name) {
        self.kinds[kind as usize] += 1;
        self.files[usize::from(name.class())][usize::from(name.file())] += 1;
        self.directories[name.directory() as usize] += 1;
        self.body_bytes += u64::from(name.size());
    }

    /// A connection's first request: it says whether others are to follow.
    pub(crate) fn opened(&mut self, kept: bool) {
        self.opened += 1;
        self.opened_kept += u64::from(kept);
    }

    /// A connection that was kept has come to its end.
    pub(crate) fn ended(&mut self, requests: u64) {
        self.ended[requests as usize] += 1;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.kinds.iter().sum()
    }

    pub(crate) fn all_opened(&self) -> u64 {
        self.opened
    }

    /// Every figure. For so many requests chance decides on the class, see [`undealt`]; `open`
    /// connections had not come to their end.
    pub(crate) fn figures(&self, undealt: f64, open: u64) -> Vec<Figure> {
        let mut figures = Vec::new();
        figures.extend(self.popularity_figures(undealt));
        figures.extend(self.kind_figures());
        figures.extend(self.connection_figures(open));
        figures
    }

    fn popularity_figures(&self, undealt: f64) -> impl Iterator<Item = Figure> {
        let requests = self.requests();
        let classes = (0..CLASSES).zip(&self.files).flat_map(move |(class, counts)| {
            let share = Popularity::class_share(class);
            let of_class: u64 = counts.iter().sum();
            // A deck holds exactly so many: only those that are not dealt out leave a doubt.
            let deviation = (undealt * share * (1.0 - share)).sqrt();
            let expected = requests as f64 * share;
            let class_figure =
                Figure::new(format!("class {class}"), of_class as f64, expected, deviation);
            let files = (0..).zip(counts).map(move |(file, &count)| {
                let share = self.popularity.file_share(file);
                Figure::binomial(format!("class{class}_{file}"), count, of_class, share)
            });
            [class_figure].into_iter().chain(files)
        });
        let directories = (0..).zip(&self.directories).take(DIRECTORIES_ALONE);
        let directories = directories.map(move |(directory, &count)| {
            let share = self.popularity.directory_share(directory);
            Figure::binomial(format!("dir{directory:05}"), count, requests, share)
        });
        classes.chain(directories).chain([self.all_directories(), self.kbit_figure(undealt)])
    }

    /// Pearson's statistic over all directories: it has one less degrees of freedom than there are
    /// directories, and a variance of twice that.
    fn all_directories(&self) -> Figure {
        let requests = self.requests() as f64;
        let terms = (0..).zip(&self.directories).map(|(directory, &count)| {
            let expected = requests * self.popularity.directory_share(directory);
            (count as f64 - expected).powi(2) / expected
        });
        let freedom = self.directories.len() as f64 - 1.0;
        Figure::new("all directories", terms.sum(), freedom, (2.0 * freedom).sqrt())
    }

    /// Bits of files alone. The variance of the sum is that within the classes for each request, and
    /// that of the classes' means for those whose deck was not dealt out.
    fn kbit_figure(&self, undealt: f64) -> Figure {
        let requests = self.requests() as f64;
        let deviation_bytes = (requests * variance_within() + undealt * variance_of_means()).sqrt();
        let kbit = |bytes: f64| bytes * 8.0 / 1000.0;
        let seen = kbit(self.body_bytes as f64 / requests);
        let deviation = kbit(deviation_bytes / requests);
        Figure::new("kbit of files per operation", seen, kbit(mean_body_bytes(None)), deviation)
    }

    fn kind_figures(&self) -> impl Iterator<Item = Figure> {
        let requests = self.requests();
        RequestKind::ALL.into_iter().map(move |kind| {
            Figure::binomial(format!("{kind:?}"), self.kinds[kind as usize], requests, kind.share())
        })
    }

    fn connection_figures(&self, open: u64) -> impl Iterator<Item = Figure> {
        let kept = Figure::binomial(
            "kept connections",
            self.opened_kept,
            self.opened,
            KEPT_CONNECTION_SHARE,
        );
        let ended: u64 = self.ended.iter().sum();
        let lengths = KEPT_REQUESTS.map(move |requests| {
            let count = self.ended[requests as usize];
            Figure::binomial(format!("of {requests} requests"), count, ended, 1.0 / 11.0)
        });

        // Connections over requests is a ratio of sums over connections: its deviation is that of the
        // requests on one, by the root of the connections, over their mean squared.
        let mean = 1.0 / CONNECTIONS_PER_REQUEST;
        let squares_kept = KEPT_REQUESTS.map(|n| f64::from(n * n)).sum::<f64>() / 11.0;
        let squares = KEPT_CONNECTION_SHARE * squares_kept + (1.0 - KEPT_CONNECTION_SHARE);
        // A connection that is cut off at any moment has had this many requests less, in the mean: it
        // is the likelier to be cut off, the longer it is.
        let cut_off = (squares / mean - 1.0) / 2.0;
        let requests = self.requests() as f64 + open as f64 * cut_off;
        let deviation =
            (squares - mean * mean).sqrt() / (mean * mean * (self.opened as f64).sqrt());
        let seen = self.opened as f64 / requests;
        let ratio = Figure::new("connects per operation", seen, CONNECTIONS_PER_REQUEST, deviation);
        [kept, ratio].into_iter().chain(lengths)
    }
}

/// For how many requests chance decides on the class: of a deck of 1000 of which *m* were dealt,
/// *m* (1000 − *m*) / 999, which is what drawing without putting back makes of *m*.
pub(crate) fn undealt(of_users: &[u64]) -> f64 {
    let deck = DECK as u64;
    let dealt = of_users.iter().map(|&requests| requests % deck);
    dealt.map(|m| (m * (deck - m)) as f64 / (deck - 1) as f64).sum()
}

/// The variance of a file's bytes within its class, in the mean over the classes.
pub(crate) fn variance_within() -> f64 {
    let smallest = Popularity::new(Directories::new(1).expect("one directory"));
    let of_class = |class: u8| {
        let mean = mean_body_bytes(Some(class));
        let squares = (0..FILES_PER_CLASS)
            .map(|file| smallest.file_share(file) * f64::from(size(class, file)).powi(2));
        squares.sum::<f64>() - mean * mean
    };
    (0..CLASSES).map(|class| Popularity::class_share(class) * of_class(class)).sum()
}

/// The variance of the mean bytes of a request's class.
pub(crate) fn variance_of_means() -> f64 {
    let squares = (0..CLASSES)
        .map(|class| Popularity::class_share(class) * mean_body_bytes(Some(class)).powi(2));
    squares.sum::<f64>() - mean_body_bytes(None).powi(2)
}
