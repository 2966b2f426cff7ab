// SPDX-License-Identifier: Apache-2.0
//! Packets that are put together from their fragments: a fragment costs its bytes, whatever else waits.
use click_core::memory::{RESERVE, has_room};
use click_wire::ipv4;

use crate::flows::{At, FlowId, Index, Keys, ListId, MAX_FLOWS, Order};
use crate::ip_packet::{header, header_mut};
use crate::prelude::*;

/// The memory of a packet besides its payload: a buffer of its own.
const OVERHEAD: usize = 2560;
/// Bytes of a unit of fragment offsets.
const UNIT: usize = 8;
/// The longest payload.
const LONGEST: usize = 65_535 - ipv4::HEADER;
/// The largest memory of a payload that is kept for the next packet, in bytes.
const MAX_SPARE: usize = 16 << 10;

/// Where a fragment belongs.
#[derive(Clone, Copy)]
pub struct Fragment {
    /// What all fragments of a packet share, with its identification and protocol instead of ports.
    pub whole: FlowId,
    /// Bytes of its header.
    header: usize,
    start: usize,
    pub end: usize,
    last: bool,
}

/// The place of a fragment; outer `None` if its lengths are wrong, inner if the packet is not one.
pub fn fragment(packet: &Packet) -> Option<Option<Fragment>> {
    let Some(ip) = header(packet) else {
        return Some(None);
    };
    let field = ip.fragment();
    if field & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0 {
        return Some(None);
    }
    let (start, header) = (usize::from(field & ipv4::OFFSET) * UNIT, ip.header_len());
    let length = ip.total_len().checked_sub(header)?;
    let (end, last) = (start + length, field & ipv4::MORE_FRAGMENTS == 0);
    let whole_units = last || end % UNIT == 0;
    let there = header >= ipv4::HEADER && packet.network()?.len() >= ip.total_len();
    let whole = FlowId {
        source: ip.source(),
        destination: ip.destination(),
        sport: ip.id(),
        dport: ip.protocol().into(),
    };
    let sound = there && whole_units && length > 0 && end <= LONGEST;
    sound.then_some(Some(Fragment {
        whole,
        header,
        start,
        end,
        last,
    }))
}

/// True if a packet's header says that it is no fragment, as those of nearly all do.
#[inline]
pub fn is_whole(packet: &Packet) -> bool {
    let header = packet.network().and_then(<[u8]>::first_chunk::<8>);
    header.is_some_and(|h| {
        u16::from_be_bytes([h[6], h[7]]) & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0
    })
}

/// The bytes that are there of a payload.
#[derive(Default)]
pub struct Payload {
    bytes: Vec<u8>,
    /// A bit for each unit that is there.
    units: Vec<u64>,
    /// How many bits are set.
    known: usize,
}

impl Payload {
    /// Nothing, in the memory of this one.
    fn emptied(mut self) -> Self {
        self.bytes.clear();
        self.units.clear();
        self.known = 0;
        self
    }

    /// Makes room up to `end`, and for twice as much as there is, so that it seldom grows; false if there is no
    /// memory. A payload that grows is copied.
    fn reserve(&mut self, end: usize) -> bool {
        let there = self.bytes.capacity();
        if end <= there {
            return true;
        }
        let wanted = (2 * there).min(LONGEST).max(end);
        let grows = has_room(wanted + RESERVE);
        if grows {
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        grows
    }

    fn add(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.units.resize(end.div_ceil(UNIT * 64), 0);
        }
        self.bytes[start..end].copy_from_slice(bytes);
        self.mark(start / UNIT, end.div_ceil(UNIT));
    }

    /// Notes that units are there, a word of them at a time.
    fn mark(&mut self, mut unit: usize, end: usize) {
        while unit < end {
            let word = unit / 64;
            let count = (end - unit).min((word + 1) * 64 - unit);
            let new = u64::MAX >> (64 - count) << (unit % 64) & !self.units[word];
            self.units[word] |= new;
            self.known += new.count_ones() as usize;
            unit += count;
        }
    }
}

/// A packet on its way to be whole.
pub struct Partial {
    whole: FlowId,
    /// The first fragment, or any if it has not come.
    head: Option<Packet>,
    has_first: bool,
    payload: Payload,
    end: Option<usize>,
    longest: usize,
    /// When it is given up.
    pub until_ns: u64,
    /// The bytes it counts as.
    pub counted: usize,
}

impl Partial {
    fn new(whole: FlowId, payload: Payload) -> Self {
        Self {
            whole,
            head: None,
            has_first: false,
            payload,
            end: None,
            longest: 0,
            until_ns: 0,
            counted: 0,
        }
    }

    /// Takes a fragment's payload; false if it contradicts what is known.
    fn add(&mut self, fragment: &Fragment, payload: &[u8]) -> bool {
        let beyond = self.end.is_some_and(|end| fragment.end > end);
        if beyond || (fragment.last && self.payload.bytes.len() > fragment.end) {
            return false;
        }
        if fragment.last {
            self.end = Some(fragment.end);
        }
        self.payload.add(fragment.start, payload);
        true
    }

