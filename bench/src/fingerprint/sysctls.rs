//! The kernel's settings that are not what the kernel makes them: against the table of
//! [`onering_tune::defaults`].

use super::fact::{Fact, Tree};
use onering_tune::defaults::{self, SETTINGS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings beneath `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctls {
    /// Those that differ from the default of this kernel's release.
    pub changed: BTreeMap<String, Changed>,
    /// Those that have no default to compare with, for the kernel computes it from the machine.
    pub computed: BTreeMap<String, String>,
}

/// A setting that somebody has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// What it is.
    pub value: String,
    /// What it would be.
    pub default: String,
    /// What says so.
    pub source: String,
}

impl Sysctls {
    /// Reads them on a kernel of the release (major, minor).
    pub(super) fn read(tree: Tree<'_>, release: Option<(u32, u32)>) -> Fact<Self> {
        let Some(release) = release else {
            return Fact::absent("the kernel's release, which decides on defaults, is not known");
        };
        let mut sysctls = Self { changed: BTreeMap::new(), computed: BTreeMap::new() };
        for setting in SETTINGS {
            // A key that this kernel or this namespace does not have is not set either.
            let text = tree.text(&defaults::path(setting.key));
            let Some(value) = text.known() else { continue };
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            match (setting.default.is(&value, release), setting.default.of(release)) {
                (Some(true), _) => {}
                (Some(false), Some(default)) => {
                    let (default, source) = (default.to_owned(), setting.source.to_owned());
                    let changed = Changed { value, default, source };
                    sysctls.changed.insert(setting.key.to_owned(), changed);
                }
                (None, _) | (_, None) => {
                    sysctls.computed.insert(setting.key.to_owned(), value);
                }
            }
        }
        Fact::Known(sysctls)
    }
}
