//! Chunked bodies: see [`onering_fuzz::chunked`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::chunked::check(bytes));
