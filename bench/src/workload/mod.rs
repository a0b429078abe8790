//! What is asked for, and what is right: the seam between workloads and the engine.
//!
//! A [`Workload`] is the mind of a thread's users: it says what a user's next connection is for, what
//! its next request is, and whether the response was right. It knows no socket and no clock. The
//! engine has one for each of its threads, says by number which of the thread's users it speaks of,
//! and decides *when*: the load model and the line's speed are not a workload's business.
//!
//! | the engine | calls | and then |
//! |---|---|---|
//! | opens a connection of a user | [`Workload::connection`] | asks so many times at most |
//! | has done the TLS handshake, if there is one | [`Workload::secured`] | |
//! | may send | [`Workload::ask`], once or more | sends the bytes in this order |
//! | has a whole head | [`Workload::head`] | no more of this response is judged after a `Wrong` |
//! | has some of a body | [`Workload::body`], in order | as above |
//! | has the whole of a response | [`Workload::end`] | counts it, or the first `Wrong` |
//! | loses the connection before | [`Workload::lost`], for each request in flight | counts the loss |

mod file;
pub mod get;
pub mod handshake;
pub mod web96;
pub mod web99;

use crate::request::Persistence;
use crate::response::{Head, HeadMemory};
use crate::tls::Handshake;
use onering::ring::SendBuf;

/// What a user does. See the head of this file.
pub trait Workload {
    /// What is kept of a request until its response is complete.
    type Asked;

    /// The names of the classes under which requests are counted, in the order of
    /// [`Request::class`]; never empty.
    fn classes(&self) -> Vec<String>;

    /// `user` opens a connection: how many requests it is for, at least one; `u64::MAX` for no end.
    fn connection(&mut self, user: usize) -> u64;

    /// The TLS handshake of the connection just opened is done; before the first request on it.
    fn secured(&mut self, _user: usize, _handshake: Handshake) {}

    /// The next request of `user`, which says of its connection what `persistence` is.
    fn ask(&mut self, user: usize, persistence: Persistence) -> Request<Self::Asked>;

    /// Where the last head of responses of this kind is kept, since servers repeat themselves.
    fn memory(&mut self, asked: &Self::Asked) -> &mut HeadMemory;

    /// The head has come: what it says, and its bytes up to and with the empty line.
    fn head(
        &mut self,
        user: usize,
        asked: &mut Self::Asked,
        head: Head,
        bytes: &[u8],
    ) -> Result<(), Wrong>;

    /// A piece of the body has come, which begins `offset` bytes into it.
    fn body(
        &mut self,
        user: usize,
        asked: &mut Self::Asked,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), Wrong>;

    /// The response is complete, and nothing of it was wrong so far.
    fn end(&mut self, user: usize, asked: Self::Asked) -> Result<(), Wrong>;

    /// The connection was lost before the response was complete, or the response was wrong: whether
    /// the server has acted on the request is not known.
    fn lost(&mut self, user: usize, asked: Self::Asked);
}

/// A request to be sent.
#[derive(Debug)]
pub struct Request<A> {
    /// What the workload wants to be told again with the response.
    pub asked: A,
    /// Under which class it is counted: an index of [`Workload::classes`].
    pub class: usize,
    /// Head and body.
    pub bytes: SendBuf,
}

/// How a complete response differs from the right one; counted by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// Another status.
    Status,
    /// A body of another length.
    Length,
    /// The first line of a file does not name the file and its size.
    FirstLine,
    /// A validation marker of a file is another.
    Marker,
    /// The cookie that is to be set is missing, or another than the workload's own reckoning gives.
    Cookie,
    /// The page around a file, or the tag that is to be replaced in it, is another.
    Page,
}