    /// Takes a fragment in; false if it contradicts what is known.
    pub fn take(&mut self, fragment: &Fragment, packet: Packet) -> bool {
        let is_first = fragment.start == 0;
        let bytes = packet.network().unwrap_or_default();
        let payload = &bytes[fragment.header..][..fragment.end - fragment.start];
        let added = self.add(fragment, payload);
        self.longest = self.longest.max(fragment.header + payload.len());
        self.has_first |= is_first;
        if is_first || self.head.is_none() {
            self.head = Some(packet);
        }
        added
    }

    /// Makes room for the payload up to `end`; false if there is no memory.
    pub fn reserve(&mut self, end: usize) -> bool {
        self.payload.reserve(end)
    }

    pub fn is_whole(&self) -> bool {
        self.has_first
            && self
                .end
                .is_some_and(|end| self.payload.known == end.div_ceil(UNIT))
    }

    /// The packet with all that has come, or `None` if it would be too long; and the memory of its payload.
    pub fn finish(self, anno: Option<usize>) -> (Option<Packet>, Payload) {
        let head = self.head;
        let packet = head.and_then(|head| finished(head, &self.payload.bytes, self.longest, anno));
        (packet, self.payload)
    }

    pub fn bytes(&self) -> usize {
        OVERHEAD + self.payload.bytes.len()
    }
}

/// A packet with this payload after the header of a fragment; `None` if it would be too long.
fn finished(
    mut packet: Packet,
    payload: &[u8],
    longest: usize,
    anno: Option<usize>,
) -> Option<Packet> {
    let length = header(&packet)?.header_len();
    let all = packet.network()?.len();
    packet.take(all - length);
    if !packet.append(payload) {
        return None;
    }
    let bytes = packet.network_mut()?;
    let total = u16::try_from(bytes.len()).ok()?;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    let mut ip = header_mut(&mut packet)?;
    ip.set_fragment(0);
    ip.fill_checksum();
    if let Some(anno) = anno {
        let longest = u16::try_from(longest).unwrap_or(u16::MAX);
        packet.anno_mut().set_u16(anno, longest);
    }
    Some(packet)
}

/// Packets that are not whole, in the order in which a fragment of each came last.
pub struct Waiting {
    index: Index,
    order: Order,
    list: ListId,
    keys: Keys,
    slots: Vec<Option<Partial>>,
    free: Vec<u32>,
    /// Memory for the payload of the next packet.
    spare: Payload,
}

impl Waiting {
    /// None; `keys` should be random.
    pub fn new(keys: Keys) -> Self {
        let mut order = Order::new();
        let list = order.add_list(0, false).unwrap_or(ListId::NONE);
        Self {
            index: Index::new(),
            order,
            list,
            keys,
            slots: Vec::new(),
            free: Vec::new(),
            spare: Payload::default(),
        }
    }

    /// The packet that waited longest, and its number.
    pub fn oldest(&self) -> Option<(u32, &Partial)> {
        let number = self.order.first(self.list)?;
        Some((number, self.slots[number as usize].as_ref()?))
    }

    /// The packet of fragments that share `whole`, and its number; a new one waits behind all others. `None` if the
    /// memory has no place for it.
    pub fn entry(&mut self, whole: &FlowId) -> Option<(u32, &mut Partial)> {
        let hash = self.keys.hash(whole, 0);
        let is = |at: At| partial(&self.slots, at).is_some_and(|p| p.whole == *whole);
        let number = match self.index.find(hash, is) {
            Some(at) => at.slot(),
            None => self.open(hash, whole)?,
        };
        Some((number, self.slots[number as usize].as_mut()?))
    }

    /// The packet with this number.
    pub fn get(&mut self, number: u32) -> Option<&mut Partial> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    fn open(&mut self, hash: u64, whole: &FlowId) -> Option<u32> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.slots.len()).ok()?;
                (self.slots.len() < MAX_FLOWS).then_some(())?;
                self.order.reach(number)?;
                self.slots.push(None);
                number
            }
        };
        let payload = core::mem::take(&mut self.spare);
        self.slots[number as usize] = Some(Partial::new(*whole, payload));
        let hash_of = |at| hash_of(&self.slots, self.keys, at);
        self.index.insert(hash, At::new(number, false), &hash_of);
        self.order.append(self.list, number);
        Some(number)
    }

    /// Lets a packet wait behind all others.
    pub fn move_last(&mut self, number: u32) {
        if !self.order.is_last(self.list, number) {
            self.order.unlink(self.list, number);
            self.order.append(self.list, number);
        }
    }

    /// Takes a packet out.
    pub fn remove(&mut self, number: u32) -> Option<Partial> {
        let at = At::new(number, false);
        let hash_of = |at| hash_of(&self.slots, self.keys, at);
        self.index.remove(hash_of(at), at, &hash_of);
        self.order.unlink(self.list, number);
        self.free.push(number);
        self.slots[number as usize].take()
    }

    /// Keeps the memory of a payload that is not needed any more.
    pub fn recycle(&mut self, payload: Payload) {
        if payload.bytes.capacity() <= MAX_SPARE {
            self.spare = payload.emptied();
        }
    }
}

