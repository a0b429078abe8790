//! The first bytes of a TLS connection: see [`onering_fuzz::hello`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::hello::check(bytes));
