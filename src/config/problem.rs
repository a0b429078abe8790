//! What is wrong with a configuration: every problem at once, each with its place and the fix.

use std::fmt;
use std::path::PathBuf;

/// Where in a file something is written; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

impl Place {
    /// The place of the byte at `offset`.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The configuration file.
    File(Place),
    /// The command line.
    CommandLine,
    /// Nowhere: the default.
    Default,
}

/// Whose the fault is, and who can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What is written is wrong.
    Configuration,
    /// The host gives less than the configuration needs, although nobody has asked for more than
    /// the defaults.
    Environment,
    /// This user may not do what is written.
    Permission,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whose the fault is.
    pub fault: Fault,
    /// Where the value comes from that is wrong.
    pub origin: Origin,
    /// The key as written in the file: `limits.head`; empty where the text as such is wrong.
    pub key: String,
    /// What is wrong with it, and what to do.
    pub message: String,
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file, where there is one.
    pub file: Option<PathBuf>,
    /// Everything that is wrong; never empty. Ordered by place.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// Whose the fault is: what is written wrong comes first, for it can be mended first.
    pub fn fault(&self) -> Fault {
        let is = |fault| self.problems.iter().any(|problem| problem.fault == fault);
        [Fault::Configuration, Fault::Permission]
            .into_iter()
            .find(|&fault| is(fault))
            .unwrap_or(Fault::Environment)
    }
}

impl fmt::Display for ConfigError {
    /// A line for each problem: `FILE:LINE:COLUMN: KEY: MESSAGE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match (problem.origin, &self.file) {
                (Origin::File(Place { line, column }), Some(file)) => {
                    write!(f, "{}:{line}:{column}: ", file.display())?;
                }
                (Origin::File(Place { line, column }), None) => write!(f, "{line}:{column}: ")?,
                (Origin::CommandLine, _) => write!(f, "command line: ")?,
                (Origin::Default, _) => {}
            }
            if !problem.key.is_empty() {
                write!(f, "{}: ", problem.key)?;
            }
            write!(f, "{}", problem.message)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let text = "a = 1\nö = x\n";
        assert_eq!(Place::of(text, 0), Place { line: 1, column: 1 });
        assert_eq!(Place::of(text, 6), Place { line: 2, column: 1 });
        assert_eq!(Place::of(text, 11), Place { line: 2, column: 5 });
        assert_eq!(Place::of(text, 999), Place { line: 3, column: 1 });
    }

    #[test]
    fn a_line_for_each_problem() {
        let problem = |origin, key: &str| Problem {
            fault: Fault::Configuration,
            origin,
            key: key.into(),
            message: "is wrong".into(),
        };
        let error = ConfigError {
            file: Some("site.toml".into()),
            problems: vec![
                problem(Origin::File(Place { line: 3, column: 8 }), "limits.head"),
                problem(Origin::CommandLine, "cpus"),
                problem(Origin::Default, ""),
            ],
        };
        assert_eq!(
            error.to_string(),
            "site.toml:3:8: limits.head: is wrong\ncommand line: cpus: is wrong\nis wrong"
        );
    }

    #[test]
    fn what_is_written_wrong_is_mended_first() {
        let fault_of = |faults: &[Fault]| {
            let problem = |&fault| Problem {
                fault,
                origin: Origin::Default,
                key: String::new(),
                message: "is wrong".into(),
            };
            ConfigError { file: None, problems: faults.iter().map(problem).collect() }.fault()
        };
        use Fault::{Configuration, Environment, Permission};
        assert_eq!(fault_of(&[Environment]), Environment);
        assert_eq!(fault_of(&[Environment, Permission]), Permission);
        assert_eq!(fault_of(&[Environment, Permission, Configuration]), Configuration);
    }
}
