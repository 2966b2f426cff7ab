// SPDX-License-Identifier: Apache-2.0
//! The workers and their changes (docs/adr/0060-workers.md).
//!
//! Each worker knows all ports of all switches, and has the far ends of some. A change runs at each
//! worker between two of its rounds. Changes come one after the other, so all workers agree.
pub mod balance;
mod changes;
mod lists;
mod moves;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use vale_proto::{PortId, PortName, SwitchName};

use crate::forwarder::{Command, Forwarder, WorkerConfig};
pub use crate::mesh::MAX_WORKERS;
use crate::mesh::{WorkerWaker, mesh};
use crate::port::blocked::Patience;
pub use changes::TableRefusal;
pub use moves::MoveFailure;

const COMMANDS: usize = 64;

/// The way of commands to one worker.
struct Channel {
    commands: SyncSender<Command>,
    wake: Arc<OwnedFd>,
}

impl Channel {
    fn run<R: Send + 'static>(
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
}

/// The ports of a host and their workers.
#[derive(Default)]
struct PortMap {
    workers: BTreeMap<(SwitchName, PortName), usize>,
    /// The number of the last port or switch.
    last_id: u64,
}

impl PortMap {
    fn of(&self, id: &PortId) -> Option<usize> {
        let key = (id.switch.clone(), id.port.clone());
        self.workers.get(&key).copied()
    }

    fn set(&mut self, id: &PortId, worker: Option<usize>) {
        let key = (id.switch.clone(), id.port.clone());
        match worker {
            Some(worker) => self.workers.insert(key, worker),
            None => self.workers.remove(&key),
        };
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The worker with the fewest ports.
    fn idlest(&self, workers: usize) -> usize {
        let ports = |worker: &usize| self.workers.values().filter(|w| *w == worker).count();
        (0..workers).min_by_key(ports).unwrap_or(0)
    }
}

/// The longest waits of the workers.
#[derive(Clone, Copy)]
pub struct Waits {
    /// How long frames wait for full receivers.
    pub frames: Patience,
    /// How long a change waits for such frames.
    pub changes: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            frames: Patience::default(),
            changes: Duration::from_secs(1),
        }
    }
}

/// Sends work to the workers.
#[derive(Clone)]
pub struct Handle {
    channels: Arc<[Channel]>,
    waits: Waits,
    /// Held during a change, so that all workers see changes in one order.
    port_map: Arc<Mutex<PortMap>>,
}

/// Makes workers, which the caller runs on threads of their own.
///
/// # Errors
/// There are no further descriptors.
pub fn make(count: usize, waits: Waits) -> io::Result<(Vec<Forwarder>, Handle)> {
    let wakers = (0..count).map(|_| {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (need_wakeup, wake) = (Arc::default(), Arc::new(wake));
        Ok(WorkerWaker { need_wakeup, wake })
    });
    let wakers: Vec<WorkerWaker> = wakers.collect::<io::Result<_>>()?;
    let start = Instant::now();
    let (mut workers, mut channels) = (Vec::new(), Vec::new());
    let ways = mesh(&wakers).into_iter().zip(wakers);
    for (worker, ((peers, incoming), waker)) in ways.enumerate() {
        let (sender, commands) = sync_channel(COMMANDS);
        let wake = Arc::clone(&waker.wake);
        let commands_to = Channel {
            commands: sender,
            wake,
        };
        channels.push(commands_to);
        workers.push(Forwarder::new(WorkerConfig {
            worker,
            start,
            waker,
            commands,
            peers,
            incoming,
            patience: waits.frames,
        })?);
    }
    let handle = Handle {
        channels: channels.into(),
        waits,
        port_map: Arc::default(),
    };
    Ok((workers, handle))
}

impl Handle {
    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.channels.len()
    }

    /// Ends [`Forwarder::run`] of all workers.
    pub fn stop(&self) {
        for channel in self.channels.iter() {
            channel.run(|forwarder| forwarder.running = false);
        }
    }

    /// A panic of another thread leaves the map as the workers have the ports.
    fn lock(&self) -> MutexGuard<'_, PortMap> {
        self.port_map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` at one worker, between two rounds, and waits for its result. None if the worker has
    /// ended.
    pub fn at<R: Send + 'static>(
        &self,
        worker: usize,
        work: impl FnOnce(&mut Forwarder) -> R + Send + 'static,
    ) -> Option<R> {
        self.channels.get(worker)?.run(work)
    }

    /// Runs `work` at each worker in turn, which gets the worker's number too.
    pub fn each<R: Send + 'static>(
        &self,
        work: impl Fn(usize, &mut Forwarder) -> R + Send + Sync + 'static,
    ) -> Option<Vec<R>> {
        let work = Arc::new(work);
        let run = |(n, channel): (usize, &Channel)| {
            let work = Arc::clone(&work);
            channel.run(move |forwarder| work(n, forwarder))
        };
        self.channels.iter().enumerate().map(run).collect()
    }
}

#[cfg(test)]
#[path = "workers/tests.rs"]
mod tests;
