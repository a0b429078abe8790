//! The built `onering-bench` as a whole: real servers, real sockets, a module for each subject.

mod laws;
mod tls;
mod web99_laws;
