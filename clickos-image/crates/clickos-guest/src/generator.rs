// SPDX-License-Identifier: Apache-2.0
//! What pkt-gen does: frames out at a rate, or as fast as the vif takes them, and frames in.
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use click_core::{Batch, Packet, PacketPool};
use click_wire::{ether, ipv4, udp};
use core::fmt;
use core::net::Ipv4Addr;
use xen_net::{NetDevice, Vif};

const SECOND_NS: u64 = 1_000_000_000;
/// Frames between two looks at the clock.
const BURST: usize = 64;
/// Packets at most.
const PACKETS: usize = 1024;
/// Ethernet, IPv4 and UDP headers, in bytes.
const HEADERS: usize = ether::HEADER + ipv4::HEADER + udp::HEADER;
/// The longest frame without a VLAN tag.
const LONGEST: usize = 1514;
/// Addresses and ports of the frames.
const FROM: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 1234);
const TO: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 1, 0, 1), 1234);

/// The options of the command line, as words `name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// `function`: `tx` sends, `rx` (the default) only counts. Frames that come in are always
    /// counted.
    pub sends: bool,
    /// `vif`: number of the device, 0 by default.
    pub devid: u32,
    /// `length`: bytes of a frame without checksum, 60 by default.
    pub length: usize,
    /// `rate`: frames a second, 0 (the default) for as many as possible.
    pub rate: u64,
    /// `count`: frames in all, 0 (the default) for no end.
    pub count: u64,
    /// `dst`: Ethernet address of the receiver, everybody by default.
    pub destination: [u8; 6],
}

impl Default for Order {
    fn default() -> Self {
        Self {
            sends: false,
            devid: 0,
            length: 60,
            rate: 0,
            count: 0,
            destination: ether::BROADCAST,
        }
    }
}

impl Order {
    /// Reads a command line; words without `pkt-gen.` are not ours.
    ///
    /// # Errors
    /// The first of our words that is not understood.
    pub fn parse(command_line: &str) -> Result<Self, String> {
        let mut order = Self::default();
        for word in command_line.split_ascii_whitespace() {
            if let Some(setting) = word.strip_prefix("pkt-gen.") {
                order
                    .set(setting)
                    .ok_or_else(|| format!("{word}: not understood"))?;
            }
        }
        Ok(order)
    }

    fn set(&mut self, setting: &str) -> Option<()> {
        let (name, value) = setting.split_once('=')?;
        match name {
            "function" => self.sends = sends(value)?,
            "vif" => self.devid = value.parse().ok()?,
            "length" => self.length = value.parse().ok().filter(is_length)?,
            "rate" => self.rate = value.parse().ok()?,
            "count" => self.count = value.parse().ok()?,
            "dst" => self.destination = address(value)?,
            _ => return None,
        }
        Some(())
    }

    fn frame(&self, source: [u8; 6]) -> Vec<u8> {
        let mut frame = vec![0; self.length];
        let ethernet = ether::Repr {
            destination: self.destination,
            source,
            ethertype: ether::IPV4,
        };
        let ip = ipv4::Repr {
            tos: 0,
            id: 0,
            fragment: ipv4::DONT_FRAGMENT,
            ttl: 64,
            protocol: ipv4::UDP,
            source: FROM.0,
            destination: TO.0,
            payload_len: (self.length - ether::HEADER - ipv4::HEADER) as u16,
        };
        let ports = udp::Repr {
            source: FROM.1,
            destination: TO.1,
        };
        let (headers, datagram) = frame.split_at_mut(HEADERS - udp::HEADER);
        ethernet.emit(headers);
        ip.emit(&mut headers[ether::HEADER..]);
        ports.emit(datagram, FROM.0, TO.0);
        frame
    }
}

fn sends(function: &str) -> Option<bool> {
    match function {
        "tx" => Some(true),
        "rx" => Some(false),
        _ => None,
    }
}

fn is_length(length: &usize) -> bool {
    (HEADERS..=LONGEST).contains(length)
}

fn address(text: &str) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut address {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sends {
            true => write!(f, "sends {} bytes on vif {}", self.length, self.devid),
            false => write!(f, "counts on vif {}", self.devid),
        }
    }
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counter {
    frames: u64,
    bytes: u64,
}

impl Counter {
    fn add(&mut self, frames: usize, bytes: usize) {
        self.frames += frames as u64;
        self.bytes += bytes as u64;
    }
}

/// The generator's state.
pub struct Generator {
    order: Order,
    pool: PacketPool,
    /// The frame that it sends.
    frame: Option<Packet>,
    sent: Counter,
    received: Counter,
    started_ns: Option<u64>,
    /// Time and value of the last report.
    told: (u64, Counter, Counter),
}

impl Generator {
    /// A generator that has not begun.
    pub fn new(order: Order) -> Self {
        Self {
            order,
            pool: PacketPool::new(PACKETS),
            frame: None,
            sent: Counter::default(),
            received: Counter::default(),
            started_ns: None,
            told: Default::default(),
        }
    }

    /// Sends and receives one burst; true if there was something to do.
    pub fn run(&mut self, vifs: &[Vif], now_ns: u64) -> bool {
        let vif = self.vif(vifs).filter(|vif| vif.device.borrow().is_up());
        let Some(vif) = vif else {
            return false;
        };
        let mut device = vif.device.borrow_mut();
        self.receive(&mut *device) | self.send(&mut *device, now_ns)
    }

