// SPDX-License-Identifier: Apache-2.0
//! Threads of a daemon whose memory may be short.
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::thread::{Builder, JoinHandle};

use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

/// Address space without which no thread starts, in bytes: its stack, its signal stack, and what others take meanwhile.
const ROOM: u64 = 4 << 20;

/// Starts a thread for a request. The standard library ends the whole program if a thread that has just started finds
/// no memory for its signal stack, so there has to be some.
///
/// # Errors
/// `OutOfMemory` if less than 4 MiB are left of what RLIMIT_AS allows; what [`Builder::spawn`] reports.
pub fn spawn<T: Send + 'static>(
    thread: Builder,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    match getrlimit(Resource::As).current {
        Some(limit) if used().is_some_and(|used| used + ROOM > limit) => Err(io::Error::new(
            ErrorKind::OutOfMemory,
            "no memory for a thread",
        )),
        _ => thread.spawn(body),
    }
}

/// Bytes of address space that this process has (proc(5), statm), read without an allocation.
fn used() -> Option<u64> {
    let mut bytes = [0; 128];
    let len = File::open("/proc/self/statm")
        .and_then(|mut file| file.read(&mut bytes))
        .ok()?;
    let text = std::str::from_utf8(&bytes[..len]).ok()?;
    let pages: u64 = text.split(' ').next()?.parse().ok()?;
    Some(pages * page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Rlimit, setrlimit};
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
        let limit = Rlimit {
            current: used(),
            maximum: None,
        };
        setrlimit(Resource::As, limit).unwrap();
        for _ in 0..100 {
            let error = spawn(Builder::new(), || ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        }
    }
}
