// SPDX-License-Identifier: Apache-2.0
//! Threads of a daemon whose memory may be short.
use std::io::{self, ErrorKind};
use std::thread::{Builder, JoinHandle};

/// Address space without which no thread starts: more than the allocator ever takes from its heap (32 MiB, mallopt(3)),
/// so that the system is asked for it.
const ROOM: usize = 64 << 20;

/// Starts a thread for a request. The standard library ends the whole program if a thread that has just started finds
/// no memory for its signal stack, so there has to be some.
///
/// # Errors
/// `OutOfMemory` if less than 64 MiB of address space are left; what [`Builder::spawn`] reports.
pub fn spawn<T: Send + 'static>(
    thread: Builder,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Vec::<u8>::new()
        .try_reserve_exact(ROOM)
        .map_err(|_| io::Error::new(ErrorKind::OutOfMemory, "no memory for a thread"))?;
    thread.spawn(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, Rlimit, setrlimit};
    use std::process::Command;

    const SHORT: &str = "CLICKOS_TEST_MEMORY_IS_SHORT";

    /// Runs itself in a process of its own, which has no more memory.
    #[test]
    fn without_memory_a_thread_is_refused() {
        if std::env::var_os(SHORT).is_none() {
            let name = "threads::tests::without_memory_a_thread_is_refused";
            let run = Command::new(std::env::current_exe().unwrap())
                .args([name, "--exact"])
                .env(SHORT, "1")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        assert_eq!(spawn(Builder::new(), || 7).unwrap().join().unwrap(), 7);
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let used: u64 = pages.split(' ').next().unwrap().parse().unwrap();
        let limit = Rlimit {
            current: Some(used * rustix::param::page_size() as u64),
            maximum: None,
        };
        setrlimit(Resource::As, limit).unwrap();
        for _ in 0..100 {
            let error = spawn(Builder::new(), || ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        }
    }
}
