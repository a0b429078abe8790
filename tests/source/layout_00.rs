//! Layer 00: every module uses only the modules above it, `unsafe` stays where it belongs, and
//! every file says what it is and tells one story.
//!
//! The rules themselves are in [`rules`], which knows no file system; this file feeds it the
//! workspace, and feeds it small made-up trees to show that each rule finds a violation.

#[path = "rules.rs"]
mod rules;

use std::fs;
use std::path::Path;

use rules::{Broken, Source, broken_rules};

/// The directories whose Rust files the rules apply to, from the root of the workspace.
const DIRECTORIES: &[&str] = &[
    "src",
    "bench/src",
    "bench/benches",
    "fileset/src",
    "sysctl/src",
    "fuzz/src",
    "fuzz/targets",
    "tests",
];

fn workspace() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for directory in DIRECTORIES {
        collect(root, &root.join(directory), &mut sources);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn collect(root: &Path, directory: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(directory).expect("the directory is part of the workspace") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            collect(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file is UTF-8");
            let path = path.strip_prefix(root).expect("the file is below the root");
            sources.push(Source::new(path.to_str().expect("names are UTF-8"), &text));
        }
    }
}

#[test]
fn the_workspace_keeps_every_rule() {
    let broken = broken_rules(&workspace());
    let report: Vec<String> = broken.iter().map(Broken::to_string).collect();
    assert!(report.is_empty(), "\n{}\n", report.join("\n"));
}

/// What the rules say about `text` at `path`, in a library of the modules `sys`, `config`,
/// `http`, `ring`, `metrics`, `files` and `server`.
fn verdict(path: &str, text: &str) -> Vec<String> {
    let library = Source::new(
        "src/lib.rs",
        "//! Doc.\npub mod sys;\npub mod config;\npub mod http;\npub mod ring;\n\
         pub mod metrics;\npub mod files;\npub mod server;\n",
    );
    let text = format!("//! Doc.\n{text}");
    broken_rules(&[library, Source::new(path, &text)]).iter().map(Broken::to_string).collect()
}

#[track_caller]
fn accepted(path: &str, text: &str) {
    assert_eq!(verdict(path, text), Vec::<String>::new());
}

#[track_caller]
fn refused(path: &str, text: &str, message: &str) {
    let verdict = verdict(path, text);
    assert!(
        verdict.len() == 1 && verdict[0].contains(message),
        "expected one complaint with {message:?}, got {verdict:#?}"
    );
}

#[test]
fn a_module_may_use_itself_and_those_above_it() {
    accepted("src/files/mod.rs", "use crate::{config::Cache, ring, sys::limits as l};");
    accepted("src/files/cache.rs", "use super::entry::Entry; use crate::files::Entry;");
    accepted("src/files/mod.rs", "mod tests { use super::*; use super::super::metrics::M; }");
    accepted("src/ring/mod.rs", "use crate::sys::Fd;");
    accepted("src/main.rs", "fn main() { onering::server::run() }");
}

#[test]
fn a_use_of_a_module_below_is_found_however_it_is_written() {
    for text in [
        "use crate::server::Server;",
        "use crate::{config::Cache, server as s};",
        "pub use crate::server::*;",
        "fn f() { crate::server::run() }",
        "fn f(server: &crate::server::Server) {}",
        "impl crate::server::Role for u8 {}",
        "mod inner { use super::super::server::Server; }",
        "fn f() { super::server::run() }",
        "fn f() { debug_assert!(crate::server::is_up()) }",
        "macro_rules! m { () => { $crate::server::run() } }",
        "pub(in crate::server) fn f() {}",
        "fn f(x: u8) { match x { crate::server::LIMIT => (), _ => () } }",
    ] {
        refused("src/files/mod.rs", text, "`files` uses `server`");
    }
    refused("src/files/cache.rs", "use super::super::server::S;", "`files` uses `server`");
    refused("src/files/a/b.rs", "use super::super::super::server::S;", "`files` uses `server`");
}

#[test]
fn the_pure_modules_use_nothing_of_ours() {
    refused("src/http/mod.rs", "use crate::sys::Clock;", "`http` uses `sys`");
    refused("src/config/units.rs", "use crate::sys::Cpus;", "`config` uses `sys`");
    refused("src/ring/mod.rs", "use crate::config::Ring;", "`ring` uses `config`");
}

#[test]
fn a_use_that_hides_what_it_uses_is_found() {
    refused("src/files/mod.rs", "use crate::*;", "`files` uses `*`");
    refused("src/files/mod.rs", "use crate as root;", "renames the crate");
    refused("src/files/mod.rs", "use super::*;", "`files` uses `*`");
    refused("src/files/mod.rs", "extern crate self as root;", "renames the crate");
}

#[test]
fn a_file_that_no_layer_owns_is_found() {
    refused("src/stray/mod.rs", "", "`stray` is not a module of src/lib.rs");
}

#[test]
fn unsafe_is_found_outside_its_places() {
    for text in [
        "fn f() { unsafe { g() } }",
        "unsafe fn f() {}",
        "unsafe impl Send for S {}",
        "macro_rules! m { () => { unsafe { g() } } }",
        "#[unsafe(no_mangle)] fn f() {}",
    ] {
        refused("src/files/mod.rs", text, "`unsafe`");
        refused("bench/src/main.rs", text, "`unsafe`");
        accepted("src/ring/mod.rs", text);
        accepted("src/sys/socket.rs", text);
    }
    accepted("src/files/mod.rs", "/// This is not unsafe.\nfn f() -> &'static str { \"unsafe\" }");
}

#[test]
fn a_file_without_a_module_doc_is_found() {
    let verdict = broken_rules(&[
        Source::new("src/lib.rs", "//! Doc.\npub mod sys;\n"),
        Source::new("src/sys/mod.rs", "/// Not of the module.\nfn f() {}\n"),
    ]);
    assert_eq!(verdict.len(), 1);
    assert!(verdict[0].to_string().contains("no module doc"));
}

#[test]
fn a_long_file_and_a_promise_are_found() {
    let long = "\n".repeat(rules::LINES_MAX);
    refused("src/files/mod.rs", &long, "look for the second story");
    refused("src/files/mod.rs", "fn f() { todo!() }", "`todo!`");
    refused("src/files/mod.rs", "fn f() { unimplemented!() }", "`unimplemented!`");
    let promise = concat!("// ", "TO", "DO: later");
    refused("src/files/mod.rs", promise, "a promise");
}

#[test]
fn a_file_that_does_not_parse_is_found() {
    refused("src/files/mod.rs", "fn f( {", "does not parse");
}
