//! What belongs to a server name: exact names first, then wildcards for one label (RFC 6125 §6.4.3),
//! then what is for all others.

use hashbrown::HashMap;

/// Something for each of some server names.
#[derive(Clone, Debug)]
pub(super) struct Names<T> {
    exact: HashMap<Box<str>, T>,
    /// By what follows `*.`.
    wildcards: HashMap<Box<str>, T>,
    otherwise: T,
}

impl<T> Names<T> {
    /// No name has anything of its own.
    pub(super) fn all(otherwise: T) -> Self {
        Self { exact: HashMap::new(), wildcards: HashMap::new(), otherwise }
    }

    /// Gives a name, or `*.` and all names one label below, something of its own. A name that has
    /// something keeps it.
    pub(super) fn insert(&mut self, name: &str, value: T) {
        let name = canonical(name).to_ascii_lowercase();
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcards.entry(parent.into()).or_insert(value),
            None => self.exact.entry(name.into()).or_insert(value),
        };
    }

    /// What belongs to a name, which is in lower case.
    pub(super) fn find(&self, name: Option<&str>) -> &T {
        let Some(name) = name.map(canonical) else { return &self.otherwise };
        let wildcard = || {
            let (label, parent) = name.split_once('.')?;
            if label.is_empty() { None } else { self.wildcards.get(parent) }
        };
        self.exact.get(name).or_else(wildcard).unwrap_or(&self.otherwise)
    }

    /// Everything that some name has, and what is for all others.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.wildcards.values()).chain([&self.otherwise])
    }
}

/// Whether a name of a certificate covers a host name. Both are in lower case.
pub(super) fn covers(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (canonical(pattern), canonical(name));
    match pattern.strip_prefix("*.") {
        Some(parent) => {
            name.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == parent)
        }
        None => pattern == name,
    }
}

/// A name without the dot of the root at its end.
fn canonical(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_names_come_before_wildcards_and_these_before_the_rest() {
        let mut names = Names::all(0);
        for (name, value) in [
            ("*.example.org", 1),
            ("www.example.org", 2),
            ("Example.ORG.", 3),
            ("example.org", 4),
            ("*.www.example.org", 5),
        ] {
            names.insert(name, value);
        }
        for (name, expected) in [
            ("www.example.org", 2),
            ("www.example.org.", 2),
            ("other.example.org", 1),
            ("example.org", 3),
            ("a.www.example.org", 5),
            ("a.b.example.org", 0),
            (".example.org", 0),
            ("org", 0),
            ("", 0),
            (".", 0),
        ] {
            assert_eq!(*names.find(Some(name)), expected, "{name}");
        }
        assert_eq!(*names.find(None), 0);
        let mut values: Vec<i32> = names.values().copied().collect();
        values.sort_unstable();
        assert_eq!(values, [0, 1, 2, 3, 5]);
    }

    #[test]
    fn a_wildcard_covers_one_label() {
        for (pattern, name, expected) in [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("*.example", "a.example", true),
            ("*.example", "a.example.", true),
            ("*.example", "example", false),
            ("*.example", ".example", false),
            ("*.example", "a.b.example", false),
            ("w*.example", "www.example", false),
        ] {
            assert_eq!(covers(pattern, name), expected, "{pattern} {name}");
        }
    }
}
