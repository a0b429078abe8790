//! The commands, a file each.
