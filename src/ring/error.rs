//! Closed error sets, one for each operation.
//!
//! An errno that is not known for its operation becomes `Unexpected` with its number, is counted
//! by the ring, and deserves a look.

macro_rules! error_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $($errno:ident)|+,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum $name {
            $($(#[$variant_doc])* #[error("{}", stringify!($($errno)|+))] $variant,)*
            /// Any other errno.
            #[error("unexpected errno {0}")]
            Unexpected(i32),
        }

        impl $name {
            pub(super) fn from_errno(errno: i32) -> $name {
                match errno {
                    $($(libc::$errno)|+ => $name::$variant,)*
                    other => $name::Unexpected(other),
                }
            }
        }
    };
}

error_set! {
    /// Why accepting ended. The ring goes on by itself after what concerned one connection only.
    AcceptError {
        /// This process may open no further descriptor (RLIMIT_NOFILE).
        ProcessDescriptors = EMFILE,
        /// The system may open no further file (`fs.file-max`).
        SystemDescriptors = ENFILE,
        /// The kernel has no memory for a socket.
        Memory = ENOBUFS | ENOMEM,
        /// Cancelled by the caller.
        Cancelled = ECANCELED,
    }
}

error_set! {
    /// Why receiving ended, other than by the peer's FIN.
    RecvError {
        /// The peer reset the connection, or we have.
        Reset = ECONNRESET | EPIPE | ENOTCONN,
        /// The peer has not answered for too long.
        TimedOut = ETIMEDOUT | EHOSTUNREACH | ENETUNREACH,
        /// Cancelled by the caller.
        Cancelled = ECANCELED,
        /// The kernel has no memory for it.
        Memory = ENOMEM,
    }
}

error_set! {
    /// Why a send failed.
    SendError {
        /// The peer reset the connection, or we have closed our side.
        Closed = ECONNRESET | EPIPE | ENOTCONN,
        /// The peer has not answered for too long.
        TimedOut = ETIMEDOUT | EHOSTUNREACH | ENETUNREACH,
        /// Cancelled by the caller.
        Cancelled = ECANCELED,
        /// The kernel has no memory for it.
        Memory = ENOBUFS | ENOMEM,
    }
}

error_set! {
    /// Why a connection could not be made.
    ConnectError {
        /// Nobody listens there.
        Refused = ECONNREFUSED,
        /// The peer reset the connection.
        Reset = ECONNRESET,
        /// The peer cannot be reached, or has not answered for too long.
        Unreachable = ETIMEDOUT | EHOSTUNREACH | ENETUNREACH,
        /// No local port is left (`net.ipv4.ip_local_port_range`).
        NoLocalPort = EADDRNOTAVAIL | EADDRINUSE,
        /// Cancelled by the caller.
        Cancelled = ECANCELED,
    }
}

error_set! {
    /// Why a poll failed.
    PollError {
        /// Cancelled by the caller.
        Cancelled = ECANCELED,
    }
}

error_set! {
    /// Why a read of a file failed.
    ReadError {
        /// The device failed.
        Device = EIO,
        /// Cancelled by the caller.
        Cancelled = ECANCELED,
        /// The kernel has no memory for it.
        Memory = ENOMEM | EAGAIN,
    }
}
