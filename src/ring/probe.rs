//! What the running kernel's io_uring can do, found by trying.

use io_uring::{IoUring, Probe, opcode};

use super::setup::SetupError;

/// What was found. Everything not named here is required and there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// IORING_SETUP_NO_SQARRAY: one indirection less for each submission (6.6).
    pub no_sqarray: bool,
    /// The wait can gather completions for a minimal time (6.12).
    pub min_wait: bool,
    /// Waiting for sockets can be kept out of the iowait figure (6.15).
    pub no_iowait: bool,
    /// IORING_OP_SEND_ZC (6.0).
    pub send_zero_copy: bool,
    /// Receives and sends in bundles (6.10).
    pub bundles: bool,
    /// Submission entries that the kernel granted.
    pub entries: u32,
}

impl Capabilities {
    /// Each optional capability: name, the version that brought it, whether it is here.
    pub fn list(&self) -> [(&'static str, &'static str, bool); 5] {
        [
            ("IORING_SETUP_NO_SQARRAY", "6.6", self.no_sqarray),
            ("minimal wait (IORING_FEAT_MIN_TIMEOUT)", "6.12", self.min_wait),
            ("waits outside iowait (IORING_FEAT_NO_IOWAIT)", "6.15", self.no_iowait),
            ("IORING_OP_SEND_ZC", "6.0", self.send_zero_copy),
            ("bundles (IORING_FEAT_RECVSEND_BUNDLE)", "6.10", self.bundles),
        ]
    }
}

/// Operations that the server cannot do without. Their multishot forms came before DEFER_TASKRUN
/// (6.1), which every ring of ours has.
const REQUIRED: [(&str, &str, u8); 10] = [
    ("IORING_OP_ACCEPT", "5.5", opcode::Accept::CODE),
    ("IORING_OP_ASYNC_CANCEL", "5.5", opcode::AsyncCancel::CODE),
    ("IORING_OP_CONNECT", "5.5", opcode::Connect::CODE),
    ("IORING_OP_READ_FIXED", "5.1", opcode::ReadFixed::CODE),
    ("IORING_OP_READ", "5.6", opcode::Read::CODE),
    ("IORING_OP_POLL_ADD", "5.1", opcode::PollAdd::CODE),
    ("IORING_OP_SEND", "5.6", opcode::Send::CODE),
    ("IORING_OP_SENDMSG", "5.3", opcode::SendMsg::CODE),
    ("IORING_OP_RECV", "5.6", opcode::Recv::CODE),
    ("IORING_OP_MSG_RING", "5.18", opcode::MsgRingData::CODE),
];

pub(super) fn probe(uring: &IoUring, no_sqarray: bool) -> Result<Capabilities, SetupError> {
    let mut probe = Probe::new();
    uring
        .submitter()
        .register_probe(&mut probe)
        .map_err(|error| SetupError::Unexpected(error.to_string()))?;
    for (operation, since, code) in REQUIRED {
        if !probe.is_supported(code) {
            return Err(SetupError::MissingOperation { operation, since });
        }
    }
    let parameters = uring.params();
    Ok(Capabilities {
        no_sqarray,
        min_wait: parameters.is_feature_min_timeout(),
        no_iowait: parameters.is_feature_no_iowait(),
        send_zero_copy: probe.is_supported(opcode::SendZc::CODE),
        bundles: parameters.is_feature_recvsend_bundle(),
        entries: parameters.sq_entries(),
    })
}
