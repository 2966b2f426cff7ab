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
}

/// Confines the calling process, which must have one thread. On an error it must end: it may be
/// confined in part.
///
/// # Errors
/// The step that failed and why; a process that is not root fails at the first.
pub fn enter(confinement: Confinement) -> Result<(), String> {
    let limits = limits::Limits::measure(confinement.heap_bytes)?;
    namespaces::leave_all()?;
    namespaces::change_root(confinement.root)?;
    privileges::drop_all(confinement.uid)?;
    limits.apply()?;
    filter::install()
}

/// Names the step an error belongs to.
fn at<T, E: std::fmt::Display>(step: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("confinement: {step}: {error}"))
}
