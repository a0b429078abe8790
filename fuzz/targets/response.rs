//! Response heads: see [`onering_fuzz::response`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::response::check(bytes));
