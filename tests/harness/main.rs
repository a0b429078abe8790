//! What the program must do. These tests need no source tree: they also run in the emulator, on
//! every kernel that we support.

#[path = "../support/mod.rs"]
mod support;

mod descriptors_60;
mod drain_60;
mod files_30;
mod operations_60;
mod protocol_40;
mod selection_40;
mod slow_peers_60;
mod symptoms_80;
mod timeouts_60;
