//! System calls other than io_uring's, behind safe wrappers.
//!
//! Nothing here knows a configuration, a request or a ring. A wrapper makes one system call (or the
//! few that its doc names), translates `errno` into an error that says what the caller can do, and
//! counts what it called: [`calls`] and the ring's own count of enters together are the "system
//! calls per request" that the project states. Calls that the standard library makes for us (reading
//! `/proc` at start) are not counted: none of them is on a request's path.

use std::cell::Cell;

pub mod affinity;
pub mod clock;
pub mod directory;
pub mod environment;
pub mod file;
pub mod holder;
pub mod ktls;
pub mod limits;
mod owned_links;
pub mod signal;
pub mod socket;
pub mod steering;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// System calls that this thread has made through this module. Only ever grows.
pub fn calls() -> u64 {
    CALLS.get()
}

/// Counts one system call of this thread.
fn count_call() {
    CALLS.set(CALLS.get() + 1);
}
