//! Every POST that was sent, and the server's log held against them, record by record.
//!
//! A POST that was answered rightly is in the log once. One whose answer was lost, wrong or still
//! awaited when the run ended may be there once. Anything else is a fault, by kind:
//!
//! | fault | a POST or a record |
//! |---|---|
//! | missing | that was answered, of which there is no record |
//! | duplicated | of which there are more records than POSTs |
//! | altered | a record with another file, client, path or user than the POST that lacks one |
//! | unknown | that nobody has sent |
//! | out of order | a record whose number is not greater than the one before it |
//! | gaps | a number between two records, or before the first, that none has |
//! | malformed | a record that cannot be read, or a header that counts otherwise than there are |
//!
//! The order of records of several users is not known, and that of one user's is not judged where
//! the same file was posted for more than once.

use onering_fileset::dynamic::{
    POST_HEADER_BYTES, POST_RECORD_BYTES, PostLog, PostRecord, USER_ID_BASE,
};
use onering_fileset::name::Name;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many offending records are shown.
const EXAMPLES_MAX: usize = 5;

/// The POSTs of all threads of a run. Each thread's come in when its users are gone.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<Posts>>);

impl Ledger {
    pub(super) fn add(&self, posts: Posts) {
        self.lock().0.extend(posts.0);
    }

    /// Those that have come in so far.
    pub fn take(&self) -> Posts {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Posts> {
        // Every state in which a thread could leave it is sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// POSTs that were sent.
#[derive(Clone, Debug, Default)]
pub struct Posts(Vec<Post>);

#[derive(Clone, Copy, Debug)]
struct Post {
    user: u32,
    name: Name,
    /// The right answer has come.
    answered: bool,
}

/// One of the POSTs that were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent(usize);

impl Posts {
    /// A POST for a file is sent by the user of that number.
    pub(super) fn sent(&mut self, user: u32, name: Name) -> Sent {
        self.0.push(Post { user, name, answered: false });
        Sent(self.0.len() - 1)
    }

    /// Its right answer has come.
    pub(super) fn answered(&mut self, sent: Sent) {
        self.0[sent.0].answered = true;
    }

    /// How many were sent.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Holds the server's log, header included, against what was sent. `users` are those whose POSTs
    /// these are; records of others are left alone, for another generator may have sent them, unless
    /// `alone`. `files` is what precedes a file's name in its path.
    pub fn judge(&self, log: &[u8], files: &str, users: Range<u32>, alone: bool) -> PostVerdict {
        let mut judge = Judge { files, ..Judge::default() };
        for &Post { user, name, answered } in &self.0 {
            let counts = judge.posts.entry((user, name)).or_default();
            counts.sent += 1;
            counts.answered += u64::from(answered);
        }
        let (header, records) = log.split_at(log.len().min(POST_HEADER_BYTES));
        let count = records.len().div_ceil(POST_RECORD_BYTES) as u64;
        if *header != PostLog::header(count) {
            let said = String::from_utf8_lossy(header);
            judge.verdict.malformed += 1;
            judge.show(|| format!("header {:?}, but {count} records follow", said.trim()));
        }
        for record in records.chunks(POST_RECORD_BYTES) {
            judge.record(record, |client| alone || users.contains(&client));
        }
        judge.end()
    }
}

/// How a log differs from what was sent. All zero is as it must be; see the head of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostVerdict {
    /// Records that were held against what was sent.
    pub records: u64,
    /// POSTs that were answered and are not in the log.
    pub missing: u64,
    /// Records too many of POSTs that were sent.
    pub duplicated: u64,
    /// Records with something in them that is not as it was sent.
    pub altered: u64,
    /// Records of nothing that was sent.
    pub unknown: u64,
    /// Records whose number is not greater than the one before.
    pub out_of_order: u64,
    /// Numbers that no record has.
    pub gaps: u64,
    /// Records that cannot be read.
    pub malformed: u64,
    /// The first few, in words.
    pub examples: Vec<String>,
}

impl PostVerdict {
    /// All faults, as many as are to be counted as errors.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, count)| count).sum()
    }

    /// Name and count of each kind of fault.
    pub fn kinds(&self) -> [(&'static str, u64); 7] {
        [
            ("missing", self.missing),
            ("duplicated", self.duplicated),
            ("altered", self.altered),
            ("unknown", self.unknown),
            ("out of order", self.out_of_order),
            ("gaps", self.gaps),
            ("malformed", self.malformed),
        ]
    }
}

impl fmt::Display for PostVerdict {
    /// One line, and one for each example.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "POST log: {} records", self.records)?;
        if self.total() == 0 {
            return write!(f, ", each as it was sent");
        }
        for (kind, count) in self.kinds().into_iter().filter(|&(_, count)| count > 0) {
            write!(f, ", {count} {kind}")?;
        }
        self.examples.iter().try_for_each(|example| write!(f, "\n  {example}"))
    }
}

#[derive(Default)]
struct Judge<'j> {
    files: &'j str,
    posts: BTreeMap<(u32, Name), Counts>,
    /// Records that are of no POST as they are: altered, if one lacks its record.
    strays: Vec<PostRecord>,
    /// The number of the record before.
    before: u64,
    verdict: PostVerdict,
}

