//! What the program must do. These tests need no source tree: they also run in the emulator, on
//! every kernel that we support.

#[path = "../support/mod.rs"]
mod support;

mod files_30;
mod operations_60;
