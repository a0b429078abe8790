//! Conditional requests: see [`onering_fuzz::conditional`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::conditional::check(bytes));
