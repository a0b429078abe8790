//! Accepted codings: see [`onering_fuzz::negotiation`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::negotiation::check(bytes));
