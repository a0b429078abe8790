//! Which CPUs this process may run on, and pinning a thread to one of them.

use std::io;

use core_affinity::CoreId;

use super::count_call;

/// CPUs that the mask handed to the kernel has room for (glibc's `CPU_SETSIZE`).
const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;

/// Why a thread cannot be pinned.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot run on CPU {cpu}: {source}; `taskset -cp $$` and the cgroup's `cpuset.cpus.effective` say \
     which CPUs this process may use"
)]
pub struct PinError {
    cpu: usize,
    source: io::Error,
}

/// CPUs that the calling thread may run on, ascending. Empty when the kernel will not say.
pub fn allowed_cpus() -> Vec<usize> {
    count_call();
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    cores.into_iter().map(|core| core.id).collect()
}

/// Keeps the calling thread on one CPU.
pub fn pin(cpu: usize) -> Result<(), PinError> {
    if cpu >= CPUS_MAX {
        return Err(PinError { cpu, source: io::Error::from_raw_os_error(libc::EINVAL) });
    }
    count_call();
    if core_affinity::set_for_current(CoreId { id: cpu }) {
        Ok(())
    } else {
        Err(PinError { cpu, source: io::Error::last_os_error() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        for cpu in allowed_cpus() {
            let seen = std::thread::spawn(move || {
                pin(cpu).expect("an allowed CPU");
                (allowed_cpus(), nix::sched::sched_getcpu().ok())
            });
            assert_eq!(seen.join().expect("no panic"), (vec![cpu], Some(cpu)));
        }
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        for cpu in [CPUS_MAX - 1, CPUS_MAX, usize::MAX] {
            let error = pin(cpu).expect_err("no such CPU");
            assert!(error.to_string().contains(&cpu.to_string()));
        }
    }
}
