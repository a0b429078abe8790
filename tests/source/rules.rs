//! The rules of the source tree, over texts alone: no file system, no process.
//!
//! Uses are read off the syntax tree: `use` trees, and every path in an expression, a type, a
//! pattern or a visibility. What is inside a macro is tokens to the parser, so there a path is
//! found by its tokens.

use std::fmt;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Longer files have a second story to be found.
pub(crate) const LINES_MAX: usize = 600;

/// Files longer than [`LINES_MAX`], with the length that they must not pass: it only goes down.
const LONG_FILES: &[(&str, usize)] = &[];

/// Where `unsafe` may be written: the start of a path.
const UNSAFE_PLACES: &[&str] = &["src/ring/", "src/sys/", "src/dynamic/abi.rs", "tests/support/"];

/// One file: its path from the root of the workspace, and what is in it.
pub(crate) struct Source {
    pub(crate) path: String,
    text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// The path of the module that the file is, from the crate's root: empty for the root.
    fn module(&self) -> Vec<&str> {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let inside = inside.strip_suffix(".rs").unwrap_or(inside);
        let mut names: Vec<&str> = inside.split('/').collect();
        if names.last() == Some(&"mod") || matches!(names[..], ["lib" | "main"]) {
            names.pop();
        }
        names
    }

    /// Whether the file belongs to the library whose modules are layers.
    fn is_layered(&self) -> bool {
        self.path.starts_with("src/") && self.path != "src/main.rs" && self.path != "src/lib.rs"
    }
}

