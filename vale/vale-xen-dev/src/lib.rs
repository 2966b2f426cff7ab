// SPDX-License-Identifier: Apache-2.0
//! Pages and event channels of Xen guests, in dom0, by the devices every Linux dom0 has:
//! `/dev/xen/gntdev` and `/dev/xen/evtchn` (`xen/gntdev.h`, `xen/evtchn.h`).
//!
//! No other crate of the switch makes system calls for Xen. Its interface is safe to use, whatever
//! the guest does.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod evtchn;
#[allow(unsafe_code)]
mod gntdev;

pub use evtchn::EventChannel;
pub use gntdev::{map, read};

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

/// `_IOC(_IOC_NONE, kind, number, size)`: these drivers do not encode the direction.
const fn request(kind: u8, number: u8, size: usize) -> libc::c_ulong {
    (size as libc::c_ulong) << 16 | (kind as libc::c_ulong) << 8 | number as libc::c_ulong
}

fn open(path: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let opened = options
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path);
    opened.map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}
