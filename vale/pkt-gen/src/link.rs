// SPDX-License-Identifier: Apache-2.0
//! The attached port: rings, notifications, detaching.
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ring::{BUFFER_SIZE, GuestPort, PushError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use vale_proto::{PortId, ValeClient};

use crate::arguments::Arguments;

/// Longest sleep, so that the program notices a signal that came just before it.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Longest time for the switch to fetch the last frames.
const DRAIN: Duration = Duration::from_secs(2);

/// A port of the switch that this program owns; dropping it detaches the port.
pub struct Link {
    port: GuestPort,
    kick: OwnedFd,
    wake: OwnedFd,
    address: PortId,
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    deadline: Option<Instant>,
    buffer: Box<[u8; BUFFER_SIZE]>,
}

impl Link {
    /// Attaches the port of the arguments.
    pub fn attach(arguments: &Arguments) -> Result<Self, String> {
        let address = arguments.interface.clone().ok_or("-i: is missing")?;
        let add = arguments.port_add(&address);
        add.check()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| e.to_string())?;
        }
        let mut client = ValeClient::connect(&arguments.socket).map_err(|e| e.to_string())?;
        let fds = client.port_add(&add).map_err(|e| e.to_string())?;
        let fds = fds.ok_or("valed sent no rings")?;
        let port = GuestPort::map(&fds.memfd).map_err(|e| e.to_string());
        let (socket, deadline) = (
            arguments.socket.clone(),
            arguments
                .seconds
                .map(|s| Instant::now() + Duration::from_secs(s)),
        );
        match port {
            Ok(port) => {
                let (kick, wake, buffer) = (fds.kick, fds.wake, Box::new([0; BUFFER_SIZE]));
                Ok(Self {
                    port,
                    kick,
                    wake,
                    address,
                    socket,
                    stop,
                    deadline,
                    buffer,
                })
            }
            Err(text) => {
                detach(&mut client, &address);
                Err(text)
            }
        }
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
        if self.port.publish() {
            rustix::io::write(&self.kick, &1u64.to_ne_bytes()).map_err(|e| format!("kick: {e}"))?;
        }
        Ok(())
    }

    /// Waits at most `longest` for frames or, if a push found the ring full, for room.
    pub fn sleep(&mut self, longest: Duration) -> Result<(), String> {
        self.publish()?;
        if self.port.sleep_prepare() {
            return Ok(());
        }
        let longest = Timespec::try_from(longest.min(LONGEST_SLEEP)).map_err(|e| e.to_string())?;
        let woken = poll(
            &mut [PollFd::new(&self.wake, PollFlags::IN)],
            Some(&longest),
        );
        if woken == Ok(1) {
            // The read takes any number of wake-ups, also none.
            let _ = rustix::io::read(&self.wake, &mut [0; 64]);
        }
        self.port.wake_done();
        Ok(())
    }

    /// Waits until the switch has fetched everything.
    pub fn drain(&mut self) -> Result<(), String> {
        self.publish()?;
        let end = Instant::now() + DRAIN;
        while self.port.space() < self.port.slots() - 1 {
            if Instant::now() >= end {
                return Err("the switch did not fetch the last frames".to_owned());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        match ValeClient::connect(&self.socket) {
            Ok(mut client) => detach(&mut client, &self.address),
            Err(e) => eprintln!("pkt-gen: the port is left behind: {e}"),
        }
    }
}

fn detach(client: &mut ValeClient, address: &PortId) {
    if let Err(e) = client.port_remove(&address.switch, &address.port) {
        eprintln!("pkt-gen: the port is left behind: {e}");
    }
}
