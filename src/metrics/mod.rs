//! Counters, one writer per shard, merged on read.
