//! onering.

pub mod sys;

pub mod config;

pub mod http;

pub mod ring;

pub mod metrics;

pub mod files;

pub mod shard;

pub mod server;

pub mod cli;
