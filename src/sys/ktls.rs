//! Encryption of what a connection sends, by the kernel (kTLS, transmit only).
//!
//! A handshake is not the kernel's business: it is told the keys of a finished one. From then on
//! whatever is written to the socket, sendfile(2) included, leaves it as TLS records. Receiving stays as
//! it was: whole records come out of the socket, and their keys stay with us. So operations that were
//! armed before go on, and a peer's KeyUpdate is no trouble.
//!
//! Must not see a handshake, nor decide when a connection is handed over: what is in flight on it must
//! have been sent before. Keys are wiped on drop, and so are the copies made here.
//!
//! Needs the kernel's module `tls` (CONFIG_TLS). It is loaded on first use where the process has
//! CAP_NET_ADMIN, otherwise by `modprobe tls`. Whether it is there is found by trial: [`available`].
#![allow(unsafe_code, reason = "sendmsg(2) with a record's type is not wrapped by nix")]

use std::fmt;
use std::fs;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::SetSockOpt;
use nix::sys::socket::sockopt::{TcpTlsTx, TcpUlp, TlsCryptoInfo};
use zeroize::{Zeroize, Zeroizing};

use super::count_call;
use super::socket::SendError;

/// The version of TLS that records are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// The cipher that seals records, with its key.
#[derive(Clone, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128Gcm([u8; 16]),
    /// AES-256-GCM.
    Aes256Gcm([u8; 32]),
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305([u8; 32]),
}

/// Everything the kernel must know to go on with a connection's records. Wiped on drop, never shown.
#[derive(PartialEq, Eq)]
pub struct Keys {
    /// The version of TLS.
    pub version: Version,
    /// The cipher and its key.
    pub cipher: Cipher,
    /// The IV that a record's number is combined with by exclusive or (RFC 8446 section 5.3, RFC 7905
    /// section 2). AES-GCM in TLS 1.2 is different (RFC 5288 section 3): these are the four bytes of
    /// the salt, then the explicit nonce of the kernel's *first* record, from which it counts up: none
    /// of those it will come to may have been used before.
    pub iv: [u8; 12],
    /// The number of the kernel's first record, most significant byte first.
    pub sequence: [u8; 8],
}

