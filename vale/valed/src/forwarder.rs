// SPDX-License-Identifier: Apache-2.0
//! A forwarding thread: polls while there is work, sleeps when there is none.
mod changes;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use vale_handoff::Receiver as Incoming;

use crate::clock::Nanoseconds;
use crate::mesh::{Message, Peers, WorkerWaker};
use crate::port::blocked::Patience;
use crate::switch::{MAX_PORTS, Scratch, Switch};
pub use changes::AddFailure;

/// Most switches.
pub const MAX_SWITCHES: usize = 64;
/// The thread polls this long after the last frame: waking up costs about as much.
const SPIN: Duration = Duration::from_micros(30);
/// Empty rounds after which the thread offers its processor to others: a sender or a receiver may share
/// it, and has to run before there is work again.
const PATIENT_ROUNDS: u32 = 4;
/// The time between two polls of the interfaces while the thread is busy.
const EVENTS_EVERY: Duration = Duration::from_micros(20);
/// A guest that frees its full ring wakes no one: valed looks again after this time.
const BACKPRESSURE_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// Frames that a worker takes from each other one in a round.
const OTHERS_BURST: usize = 256;
/// Token of the eventfd that announces commands.
const COMMAND_TOKEN: u64 = u64::MAX;

pub type Command = Box<dyn FnOnce(&mut Forwarder) + Send>;

/// A worker: it forwards the frames of its ports.
pub struct Forwarder {
    /// Its number.
    worker: usize,
    switches: Vec<Option<Switch>>,
    commands: Receiver<Command>,
    epoll: OwnedFd,
    waker: WorkerWaker,
    /// Frames of the other workers.
    incoming: Vec<Incoming<Message>>,
    /// The frames of the others come after those of the own ports in this round.
    others_last: bool,
    scratch: Scratch,
    pub running: bool,
    /// The start of valed.
    start: Instant,
    /// The time of the round.
    now: Nanoseconds,
    /// A receiver was full in this round.
    found_full: bool,
    load: Load,
}

/// Parts of a worker that all workers know.
pub struct WorkerConfig {
    pub worker: usize,
    pub start: Instant,
    pub waker: WorkerWaker,
    pub commands: Receiver<Command>,
    pub peers: Peers,
    pub incoming: Vec<Incoming<Message>>,
    /// How long frames wait for full receivers.
    pub patience: Patience,
}

