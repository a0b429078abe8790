//! TLS as a network: a client of connections does not see that their bytes are encrypted.
//!
//! | a connection is | what happens | then |
//! |---|---|---|
//! | connecting | TCP stands | the first flight is sent |
//! | in its handshake | flights come | are answered; at the last, the connection is said to stand |
//! | open | records come | their plaintext is handed on |
//! | open | the server says that it closes | so does this side, and the end is handed on |
//! | any of them | what came is no TLS, or not the server's | the server is told, and the failure is handed on |
//!
//! What is counted as received and sent is plaintext. The last words, `close_notify` or an alert, are
//! sent as clients on OpenSSL send them, though a server that has closed for good answers with a reset.

#[cfg(test)]
mod tests;

use super::network::{Event, Network, Secured};
use crate::tls::{TlsClient, TlsConnection, TlsError};
use onering::ring::{SendBuf, Token};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::ops::Deref;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A network over whose connections TLS is spoken.
pub(super) struct TlsNetwork<N: Network> {
    inner: N,
    tls: TlsClient,
    /// By the slot of their tokens.
    connections: Vec<Option<Connection<N::Socket>>>,
    /// What is to be handed on.
    ready: VecDeque<(Token, Event<Plaintext>)>,
    /// Where ciphertext is decrypted.
    scratch: Vec<u8>,
    /// What plaintext is gathered in, while none is handed on.
    spare: Rc<RefCell<Vec<u8>>>,
}

#[derive(Debug)]
struct Connection<S> {
    token: Token,
    socket: Rc<S>,
    stage: Stage,
    /// A send is with the kernel: no other may be started.
    sending: bool,
    /// The client is to be told when all is sent.
    owes_sent: bool,
    receives: Receives,
}

/// What was asked for on the network beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receives {
    Nothing,
    Once,
    Always,
}

#[derive(Debug)]
enum Stage {
    Connecting,
    /// TCP has stood `since` then.
    Handshake {
        tls: Box<TlsConnection>,
        since: Instant,
    },
    Open {
        tls: Box<TlsConnection>,
    },
    /// The last words are on their way; `then` is what is handed on after them.
    Last {
        then: Last,
    },
}

/// How a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Ended,
    Failed(TlsError),
}

impl From<Last> for Event<Plaintext> {
    fn from(last: Last) -> Self {
        match last {
            Last::Ended => Self::Ended,
            Last::Failed(error) => Self::TlsFailed(error),
        }
    }
}

/// Decrypted bytes; their buffer is used again.
#[derive(Debug)]
pub(super) struct Plaintext {
    bytes: Vec<u8>,
    home: Rc<RefCell<Vec<u8>>>,
}

impl Deref for Plaintext {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        self.home.replace(std::mem::take(&mut self.bytes));
    }
}

impl<N: Network> TlsNetwork<N> {
    pub(super) fn new(inner: N, tls: TlsClient) -> Self {
        Self {
            inner,
            tls,
            connections: Vec::new(),
            ready: VecDeque::new(),
            scratch: Vec::new(),
            spare: Rc::default(),
        }
    }

    /// The connection that `token` names, unless it was given up.
    fn connection(&mut self, token: Token) -> Option<&mut Connection<N::Socket>> {
        let connection = self.connections.get_mut(token.slot as usize)?.as_mut()?;
        (connection.token.generation == token.generation).then_some(connection)
    }

    fn happened(&mut self, token: Token, event: Event<N::Bytes>) {
        if self.connection(token).is_none() {
            // It was given up.
            return;
        }
        match event {
            Event::Connected(Ok(_)) => self.begin(token),
            Event::Connected(Err(refused)) => {
                self.ready.push_back((token, Event::Connected(Err(refused))));
            }
            Event::Received(bytes) => self.received(token, &bytes),
            Event::Sent => self.sent(token),
            Event::Ended => self.over(token, Event::Ended),
            // The network beneath speaks no TLS that could fail otherwise.
            Event::Broken | Event::TlsFailed(_) => self.over(token, Event::Broken),
        }
    }

    /// TCP stands.
    fn begin(&mut self, token: Token) {
        let since = self.inner.now();
        let tls = self.tls.connect();
        let Some(connection) = self.connection(token) else { return };
        match tls {
            Ok(tls) => {
                connection.stage = Stage::Handshake { tls: Box::new(tls), since };
                self.flush(token);
                self.receive_once(token);
            }
            Err(error) => self.ready.push_back((token, Event::TlsFailed(error))),
        }
    }

    fn received(&mut self, token: Token, ciphertext: &[u8]) {
        let mut bytes = self.spare.take();
        bytes.clear();
        let mut plaintext = Plaintext { bytes, home: Rc::clone(&self.spare) };
        let Some(connection) = &mut self.connections[token.slot as usize] else { return };
        let (Stage::Handshake { tls, .. } | Stage::Open { tls }) = &mut connection.stage else {
            return;
        };
        let received = tls.received(ciphertext, &mut self.scratch, |piece| {
            plaintext.bytes.extend_from_slice(piece);
            Ok::<_, TlsError>(())
        });
        let ended = tls.ended();
        if let Some(secured) = connection.open() {
            self.ready.push_back((token, Event::Connected(Ok(Some(secured)))));
            // The client says how it goes on.
            connection.receives = Receives::Nothing;
        }
        // Whoever asked for bytes has had none yet.
        let again = connection.receives == Receives::Once && plaintext.is_empty();
        if !plaintext.is_empty() {
            self.ready.push_back((token, Event::Received(plaintext)));
        }
        match received {
            Err(error) => self.last_words(token, Last::Failed(error)),
            Ok(()) if ended => self.last_words(token, Last::Ended),
            Ok(()) => {
                self.flush(token);
                if again {
                    self.receive_once(token);
                }
            }
        }
    }