impl Drop for Keys {
    fn drop(&mut self) {
        match &mut self.cipher {
            Cipher::Aes128Gcm(key) => key.zeroize(),
            Cipher::Aes256Gcm(key) | Cipher::ChaCha20Poly1305(key) => key.zeroize(),
        }
        self.iv.zeroize();
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keys").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Hands a connection's transmit side to the kernel: whatever is written from now on is sealed with
/// `keys`. For good: nothing takes it back. Some five calls.
///
/// An error is no harm to the connection, which goes on as it was, unsealed by the kernel: EEXIST where
/// it has been handed over before, ENOENT without the module or the cipher, ENOTCONN once it is closed,
/// ENOMEM.
pub fn attach(socket: impl AsFd, keys: &Keys) -> io::Result<Sealing> {
    let written_before = written(&socket)?;
    name_protocol(&socket)?;
    set_transmit(&socket, keys)?;
    let (overhead, info_bytes) = match (keys.version, &keys.cipher) {
        // Header, type, tag (RFC 8446 section 5.2).
        (Version::Tls13, Cipher::Aes128Gcm(_)) => (5 + 1 + 16, AES_128_INFO_BYTES),
        (Version::Tls13, _) => (5 + 1 + 16, INFO_BYTES_MAX),
        // Header, explicit nonce, tag (RFC 5288 section 3, RFC 7905 section 2).
        (Version::Tls12, Cipher::Aes128Gcm(_)) => (5 + 8 + 16, AES_128_INFO_BYTES),
        (Version::Tls12, Cipher::Aes256Gcm(_)) => (5 + 8 + 16, INFO_BYTES_MAX),
        (Version::Tls12, Cipher::ChaCha20Poly1305(_)) => (5 + 16, INFO_BYTES_MAX),
    };
    let first_record = u64::from_be_bytes(keys.sequence);
    Ok(Sealing { first_record, written_before, overhead, info_bytes })
}

/// What a connection was when it was handed to the kernel's TLS: what [`flush`] counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealing {
    first_record: u64,
    /// Bytes that TCP had been given.
    written_before: u64,
    /// Bytes of a record besides what is sealed in it.
    overhead: u8,
    /// The size of the kernel's form of the keys, which it wants to be told when it is asked for them.
    info_bytes: u8,
}

/// Sizes of `struct tls12_crypto_info_aes_gcm_128`, and of the other ciphers' structures.
const AES_128_INFO_BYTES: u8 = size_of::<libc::tls12_crypto_info_aes_gcm_128>() as u8;
const INFO_BYTES_MAX: u8 = size_of::<libc::tls12_crypto_info_aes_gcm_256>() as u8;

/// Whether all that the socket has accepted since it was handed over, `plain_bytes` with those of
/// [`send_record`], has left the kernel's TLS for TCP; has it leave if not, as far as there is room. Some
/// four calls.
///
/// To be called before a shutdown(2) or a close, and again some milliseconds later, until it says so: they
/// lose the rest of a record that TCP has not had room for, which a worker of the kernel's hands on later
/// (6.1 and 6.12: 32 KiB accepted, 16 arrive). There is no event for it. Bytes that wait for more
/// ([`send_more`](super::socket::send_more)) have not left.
pub fn flush(socket: impl AsFd, sealing: &Sealing, plain_bytes: u64) -> io::Result<bool> {
    let records = next_record(&socket, sealing)?.wrapping_sub(sealing.first_record);
    let sealed_bytes = plain_bytes + records * u64::from(sealing.overhead);
    let is_flushed = written(&socket)? == sealing.written_before + sealed_bytes;
    if !is_flushed {
        super::socket::push(&socket)?;
    }
    Ok(is_flushed)
}

/// The number of the record that the kernel seals next.
fn next_record(socket: impl AsFd, sealing: &Sealing) -> io::Result<u64> {
    // The kernel answers with the key as well.
    let mut info = Zeroizing::new([0; INFO_BYTES_MAX as usize]);
    let mut bytes = libc::socklen_t::from(sealing.info_bytes);
    count_call();
    // SAFETY: `info` is writable for `bytes` bytes, for no cipher's structure is longer than it; both
    // outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_TLS,
            libc::TLS_TX,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    Errno::result(result)?;
    let sequence = info[..usize::from(sealing.info_bytes)].last_chunk();
    Ok(u64::from_be_bytes(*sequence.expect("every cipher's structure ends with eight bytes of it")))
}

/// Bytes that TCP has been given since the connection began.
fn written(socket: impl AsFd) -> io::Result<u64> {
    let mut acked = super::socket::bytes_acked(&socket)?;
    loop {
        let mut queued: libc::c_int = 0;
        count_call();
        // SAFETY: SIOCOUTQ (tcp(7)), which has the number of TIOCOUTQ, writes one integer to `queued`.
        let result =
            unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) };
        Errno::result(result)?;
        // What the peer acknowledges in between would be missing.
        let acked_since = super::socket::bytes_acked(&socket)?;
        if acked_since == acked {
            return Ok(acked + u64::from(queued.unsigned_abs()));
        }
        acked = acked_since;
    }
}

/// Makes TLS the socket's upper layer protocol: as yet without keys, so that nothing changes.
fn name_protocol(socket: impl AsFd) -> Result<(), Errno> {
    count_call();
    TcpUlp::default().set(&socket, b"tls")
}

/// Tells the kernel other keys than those it has. EBUSY where it cannot change them
/// ([`Support::rekey`]).
pub fn set_transmit(socket: impl AsFd, keys: &Keys) -> io::Result<()> {
    Ok(install(socket, keys)?)
}

fn install(socket: impl AsFd, keys: &Keys) -> Result<(), Errno> {
    let mut info = crypto_info(keys);
    count_call();
    let set = TcpTlsTx.set(&socket, &info);
    match &mut info {
        TlsCryptoInfo::Aes128Gcm(info) => (info.key.zeroize(), info.salt.zeroize()),
        TlsCryptoInfo::Aes256Gcm(info) => (info.key.zeroize(), info.salt.zeroize()),
        TlsCryptoInfo::Chacha20Poly1305(info) => (info.key.zeroize(), info.iv.zeroize()),
    };
    set
}

/// The kernel's form of `keys` (linux/tls.h).
fn crypto_info(keys: &Keys) -> TlsCryptoInfo {
    let version = match keys.version {
        Version::Tls12 => libc::TLS_1_2_VERSION,
        Version::Tls13 => libc::TLS_1_3_VERSION,
    };
    let info = |cipher_type| libc::tls_crypto_info { version, cipher_type };
    let [s0, s1, s2, s3, nonce @ ..] = keys.iv;
    let (salt, rec_seq) = ([s0, s1, s2, s3], keys.sequence);
    match &keys.cipher {
        Cipher::Aes128Gcm(key) => TlsCryptoInfo::Aes128Gcm(libc::tls12_crypto_info_aes_gcm_128 {
            info: info(libc::TLS_CIPHER_AES_GCM_128),
            iv: nonce,
            key: *key,
            salt,
            rec_seq,
        }),
        Cipher::Aes256Gcm(key) => TlsCryptoInfo::Aes256Gcm(libc::tls12_crypto_info_aes_gcm_256 {
            info: info(libc::TLS_CIPHER_AES_GCM_256),
            iv: nonce,
            key: *key,
            salt,
            rec_seq,
        }),
        Cipher::ChaCha20Poly1305(key) => {
            TlsCryptoInfo::Chacha20Poly1305(libc::tls12_crypto_info_chacha20_poly1305 {
                info: info(libc::TLS_CIPHER_CHACHA20_POLY1305),
                iv: keys.iv,
                key: *key,
                salt: [],
                rec_seq,
            })
        }
    }
}

