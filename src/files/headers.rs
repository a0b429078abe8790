//! Field lines that the configuration adds to answers.
//!
//! Which ones an answer has is worked out when its entry is made, and written as bytes: a request
//! costs nothing more for them.
//!
//! | answer | has |
//! |---|---|
//! | 200, 206 with a file | all that its path matches, and those for all answers |
//! | 304, and 206 to `If-Range` | the same but what describes the representation, which the client has (RFC 9110 §15.4.5, §15.3.7) |
//! | an error with a page of the site | all that the page's path matches, and those for all answers |
//! | a built-in page, a redirect, a listing, OPTIONS | those for all answers |
//!
//! So what a rule says of `*.css`, a year in caches for one, is not said of a 404; and what is to be
//! said of everything is said of errors too.

use std::borrow::Cow;
use std::path::Path;

use globset::{GlobSet, GlobSetBuilder};

use crate::config::{Answers, HeaderRule};

/// The rules of a site.
#[derive(Debug, Default)]
pub(super) struct HeaderRules {
    /// The patterns of those rules that have one, in order.
    patterns: GlobSet,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// Which of the patterns is its own; `None`: it is for all answers.
    pattern: Option<usize>,
    set: Box<[(String, String)]>,
}

/// What the rules add to an answer.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Whole field lines.
    pub(super) lines: Box<[u8]>,
    /// Those of them that go to somebody who has the representation.
    pub(super) short: Box<[u8]>,
    /// `Content-Type`, in place of the one by name.
    pub(super) content_type: Option<Box<str>>,
    vary: Option<Box<str>>,
}

impl HeaderRules {
    /// Compiles rules; an error is a set of patterns that is too large.
    pub(super) fn of(rules: &[HeaderRule]) -> Result<Self, globset::Error> {
        let mut patterns = GlobSetBuilder::new();
        let mut count = 0;
        let mut pattern = |rule: &HeaderRule| match &rule.answers {
            Answers::All => None,
            Answers::Files(glob) => {
                patterns.add(glob.clone());
                count += 1;
                Some(count - 1)
            }
        };
        let rule = |rule: &HeaderRule| Rule {
            pattern: pattern(rule),
            set: rule.set.clone().into_boxed_slice(),
        };
        let rules = rules.iter().map(rule).collect();
        Ok(Self { patterns: patterns.build()?, rules })
    }

    /// What is added to an answer with the file at `path`, relative to the root; `None`: without a
    /// file.
    pub(super) fn fields(&self, path: Option<&Path>) -> Fields {
        let matching = path.map_or(Vec::new(), |path| self.patterns.matches(path));
        let applies = |rule: &&Rule| rule.pattern.is_none_or(|pattern| matching.contains(&pattern));
        let mut set: Vec<(&str, &str)> = Vec::new();
        for (name, value) in self.rules.iter().filter(applies).flat_map(|rule| &rule.set) {
            set.retain(|(earlier, _)| !earlier.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                set.push((name, value));
            }
        }
        let mut take = |name: &str| {
            let at = set.iter().position(|(other, _)| other.eq_ignore_ascii_case(name))?;
            Some(set.remove(at).1.into())
        };
        let (vary, content_type) = (take("vary"), take("content-type"));
        let lines = |wanted: fn(&str) -> bool| {
            let lines = set.iter().filter(|(name, _)| wanted(name));
            let lines: String = lines.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            lines.into_bytes().into()
        };
        Fields {
            lines: lines(|_| true),
            short: lines(|name| !describes_representation(name)),
            content_type,
            vary,
        }
    }
}

impl Fields {
    /// `Vary`, where our own choice depends on `Accept-Encoding` or does not.
    pub(super) fn vary(&self, by_encoding: bool) -> Option<Cow<'_, str>> {
        const OURS: &str = "Accept-Encoding";
        let Some(vary) = &self.vary else { return by_encoding.then_some(OURS.into()) };
        let names = |wanted: &str| {
            vary.split(',').any(|name| name.trim_ascii().eq_ignore_ascii_case(wanted))
        };
        match by_encoding && !names(OURS) && !names("*") {
            true => Some(format!("{OURS}, {vary}").into()),
            false => Some((&**vary).into()),
        }
    }

    /// Bytes that this takes in memory beside itself, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.lines.len() + self.short.len()
    }
}

