//! Listeners, shards, signals, drain.

mod listeners;

pub use listeners::{BindError, Registry, Steering};
