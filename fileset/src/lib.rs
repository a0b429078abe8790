//! The SPECweb99-style workload: its file set, the laws by which it is requested, and its dynamic
//! side. Built from published facts alone; results are not comparable with SPEC's.
//!
//! | module | is | does I/O |
//! |---|---|---|
//! | [`name`] | classes, sizes, `file_set/dir00012/class1_4` | no |
//! | [`plan`] | how many directories, files and bytes for a load | no |
//! | [`random`] | the generator that everything here is drawn from | no |
//! | [`laws`] | popularity, request mix, connections: drawn, and computed exactly | no |
//! | [`content`] | what is in each file, and the ad tags in it | no |
//! | [`dynamic`] | users, ads, their rotation, cookies, pages, the POST log | no |
//! | [`store`] | the file set on a disk: generated, resumed, verified | yes |
//!
//! A leaf: it uses no other crate of this project. The server's handlers, the CGI program, the load
//! generator and the verifier share these semantics, so that each can recompute what another did.

pub mod content;
pub mod dynamic;
pub mod laws;
pub mod name;
pub mod plan;
pub mod random;
pub mod store;
