//! Request heads: see [`onering_fuzz::head`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::head::check(bytes));
