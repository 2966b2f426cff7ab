// SPDX-License-Identifier: Apache-2.0
//! A port between the program's rings and the switch's.
//!
//! `tail` of the transmit ring follows the switch's progress, so a slot returns to the program
//! when the switch has fetched its frame. The frames of the receive ring are copies.
use std::fmt;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;
use std::time::{Duration, SystemTime};

use ring::{BUFFER_SIZE, PushError};
use vale_link::Link;

use crate::abi::{NS_BUF_CHANGED, NS_REPORT, Slot};
use crate::memory::{Shim, Way};

/// Longest wait for the switch at the end.
const DRAIN: Duration = Duration::from_secs(1);
/// Looks at the switch's ring before a synchronization ends without frames.
const LOOKS: usize = 4;

/// A synchronization that failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The program wrote a wrong index, length or flag. Nothing behind it moved.
    Program(String),
    /// The switch has closed the port.
    Gone,
}

impl Fault {
    pub fn errno(&self) -> i32 {
        match self {
            Self::Program(_) => libc::EINVAL,
            Self::Gone => libc::ENXIO,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(text) => f.write_str(text),
            Self::Gone => f.write_str("the switch has closed the port; open it again"),
        }
    }
}

/// A frame in the receive ring.
pub struct Received {
    pub slot: u32,
    pub buffer: u32,
    pub len: u16,
}

/// Our indices of one ring; the program's words are not trusted.
#[derive(Clone, Copy, Default)]
struct Indices {
    /// The first slot that the last synchronization left to the program.
    head: u32,
    tail: u32,
}

pub struct Port {
    link: Link,
    shim: Shim,
    tx: Indices,
    rx: Indices,
    is_armed: bool,
    has_complained: bool,
    buffer: Box<[u8; BUFFER_SIZE]>,
}

impl Port {
    /// Makes the rings of an attached port. Returns their address too.
    pub fn new(link: Link, name: &str) -> Result<(Self, NonNull<u8>), String> {
        let made = Shim::new(name, link.slots());
        let (shim, base) = made.map_err(|e| format!("memory: {e}"))?;
        let mut port = Self {
            link,
            shim,
            tx: Indices::default(),
            rx: Indices::default(),
            is_armed: false,
            has_complained: false,
            buffer: Box::new([0; BUFFER_SIZE]),
        };
        port.tx_sync().map_err(|e| e.to_string())?;
        port.rx_sync().map_err(|e| e.to_string())?;
        Ok((port, base))
    }

    pub fn shim(&self) -> &Shim {
        &self.shim
    }

    pub fn slots(&self) -> u32 {
        self.link.slots()
    }

    pub fn fd(&self) -> RawFd {
        self.link.wake_fd().as_raw_fd()
    }

    /// `index + n` around a ring.
    fn add(&self, index: u32, n: u32) -> u32 {
        index.wrapping_add(n) & (self.slots() - 1)
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        self.add(to, from.wrapping_neg())
    }

    fn indices(&self, way: Way) -> Indices {
        match way {
            Way::Tx => self.tx,
            Way::Rx => self.rx,
        }
    }

    /// Reads `head` and `cur` and checks `head <= cur <= tail`, around the ring.
    fn program(&self, way: Way) -> Result<(u32, u32), Fault> {
        let (head, cur) = self.shim.head_and_cur(way);
        let Indices { head: first, tail } = self.indices(way);
        let owned = self.distance(first, tail);
        let (to_head, to_cur) = (self.distance(first, head), self.distance(first, cur));
        let inside = head < self.slots() && cur < self.slots();
        if inside && to_head <= to_cur && to_cur <= owned {
            return Ok((head, cur));
        }
        Err(Fault::Program(format!(
            "{way:?} ring: head {head}, cur {cur} are not in this order in {first}..={tail} of {} slots",
            self.slots()
        )))
    }

