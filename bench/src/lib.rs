//! Load generator and measuring tools for onering and the servers it is compared with.
//!
//! Modules, each using only those above it:
//!
//! | module | what it is | must not know |
//! |---|---|---|
//! | [`target`] | URLs, lists of them, which may be loaded | sockets |
//! | [`request`] | request bytes prepared before the run | sockets, clocks |
//! | [`response`] | where responses end, from bytes cut anywhere | sockets, clocks |
//! | [`tls`] | TLS connections of a client | sockets |
//! | [`once`] | one request and its response, waited for | rings |
//! | [`dial`] | a connection that is waited for, plain or with TLS | HTTP |
//! | [`workload`] | what users ask for, and what is right | sockets, clocks |
//! | [`mod@line`] | the pace of a user's line | sockets, clocks |
//! | [`histogram`] | the one layout of histograms | what is recorded |
//! | [`tally`] | counts, errors by kind, latencies | sockets, clocks |
//! | [`process`] | CPU time, context switches and memory of a server's processes | HTTP |
//! | [`fingerprint`] | what machine, kernel and programs a result was measured with | HTTP |
//! | [`statistics`] | what differences between servers are worth | servers, files, clocks |
//! | [`result`] | the versioned result of a run: arithmetic, merging, text, page | how it was measured |
//! | [`interrupt`] | being asked to stop in the middle | what is being done |
//! | [`live`] | what a run shows of itself while it lasts | how it is measured |
//! | [`floor`] | a bare ring that answers canned bytes: the floor for servers | HTTP, but for the end of a head |
//! | [`engine`] | a pinned thread and a ring per CPU, in a closed or an open loop | what is asked for |
//! | [`compare`] | servers side by side, in a network namespace of their own | how a client works |
//! | [`sweep`] | the highest rate that meets objectives | how a rate is measured |
//! | [`cli`] | the command line | |
//!
//! What a figure means: a request counts when its response was right (status 200, the expected
//! length). *Service time* runs from the moment a request is queued to be sent until the last byte of
//! its response has been taken in, so that in a closed loop connections × requests in flight ÷ rate is
//! its mean; *response time* runs from the planned start of an open loop.
//! The server's CPU time is that of its process and all that belong to it, which may come and go,
//! read at both ends of the very interval in which requests are counted. Where client and server
//! share a machine, compare CPU time per request before rates: a rate says as much about the client.

pub mod target;

pub mod request;

pub mod response;

pub mod tls;

pub mod once;

pub mod dial;

pub mod workload;

pub mod line;

pub mod histogram;

pub mod tally;

pub mod process;

pub mod fingerprint;

pub mod statistics;

pub mod result;

pub mod interrupt;

pub mod live;

pub mod floor;

pub mod engine;

pub mod compare;

pub mod sweep;

pub mod cli;
