//! Listeners, shards, signals, drain.
