//! An allocator that counts what some threads ask of it. For a test program of its own, since a
//! program has one allocator.
#![allow(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's, which counts on some threads.
pub(crate) struct Counting;

thread_local! {
    /// Where this thread's allocations are counted: nowhere, until [`count_here`].
    static COUNT: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

/// Counts this thread's allocations from now on.
pub(crate) fn count_here(count: &'static AtomicU64) {
    COUNT.set(Some(count));
}

fn count() {
    // A thread that ends allocates when its locals are gone already.
    if let Ok(Some(count)) = COUNT.try_with(Cell::get) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: all of it is the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and the memory is the system allocator's.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, and the memory is the system allocator's.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}