impl Forwarder {
    pub fn new(config: WorkerConfig) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let (token, flags) = (
            EventData::new_u64(COMMAND_TOKEN),
            EventFlags::IN | EventFlags::ET,
        );
        epoll::add(&epoll, &config.waker.wake, token, flags)?;
        let mut scratch = Scratch::default();
        scratch.buffers.peers = config.peers;
        scratch.patience = config.patience;
        Ok(Self {
            worker: config.worker,
            switches: Vec::new(),
            commands: config.commands,
            epoll,
            waker: config.waker,
            incoming: config.incoming,
            others_last: false,
            scratch,
            running: true,
            start: config.start,
            now: 0,
            found_full: false,
            load: Load {
                worker: config.worker,
                ..Load::default()
            },
        })
    }

    /// Forwards until a command ends it.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        let mut last_frame = Instant::now();
        let mut last_events = last_frame;
        let mut before = last_frame;
        let mut empty = 0;
        loop {
            self.run_commands();
            if !self.running {
                return Ok(());
            }
            let moved = self.round();
            let now = self.read_clock();
            self.load.rounds += 1;
            if moved {
                last_frame = now;
                self.load.busy += (now - before).as_nanos() as u64;
                empty = 0;
            } else {
                self.load.rounds_empty += 1;
                empty += 1;
            }
            before = now;
            if now - last_frame >= SPIN {
                self.sleep(&mut events)?;
                before = self.read_clock();
            } else if now - last_events >= EVENTS_EVERY && self.has_interfaces() {
                last_events = now;
                let now = Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                self.take_events(&mut events, Some(&now))?;
            } else if self.found_full || empty > PATIENT_ROUNDS {
                self.load.yields += 1;
                std::thread::yield_now();
                before = self.read_clock(); // Another had the processor meanwhile.
            } else if !moved {
                std::hint::spin_loop();
            }
        }
    }

    /// Sets the time of the next round.
    fn read_clock(&mut self) -> Instant {
        let now = Instant::now();
        self.now = u64::try_from((now - self.start).as_nanos()).unwrap_or(u64::MAX);
        self.scratch.now = self.now;
        now
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

    /// Forwards a burst of each port and of each other worker. The own ports and the others find the
    /// room of receivers first by turns.
    pub fn round(&mut self) -> bool {
        let mut moved = false;
        self.others_last = !self.others_last;
        if !self.others_last {
            moved |= self.receive_handoffs(OTHERS_BURST);
        }
        for switch in self.switches.iter_mut().flatten() {
            moved |= switch.serve_ports(&mut self.scratch);
        }
        if self.others_last {
            moved |= self.receive_handoffs(OTHERS_BURST);
        }
        self.flush();
        moved
    }

    /// A round with the events that have come. True if there was work.
    #[cfg(test)]
    pub fn turn(&mut self) -> io::Result<bool> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.take_events(&mut Vec::with_capacity(64), Some(&now))?;
        self.read_clock();
        Ok(self.round())
    }

    /// Takes about `most` frames from each other worker.
    fn receive_handoffs(&mut self, most: usize) -> bool {
        let (switches, scratch) = (&mut self.switches, &mut self.scratch);
        let mut moved = false;
        for ring in &mut self.incoming {
            let mut count = 0;
            while count < most {
                match ring.pop(|message| deliver(switches, scratch, message)) {
                    Some(frames) => count += frames,
                    None => break,
                }
            }
            ring.release();
            moved |= count > 0;
        }
        moved
    }

    /// Takes all frames that the other workers have handed off so far.
    pub fn drain(&mut self) {
        self.receive_handoffs(usize::MAX);
        self.flush();
    }

    /// Ends a round: returns the slots of all senders, then shows the frames to the other workers and
    /// to the receivers.
    fn flush(&mut self) {
        let switches = self.switches.iter_mut().flatten();
        switches.for_each(Switch::release_taken);
        self.scratch.buffers.peers.publish();
        let switches = self.switches.iter_mut().flatten();
        self.found_full = switches.fold(false, |full, switch| full | switch.flush());
    }

    fn has_interfaces(&self) -> bool {
        self.switches
            .iter()
            .flatten()
            .any(|s| s.ports().any(|p| p.device.is_of_kernel()))
    }

    /// Waits for a kick, an interface, another worker or a command, unless one has come meanwhile.
    fn sleep(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        self.waker.need_wakeup.prepare();
        let mut busy = self.incoming.iter_mut().any(|ring| ring.waiting() > 0);
        for switch in self.switches.iter_mut().flatten() {
            busy |= switch.sleep_prepare();
        }
        if !busy {
            self.load.sleeps += 1;
            let waits = self
                .switches
                .iter()
                .flatten()
                .any(Switch::has_blocked_frames);
            self.take_events(events, waits.then_some(&BACKPRESSURE_POLL))?;
        }
        self.waker.need_wakeup.done();
        self.switches
            .iter_mut()
            .flatten()
            .for_each(Switch::wake_done);
        Ok(())
    }

    fn take_events(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<&Timespec>,
    ) -> io::Result<()> {
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(e) => return Err(e.into()),
        }
        for event in events.iter() {
            let token = event.data.u64();
            if token == COMMAND_TOKEN {
                // Edge-triggered, so this only keeps the counter from filling up.
                let _ = rustix::io::read(&*self.waker.wake, &mut [0; 8]);
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
}

/// The work of one worker since valed started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub worker: usize,
    /// Nanoseconds of rounds that moved frames.
    pub busy: Nanoseconds,
    /// Frames that went to other workers.
    pub handoffs: u64,
    /// Frames that found the ring to another worker full.
    pub lost: u64,
    /// Rounds, and those of them that moved no frame.
    pub rounds: u64,
    pub rounds_empty: u64,
    /// Waits for events, and offers of the processor to other threads.
    pub sleeps: u64,
    pub yields: u64,
}

/// Delivers the frames of another worker, and returns their number, with each copy of a flooded one. Those to
/// a switch that is gone are lost.
fn deliver(switches: &mut [Option<Switch>], scratch: &mut Scratch, message: &mut Message) -> usize {
    let at = message.envelope().switch;
    if let Some(Some(switch)) = switches.get_mut(at.index) {
        if switch.is_at(at) {
            return switch.receive_handoff(message, scratch);
        }
    }
    message.frames()
}