/// Writes a record of its own, of `content_type` (RFC 8446 appendix B.1), without waiting: an alert, a
/// KeyUpdate. What was written before and waits for more ([`send_more`](super::socket::send_more)) goes
/// ahead of it in a record of its own. May take fewer bytes than were given, which makes that a record.
pub fn send_record(socket: impl AsFd, content_type: u8, bytes: &[u8]) -> Result<usize, SendError> {
    let mut vector =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control::new(content_type);
    // SAFETY: a message header is made of integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of_val(&control);
    loop {
        count_call();
        // SAFETY: the header points to one vector, to the bytes that it spans and to one control message
        // of the length told, all of which outlive the call; the kernel only reads them.
        let sent = unsafe {
            libc::sendmsg(
                socket.as_fd().as_raw_fd(),
                &raw const message,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        match Errno::result(sent) {
            Ok(sent) => return Ok(sent as usize),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A control message that tells a record's type: the header, and one byte padded to its alignment.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    content_type: u8,
}

impl Control {
    fn new(content_type: u8) -> Self {
        // SAFETY: CMSG_LEN is arithmetic.
        let cmsg_len = unsafe { libc::CMSG_LEN(1) } as usize;
        let header = libc::cmsghdr {
            cmsg_len,
            cmsg_level: libc::SOL_TLS,
            cmsg_type: libc::TLS_SET_RECORD_TYPE,
        };
        Self { header, content_type }
    }
}

/// What the kernel's TLS can do, where it is there at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Support {
    /// Whether it has ChaCha20-Poly1305 (module `chacha20poly1305`). AES-GCM it has in any case.
    pub chacha20_poly1305: bool,
    /// Whether the keys of a connection can be changed: TLS 1.3, since Linux 6.14.
    pub rekey: bool,
}

/// Why the kernel does not encrypt for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The module is there, and nobody has loaded it.
    #[error("the kernel's module `tls` is not loaded")]
    NotLoaded,
    /// The kernel's modules are there, and this one is not among them.
    #[error("this kernel was built without TLS (CONFIG_TLS)")]
    NotBuilt,
    /// There is no telling which of the two: no modules are to be seen from here.
    #[error(
        "the kernel's module `tls` is not loaded, or this kernel was built without (CONFIG_TLS)"
    )]
    NotLoadedOrNotBuilt,
    /// It has no AES-GCM (ENOENT).
    #[error("the kernel has no AES-GCM")]
    NoCipher,
    /// A sandbox forbids it (EPERM, EACCES).
    #[error("a sandbox (seccomp) does not allow setsockopt(2) of TCP_ULP")]
    Forbidden,
    /// Anything else.
    #[error("trying it failed: {}", io::Error::from_raw_os_error(*.0))]
    Failed(i32),
}

/// Tries it, on connections of our own to ourselves. To be asked once, at start.
///
/// Where the process has CAP_NET_ADMIN, asking loads the module.
pub fn available() -> Result<Support, Unavailable> {
    let keys = |cipher| Keys { version: Version::Tls13, cipher, iv: [0; 12], sequence: [0; 8] };
    let aes = keys(Cipher::Aes128Gcm([0; 16]));
    let (socket, _peer) = connection().map_err(Unavailable::of)?;
    name_protocol(&socket).map_err(|errno| match errno {
        Errno::ENOENT => absent(Path::new("/")),
        errno => Unavailable::of(errno.into()),
    })?;
    install(&socket, &aes).map_err(|errno| match errno {
        Errno::ENOENT => Unavailable::NoCipher,
        errno => Unavailable::of(errno.into()),
    })?;
    let rekey = install(&socket, &aes).is_ok();
    let (socket, _peer) = connection().map_err(Unavailable::of)?;
    let chacha20_poly1305 = attach(&socket, &keys(Cipher::ChaCha20Poly1305([0; 32]))).is_ok();
    Ok(Support { chacha20_poly1305, rekey })
}

impl Unavailable {
    fn of(error: io::Error) -> Self {
        match error.raw_os_error().unwrap_or(0) {
            libc::EPERM | libc::EACCES => Self::Forbidden,
            errno => Self::Failed(errno),
        }
    }
}

