//! The SPECweb99-style workload: 70 % static requests and 30 % dynamic ones, for files drawn from
//! class decks and Zipf's law, by users who keep 70 % of their requests on kept connections.
//!
//! | file | is | knows a socket |
//! |---|---|---|
//! | `mod.rs` | the users of a thread: what each asks for next, what comes back | no |
//! | [`parameters`] | what is common to all users of a run | no |
//! | `wording.rs` | the bytes of a request | no |
//! | `page.rs` | the page around a file, however it is cut | no |
//! | [`posts`] | every POST that was sent, and the server's log held against it | no |
//! | [`control`] | the commands before and after a run | yes |
//!
//! # What is verified
//!
//! Status and Content-Length; the first line, every validation marker and every ad tag of the file;
//! the page around it, byte for byte but for the server's own name and the address that it saw; the
//! cookies, against rotation tables made from the same [`Reset`](onering_fileset::dynamic::Reset) as
//! the server's. An answer to a request for ads may be the file alone or a page around it: the
//! sources differ, and its length tells.
//!
//! # Whether an ad has expired
//!
//! is told without a clock: [`Parameters`] has the ads that a run resets to be valid for longer than
//! the run, so that exactly those expire that a reset makes expired.

pub mod control;
mod page;
pub mod parameters;
pub mod posts;
mod wording;

#[cfg(test)]
pub(crate) mod responder;
#[cfg(test)]
mod tests;

use super::file::FileCheck;
use super::{Request, Workload, Wrong};
use crate::request::Persistence;
use crate::response::{Head, HeadMemory};
use onering_fileset::dynamic::{Choice, PostCookie, RequestCookie};
use onering_fileset::laws::{Draws, RequestKind, requests_on_connection};
use onering_fileset::name::{CLASSES, Name};
use onering_fileset::random::{Purpose, Random};
use page::PageCheck;
use parameters::{Mix, Parameters};
use posts::{Ledger, Posts, Sent};
use std::sync::Arc;

/// The users of one thread. See the head of this file.
#[derive(Debug)]
pub struct Web99 {
    parameters: Arc<Parameters>,
    /// The number of the first of them among all users of the run.
    first: u32,
    users: Vec<User>,
    posts: Posts,
    /// Where the POSTs go when the thread's users are gone.
    ledger: Ledger,
    memory: HeadMemory,
}

/// One user: it has one connection at a time.
#[derive(Debug)]
struct User {
    draws: Draws,
    random: Random,
    /// What it was shown last, as its cookie says.
    last_ad: i32,
}

/// A request whose response is awaited, and what of it has come.
#[derive(Debug)]
pub struct Asked {
    name: Name,
    kind: RequestKind,
    answer: Answer,
    file: FileCheck,
    /// Once the head has told that there is one.
    page: Option<PageCheck>,
}

/// What belongs to the response besides the file.
#[derive(Clone, Copy, Debug)]
enum Answer {
    File,
    Ad(Choice),
    Page,
    Posted(Sent),
}

impl Asked {
    /// The file that was asked for.
    pub fn name(&self) -> Name {
        self.name
    }

    /// How it was asked for.
    pub fn kind(&self) -> RequestKind {
        self.kind
    }
}

impl Web99 {
    /// So many users from number `first` on, of which no other thread and no other generator has any.
    pub fn new(parameters: &Arc<Parameters>, ledger: &Ledger, first: u32, users: usize) -> Self {
        let user = |number: u32| {
            let stream = u64::from(number);
            let mut random = Random::new(parameters.seed(), Purpose::Requests, stream);
            User {
                draws: Draws::new(Arc::clone(parameters.popularity()), parameters.seed(), stream),
                last_ad: parameters.first_ad(&mut random),
                random,
            }
        };
        Self {
            parameters: Arc::clone(parameters),
            first,
            users: (first..).take(users).map(user).collect(),
            posts: Posts::default(),
            ledger: ledger.clone(),
            memory: HeadMemory::default(),
        }
    }

    fn number(&self, user: usize) -> u32 {
        self.first + user as u32
    }
}

impl Drop for Web99 {
    fn drop(&mut self) {
        self.ledger.add(std::mem::take(&mut self.posts));
    }
}

impl Workload for Web99 {
    type Asked = Asked;

