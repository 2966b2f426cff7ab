// SPDX-License-Identifier: Apache-2.0
//! The thread that follows the frontends.
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use log::{error, info, warn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vale_proto::{GuestVif, PortId};
use xenstore::{Client, Error, Request, Tx};

use super::pace::{CHANGES, Pace};
use super::phase::{Frontend, Phase, Step};
use super::rings::{self, Place};
use crate::forwarder::Handle;
use crate::port::{Device, RingPort};

/// Fires when a domain ends.
const RELEASE: &str = "@releaseDomain";
/// Between two tries to reach a store that is away.
const RECONNECT: Duration = Duration::from_secs(1);

pub(super) enum Command {
    Add {
        port: PortId,
        guest: GuestVif,
        slots: u32,
    },
    Remove(PortId),
}

pub(super) struct Backend {
    path: PathBuf,
    store: Client,
    forwarder: Handle,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
    vifs: Vec<Vif>,
}

/// A guest's vif.
struct Vif {
    port: PortId,
    guest: GuestVif,
    slots: u32,
    phase: Phase,
    pace: Pace,
}

impl Vif {
    fn frontend(&self, key: &str) -> String {
        let GuestVif { domid, devid } = self.guest;
        format!("/local/domain/{domid}/device/vale/{devid}/{key}")
    }

    fn backend(&self, key: &str) -> String {
        let GuestVif { domid, devid } = self.guest;
        format!("/local/domain/0/backend/vale/{domid}/{devid}/{key}")
    }

    fn name(&self) -> String {
        format!("{}:{}", self.port.switch, self.port.port)
    }
}

impl Backend {
    pub fn connect(
        store: &Path,
        forwarder: Handle,
        commands: Receiver<Command>,
        wake: Arc<OwnedFd>,
    ) -> Result<Self, Error> {
        let path = store.to_owned();
        Ok(Self {
            store: connect(&path)?,
            path,
            forwarder,
            commands,
            wake,
            vifs: Vec::new(),
        })
    }

    /// Serves until the process ends. Without a store the guests' rings go on; no vif changes.
    pub fn run(mut self) {
        loop {
            match self.serve() {
                Err(error) if error.is_fatal() => self.reconnect(&error),
                // The store refused a request, for one vif.
                Err(error) => warn!("xen: {error}"),
                Ok(()) => (),
            }
        }
    }

    /// Waits for a store and looks at all vifs again.
    fn reconnect(&mut self, lost: &Error) {
        error!("xen: {lost}; ports of Xen guests do not change until the store is back");
        loop {
            std::thread::sleep(RECONNECT);
            let Ok(store) = connect(&self.path) else {
                continue;
            };
            self.store = store;
            let vifs = self.vifs.iter();
            let mut watches = vifs.map(|vif| (vif.frontend("state"), vif.name()));
            let again =
                watches.try_for_each(|(path, name)| unless_fatal(self.store.watch(&path, &name)));
            if again.and_then(|()| self.look_at_all()).is_ok() {
                return info!("xen: the store is back");
            }
        }
    }

    /// Takes all commands and events, then waits for more.
    fn serve(&mut self) -> Result<(), Error> {
        while let Ok(command) = self.commands.try_recv() {
            self.execute(command)?;
        }
        self.resume()?;
        match self.store.wait_event(Duration::ZERO) {
            Ok(Some(event)) => self.event(&event.token),
            Ok(None) => self.wait(),
            Err(Error::EventsLost) => self.look_at_all(),
            Err(error) => Err(error),
        }
    }

    fn wait(&self) -> Result<(), Error> {
        let mut ready = [
            PollFd::new(&self.store, PollFlags::IN),
            PollFd::new(&*self.wake, PollFlags::IN),
        ];
        // An interruption only makes us look once more.
        let _ = poll(&mut ready, self.next_resume().as_ref());
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        Ok(())
    }

    /// Looks at the vifs whose wait has ended.
    fn resume(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        for at in 0..self.vifs.len() {
            let vif = &mut self.vifs[at];
            if vif.phase == Phase::Waiting && !vif.pace.waits(now) {
                vif.phase = Phase::Parted;
                unless_fatal(self.look(at))?;
            }
        }
        Ok(())
    }

    /// The time until the next wait of a vif ends; None if no vif waits.
    fn next_resume(&self) -> Option<Timespec> {
        let waiting = self.vifs.iter().filter(|v| v.phase == Phase::Waiting);
        let end = waiting.map(|vif| vif.pace.end()).min()?;
        Timespec::try_from(end.saturating_duration_since(Instant::now())).ok()
    }

    fn execute(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Add { port, guest, slots } => {
                let (phase, pace) = (Phase::New, Pace::new(Instant::now()));
                let vif = Vif {
                    port,
                    guest,
                    slots,
                    phase,
                    pace,
                };
                let watched = self.store.watch(&vif.frontend("state"), &vif.name());
                self.vifs.push(vif);
                watched
            }
            Command::Remove(port) => self.remove(&port),
        }
    }

    fn remove(&mut self, port: &PortId) -> Result<(), Error> {
        let Some(at) = self.vifs.iter().position(|vif| vif.port == *port) else {
            return Ok(());
        };
        let vif = self.vifs.swap_remove(at);
        self.store.unwatch(&vif.frontend("state"), &vif.name())?;
        write_state(&mut self.store, &vif, Phase::Parted)
    }

    fn event(&mut self, token: &str) -> Result<(), Error> {
        if token == RELEASE {
            return self.look_for_dead();
        }
        match self.vifs.iter().position(|vif| vif.name() == token) {
            Some(at) => self.look_paced(at),
            None => Ok(()), // removed meanwhile
        }
    }

    fn look_at_all(&mut self) -> Result<(), Error> {
        for at in 0..self.vifs.len() {
            unless_fatal(self.look(at))?;
        }
        self.look_for_dead()
    }

    /// Unmaps the pages of domains that died: Xen frees a domain only without mappings.
    fn look_for_dead(&mut self) -> Result<(), Error> {
        for at in 0..self.vifs.len() {
            let domid = self.vifs[at].guest.domid;
            let answer = match self.store.call(&Request::is_introduced(domid)) {
                Ok(answer) => answer,
                Err(error) => {
                    unless_fatal(Err(error))?;
                    continue;
                }
            };
            if !answer.starts_with(b"T") && self.vifs[at].phase != Phase::Gone {
                unless_fatal(self.enter(at, Phase::Gone))?;
            }
        }
        Ok(())
    }

    fn look(&mut self, at: usize) -> Result<(), Error> {
        let vif = &self.vifs[at];
        let state = self.store.read_opt(Tx::NONE, &vif.frontend("state"))?;
        match vif.phase.step(Frontend::parse(state.as_deref())) {
            Step::Nothing => Ok(()),
            Step::Connect => self.open(at),
            Step::Enter(phase) => self.enter(at, phase),
        }
    }

    /// Looks at a vif whose guest wrote its state, unless it writes too often.
    fn look_paced(&mut self, at: usize) -> Result<(), Error> {
        let vif = &mut self.vifs[at];
        if vif.phase.is_final() || vif.phase == Phase::Waiting {
            return Ok(());
        }
        match vif.pace.allows(Instant::now()) {
            true => self.look(at),
            false => self.pause(at),
        }
    }

    /// Drops the rings of a vif that changes too often, until its period ends.
    fn pause(&mut self, at: usize) -> Result<(), Error> {
        let name = self.vifs[at].name();
        warn!("{name}: more than {CHANGES} changes of state in a minute; it waits for the next");
        self.enter(at, Phase::Waiting)
    }

    fn open(&mut self, at: usize) -> Result<(), Error> {
        let opened = match self.place(at)? {
            Some(place) => rings::open(&place, self.vifs[at].slots).map_err(|e| e.to_string()),
            None => Err("ring-ref, event-channel: are no numbers".to_owned()),
        };
        match opened {
            Ok(rings) => match self.plug(at, Some(rings)) {
                true => self.enter_quietly(at, Phase::Connected),
                false => Ok(()), // the port was removed meanwhile
            },
            Err(why) => {
                warn!("{}: {why}", self.vifs[at].name());
                self.enter(at, Phase::Refused)
            }
        }
    }

    fn place(&mut self, at: usize) -> Result<Option<Place>, Error> {
        let vif = &self.vifs[at];
        let mut number = |key| {
            let value = self.store.read_opt(Tx::NONE, &vif.frontend(key))?;
            let text = value.and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(text.and_then(|text| text.parse().ok()))
        };
        let (directory, evtchn_port) = (number("ring-ref")?, number("event-channel")?);
        Ok(directory
            .zip(evtchn_port)
            .map(|(directory, evtchn_port)| Place {
                domid: vif.guest.domid,
                directory,
                evtchn_port,
            }))
    }

    /// Drops the rings and enters a phase.
    fn enter(&mut self, at: usize, phase: Phase) -> Result<(), Error> {
        self.plug(at, None);
        self.enter_quietly(at, phase)
    }

    fn enter_quietly(&mut self, at: usize, phase: Phase) -> Result<(), Error> {
        self.vifs[at].phase = phase;
        let vif = &self.vifs[at];
        let GuestVif { domid, devid } = vif.guest;
        info!("{}: vif {devid} of domain {domid}: {phase:?}", vif.name());
        write_state(&mut self.store, vif, phase)
    }

    /// False if the port is gone. The old rings end here, not on the forwarding thread, which
    /// has better things to do than unmapping.
    fn plug(&self, at: usize, rings: Option<RingPort>) -> bool {
        let PortId { switch, port } = self.vifs[at].port.clone();
        let mut device = rings.map_or(Device::Absent, Device::Ring);
        let plugged = self.forwarder.run(move |forwarder| {
            let plugged = forwarder.plug(&switch, &port, &mut device);
            (plugged, device)
        });
        plugged.is_some_and(|(plugged, _unused)| plugged)
    }
}

/// Reports a request that the store refused for one vif; the others go on.
fn unless_fatal(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if !error.is_fatal() => {
            warn!("xen: {error}");
            Ok(())
        }
        other => other,
    }
}

fn connect(path: &Path) -> Result<Client, Error> {
    let mut store = Client::connect(path)?;
    store.watch(RELEASE, RELEASE)?;
    Ok(store)
}

/// Writes the backend's state for the guest. valed makes no backend directory: without one the
/// toolstack has removed the vif.
fn write_state(store: &mut Client, vif: &Vif, phase: Phase) -> Result<(), Error> {
    let Some(state) = phase.state() else {
        return Ok(());
    };
    store.transaction(|tx| match tx.read_opt(&vif.backend("frontend"))? {
        Some(_) => tx.write(&vif.backend("state"), state.as_bytes()),
        None => Ok(()),
    })
}
