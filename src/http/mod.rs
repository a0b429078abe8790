//! HTTP/1.1, pure: no descriptor, no clock, no thread, no log.
