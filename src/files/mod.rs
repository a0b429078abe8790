//! The file cache: request target to entry, entry to strategy.

pub mod cache;
