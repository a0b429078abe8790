//! What is unlike between two fingerprints: every field by its name in the JSON, so that a field
//! which is added later is compared without more ado.

use super::Fingerprint;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// A field that two fingerprints do not have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unlike {
    /// Its name, such as `kernel.release`.
    pub field: String,
    /// What the first says, as JSON; absent if it says nothing.
    pub first: Option<String>,
    /// What the second says.
    pub second: Option<String>,
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |value: &Option<String>| value.as_deref().unwrap_or("nothing").to_owned();
        write!(f, "{}: {} against {}", self.field, said(&self.first), said(&self.second))
    }
}

/// What is unlike between `first` and `second`, by field.
pub fn difference(first: &Fingerprint, second: &Fingerprint) -> Vec<Unlike> {
    let json = |fingerprint| {
        serde_json::to_value(fingerprint).expect("a fingerprint has only text as keys")
    };
    let mut unlike = Vec::new();
    compare("", Some(&json(first)), Some(&json(second)), &mut unlike);
    unlike
}

fn compare(field: &str, first: Option<&Value>, second: Option<&Value>, unlike: &mut Vec<Unlike>) {
    if first == second {
        return;
    }
    let (Some(Value::Object(a)), Some(Value::Object(b))) = (first, second) else {
        let text = |value: Option<&Value>| value.map(Value::to_string);
        let (first, second) = (text(first), text(second));
        unlike.push(Unlike { field: field.to_owned(), first, second });
        return;
    };
    let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    for name in names {
        let below = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
        compare(&below, a.get(name), b.get(name), unlike);
    }
}
