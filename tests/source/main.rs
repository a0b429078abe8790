//! What the source must be: checks that read the source tree, so they run on the development
//! machine only. What the program must do is in `tests/harness`, which runs on every kernel.

mod contrib_60;
mod fuzz_20;
mod layout_00;
mod ownership_10;
mod tables_00;
