// SPDX-License-Identifier: Apache-2.0
//! Fragments wait until their packet is whole, and leave together, or not at all.
//!
//! None of them may overlap another one: hosts do not agree on which bytes count then (RFC 5722).
use alloc::collections::BTreeMap;

use click_wire::{checksum, ipv4};

use super::segment::{Origin, Reason};
use crate::guard::ends::{Ends, mapped};
use crate::guard::hosts::{Hosts, Place, network};
use crate::ip6;
use crate::prelude::*;

/// Packets that wait for fragments; for a new one the one that waits longest goes, of the host that holds most fragments, in
/// the VLAN that does.
const MAX: usize = 64;
/// Seconds that they wait (RFC 1122, section 3.3.2, asks for 60 to 120, and Linux waits 30).
const WAIT_NS: u64 = 30_000_000_000;
/// Bytes after the headers.
const LONGEST: usize = 65_535;
const UNIT: usize = 8;
/// Bytes of the fragment header of IPv6, and its flag for further fragments.
const HEADER6: usize = 8;
const MORE6: u16 = 1;
/// Numbers of extension headers whose lengths are of their own kind.
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// For looks at fragments that are known.
const NOWHERE: Origin = Origin {
    input: 0,
    zone: 0,
    vlan: 0,
};

/// What all fragments of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: u128,
    destination: u128,
    id: u32,
    protocol: u8,
    origin: Origin,
}

/// Where a fragment's bytes lie, in the packet and in its data.
#[derive(Clone, Copy, Debug)]
struct Part {
    key: Key,
    /// Bytes of the headers in front of it.
    headers: usize,
    start: usize,
    end: usize,
    is_last: bool,
}

/// What became of a packet.
pub enum Outcome {
    /// It is no fragment.
    Whole(Packet),
    /// It waits, or is one that waits already.
    Held,
    /// All of a packet are there.
    Complete(Vec<Packet>),
    /// They are no packet.
    Refused(Vec<Packet>, Reason),
}

struct Waiting {
    key: Key,
    host: Place,
    parts: Vec<(Part, Packet)>,
    end: Option<usize>,
    until_ns: u64,
}

/// Fragments that wait.
#[derive(Default)]
pub struct Fragments {
    waiting: Vec<Waiting>,
    /// Packets that may wait, and those that do.
    most: usize,
    held: usize,
    hosts: Hosts,
    /// Packets that wait, by VLAN; none without one.
    vlans: BTreeMap<u16, usize>,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn part4(network: &[u8], origin: Origin) -> Option<Option<Part>> {
    let header = network.first_chunk::<{ ipv4::HEADER }>()?;
    let field = be16(header, 6)?;
    if field & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0 {
        return Some(None);
    }
    let (headers, total) = (
        usize::from(header[0] & 15) * 4,
        usize::from(be16(header, 2)?),
    );
    let right = headers >= ipv4::HEADER && headers < total && total <= network.len();
    if !right || !checksum::is_right(&network[..headers]) {
        return None;
    }
    let address = |at: usize| {
        Some(mapped(u32::from_be_bytes(
            *header.get(at..)?.first_chunk()?,
        )))
    };
    let key = Key {
        source: address(12)?,
        destination: address(16)?,
        id: be16(header, 4)?.into(),
        protocol: header[9],
        origin,
    };
    let is_last = field & ipv4::MORE_FRAGMENTS == 0;
    Some(Some(Part::of(
        key,
        headers,
        field & ipv4::OFFSET,
        total,
        is_last,
    )?))
}

fn part6(network: &[u8], origin: Origin) -> Option<Option<Part>> {
    let Some(at) = fragment_header(network)? else {
        return Some(None);
    };
    let field = be16(network, at + 2)?;
    if field & 0xfff9 == 0 {
        return Some(None);
    }
    let view = ip6::View::of(network)?;
    let total = ip6::HEADER + view.payload_len();
    let headers = at + HEADER6;
    if total > network.len() || headers >= total {
        return None;
    }
    let id = network
        .get(at + 4..)?
        .first_chunk()
        .map(|id| u32::from_be_bytes(*id))?;
    let key = Key {
        source: view.source().0.into(),
        destination: view.destination().0.into(),
        id,
        protocol: 0,
        origin,
    };
    Some(Some(Part::of(
        key,
        headers,
        field >> 3,
        total,
        field & MORE6 == 0,
    )?))
}

/// Where the fragment header of IPv6 is; outer none if there are two, of which hosts and elements could mean different ones.
fn fragment_header(network: &[u8]) -> Option<Option<usize>> {
    let (mut next, mut at) = (ip6::View::of(network)?.next_header(), ip6::HEADER);
    let mut found = None;
    while let Some([first, length]) = network.get(at..).and_then(<[u8]>::first_chunk) {
        let units = usize::from(*length);
        let bytes = match next {
            FRAGMENT if found.is_some() => return None,
            FRAGMENT => {
                found = Some(at);
                // what is behind it in a later fragment is no header
                if be16(network, at + 2)? >> 3 != 0 {
                    return Some(found);
                }
                HEADER6
            }
            AUTHENTICATION => (units + 2) * 4,
            _ if ip6::EXTENSIONS.contains(&next) => (units + 1) * 8,
            _ => break,
        };
        (next, at) = (*first, at + bytes);
    }
    Some(found)
}

impl Part {
    /// A fragment at a unit; none if its lengths are wrong.
    fn of(key: Key, headers: usize, unit: u16, total: usize, is_last: bool) -> Option<Self> {
        let start = usize::from(unit) * UNIT;
        let end = start + total - headers;
        let is_sound = (is_last || end % UNIT == 0) && end <= LONGEST;
        is_sound.then_some(Self {
            key,
            headers,
            start,
            end,
            is_last,
        })
    }

