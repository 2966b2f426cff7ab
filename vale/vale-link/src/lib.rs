// SPDX-License-Identifier: Apache-2.0
//! A switch port that a program attaches for itself: rings, notifications, detaching.
#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ring::{GuestPort, PushError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vale_proto::{PortAdd, PortId, ValeClient};

/// Time without work before a wait for a notification.
const SPIN: Duration = Duration::from_micros(50);
/// Pause between two looks at a ring that the switch empties.
const DRAIN_STEP: Duration = Duration::from_micros(200);

/// A port of the switch that this program owns; dropping it detaches the port.
pub struct Link {
    port: GuestPort,
    kick: OwnedFd,
    wake: OwnedFd,
    address: PortId,
    socket: PathBuf,
    is_gone: bool,
}

impl Link {
    /// Attaches a port of kind `process`.
    pub fn attach(socket: &Path, add: &PortAdd) -> Result<Self, String> {
        add.check()?;
        let address = PortId {
            switch: add.switch.clone(),
            port: add.port.clone(),
        };
        let mut client = ValeClient::connect(socket).map_err(|e| e.to_string())?;
        let fds = client.port_add(add).map_err(|e| e.to_string())?;
        let fds = fds.ok_or("valed sent no rings")?;
        match GuestPort::map(&fds.memfd) {
            Ok(port) => Ok(Self {
                port,
                kick: fds.kick,
                wake: fds.wake,
                address,
                socket: socket.to_owned(),
                is_gone: false,
            }),
            Err(e) => {
                detach(&mut client, &address);
                Err(e.to_string())
            }
        }
    }

    /// The port's address.
    pub fn address(&self) -> &PortId {
        &self.address
    }

    /// Slots of each ring; one of them always stays empty.
    pub fn slots(&self) -> u32 {
        self.port.slots()
    }

    /// Frames that can be pushed now.
    pub fn space(&mut self) -> u32 {
        self.port.space()
    }

    /// Queues a frame; the switch sees it after [`Self::publish`].
    pub fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.port.push(frame)
    }

    /// Copies the next frame to the start of `buffer` and returns its length.
    pub fn pop(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.port.pop(buffer)
    }

    /// Ends a burst.
    pub fn publish(&mut self) -> Result<(), String> {
        if self.port.publish() {
            rustix::io::write(&self.kick, &1u64.to_ne_bytes()).map_err(|e| format!("kick: {e}"))?;
        }
        Ok(())
    }

    /// The next [`Self::arm`] also waits for room in the ring.
    pub fn want_space(&mut self) {
        self.port.want_space();
    }

    /// Asks for a wake-up by frames or, if a push found the ring full, by room. True if one of them
    /// is there already.
    #[must_use = "the descriptor wakes only after false"]
    pub fn arm(&mut self) -> bool {
        self.port.sleep_prepare()
    }

    /// The descriptor that a wake-up makes readable.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes all wake-ups and asks for no more.
    pub fn disarm(&mut self) {
        // The read takes any number of wake-ups, also none.
        let read = rustix::io::read(&self.wake, &mut [0; 64]);
        self.is_gone |= read == Ok(0);
        self.port.wake_done();
    }

    /// True after the switch has closed the port.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Notes that the switch has closed the port, when `poll` said so.
    pub fn set_gone(&mut self) {
        self.is_gone = true;
    }

    /// Waits at most `longest` for frames or, if a push found the ring full, for room.
    pub fn sleep(&mut self, longest: Duration) -> Result<(), String> {
        self.publish()?;
        if self.has_work_soon() || self.arm() {
            return Ok(());
        }
        let longest = Timespec::try_from(longest).map_err(|e| e.to_string())?;
        let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
        match poll(&mut fds, Some(&longest)) {
            Ok(1) => self.disarm(),
            _ => self.port.wake_done(),
        }
        Ok(())
    }

    /// Looks for work a little longer than a wake-up costs both sides. The switch may share the processor,
    /// so each look offers it.
    fn has_work_soon(&mut self) -> bool {
        let begin = Instant::now();
        loop {
            if self.port.has_work() {
                return true;
            }
            if begin.elapsed() >= SPIN {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Removes the port from the switch; once more is fine. A port that the switch has closed may
    /// have a new owner.
    pub fn detach(&self) {
        if self.is_gone {
            return;
        }
        match ValeClient::connect(&self.socket) {
            Ok(mut client) => detach(&mut client, &self.address),
            Err(e) => eprintln!("{}: the port is left behind: {e}", name(&self.address)),
        }
    }

    /// Waits at most `longest` until the switch has fetched everything.
    pub fn drain(&mut self, longest: Duration) -> Result<(), String> {
        self.publish()?;
        let end = Instant::now() + longest;
        while self.port.space() < self.port.slots() - 1 {
            if Instant::now() >= end {
                return Err("the switch did not fetch the last frames".to_owned());
            }
            std::thread::sleep(DRAIN_STEP);
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.detach();
    }
}

fn detach(client: &mut ValeClient, address: &PortId) {
    if let Err(e) = client.port_remove(&address.switch, &address.port) {
        eprintln!("{}: the port is left behind: {e}", name(address));
    }
}

fn name(address: &PortId) -> String {
    format!("{}:{}", address.switch, address.port)
}
