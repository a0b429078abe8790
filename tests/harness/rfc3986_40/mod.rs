//! Layer 40: RFC 3986, what a target means. See [`conformance_40`](crate::conformance_40).

mod dot_segments;
mod percent_encoding;
mod query;
mod redirects;
