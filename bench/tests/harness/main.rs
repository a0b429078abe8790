//! The built `onering-bench` as a whole: real servers, real sockets, a module for each subject.

mod browser;
mod distributed;
mod floor;
mod laws;
mod manners;
mod report;
mod tls;
mod web99_laws;
