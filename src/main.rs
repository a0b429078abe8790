//! The `onering` program: parse, dispatch, print the error, exit code.

fn main() {}
