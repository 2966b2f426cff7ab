// SPDX-License-Identifier: Apache-2.0
//! The open ports of the process, by descriptor, for the wrappers of `poll` and `ioctl`.
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::port::Port;

/// A port that several threads may use.
pub type Shared = Arc<Mutex<Port>>;

static PORTS: RwLock<Vec<(RawFd, Shared)>> = RwLock::new(Vec::new());

pub fn add(fd: RawFd, port: Shared) {
    let mut ports = PORTS.write().unwrap_or_else(PoisonError::into_inner);
    ports.push((fd, port));
}

pub fn remove(fd: RawFd) {
    let mut ports = PORTS.write().unwrap_or_else(PoisonError::into_inner);
    ports.retain(|(own, _)| *own != fd);
}

/// The port of a descriptor; None for a descriptor of others.
pub fn find(fd: RawFd) -> Option<Shared> {
    let ports = PORTS.read().unwrap_or_else(PoisonError::into_inner);
    let found = ports.iter().find(|(own, _)| *own == fd);
    found.map(|(_, port)| Arc::clone(port))
}

pub fn lock(port: &Shared) -> MutexGuard<'_, Port> {
    port.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Detaches the ports that the program did not close. A port that another thread uses right now
/// stays attached.
pub fn detach_all() {
    let ports = PORTS.try_read();
    for (_, port) in ports.iter().flat_map(|ports| ports.iter()) {
        if let Ok(mut port) = port.try_lock() {
            port.finish();
            port.detach();
        }
    }
}
