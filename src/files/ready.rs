//! Ready answers: a head, and maybe its body, in one buffer that is sent as it is.
//!
//! The only thing in it that ages is the date. It is overwritten by the first request of a second,
//! where nobody else holds the buffer. If a send of an earlier second does, a second buffer takes
//! over, and the two take turns from then on: in the steady state nothing is allocated, and no byte
//! changes that the kernel may still be reading.

use std::rc::Rc;

use crate::http::{ImfDate, Persistence, ResponseHead};
use crate::ring::SendBuf;

use super::Now;

/// The answers of one target: one for each thing that can be said about the connection, made when
/// first asked for.
#[derive(Debug, Default)]
pub(super) struct Ready {
    answers: [Option<Box<Answer>>; 3],
    grew: bool,
}

/// One answer in its buffer. `date_at + ImfDate::BYTES <= head_bytes <= current.len()`.
#[derive(Debug)]
struct Answer {
    current: Rc<[u8]>,
    /// What was sent in an earlier second, of the same length.
    spare: Option<Rc<[u8]>>,
    head_bytes: u32,
    date_at: u32,
    /// The second whose date `current` carries.
    unix_s: u64,
}

impl Ready {
    /// The answer for this persistence with the current date, if it was made before; only its head
    /// with `head_only`.
    #[inline]
    pub(super) fn take(
        &mut self,
        persistence: Persistence,
        head_only: bool,
        now: &Now,
    ) -> Option<SendBuf> {
        let answer = self.answers[index(persistence)].as_mut()?;
        if answer.unix_s != now.unix_s {
            self.grew |= answer.bring_up_to_date(now);
        }
        Some(answer.send(head_only))
    }

    /// Makes the answer that has this head, and the body that an earlier answer carries, or `body`
    /// if there is none yet. Only its head is sent now with `head_only`. `scratch` is emptied and
    /// used.
    pub(super) fn make(
        &mut self,
        head: &ResponseHead<'_>,
        body: &[u8],
        head_only: bool,
        now: &Now,
        scratch: &mut Vec<u8>,
    ) -> SendBuf {
        scratch.clear();
        let date_at = head.write(&now.date, scratch) as u32;
        let head_bytes = scratch.len() as u32;
        scratch.extend_from_slice(self.body().unwrap_or(body));
        let answer = self.answers[index(head.persistence)].insert(Box::new(Answer {
            current: scratch.as_slice().into(),
            spare: None,
            head_bytes,
            date_at,
            unix_s: now.unix_s,
        }));
        self.grew = true;
        answer.send(head_only)
    }

    /// The body that every answer carries, if there is one yet.
    pub(super) fn body(&self) -> Option<&[u8]> {
        self.answers.iter().flatten().next().map(|answer| answer.body())
    }

    /// Whether more memory is held than when this was last asked.
    #[inline]
    pub(super) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.grew)
    }

    /// Bytes of all buffers.
    pub(super) fn bytes(&self) -> usize {
        let buffers = |answer: &Answer| 1 + usize::from(answer.spare.is_some());
        self.answers.iter().flatten().map(|answer| buffers(answer) * answer.current.len()).sum()
    }
}

impl Answer {
    /// Shares the buffer with a sender.
    #[inline]
    fn send(&self, head_only: bool) -> SendBuf {
        let end = if head_only { self.head_bytes } else { self.current.len() as u32 };
        SendBuf::Shared(Rc::clone(&self.current), 0..end)
    }

    fn body(&self) -> &[u8] {
        &self.current[self.head_bytes as usize..]
    }

    /// Puts the current date into a buffer that nobody else holds. True if there are two buffers now
    /// where there was one.
    #[cold]
    fn bring_up_to_date(&mut self, now: &Now) -> bool {
        self.unix_s = now.unix_s;
        if patch(&mut self.current, self.date_at, &now.date) {
            return false;
        }
        let grew = self.spare.is_none();
        let mut next = match self.spare.take() {
            Some(spare) => spare,
            None => Rc::from(&*self.current),
        };
        if !patch(&mut next, self.date_at, &now.date) {
            // Somebody has been sending for longer than a second from this one as well: it is left
            // to them.
            next = Rc::from(&*self.current);
            patch(&mut next, self.date_at, &now.date);
        }
        self.spare = Some(std::mem::replace(&mut self.current, next));
        grew
    }
}