/// A rule that a file breaks, and where.
pub(crate) struct Broken {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every rule that `sources` break. `src/lib.rs` must be among them: it gives the layers.
pub(crate) fn broken_rules(sources: &[Source]) -> Vec<Broken> {
    let mut broken = Vec::new();
    let library = sources.iter().find(|source| source.path == "src/lib.rs");
    let layers = library.and_then(|library| syn::parse_file(&library.text).ok());
    let layers = layers.map(|file| modules(&file)).unwrap_or_default();
    for source in sources {
        let mut say = |line: usize, what: String| {
            broken.push(Broken { path: source.path.clone(), line, what });
        };
        check_length(source, &mut say);
        match syn::parse_file(&source.text) {
            Ok(file) => {
                if !has_module_doc(&file) {
                    say(1, "no module doc (`//!`) that says what the file is".to_owned());
                }
                if source.is_layered() {
                    check_layers(source, &file, &layers, &mut say);
                }
            }
            Err(error) => say(error.span().start().line, format!("does not parse: {error}")),
        }
        if let Ok(tokens) = source.text.parse::<TokenStream>() {
            check_words(source, tokens, &mut say);
        }
    }
    broken
}

/// The modules of the library in the order of their declaration, which is the layers' order.
fn modules(library: &syn::File) -> Vec<String> {
    let modules = library.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

fn has_module_doc(file: &syn::File) -> bool {
    file.attrs.iter().any(|attribute| attribute.path().is_ident("doc"))
}

fn check_length(source: &Source, say: &mut impl FnMut(usize, String)) {
    let lines = source.text.lines().count();
    let listed = LONG_FILES.iter().find(|(path, _)| *path == source.path);
    match listed {
        Some((_, most)) if lines > *most => {
            say(lines, format!("{lines} lines, and the list of long files allows {most}"));
        }
        Some(_) if lines <= LINES_MAX => {
            say(lines, "no longer long: take it off the list of long files".to_owned());
        }
        None if lines > LINES_MAX => {
            say(lines, format!("{lines} lines: past {LINES_MAX}, look for the second story"));
        }
        _ => (),
    }
    for (index, line) in source.text.lines().enumerate() {
        let comment = line.find("//").map(|start| &line[start..]).unwrap_or_default();
        if let Some(word) = ["TODO", "FIXME", "XXX"].iter().find(|word| comment.contains(**word)) {
            say(index + 1, format!("`{word}` is a promise: keep it or file it"));
        }
    }
}

/// Finds the words that are refused wherever they stand: `unsafe` out of its places, and macros
/// that stand for code not written.
fn check_words(source: &Source, tokens: TokenStream, say: &mut impl FnMut(usize, String)) {
    let safe = !UNSAFE_PLACES.iter().any(|place| source.path.starts_with(place));
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => check_words(source, group.stream(), say),
            TokenTree::Ident(word) => {
                let is_macro =
                    matches!(tokens.peek(), Some(TokenTree::Punct(mark)) if mark.as_char() == '!');
                if safe && word == "unsafe" {
                    say(line(word.span()), "`unsafe` outside of its places".to_owned());
                } else if is_macro && (word == "todo" || word == "unimplemented") {
                    say(line(word.span()), format!("`{word}!` stands for code not written"));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => (),
        }
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

/// Finds the uses of modules that the file's layer may not use.
fn check_layers(
    source: &Source,
    file: &syn::File,
    layers: &[String],
    say: &mut impl FnMut(usize, String),
) {
    let module: Vec<String> = source.module().into_iter().map(str::to_owned).collect();
    let user = module[0].clone();
    if !layers.contains(&user) {
        say(1, format!("`{user}` is not a module of src/lib.rs"));
        return;
    }
    let mut uses = Uses { module, found: Vec::new() };
    uses.visit_file(file);
    for found in uses.found {
        match found.what {
            Used::Module(used) if !may_use(layers, &user, &used) => {
                say(found.line, format!("`{user}` uses `{used}`, which is not above it"));
            }
            Used::Module(_) => (),
            Used::Rename => say(found.line, "renames the crate, which hides uses".to_owned()),
        }
    }
}

/// Whether the layer `user` may use `used`: itself and the layers above it, but the pure layers
/// nothing of ours, and the ring only `sys`.
fn may_use(layers: &[String], user: &str, used: &str) -> bool {
    let position = |name: &str| layers.iter().position(|layer| layer == name);
    user == used
        || match user {
            "config" | "http" => false,
            "ring" => used == "sys",
            _ => {
                matches!((position(used), position(user)), (Some(used), Some(user)) if used < user)
            }
        }
}

enum Used {
    /// A module of the crate's root; `*` for all of them.
    Module(String),
    /// The crate itself under another name.
    Rename,
}

struct Use {
    line: usize,
    what: Used,
}

/// Collects what a file uses of its crate's root.
struct Uses {
    /// Where the visit is: the modules from the root of the crate inwards.
    module: Vec<String>,
    found: Vec<Use>,
}

impl Uses {
    fn found(&mut self, span: Span, what: Used) {
        self.found.push(Use { line: line(span), what });
    }

    /// Records the path `segments`, if it leads through the root of the crate.
    fn path(&mut self, segments: &[String], span: Span) {
        if let Some(Some(module)) = self.below_root(segments) {
            self.found(span, Used::Module(module));
        }
    }

    /// `Some(Some(m))` where the path leads through the root into `m`, `Some(None)` where it ends
    /// at the root.
    fn below_root(&self, segments: &[String]) -> Option<Option<String>> {
        let mut rest = segments;
        let mut depth = match rest.first().map(String::as_str) {
            Some("crate") => 0,
            Some("self" | "super") => self.module.len(),
            _ => return None,
        };
        loop {
            match rest.first().map(String::as_str) {
                Some("crate" | "self") => (),
                Some("super") => depth = depth.saturating_sub(1),
                _ => break,
            }
            rest = &rest[1..];
        }
        (depth == 0).then(|| rest.first().cloned())
    }

    fn use_tree(&mut self, prefix: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.use_tree(prefix, &path.tree);
                prefix.pop();
            }
            syn::UseTree::Name(name) => self.leaf(prefix, &name.ident),
            syn::UseTree::Rename(rename) => {
                prefix.push(rename.ident.to_string());
                match self.below_root(prefix) {
                    Some(None) => self.found(rename.span(), Used::Rename),
                    _ => self.path(prefix, rename.span()),
                }
                prefix.pop();
            }
            syn::UseTree::Glob(glob) => {
                prefix.push("*".to_owned());
                self.path(prefix, glob.span());
                prefix.pop();
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(prefix, tree);
                }
            }
        }
    }

    fn leaf(&mut self, prefix: &mut Vec<String>, name: &syn::Ident) {
        prefix.push(name.to_string());
        self.path(prefix, name.span());
        prefix.pop();
    }

    /// Finds paths among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut start = Span::call_site();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.path(&path, start);
                        path.clear();
                        start = word.span();
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                other => {
                    self.path(&path, start);
                    path.clear();
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.path(&path, start);
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.visit_visibility(&item.vis);
        self.use_tree(&mut Vec::new(), &item.tree);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        if item.ident == "self" {
            self.found(item.span(), Used::Rename);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.path(&segments, path.span());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}