fn partial(slots: &[Option<Partial>], at: At) -> Option<&Partial> {
    slots.get(at.slot() as usize)?.as_ref()
}

fn hash_of(slots: &[Option<Partial>], keys: Keys, at: At) -> u64 {
    partial(slots, at).map_or(0, |partial| keys.hash(&partial.whole, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_core::PacketPool;
    use click_wire::ipv4::View;
    use proptest::prelude::*;

    /// A fragment with these bytes of a payload, from unit `start` on.
    fn cut(pool: &mut PacketPool, id: u16, start: usize, bytes: &[u8], last: bool) -> Packet {
        let mut packet = pool.alloc(ipv4::HEADER + bytes.len()).unwrap();
        let data = packet.data_mut();
        data[..ipv4::HEADER].fill(0);
        data[0] = 0x45;
        data[2..4].copy_from_slice(&((ipv4::HEADER + bytes.len()) as u16).to_be_bytes());
        data[4..6].copy_from_slice(&id.to_be_bytes());
        let more = if last { 0 } else { ipv4::MORE_FRAGMENTS };
        data[6..8].copy_from_slice(&(start as u16 | more).to_be_bytes());
        data[9] = 253;
        data[ipv4::HEADER..].copy_from_slice(bytes);
        View::new_unchecked(&mut *data).fill_checksum();
        packet.set_network(0, ipv4::HEADER);
        packet
    }

    /// What is known of a packet, byte by byte.
    #[derive(Default)]
    struct Model {
        bytes: Vec<Option<u8>>,
        end: Option<usize>,
    }

    impl Model {
        fn add(&mut self, start: usize, bytes: &[u8], last: bool) {
            let end = start + bytes.len();
            let contradicts =
                self.end.is_some_and(|known| end > known) || last && self.bytes.len() > end;
            if contradicts {
                return;
            }
            self.end = if last { Some(end) } else { self.end };
            self.bytes.resize(self.bytes.len().max(end), None);
            for (at, byte) in bytes.iter().enumerate() {
                self.bytes[start + at] = Some(*byte);
            }
        }

        fn whole(&self) -> Option<Vec<u8>> {
            self.bytes
                .iter()
                .copied()
                .collect::<Option<Vec<u8>>>()
                .filter(|bytes| Some(bytes.len()) == self.end)
        }
    }

    proptest! {
        #[test]
        fn fragments_in_any_order_are_what_a_list_of_bytes_says(
            fragments in prop::collection::vec((0u16..3, 0usize..200, 1usize..40, any::<bool>(), any::<u8>()), 1..80),
        ) {
            let mut pool = PacketPool::new(64);
            let mut waiting = Waiting::new(Keys([3, 5, 7, 11]));
            let mut models: [Model; 3] = Default::default();
            for (id, start, units, last, value) in fragments {
                // the last one may end within a unit
                let bytes = vec![value; units * UNIT - if last { 3 } else { 0 }];
                let packet = cut(&mut pool, id, start, &bytes, last);
                let place = fragment(&packet).unwrap();
                let place = match place {
                    Some(place) => place,
                    None => continue,
                };
                let model = &mut models[usize::from(id)];
                model.add(start * UNIT, &bytes, last);
                let (number, partial) = waiting.entry(&place.whole).unwrap();
                partial.take(&place, packet);
                prop_assert_eq!(partial.is_whole(), model.whole().is_some());
                if let Some(want) = model.whole() {
                    let (packet, payload) = waiting.remove(number).unwrap().finish(None);
                    waiting.recycle(payload);
                    let packet = packet.unwrap();
                    prop_assert_eq!(&packet.data()[ipv4::HEADER..], want.as_slice());
                    prop_assert!(click_wire::checksum::is_right(&packet.data()[..ipv4::HEADER]));
                    *model = Model::default();
                }
            }
        }
    }

    #[test]
    fn packets_wait_in_the_order_of_their_last_fragments() {
        let mut waiting = Waiting::new(Keys([3, 5, 7, 11]));
        let whole = |n: u16| FlowId {
            sport: n,
            ..FlowId::NONE
        };
        let numbers: Vec<u32> = (0..500)
            .map(|n| waiting.entry(&whole(n)).unwrap().0)
            .collect();
        waiting.move_last(numbers[0]);
        assert_eq!(waiting.entry(&whole(0)).unwrap().0, numbers[0]);
        for n in (1..500).chain([0]) {
            let (number, partial) = waiting.oldest().unwrap();
            assert_eq!((number, partial.whole), (numbers[n], whole(n as u16)));
            assert!(waiting.remove(number).is_some());
        }
        assert!(waiting.oldest().is_none());
    }
}
