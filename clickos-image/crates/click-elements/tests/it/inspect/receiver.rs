// SPDX-License-Identifier: Apache-2.0
//! What a server may make of the frames that reach it. Servers differ, so all that any of them may read is asked.
use std::collections::BTreeMap;

use click_wire::checksum;

use super::bed::CLIENT_SEQ;
use super::packets::{SERVER, URG};

/// How a server reads.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// The last bytes count where two are in one place, in fragments and in streams.
    last_fragment: bool,
    last_byte: bool,
    /// The byte that the urgent pointer names is not in the stream.
    takes_urgent_out: bool,
}

/// All habits.
fn all() -> impl Iterator<Item = Habits> {
    (0..8u8).map(|bits| Habits {
        last_fragment: bits & 1 != 0,
        last_byte: bits & 2 != 0,
        takes_urgent_out: bits & 4 != 0,
    })
}

/// The packet in a frame, whatever tags are around it.
fn packet(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    loop {
        let kind = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        match kind {
            0x8100 | 0x88a8 => at += 4,
            0x0800 | 0x86dd => return frame.get(at + 2..),
            ..1536 => return frame.get(at + 10..),
            _ => return None,
        }
    }
}

/// Segments of the client in packets, once their fragments are together.
fn segments(packets: &[&[u8]], habits: Habits) -> Vec<Vec<u8>> {
    let mut parts: BTreeMap<u32, BTreeMap<usize, u8>> = BTreeMap::new();
    let mut ends: BTreeMap<u32, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for packet in packets {
        let Some((id, start, more, data)) = place(packet) else {
            continue;
        };
        if start == 0 && !more {
            found.push(data.to_vec());
            continue;
        }
        let bytes = parts.entry(id).or_default();
        for (at, byte) in (start..).zip(data) {
            if habits.last_fragment || !bytes.contains_key(&at) {
                bytes.insert(at, *byte);
            }
        }
        if !more {
            ends.insert(id, start + data.len());
        }
        if ends
            .get(&id)
            .is_some_and(|end| bytes.range(..end).count() == *end)
        {
            found.push(bytes.values().copied().collect());
        }
    }
    found
}

/// The identification of a packet, where its payload stands in the whole, whether more follows, and the payload.
fn place(packet: &[u8]) -> Option<(u32, usize, bool, &[u8])> {
    if packet[0] >> 4 == 6 {
        let length = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        return place6(packet[6], packet.get(40..40 + length)?);
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let header = usize::from(packet[0] & 15) * 4;
    let sound = checksum::is_right(packet.get(..header)?);
    // the server is two hops away
    let arrives = packet[8] > 1 && packet[16..20] == SERVER;
    let field = u16::from_be_bytes([packet[6], packet[7]]);
    let id = u16::from_be_bytes([packet[4], packet[5]]);
    let place = usize::from(field & 0x1fff) * 8;
    (sound && arrives).then(|| {
        Some((
            id.into(),
            place,
            field & 0x2000 != 0,
            packet.get(header..total)?,
        ))
    })?
}

fn place6(mut next: u8, mut rest: &[u8]) -> Option<(u32, usize, bool, &[u8])> {
    let mut fragment = (0, 0, false);
    loop {
        match next {
            6 => return Some((fragment.0, fragment.1, fragment.2, rest)),
            44 => {
                let field = u16::from_be_bytes([rest[2], rest[3]]);
                fragment = (1 << 16, usize::from(field & 0xfff8), field & 1 != 0);
                (next, rest) = (rest[0], rest.get(8..)?);
                if fragment.1 != 0 || fragment.2 {
                    return Some((fragment.0, fragment.1, fragment.2, rest));
                }
            }
            _ => (next, rest) = (rest[0], rest.get(8 + 8 * usize::from(rest[1])..)?),
        }
    }
}

/// The client's stream, as far as it is there without a hole.
fn stream(packets: &[&[u8]], habits: Habits) -> Vec<u8> {
    let mut bytes: BTreeMap<u32, u8> = BTreeMap::new();
    let mut out: Vec<u32> = Vec::new();
    for segment in segments(packets, habits) {
        let Some(data) = segment.get(usize::from(segment[12] >> 4) * 4..) else {
            continue;
        };
        let seq = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        let at = seq
            .wrapping_sub(CLIENT_SEQ.wrapping_add(1))
            .wrapping_add(u32::from(segment[13] & 2 != 0));
        let urgent = u16::from_be_bytes([segment[18], segment[19]]);
        if !is_right(&segment) || at >= 0xf000 || segment[13] & 4 != 0 {
            continue;
        }
        if habits.takes_urgent_out && segment[13] & URG != 0 && urgent > 0 {
            out.push(at + u32::from(urgent) - 1);
        }
        for (at, byte) in (at..).zip(data) {
            if habits.last_byte || !bytes.contains_key(&at) {
                bytes.insert(at, *byte);
            }
        }
    }
    let in_order = (0..).map_while(|at| Some((at, *bytes.get(&at)?)));
    in_order
        .filter(|(at, _)| !out.contains(at))
        .map(|(_, byte)| byte)
        .collect()
}

/// True if the checksum of a segment is right for the addresses of one of both versions.
fn is_right(segment: &[u8]) -> bool {
    let four = [super::packets::CLIENT, SERVER].concat();
    let mut six = vec![0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    six.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    [four, six].iter().any(|addresses| {
        let sum = checksum::add(0, addresses) + 6 + segment.len() as u64;
        checksum::finish(checksum::add(sum, segment)) == 0
    })
}

/// True if some server would read a text in frames that reach it.
pub fn may_read(frames: &[Vec<u8>], text: &[u8]) -> bool {
    let packets: Vec<&[u8]> = frames.iter().filter_map(|frame| packet(frame)).collect();
    let has = |stream: &[u8]| {
        let lower = stream.to_ascii_lowercase();
        lower.windows(text.len()).any(|part| part == text)
    };
    all().any(|habits| has(&stream(&packets, habits)))
}
