// SPDX-License-Identifier: Apache-2.0
//! The attached port, until a signal or the end of the time.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ring::{LONGEST, PushError};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arguments::Arguments;

/// Longest sleep, so that the program notices a signal that came just before it.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Longest time for the switch to fetch the last frames.
const DRAIN: Duration = Duration::from_secs(2);

/// A port of the switch that this program owns; dropping it detaches the port.
pub struct Link {
    port: vale_link::Link,
    stop: Arc<AtomicBool>,
    deadline: Option<Instant>,
    buffer: Box<[u8; LONGEST]>,
}

/// Keeps the program to the first of the processors that it may use.
fn use_cores(count: usize) -> Result<(), String> {
    let may = sched_getaffinity(None).map_err(|e| e.to_string())?;
    let mut set = CpuSet::new();
    let usable = (0..CpuSet::MAX_CPU).filter(|cpu| may.is_set(*cpu));
    usable.take(count).for_each(|cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|e| e.to_string())
}

impl Link {
    /// Attaches the port of the arguments.
    pub fn attach(arguments: &Arguments) -> Result<Self, String> {
        let address = arguments.interface.as_ref().ok_or("-i: is missing")?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| e.to_string())?;
        }
        let port = vale_link::Link::attach(&arguments.socket, &arguments.port_add(address))?;
        if let Some(cores) = arguments.cores {
            use_cores(cores.into()).map_err(|e| format!("-c: {e}"))?;
        }
        std::thread::sleep(Duration::from_secs(arguments.wait));
        let seconds = arguments.seconds.map(Duration::from_secs);
        Ok(Self {
            port,
            stop,
            deadline: seconds.map(|s| Instant::now() + s),
            buffer: Box::new([0; LONGEST]),
        })
    }

    /// True after a signal or at the end of the time.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|d| Instant::now() >= d)
    }

    /// Queues a frame; waits while the ring is full. False if it is over.
    pub fn send(&mut self, frame: &[u8]) -> Result<bool, String> {
        loop {
            match self.port.push(frame) {
                Ok(()) => return Ok(true),
                Err(PushError::Full) if self.is_over() => return Ok(false),
                Err(PushError::Full) => self.sleep(LONGEST_SLEEP)?,
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    /// Takes a frame if there is one.
    pub fn receive(&mut self) -> Option<&mut [u8]> {
        let length = self.port.pop(&mut self.buffer[..])?;
        Some(&mut self.buffer[..length])
    }

    /// Echoes a frame if there is one. Returns its length, and false if the ring was full.
    pub fn echo(&mut self, swap_addresses: impl Fn(&mut [u8]) -> bool) -> Option<(usize, bool)> {
        let length = self.port.pop(&mut self.buffer[..])?;
        let frame = &mut self.buffer[..length];
        let sent = swap_addresses(frame) && self.port.push(frame).is_ok();
        Some((length, sent))
    }

    /// Ends a burst.
    pub fn publish(&mut self) -> Result<(), String> {
        self.port.publish()
    }

    /// Waits at most `longest` for frames or, if a push found the ring full, for room.
    pub fn sleep(&mut self, longest: Duration) -> Result<(), String> {
        self.port.sleep(longest.min(LONGEST_SLEEP))
    }

    /// Waits until the switch has fetched everything.
    pub fn drain(&mut self) -> Result<(), String> {
        self.port.drain(DRAIN)
    }
}
