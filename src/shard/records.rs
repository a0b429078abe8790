//! Records in: what a TLS peer sends, opened where it lies. Records out: what is sent to it, sealed.
//!
//! Whole records are opened in the buffer in which they were received; of one that comes in pieces the
//! pieces are kept in the connection's own memory until it is whole. Whatever is made for a peer while
//! the ring is sending (an alert, an answer to its KeyUpdate) waits in [`Tls::outbound`], and is the
//! first of what is sent next: records must leave in the order in which they were sealed.

use std::rc::Rc;

use crate::http::Awaiting;
use crate::metrics::Counters;
use crate::ring::{RecvBuf, SendBuf, Token};
use crate::sys::socket::SendError;
use crate::tls::{self, Alert, Content, Fault, Opened, Session};

use super::Shard;
use super::connection::{Phase, Writing};
use super::exchange::Exchange;
use super::kernel::Kernel;
use super::transport::{Sending, Stage, Tls, Transport};

/// The type of a record with an alert.
const ALERT: u8 = Content::Alert as u8;

/// Bytes of records that may wait behind an answer under way, when the peer wants more of them. It reads
/// nothing then, and would have us keep a KeyUpdate for each of its own.
const UNSENT_BYTES_MAX: usize = 16 * 1024;

/// After how long without an answer a connection begins with small records again: TCP, too, sends but
/// little at once after a pause that is longer than its timeout (RFC 5681 §4.1), which is 1 s at first
/// (RFC 6298 §2).
const PAUSE_MS: u64 = 1000;

/// Answers that are gathered into records together.
const GATHERED: usize = 16;

/// Buffers of records kept for reuse, and the largest that is worth it.
const SPARE_RECORDS: usize = 64;
const SPARE_RECORDS_BYTES: usize = 256 * 1024;

/// What somebody is told who speaks HTTP where TLS is spoken. He cannot read an alert.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 69\r\n\
    Connection: close\r\n\
    \r\n\
    This port speaks TLS, and a plain HTTP request came: use https://...\n";

impl<K: Kernel> Shard<K> {
    /// Takes in what a TLS peer has sent. The connection may have ended when this returns.
    pub(super) fn received_records(&mut self, token: Token, mut bytes: RecvBuf) {
        let more_waits = bytes.more_waits();
        let used = match self.tls(token) {
            Some(tls) if tls.inbound.is_empty() => self.open_records(token, &mut bytes),
            _ => 0,
        };
        let rest = &bytes[used..];
        if !rest.is_empty() {
            let Some(tls) = self.tls(token) else { return };
            tls.inbound.extend_from_slice(rest);
            drop(bytes);
            if used == 0 {
                self.open_inbound(token);
            }
        }
        if let Some(tls) = self.tls(token) {
            let is_whole = tls.inbound.is_empty();
            self.connection(token).parted &= is_whole && !more_waits;
        }
        self.go_on_with_records(token);
    }

    /// Goes on where the last bytes, or the last turn, have led to. The connection may have ended when
    /// this returns.
    pub(super) fn go_on_with_records(&mut self, token: Token) {
        let connection = self.connection(token);
        if connection.phase != Phase::Open {
            return;
        }
        let is_idle = matches!(connection.writing, Writing::Idle);
        // The end of the peer's side may cut a body off.
        let has_input = !connection.input.is_empty() || connection.has_ended;
        if is_idle && has_input && !connection.transport.is_handshaking() {
            self.serve_input(token);
        } else {
            self.go_on(token);
        }
    }

    fn tls(&mut self, token: Token) -> Option<&mut Tls> {
        self.connection(token).transport.tls()
    }

    /// Opens the records that were kept, as far as they are whole.
    pub(super) fn open_inbound(&mut self, token: Token) {
        let Some(tls) = self.tls(token) else { return };
        let mut inbound = std::mem::take(&mut tls.inbound);
        let used = self.open_records(token, &mut inbound);
        inbound.drain(..used);
        if inbound.is_empty() {
            self.spare_input(inbound);
        } else if let Some(tls) = self.tls(token) {
            tls.inbound = inbound;
        }
    }

    /// Opens the whole records at the start of `bytes`, and serves what is in them; returns how many
    /// bytes they were. What is no record ends the connection.
    fn open_records(&mut self, token: Token, bytes: &mut [u8]) -> usize {
        let mut used = 0;
        loop {
            let connection = self.connection(token);
            if connection.phase != Phase::Open || !connection.transport.takes_more() {
                break;
            }
            let Some(tls) = connection.transport.tls() else { break };
            let rest = &mut bytes[used..];
            let stage = match &tls.stage {
                Stage::Handshaking { handshake, .. } => handshake.stage(),
                Stage::Open { session, .. } => session.stage(),
                Stage::Away | Stage::Failed => break,
            };
            match tls::record_bytes(rest, stage) {
                Ok(Some(record_bytes)) if record_bytes <= rest.len() => {
                    self.open_record(token, &mut rest[..record_bytes]);
                    used += record_bytes;
                }
                Ok(_) => break,
                Err(fault) => self.fail(token, fault),
            }
        }
        // Nothing more is read of a peer that has failed.
        if self.tls(token).is_some_and(|tls| matches!(tls.stage, Stage::Failed)) {
            return bytes.len();
        }
        used
    }

