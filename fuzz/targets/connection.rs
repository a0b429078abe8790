//! A whole connection: see [`onering_fuzz::connection`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::connection::check(bytes));
