//! Buffers for file reads, registered with the kernel where it allows that.
//!
//! Registering pins the memory once instead of for each read; it is charged to RLIMIT_MEMLOCK.
//! Where the limit refuses, the same buffers work unregistered.
#![allow(unsafe_code, reason = "hands out disjoint parts of one mapping")]

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A page-aligned anonymous mapping, unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: NonZeroUsize,
}

impl Mapping {
    pub(super) fn new(bytes: NonZeroUsize) -> nix::Result<Mapping> {
        // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice touches
        // no memory that anybody holds.
        let start = unsafe {
            mmap_anonymous(
                None,
                bytes,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_PRIVATE,
            )
        }?;
        Ok(Mapping { start: start.cast(), bytes })
    }

    /// Start of the mapping; `bytes()` bytes from here on are readable and writable.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone and its owner is going away. An error would leave it
        // mapped, which harms nobody.
        let _ = unsafe { munmap(self.start.cast(), self.bytes.get()) };
    }
}

/// A fixed number of buffers of one size.
#[derive(Clone, Debug)]
pub struct Arena(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    mapping: Mapping,
    buffer_bytes: usize,
    buffers: u16,
    /// Indices of buffers that nobody holds; each index is either here or in one lease.
    free: RefCell<Vec<u16>>,
}

impl Arena {
    /// ENOMEM where there cannot be as much memory as that.
    pub(crate) fn new(buffers: u16, buffer_bytes: usize) -> nix::Result<Arena> {
        // A product that wrapped around would be a mapping smaller than its buffers.
        let bytes = usize::from(buffers.max(1))
            .checked_mul(buffer_bytes.max(1))
            .and_then(NonZeroUsize::new)
            .ok_or(Errno::ENOMEM)?;
        Ok(Arena(Rc::new(Shared {
            mapping: Mapping::new(bytes)?,
            buffer_bytes,
            buffers,
            free: RefCell::new((0..buffers).rev().collect()),
        })))
    }

    /// Takes a buffer; `None` while all are taken.
    pub fn lease(&self) -> Option<Lease> {
        let index = self.0.free.borrow_mut().pop()?;
        Some(Lease { arena: Rc::clone(&self.0), index })
    }

    /// Bytes of one buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.0.buffer_bytes
    }

    /// The buffers as the kernel wants them for registration.
    pub(super) fn vectors(&self) -> Vec<libc::iovec> {
        (0..self.0.buffers)
            .map(|index| libc::iovec {
                iov_base: self.0.buffer(index).as_ptr().cast(),
                iov_len: self.0.buffer_bytes,
            })
            .collect()
    }
}

impl Shared {
    fn buffer(&self, index: u16) -> NonNull<u8> {
        debug_assert!(index < self.buffers);
        // SAFETY: `index < buffers`, so the offset stays inside the mapping of
        // `buffers * buffer_bytes` bytes.
        unsafe { self.mapping.start().add(usize::from(index) * self.buffer_bytes) }
    }
}

/// A buffer of an [`Arena`], given back on drop.
#[derive(Debug)]
pub struct Lease {
    arena: Rc<Shared>,
    index: u16,
}

impl Lease {
    /// The number under which the buffer is registered.
    pub(super) fn index(&self) -> u16 {
        self.index
    }
}

impl Deref for Lease {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the index is in this lease alone, so no other slice of these bytes exists; the
        // mapping lives as long as `arena`, is initialised (zero pages at first) and the kernel
        // writes to it only while the lease lies in the operation table.
        unsafe {
            std::slice::from_raw_parts(
                self.arena.buffer(self.index).as_ptr(),
                self.arena.buffer_bytes,
            )
        }
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes other slices through this lease.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.arena.buffer(self.index).as_ptr(),
                self.arena.buffer_bytes,
            )
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.arena.free.borrow_mut().push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_disjoint_and_come_back() {
        let arena = Arena::new(2, 4096).unwrap();
        let mut first = arena.lease().unwrap();
        let mut second = arena.lease().unwrap();
        assert!(arena.lease().is_none());
        first.fill(1);
        second.fill(2);
        assert!(first.iter().all(|&byte| byte == 1));
        assert!(second.iter().all(|&byte| byte == 2));
        drop(first);
        assert_eq!(arena.lease().unwrap().len(), 4096);
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        for buffer_bytes in [usize::MAX, usize::MAX / 4 + 1025] {
            assert_eq!(Arena::new(4, buffer_bytes).err(), Some(Errno::ENOMEM));
        }
    }

    #[test]
    fn a_lease_outlives_its_arena() {
        let arena = Arena::new(1, 64).unwrap();
        let mut lease = arena.lease().unwrap();
        drop(arena);
        lease[63] = 7;
        assert_eq!(lease[63], 7);
    }
}
