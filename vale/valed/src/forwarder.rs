// SPDX-License-Identifier: Apache-2.0
//! The forwarding thread: polls while there is work, sleeps when there is none.
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use vale_proto::{
    ChainId, ChainInfo, ChainSet, PortId, PortInfo, PortLimit, PortName, PortPeers, SwitchName,
    Trace,
};

use crate::chain::SetError;
use crate::device::{Absent, Device};
use crate::filter::Filter;
use crate::guard::Guard;
use crate::limit::{Nanoseconds, PortLimits};
use crate::nsh::Link;
use crate::port::Port;
use crate::switch::{AddError, MAX_PORTS, Scratch, Switch};

/// Most switches.
pub const MAX_SWITCHES: usize = 64;
/// The thread polls this long after the last frame: waking up costs about as much.
const SPIN: Duration = Duration::from_micros(30);
/// The time between two polls of the interfaces while the thread is busy.
const EVENTS_EVERY: Duration = Duration::from_micros(20);
/// A guest that frees its full ring wakes no one: valed looks again after this time.
const HOLD_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
const COMMANDS: usize = 64;
/// Token of the eventfd that announces commands.
const COMMAND_TOKEN: u64 = u64::MAX;

type Command = Box<dyn FnOnce(&mut Forwarder) + Send>;

/// Sends work to the forwarding thread.
#[derive(Clone)]
pub struct Handle {
    commands: SyncSender<Command>,
    wake: Arc<OwnedFd>,
}

impl Handle {
    /// Runs `work` on the forwarding thread, between two rounds, and waits for its result. None
    /// if the thread has ended.
    pub fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Forwarder) -> R + Send + 'static,
    ) -> Option<R> {
        let (reply, result) = sync_channel(1);
        let command: Command = Box::new(move |forwarder| {
            let _ = reply.send(work(forwarder));
        });
        self.commands.send(command).ok()?;
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        result.recv().ok()
    }

    /// Ends [`Forwarder::run`].
    pub fn stop(&self) {
        self.run(|forwarder| forwarder.running = false);
    }
}

pub struct Forwarder {
    switches: Vec<Option<Switch>>,
    commands: Receiver<Command>,
    epoll: OwnedFd,
    events: Vec<Event>,
    wake: Arc<OwnedFd>,
    running: bool,
    /// The time of the round.
    now: Nanoseconds,
}

