//! Layer 40: RFC 9112, HTTP/1.1 on the wire. See [`conformance_40`](crate::conformance_40).

mod chunked;
mod connection;
mod content_length;
mod field_lines;
mod host;
mod incomplete;
mod limits;
mod message_format;
mod request_line;
mod request_target;
mod smuggling;
mod transfer_encoding;
