//! The dynamic side of the workload, as pure functions: no descriptor, no clock, no thread. The
//! server's handlers, the CGI program and the load generator's verifier all decide by these.
//!
//! | request | semantics |
//! |---|---|
//! | GET with a cookie | [`RequestCookie`], [`Tables::choose`], [`Choice::replacement`], [`content::tag`](crate::content::tag), [`Choice`] as the answer's cookie |
//! | GET without, CGI | [`Page`] around the file |
//! | POST | [`Post::parse`], a [`PostRecord`] at its [offset](PostRecord::offset), [`Page`], [`PostCookie`] |
//! | GET of a command | [`Command::parse`]; [`Tables::reset`], or the log within a [`Page`] |
//!
//! What comes from the network is refused by small enums and never panics. Data files are refused by
//! line and column.

mod ads;
mod command;
mod cookie;
mod demographics;
mod page;
mod pairs;
mod post;
mod post_log;
mod record;
mod rotation;
mod users;

pub use ads::{AD_BYTES, ADS, ALWAYS_EVERY, Ad, Ads, Expiry};
pub use command::{Command, Reset};
pub use cookie::{CookieError, PostCookie, RequestCookie, USER_ID_BASE};
pub use demographics::{Demographics, GROUPS, Group};
pub use page::{Page, TITLE};
pub use pairs::PairsError;
pub use post::{PATH_MAX, Post};
pub use post_log::{POST_HEADER_BYTES, POST_RECORD_BYTES, PostLog, PostRecord};
pub use record::{Malformed, RecordError};
pub use rotation::{Choice, Tables};
pub use users::{USER_BYTES, USERS_MAX, Users};
