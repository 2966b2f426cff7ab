// SPDX-License-Identifier: Apache-2.0
//! Sources of UDP packets that are the same but for their ports.
use click_wire::{ether, ipv4, udp};

use crate::prelude::*;

/// Handlers of such elements.
pub const HANDLERS: [Handler<FastUdp>; 6] = [
    read("count", |me, _| text(me.pace.count)),
    read_write(
        "rate",
        |me, _| text(me.pace.measured()),
        set!(|me, rate, _| me.pace.rate = rate),
    ),
    command("reset", run!(|me, _| me.pace.reset())),
    write(
        "active",
        set!(|me, active, _| {
            me.pace.active = active;
            if active {
                me.pace.reset();
            }
        }),
    ),
    write("limit", set!(|me, most, _| me.pace.limit = limit(most))),
    read_write(
        "length",
        |me, _| text(me.frame.length),
        set!(|me, Length(length), _| me.frame.length = length),
    ),
];

const HEADERS: usize = ether::HEADER + ipv4::HEADER + udp::HEADER;
/// Bytes of the shortest frame that is made.
const SHORTEST: usize = 60;
/// Bytes of the longest frame: an IP packet cannot be longer.
const LONGEST: usize = 65_535 + ether::HEADER;
const TTL: u8 = 250;
const SECOND_NS: u64 = 1_000_000_000;

/// The ports of packets.
pub enum Ports {
    /// These; both are counted up after as many packets, unless that is 0.
    Fixed(udp::Repr, u64),
    /// Those of one of some flows, drawn again for each packet. Packets after which a flow gets new
    /// ports.
    Drawn(Vec<Flow>, u32),
}

/// A flow's ports, and how many packets it had.
#[derive(Clone)]
pub struct Flow(udp::Repr, u32);

impl Flow {
    pub const NEW: Self = Self(
        udp::Repr {
            source: 0,
            destination: 0,
        },
        0,
    );
}

fn draw(ctx: &mut Context<'_>) -> udp::Repr {
    let mut port = || (ctx.random_u32() >> 2) as u16;
    udp::Repr {
        source: port(),
        destination: port(),
    }
}

impl Ports {
    /// Those of the next packet, the first being number 1.
    fn next(&mut self, ctx: &mut Context<'_>, number: u64) -> udp::Repr {
        match self {
            Self::Fixed(ports, interval) => {
                if *interval > 0 && number > 1 && (number - 1) % *interval == 0 {
                    ports.source = ports.source.wrapping_add(1);
                    ports.destination = ports.destination.wrapping_add(1);
                }
                *ports
            }
            Self::Drawn(flows, size) => {
                let index = (ctx.random_u32() >> 2) as usize % flows.len();
                let Flow(ports, count) = &mut flows[index];
                if *size > 0 {
                    if *count == *size {
                        (*ports, *count) = (draw(ctx), 0);
                    }
                    *count += 1;
                }
                *ports
            }
        }
    }
}

/// The headers of all packets.
struct Frame {
    length: usize,
    ether: ether::Repr,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    checksum: bool,
}

impl Frame {
    fn packet(&self, ctx: &mut Context<'_>, ports: udp::Repr) -> Option<Packet> {
        let mut packet = ctx.pool().alloc(self.length)?;
        let (ether, rest) = packet.data_mut().split_at_mut(ether::HEADER);
        self.ether.emit(ether);
        let (ip, datagram) = rest.split_at_mut(ipv4::HEADER);
        let header = ipv4::Repr {
            tos: 0,
            id: 0,
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::UDP,
            source: self.source,
            destination: self.destination,
            payload_len: u16::try_from(datagram.len()).expect("LENGTH is checked"),
        };
        header.emit(ip);
        datagram.fill(0);
        ports.emit(datagram, self.source, self.destination);
        if !self.checksum {
            datagram[6..udp::HEADER].fill(0);
        }
        packet.set_network(ether::HEADER, ipv4::HEADER);
        packet.anno_mut().set_dst_ip(self.destination.octets());
        packet.set_timestamp_ns(ctx.now_ns());
        Some(packet)
    }
}

