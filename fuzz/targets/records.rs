//! A TLS session: see [`onering_fuzz::records`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::records::check(bytes));
