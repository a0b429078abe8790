//! HTTP/1.1, pure: bytes in, decisions out. No descriptor, no clock, no thread, no log.
//!
//! | file | story |
//! |---|---|
//! | [`head`] | a request head is read, strictly, in place and without allocation |
//! | [`target`] | a request target becomes a path beneath the document root |
//! | [`request_body`], [`chunked`] | a request body is taken, a piece at a time |
//! | [`connection`] | the HTTP/1 state machine: whose turn it is and when the connection ends |
//! | [`conditional`] | whether the client has, or wants, what there is |
//! | [`range`], [`multipart`] | which parts of it are sent, and how several are |
//! | [`negotiation`] | which coding of it is sent |
//! | [`response`] | a response head is written |
//! | [`body`] | a response body is pulled |
//! | [`date`], [`status`] | the vocabulary of both |
//! | [`conformance`] | each rule of the RFCs, what is done with it, and the test that shows it |
//!
//! Strictness is a policy: whatever two servers could read differently is refused (RFC 9112 §11.2).
//! A refusal names its cause ([`Refusal`]), maps to a status, and ends the connection, because
//! nothing after a message that we do not understand can be trusted to be where we look for it.

pub mod body;
pub mod chunked;
pub mod conditional;
pub mod conformance;
pub mod connection;
pub mod date;
pub mod head;
pub mod multipart;
pub mod negotiation;
pub mod range;
pub mod request_body;
pub mod response;
pub mod status;
pub mod target;

pub use body::{Body, Pull};
pub use connection::{Awaiting, Connection, RequestLimits, Take};
pub use date::ImfDate;
pub use head::{
    Field, FieldLines, HeadLimits, Method, Persistence, Refusal, RequestBody, RequestHead, Scheme,
    Version,
};
pub use negotiation::{Coding, Codings};
pub use range::{ByteRange, ContentRange};
pub use request_body::BodyPiece;
pub use response::ResponseHead;
pub use status::Status;
pub use target::TargetError;
