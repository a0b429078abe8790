//! The defaults, each with its reason.
//!
//! Two of them follow from the host, and are worked out at the end of this file
//! from the number of files that the process may open.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use super::{
    Cache, Dotfiles, ETag, Ktls, Limits, Modes, Ring, Steer, Symlinks, Timeouts, Tls, Transfer,
    Version,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Where to listen when nothing is said: loopback, so that a trial run serves nobody else, and a port
/// that needs no privilege.
pub const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));

/// The same with TLS, whose certificate is made for the trial.
pub const TLS_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8443));

/// The kernel is asked where interrupts go before connections are steered by CPU: steering to CPUs
/// that take no interrupts would leave them idle.
pub const STEER: Steer = Steer::Auto;

/// What a directory is served as. Everybody's convention.
pub const INDEX: &str = "index.html";

/// Names of files tell strangers what nobody has linked to; who wants that says so.
pub const LISTING: bool = false;

/// What nearly all texts are written in. Without it browsers guess by their user's locale. Texts in
/// another encoding need that one's name here, since what the head says wins over a `<meta charset>`.
pub const CHARSET: &str = "utf-8";

/// No filter: whatever the server's user may read is served, as by other servers.
pub const MODES: Modes = Modes { allowed: None, forbidden: 0 };

/// Links within a tree are how releases are switched; one that leads out of it is never followed.
pub const SYMLINKS: Symlinks = Symlinks::Beneath;

/// `.git`, `.htpasswd` and `.env` are found by scanners within hours. What is meant for strangers lies
/// in `.well-known`.
pub const DOTFILES: Dotfiles = Dotfiles::Refuse;

/// The 8000 octets that RFC 9112 §3 asks for as the least, rounded up to 8 KiB.
pub const REQUEST_LINE_BYTES: usize = 8 * KIB;

/// Four such lines: room for large cookies. Bounds the memory of an unfinished head.
pub const HEAD_BYTES: usize = 32 * KIB;

/// Apache's figure; browsers send about fifteen, proxies add a few. Bounds the parser's table.
pub const FIELDS: usize = FIELDS_MAX;

/// The most that can be set: the parser's table is on the stack, and of this size.
pub const FIELDS_MAX: usize = 100;

/// nginx's figure. A form or a call of an API is a few KiB; whoever wants to have files sent to him
/// knows how large they are.
pub const BODY_BYTES: u64 = MIB as u64;

/// Apache's figure: a line that brings less is no line, while a body of the largest size may still
/// come over a modem, in 36 minutes.
pub const BODY_RATE_BYTES: u64 = 500;

/// A pipelining client must not keep the others waiting; sixteen small answers are some 50 µs of work.
pub const REQUESTS_PER_TURN: usize = 16;

/// Two heads of the largest size: a connection that is being answered may read ahead by that much.
pub const PIPELINE_BYTES: usize = 2 * HEAD_BYTES;

/// The kernel's own `net.core.somaxconn` since 5.4: asking for more gives nothing on most hosts.
pub const BACKLOG: i32 = 4096;

/// A head fits into a few packets; ten seconds leave room for two of them to be lost and sent again.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Apache's figure. Small bodies fit into a few packets, as heads do; but a user's line may be busy
/// with the body itself, and what it brings extends the time ([`BODY_RATE_BYTES`]).
pub const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// Two round trips and at most a signature on either side: as for a head.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A user reads a page for longer, but its resources are asked for within seconds. An idle connection
/// costs little here, so that longer is fine too.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// TCP tries again after 0.2, 0.4 … 12.8 s: a peer that has acknowledged nothing after those seven
/// is gone, or means harm.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The last response must reach its peer before a reset may overtake it (RFC 9112 §9.6).
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// What service managers allow before they kill: systemd 90 s, Kubernetes 30 s.
pub const GRACE: Duration = Duration::from_secs(30);

/// The first request arrives together with the connection: 25 to 40 % more connections per second
/// when each carries one request. A second is the least that the kernel can be told.
pub const DEFER_ACCEPT: Duration = Duration::from_secs(1);

/// More names than most sites have files; a name beyond them costs an open and a stat. Bounds what
/// requests for names that do not exist can fill.
pub const CACHE_ENTRIES: usize = 65_536;

/// 2048 answers of the largest inline size, in each shard.
pub const CACHE_BYTES: usize = 64 * MIB;

/// A changed file is noticed within a second, and a popular one costs one stat a second.
pub const CACHE_VALID: Duration = Duration::from_secs(1);

