//! What may be written about a site, and what is said about the rest.

use super::super::{Facts, File, Overrides, resolve};
use super::*;

fn problem(site: &str) -> Option<String> {
    let text = format!("[[site]]\nroot = \"/\"\n{site}\n");
    let facts = Facts { allowed_cpus: vec![0], nofile: 65_536 };
    let file = File { path: Path::new("test.toml"), text: &text };
    let error = resolve(Some(file), &Overrides::default(), &facts).err()?;
    assert_eq!(error.problems.len(), 1, "{error}");
    Some(error.to_string())
}

#[track_caller]
fn refused(site: &str, place_and_key: &str, says: &str) {
    let problem = problem(site).expect(site);
    assert!(problem.starts_with(&format!("test.toml:{place_and_key}: ")), "{problem}");
    assert!(problem.contains(says), "{problem}");
}

fn refused_set(set: &str, says: &str) {
    let rule = format!("[[site.headers]]\nmatch = \"*\"\nset = {{ {set} }}");
    refused(&rule, "5:7: site.headers.set", says);
}

#[test]
fn values_say_what_to_write_instead() {
    refused("listing = 1", "3:11: site.listing", "`true` or `false`");
    refused("charset = \"utf 8\"", "3:11: site.charset", "`off`");
    refused("symlinks = \"no\"", "3:12: site.symlinks", "`beneath`, `owner`, `off`");
    refused("[site.headers]", "3:1: site.headers", "`[[site.headers]]`");
    refused("dotfiles = \"no\"", "3:12: site.dotfiles", "`refuse`, `serve`");
    refused("mode_allowed = 4", "3:16: site.mode_allowed", "in octal: \"0004\"");
    for mode in ["\"8\"", "\"10000\"", "\"+4\"", "\"\"", "\"-4\""] {
        let written = format!("mode_allowed = {mode}");
        let problem = problem(&written).expect(&written);
        assert!(problem.contains("site.mode_allowed: "), "{problem}");
    }
    assert_eq!(problem("mode_forbidden = \"7777\""), None);
}

#[test]
fn pages_are_of_errors_and_lie_beneath_the_root() {
    for (pages, says) in [
        ("200 = \"/a\"", "`200` is not an error"),
        ("304 = \"/a\"", "`304` is not an error"),
        ("402 = \"/a\"", "these are: 400, 403, 404"),
        ("4xx = \"/a\"", "`4xx` is not an error"),
        ("404 = \"a\"", "\"/errors/404.html\""),
        ("404 = \"/\"", "is not a file's path"),
        ("404 = \"//a\"", "is not a file's path"),
        ("404 = \"/a/../b\"", "is not a file's path"),
        ("404 = 1", "`404`: write a text"),
    ] {
        refused(&format!("error_pages = {{ {pages} }}"), "3:15: site.error_pages", says);
    }
}

#[test]
fn a_rule_is_for_some_files_or_for_every_answer() {
    refused("[[site.headers]]\nset = { A = \"b\" }", "3:1: site.headers.match", "`always = true`");
    let both = "[[site.headers]]\nmatch = \"*\"\nalways = true\nset = { A = \"b\" }";
    refused(both, "3:1: site.headers.always", "leave out one");
    refused("[[site.headers]]\nalways = true", "3:1: site.headers.set", "missing");
    let of_all = "[[site.headers]]\nalways = true\nset = { content-type = \"a/b\" }";
    refused(of_all, "3:1: site.headers.set", "by `match`");
    let unknown = "[[site.headers]]\nmatch = \"*\"\nadd = { A = \"b\" }\nset = { A = \"b\" }";
    refused(unknown, "5:1: site.headers.add", "unknown key; known here: match, always, set");
    refused("headers = 1", "3:11: site.headers", "`[[site.headers]]`");
}

/// What the server says itself nobody else may say: two answers to one question can be a way to
/// smuggle a request.
#[test]
fn fields_of_the_server_are_refused_with_the_reason() {
    for (name, why) in OWN_FIELDS {
        refused_set(&format!("{} = \"x\"", name.to_uppercase()), why);
    }
    for name in ["Content-Type", "Cache-Control", "Vary", "Set-Cookie", "Content-Language"] {
        let rule = format!("[[site.headers]]\nmatch = \"*\"\nset = {{ {name} = \"x\" }}");
        assert_eq!(problem(&rule), None, "{name}");
    }
}

#[test]
fn fields_that_would_split_the_head_are_refused() {
    refused_set("\"A B\" = \"x\"", "not the name of a field");
    refused_set("\"\" = \"x\"", "not the name of a field");
    refused_set("\"A:\" = \"x\"", "not the name of a field");
    refused_set("A = \"x\\r\\nB: y\"", "not printable ASCII");
    refused_set("A = \"x\\u0000\"", "not printable ASCII");
    refused_set("A = \"\u{e4}\"", "not printable ASCII");
    refused_set("A = \" x\"", "begins or ends with a space");
    refused_set("A = \"x\", a = \"y\"", "twice");
    refused_set("A = 1", "`A`: write a text");
}

#[test]
fn patterns_are_of_names_or_of_paths() {
    for (pattern, path, expected) in [
        ("*.css", "main.css", true),
        ("*.css", "a/b/main.css", true),
        ("*.css", "main.css/other", false),
        ("*.css", "main.CSS", false),
        ("main.css", "a/main.css", true),
        ("/*.css", "main.css", true),
        ("/*.css", "a/main.css", false),
        ("/a/*.css", "a/main.css", true),
        ("a/*.css", "a/main.css", true),
        ("a/*.css", "a/b/main.css", false),
        ("a/*.css", "b/a/main.css", false),
        ("a/**/*.css", "a/main.css", true),
        ("a/**/*.css", "a/b/c/main.css", true),
        ("a/", "a/b/main.css", true),
        ("a/", "b/a/main.css", false),
        ("/", "a/b", true),
        ("*", "a/b", true),
        ("**", "a/b", true),
        ("*.{js,mjs}", "a/app.mjs", true),
        ("*.{js,mjs}", "a/app.cjs", false),
        ("app-[0-9]*.js", "app-1f.js", true),
        ("a?b", "a/b", false),
        ("a\\*b", "a*b", true),
        ("a\\*b", "axb", false),
        ("*", ".well-known/x", true),
    ] {
        let glob = glob(pattern).expect(pattern);
        assert_eq!(glob.compile_matcher().is_match(path), expected, "{pattern} {path}");
    }
    for pattern in ["", "[a", "{a", "a\\"] {
        assert!(glob(pattern).is_err(), "{pattern}");
    }
}

proptest::proptest! {
    #[test]
    fn no_pattern_panics(pattern in "[a*?/\\[\\]{},!\\\\-]{0,12}") {
        let _ = glob(&pattern);
    }
}