    /// Its place; outer none if it is wrong, inner if the packet is no fragment.
    fn in_packet(network: &[u8], origin: Origin) -> Option<Option<Self>> {
        match network.first().map_or(0, |byte| byte >> 4) {
            4 => part4(network, origin),
            6 => part6(network, origin),
            _ => Some(None),
        }
    }

    fn bytes<'a>(&self, packet: &'a Packet) -> &'a [u8] {
        let network = packet.network().unwrap_or_default();
        network
            .get(self.headers..self.headers + self.end - self.start)
            .unwrap_or_default()
    }
}

impl Fragments {
    /// At most this many packets wait.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Takes a number that senders do not know; before there are fragments.
    pub fn set_key(&mut self, key: u64) {
        self.hosts.set_key(key);
    }

    /// Packets that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes a packet.
    pub fn take(&mut self, packet: Packet, origin: Origin, now_ns: u64) -> Outcome {
        let part = match Part::in_packet(packet.network().unwrap_or_default(), origin) {
            Some(None) => return Outcome::Whole(packet),
            Some(Some(part)) => part,
            None => return Outcome::Refused(vec![packet], Reason::Unreadable),
        };
        let at = self.place(&part.key, now_ns);
        let waiting = &mut self.waiting[at];
        match waiting.fit(&part, &packet) {
            Some(true) => {}
            Some(false) => return Outcome::Held,
            None => {
                let mut packets = self.remove(at);
                packets.push(packet);
                return Outcome::Refused(packets, Reason::Fragments);
            }
        }
        waiting.end = if part.is_last {
            Some(part.end)
        } else {
            waiting.end
        };
        waiting.parts.push((part, packet));
        self.held += 1;
        self.hosts.add(waiting.host, 1);
        *self.vlans.entry(origin.vlan).or_default() += 1;
        if self.waiting[at].is_whole() {
            return Outcome::Complete(self.remove(at));
        }
        self.make_room();
        Outcome::Held
    }

    /// Where the fragments of a packet wait.
    fn place(&mut self, key: &Key, now_ns: u64) -> usize {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.key == *key) {
            return at;
        }
        if self.waiting.len() == MAX {
            self.remove_greedy();
        }
        self.waiting.push(Waiting {
            key: *key,
            host: self.hosts.place(network(key.source), key.origin.station()),
            parts: Vec::new(),
            end: None,
            until_ns: now_ns.saturating_add(WAIT_NS),
        });
        self.waiting.len() - 1
    }

    fn make_room(&mut self) {
        while self.held > self.most && !self.waiting.is_empty() {
            self.remove_greedy();
        }
    }

    /// Gives up the first one of the host that holds most, in the VLAN that holds most.
    fn remove_greedy(&mut self) {
        let held = |at: &usize| {
            let waiting = &self.waiting[*at];
            let of_vlan = self.vlans.get(&waiting.key.origin.vlan);
            (of_vlan, self.hosts.get(waiting.host))
        };
        if let Some(at) = (0..self.waiting.len()).rev().max_by_key(held) {
            self.remove(at);
        }
    }

    /// Gives up those that have waited too long.
    pub fn expire(&mut self, now_ns: u64) {
        while self
            .waiting
            .first()
            .is_some_and(|first| first.until_ns <= now_ns)
        {
            self.remove(0);
        }
    }

    fn remove(&mut self, at: usize) -> Vec<Packet> {
        let mut waiting = self.waiting.remove(at);
        self.held -= waiting.parts.len();
        let (vlan, count) = (waiting.key.origin.vlan, waiting.parts.len());
        self.hosts.remove(waiting.host, count as u32);
        if let Some(held) = self.vlans.get_mut(&vlan) {
            *held -= count;
        }
        self.vlans.retain(|_, held| *held > 0);
        waiting.parts.sort_by_key(|(part, _)| part.start);
        waiting
            .parts
            .into_iter()
            .map(|(_, packet)| packet)
            .collect()
    }
}