/// Head and body in one send that goes out with the ring's batch, against two calls of their own for
/// each request, until copying becomes dearer than those. CPU µs per request, inline and by
/// sendfile(2), wrk, 64 connections, the quietest of three interleaved rounds: 1 KiB 6.3 and 8.6,
/// 16 KiB 7.9 and 9.6, 32 KiB 9.3 and 10.1, 64 KiB 15.9 and 14.1, 128 KiB 27.7 and 20.6.
pub const INLINE_BYTES: usize = 32 * KIB;

/// Room for a page with its style and a picture inside. It is read whole, and kept by each shard for
/// each page of each site.
pub const ERROR_PAGE_BYTES: usize = 64 * KIB;

/// A listing is made in one go, while the shard's other connections wait: 3.7 ms for 2000 of 100 000
/// names that the kernel has in memory (the quietest of twenty, on a host that was busy otherwise), once
/// a second at most.
pub const LISTING_ENTRIES: usize = 2000;

/// Equal across a fleet that serves copies of one tree, where inodes differ.
pub const ETAG: ETag = ETag::MtimeSize;

/// Some 80 µs of work, which is what a connection with a small answer waits for each download that is
/// under way. CPU µs for a 1 MiB file, wrk, 16 connections, the quietest of four interleaved rounds:
/// 64 KiB 173, 128 KiB 141, 256 KiB 114, 512 KiB 82, 1 MiB 74, 2 MiB 74.
pub const QUANTUM_BYTES: usize = MIB;

/// Four full records: they stay in the CPU's second cache on their way from the page cache through the
/// cipher to the socket, and a slow peer makes us hold no more.
pub const SEALED_QUANTUM_BYTES: usize = 64 * KIB;

/// Large enough for a disk to stream, small enough that a slow client holds little. A cold file of
/// 256 MiB took 24 to 41 ms of CPU whatever the window from 32 KiB to 1 MiB: no difference shown,
/// since the kernel's read-ahead makes most of the file warm before its turn comes.
pub const COLD_WINDOW_BYTES: usize = 256 * KIB;

/// Submissions of one turn: more only means that a busy turn enters the kernel twice.
pub const RING_ENTRIES: u32 = 1024;

/// A buffer is held for one turn of the loop at most. They are used one after the other, so that fewer
/// stay in the CPU's cache: CPU µs per request at 512 connections, the quietest of five interleaved
/// rounds, 64 buffers 4.51, 128 4.52, 256 4.60, 1024 4.63 (the bare floor 4.31); at 64 connections 4.39
/// to 4.43 whatever their number (4.20). From 6.13 on a turn brings about thirty completions; earlier
/// kernels bring all there are, and if `enobufs` grows there, more buffers save the second try.
pub const RECV_BUFFERS: u16 = 256;

/// A page; the heads of most requests are below 1 KiB. From 512 bytes to 16 KiB no difference was
/// shown (5.7 to 5.9 µs for a 1 KiB file at 64 connections).
pub const RECV_BUFFER_BYTES: u32 = 4096;

/// Cold reads that a shard has under way: with [`COLD_WINDOW_BYTES`], 2 MiB of locked memory, which
/// fits the 8 MiB that a user may lock by default.
pub const FIXED_BUFFERS: u16 = 8;

/// Off: gathering completions trades latency for throughput, which is for the operator to choose. With
/// wrk, 20, 50 and 200 µs saved 0 to 8 % of CPU per request at 64 connections and nothing at 8.
pub const MIN_WAIT: Duration = Duration::ZERO;

/// RFC 8996 has retired what is older; every browser since 2014 knows this one.
pub const TLS_MIN_VERSION: Version = Version::Tls12;

/// The kernel encrypts what sendfile(2) sends, so that bodies stay out of this process.
pub const KTLS: Ktls = Ktls::Auto;

/// Four records of the largest size: what is smaller is sent before the switch has paid for itself.
pub const KTLS_FROM_BYTES: u64 = 64 << 10;

/// They cost the server no memory, and any server with the same secret takes them.
pub const TICKETS: bool = true;

/// Whoever finds a key reads what was said under it in TLS 1.2: three keys a day bound that, and a
/// visitor of this morning is known this evening.
pub const TICKET_PERIOD: Duration = Duration::from_secs(8 * 3600);

/// Twice what SPECweb99_SSL's record held (7573, Zeus, 2540 connections); 8 MB.
pub const SESSION_CACHE_ENTRIES: usize = 16_384;

/// A visit. Who comes again later may well have another address, and costs a signature.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(3600);

/// More than a shard can complete in a second (a full handshake is some 300 µs of CPU with an ECDSA
/// key, so 3000), were it not that most of their time they wait for the peer. Each holds some tens of
/// KiB, so that a flood of them holds tens of MiB.
pub const HANDSHAKES: usize = 1024;

/// At 100 to 400 µs for a step, about a millisecond, after which the others have their turn.
pub const HANDSHAKES_PER_TURN: usize = 4;

