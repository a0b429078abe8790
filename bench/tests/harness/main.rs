//! The built `onering-bench` as a whole: real servers, real sockets, a module for each subject.

mod browser;
mod compare;
mod distributed;
mod floor;
mod laws;
mod manners;
mod misbehaved;
mod reference;
mod report;
#[path = "../../src/workload/web99/responder.rs"]
mod responder;
mod tls;
mod web99_laws;
mod web99_sockets;
