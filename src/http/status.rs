//! Status codes that this server answers with (RFC 9110 §15).

/// A status code; only those that the server can answer with exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident = $code:literal $reason:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", stringify!($code), " ", $reason, "`")]
                pub const $name: Self = Self($code);
            )*

            /// The reason phrase that RFC 9110 §15 gives.
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }

            /// Each of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

statuses! {
    OK = 200 "OK";
    NO_CONTENT = 204 "No Content";
    PARTIAL_CONTENT = 206 "Partial Content";
    MOVED_PERMANENTLY = 301 "Moved Permanently";
    NOT_MODIFIED = 304 "Not Modified";
    PERMANENT_REDIRECT = 308 "Permanent Redirect";
    BAD_REQUEST = 400 "Bad Request";
    FORBIDDEN = 403 "Forbidden";
    NOT_FOUND = 404 "Not Found";
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed";
    REQUEST_TIMEOUT = 408 "Request Timeout";
    PRECONDITION_FAILED = 412 "Precondition Failed";
    CONTENT_TOO_LARGE = 413 "Content Too Large";
    URI_TOO_LONG = 414 "URI Too Long";
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable";
    EXPECTATION_FAILED = 417 "Expectation Failed";
    MISDIRECTED_REQUEST = 421 "Misdirected Request";
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large";
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error";
    NOT_IMPLEMENTED = 501 "Not Implemented";
    SERVICE_UNAVAILABLE = 503 "Service Unavailable";
    HTTP_VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported";
}

impl Status {
    /// The number: 100 to 599.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// The status with this number, if it is among them.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.iter().find(|status| status.0 == code).copied()
    }

    /// The three digits of the status line.
    pub(super) fn digits(self) -> [u8; 3] {
        let digit = |value: u16| b'0' + (value % 10) as u8;
        [digit(self.0 / 100), digit(self.0 / 10), digit(self.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn every_status_has_a_reason_and_three_digits() {
        for status in Status::ALL {
            assert!(!status.reason().is_empty(), "{status:?}");
            assert_eq!(status.digits(), status.code().to_string().as_bytes());
        }
    }
}