/// Both ends of a connection over loopback.
fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    Ok((client, listener.accept()?.0))
}

/// Why the kernel knows no protocol of that name, from the lists of its modules beneath `root`.
fn absent(root: &Path) -> Unavailable {
    let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let modules = root.join("lib/modules").join(release.trim());
    match fs::read_to_string(modules.join("modules.dep")) {
        Ok(list) if list.lines().any(|line| line.starts_with("kernel/net/tls/tls.ko")) => {
            Unavailable::NotLoaded
        }
        Ok(_) => Unavailable::NotBuilt,
        Err(_) => Unavailable::NotLoadedOrNotBuilt,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    const KEY: [u8; 32] = *b"an unlikely sequence of 32 bytes";

    fn keys(version: Version, cipher: Cipher) -> Keys {
        Keys { version, cipher, iv: *b"salt & nonce", sequence: 5_u64.to_be_bytes() }
    }

    #[test]
    fn keys_are_laid_out_as_the_kernel_wants_them() {
        let TlsCryptoInfo::Aes256Gcm(aes) =
            crypto_info(&keys(Version::Tls12, Cipher::Aes256Gcm(KEY)))
        else {
            panic!("another cipher")
        };
        assert_eq!((aes.info.version, aes.info.cipher_type), (0x0303, 52));
        assert_eq!((&aes.salt, &aes.iv), (b"salt", b" & nonce"));
        assert_eq!((aes.key, aes.rec_seq), (KEY, [0, 0, 0, 0, 0, 0, 0, 5]));
        let TlsCryptoInfo::Chacha20Poly1305(chacha) =
            crypto_info(&keys(Version::Tls13, Cipher::ChaCha20Poly1305(KEY)))
        else {
            panic!("another cipher")
        };
        assert_eq!((chacha.info.version, chacha.info.cipher_type), (0x0304, 54));
        assert_eq!((&chacha.iv, chacha.key), (b"salt & nonce", KEY));
    }

    #[test]
    fn keys_are_not_shown() {
        let shown = format!("{:?}", keys(Version::Tls13, Cipher::Aes256Gcm(KEY)));
        assert_eq!(shown, "Keys { version: Tls13, .. }");
    }

    #[test]
    fn the_probe_answers_and_a_connection_agrees() {
        let (mut socket, mut peer) = connection().expect("a connection");
        let attached = attach(&socket, &keys(Version::Tls13, Cipher::Aes128Gcm([1; 16])));
        match available() {
            Ok(_) => _ = attached.expect("what is available can be attached"),
            Err(_) => {
                let error = attached.expect_err("it is not available");
                assert_eq!(error.kind(), io::ErrorKind::NotFound);
            }
        }
        // A connection is none the worse for it.
        socket.write_all(b"text").expect("write");
        let mut received = [0; 4];
        peer.read_exact(&mut received).expect("read");
        if available().is_ok() {
            // The header of a record of application data with four bytes, their type and a tag.
            assert_eq!(received, [23, 3, 3, 0]);
        } else {
            assert_eq!(&received, b"text");
        }
    }

    #[test]
    fn a_record_of_another_type_goes_after_what_waits() {
        let (socket, mut peer) = connection().expect("a connection");
        if let Err(why) = available() {
            eprintln!("skipped: {why}");
            return;
        }
        attach(&socket, &keys(Version::Tls12, Cipher::Aes128Gcm([1; 16]))).expect("attach");
        assert_eq!(super::super::socket::send_more(&socket, b"data"), Ok(4));
        assert_eq!(send_record(&socket, 21, &[1, 0]), Ok(2));
        let mut received = [0; 5 + 8 + 4 + 16 + 5];
        peer.read_exact(&mut received).expect("read");
        assert_eq!(received[..5], [23, 3, 3, 0, 28]);
        assert_eq!(&received[5..13], b" & nonce");
        assert_eq!(received[33..], [21, 3, 3, 0, 26]);
    }

    #[test]
    fn what_is_missing_is_told_from_the_lists_of_modules() {
        let root = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        };
        assert_eq!(absent(root.path()), Unavailable::NotLoadedOrNotBuilt);
        write("proc/sys/kernel/osrelease", "6.12.1-test\n");
        write("lib/modules/6.12.1-test/modules.dep", "kernel/net/ipv4/tcp_bbr.ko.xz:\n");
        assert_eq!(absent(root.path()), Unavailable::NotBuilt);
        write("lib/modules/6.12.1-test/modules.dep", "kernel/net/tls/tls.ko.xz:\n");
        assert_eq!(absent(root.path()), Unavailable::NotLoaded);
    }
}
