//! Dates: see [`onering_fuzz::date`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::date::check(bytes));
