//! The only place that knows io_uring.