    /// Prints the first error to standard error.
    fn told<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result {
            if !std::mem::replace(&mut self.has_complained, true) {
                let address = self.link.address();
                eprintln!("netmap: {}:{}: {fault}", address.switch, address.port);
            }
        }
        result
    }

    /// Sends the slots up to `head`, and takes back those that the switch has emptied.
    pub fn tx_sync(&mut self) -> Result<(), Fault> {
        let result = self.send();
        self.told(result)
    }

    fn send(&mut self) -> Result<(), Fault> {
        if self.link.is_gone() {
            return Err(Fault::Gone);
        }
        let (head, _) = self.program(Way::Tx)?;
        let result = self.push_up_to(head);
        self.link.publish().map_err(|_| Fault::Gone)?;
        let space = self.link.space();
        self.tx.tail = self.add(self.tx.head, space);
        self.shim.set_tail(Way::Tx, self.tx.tail);
        result
    }

    fn push_up_to(&mut self, head: u32) -> Result<(), Fault> {
        while self.tx.head != head {
            let at = self.tx.head;
            let slot = self.shim.slot(Way::Tx, at);
            let buffer = check(&self.shim, slot)
                .map_err(|e| Fault::Program(format!("Tx ring: slot {at}: {e}")))?;
            let frame = &mut self.buffer[..slot.len.into()];
            self.shim.read(buffer, frame);
            match self.link.push(frame) {
                Ok(()) => self.tx.head = self.add(at, 1),
                Err(PushError::Full) => break,
                Err(e) => return Err(Fault::Program(format!("Tx ring: slot {at}: {e}"))),
            }
        }
        Ok(())
    }

    /// Takes back the slots up to `head`, and fills the ring with frames. An empty ring makes the
    /// descriptor readable with the next frame.
    pub fn rx_sync(&mut self) -> Result<(), Fault> {
        let result = self.receive();
        self.told(result)
    }

    fn receive(&mut self) -> Result<(), Fault> {
        self.disarm();
        if self.link.is_gone() {
            return Err(Fault::Gone);
        }
        let (head, cur) = self.program(Way::Rx)?;
        self.rx.head = head;
        let mut result = Ok(());
        for _ in 0..LOOKS {
            result = self.pop_all();
            self.link.publish().map_err(|_| Fault::Gone)?;
            if result.is_err() || self.rx.tail != cur || !self.arm() {
                break;
            }
        }
        if let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            self.shim.set_time(now.as_secs(), now.subsec_micros());
        }
        self.shim.set_tail(Way::Rx, self.rx.tail);
        result
    }

    fn pop_all(&mut self) -> Result<(), Fault> {
        while self.distance(self.rx.head, self.rx.tail) < self.slots() - 1 {
            let at = self.rx.tail;
            let index = self.shim.slot(Way::Rx, at).buf_idx;
            let buffer = self.shim.check(index);
            let buffer = buffer.map_err(|e| Fault::Program(format!("Rx ring: slot {at}: {e}")))?;
            let Some(len) = self.link.pop(&mut self.buffer[..]) else {
                break;
            };
            self.shim.write(buffer, &self.buffer[..len]);
            self.shim.set_len(Way::Rx, at, len as u16);
            self.rx.tail = self.add(at, 1);
        }
        Ok(())
    }

    /// Asks for wake-ups. True if there is something to synchronize already.
    fn arm(&mut self) -> bool {
        let is_there = self.link.arm();
        self.is_armed = !is_there;
        is_there
    }

    fn disarm(&mut self) {
        if std::mem::take(&mut self.is_armed) {
            self.link.disarm();
        }
    }

    /// Notes that the descriptor has an error.
    pub fn end(&mut self) {
        self.link.set_gone();
    }

    /// Synchronizes for `poll`, which always sends. Returns the events that are there.
    pub fn ready(&mut self, events: i16) -> i16 {
        let mut found = 0;
        self.disarm();
        let sent = self.tx_sync();
        let received = match events & libc::POLLIN {
            0 => Ok(()),
            _ => self.rx_sync(),
        };
        if sent.is_err() || received.is_err() {
            found |= libc::POLLERR;
        }
        for (way, event) in [(Way::Tx, libc::POLLOUT), (Way::Rx, libc::POLLIN)] {
            if self.shim.head_and_cur(way).1 != self.indices(way).tail {
                found |= event & events;
            }
        }
        found
    }

    /// Asks for wake-ups before a sleep in `poll`. True if there is something already.
    pub fn prepare(&mut self, events: i16) -> bool {
        if events & libc::POLLOUT != 0 {
            self.link.want_space();
        }
        self.arm()
    }

    /// Queues a frame; false if there is no room or the frame does not fit.
    pub fn inject(&mut self, frame: &[u8]) -> bool {
        if !(1..=BUFFER_SIZE).contains(&frame.len()) {
            return false;
        }
        if self.shim.head_and_cur(Way::Tx).0 == self.tx.tail && self.tx_sync().is_err() {
            return false;
        }
        let (head, _) = self.shim.head_and_cur(Way::Tx);
        if head >= self.slots() || head == self.tx.tail {
            return false;
        }
        let Ok(buffer) = self.shim.check(self.shim.slot(Way::Tx, head).buf_idx) else {
            return false;
        };
        self.shim.write(buffer, frame);
        self.shim.set_len(Way::Tx, head, frame.len() as u16);
        self.shim.set_head_and_cur(Way::Tx, self.add(head, 1));
        true
    }

    /// Takes the next frame; an empty ring is synchronized first.
    pub fn next(&mut self) -> Option<Received> {
        if self.shim.head_and_cur(Way::Rx).0 == self.rx.tail {
            self.rx_sync().ok()?;
        }
        let (slot, _) = self.shim.head_and_cur(Way::Rx);
        if slot >= self.slots() || slot == self.rx.tail {
            return None;
        }
        let copy = self.shim.slot(Way::Rx, slot);
        let buffer = self.shim.check(copy.buf_idx).ok()?;
        self.shim.set_head_and_cur(Way::Rx, self.add(slot, 1));
        let len = copy.len.min(BUFFER_SIZE as u16);
        Some(Received { slot, buffer, len })
    }

    /// Sends the rest and waits for the switch.
    pub fn finish(&mut self) {
        if self.tx_sync().is_ok() {
            // A switch that does not fetch the frames within the time loses them.
            let _ = self.link.drain(DRAIN);
        }
    }

    /// Removes the port from the switch, at the end of the program.
    pub fn detach(&self) {
        self.link.detach();
    }
}

/// Checks a slot to send; returns its buffer.
fn check(shim: &Shim, slot: Slot) -> Result<u32, String> {
    if slot.flags & !(NS_BUF_CHANGED | NS_REPORT) != 0 {
        return Err(format!(
            "flags: {:#x} are not supported, only NS_BUF_CHANGED and NS_REPORT",
            slot.flags
        ));
    }
    if !(1..=BUFFER_SIZE).contains(&slot.len.into()) {
        return Err(format!("len: {} is outside 1..={BUFFER_SIZE}", slot.len));
    }
    shim.check(slot.buf_idx)
}