impl Forwarder {
    pub fn new() -> io::Result<(Self, Handle)> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let (token, flags) = (
            EventData::new_u64(COMMAND_TOKEN),
            EventFlags::IN | EventFlags::ET,
        );
        epoll::add(&epoll, &wake, token, flags)?;
        let (sender, commands) = sync_channel(COMMANDS);
        let handle = Handle {
            commands: sender,
            wake: Arc::clone(&wake),
        };
        let events = Vec::with_capacity(64);
        Ok((
            Self {
                switches: Vec::new(),
                commands,
                epoll,
                events,
                wake,
                running: true,
                now: 0,
            },
            handle,
        ))
    }

    /// Forwards until [`Handle::stop`].
    pub fn run(&mut self) -> io::Result<()> {
        let mut scratch = Scratch::default();
        let start = Instant::now();
        let mut last_frame = start;
        let mut last_events = last_frame;
        loop {
            self.now = scratch.now;
            self.run_commands();
            if !self.running {
                return Ok(());
            }
            let moved = self.round(&mut scratch);
            let now = Instant::now();
            scratch.now = u64::try_from((now - start).as_nanos()).unwrap_or(u64::MAX);
            if moved {
                last_frame = now;
            }
            if now - last_frame >= SPIN {
                self.sleep()?;
                scratch.now = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            } else if now - last_events >= EVENTS_EVERY && self.has_interfaces() {
                last_events = now;
                self.take_events(Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                }))?;
            } else if !moved {
                std::hint::spin_loop();
            }
        }
    }

    fn run_commands(&mut self) {
        loop {
            match self.commands.try_recv() {
                Ok(command) => command(self),
                Err(TryRecvError::Empty) => return,
                // All handles are gone, so no caller can stop the thread or add a port.
                Err(TryRecvError::Disconnected) => return self.running = false,
            }
        }
    }

    fn round(&mut self, scratch: &mut Scratch) -> bool {
        let mut moved = false;
        for switch in self.switches.iter_mut().flatten() {
            moved |= switch.round(scratch);
        }
        moved
    }

    fn has_interfaces(&self) -> bool {
        self.switches
            .iter()
            .flatten()
            .any(|s| s.ports().any(|p| p.device.is_of_kernel()))
    }

    /// Waits for a kick, an interface or a command, unless one has come meanwhile.
    fn sleep(&mut self) -> io::Result<()> {
        let mut busy = false;
        for switch in self.switches.iter_mut().flatten() {
            busy |= switch.sleep_prepare();
        }
        if !busy {
            let holds = self.switches.iter().flatten().any(Switch::holds_frames);
            self.take_events(holds.then_some(&HOLD_POLL))?;
        }
        self.switches
            .iter_mut()
            .flatten()
            .for_each(Switch::wake_done);
        Ok(())
    }

    fn take_events(&mut self, timeout: Option<&Timespec>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout,
        ) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(e) => return Err(e.into()),
        }
        for event in &self.events {
            let token = event.data.u64();
            if token == COMMAND_TOKEN {
                // Edge-triggered, so this only keeps the counter from filling up.
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                continue;
            }
            let (switch, port) = (
                (token / MAX_PORTS as u64) as usize,
                (token % MAX_PORTS as u64) as usize,
            );
            if let Some(Some(switch)) = self.switches.get_mut(switch) {
                switch.event(port);
            }
        }
        Ok(())
    }

    pub fn switch_mut(&mut self, name: &SwitchName) -> Option<&mut Switch> {
        self.switches.iter_mut().flatten().find(|s| s.name == *name)
    }

    /// Adds a port, and its switch with the first one. A refused port stays with the caller, which
    /// closes it on a thread of its own: closing takes milliseconds.
    pub fn add(
        &mut self,
        name: &SwitchName,
        offered: &mut Option<Box<Port>>,
    ) -> Result<(), AddFailure> {
        let Some(port) = offered.as_deref() else {
            return Err(AddFailure::Switch(AddError::Full));
        };
        if let Some((ifname, vlan)) = port.device.interface() {
            if self
                .switches
                .iter()
                .flatten()
                .flat_map(Switch::ports)
                .any(|p| match p.device.interface() {
                    Some((name, other)) => {
                        name == ifname && (vlan.is_none() || other.is_none() || vlan == other)
                    }
                    None => false,
                })
            {
                return Err(AddFailure::InterfaceTaken(ifname.to_owned()));
            }
        }
        let found = self
            .switches
            .iter()
            .position(|s| s.as_ref().is_some_and(|s| s.name == *name));
        let index = found
            .or_else(|| self.switches.iter().position(Option::is_none))
            .unwrap_or(self.switches.len());
        if index == MAX_SWITCHES {
            return Err(AddFailure::TooManySwitches);
        }
        self.switches
            .resize_with(self.switches.len().max(index + 1), || None);
        let switch = self.switches[index].get_or_insert_with(|| Switch::new(name.clone()));
        let port_name = port.name.clone();
        let added = switch.add(offered).map(drop).map_err(AddFailure::Switch);
        let result = added.and_then(|()| self.watch(name, &port_name).map_err(AddFailure::Watch));
        if let Err(AddFailure::Watch(_)) = result {
            *offered = self.remove(name, &port_name);
        }
        self.drop_if_empty(name);
        result
    }

    /// Adds a port to the epoll set.
    fn watch(&mut self, name: &SwitchName, port: &PortName) -> Result<(), Errno> {
        let mut switches = self.switches.iter_mut().enumerate();
        let found = switches.find_map(|(index, switch)| {
            let switch = switch.as_mut().filter(|s| s.name == *name)?;
            switch.find(port).map(|found| (index, found))
        });
        let Some((switch, (index, port))) = found else {
            return Ok(());
        };
        let Some(fd) = port.device.event_fd() else {
            return Ok(());
        };
        let token = EventData::new_u64((switch * MAX_PORTS + index) as u64);
        epoll::add(&self.epoll, fd, token, EventFlags::IN | EventFlags::ET)
    }

    /// Gives a port of a Xen guest its rings, or none. False if there is no such port, or epoll
    /// refuses the rings. The caller closes the unused device, which `rings` then holds, on a thread
    /// of its own.
    pub fn plug(
        &mut self,
        name: &SwitchName,
        port: &PortName,
        rings: &mut Box<dyn Device>,
    ) -> bool {
        let found = self.switch_mut(name).and_then(|s| s.port_mut(port));
        let Some(port_mut) = found else {
            return false;
        };
        // The caller closes the old descriptor with the old rings, which takes it out of epoll.
        *rings = port_mut.replace(std::mem::replace(rings, Box::new(Absent)));
        self.resolve(name);
        self.watch(name, port).is_ok()
    }

    /// Removes a port, and its switch with the last one. The caller closes the port on a thread of
    /// its own.
    #[must_use = "a port closed on the forwarding thread stops all traffic for milliseconds"]
    pub fn remove(&mut self, name: &SwitchName, port: &PortName) -> Option<Box<Port>> {
        let port = self.switch_mut(name)?.remove(port)?;
        if let Some(fd) = port.device.event_fd() {
            // The guest may hold a copy of its eventfd, so closing ours would not end the watch.
            let _ = epoll::delete(&self.epoll, fd);
        }
        self.drop_if_empty(name);
        Some(port)
    }

    fn drop_if_empty(&mut self, name: &SwitchName) {
        for slot in &mut self.switches {
            if slot
                .as_ref()
                .is_some_and(|s| s.name == *name && s.ports().next().is_none())
            {
                *slot = None;
            }
        }
    }

    /// False if there is no such port.
    pub fn set_link(&mut self, name: &SwitchName, port: &PortName, up: bool) -> bool {
        let port = self.switch_mut(name).and_then(|s| s.port_mut(port));
        let found = port.map(|p| p.link_up = up).is_some();
        self.resolve(name);
        found
    }

    /// Exchanges the guard of a port for another, which the caller drops. False if there is no such
    /// port.
    pub fn set_guard(&mut self, port: &PortId, guard: &mut Guard) -> bool {
        let switch = self.switch_mut(&port.switch);
        let port = switch.and_then(|s| s.port_mut(&port.port));
        port.map(|port| port.set_guard(guard)).is_some()
    }

    /// False if there is no such port of kind `vxlan`.
    pub fn set_peers(&mut self, peers: &PortPeers) -> bool {
        let switch = self.switch_mut(&peers.switch);
        let port = switch.and_then(|s| s.port_mut(&peers.port));
        port.is_some_and(|port| port.set_peers(&peers.peers))
    }

    /// False if there is no such port.
    pub fn set_limits(&mut self, limit: &PortLimit) -> bool {
        let limits = PortLimits::new(&limit.limits);
        let switch = self.switch_mut(&limit.switch);
        switch.is_some_and(|s| s.set_limits(&limit.port, limits))
    }

    /// Gives a port the filter, and leaves its old one in `filter`, which the caller drops. False if
    /// there is no such port.
    pub fn set_filter(&mut self, port: &PortId, filter: &mut Option<Box<Filter>>) -> bool {
        let switch = self.switch_mut(&port.switch);
        switch.is_some_and(|s| s.set_filter(&port.port, filter))
    }

    /// The way of a frame that would come from a port. None if there is no such port.
    pub fn trace(&self, port: &PortId, frame: &[u8]) -> Option<Trace> {
        let switch = self.switches(Some(&port.switch)).next();
        switch.and_then(|s| s.trace(&port.port, frame, self.now))
    }

    fn resolve(&mut self, name: &SwitchName) {
        if let Some(switch) = self.switch_mut(name) {
            switch.resolve();
        }
    }

    /// Makes a chain, or replaces it. False if there is no such switch.
    pub fn set_chain(&mut self, set: ChainSet, link: Option<Arc<Link>>) -> Result<bool, SetError> {
        match self.switch_mut(&set.switch.clone()) {
            Some(switch) => switch.set_chain(set, link).map(|()| true),
            None => Ok(false),
        }
    }

    /// Exchanges the states of chains with other hosts. Returns ports for the caller to close.
    pub fn tick_chains(&mut self) -> Vec<Box<Port>> {
        let mut unused = Vec::new();
        for switch in self.switches.iter_mut().flatten() {
            let ports = switch.tick_chains(Instant::now()).into_iter();
            unused.extend(ports.map(|port| (switch.name.clone(), port)));
        }
        let removed = unused
            .iter()
            .map(|(switch, port)| self.remove(switch, port));
        removed.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    pub fn remove_chain(&mut self, id: &ChainId) {
        if let Some(switch) = self.switch_mut(&id.switch) {
            switch.remove_chain(&id.chain);
        }
    }

    /// The chains of one switch, or of all.
    pub fn chains(&self, name: Option<&SwitchName>) -> Vec<ChainInfo> {
        self.switches(name).flat_map(Switch::chains).collect()
    }

    /// The ports of one switch, or of all.
    pub fn list(&self, name: Option<&SwitchName>) -> Vec<PortInfo> {
        self.switches(name).flat_map(Switch::infos).collect()
    }

    /// One switch, or all.
    pub fn switches(&self, name: Option<&SwitchName>) -> impl Iterator<Item = &Switch> {
        let switches = self.switches.iter().flatten();
        switches.filter(move |s| name.is_none_or(|n| s.name == *n))
    }
}

/// Why a port cannot be added.
#[derive(Debug)]
pub enum AddFailure {
    InterfaceTaken(String),
    TooManySwitches,
    Switch(AddError),
    Watch(Errno),
}
