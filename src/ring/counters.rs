//! What a ring has done and what surprised it.

/// Counts since the ring was made. Written by its owner only; a plain copy is the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of io_uring_enter(2).
    pub enters: u64,
    /// Submissions put into the queue.
    pub sqes: u64,
    /// Completions taken from the queue.
    pub cqes: u64,
    /// Enters that met a completion queue which had overflown.
    pub cq_overflows: u64,
    /// Submissions that found the queue full and went in after an extra enter.
    pub sq_full: u64,
    /// Multishot receives that ended because no provided buffer was left.
    pub enobufs: u64,
    /// Sends for which the socket had no room, continued from where they stood.
    pub short_sends: u64,
    /// Waits for room that were ended by the peer's FIN and not by room, tried again later.
    pub room_retries: u64,
    /// Multishot accepts armed again after the kernel had ended them.
    pub rearmed_accept: u64,
    /// Multishot receives armed again after the kernel had ended them.
    pub rearmed_recv: u64,
    /// Cancellations asked for.
    pub cancels: u64,
    /// Wake-ups sent to other rings.
    pub wakes_sent: u64,
    /// Wake-ups that did not arrive: the other ring was gone, or its queue was full.
    pub wakes_failed: u64,
    /// Wake-ups received.
    pub woken: u64,
    /// Reads into registered buffers.
    pub fixed_reads: u64,
    /// Reads into buffers that could not be registered.
    pub unregistered_reads: u64,
    /// Completions for operations that are no longer known.
    pub stale_completions: u64,
    /// Descriptors that the kernel would not close.
    pub close_errors: u64,
    /// Errors outside the set that is known for their operation.
    pub unexpected_errors: u64,
}