impl Waiting {
    /// Whether a fragment is new, or one that waits already; none if it contradicts others.
    fn fit(&self, part: &Part, packet: &Packet) -> Option<bool> {
        let beyond = self
            .end
            .is_some_and(|end| part.end > end || part.is_last && part.end != end);
        let cuts = part.is_last && self.parts.iter().any(|(known, _)| known.end > part.end);
        if beyond || cuts {
            return None;
        }
        let overlaps =
            |(known, _): &&(Part, Packet)| known.start < part.end && part.start < known.end;
        let Some((known, other)) = self.parts.iter().find(overlaps) else {
            return Some(true);
        };
        let is_same = (known.start, known.end) == (part.start, part.end);
        (is_same && known.bytes(other) == part.bytes(packet)).then_some(false)
    }

    fn is_whole(&self) -> bool {
        let bytes: usize = self
            .parts
            .iter()
            .map(|(part, _)| part.end - part.start)
            .sum();
        self.end == Some(bytes)
    }
}

/// The packet of which these are all fragments, in their order.
pub fn whole(packets: &[Packet], bytes: &mut Vec<u8>) -> Option<()> {
    bytes.clear();
    for packet in packets {
        let network = packet.network()?;
        let part = Part::in_packet(network, NOWHERE)??;
        if bytes.is_empty() {
            bytes.extend_from_slice(&network[..part.headers]);
        }
        bytes.extend_from_slice(part.bytes(packet));
    }
    let length = bytes.len();
    match bytes.first()? >> 4 {
        4 => {
            let headers = usize::from(bytes[0] & 15) * 4;
            bytes[2..4].copy_from_slice(&u16::try_from(length).ok()?.to_be_bytes());
            bytes[6..8].fill(0);
            bytes[10..12].fill(0);
            let sum = checksum::of(&bytes[..headers]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        _ => {
            let payload = u16::try_from(length - ip6::HEADER).ok()?;
            bytes[4..6].copy_from_slice(&payload.to_be_bytes());
            let at = ip6::Upper::of(bytes)?.fragment_at?;
            bytes[at + 2..at + 4].fill(0);
        }
    }
    Some(())
}

/// Addresses and protocol of a packet that may be broken behind them.
pub fn ends(network: &[u8]) -> Option<Ends> {
    let (source, destination, protocol) = match network.first()? >> 4 {
        6 => {
            let view = ip6::View::of(network)?;
            let [from, to] = [view.source(), view.destination()].map(|address| address.0.into());
            (from, to, view.next_header())
        }
        _ => {
            let header = network.first_chunk::<{ ipv4::HEADER }>()?;
            let word = |at| u32::from_be_bytes(core::array::from_fn(|n| header[at + n]));
            (mapped(word(12)), mapped(word(16)), header[9])
        }
    };
    Some(Ends {
        source,
        destination,
        sport: 0,
        dport: 0,
        protocol,
    })
}

#[cfg(test)]
mod tests {
    use click_core::PacketPool;

    use super::*;

    #[test]
    fn the_counts_of_vlans_are_those_of_what_waits() {
        let mut pool = PacketPool::new(256);
        let mut fragments = Fragments::new(100);
        for n in 0..2000u32 {
            let place = n * 7 % 5;
            let is_last = place == 4;
            let field = place as u16 | if is_last { 0 } else { ipv4::MORE_FRAGMENTS };
            let mut bytes = vec![0; 28];
            bytes[..4].copy_from_slice(&[0x45, 0, 0, 28]);
            bytes[5] = (n / 13 % 9) as u8;
            bytes[6..8].copy_from_slice(&field.to_be_bytes());
            bytes[12..16].copy_from_slice(&[10, 0, 0, (n % 11) as u8]);
            let sum = checksum::of(&bytes[..20]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            let mut packet = pool.packet_from(&bytes).unwrap();
            packet.set_network(0, 20);
            let vlan = (n % 6) as u16;
            let origin = Origin { vlan, ..NOWHERE };
            fragments.take(packet, origin, u64::from(n) * WAIT_NS / 700);
            fragments.expire(u64::from(n) * WAIT_NS / 700);
            let mut sums = BTreeMap::new();
            for waiting in &fragments.waiting {
                let vlan = waiting.key.origin.vlan;
                *sums.entry(vlan).or_insert(0) += waiting.parts.len();
            }
            assert_eq!(fragments.vlans, sums, "{n}");
        }
        fragments.expire(u64::MAX);
        assert!(fragments.vlans.is_empty() && fragments.held() == 0);
    }
}