/// Whether a field is of the representation (RFC 9110 §8) rather than of the answer, which is what a
/// 304 leaves out.
fn describes_representation(name: &str) -> bool {
    const OF_THE_ANSWER: [&str; 3] =
        ["content-location", "content-security-policy", "content-security-policy-report-only"];
    name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"))
        && !OF_THE_ANSWER.iter().any(|other| name.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use globset::Glob;

    use super::*;

    fn rule(pattern: Option<&str>, set: &[(&str, &str)]) -> HeaderRule {
        let answers = pattern
            .map_or(Answers::All, |pattern| Answers::Files(Glob::new(pattern).expect("a pattern")));
        let field = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        HeaderRule { answers, set: set.iter().map(field).collect() }
    }

    fn fields(rules: &[HeaderRule], path: Option<&str>) -> Fields {
        HeaderRules::of(rules).expect("few rules").fields(path.map(Path::new))
    }

    fn lines(rules: &[HeaderRule], path: Option<&str>) -> String {
        String::from_utf8(fields(rules, path).lines.into()).expect("ASCII")
    }

    #[test]
    fn of_rules_that_set_one_field_the_last_holds() {
        let rules = [
            rule(None, &[("X-A", "all")]),
            rule(Some("*.css"), &[("Cache-Control", "no-cache"), ("X-B", "css")]),
            rule(Some("main*"), &[("cache-control", "max-age=60"), ("x-b", "")]),
        ];
        assert_eq!(lines(&rules, Some("main.css")), "X-A: all\r\ncache-control: max-age=60\r\n");
        assert_eq!(
            lines(&rules, Some("other.css")),
            "X-A: all\r\nCache-Control: no-cache\r\nX-B: css\r\n"
        );
        assert_eq!(lines(&rules, Some("other")), "X-A: all\r\n");
        assert_eq!(lines(&rules, None), "X-A: all\r\n");
    }

    #[test]
    fn who_has_the_representation_is_not_told_of_it_again() {
        let set = [
            ("Content-Language", "de"),
            ("Content-Location", "/a"),
            ("Content-Security-Policy", "default-src 'self'"),
            ("Cache-Control", "no-cache"),
            ("Expires", "0"),
        ];
        let fields = fields(&[rule(Some("*"), &set)], Some("a"));
        let lines = |bytes: &[u8]| String::from_utf8(bytes.into()).expect("ASCII");
        let short = lines(&fields.lines).replace("Content-Language: de\r\n", "");
        assert_eq!(lines(&fields.short), short);
        assert_eq!(short.matches("\r\n").count(), 4);
    }

    #[test]
    fn what_an_answer_varies_by_is_said_in_one_line() {
        for (ours, theirs, expected) in [
            (false, "", None),
            (true, "", Some("Accept-Encoding")),
            (false, "Origin", Some("Origin")),
            (true, "Origin", Some("Accept-Encoding, Origin")),
            (true, "Origin, accept-encoding", Some("Origin, accept-encoding")),
            (true, "*", Some("*")),
        ] {
            let fields = fields(&[rule(None, &[("Vary", theirs)])], None);
            assert_eq!(fields.vary(ours).as_deref(), expected, "{ours} {theirs}");
            assert!(fields.lines.is_empty());
        }
    }

    #[test]
    fn names_that_are_no_utf_8_match_too() {
        use std::os::unix::ffi::OsStrExt as _;
        let rules = HeaderRules::of(&[rule(Some("*.css"), &[("X", "y")])]).expect("one rule");
        let path = std::ffi::OsStr::from_bytes(b"\xff\n.css");
        assert!(!rules.fields(Some(Path::new(path))).lines.is_empty());
    }
}