    fn classes(&self) -> Vec<String> {
        let dynamic = ["custom ad", "dynamic", "post", "cgi"];
        let dynamic = dynamic.iter().filter(|_| self.parameters.mix() == Mix::Full);
        let files = (0..CLASSES).map(|class| format!("static {class}"));
        files.chain(dynamic.map(|&name| name.to_owned())).collect()
    }

    fn connection(&mut self, user: usize) -> u64 {
        requests_on_connection(&mut self.users[user].random).into()
    }

    fn ask(&mut self, user: usize, persistence: Persistence) -> Request<Asked> {
        let number = self.number(user);
        let parameters = &*self.parameters;
        let User { draws, random, last_ad } = &mut self.users[user];
        let name = draws.draw();
        let kind = match parameters.mix() {
            Mix::Full => RequestKind::draw(random),
            Mix::Static => RequestKind::Static,
        };
        let cookie = RequestCookie { user_id: parameters.user_id(number), last_ad: *last_ad };
        let bytes = wording::request(parameters, persistence, kind, name, number, cookie);
        let (class, answer, shown) = match kind {
            RequestKind::Static => (usize::from(name.class()), Answer::File, name),
            RequestKind::CustomAd => {
                let choice = parameters.choose(cookie);
                (4, Answer::Ad(choice), choice.replacement(name).unwrap_or(name))
            }
            RequestKind::Dynamic => (5, Answer::Page, name),
            RequestKind::Post => (6, Answer::Posted(self.posts.sent(number, name)), name),
            RequestKind::Cgi => (7, Answer::Page, name),
        };
        let file = FileCheck::new(name, shown);
        Request { asked: Asked { name, kind, answer, file, page: None }, class, bytes }
    }

    fn memory(&mut self, _: &Asked) -> &mut HeadMemory {
        &mut self.memory
    }

    fn head(
        &mut self,
        user: usize,
        asked: &mut Asked,
        head: Head,
        bytes: &[u8],
    ) -> Result<(), Wrong> {
        if head.status != 200 {
            return Err(Wrong::Status);
        }
        let user_id = self.parameters.user_id(self.number(user));
        let cookies = match asked.answer {
            Answer::Ad(choice) => set_cookie(bytes, |value| Choice::parse(value) == Ok(choice)),
            Answer::Posted(_) => {
                set_cookie(bytes, |value| PostCookie::parse(value) == Ok(PostCookie { user_id }))
            }
            Answer::File | Answer::Page => true,
        };
        if !cookies {
            return Err(Wrong::Cookie);
        }
        let alone = head.body_bytes == u64::from(asked.name.size());
        match asked.answer {
            Answer::Ad(_) if alone => Ok(()),
            Answer::File if alone => Ok(()),
            Answer::File => Err(Wrong::Length),
            Answer::Ad(_) | Answer::Page | Answer::Posted(_) => {
                asked.page = Some(PageCheck::new(head.body_bytes));
                Ok(())
            }
        }
    }

    fn body(
        &mut self,
        _: usize,
        asked: &mut Asked,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), Wrong> {
        let Asked { name, kind, file, page, .. } = asked;
        match page {
            None => file.piece(offset as usize, piece),
            Some(page) => {
                let expected = self.parameters.page(*kind, *name);
                page.piece(offset as usize, piece, &expected, file)
            }
        }
    }

    fn end(&mut self, user: usize, asked: Asked) -> Result<(), Wrong> {
        asked.page.as_ref().map_or(Ok(()), PageCheck::end)?;
        asked.file.end()?;
        match asked.answer {
            Answer::Ad(choice) => self.users[user].last_ad = choice.ad.map_or(-1, i32::from),
            Answer::Posted(sent) => self.posts.answered(sent),
            Answer::File | Answer::Page => {}
        }
        Ok(())
    }

    /// What was sent and not answered rightly may have been recorded or not: so it stands already.
    fn lost(&mut self, _: usize, _: Asked) {}
}

/// Whether the head has one Set-Cookie field whose value is right.
fn set_cookie(head: &[u8], is_right: impl Fn(&[u8]) -> bool) -> bool {
    let lines = head.split(|&byte| byte == b'\n');
    let mut values = lines.filter_map(|line| {
        let at = memchr::memchr(b':', line)?;
        let (name, value) = line.split_at(at);
        name.eq_ignore_ascii_case(b"set-cookie").then(|| value[1..].trim_ascii())
    });
    values.any(is_right)
}
