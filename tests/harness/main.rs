//! What the program must do. These tests need no source tree: they also run in the emulator, on
//! every kernel that we support.

#[path = "../support/mod.rs"]
mod support;

mod certificates_50;
mod changing_files_50;
mod conformance_40;
mod descriptors_60;
mod drain_60;
mod files_30;
mod fileset_50;
mod instructions_90;
mod ktls_10;
mod listening_50;
mod operations_60;
mod ownership_80;
mod policies_50;
mod protocol_40;
mod request_bodies_40;
mod rfc3986_40;
mod rfc9110_40;
mod rfc9112_40;
mod ring_10;
mod selection_40;
mod slow_peers_60;
mod steering_50;
mod symptoms_80;
mod timeouts_60;
mod tls_bytes_50;
mod tls_clients_50;
mod tls_policies_50;
mod tls_records_40;
mod tls_resumption_50;
