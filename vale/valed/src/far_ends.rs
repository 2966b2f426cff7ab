// SPDX-License-Identifier: Apache-2.0
//! Lets the ports follow their far ends: interfaces, processes and pipes. The thread of the Xen store
//! does so for Xen guests.
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use vale_netdev::{interface_index, open_interface_events};
use vale_proto::FarEnd;

use crate::device::Reopening;
use crate::device::host;
use crate::switch::{FarEndFound, FarEndNow};
use crate::workers::Handle;

/// A process that has ended, and a pipe, are noticed by the next look. The kernel tells of interfaces.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Makes the thread look at once.
#[derive(Clone, Default)]
pub struct Poke(Option<Arc<OwnedFd>>);

impl Poke {
    pub fn look(&self) {
        if let Some(fd) = &self.0 {
            // A full counter wakes the thread, too.
            let _ = rustix::io::write(&**fd, &1u64.to_ne_bytes());
        }
    }
}

/// Starts the thread, which ends with the workers.
///
/// # Errors
/// There is no further thread or descriptor.
pub fn start(forwarder: Handle) -> io::Result<Poke> {
    let events = open_interface_events()?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let poke = Arc::new(eventfd(0, flags)?);
    let poked = Arc::clone(&poke);
    let follow = move || {
        while look(&forwarder).is_some() {
            wait(&events, &poked);
        }
    };
    let thread = std::thread::Builder::new().name("far-ends".to_owned());
    thread.spawn(follow)?;
    Ok(Poke(Some(poke)))
}

/// Waits until an interface changes, a port has been added or removed, or the time is over.
fn wait(events: &OwnedFd, poke: &OwnedFd) {
    let mut fds = [
        PollFd::new(events, PollFlags::IN),
        PollFd::new(poke, PollFlags::IN),
    ];
    // The look that follows a failure finds what it would have told.
    let _ = poll(&mut fds, Some(&LOOK));
    let mut message = [0; 8 << 10];
    // A socket that has lost messages says so once.
    while matches!(
        rustix::io::read(events, &mut message),
        Ok(_) | Err(Errno::NOBUFS | Errno::INTR)
    ) {}
    let _ = rustix::io::read(poke, &mut message[..8]);
}

/// Notes the states that have changed. None if valed stops.
fn look(forwarder: &Handle) -> Option<()> {
    for found in forwarder.far_ends()? {
        let FarEndFound {
            id,
            number,
            noted,
            now,
        } = found;
        let (state, interface) = match now {
            FarEndNow::Is(state) => (state, None),
            FarEndNow::Interface(interface) => {
                let state = host::far_end(&interface.ifname, interface.index);
                (state, Some(interface))
            }
        };
        if state != noted {
            log::info!("{}:{}: its far end is {state}", id.switch, id.port);
            forwarder.set_far_end(&id, number, state)?;
        }
        // An interface that was gone may have its old number, but the socket has lost it.
        if FarEnd::Gone == state || FarEnd::Gone == noted {
            if let Some(device) = interface.and_then(reopen) {
                forwarder.plug_again(&id, number, device)?;
                log::info!("{}:{}: its interface is back", id.switch, id.port);
            }
        }
    }
    Some(())
}

/// Opens the new interface of the name, if there is one.
fn reopen(interface: Reopening) -> Option<Box<dyn crate::device::Device>> {
    interface_index(&interface.ifname).ok()?;
    match (interface.open)() {
        Ok(device) => Some(device),
        // It may be gone again, or another program may have it: the next look tries again.
        Err(error) => {
            log::debug!("{}: {error}", interface.ifname);
            None
        }
    }
}