    fn vif<'a>(&self, vifs: &'a [Vif]) -> Option<&'a Vif> {
        vifs.iter().find(|vif| vif.devid == self.order.devid)
    }

    fn receive(&mut self, device: &mut dyn NetDevice) -> bool {
        let mut batch = Batch::new();
        device.receive(BURST, &mut self.pool, &mut batch);
        let bytes = batch.iter().map(Packet::len).sum();
        self.received.add(batch.len(), bytes);
        !batch.is_empty()
    }

    fn send(&mut self, device: &mut dyn NetDevice, now_ns: u64) -> bool {
        let due = self.due(now_ns).min(BURST as u64) as usize;
        let mut batch = Batch::new();
        if due > 0 && self.make(due, device.mac(), &mut batch).is_none() {
            return false;
        }
        let sent = device.transmit(&mut batch);
        self.sent.add(sent, sent * self.order.length);
        sent > 0 && sent == due
    }

    /// Appends copies of the frame; `None` without memory.
    fn make(&mut self, count: usize, source: [u8; 6], batch: &mut Batch) -> Option<()> {
        let mut frame = match self.frame.take() {
            Some(frame) => frame,
            None => self.pool.packet_from(&self.order.frame(source))?,
        };
        self.pool.repeat(&mut frame, count, batch);
        self.frame = Some(frame);
        Some(())
    }

    /// How many frames are to be sent by now and were not.
    fn due(&mut self, now_ns: u64) -> u64 {
        if !self.order.sends {
            return 0;
        }
        let started_ns = *self.started_ns.get_or_insert(now_ns);
        let passed = u128::from(now_ns.saturating_sub(started_ns));
        let by_now = match self.order.rate {
            0 => u64::MAX,
            rate => (passed * u128::from(rate) / u128::from(SECOND_NS)) as u64 + 1,
        };
        let in_all = match self.order.count {
            0 => u64::MAX,
            count => count,
        };
        by_now.min(in_all).saturating_sub(self.sent.frames)
    }

    /// How long nothing will be due.
    pub fn rest_ns(&self, now_ns: u64) -> u64 {
        match (self.started_ns, self.order.rate) {
            (Some(started_ns), 1..) => {
                let next = u128::from(self.sent.frames) * u128::from(SECOND_NS);
                let at = u128::from(started_ns) + next / u128::from(self.order.rate);
                u64::try_from(at).unwrap_or(u64::MAX).saturating_sub(now_ns)
            }
            _ => SECOND_NS,
        }
    }

    /// A line about the last second and what all frames have cost, once a second while something
    /// happens.
    pub fn report(&mut self, vifs: &[Vif], now_ns: u64) -> Option<String> {
        let (told_ns, sent, received) = self.told;
        let passed = now_ns.saturating_sub(told_ns);
        if passed < SECOND_NS {
            return None;
        }
        self.told = (now_ns, self.sent, self.received);
        if told_ns == 0 || (sent, received) == (self.sent, self.received) {
            return None;
        }
        let rate =
            |new: u64, old: u64| u128::from(new - old) * u128::from(SECOND_NS) / u128::from(passed);
        let costs = self
            .vif(vifs)
            .map(|vif| vif.device.borrow().counters().costs);
        let costs = costs.unwrap_or_default();
        Some(format!(
            "pkt-gen: tx {}/s rx {}/s; in all tx {} ({} bytes) rx {} ({} bytes); \
             events {} to {} from, grants {} made {} ended",
            rate(self.sent.frames, sent.frames),
            rate(self.received.frames, received.frames),
            self.sent.frames,
            self.sent.bytes,
            self.received.frames,
            self.received.bytes,
            costs.events_sent,
            costs.events_taken,
            costs.grants_made,
            costs.grants_ended,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let order = Order::parse(
            "quiet pkt-gen.function=tx pkt-gen.length=1500 pkt-gen.rate=10 \
                                  pkt-gen.count=7 pkt-gen.vif=1 pkt-gen.dst=02:00:00:00:00:0a",
        )
        .unwrap();
        assert!(order.sends);
        assert_eq!(
            (order.length, order.rate, order.count, order.devid),
            (1500, 10, 7, 1)
        );
        assert_eq!(order.destination, [2, 0, 0, 0, 0, 10]);
        for wrong in [
            "length=41",
            "length=1515",
            "function=x",
            "dst=02:00",
            "x=1",
            "rate",
        ] {
            let error = Order::parse(&format!("pkt-gen.{wrong}")).unwrap_err();
            assert_eq!(error, format!("pkt-gen.{wrong}: not understood"));
        }
    }

    #[test]
    fn frames_are_as_long_as_asked_and_parse() {
        let order = Order {
            length: 98,
            ..Order::default()
        };
        let frame = order.frame([2, 0, 0, 0, 0, 1]);
        assert_eq!(frame.len(), 98);
        let ip = ipv4::View::new_checked(&frame[14..]).unwrap();
        assert!(ip.checksum_is_right());
        assert_eq!(
            udp::Repr::parse(ip.payload(), FROM.0, TO.0)
                .unwrap()
                .destination,
            1234
        );
    }

    #[test]
    fn frames_become_due_at_their_rate() {
        let order = Order {
            sends: true,
            rate: 1000,
            count: 3,
            ..Order::default()
        };
        let mut generator = Generator::new(order);
        assert_eq!(generator.due(5_000_000), 1);
        assert_eq!(generator.due(6_000_000), 2);
        generator.sent.frames = 2;
        assert_eq!(generator.rest_ns(6_000_000), 1_000_000);
        assert_eq!(generator.due(99_000_000), 1); // Three in all.
    }
}