    /// The kernel has taken all that it was given.
    fn sent(&mut self, token: Token) {
        let Some(connection) = self.connection(token) else { return };
        connection.sending = false;
        if let Stage::Last { then } = connection.stage {
            self.ready.push_back((token, then.into()));
            return;
        }
        self.flush(token);
        let Some(connection) = self.connection(token) else { return };
        if !connection.sending && std::mem::take(&mut connection.owes_sent) {
            self.ready.push_back((token, Event::Sent));
        }
    }

    /// The server has closed, or the connection broke.
    fn over(&mut self, token: Token, event: Event<Plaintext>) {
        let Some(connection) = self.connection(token) else { return };
        let event = match (&connection.stage, event) {
            // Not before the last words have gone, which they do in any case.
            (Stage::Last { .. }, Event::Ended) => return,
            (Stage::Last { then }, _) => (*then).into(),
            (Stage::Handshake { .. }, Event::Ended) => Event::TlsFailed(TlsError::CutOff),
            (_, event) => event,
        };
        self.ready.push_back((token, event));
    }

    /// Tells the server that the connection is over, then the client.
    fn last_words(&mut self, token: Token, then: Last) {
        let Some(connection) = &mut self.connections[token.slot as usize] else { return };
        let stage = std::mem::replace(&mut connection.stage, Stage::Last { then });
        let (Stage::Handshake { mut tls, .. } | Stage::Open { mut tls }) = stage else { return };
        if then == Last::Ended {
            // What fails now would have been the end in any case.
            let _ = tls.close();
        }
        match tls.outgoing().filter(|_| !connection.sending) {
            Some(words) => {
                connection.sending = true;
                self.inner.send(&connection.socket, words, token);
            }
            None => self.ready.push_back((token, then.into())),
        }
    }

    /// Sends what is to be sent, unless something is on its way already.
    fn flush(&mut self, token: Token) {
        let Some(connection) = &mut self.connections[token.slot as usize] else { return };
        let (Stage::Handshake { tls, .. } | Stage::Open { tls }) = &mut connection.stage else {
            return;
        };
        if !connection.sending
            && let Some(bytes) = tls.outgoing()
        {
            connection.sending = true;
            self.inner.send(&connection.socket, bytes, token);
        }
    }

    fn receive_once(&mut self, token: Token) {
        let Some(connection) = &mut self.connections[token.slot as usize] else { return };
        connection.receives = Receives::Once;
        self.inner.recv_once(&connection.socket, token);
    }
}

impl<S> Connection<S> {
    /// If the handshake has just been completed: what it has come to.
    fn open(&mut self) -> Option<Secured> {
        let Stage::Handshake { tls, since } = &self.stage else { return None };
        let secured = Secured { since: *since, handshake: tls.handshake()? };
        self.stage = match std::mem::replace(&mut self.stage, Stage::Connecting) {
            Stage::Handshake { tls, .. } => Stage::Open { tls },
            other => other,
        };
        Some(secured)
    }
}

impl<N: Network> Network for TlsNetwork<N> {
    type Socket = N::Socket;
    type Bytes = Plaintext;

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn enter(&mut self, at_most: Duration) -> io::Result<()> {
        self.inner.enter(at_most)
    }

    fn event(&mut self) -> Option<(Token, Event<Plaintext>)> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            let (token, event) = self.inner.event()?;
            self.happened(token, event);
        }
    }

    fn connect(&mut self, token: Token) -> io::Result<Rc<N::Socket>> {
        let socket = self.inner.connect(token)?;
        let slot = token.slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || None);
        }
        self.connections[slot] = Some(Connection {
            token,
            socket: Rc::clone(&socket),
            stage: Stage::Connecting,
            sending: false,
            owes_sent: false,
            receives: Receives::Nothing,
        });
        Ok(socket)
    }

    fn send(&mut self, _: &Rc<N::Socket>, bytes: SendBuf, token: Token) {
        let Some(connection) = self.connection(token) else { return };
        // After the last words nothing is sent; the client learns of the end at once.
        let Stage::Open { tls } = &mut connection.stage else { return };
        match tls.send(bytes.as_slice()) {
            Ok(()) => {
                connection.owes_sent = true;
                self.flush(token);
            }
            Err(error) => self.last_words(token, Last::Failed(error)),
        }
    }

    fn recv(&mut self, socket: &Rc<N::Socket>, token: Token) {
        if let Some(connection) = self.connection(token) {
            connection.receives = Receives::Always;
        }
        self.inner.recv(socket, token);
    }

    fn recv_once(&mut self, socket: &Rc<N::Socket>, token: Token) {
        if let Some(connection) = self.connection(token) {
            connection.receives = Receives::Once;
        }
        self.inner.recv_once(socket, token);
    }

    fn close(&mut self, socket: Rc<N::Socket>, token: Token) {
        // With it goes its hold on the socket: only operations may hold it when it is closed.
        self.connections[token.slot as usize] = None;
        self.inner.close(socket, token);
    }

    fn enters(&self) -> u64 {
        self.inner.enters()
    }
}
