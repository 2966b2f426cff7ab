// SPDX-License-Identifier: Apache-2.0
//! Event channels.
use crate::{open, request};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `IOCTL_EVTCHN_BIND_INTERDOMAIN`: remote domain, remote port; returns the local port.
const BIND: libc::c_ulong = request(b'E', 1, 8);
/// `IOCTL_EVTCHN_NOTIFY`: local port.
const NOTIFY: libc::c_ulong = request(b'E', 4, 4);

/// valed's end of an event channel of a guest. An event makes its descriptor readable; dropping
/// it closes the channel.
pub struct EventChannel {
    device: File,
    port: u32,
}

impl EventChannel {
    /// Binds to the port that a domain has opened for dom0.
    ///
    /// # Errors
    /// The kernel's; the domain may not have opened it.
    pub fn bind(domid: u16, remote_port: u32) -> io::Result<Self> {
        let device = open("/dev/xen/evtchn")?;
        let arguments = [u32::from(domid), remote_port];
        // SAFETY: the driver reads the two words, which live through the call.
        let port = unsafe { libc::ioctl(device.as_raw_fd(), BIND, arguments.as_ptr()) };
        let port = u32::try_from(port).map_err(|_| io::Error::last_os_error())?;
        Ok(Self { device, port })
    }

    /// Sends an event. It ignores errors, since the guest may be dying.
    pub fn notify(&self) {
        // SAFETY: the driver reads the word, which lives through the call.
        let _ = unsafe { libc::ioctl(self.device.as_raw_fd(), NOTIFY, &raw const self.port) };
    }

    /// Takes the pending events, so that the channel reports the next one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn drain(&self) -> io::Result<()> {
        let mut ports = [0; 64];
        match (&self.device).read(&mut ports) {
            Ok(length) => (&self.device).write_all(&ports[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