/// Of one user and file.
#[derive(Clone, Copy, Default)]
struct Counts {
    sent: u64,
    answered: u64,
    recorded: u64,
}

impl Judge<'_> {
    fn record(&mut self, bytes: &[u8], is_ours: impl Fn(u32) -> bool) {
        let record = bytes.try_into().ok().map(PostRecord::parse);
        let record = match record {
            Some(Ok(record)) => record,
            Some(Err(why)) => return self.malformed(why),
            None => return self.malformed(format_args!("ends after {} bytes", bytes.len())),
        };
        if record.sequence <= self.before {
            self.verdict.out_of_order += 1;
            let before = self.before;
            self.show(|| format!("out of order, after {before}: {}", line(&record)));
        } else {
            let gap = record.sequence - self.before - 1;
            self.verdict.gaps += gap;
            if gap > 0 {
                self.show(|| format!("{gap} numbers that none has, before: {}", line(&record)));
            }
            self.before = record.sequence;
        }
        if !is_ours(record.client) {
            return;
        }
        self.verdict.records += 1;
        let consistent = record.user_id.checked_sub(USER_ID_BASE) == Some(record.client)
            && record.path.strip_prefix(self.files).map(str::as_bytes)
                == Some(&record.name.short());
        match self.posts.get_mut(&(record.client, record.name)).filter(|_| consistent) {
            Some(counts) => {
                counts.recorded += 1;
                if counts.recorded > counts.sent {
                    self.verdict.duplicated += 1;
                    self.show(|| format!("duplicated: {}", line(&record)));
                }
            }
            None => self.strays.push(record),
        }
    }

    fn malformed(&mut self, why: impl fmt::Display) {
        self.verdict.malformed += 1;
        // Its number is taken to be the one that belongs there.
        self.before += 1;
        let number = self.before;
        self.show(|| format!("malformed: record {number}: {why}"));
    }

    fn end(mut self) -> PostVerdict {
        for stray in std::mem::take(&mut self.strays) {
            let lacking = |&user: &u32| {
                let of_user = self.posts.range((user, LEAST)..);
                let mut of_user = of_user.take_while(|((other, _), _)| *other == user);
                of_user.find(|(_, counts)| counts.recorded < counts.answered).map(|(&key, _)| key)
            };
            // One of the two may be what was altered.
            let users = [Some(stray.client), stray.user_id.checked_sub(USER_ID_BASE)];
            let post = users.iter().flatten().find_map(lacking);
            match post.and_then(|post| self.posts.get_mut(&post).map(|counts| (post, counts))) {
                Some(((user, name), counts)) => {
                    counts.recorded += 1;
                    self.verdict.altered += 1;
                    self.show(|| format!("altered, of user {user} for {name}: {}", line(&stray)));
                }
                None => {
                    self.verdict.unknown += 1;
                    self.show(|| format!("sent by nobody: {}", line(&stray)));
                }
            }
        }
        for ((user, name), counts) in std::mem::take(&mut self.posts) {
            let missing = counts.answered.saturating_sub(counts.recorded);
            self.verdict.missing += missing;
            if missing > 0 {
                self.show(|| format!("missing: {missing} of user {user} for {name}"));
            }
        }
        self.verdict
    }

    fn show(&mut self, example: impl FnOnce() -> String) {
        if self.verdict.examples.len() < EXAMPLES_MAX {
            self.verdict.examples.push(example());
        }
    }
}