/// How many packets, and when.
struct Pace {
    /// Packets a second; 0: one for each pull.
    rate: u64,
    limit: Option<u64>,
    active: bool,
    count: u64,
    next_ns: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Pace {
    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.count >= limit)
    }

    /// True if a packet is due, which is then counted.
    fn take(&mut self, now_ns: u64) -> bool {
        if !self.active || self.is_over() || (self.rate > 0 && now_ns < self.next_ns) {
            return false;
        }
        if self.count == 0 {
            (self.first_ns, self.next_ns) = (now_ns, now_ns);
        }
        if let Some(gap_ns) = SECOND_NS.checked_div(self.rate) {
            // packets that no pull took in the last second are lost
            let behind_ns = now_ns.saturating_sub(SECOND_NS);
            self.next_ns = self.next_ns.max(behind_ns).saturating_add(gap_ns);
        }
        self.count += 1;
        self.last_ns = now_ns;
        true
    }

    fn reset(&mut self) {
        (self.count, self.next_ns) = (0, 0);
    }

    /// Packets a second between the first and the last one, once there is a last one.
    fn measured(&self) -> u64 {
        let took_ns = self.last_ns - self.first_ns;
        let many = u128::from(self.count) * u128::from(SECOND_NS);
        match self.is_over() && took_ns > 0 {
            true => u64::try_from(many / u128::from(took_ns)).unwrap_or(u64::MAX),
            false => 0,
        }
    }
}

/// A number of packets; less than 0 means no limit.
fn limit(number: i64) -> Option<u64> {
    u64::try_from(number).ok()
}

pub struct FastUdp {
    frame: Frame,
    pace: Pace,
    ports: Ports,
}

/// Reads RATE, LIMIT, LENGTH, SRCETH, SRCIP, DSTETH, DSTIP, CHECKSUM and ACTIVE.
pub fn build(a: &mut Args<'_>, ports: Ports) -> Built {
    let (rate, most) = (a.need("RATE"), a.need("LIMIT"));
    let (from, source) = (a.need::<EtherAddr>("SRCETH"), a.need("SRCIP"));
    let (to, destination) = (a.need::<EtherAddr>("DSTETH"), a.need("DSTIP"));
    let (length, checksum) = (a.need::<Length>("LENGTH"), a.or("CHECKSUM", true));
    let active = a.or("ACTIVE", true);
    let frame = Frame {
        length: length?.0,
        ether: ether::Repr {
            destination: to?.0,
            source: from?.0,
            ethertype: ether::IPV4,
        },
        source: source?,
        destination: destination?,
        checksum: checksum?,
    };
    let pace = Pace {
        rate: rate?,
        limit: limit(most?),
        active: active?,
        count: 0,
        next_ns: 0,
        first_ns: 0,
        last_ns: 0,
    };
    Some(Box::new(FastUdp { frame, pace, ports }))
}

/// The length of a frame; one that is too short is made longer.
struct Length(usize);

impl FromArg for Length {
    fn from_arg(arg: &str, at: click_core::ArgContext<'_>) -> Result<Self, String> {
        match usize::from_arg(arg, at)? {
            length if length <= LONGEST => Ok(Self(length.max(SHORTEST).max(HEADERS))),
            length => Err(format!("{length} is out of range, the most is {LONGEST}")),
        }
    }
}

impl Element for FastUdp {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if let Ports::Drawn(flows, _) = &mut self.ports {
            flows.iter_mut().for_each(|flow| flow.0 = draw(ctx));
        }
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max && self.pace.take(ctx.now_ns()) {
            let ports = self.ports.next(ctx, self.pace.count);
            let Some(packet) = self.frame.packet(ctx, ports) else {
                break;
            };
            batch.push_back(packet);
        }
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Always
    }
}
