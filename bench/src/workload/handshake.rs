//! TLS handshakes: a connection, its handshake, one request, and the close.
//!
//! Full and resumed handshakes are classes of their own. The request is part of it: a server of TLS
//! 1.3 sends its tickets with the first answer, and without one nothing could be resumed.

use super::get::{self, Get};
use super::{Request, Workload, Wrong};
use crate::request::Persistence;
use crate::response::{Head, HeadMemory};
use crate::tls::Handshake;

/// Users who connect again and again.
#[derive(Debug)]
pub struct Handshakes {
    get: Get,
    /// By user: the class of its connection's handshake.
    classes: Vec<usize>,
}

impl Handshakes {
    /// For part `part` of `parts` equal ones of the load, which has so many users. Connections are for
    /// one request, whatever `plan` says.
    pub fn new(plan: &get::Plan, part: (usize, usize), users: usize) -> Self {
        let plan = get::Plan { requests_per_connection: Some(1), pipeline: 1, ..plan.clone() };
        Self { get: Get::new(&plan, part), classes: vec![0; users] }
    }
}

impl Workload for Handshakes {
    /// The target.
    type Asked = usize;

    fn classes(&self) -> Vec<String> {
        vec!["full".to_owned(), "resumed".to_owned()]
    }

    fn connection(&mut self, user: usize) -> u64 {
        self.get.connection(user)
    }

    fn secured(&mut self, user: usize, handshake: Handshake) {
        self.classes[user] = usize::from(handshake.resumed);
    }

    fn ask(&mut self, user: usize, persistence: Persistence) -> Request<usize> {
        Request { class: self.classes[user], ..self.get.ask(user, persistence) }
    }

    fn memory(&mut self, asked: &usize) -> &mut HeadMemory {
        self.get.memory(asked)
    }

    fn head(
        &mut self,
        user: usize,
        asked: &mut usize,
        head: Head,
        bytes: &[u8],
    ) -> Result<(), Wrong> {
        self.get.head(user, asked, head, bytes)
    }

    fn body(
        &mut self,
        user: usize,
        asked: &mut usize,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), Wrong> {
        self.get.body(user, asked, offset, piece)
    }

    fn end(&mut self, user: usize, asked: usize) -> Result<(), Wrong> {
        self.get.end(user, asked)
    }

    fn lost(&mut self, user: usize, asked: usize) {
        self.get.lost(user, asked);
    }
}
