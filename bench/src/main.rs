//! `onering-bench`: see the crate documentation of the library.

fn main() {}
