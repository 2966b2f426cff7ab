// SPDX-License-Identifier: Apache-2.0
//! The thread that follows the frontends.
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use log::{error, info, warn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vale_proto::{GuestVif, PortId, PreconnectedVif};
use xenstore::{Client, Code, Error, Request, Transaction, Tx};

use super::keys::{self, FrontendRings, MAX_QUEUES_KEY};
use super::phase::{Frontend, Phase, Step};
use super::rings;
use super::vif::{CHANGES, Vif, port_name};
use crate::device::region_registry::RegionRegistry;
use crate::device::{Absent, Device};
use crate::workers::Handle;
use control_socket::EventLimit;

/// The event of the end of a domain. Only domain 0 gets it: a driver domain learns of the end when the
/// toolstack removes the nodes of the frontend or of the port.
const RELEASE: &str = "@releaseDomain";
/// Time between two tries to reach a lost store.
const RECONNECT: Duration = Duration::from_secs(1);
/// Log lines about refused requests in a minute.
const LOG_LINES_PER_MINUTE: u32 = 10;

pub(super) enum Command {
    Add {
        port: PortId,
        guest: GuestVif,
        slots: u32,
    },
    Remove(PortId),
    /// Connects to a vif that gets its port later.
    AddPreconnected {
        guest: GuestVif,
        slots: u32,
    },
    RemovePreconnected {
        domid: u16,
    },
    ListPreconnected(Sender<Vec<PreconnectedVif>>),
}

pub(super) struct Backend {
    path: PathBuf,
    store: Client,
    /// The domain in which valed runs.
    pub(super) domain: u16,
    forwarder: Handle,
    regions: Arc<RegionRegistry>,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
    pub(super) vifs: Vec<Vif>,
    lines: EventLimit,
}

impl Backend {
    pub fn connect(
        store: &Path,
        forwarder: Handle,
        regions: Arc<RegionRegistry>,
        commands: Receiver<Command>,
        wake: Arc<OwnedFd>,
    ) -> Result<Self, Error> {
        let path = store.to_owned();
        let (store, domain) = connect(&path)?;
        if domain != 0 {
            info!("xen: valed runs in the driver domain {domain}");
        }
        Ok(Self {
            store,
            domain,
            path,
            forwarder,
            regions,
            commands,
            wake,
            vifs: Vec::new(),
            lines: EventLimit::new(LOG_LINES_PER_MINUTE),
        })
    }

    /// Serves until the process ends. Without a store the guests' rings go on; no vif changes.
    pub fn run(mut self) {
        loop {
            match self.serve() {
                Err(error) if error.is_fatal() => self.reconnect(&error),
                result => drop(self.unless_fatal(result)),
            }
        }
    }

    /// Reports a request that the store refused for one vif; the others go on.
    fn unless_fatal(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error) if !error.is_fatal() => {
                if self.lines.allows(Instant::now()) {
                    warn!("xen: {error}");
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Runs `work` for each vif, until the connection to the store fails.
    fn for_each(&mut self, work: fn(&mut Self, usize) -> Result<(), Error>) -> Result<(), Error> {
        (0..self.vifs.len()).try_for_each(|index| {
            let result = work(self, index);
            self.unless_fatal(result)
        })
    }

    /// Waits for a store and watches all vifs again; each watch brings an event at once.
    fn reconnect(&mut self, lost: &Error) {
        error!("xen: {lost}; ports of Xen guests do not change until the store is back");
        loop {
            std::thread::sleep(RECONNECT);
            let Ok((store, _)) = connect(&self.path) else {
                continue;
            };
            self.store = store;
            self.vifs.iter_mut().for_each(|vif| vif.watched = false);
            if self.for_each(Self::watch).is_ok() {
                return info!("xen: the store is back");
            }
        }
    }

    /// Watches the frontend of a vif, or ends the watch: valed ignores a refused vif, and one that
    /// waits.
    fn watch(&mut self, index: usize) -> Result<(), Error> {
        let vif = &mut self.vifs[index];
        let wanted = !vif.phase.is_final() && vif.phase != Phase::Waiting;
        if vif.watched == wanted {
            return Ok(());
        }
        vif.watched = wanted;
        match wanted {
            true => self.store.watch(&vif.frontend("state"), &vif.token),
            false => self.store.unwatch(&vif.frontend("state"), &vif.token),
        }
    }

    /// Takes all commands and events, then waits for more.
    fn serve(&mut self) -> Result<(), Error> {
        while let Ok(command) = self.commands.try_recv() {
            self.execute(command)?;
        }
        self.for_each(Self::resume)?;
        match self.store.wait_event(Duration::ZERO) {
            Ok(Some(event)) => self.event(&event.token),
            Ok(None) => self.wait(),
            Err(Error::EventsLost) => self.check_all(),
            Err(error) => Err(error),
        }
    }

    fn wait(&self) -> Result<(), Error> {
        let mut ready = [
            PollFd::new(&self.store, PollFlags::IN),
            PollFd::new(&*self.wake, PollFlags::IN),
        ];
        // After an interruption the thread checks once more.
        let _ = poll(&mut ready, self.next_resume().as_ref());
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        Ok(())
    }

    /// Begins again with a vif whose wait has ended.
    fn resume(&mut self, index: usize) -> Result<(), Error> {
        let vif = &mut self.vifs[index];
        if vif.phase == Phase::Waiting && Instant::now() >= vif.changes.end() {
            vif.phase = Phase::New;
        }
        self.watch(index)
    }

    /// The time until the next wait of a vif ends; None if no vif waits.
    fn next_resume(&self) -> Option<Timespec> {
        let waiting = self.vifs.iter().filter(|v| v.phase == Phase::Waiting);
        let end = waiting.map(|vif| vif.changes.end()).min()?;
        Timespec::try_from(end.saturating_duration_since(Instant::now())).ok()
    }

    fn execute(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Add { port, guest, slots } => self.add(port, guest, slots),
            Command::Remove(port) => self.remove(&port),
            Command::AddPreconnected { guest, slots } => self.add_preconnected(guest, slots),
            Command::RemovePreconnected { domid } => self.remove_preconnected(domid),
            Command::ListPreconnected(answer) => {
                // Its reader may have given up.
                let _ = answer.send(self.list_preconnected());
                Ok(())
            }
        }
    }

    /// Gives a port to a vif: to a preconnected one that is connected already, or to a new one.
    fn add(&mut self, port: PortId, guest: GuestVif, slots: u32) -> Result<(), Error> {
        let taken = self.take_over(&port, guest, slots);
        if matches!(taken, Ok(true)) {
            return Ok(());
        }
        let token = port_name(&port);
        let followed = self.follow(Vif::new(Some(port), token, self.domain, guest, slots));
        taken.and(followed)
    }

    pub(super) fn follow(&mut self, vif: Vif) -> Result<(), Error> {
        self.vifs.push(vif);
        self.watch(self.vifs.len() - 1)
    }

    fn remove(&mut self, port: &PortId) -> Result<(), Error> {
        let mut vifs = self.vifs.iter();
        match vifs.position(|vif| vif.port.as_ref() == Some(port)) {
            Some(index) => self.leave(index),
            None => Ok(()),
        }
    }

    /// Stops following a vif, and tells the guest. Its rings are gone.
    pub(super) fn leave(&mut self, index: usize) -> Result<(), Error> {
        let vif = self.vifs.swap_remove(index);
        if vif.watched {
            self.store.unwatch(&vif.frontend("state"), &vif.token)?;
        }
        write_state(&mut self.store, &vif, Phase::Closed, &self.regions)
    }

    fn event(&mut self, token: &str) -> Result<(), Error> {
        if token == RELEASE {
            return self.check_domains();
        }
        match self.vifs.iter().position(|vif| vif.token == token) {
            // An event from before the watch ended.
            Some(index) if !self.vifs[index].watched => Ok(()),
            Some(index) if self.vifs[index].changes.allows(Instant::now()) => {
                self.check_frontend(index)
            }
            Some(index) => self.pause(index),
            None => Ok(()), // removed meanwhile
        }
    }

    fn check_all(&mut self) -> Result<(), Error> {
        self.for_each(Self::check_frontend)?;
        self.check_domains()
    }

    fn check_domains(&mut self) -> Result<(), Error> {
        self.for_each(Self::check_domain)?;
        self.forget_dead();
        Ok(())
    }

    /// Unmaps the pages of a domain that died: Xen frees a domain only without mappings.
    fn check_domain(&mut self, index: usize) -> Result<(), Error> {
        let vif = &self.vifs[index];
        if !vif.may_die() || self.domain != 0 {
            return Ok(());
        }
        let answer = self.store.call(&Request::is_introduced(vif.guest.domid))?;
        match answer.starts_with(b"T") {
            true => Ok(()),
            false => self.enter(index, Phase::Gone),
        }
    }

    fn check_frontend(&mut self, index: usize) -> Result<(), Error> {
        let vif = &self.vifs[index];
        let state = read(&mut self.store, &vif.frontend("state"))?;
        let frontend = Frontend::parse(state.as_deref());
        let vif = &mut self.vifs[index];
        vif.seen |= frontend != Frontend::Absent;
        match vif.phase.step(frontend) {
            Step::Nothing => Ok(()),
            Step::Connect => self.open(index),
            Step::Enter(phase) => self.enter(index, phase),
        }
    }

    /// Drops the rings of a vif that changes too often, until its period ends.
    fn pause(&mut self, index: usize) -> Result<(), Error> {
        let name = self.vifs[index].name();
        warn!("{name}: more than {CHANGES} changes of state in a minute; it waits for the next");
        self.enter(index, Phase::Waiting)
    }

    fn open(&mut self, index: usize) -> Result<(), Error> {
        let found = self.frontend_rings(index)?;
        let vif = &self.vifs[index];
        let open = |found: FrontendRings| {
            let opened = rings::open(vif.guest.domid, &found, vif.slots, &self.regions);
            opened.map_err(|e| e.to_string())
        };
        let opened = found.and_then(open);
        match opened {
            Ok(rings) => match self.plug(index, Some(rings)) {
                true => self.enter_quietly(index, Phase::Connected),
                false => Ok(()), // the port was removed meanwhile
            },
            Err(why) => {
                warn!("{}: {why}", self.vifs[index].name());
                self.enter(index, Phase::Refused)
            }
        }
    }

    fn frontend_rings(&mut self, index: usize) -> Result<Result<FrontendRings, String>, Error> {
        let vif = &self.vifs[index];
        let most = keys::most_queues(vif.guest.netback, &self.regions);
        keys::read(most, |key| {
            let value = read(&mut self.store, &vif.frontend(key))?;
            Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        })
    }

    /// Drops the rings and enters a phase.
    fn enter(&mut self, index: usize, phase: Phase) -> Result<(), Error> {
        self.plug(index, None);
        self.enter_quietly(index, phase)
    }

    fn enter_quietly(&mut self, index: usize, phase: Phase) -> Result<(), Error> {
        let vif = &mut self.vifs[index];
        vif.phase = phase;
        let GuestVif { domid, devid, .. } = vif.guest;
        if vif.lines.allows(Instant::now()) {
            info!("{}: vif {devid} of domain {domid}: {phase:?}", vif.name());
        }
        write_state(&mut self.store, vif, phase, &self.regions)?;
        self.watch(index)
    }

    /// False if the port is gone. This thread unmaps the old rings: it takes the forwarding thread
    /// milliseconds. The rings of a preconnected vif stay here, where no frame is read or written.
    pub(super) fn plug(&mut self, index: usize, rings: Option<Box<dyn Device>>) -> bool {
        let vif = &mut self.vifs[index];
        let Some(port) = &vif.port else {
            vif.rings = rings;
            return true;
        };
        let device = rings.unwrap_or_else(|| Box::new(Absent));
        let plugged = self.forwarder.plug(port, device);
        plugged.unwrap_or(false)
    }
}

/// Connects to the store; gives also the number of the own domain, which the toolstack writes.
fn connect(path: &Path) -> Result<(Client, u16), Error> {
    let mut store = Client::connect(path)?;
    let domain = match store.read_opt(Tx::NONE, "domid")? {
        Some(text) => parse(&text).ok_or(Error::Protocol("domid: not a domain"))?,
        None => 0, // of a store without Xen
    };
    if domain == 0 {
        store.watch(RELEASE, RELEASE)?;
    }
    Ok((store, domain))
}

fn parse(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A guest's value. The store keeps a missing node from a driver domain, like one that the guest
/// hides.
fn read(store: &mut Client, path: &str) -> Result<Option<Vec<u8>>, Error> {
    match store.read_opt(Tx::NONE, path) {
        Err(error) if error.is(Code::Access) => Ok(None),
        value => value,
    }
}

/// Writes the backend's state for the guest. The highest version of rings and the most queues go before the
/// guest makes rings.
///
/// valed makes no backend directory: without one the toolstack has removed the vif.
fn write_state(
    store: &mut Client,
    vif: &Vif,
    phase: Phase,
    regions: &RegionRegistry,
) -> Result<(), Error> {
    let Some(state) = phase.state() else {
        return Ok(());
    };
    let netback = vif.guest.netback;
    let (version, most) = (regions.version(), keys::most_queues(netback, regions));
    store.transaction(|tx| match tx.read_opt(&vif.backend("frontend"))? {
        Some(_) => {
            if phase == Phase::InitWait {
                write_number(tx, &vif.own("ring-version"), version)?;
            }
            // The guest of a vif reads netback's keys.
            if phase == Phase::InitWait && !netback {
                write_number(tx, &vif.own(MAX_QUEUES_KEY), most)?;
            }
            tx.write(&vif.own("state"), state.as_bytes())
        }
        None => Ok(()),
    })
}

fn write_number(tx: &mut Transaction<'_>, path: &str, number: impl ToString) -> Result<(), Error> {
    tx.write(path, number.to_string().as_bytes())
}
