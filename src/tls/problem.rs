//! What is wrong with a file, how bad that is, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::config::Fault;

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it keeps from working.
    pub severity: Severity,
    /// Whose the fault is.
    pub fault: Fault,
    /// The file; `None`: the message names it, or there is none.
    pub file: Option<PathBuf>,
    /// What is wrong with it, and what to do.
    pub message: String,
}

/// What a problem keeps from working. The worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing, but it should be otherwise.
    Warning,
    /// Clients will refuse it: an expired certificate, a chain that does not link. `check` fails. A
    /// start goes on, for one site must not keep the others down.
    Refused,
    /// It cannot be used: no start.
    Fatal,
}

/// Everything that was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Everything, in the order in which it was found.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> + Clone {
        self.0.iter()
    }

    /// How bad it is; `None`: all is well.
    pub fn worst(&self) -> Option<Severity> {
        self.iter().map(|problem| problem.severity).max()
    }

    /// Whose the fault is, of those that are as bad as this or worse: what is written wrong comes
    /// first, for it can be mended first.
    pub fn fault(&self, least: Severity) -> Fault {
        let bad = self.iter().filter(|problem| problem.severity >= least);
        let is = |fault| bad.clone().any(|problem| problem.fault == fault);
        [Fault::Configuration, Fault::Permission]
            .into_iter()
            .find(|&fault| is(fault))
            .unwrap_or(Fault::Environment)
    }

    /// Those that are as bad as this or worse.
    pub fn at_least(&self, least: Severity) -> Problems {
        Self(self.iter().filter(|problem| problem.severity >= least).cloned().collect())
    }

    pub(super) fn add(&mut self, severity: Severity, file: &Path, message: impl Into<String>) {
        let fault = Fault::Configuration;
        self.0.push(Problem { severity, fault, file: Some(file.into()), message: message.into() });
    }

    /// Of something that is no file, or that the message names.
    pub(super) fn fatal(&mut self, fault: Fault, message: impl ToString) {
        let severity = Severity::Fatal;
        self.0.push(Problem { severity, fault, file: None, message: message.to_string() });
    }

    pub(super) fn forbidden(&mut self, file: &Path, message: impl Into<String>) {
        let (severity, fault) = (Severity::Fatal, Fault::Permission);
        self.0.push(Problem { severity, fault, file: Some(file.into()), message: message.into() });
    }

    pub(super) fn append(&mut self, mut others: Problems) {
        self.0.append(&mut others.0);
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Problems {
    /// A line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.iter().enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_decides_and_what_is_written_wrong_is_mended_first() {
        let mut problems = Problems::default();
        assert_eq!(problems.worst(), None);
        problems.add(Severity::Warning, Path::new("a"), "is open to all");
        assert_eq!(problems.worst(), Some(Severity::Warning));
        problems.forbidden(Path::new("b"), "is closed");
        assert_eq!(problems.worst(), Some(Severity::Fatal));
        assert_eq!(problems.fault(Severity::Refused), Fault::Permission);
        problems.add(Severity::Refused, Path::new("c"), "is old");
        assert_eq!(problems.fault(Severity::Refused), Fault::Configuration);
        assert_eq!(problems.at_least(Severity::Refused).to_string(), "b: is closed\nc: is old");
    }
}