/// Overwrites the date, unless somebody else holds the buffer.
fn patch(buffer: &mut Rc<[u8]>, date_at: u32, date: &ImfDate) -> bool {
    let Some(bytes) = Rc::get_mut(buffer) else {
        return false;
    };
    bytes[date_at as usize..][..ImfDate::BYTES].copy_from_slice(date.as_bytes());
    true
}

fn index(persistence: Persistence) -> usize {
    match persistence {
        Persistence::KeepAlive => 0,
        Persistence::KeepAliveExplicit => 1,
        Persistence::Close => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Status;

    const HEAD: ResponseHead<'static> = ResponseHead {
        content_type: Some("text/plain"),
        content_length: Some(4),
        ..ResponseHead::new(Status::OK, Persistence::KeepAlive)
    };

    fn at(unix_s: u64) -> Now {
        Now::new(unix_s, 0)
    }

    fn made(body: &[u8]) -> Ready {
        let mut ready = Ready::default();
        ready.make(&HEAD, body, false, &at(100), &mut Vec::new());
        assert!(ready.has_grown() && !ready.has_grown());
        ready
    }

    fn take(ready: &mut Ready, unix_s: u64) -> SendBuf {
        ready.take(Persistence::KeepAlive, false, &at(unix_s)).expect("made before")
    }

    fn expected(unix_s: i64, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        HEAD.write(&ImfDate::from_unix_s(unix_s), &mut bytes);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn carries_head_and_body_or_the_head_alone() {
        let mut ready = made(b"body");
        assert_eq!(take(&mut ready, 100).as_slice(), expected(100, b"body"));
        let head = ready.take(Persistence::KeepAlive, true, &at(100)).unwrap();
        assert_eq!(head.as_slice(), expected(100, b""));
    }

    #[test]
    fn the_date_is_that_of_the_second_asked_in() {
        let mut ready = made(b"body");
        for unix_s in [100, 101, 101, 150, 149] {
            assert_eq!(take(&mut ready, unix_s).as_slice(), expected(unix_s as i64, b"body"));
            assert!(!ready.has_grown());
        }
    }

    #[test]
    fn two_buffers_take_turns_while_sends_are_in_flight() {
        let mut ready = made(b"body");
        let mut in_flight = take(&mut ready, 100);
        let mut addresses = vec![in_flight.as_slice().as_ptr()];
        for unix_s in 101..110 {
            let next = take(&mut ready, unix_s);
            assert_eq!(ready.has_grown(), unix_s == 101, "only the second buffer is new");
            assert_eq!(in_flight.as_slice(), expected(unix_s as i64 - 1, b"body"), "untouched");
            in_flight = next;
            addresses.push(in_flight.as_slice().as_ptr());
        }
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 2);
        assert_eq!(ready.bytes(), 2 * expected(0, b"body").len());
    }

    #[test]
    fn a_send_that_lasts_seconds_keeps_its_bytes() {
        let mut ready = made(b"body");
        let sends: Vec<_> = (100..105).map(|unix_s| take(&mut ready, unix_s)).collect();
        for (unix_s, send) in (100..).zip(&sends) {
            assert_eq!(send.as_slice(), expected(unix_s, b"body"));
        }
        assert_eq!(ready.bytes(), 2 * expected(0, b"body").len(), "the others are the senders'");
    }

    #[test]
    fn each_persistence_has_an_answer_of_its_own_with_the_same_body() {
        let mut ready = made(b"body");
        assert!(ready.take(Persistence::Close, false, &at(100)).is_none());
        let head = ResponseHead { persistence: Persistence::Close, ..HEAD };
        let taken = ready.make(&head, b"", false, &at(100), &mut Vec::new());
        let text = String::from_utf8(taken.as_slice().to_vec()).unwrap();
        assert!(text.contains("Connection: close\r\n") && text.ends_with("\r\n\r\nbody"), "{text}");
        assert!(ready.take(Persistence::Close, false, &at(100)).is_some());
        assert_eq!(take(&mut ready, 100).as_slice(), expected(100, b"body"));
    }
}
