// SPDX-License-Identifier: Apache-2.0
//! Resource limits.
#![allow(unsafe_code)]

use super::{STACK, at};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Most bytes of the console, unless the parent process set a lower limit.
const CONSOLE_BYTES: u64 = 1 << 20;

/// Blocks from this size on are mapped one by one, as glibc does at first.
const LARGE_BLOCK_BYTES: i32 = 128 << 10;

/// Descriptors that vifs may bring later: four each, and those of a message that is refused.
const PLUGGED_DESCRIPTORS: u64 = 4 * 16 + 8;

/// Descriptors of a helper: one while it waits, of a configuration and of the one that replaces it, and room between.
const HELPER_DESCRIPTORS: u64 = 4;
/// Address space of a helper besides its stack.
const HELPER_BYTES: u64 = 64 << 10;

/// Limits that were measured while /proc was still there.
pub(super) struct Limits {
    address_space: u64,
    descriptors: u64,
}

impl Limits {
    /// Allows `heap_bytes` and the stacks of helpers beyond what is mapped now, the descriptors that are open now, and
    /// those of vifs to come.
    pub(super) fn measure(heap_bytes: u64, helpers: usize) -> Result<Self, String> {
        let (helpers, of_one) = (helpers as u64, STACK as u64 + HELPER_BYTES);
        // thread 0 waits as its helpers do
        let waiting = match helpers {
            0 => 0,
            helpers => (helpers + 1) * HELPER_DESCRIPTORS,
        };
        let mapped = at("/proc/self/statm", mapped_bytes())?;
        let open = at("/proc/self/fd", highest_descriptor())? + 1;
        let descriptors = open + PLUGGED_DESCRIPTORS + waiting;
        Ok(Self {
            address_space: mapped
                .saturating_add(heap_bytes)
                .saturating_add(helpers * of_one),
            descriptors,
        })
    }

    pub(super) fn apply(&self) -> Result<(), String> {
        let console = getrlimit(Resource::Fsize).maximum.unwrap_or(u64::MAX);
        for (resource, name, most) in [
            (Resource::As, "RLIMIT_AS", self.address_space),
            // poll(2) takes as many descriptors as may be open.
            (Resource::Nofile, "RLIMIT_NOFILE", self.descriptors),
            (Resource::Nproc, "RLIMIT_NPROC", 0),
            (Resource::Fsize, "RLIMIT_FSIZE", console.min(CONSOLE_BYTES)),
            (Resource::Core, "RLIMIT_CORE", 0),
        ] {
            let limit = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            at(name, setrlimit(resource, limit))?;
        }
        Ok(())
    }
}

/// Settles what only a process of one thread can.
pub(super) fn settle(helpers: usize) {
    ignore_full_console();
    forbid_backtraces();
    keep_large_blocks_apart();
    if helpers > 0 {
        share_one_heap();
    }
}

fn mapped_bytes() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text
        .split(' ')
        .next()
        .and_then(|pages| pages.parse::<u64>().ok());
    let wrong = || std::io::Error::other("its first field is not a number");
    Ok(pages.ok_or_else(wrong)? * rustix::param::page_size() as u64)
}

fn highest_descriptor() -> std::io::Result<u64> {
    let names = std::fs::read_dir("/proc/self/fd")?;
    let numbers = names.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.max().unwrap_or(2))
}

/// A write beyond RLIMIT_FSIZE shall fail, not kill: packets matter more than the console.
fn ignore_full_console() {
    // SAFETY: SIGXFSZ exists, SIG_IGN is not a function of ours, and no other thread runs that
    // could change signal dispositions at the same time. It cannot fail with these arguments.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Else glibc soon takes large blocks from its heap. A block that grows there is copied and leaves
/// a hole, so a text that doubles needs three times its size.
fn keep_large_blocks_apart() {
    // SAFETY: no other thread runs that could allocate at the same time. A number that is refused
    // changes nothing.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES) };
}

/// Else glibc reserves 64 MiB of address space for each thread, and grows into them by mprotect(2), which the filter
/// forbids.
fn share_one_heap() {
    // SAFETY: no other thread runs that could allocate at the same time. A number that is refused
    // changes nothing.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// A backtrace reads the program's own file, which would end a confined process by the filter
/// instead of by the error it is about.
fn forbid_backtraces() {
    for name in ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"] {
        // SAFETY: no other thread runs that could read the environment at the same time.
        unsafe { std::env::remove_var(name) };
    }
}
