// SPDX-License-Identifier: Apache-2.0
//! The times at which an element saw numbered packets, for another element that sees them later.
use alloc::rc::Rc;
use core::cell::RefCell;

use click_core::memory::{RESERVE, has_room};

use crate::packet_number::{NumberPacket, PacketNumber};
use crate::prelude::*;

/// Not recorded yet, or read already. No packet comes before the epoch.
const NONE: u64 = 0;
/// Bytes of a time.
const BYTES: usize = 8;

/// Times by packet number.
pub struct RecordedTimes {
    times: Vec<u64>,
    /// The most times there can be.
    most: usize,
    /// Only each packet whose number is a multiple of this is recorded.
    pub sample: u64,
    /// The order of the bytes of numbers in packets.
    pub net_order: bool,
}

/// The times of one element, which others read.
pub type Shared = Rc<RefCell<RecordedTimes>>;

impl RecordedTimes {
    /// No times, and room for `most`.
    pub fn new(most: usize, sample: u64, net_order: bool) -> Self {
        Self {
            times: Vec::new(),
            most,
            sample,
            net_order,
        }
    }

    /// Notes when packet `number` was seen; false if there is no room for it.
    pub fn record(&mut self, number: u64, now_ns: u64) -> bool {
        if number % self.sample != 0 {
            return true;
        }
        let Ok(place) = usize::try_from(number / self.sample) else {
            return false;
        };
        if place >= self.times.len() && !self.grow(place) {
            return false;
        }
        self.times[place] = now_ns;
        true
    }

    /// Makes room for a place, and for twice as many times as there are.
    #[cold]
    fn grow(&mut self, place: usize) -> bool {
        if place >= self.most {
            return false;
        }
        let wanted = (self.times.len() * 2).max(place + 1).min(self.most);
        // A list that grows is copied.
        let bytes = wanted * BYTES;
        if !has_room(bytes.saturating_add(RESERVE)) {
            return false;
        }
        self.times.reserve_exact(wanted - self.times.len());
        self.times.resize(wanted, NONE);
        true
    }

    /// When packet `number` was seen; a time can be read once.
    pub fn take(&mut self, number: u64) -> Option<u64> {
        let place = usize::try_from(number / self.sample).ok()?;
        let time = core::mem::replace(self.times.get_mut(place)?, NONE);
        (time != NONE).then_some(time)
    }

    /// Takes over the times of `old`.
    pub fn take_from(&mut self, old: &mut Self) {
        if self.sample == old.sample {
            self.times = core::mem::take(&mut old.times);
            self.times.truncate(self.most);
        }
    }
}

/// The element that notes them.
pub struct Recorder {
    pub number: Numbered,
    /// The name of the NumberPacket whose form of numbers is taken.
    pub counter: Option<String>,
    pub times: Shared,
    pub count: u64,
    pub complained: bool,
}

/// Where the numbers of packets come from.
#[derive(Clone, Copy)]
pub enum Numbered {
    /// Packets count as they come.
    Here,
    /// Packets have them at this offset.
    At(usize),
}

impl Recorder {
    fn record(&mut self, packet: &Packet, now_ns: u64) -> bool {
        let mut times = self.times.borrow_mut();
        let number = match self.number {
            Numbered::Here => Some(self.count),
            Numbered::At(offset) => {
                let net_order = times.net_order;
                PacketNumber { offset, net_order }.of(packet)
            }
        };
        self.count += 1;
        number.is_some_and(|number| times.record(number, now_ns))
    }

    #[cold]
    fn complain(&mut self, ctx: &mut Context<'_>) {
        self.complained = true;
        let line = format!(
            "{}: a packet is not noted: it has no number, or there is no room (N)",
            ctx.name()
        );
        ctx.print(&line);
    }
}

impl InPlace for Recorder {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !self.record(packet, ctx.now_ns()) && !self.complained {
            self.complain(ctx);
        }
        0
    }
}

impl Element for Recorder {
    in_place!();

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let Some(name) = &self.counter else {
            return Ok(());
        };
        let order = ctx.peer(name, |peer| {
            let counter: Option<&NumberPacket> = peer.as_any().downcast_ref();
            counter.map(NumberPacket::net_order)
        });
        let order = order.flatten();
        let missing = || format!("COUNTER: \"{name}\" is not a NumberPacket");
        self.times.borrow_mut().net_order = order.ok_or_else(missing)?;
        Ok(())
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            let mut times = self.times.borrow_mut();
            times.take_from(&mut old.times.borrow_mut());
            self.count = old.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_once_and_room_is_bounded() {
        let mut times = RecordedTimes::new(4, 2, false);
        assert!(times.record(0, 5) && times.record(6, 7) && times.record(3, 9));
        assert!(!times.record(8, 9) && !times.record(u64::MAX - 1, 9));
        assert_eq!(
            [times.take(0), times.take(0), times.take(2)],
            [Some(5), None, None]
        );
        assert_eq!(
            [times.take(6), times.take(8), times.take(u64::MAX)],
            [Some(7), None, None]
        );
        let mut less = RecordedTimes::new(1, 2, false);
        times.record(0, 1);
        less.take_from(&mut times);
        assert_eq!((less.take(0), less.take(6)), (Some(1), None));
    }
}
