//! Ranges: see [`onering_fuzz::range`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::range::check(bytes));