    fn open_record(&mut self, token: Token, record: &mut [u8]) {
        let Some(tls) = self.tls(token) else { return };
        let opened = match &mut tls.stage {
            Stage::Handshaking { handshake, .. } => {
                handshake.push(record);
                return self.handshake(token);
            }
            Stage::Open { session, .. } => session.open(record),
            Stage::Away | Stage::Failed => return,
        };
        let counters = &self.assignment.counters;
        match opened {
            Ok(Opened::Data(range)) => {
                self.mind_pause(token);
                self.take_in(token, &record[range]);
            }
            Ok(Opened::Nothing) => {}
            Ok(Opened::Closed) => {
                let connection = &mut self.connections[token.slot as usize];
                // Whatever records follow are closed as well.
                if !std::mem::replace(&mut connection.has_ended, true) {
                    counters.tls_closed_by_peer.add(1);
                    connection.http.peer_ended();
                }
            }
            Ok(Opened::Renegotiation) => {
                counters.tls_renegotiations.add(1);
                self.answer_peer(token, Session::refuse_renegotiation);
            }
            Ok(Opened::KeyUpdated { asked }) => {
                counters.tls_key_updates.add(1);
                if asked {
                    self.answer_peer(token, Session::update_keys);
                }
            }
            Err(fault) => self.fail(token, fault),
        }
    }

    /// Has records be small again when a request comes after a pause.
    fn mind_pause(&mut self, token: Token) {
        let now_ms = self.now.monotonic_ms;
        let connection = self.connection(token);
        if connection.awaiting == Awaiting::NextRequest
            && now_ms.saturating_sub(connection.since_ms) >= PAUSE_MS
            && let Some(session) = connection.transport.tls().and_then(Tls::session)
        {
            session.paused();
        }
    }

    /// Makes an answer to something that is TLS's own affair; it leaves with whatever is sent next. The
    /// kernel cannot take other keys: a connection that it seals ends with the answer under way.
    fn answer_peer(
        &mut self,
        token: Token,
        make: fn(&mut Session, &mut Vec<u8>) -> Result<(), Fault>,
    ) {
        let connection = self.connection(token);
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let Stage::Open { session, sending } = &mut tls.stage else { return };
        match sending {
            Sending::Records { .. } if tls.is_notified => {}
            Sending::Records { .. } if tls.outbound.len() > UNSENT_BYTES_MAX => {
                self.fail(token, Fault::Unproductive);
            }
            Sending::Records { .. } => {
                if let Err(fault) = make(session, &mut tls.outbound) {
                    self.fail(token, fault);
                }
            }
            Sending::Kernel { .. } => connection.http.drain(),
        }
    }

    /// Ends the connection for a fault of the peer's: the alert follows what is being sent, unless
    /// that is a body, which is cut off.
    pub(super) fn fail(&mut self, token: Token, fault: Fault) {
        self.handshake_over(token);
        let counters = &self.assignment.counters;
        count(counters, fault);
        tracing::debug!(fault = fault.name(), "TLS failed");
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        match &mut tls.stage {
            Stage::Handshaking { handshake, .. } => {
                handshake.fail(fault);
                tls.outbound.append(&mut handshake.outgoing());
            }
            Stage::Open { session, sending: Sending::Records { .. } } if !tls.is_notified => {
                session.alert(fault, &mut tls.outbound);
            }
            Stage::Open { sending: Sending::Kernel { .. }, .. } => {
                // An error means that the connection is gone, or so full that nobody reads it.
                if let Some(alert) = fault.alert() {
                    let alert = alert.to_bytes();
                    let _ = self.kernel.send_record(&connection.socket, ALERT, &alert);
                }
            }
            Stage::Open { .. } | Stage::Away | Stage::Failed => {}
        }
        if fault == Fault::PlainHttp {
            tls.outbound.clear();
            tls.outbound.extend_from_slice(PLAIN_HTTP);
        }
        tls.is_notified = true;
        tls.stage = Stage::Failed;
        connection.held = None;
        connection.input = Vec::new();
        connection.http.give_up();
        match &mut connection.writing {
            Writing::Answers { then } => *then = None,
            Writing::Body { .. } if tls.in_flight.is_some() => {
                connection.writing = Writing::Answers { then: None };
            }
            Writing::Body { .. } | Writing::Idle | Writing::Flushing => {
                connection.writing = Writing::Idle;
            }
        }
    }

