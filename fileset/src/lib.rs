//! The SPECweb99-style file set: not built yet.
