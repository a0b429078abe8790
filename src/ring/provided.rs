//! Provided receive buffers: the kernel picks one when bytes arrive.
//!
//! A ring of buffer descriptors shared with the kernel (IORING_REGISTER_PBUF_RING, Linux 5.19).
//! The memory is ours, not the kernel's mapping (IOU_PBUF_RING_MMAP had a use-after-free,
//! CVE-2024-0582).
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::arena::Mapping;

/// The group id under which a ring's only set of buffers is registered.
pub(super) const GROUP: u16 = 0;

/// The buffers of one ring.
#[derive(Clone, Debug)]
pub(crate) struct Provided(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    /// `entries` descriptors of 16 bytes; the kernel reads them.
    descriptors: Mapping,
    /// `entries` buffers of `buffer_bytes` bytes; the kernel writes to those in the ring.
    buffers: Mapping,
    buffer_bytes: u32,
    /// Power of two.
    entries: u16,
    /// Ours; the kernel sees it through the tail of the descriptor ring.
    tail: Cell<u16>,
    /// Buffers that are in the kernel's hands.
    available: Cell<u16>,
}

impl Provided {
    /// `entries` is a power of two, at most 32768.
    pub(crate) fn new(entries: u16, buffer_bytes: u32) -> nix::Result<Provided> {
        assert!(entries.is_power_of_two() && buffer_bytes > 0);
        let count = usize::from(entries);
        let size = |bytes| NonZeroUsize::new(bytes).expect("entries and bytes are at least one");
        let shared = Shared {
            descriptors: Mapping::new(size(count * size_of::<BufRingEntry>()))?,
            buffers: Mapping::new(size(count * buffer_bytes as usize))?,
            buffer_bytes,
            entries,
            tail: Cell::new(0),
            available: Cell::new(0),
        };
        for id in 0..entries {
            shared.give(id);
        }
        Ok(Provided(Rc::new(shared)))
    }

    /// Address of the descriptors, for registration.
    pub(super) fn descriptors_address(&self) -> u64 {
        self.0.descriptors.start().as_ptr() as u64
    }

    pub(super) fn entries(&self) -> u16 {
        self.0.entries
    }

    /// Whether the kernel has a buffer left.
    pub(crate) fn has_available(&self) -> bool {
        self.0.available.get() > 0
    }

    /// Takes the buffer which a completion names; `None` for a number that the kernel cannot mean.
    pub(super) fn take(&self, id: u16, bytes: usize, more_waits: bool) -> Option<RecvBuf> {
        if id >= self.0.entries || bytes > self.0.buffer_bytes as usize {
            return None;
        }
        self.0.available.set(self.0.available.get() - 1);
        Some(RecvBuf { pool: Rc::clone(&self.0), id, more_waits, bytes: bytes as u32 })
    }
}

/// What a test needs that plays the kernel.
#[cfg(test)]
impl Provided {
    /// How many buffers the kernel has.
    pub(crate) fn available(&self) -> u16 {
        self.0.available.get()
    }

    /// Receives `bytes`, as the kernel does: into the buffer that has waited longest.
    pub(crate) fn receive(&self, bytes: &[u8], more_waits: bool) -> Option<RecvBuf> {
        assert!(bytes.len() <= self.0.buffer_bytes as usize);
        let available = self.0.available.get();
        if available == 0 {
            return None;
        }
        let head = self.0.tail.get().wrapping_sub(available);
        let place = usize::from(head & (self.0.entries - 1));
        let descriptors = self.0.descriptors.start().as_ptr().cast::<BufRingEntry>();
        // SAFETY: `place < entries`, and `give` has written the descriptors from the head to the tail.
        let id = unsafe { &*descriptors.add(place) }.bid();
        // SAFETY: the buffer has at least so many bytes, and as it is in the ring nobody else looks at
        // it: there is no kernel, and a `RecvBuf` of it is only made below.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.buffer(id), bytes.len());
        }
        self.take(id, bytes.len(), more_waits)
    }
}

impl Shared {
    fn buffer(&self, id: u16) -> *mut u8 {
        debug_assert!(id < self.entries);
        // SAFETY: `id < entries` keeps the offset inside the mapping.
        unsafe { self.buffers.start().as_ptr().add(usize::from(id) * self.buffer_bytes as usize) }
    }

    /// Hands buffer `id` to the kernel. Each id is either in the ring or in one [`RecvBuf`].
    fn give(&self, id: u16) {
        let tail = self.tail.get();
        let place = usize::from(tail & (self.entries - 1));
        let base = self.descriptors.start().as_ptr().cast::<BufRingEntry>();
        // SAFETY: `place < entries` descriptors fit into the mapping, which is page-aligned and
        // zeroed. The kernel does not read this descriptor before the tail passes it: at most
        // `entries` buffers exist, so the place before the tail's wrap is free.
        unsafe {
            let descriptor = &mut *base.add(place);
            descriptor.set_addr(self.buffer(id) as u64);
            descriptor.set_len(self.buffer_bytes);
            descriptor.set_bid(id);
        }
        self.tail.set(tail.wrapping_add(1));
        // SAFETY: the tail lies in the first descriptor's reserved field (uapi), inside the
        // mapping and aligned; only this thread writes it, the kernel reads it.
        let shared_tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(base).cast_mut()) };
        shared_tail.store(tail.wrapping_add(1), Ordering::Release);
        self.available.set(self.available.get() + 1);
    }
}

/// Received bytes in a provided buffer, which goes back to the kernel on drop. They may be changed
/// where they lie: records are decrypted so.
///
/// Buffers are shared by all connections of a ring: hold one no longer than the turn.
#[derive(Debug)]
pub struct RecvBuf {
    pool: Rc<Shared>,
    id: u16,
    more_waits: bool,
    bytes: u32,
}

impl RecvBuf {
    /// Whether the socket held more bytes than these.
    pub fn more_waits(&self) -> bool {
        self.more_waits
    }
}

impl Deref for RecvBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the id is in this value alone, so the kernel does not write to the buffer;
        // `bytes <= buffer_bytes` was checked in `take`, and the mapping lives as long as `pool`.
        unsafe { std::slice::from_raw_parts(self.pool.buffer(self.id), self.bytes as usize) }
    }
}

impl DerefMut for RecvBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; and the id is in this value alone, so there is no other reference to
        // these bytes while it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pool.buffer(self.id), self.bytes as usize) }
    }
}

impl Drop for RecvBuf {
    fn drop(&mut self) {
        self.pool.give(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_with_us_or_with_the_kernel() {
        let provided = Provided::new(2, 64).unwrap();
        let first = provided.take(0, 64, false).unwrap();
        assert!(provided.has_available());
        let second = provided.take(1, 10, false).unwrap();
        assert!(!provided.has_available());
        assert_eq!((first.len(), second.len()), (64, 10));
        drop(first);
        assert!(provided.has_available());
    }

    #[test]
    fn a_buffer_that_cannot_be_is_refused() {
        let provided = Provided::new(2, 64).unwrap();
        assert!(provided.take(2, 1, false).is_none());
        assert!(provided.take(0, 65, false).is_none());
    }
}
