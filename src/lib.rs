//! onering: a Linux web server with one thread, one NIC queue and one io_uring per CPU.
//!
//! Nothing on the warm request path is shared, locked or allocated. This page is the architecture;
//! each module's own page goes on from here.
//!
//! # The modules, in layers
//!
//! A module uses only those above it; besides, [`config`] and [`http`] use nothing of ours, and
//! [`ring`] only [`sys`]. A test checks that on the syntax tree.
//!
//! | module | is |
//! |---|---|
//! | [`sys`] | system calls other than io_uring, behind safe wrappers, counted |
//! | [`config`] | TOML and command line, checked and resolved into one immutable value |
//! | [`http`] | HTTP/1.1, pure: no descriptor, no clock, no thread, no log |
//! | [`ring`] | the only place that knows io_uring; owns whatever the kernel sees |
//! | [`metrics`] | counters: one writer per shard, merged on read |
//! | [`files`] | the file cache of a shard: request target to what is to be sent |
//! | [`tls`] | handshakes by rustls, records by ourselves: no descriptor, no clock, no thread, no log |
//! | [`shard`] | one CPU: event loop, connections, timers, inbox |
//! | [`server`] | listeners, threads, signals, the orderly end |
//! | [`cli`] | the commands, one file each |
//!
//! What HTTP/1.1 asks of a server is listed in [`http::conformance`], and what has gone wrong in other
//! servers in [`server::faults`], rule by rule and fault by fault with the test that shows it.
//!
//! `http` and `files` return *what to do*; only `shard` submits to the ring. `unsafe` is found in
//! `ring` and `sys` alone, each block with the invariant it rests on.
//!
//! # The life of a request
//!
//! 1. [`server`] has bound one SO_REUSEPORT listener per CPU, in CPU order, with TCP_DEFER_ACCEPT:
//!    a connection arrives together with its first request. Where each serving CPU takes the
//!    interrupts of a NIC queue, a BPF program leads a connection to the shard of the CPU that ran
//!    its SYN; elsewhere the kernel's hash spreads them.
//! 2. The shard's multishot accept yields the socket. A shard with far more connections than
//!    another hands *fresh* ones over through that one's inbox, waking it by MSG_RING.
//! 3. The ring receives into a buffer that all connections of the shard share: the first bytes of a
//!    connection for once, so that one with a single request can be closed at once, and what
//!    follows by multishot. A whole head is parsed where it lies; an incomplete one is copied into a
//!    buffer of the connection's own, so that no peer can hold shared memory by being slow.
//!    A body that follows is taken where it lies, and thrown away, for files want none: it is never
//!    copied. The answer is made before it and held until its end.
//!    On a listener with TLS the bytes are records: [`tls`] has rustls do the handshake, one record at a
//!    time, and opens what follows where it was received; what it finds goes the same way as a plain
//!    peer's bytes. Flights of handshakes are worked on a few a turn, and by a thread of its own where
//!    the key is slow, so that others are served in between.
//! 4. The target is looked up in the shard's [`files`]. A hit skips decoding, open and stat. The
//!    entry says how it is sent: *inline* (head and body in one ready buffer, one send on the
//!    ring) or *file*. Conditions, ranges and accepted codings are judged against the entry. What the
//!    site says about its files, and which of them it refuses, was worked out when the entry was made.
//! 5. A file's body is pulled a quantum at a time. Before each, the shard asks the kernel whether
//!    the quantum's first byte, its last and some between are in memory. Warm: non-blocking sendfile(2) on this
//!    thread. Cold: the ring reads a window into a registered buffer, of which the socket is given
//!    as much as it takes. The thread does not wait for a disk, save where pages between those
//!    bytes are missing or are evicted between the question and the call.
//!    For a TLS peer the answer is sealed first: head and body into records in a buffer that is used again
//!    and again, a quantum of a file read and sealed at a time. From its first large body on the kernel
//!    seals (kTLS), where it can; then the body goes by sendfile(2) as before.
//! 6. The loop enters the kernel once a turn: everything that the turn has queued goes in,
//!    everything that has completed comes out.
//!
//! # Who owns what
//!
//! The kernel reads and writes memory long after a call has returned. So the [`ring`] takes
//! buffers, sockets and leases *by value* and keeps them in its table of operations until the last
//! completion. A [`ring::Socket`] is counted: it closes with its last operation, so its number is
//! never reused under one. A connection ends in a fixed order: our FIN by shutdown(2), the peer's
//! as the last receive completion, then close.
//!
//! A shard's connection is known by slot and generation, and so is every operation: a completion
//! that outlives its tenant is recognised, its buffer goes back, and it is dropped.
//!
//! # Bounds
//!
//! Every limit that a site may want otherwise has a name and a default in [`config`], and a counter in
//! [`metrics`] that tells how often it was reached. The others are constants where they hold, such as
//! [`http::chunked::FRAMING_BYTES`] and [`http::range::RANGES_MAX`]. In one turn a connection gets at most `requests_per_turn` answers and one
//! quantum of a body; what it sends ahead of its turn is kept up to `pipeline_bytes`, then it is
//! not read from.
//!
//! # Decided by measurement
//!
//! The defaults of [`config::defaults`] carry their figures. Besides them (1 KiB, 64 connections,
//! one CPU for the server, CPU time per request, interleaved rounds):
//!
//! - *A connection's first receive is for once, not multishot.* With one request per connection
//!   nothing is pending then, and one close ends it: 13.7 to 14.8 µs in a bare prototype, against
//!   20.2 to 25.4 with multishot, shutdown(2) and waiting for the peer's FIN.
//! - *Normal descriptors, not direct ones*, in that cell as well: 14.2, 13.7 and 14.8 µs against
//!   14.1, 14.7 and 13.8. No difference shown, and sendfile(2) needs normal ones.
//! - *Sends never wait in the kernel* (MSG_DONTWAIT, not MSG_WAITALL). Once a peer has sent its FIN,
//!   polls answer at once: a SEND that waits then occupies a worker thread for each such peer, and a
//!   SENDMSG fails with EAGAIN. The ring polls for room itself, and tries a peer that has ended
//!   again every 8 ms.
//! - *Once a file was found cold, its body goes through the ring to the end.* The ends of a quantum
//!   say little of a file that was evicted: sendfile(2) was seen waiting for pages in two runs of
//!   five when the question was asked again after 16 MiB.
//! - *A multishot accept only far below the limit of connections*: it brings the whole queue before
//!   it can be cancelled.
//! - *rustls does the handshake and no record after it.* Its secrets go to a record layer of our own
//!   (aws-lc below), so that there is one path with and without kTLS: no queues, one copy, one allocation
//!   for each send, head and body in one record. 1 KiB takes 7.3 µs of CPU over TLS, 100 KiB 67 µs, against
//!   15.8 and 154 µs of nginx, and an idle connection 4.1 KiB of memory against 15.4. rustls's own
//!   encrypters cannot be used for it: aws-lc's refuse to begin at a number other than zero.
//! - *Only keys that take milliseconds go to a worker.* Beside eight peers that do nothing but handshakes,
//!   half of the plain requests were answered within 3.4 ms with RSA-4096 on the shard and 0.1 ms with the
//!   worker, at as many handshakes; with RSA-2048 1.1 and 0.2 ms, but a quarter of the handshakes is lost
//!   to the ways between threads; with P-256 0.26 ms on the shard.
//! - *A TLS connection's end is never cut short.* The peer's close_notify would meet a closed socket, whose
//!   reset can take the answer along; and shutdown(2) of one that the kernel seals loses what TCP has not
//!   had room for (32 KiB accepted, 16 arrive; 6.1 and 6.12): it is waited for.

pub mod sys;

pub mod config;

pub mod http;

pub mod ring;

pub mod metrics;

pub mod files;

pub mod tls;

pub mod shard;

pub mod server;

pub mod cli;
