//! What a ring has done and what surprised it.

/// Gives the list of a ring's counters to the macro `$callback`, after what that is given besides. It is
/// the only list: the struct here and the metrics are made from it.
macro_rules! ring_counters {
    ($callback:ident { $($before:tt)* }) => {
        $callback! {
            $($before)*
            @ring
            /// Calls of io_uring_enter(2).
            enters,
            /// Submissions put into the queue.
            sqes,
            /// Completions taken from the queue.
            cqes,
            /// Enters that met a completion queue which had overflown.
            cq_overflows,
            /// Submissions that found the queue full and went in after an extra enter.
            sq_full,
            /// Multishot receives that ended because no provided buffer was left.
            enobufs,
            /// Sends for which the socket had no room, continued from where they stood.
            short_sends,
            /// Waits for room that were ended by the peer's FIN and not by room, tried again later.
            room_retries,
            /// Multishot accepts armed again after the kernel had ended them.
            rearmed_accept,
            /// Multishot receives armed again after the kernel had ended them.
            rearmed_recv,
            /// Cancellations asked for.
            cancels,
            /// Wake-ups sent to other rings.
            wakes_sent,
            /// Wake-ups that did not arrive: the other ring was gone, or its queue was full.
            wakes_failed,
            /// Wake-ups received.
            woken,
            /// Reads into registered buffers.
            fixed_reads,
            /// Reads into buffers that could not be registered.
            unregistered_reads,
            /// Completions for operations that are no longer known.
            stale_completions,
            /// Descriptors that the kernel would not close.
            close_errors,
            /// Errors outside the set that is known for their operation.
            unexpected_errors,
        }
    };
}

pub(crate) use ring_counters;

macro_rules! counters {
    (@ring $($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Counts since the ring was made. Written by its owner only; a plain copy is the snapshot.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }
    };
}

ring_counters!(counters {});