/// A record is decrypted when all of it is there: while TCP's window is small, one that fits into a
/// packet is shown a round trip earlier. After some 45 packets the window has grown.
pub const RECORDS_SMALL_BYTES: u64 = 64 << 10;

/// A signature takes 0.24 ms with 2048 bits, 1.8 ms with 3072 and 4.0 ms with 4096 (OpenSSL's `speed` on
/// one core with AVX-512): the first is no longer than other work of a turn, the others are.
pub const OFFLOAD_RSA_BITS: usize = 3072;

/// Descriptors kept aside for the process: standard streams, logs, document roots, libraries.
const DESCRIPTORS_OF_PROCESS: u64 = 64;

/// Descriptors kept aside for each shard: its ring, its listeners, and some air.
const DESCRIPTORS_PER_SHARD: u64 = 16;

/// Slots that a token can name.
const CONNECTIONS_PER_SHARD_MAX: u64 = 1 << 20;

pub(super) fn limits() -> Limits {
    Limits {
        request_line_bytes: REQUEST_LINE_BYTES,
        head_bytes: HEAD_BYTES,
        fields: FIELDS,
        body_bytes: BODY_BYTES,
        body_rate_bytes: BODY_RATE_BYTES,
        connections_per_shard: 0,
        requests_per_turn: REQUESTS_PER_TURN,
        pipeline_bytes: PIPELINE_BYTES,
        backlog: BACKLOG,
    }
}

pub(super) fn timeouts() -> Timeouts {
    Timeouts {
        head: HEAD_TIMEOUT,
        body: BODY_TIMEOUT,
        handshake: HANDSHAKE_TIMEOUT,
        idle: IDLE_TIMEOUT,
        write_stall: WRITE_STALL_TIMEOUT,
        linger: LINGER_TIMEOUT,
        grace: GRACE,
        defer_accept: DEFER_ACCEPT,
    }
}

pub(super) fn tls() -> Tls {
    Tls {
        min_version: TLS_MIN_VERSION,
        ktls: KTLS,
        ktls_from_bytes: KTLS_FROM_BYTES,
        tickets: TICKETS,
        ticket_secret: None,
        ticket_period: TICKET_PERIOD,
        session_cache_entries: SESSION_CACHE_ENTRIES,
        session_lifetime: SESSION_LIFETIME,
        handshakes: HANDSHAKES,
        handshakes_per_turn: HANDSHAKES_PER_TURN,
        records_small_bytes: RECORDS_SMALL_BYTES,
        offload_rsa_bits: OFFLOAD_RSA_BITS,
    }
}

pub(super) fn cache() -> Cache {
    Cache {
        entries: CACHE_ENTRIES,
        bytes: CACHE_BYTES,
        descriptors: 0,
        valid: CACHE_VALID,
        inline_bytes: INLINE_BYTES,
        error_page_bytes: ERROR_PAGE_BYTES,
        listing_entries: LISTING_ENTRIES,
        etag: ETAG,
    }
}

pub(super) fn transfer() -> Transfer {
    Transfer {
        quantum_bytes: QUANTUM_BYTES,
        sealed_quantum_bytes: SEALED_QUANTUM_BYTES,
        cold_window_bytes: COLD_WINDOW_BYTES,
    }
}

pub(super) fn ring() -> Ring {
    Ring {
        entries: RING_ENTRIES,
        recv_buffers: RECV_BUFFERS,
        recv_buffer_bytes: RECV_BUFFER_BYTES,
        fixed_buffers: FIXED_BUFFERS,
        min_wait: MIN_WAIT,
    }
}

/// Descriptors that one shard has for its connections and its cache together.
pub(super) fn descriptors_per_shard(nofile: u64, shards: usize) -> u64 {
    let shards = shards as u64;
    let kept = DESCRIPTORS_OF_PROCESS + DESCRIPTORS_PER_SHARD * shards;
    nofile.saturating_sub(kept) / shards.max(1)
}

/// Open files of one shard's cache: a quarter of what the shard may have open, and no more than it has
/// entries. Connections need the larger part: without a descriptor a file is opened for each request,
/// but a connection waits.
pub(super) fn descriptors(nofile: u64, shards: usize, entries: usize) -> usize {
    let quarter = descriptors_per_shard(nofile, shards) / 4;
    entries.min(usize::try_from(quarter).unwrap_or(usize::MAX))
}

/// Connections of one shard: what the cache leaves.
pub(super) fn connections_per_shard(nofile: u64, shards: usize, descriptors: usize) -> usize {
    let left = descriptors_per_shard(nofile, shards).saturating_sub(descriptors as u64);
    usize::try_from(left.min(CONNECTIONS_PER_SHARD_MAX)).unwrap_or(usize::MAX)
}
