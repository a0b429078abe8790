//! Layer 20: what the fuzzer has found, and what it starts from, is checked again; without the fuzzer.
//!
//! `fuzz/corpus/TARGET/` are seeds, each named by what is in it. `fuzz/regressions/TARGET/` are inputs
//! that once broke something, each named by the symptom. A new one needs nothing but its file.

#[path = "../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is the library of another crate as well")]
mod fuzz;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fuzz::TARGETS;

/// The kept inputs of a target.
fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind).join(target);
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut inputs: Vec<_> =
        entries.map(|entry| entry.expect("the directory can be read").path()).collect();
    inputs.sort();
    inputs
}

/// Runs all inputs, and names every one that fails.
fn replay(kind: &str) -> usize {
    let (mut passed, mut failed) = (0, Vec::new());
    for &(target, check) in TARGETS {
        for path in inputs(kind, target) {
            let input = fs::read(&path).expect("the input can be read");
            match catch_unwind(AssertUnwindSafe(|| check(&input))) {
                Ok(()) => passed += 1,
                Err(_) => failed.push(path),
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    passed
}

#[test]
fn every_seed_passes() {
    let passed = replay("corpus");
    assert!(passed >= 10 * TARGETS.len(), "only {passed} seeds were found");
}

#[test]
fn every_regression_passes() {
    replay("regressions");
}

#[test]
fn every_target_has_seeds_and_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for (target, _) in TARGETS {
        assert!(inputs("corpus", target).len() >= 10, "{target} has few seeds");
        assert!(root.join(format!("targets/{target}.rs")).is_file(), "{target} has no program");
    }
    for kind in ["corpus", "regressions", "targets"] {
        let Ok(entries) = fs::read_dir(root.join(kind)) else { continue };
        for entry in entries {
            let path = entry.expect("the directory can be read").path();
            let name = path.file_stem().expect("it has a name").to_str().expect("in ASCII");
            assert!(TARGETS.iter().any(|(target, _)| *target == name), "{kind}: {name}?");
        }
    }
}
