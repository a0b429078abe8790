//! A TOML table, read key by key. Each value is parsed where it is taken, so that every problem of a
//! file is found in one pass, with its place; what is left at the end is an unknown key.

use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Origin, Place};
use super::resolve::Draft;
use super::units;

/// What is wrong with a value, and where, as far as that is not at its beginning: each element of a
/// list is judged by itself.
pub(super) struct Complaints(Vec<(Option<usize>, String)>);

impl From<String> for Complaints {
    fn from(message: String) -> Self {
        Self(vec![(None, message)])
    }
}

/// A table of the file, and where it is in it.
pub(super) struct Table<'t> {
    text: &'t str,
    /// Its name and a dot; empty for the file itself.
    prefix: String,
    place: Place,
    entries: DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'t> Table<'t> {
    pub(super) fn new(text: &'t str, entries: Spanned<DeTable<'t>>) -> Self {
        Self {
            text,
            prefix: String::new(),
            place: Place { line: 1, column: 1 },
            entries: entries.into_inner(),
            known: Vec::new(),
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Takes a key, parses its value and puts it where it belongs. Nothing happens where the key is
    /// absent; where the value does not parse, that becomes a problem of the draft.
    pub(super) fn set<T, E: Into<Complaints>>(
        &mut self,
        key: &'static str,
        draft: &mut Draft,
        parse: impl FnOnce(&DeValue<'t>) -> Result<T, E>,
        put: impl FnOnce(&mut Draft, T),
    ) {
        let Some((place, value)) = self.take(key) else { return };
        let full_key = format!("{}{key}", self.prefix);
        match parse(&value) {
            Ok(parsed) => {
                draft.origins.insert(full_key, Origin::File(place));
                put(draft, parsed);
            }
            Err(complaints) => {
                for (offset, message) in complaints.into().0 {
                    let place = offset.map_or(place, |offset| Place::of(self.text, offset));
                    draft.problem(Origin::File(place), &full_key, message);
                }
            }
        }
    }

    /// Takes a table within this one; an absent table is an empty one.
    pub(super) fn table(&mut self, key: &'static str, draft: &mut Draft) -> Table<'t> {
        let (place, entries) = match self.take(key) {
            None => (self.place, DeTable::new()),
            Some((place, DeValue::Table(entries))) => (place, entries),
            Some((place, other)) => {
                self.unexpected(key, place, &other, "a table", draft);
                (place, DeTable::new())
            }
        };
        self.child(key, place, entries)
    }

    /// Takes an array of tables: `[[key]]`, once for each.
    pub(super) fn tables(&mut self, key: &'static str, draft: &mut Draft) -> Vec<Table<'t>> {
        match self.take(key) {
            None => Vec::new(),
            Some((place, DeValue::Array(items))) => {
                let mut tables = Vec::new();
                for item in items {
                    let item_place = Place::of(self.text, item.span().start);
                    match item.into_inner() {
                        DeValue::Table(entries) => {
                            tables.push(self.child(key, item_place, entries));
                        }
                        other => self.unexpected(key, place, &other, "a table", draft),
                    }
                }
                tables
            }
            Some((place, other)) => {
                let shape = format!("an array of tables: `[[{}{key}]]`", self.prefix);
                self.unexpected(key, place, &other, &shape, draft);
                Vec::new()
            }
        }
    }

    /// Reports what is wrong with this table as a whole, under one of its keys.
    pub(super) fn problem(&self, key: &str, message: &str, draft: &mut Draft) {
        draft.problem(Origin::File(self.place), &format!("{}{key}", self.prefix), message);
    }

    /// Reports every key that nobody took.
    pub(super) fn finish(self, draft: &mut Draft) {
        for key in self.entries.keys() {
            let origin = Origin::File(Place::of(self.text, key.span().start));
            let message = format!("unknown key; known here: {}", self.known.join(", "));
            draft.problem(origin, &format!("{}{}", self.prefix, key.get_ref()), message);
        }
    }

    fn take(&mut self, key: &'static str) -> Option<(Place, DeValue<'t>)> {
        self.known.push(key);
        let value = self.entries.remove(key)?;
        let place = Place::of(self.text, value.span().start);
        Some((place, value.into_inner()))
    }

    fn child(&self, key: &str, place: Place, entries: DeTable<'t>) -> Table<'t> {
        let prefix = format!("{}{key}.", self.prefix);
        Table { text: self.text, prefix, place, entries, known: Vec::new() }
    }

    fn unexpected(
        &self,
        key: &str,
        place: Place,
        value: &DeValue<'_>,
        shape: &str,
        draft: &mut Draft,
    ) {
        let full_key = format!("{}{key}", self.prefix);
        draft.problem(Origin::File(place), &full_key, wrong_type(value, shape));
    }
}

/// Any text.
pub(super) fn text(value: &DeValue<'_>) -> Result<String, String> {
    string(value, "a text").map(str::to_owned)
}

/// A path, seen from the directory `base`.
pub(super) fn path(base: &Path) -> impl FnOnce(&DeValue<'_>) -> Result<PathBuf, String> {
    move |value| match string(value, "a path")? {
        "" => Err("is empty; name a path; `.` is the directory of this file".into()),
        path => Ok(base.join(path)),
    }
}

/// `true` or `false`.
pub(super) fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| wrong_type(value, "`true` or `false`"))
}

/// A table of texts, in the order of their keys.
pub(super) fn texts(value: &DeValue<'_>, shape: &str) -> Result<Vec<(String, String)>, String> {
    let entries = value.as_table().ok_or_else(|| wrong_type(value, shape))?;
    let entry = |key: &str, value: &DeValue<'_>| {
        let text =
            value.as_str().ok_or_else(|| format!("`{key}`: {}", wrong_type(value, "a text")));
        Ok((key.to_owned(), text?.to_owned()))
    };
    entries.iter().map(|(key, value)| entry(key.get_ref(), value.get_ref())).collect()
}

/// A list of texts, each parsed.
pub(super) fn list<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl FnOnce(&DeValue<'_>) -> Result<Vec<T>, Complaints> {
    elements("a list of texts: [\"…\"]", move |item| parse(string(item, "a text")?))
}

/// A list of whole numbers from 0 up.
pub(super) fn numbers(value: &DeValue<'_>) -> Result<Vec<i32>, Complaints> {
    elements("a list of whole numbers: [3, 4]", |item| whole(0..=i32::MAX)(item))(value)
}

/// A list of `shape`, each element parsed, whatever is wrong with others.
pub(super) fn elements<T>(
    shape: &'static str,
    parse: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> impl FnOnce(&DeValue<'_>) -> Result<Vec<T>, Complaints> {
    move |value| {
        let items = value.as_array().ok_or_else(|| wrong_type(value, shape))?;
        let mut parsed = Vec::new();
        let mut complaints = Vec::new();
        for item in items.iter() {
            match parse(item.get_ref()) {
                Ok(element) => parsed.push(element),
                Err(message) => complaints.push((Some(item.span().start), message)),
            }
        }
        if complaints.is_empty() { Ok(parsed) } else { Err(Complaints(complaints)) }
    }
}

/// A list of CPUs.
pub(super) fn cpus(value: &DeValue<'_>) -> Result<Vec<usize>, String> {
    units::parse_cpus(string(value, "a list of CPUs: \"0-3,8\"")?)
        .map_err(|error| error.to_string())
}

/// One of some words.
pub(super) fn choice<T: Copy>(
    choices: &[(&str, T)],
) -> impl FnOnce(&DeValue<'_>) -> Result<T, String> {
    move |value| {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
        let names = names.join(", ");
        let word = string(value, &format!("one of {names}"))?;
        let found = choices.iter().find(|(name, _)| *name == word);
        found.map(|(_, choice)| *choice).ok_or_else(|| format!("`{word}` is none of {names}"))
    }
}

/// A whole number within bounds.
pub(super) fn whole<T>(
    bounds: impl RangeBounds<T>,
) -> impl FnOnce(&DeValue<'_>) -> Result<T, String>
where
    T: TryFrom<i64> + PartialOrd + std::fmt::Display,
{
    move |value| {
        let shape = "a whole number";
        let integer = value.as_integer().ok_or_else(|| wrong_type(value, shape))?;
        i64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| format!("{} is not within {}", integer.as_str(), shown(&bounds)))
    }
}

/// A size within bounds, which are bytes.
pub(super) fn bytes<T>(
    bounds: impl RangeBounds<T>,
) -> impl FnOnce(&DeValue<'_>) -> Result<T, String>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display,
{
    move |value| {
        let written = string(value, "a size: \"64KiB\"")?;
        let size = units::parse_bytes(written).map_err(|error| error.to_string())?;
        T::try_from(size)
            .ok()
            .filter(|size| bounds.contains(size))
            .ok_or_else(|| format!("`{written}` is not within {} bytes", shown(&bounds)))
    }
}

/// A duration, no longer than `max`.
pub(super) fn duration(
    min: Duration,
    max: Duration,
) -> impl FnOnce(&DeValue<'_>) -> Result<Duration, String> {
    move |value| {
        let written = string(value, "a duration: \"10s\"")?;
        let parsed = units::parse_duration(written).map_err(|error| error.to_string())?;
        if (min..=max).contains(&parsed) {
            Ok(parsed)
        } else {
            Err(format!("`{written}` is not within {min:?} to {max:?}"))
        }
    }
}

/// A text, which is to be of this shape.
pub(super) fn string<'v>(value: &'v DeValue<'_>, shape: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| wrong_type(value, shape))
}

fn wrong_type(value: &DeValue<'_>, shape: &str) -> String {
    format!("write {shape}, not a value of type {}", value.type_str())
}

fn shown<T: std::fmt::Display>(bounds: &impl RangeBounds<T>) -> String {
    let bound = |bound: Bound<&T>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => value.to_string(),
        Bound::Unbounded => "…".into(),
    };
    format!("{} to {}", bound(bounds.start_bound()), bound(bounds.end_bound()))
}
