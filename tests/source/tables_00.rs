//! Layer 00: the tables of the documentation that say which test shows what do not rot. Every test
//! that they name exists, and every group of cases is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The tables. The last column of each is headed `test`.
const TABLES: &[&str] = &["src/http/conformance.md", "src/server/faults.md"];

/// Where tests are, and what their names leave out of the path.
const PLACES: &[&str] = &["src", "tests/harness", "tests/source"];

/// A group of cases: a file of a directory whose name begins like this.
const GROUPS: &str = "rfc";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names in the last column of every row of a table, each between two backticks.
fn named(table: &str) -> Vec<String> {
    let rows = table.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    let mut names = Vec::new();
    for row in rows {
        let cells: Vec<_> = row.trim_end_matches('|').split('|').collect();
        let last = cells.last().expect("a row has cells").trim();
        if last != "test" {
            let found: Vec<_> = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            assert!(!found.is_empty(), "no test is named: {row}");
            names.extend(found);
        }
    }
    names
}

/// Every test of the places, by its modules and its name.
fn tests() -> BTreeSet<String> {
    let mut tests = Tests::default();
    for place in PLACES {
        let directory = root().join(place);
        for path in sources(&directory) {
            let text = fs::read_to_string(&path).expect("a source file is UTF-8");
            let file = syn::parse_file(&text).expect("a source file parses");
            let inside = path.strip_prefix(&directory).expect("it is in there").with_extension("");
            tests.module = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if tests.module.last().is_some_and(|name| name == "mod") {
                tests.module.pop();
            }
            tests.visit_file(&file);
        }
    }
    tests.found
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the directory is part of the workspace");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("the directory can be read").path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Collects the functions that are tests, those in macros too.
#[derive(Default)]
struct Tests {
    module: Vec<String>,
    found: BTreeSet<String>,
}

impl Tests {
    fn add(&mut self, name: String) {
        self.found.insert([&self.module[..], &[name]].concat().join("::"));
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.attrs.iter().any(|attribute| attribute.path().is_ident("test")) {
            self.add(function.sig.ident.to_string());
        }
    }

    /// What stands in `proptest!` is tests.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.is_ident("proptest") {
            functions(call.tokens.clone()).into_iter().for_each(|name| self.add(name));
        }
    }
}

fn functions(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let names = tokens.windows(2).filter_map(|pair| match pair {
        [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "fn" => Some(name.to_string()),
        _ => None,
    });
    names.collect()
}

#[test]
fn every_test_that_a_table_names_exists() {
    let tests = tests();
    for table in TABLES {
        let text = fs::read_to_string(root().join(table)).expect("the table is there");
        let unknown: Vec<_> = named(&text)
            .into_iter()
            .filter(|name| {
                let within = format!("{name}::");
                !tests.iter().any(|test| test == name || test.starts_with(&within))
            })
            .collect();
        assert!(unknown.is_empty(), "{table} names what is no test: {unknown:#?}");
    }
}

#[test]
fn every_group_of_cases_is_named() {
    let table = fs::read_to_string(root().join(TABLES[0])).expect("the table is there");
    let named = named(&table);
    let groups: BTreeSet<_> = tests()
        .into_iter()
        .filter(|test| test.starts_with(GROUPS))
        .filter_map(|test| test.rsplit_once("::").map(|(group, _)| group.to_owned()))
        .collect();
    assert!(!groups.is_empty());
    let is_named = |group: &String| named.iter().any(|name| name.starts_with(&**group));
    let unnamed: Vec<_> = groups.iter().filter(|group| !is_named(group)).collect();
    assert!(unnamed.is_empty(), "groups of cases that the table does not name: {unnamed:#?}");
}

#[test]
fn a_row_without_a_test_is_found() {
    assert_eq!(
        named("| rule | test |\n|---|---|\n| a | `x::y`, `z` |\nno `row`\n"),
        ["x::y", "z"].map(str::to_owned)
    );
    let row = std::panic::catch_unwind(|| named("| rule | test |\n|---|---|\n| `a` | none |\n"));
    assert!(row.is_err());
}

#[test]
fn tests_are_found_wherever_they_stand() {
    let tests = tests();
    for name in [
        // In a file, in a module of one, in a file of a module's tests, in a macro, in a group.
        "protocol_40::a_request_may_come_byte_by_byte",
        "http::date::tests::known_dates",
        "http::range::tests::one_range",
        "http::target::tests::no_path_leaves_the_root",
        "rfc9112_40::host::cases",
    ] {
        assert!(tests.contains(name), "{name}");
    }
    assert!(!tests.contains("http::target::tests::decoded"), "it is no test");
}
