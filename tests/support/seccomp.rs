//! Seccomp filters around a program under test: what a container's profile does, what a kernel without
//! some flag of io_uring does, and one without memory.
//!
//! A filter belongs to a thread and what the thread starts. So a thread is made for each program:
//! it confines itself, starts the program, and ends. No code runs between fork and exec.

#![allow(unsafe_code, reason = "seccomp(2) has no safe wrapper among our crates")]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command};
use std::thread;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_USER_NOTIF, SYS_io_uring_setup, SYS_sendfile, sock_filter, sock_fprog,
};

/// What a system call meets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Confinement {
    /// Every sendfile(2): ENOMEM.
    NoMemoryForSendfile,
    /// Every io_uring_setup(2): this errno. EPERM as under a container's profile, ENOSYS as without io_uring.
    Refused(i32),
    /// An io_uring_setup(2): EINVAL where any of these IORING_SETUP_* flags is asked for: a kernel older than they are.
    WithoutFlags(u32),
}

impl Confinement {
    /// Starts `command` in this confinement.
    pub(crate) fn spawn(self, mut command: Command) -> io::Result<Child> {
        let confined = thread::spawn(move || {
            let supervised = match self {
                Confinement::Refused(errno) => {
                    install(SYS_io_uring_setup, failing_with(errno), 0)?;
                    None
                }
                Confinement::NoMemoryForSendfile => {
                    install(SYS_sendfile, failing_with(libc::ENOMEM), 0)?;
                    None
                }
                Confinement::WithoutFlags(flags) => {
                    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
                    let listener = install(SYS_io_uring_setup, SECCOMP_RET_USER_NOTIF, listening)?;
                    // SAFETY: with NEW_LISTENER, what seccomp returned is a new descriptor, which
                    // nobody else owns.
                    Some((unsafe { OwnedFd::from_raw_fd(listener) }, flags))
                }
            };
            Ok::<_, io::Error>((command.spawn()?, supervised))
        });
        let (child, supervised) = confined.join().expect("the thread does not panic")?;
        if let Some((listener, flags)) = supervised {
            thread::spawn(move || supervise(&listener, flags));
        }
        Ok(child)
    }
}

/// The verdict by which a call fails.
fn failing_with(errno: i32) -> u32 {
    SECCOMP_RET_ERRNO | u32::try_from(errno).expect("errnos are positive")
}

/// Confines the calling thread, and what it starts, by a filter that answers one system call with
/// `verdict` and allows all else. Returns what seccomp(2) does: 0, or the listener.
fn install(system_call: libc::c_long, verdict: u32, flags: libc::c_ulong) -> io::Result<i32> {
    let step = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: u16::try_from(code).expect("codes of classic BPF have 16 bits"),
        jt,
        jf,
        k,
    };
    let number = u32::try_from(mem::offset_of!(libc::seccomp_data, nr)).expect("a small offset");
    let system_call = u32::try_from(system_call).expect("numbers of system calls are small");
    let mut steps = [
        step(BPF_LD | BPF_W | BPF_ABS, number, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
        step(BPF_RET | BPF_K, verdict, 0, 0),
        step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = sock_fprog {
        len: u16::try_from(steps.len()).expect("four steps"),
        filter: steps.as_mut_ptr(),
    };
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: `program` and the steps it points to live until the call returns; the kernel copies
    // them.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::try_from(result).expect("a descriptor, or 0"))
}

nix::ioctl_readwrite!(receive_notification, b'!', 0, libc::seccomp_notif);
nix::ioctl_readwrite!(send_answer, b'!', 1, libc::seccomp_notif_resp);

/// Where io_uring_params has its flags, and how many bytes these are (linux/io_uring.h).
const FLAGS_OFFSET: u64 = 8;

/// Answers every io_uring_setup of the confined processes until the last of them has ended.
fn supervise(listener: &OwnedFd, refused_flags: u32) {
    loop {
        // SAFETY: plain integers, for which zero is a value; the kernel wants it zeroed.
        let mut asked: libc::seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: the descriptor is a seccomp listener, which fills in one notification.
        let received = unsafe { receive_notification(listener.as_raw_fd(), &raw mut asked) };
        match received {
            Ok(_) => (),
            // The process was killed before its call was read, or a signal came.
            Err(nix::Error::ENOENT | nix::Error::EINTR) if has_processes(listener) => continue,
            Err(_) => return,
        }
        let lacking = flags_asked_for(&asked).is_none_or(|flags| flags & refused_flags != 0);
        let mut answer = libc::seccomp_notif_resp {
            id: asked.id,
            val: 0,
            error: if lacking { -libc::EINVAL } else { 0 },
            flags: if lacking { 0 } else { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 },
        };
        // SAFETY: the descriptor is a seccomp listener, which reads one answer. That the process is
        // gone by now is no error of ours.
        let _ = unsafe { send_answer(listener.as_raw_fd(), &raw mut answer) };
    }
}

/// Whether a process is left that the listener's filter confines.
fn has_processes(listener: &OwnedFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let mut listening = [PollFd::new(listener.as_fd(), PollFlags::empty())];
    let polled = poll(&mut listening, PollTimeout::ZERO);
    polled.is_ok() && listening[0].revents() != Some(PollFlags::POLLHUP)
}

/// The IORING_SETUP_* flags of the call, read from the memory of the process that waits in it.
fn flags_asked_for(asked: &libc::seccomp_notif) -> Option<u32> {
    let memory = File::open(format!("/proc/{}/mem", asked.pid)).ok()?;
    let mut flags = [0; 4];
    memory.read_exact_at(&mut flags, asked.data.args[1] + FLAGS_OFFSET).ok()?;
    Some(u32::from_ne_bytes(flags))
}
