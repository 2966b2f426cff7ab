// SPDX-License-Identifier: Apache-2.0
//! Ports of Xen guests: a thread follows their frontends in the Xen store, maps their rings, and
//! hands them to the forwarder.
mod backend;
mod keys;
mod phase;
mod preconnected;
mod rings;
mod vif;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use vale_proto::{GuestVif, PortId, PreconnectedVif};

use crate::device::region_registry::RegionRegistry;
use crate::workers::Handle;
use backend::{Backend, Command};

/// How long the thread may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Sends work to the thread.
#[derive(Clone)]
pub struct Xen {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
}

impl Xen {
    /// Starts the thread, which ends with the process.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub fn start(
        store: &Path,
        forwarder: Handle,
        regions: Arc<RegionRegistry>,
    ) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (commands, receiver) = channel();
        let backend = Backend::connect(store, forwarder, regions, receiver, Arc::clone(&wake))
            .map_err(io::Error::other)?;
        std::thread::Builder::new()
            .name("xen".into())
            .spawn(move || backend.run())?;
        Ok(Self { commands, wake })
    }

    /// Follows a guest's vif from now on. False if the thread has ended.
    pub fn add(&self, port: PortId, guest: GuestVif, slots: u32) -> bool {
        self.send(Command::Add { port, guest, slots })
    }

    /// Stops following a vif and tells the guest. The rings of the port must be gone.
    pub fn remove(&self, port: PortId) {
        self.send(Command::Remove(port));
    }

    /// Connects to a vif that gets its port later. False if the thread has ended.
    pub fn add_preconnected(&self, guest: GuestVif, slots: u32) -> bool {
        self.send(Command::AddPreconnected { guest, slots })
    }

    /// Leaves the preconnected vifs of a domain. False if the thread has ended.
    pub fn remove_preconnected(&self, domid: u16) -> bool {
        self.send(Command::RemovePreconnected { domid })
    }

    /// The preconnected vifs. None if the thread has ended or waits for the store.
    pub fn preconnected(&self) -> Option<Vec<PreconnectedVif>> {
        let (sender, answer) = channel();
        self.send(Command::ListPreconnected(sender));
        answer.recv_timeout(ANSWER).ok()
    }

    fn send(&self, command: Command) -> bool {
        let sent = self.commands.send(command).is_ok();
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        sent
    }
}
