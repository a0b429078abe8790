//! Request targets: see [`onering_fuzz::target`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onering_fuzz::target::check(bytes));
