//! The laws by which the file set is requested: each can be drawn from, and each share that it
//! promises can be computed exactly, so that what was drawn can be judged.
//!
//! Draws are made from a [`Random`](crate::random::Random) of the caller's: no clock, no I/O.

mod connections;
mod draws;
mod mix;
mod popularity;
mod zipf;

#[cfg(test)]
mod tests;

pub use connections::{
    CONNECTIONS_PER_REQUEST, KEPT_CONNECTION_SHARE, KEPT_REQUEST_SHARE, KEPT_REQUESTS,
    requests_on_connection,
};
pub use draws::{DECK, Draws};
pub use mix::RequestKind;
pub use popularity::{CLASS_PER_DECK, FILE_ORDER, Popularity, mean_body_bytes};
pub use zipf::Zipf;
