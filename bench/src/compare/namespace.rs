//! A network of its own for the comparison: nothing of the host's is touched, nothing of the
//! host's settings leaks in.
//!
//! Congestion control is chosen by a route metric and not by `net.ipv4.tcp_congestion_control`: in
//! a namespace the kernel lets that sysctl be set only to algorithms which the host allows to
//! everybody, while a route may name any that is loaded, and connections in both directions obey.

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

/// The algorithm of every connection in the namespace.
pub const CONGESTION_CONTROL: &str = "cubic";

/// Why there is no namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// Making one needs a privilege.
    #[error(
        "a network namespace cannot be made: {0}\n  \
         fix: run as root, or under `unshare --user --map-root-user`"
    )]
    Refused(Errno),
    /// `ip` is not there.
    #[error("cannot run ip: {0}\n  fix: install iproute2")]
    NoTool(io::Error),
    /// `ip` did not do it.
    #[error("`ip {0}` failed: {1}")]
    Tool(String, String),
    /// The namespace's loopback does not work.
    #[error("cannot connect in the new namespace: {0}")]
    Loopback(#[from] io::Error),
    /// Connections use another algorithm.
    #[error(
        "connections use {0} and not {CONGESTION_CONTROL}\n  \
         fix: modprobe tcp_{CONGESTION_CONTROL}"
    )]
    Congestion(String),
}

/// Moves the calling thread into a new network namespace with a working loopback. Threads and
/// processes that it starts afterwards are in there with it.
pub fn enter() -> Result<(), NamespaceError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(NamespaceError::Refused)?;
    ip("link set lo up")?;
    for prefix in ["127.0.0.0/8", "127.0.0.1"] {
        ip(&format!(
            "route replace local {prefix} dev lo proto kernel scope host src 127.0.0.1 \
             table local congctl {CONGESTION_CONTROL}"
        ))?;
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    for end in [client, server] {
        let name = getsockopt(&end, sockopt::TcpCongestion).map_err(io::Error::from)?;
        let name = name.to_string_lossy().trim_end_matches('\0').to_owned();
        if name != CONGESTION_CONTROL {
            return Err(NamespaceError::Congestion(name));
        }
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<(), NamespaceError> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .map_err(NamespaceError::NoTool)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(NamespaceError::Tool(arguments.to_owned(), said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_empty_and_uses_the_algorithm() {
        let outside = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let _held = TcpListener::bind(outside);
        // Only this thread moves.
        let inside =
            std::thread::spawn(move || enter().map(|()| TcpListener::bind(outside).is_ok()));
        match inside.join().unwrap() {
            Ok(port_is_free) => assert!(port_is_free),
            Err(error @ (NamespaceError::Refused(_) | NamespaceError::NoTool(_))) => {
                eprintln!("skipped: {error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
