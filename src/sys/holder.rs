//! Who holds a port: for the message to someone whose server cannot have it.
//!
//! Read from `/proc`, as far as that tells this user: the programs of others show only to root.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A process that listens where we would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// What it calls itself: the first 15 bytes of its program's name, if it has not changed that.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name.escape_debug(), self.pid)
    }
}

/// `TCP_LISTEN` in the files below (net/tcp_states.h).
const LISTEN: &str = "0A";

/// The process that has a socket listening on `address`, or on one that excludes it. Looks beneath
/// `root`, which is `/` save in tests.
pub fn holder(root: &Path, address: SocketAddr) -> Option<Holder> {
    let inode = listening(root, address)?;
    let socket = format!("socket:[{inode}]");
    let numbered = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    // Of several, such as a master and its workers, the first is the one to be asked.
    let mut pids: Vec<u32> =
        fs::read_dir(root.join("proc")).ok()?.flatten().filter_map(numbered).collect();
    pids.sort_unstable();
    pids.into_iter().find_map(|pid| {
        let process = root.join("proc").join(pid.to_string());
        let mut open = fs::read_dir(process.join("fd")).ok()?.flatten();
        open.find(|entry| {
            fs::read_link(entry.path())
                .is_ok_and(|link| link.as_os_str().as_bytes() == socket.as_bytes())
        })?;
        let name = fs::read_to_string(process.join("comm")).ok()?;
        Some(Holder { pid, name: name.trim_end().to_owned() })
    })
}

/// The inode of the socket that listens there.
fn listening(root: &Path, address: SocketAddr) -> Option<u64> {
    ["proc/net/tcp", "proc/net/tcp6"].into_iter().find_map(|table| {
        let table = fs::read_to_string(root.join(table)).ok()?;
        table.lines().skip(1).find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, state, ..] = words[..] else { return None };
            let excludes = state == LISTEN && excludes(parse_address(local)?, address);
            excludes.then(|| words.get(9)?.parse().ok()).flatten()
        })
    })
}

/// Whether nobody can listen on `ours` beside `theirs`.
fn excludes(theirs: SocketAddr, ours: SocketAddr) -> bool {
    let wild = |ip: IpAddr| ip.is_unspecified();
    let (their_ip, our_ip) = (theirs.ip().to_canonical(), ours.ip().to_canonical());
    // `[::]` may be for both families, which the table does not tell.
    let meets = match (their_ip, our_ip) {
        (IpAddr::V4(_), IpAddr::V6(_)) => false,
        (IpAddr::V6(_), IpAddr::V4(_)) => wild(their_ip),
        _ => their_ip == our_ip || wild(their_ip) || wild(our_ip),
    };
    theirs.port() == ours.port() && meets
}

/// An address as `/proc/net/tcp` writes it: words of 32 bits as this machine has them, in hexadecimal.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn we_are_found_to_hold_what_we_hold() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let found = holder(Path::new("/"), address).expect("a holder");
        assert_eq!(found.pid, std::process::id());
        let everywhere = SocketAddr::from(([0, 0, 0, 0], address.port()));
        assert_eq!(holder(Path::new("/"), everywhere), Some(found));
    }

    #[test]
    fn what_excludes_what() {
        let excluded = |theirs: &str, ours: &str| {
            excludes(theirs.parse().expect("an address"), ours.parse().expect("an address"))
        };
        assert!(excluded("127.0.0.1:80", "127.0.0.1:80"));
        assert!(excluded("0.0.0.0:80", "127.0.0.1:80"));
        assert!(excluded("127.0.0.1:80", "0.0.0.0:80"));
        assert!(excluded("[::]:80", "127.0.0.1:80"));
        assert!(excluded("[::ffff:127.0.0.1]:80", "127.0.0.1:80"));
        assert!(!excluded("127.0.0.1:81", "127.0.0.1:80"));
        assert!(!excluded("127.0.0.2:80", "127.0.0.1:80"));
        assert!(!excluded("0.0.0.0:80", "[::]:80"));
        assert!(!excluded("[::1]:80", "127.0.0.1:80"));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_table_is_read() {
        let parsed = |text| parse_address(text).map(|address| address.to_string());
        assert_eq!(parsed("0100007F:1F90"), Some("127.0.0.1:8080".into()));
        let loopback = "00000000000000000000000001000000:0050";
        assert_eq!(parsed(loopback), Some("[::1]:80".into()));
        for text in ["", ":", "0100007F", "0100007F:10000", "01:50", "ö100007F:0050"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn nobody_is_named_where_proc_does_not_tell() {
        let nothing = tempfile::tempdir().expect("tempdir");
        assert_eq!(holder(nothing.path(), SocketAddr::from(([127, 0, 0, 1], 80))), None);
    }
}