/// The least name, as the beginning of a range.
const LEAST: Name = match Name::new(0, 0, 0) {
    Some(name) => name,
    None => panic!("the first file of the first directory"),
};

/// A record as it stands in the log, without the blanks that fill it.
fn line(record: &PostRecord) -> String {
    let bytes = record.to_bytes();
    let words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &str = "/file_set/";

    fn name(file: u8) -> Name {
        Name::new(7, 1, file).unwrap()
    }

    fn record(sequence: u64, user: u32, name: Name) -> PostRecord {
        PostRecord {
            sequence,
            time_s: 1_790_000_000,
            pid: 4711,
            name,
            client: user,
            path: format!("/{name}"),
            user_id: USER_ID_BASE + user,
        }
    }

    /// Users 3 and 4 have posted for two files each, and user 4 for a third whose answer was lost.
    fn posts() -> Posts {
        let mut posts = Posts::default();
        for user in [3, 4] {
            for file in [1, 2] {
                let sent = posts.sent(user, name(file));
                posts.answered(sent);
            }
        }
        posts.sent(4, name(3));
        posts
    }

    fn records() -> Vec<PostRecord> {
        let posts = [(4, 1), (3, 1), (3, 2), (4, 2)];
        (1..).zip(posts).map(|(number, (user, file))| record(number, user, name(file))).collect()
    }

    fn judge(records: &[PostRecord]) -> PostVerdict {
        posts().judge(&PostLog(records.to_vec()).to_file(), FILES, 3..5, true)
    }

    fn renumbered(mut records: Vec<PostRecord>) -> Vec<PostRecord> {
        (1..).zip(&mut records).for_each(|(number, record)| record.sequence = number);
        records
    }

    fn kinds(verdict: &PostVerdict) -> Vec<(&'static str, u64)> {
        verdict.kinds().into_iter().filter(|&(_, count)| count > 0).collect()
    }

    #[test]
    fn a_right_log_has_each_answered_post_once() {
        let verdict = judge(&records());
        assert_eq!((verdict.total(), verdict.records), (0, 4), "{verdict}");
        assert_eq!(verdict.to_string(), "POST log: 4 records, each as it was sent");
        let empty = Posts::default().judge(&PostLog::default().to_file(), FILES, 0..0, true);
        assert_eq!(empty, PostVerdict::default());
    }

    #[test]
    fn what_was_lost_may_be_there_once_and_no_more() {
        let mut records = records();
        records.push(record(5, 4, name(3)));
        assert_eq!(judge(&records).total(), 0);
        records.push(record(6, 4, name(3)));
        assert_eq!(kinds(&judge(&records)), [("duplicated", 1)]);
    }

    #[test]
    fn missing_and_duplicated_records_are_named() {
        let without = renumbered(records().into_iter().skip(1).collect());
        let verdict = judge(&without);
        assert_eq!(kinds(&verdict), [("missing", 1)]);
        assert_eq!(verdict.examples, ["missing: 1 of user 4 for file_set/dir00007/class1_1"]);
        let twice = renumbered([records(), records()[1..2].to_vec()].concat());
        let verdict = judge(&twice);
        assert_eq!(kinds(&verdict), [("duplicated", 1)]);
        let shown = "duplicated: 5 1790000000 4711 7 1 1 3 /file_set/dir00007/class1_1 4711 10003";
        assert_eq!(verdict.examples, [shown]);
    }

    #[test]
    fn the_same_file_twice_is_two_posts() {
        let mut posts = posts();
        let sent = posts.sent(3, name(1));
        posts.answered(sent);
        let judge = |records: Vec<PostRecord>| {
            posts.judge(&PostLog(renumbered(records)).to_file(), FILES, 3..5, true)
        };
        assert_eq!(kinds(&judge(records())), [("missing", 1)]);
        assert_eq!(judge([records(), records()[1..2].to_vec()].concat()).total(), 0);
    }

    #[test]
    fn each_field_that_was_altered_is_noticed() {
        let alterations: [fn(&mut PostRecord); 4] = [
            |record| record.client = 9,
            |record| record.name = name(8),
            |record| record.path = "/file_set/dir00007/class1_8".to_owned(),
            |record| record.user_id = 10_009,
        ];
        for (at, alter) in alterations.iter().enumerate() {
            let mut records = records();
            alter(&mut records[2]);
            let verdict = judge(&records);
            assert_eq!(kinds(&verdict), [("altered", 1)], "{at}: {verdict}");
        }
    }

    #[test]
    fn records_of_nobody_are_those_of_another_generator_unless_there_is_none() {
        let mut records = records();
        records.push(record(5, 99, name(1)));
        let log = PostLog(records).to_file();
        assert_eq!(kinds(&posts().judge(&log, FILES, 3..5, true)), [("unknown", 1)]);
        let among_others = posts().judge(&log, FILES, 3..5, false);
        assert_eq!((among_others.total(), among_others.records), (0, 4));
    }

    #[test]
    fn numbers_have_neither_gaps_nor_another_order() {
        let mut gap = records();
        gap[2].sequence = 5;
        gap[3].sequence = 6;
        assert_eq!(kinds(&judge(&gap)), [("gaps", 2)]);
        let mut again = records();
        again[3].sequence = 3;
        assert_eq!(kinds(&judge(&again)), [("out of order", 1)]);
        let mut swapped = records();
        swapped.swap(1, 2);
        assert_eq!(kinds(&judge(&swapped)), [("out of order", 1), ("gaps", 1)]);
    }

    #[test]
    fn what_cannot_be_read_is_malformed_and_never_panics() {
        let log = PostLog(records()).to_file();
        let judge = |log: &[u8]| posts().judge(log, FILES, 3..5, true);
        let mut one = log.clone();
        one[PostRecord::offset(2) as usize + 30] = b'x';
        assert_eq!(kinds(&judge(&one)), [("missing", 1), ("malformed", 1)]);
        let mut header = log.clone();
        header[9] = b'5';
        let verdict = judge(&header);
        assert_eq!(kinds(&verdict), [("malformed", 1)]);
        assert_eq!(verdict.examples, ["header \"5\", but 4 records follow"]);
        for cut in 0..log.len() {
            assert!(judge(&log[..cut]).total() > 0, "{cut}");
        }
    }

    #[test]
    fn a_few_examples_are_shown_and_all_are_counted() {
        let verdict = judge(&[]);
        assert_eq!((verdict.missing, verdict.examples.len()), (4, 4));
        let nobody: Vec<_> = (1..=20).map(|number| record(number, 99, name(1))).collect();
        let verdict = judge(&nobody);
        assert_eq!((verdict.unknown, verdict.examples.len()), (20, EXAMPLES_MAX));
        let text = verdict.to_string();
        assert!(text.starts_with("POST log: 20 records, 4 missing, 20 unknown\n  "), "{text}");
    }
}