    /// Sends what has been made for the peer besides answers, if nothing is being sent; says whether
    /// there was anything.
    pub(super) fn flush(&mut self, token: Token) -> bool {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return false };
        if tls.outbound.is_empty() || !matches!(connection.writing, Writing::Idle) {
            return false;
        }
        connection.writing = Writing::Answers { then: None };
        let records = std::mem::take(&mut tls.outbound);
        self.send_records(token, records);
        true
    }

    /// Seals the collected answers, and hands them to the ring.
    pub(super) fn seal_answers(&mut self, token: Token, then: Option<Exchange>) {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let mut records = records_after(&mut tls.outbound, &mut self.spare_records);
        let mut sealed = Ok(());
        if let Some(session) = tls.session() {
            for answers in self.answers.chunks(GATHERED) {
                let mut slices: [&[u8]; GATHERED] = [&[]; GATHERED];
                for (slice, answer) in slices.iter_mut().zip(answers) {
                    *slice = answer.as_slice();
                }
                let gathered = &slices[..answers.len()];
                sealed = sealed.and(session.seal(Content::ApplicationData, gathered, &mut records));
            }
            let is_last = then.is_none() && connection.http.is_over();
            if is_last {
                session.close_notify(&mut records);
                tls.is_notified = true;
            }
        }
        let bytes: usize = self.answers.iter().map(SendBuf::len).sum();
        self.answers.clear();
        connection.writing = Writing::Answers { then };
        let counters = &self.assignment.counters;
        counters.inline_sends.add(1);
        counters.bytes_sent.add(bytes as u64);
        self.send_records(token, records);
        if let Err(fault) = sealed {
            self.fail(token, fault);
        }
    }

    /// Hands records to the ring. Their memory comes back when they are sent.
    pub(super) fn send_records(&mut self, token: Token, records: Vec<u8>) {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let records = Rc::new(records);
        self.assignment.counters.tls_bytes_sealed.add(records.len() as u64);
        self.kernel.send(&connection.socket, SendBuf::Refillable(Rc::clone(&records)), token);
        if tls.session().is_some_and(|session| session.is_limit_near()) {
            connection.http.drain();
        }
        tls.in_flight = Some(records);
        connection.in_flight += 1;
    }

    /// The ring has let go of records.
    pub(super) fn records_sent(&mut self, token: Token) {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return };
        let records = tls.in_flight.take().and_then(|records| Rc::try_unwrap(records).ok());
        if let Some(mut records) = records
            && records.capacity() <= SPARE_RECORDS_BYTES
            && self.spare_records.len() < SPARE_RECORDS
        {
            records.clear();
            self.spare_records.push(records);
        }
    }

    /// Tells a TLS peer that nothing follows, unless it was told. Without that it could not tell our
    /// end from one that somebody in between has made (RFC 8446 §6.1). Says whether the ring is sending
    /// it: then the connection's end goes on when it is sent.
    pub(super) fn notify(&mut self, token: Token) -> bool {
        let connection = &mut self.connections[token.slot as usize];
        let Transport::Tls(tls) = &mut connection.transport else { return false };
        if std::mem::replace(&mut tls.is_notified, true) {
            return false;
        }
        let Stage::Open { session, sending } = &mut tls.stage else { return false };
        match sending {
            Sending::Records { .. } => session.close_notify(&mut tls.outbound),
            Sending::Kernel { .. } => {
                let alert = Alert::CLOSE_NOTIFY.to_bytes();
                match self.kernel.send_record(&connection.socket, ALERT, &alert) {
                    Ok(bytes) => self.given_to_kernel(token, bytes),
                    Err(SendError::WouldBlock | SendError::NoMemory) => tls.is_notified = false,
                    Err(_) => self.assignment.counters.tls_close_unsent.add(1),
                }
            }
        }
        self.flush(token)
    }
}

/// A buffer for records, which begins with those that wait.
pub(super) fn records_after(outbound: &mut Vec<u8>, spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    if outbound.is_empty() { spare.pop().unwrap_or_default() } else { std::mem::take(outbound) }
}

/// Counts a connection that has failed, and of which kind that was.
fn count(counters: &Counters, fault: Fault) {
    counters.tls_failed.add(1);
    let kind = match fault {
        Fault::PlainHttp => &counters.tls_plain_http,
        Fault::Ssl2Hello | Fault::NotTls => &counters.tls_not_tls,
        Fault::NoSharedVersion | Fault::NoSharedSuite | Fault::NoSharedProtocol => {
            &counters.tls_nothing_shared
        }
        Fault::NoCertificate => &counters.tls_no_certificate,
        Fault::ClientCertificateMissing
        | Fault::ClientCertificateExpired
        | Fault::ClientCertificateUnknownIssuer
        | Fault::ClientCertificateRevoked
        | Fault::ClientCertificateBad => &counters.tls_client_certificates,
        Fault::RecordOverflow | Fault::BadRecord => &counters.tls_bad_records,
        Fault::HandshakeTooLarge => &counters.tls_oversized_handshakes,
        Fault::Unproductive => &counters.tls_unproductive,
        Fault::Overloaded => &counters.tls_overloaded,
        Fault::PeerAlert(_) => &counters.tls_peer_alerts,
        Fault::LimitReached => &counters.tls_keys_used_up,
        Fault::Malformed
        | Fault::IllegalParameter
        | Fault::Unexpected
        | Fault::Closed
        | Fault::Internal => return,
    };
    kind.add(1);
}
