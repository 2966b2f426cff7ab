// SPDX-License-Identifier: Apache-2.0
//! Confinement: after [`enter`] the process reaches nothing but the descriptors it holds.
//!
//! The order matters. Namespaces and the root folder need root's capabilities; identity and limits
//! follow. The system call filter is last, since it forbids all of these.
mod filter;
mod limits;
mod namespaces;
mod privileges;

use std::os::fd::OwnedFd;

/// How to confine the process.
pub struct Confinement {
    /// The guest's own user and group.
    pub uid: u32,
    /// An empty directory; a small file system that only this process sees is mounted over it.
    pub root: OwnedFd,
    /// Bytes the process may allocate beyond what is mapped now.
    pub heap_bytes: u64,
    /// Threads besides this one.
    pub helpers: usize,
}

/// Bytes of a helper's stack, as of the first thread's.
pub const STACK: usize = 8 << 20;

/// Confines the calling process, which must have one thread. `start` starts the helpers, which have all privileges
/// but for the filter given up then, and waits until they run. On an error the process must end: it may be confined
/// in part.
///
/// # Errors
/// The step that failed and why; a process that is not root fails at the first.
pub fn enter<T>(
    confinement: Confinement,
    start: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let helpers = confinement.helpers;
    let limits = limits::Limits::measure(confinement.heap_bytes, helpers)?;
    namespaces::leave_all()?;
    namespaces::change_root(confinement.root)?;
    privileges::drop_all(confinement.uid)?;
    limits::settle(helpers);
    let started = start()?;
    limits.apply()?;
    filter::install(helpers).map(|()| started)
}

/// Names the step an error belongs to.
fn at<T, E: std::fmt::Display>(step: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("confinement: {step}: {error}"))
}
