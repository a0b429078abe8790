//! Why a request is refused.

use crate::http::Status;

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident => $status:ident, $name:literal;)*) => {
        /// Why a request is refused. Every refusal is answered and ends the connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[$doc])* $variant,)*
        }

        impl Refusal {
            /// Every refusal, in the order of declaration: `ALL[r as usize] == r`.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// What the peer is told.
            pub const fn status(self) -> Status {
                match self {
                    $(Self::$variant => Status::$status,)*
                }
            }

            /// The name under which it is logged.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

refusals! {
    /// A line ends in LF without CR. RFC 9112 §2.2 lets us accept it; peers in between may not.
    BareLf => BAD_REQUEST, "bare_lf";
    /// A CR that no LF follows (RFC 9112 §2.2).
    BareCr => BAD_REQUEST, "bare_cr";
    /// A NUL anywhere in the head (RFC 9110 §5.5).
    Nul => BAD_REQUEST, "nul";
    /// A control byte in a field value (RFC 9110 §5.5).
    Control => BAD_REQUEST, "control";
    /// More empty lines before the request line than [`LEADING_LINES_MAX`](super::LEADING_LINES_MAX)
    /// (RFC 9112 §2.2 asks for one).
    EmptyLines => BAD_REQUEST, "empty_lines";
    /// The method is empty or no token (RFC 9110 §9.1).
    Method => BAD_REQUEST, "method";
    /// The request line is not three words with one space between them (RFC 9112 §3).
    RequestLine => BAD_REQUEST, "request_line";
    /// Two words: a request of HTTP/0.9, which had no head.
    SimpleRequest => BAD_REQUEST, "simple_request";
    /// The third word is no HTTP version (RFC 9112 §2.3).
    Version => BAD_REQUEST, "version";
    /// A major version of HTTP other than 1.
    VersionUnsupported => HTTP_VERSION_NOT_SUPPORTED, "version_unsupported";
    /// The request line is longer than [`HeadLimits::request_line_bytes`](super::HeadLimits).
    RequestLineTooLong => URI_TOO_LONG, "request_line_too_long";
    /// A control byte in the target, or bytes that are not UTF-8 without being percent-encoded.
    Target => BAD_REQUEST, "target";
    /// The target has no form that the method allows (RFC 9112 §3.2).
    TargetForm => BAD_REQUEST, "target_form";
    /// The target is an absolute URI of a scheme that is not HTTP's.
    TargetScheme => BAD_REQUEST, "target_scheme";
    /// The target is an absolute URI of the scheme `https`, and the connection is not secured
    /// (RFC 9110 §7.4).
    TargetUnsecured => MISDIRECTED_REQUEST, "target_unsecured";
    /// The target is an absolute URI of the scheme `http`, and the connection is secured: it was meant
    /// for another port (RFC 9110 §7.4).
    TargetSecured => MISDIRECTED_REQUEST, "target_secured";
    /// The target's authority has no host, has userinfo, or is malformed (RFC 9110 §4.2).
    TargetAuthority => BAD_REQUEST, "target_authority";
    /// The first field line begins with whitespace (RFC 9112 §2.2).
    SpaceBeforeFields => BAD_REQUEST, "space_before_fields";
    /// A later field line begins with whitespace (RFC 9112 §5.2).
    ObsFold => BAD_REQUEST, "obs_fold";
    /// Whitespace in a field name or between it and the colon (RFC 9112 §5.1).
    SpaceBeforeColon => BAD_REQUEST, "space_before_colon";
    /// A field name is empty, no token, or without colon (RFC 9112 §5).
    FieldName => BAD_REQUEST, "field_name";
    /// More field lines than [`HeadLimits::fields`](super::HeadLimits).
    TooManyFields => REQUEST_HEADER_FIELDS_TOO_LARGE, "too_many_fields";
    /// The head is longer than [`HeadLimits::head_bytes`](super::HeadLimits).
    HeadTooLong => REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_long";
    /// A request of HTTP/1.1 without `Host` (RFC 9112 §3.2).
    HostMissing => BAD_REQUEST, "host_missing";
    /// More than one `Host` line (RFC 9112 §3.2).
    HostRepeated => BAD_REQUEST, "host_repeated";
    /// `Host` is no `uri-host [ ":" port ]` (RFC 9110 §7.2).
    HostInvalid => BAD_REQUEST, "host_invalid";
    /// `Content-Length` is no decimal number of 64 bits (RFC 9110 §8.6).
    LengthInvalid => BAD_REQUEST, "length_invalid";
    /// More than one `Content-Length`, be they equal (RFC 9112 §6.3).
    LengthRepeated => BAD_REQUEST, "length_repeated";
    /// `Content-Length` beside `Transfer-Encoding`: the classic of request smuggling (RFC 9112 §6.1).
    LengthWithCoding => BAD_REQUEST, "length_with_coding";
    /// `Transfer-Encoding` in a request of HTTP/1.0 (RFC 9112 §6.1).
    CodingInHttp10 => BAD_REQUEST, "coding_in_http10";
    /// `Transfer-Encoding` is malformed, or `chunked` is not its one and last coding (RFC 9112 §6.3).
    CodingInvalid => BAD_REQUEST, "coding_invalid";
    /// A transfer coding that this server does not know (RFC 9112 §6.1).
    CodingUnknown => NOT_IMPLEMENTED, "coding_unknown";
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    Expectation => EXPECTATION_FAILED, "expectation";
    /// The body is larger than [`RequestLimits::body_bytes`](crate::http::RequestLimits).
    BodyTooLarge => CONTENT_TOO_LARGE, "body_too_large";
    /// The peer has ended its side before the end of the body (RFC 9112 §8).
    BodyCut => BAD_REQUEST, "body_cut";
    /// A chunk's size does not begin with a hexadecimal digit, or is followed by what may not
    /// follow it (RFC 9112 §7.1).
    ChunkSize => BAD_REQUEST, "chunk_size";
    /// A chunk extension breaks the grammar of RFC 9112 §7.1.1.
    ChunkExtension => BAD_REQUEST, "chunk_extension";
    /// The line of a chunk's size has a CR or LF where it may not end, or ends in only one of them.
    ChunkLineEnd => BAD_REQUEST, "chunk_line_end";
    /// No CRLF follows the data of a chunk: it is longer or shorter than its size says.
    ChunkDataEnd => BAD_REQUEST, "chunk_data_end";
    /// Sizes and extensions of chunks are out of proportion to their data: see
    /// [`FRAMING_BYTES`](crate::http::chunked::FRAMING_BYTES).
    ChunkOverhead => BAD_REQUEST, "chunk_overhead";
    /// A line of the trailer section is no field line (RFC 9112 §7.1.2), or ends otherwise than in
    /// CRLF.
    TrailerLine => BAD_REQUEST, "trailer_line";
    /// The trailer section is longer than [`HeadLimits::head_bytes`](super::HeadLimits).
    TrailerTooLong => REQUEST_HEADER_FIELDS_TOO_LARGE, "trailer_too_long";
    /// More trailer lines than [`HeadLimits::fields`](super::HeadLimits).
    TooManyTrailers => REQUEST_HEADER_FIELDS_TOO_LARGE, "too_many_trailers";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Refusal;

    #[test]
    fn names_are_fit_for_counters_and_differ() {
        let names: HashSet<_> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
        assert_eq!(names.len(), Refusal::ALL.len());
        let fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(names.iter().all(|name| name.bytes().all(fit)));
    }

    #[test]
    fn all_is_indexed_by_discriminant() {
        for (index, refusal) in Refusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, index);
        }
    }
}
