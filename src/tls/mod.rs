//! TLS: what a shard needs to speak it, without a descriptor, a clock, a thread or a log.

pub mod cache;
pub mod clock;
pub mod context_id;
pub mod secret;
pub mod tickets;
