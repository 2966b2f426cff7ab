// SPDX-License-Identifier: Apache-2.0
//! A packet as its receiver reads it: what no receiver takes is named.
use click_wire::{checksum, ipv4};

use crate::guard::ends::Ends;
use crate::guard::seen::{self, Seen, Tcp};
use crate::headers::{Headers, Start};
use crate::ip6;
use crate::prelude::*;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
/// Bytes of the headers of UDP and ICMP.
const SHORT: usize = 8;
/// The flag of urgent data.
const URGENT: u8 = 32;

/// Why a packet does not pass, and what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Rule,
    /// Its flow was dropped before.
    Blocked,
    Unreadable,
    Checksum,
    NoConnection,
    BeyondWindow,
    /// It repeats bytes of a stream as others.
    OtherData,
    /// Its fragments overlap.
    Fragments,
    /// Its rules took too much work.
    Work,
    /// The table or the memory is full.
    Full,
    /// It has data that some receivers read elsewhere, and which stays so.
    Urgent,
}

/// Reasons in the order of their numbers, as the handler `drops` names them.
pub const REASONS: [&str; 11] = [
    "rule",
    "flow of a rule",
    "unreadable",
    "wrong checksum",
    "no connection",
    "beyond the window",
    "other data sent again",
    "overlapping fragments",
    "too much work",
    "table full",
    "urgent data",
];

/// A packet.
#[derive(Debug)]
pub struct Segment<'a> {
    pub ends: Ends,
    pub tcp: Option<Tcp>,
    pub payload: &'a [u8],
    /// Some of its data is out of band for some receivers.
    pub is_urgent: bool,
}

/// Where a packet came from: an input, and the VLAN that its tags name. One host may have the address of another one in
/// another VLAN, so what it sends is not the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub input: usize,
    pub zone: u32,
    /// The VLAN of the outermost tag that names one: a sender chooses the tags behind it.
    pub vlan: u16,
}

/// Bytes of the addresses of a frame, of a tag, and the bits of a tag that name a VLAN.
const ADDRESSES: usize = 12;
const TAG: usize = 4;
const VLAN: u16 = 0xfff;
/// Smaller numbers instead of a type are lengths.
const FIRST_TYPE: u16 = 0x600;

impl Origin {
    /// What tells hosts with one address apart.
    pub fn station(&self) -> u64 {
        u64::from(self.zone) << 1 | self.input as u64 & 1
    }

    /// That of a packet whose link header is in front of its IP header.
    pub fn of(packet: &Packet, input: usize) -> Self {
        let network = packet.network().map_or(0, <[u8]>::len);
        let link = packet.data().len().saturating_sub(network);
        let tags = packet.data().get(ADDRESSES..link).unwrap_or_default();
        let (mut zone, mut outermost) = (0, 0);
        for tag in tags.chunks_exact(TAG) {
            let word = |at: usize| u16::from_be_bytes([tag[at], tag[at + 1]]);
            if word(0) < FIRST_TYPE {
                break;
            }
            // a tag of VLAN 0 has a priority only
            let vlan = word(2) & VLAN;
            if vlan != 0 {
                zone = zone << 12 | u32::from(vlan);
                outermost = if outermost == 0 { vlan } else { outermost };
            }
        }
        Self {
            input,
            zone,
            vlan: outermost,
        }
    }
}

/// The packet without padding behind it, and its headers.
fn headers(network: &[u8]) -> Result<Headers<'_>, Reason> {
    let number = |at: usize| {
        let bytes = network.get(at..at + 2).ok_or(Reason::Unreadable)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    match network.first().map_or(0, |byte| byte >> 4) {
        4 => {
            let (length, total) = (usize::from(network[0] & 15) * 4, number(2)?);
            let header = network
                .get(..length)
                .filter(|_| length >= ipv4::HEADER && length <= total);
            let header = header.ok_or(Reason::Unreadable)?;
            if !checksum::is_right(header) {
                return Err(Reason::Checksum);
            }
            let whole = network.get(..total).ok_or(Reason::Unreadable)?;
            Ok(Headers::of_ip4(whole, length as u32, None))
        }
        6 => {
            let whole = network
                .get(..ip6::HEADER + number(4)?)
                .ok_or(Reason::Unreadable)?;
            Ok(Headers::of_ip6(whole, None))
        }
        _ => Err(Reason::Unreadable),
    }
}

/// True if the checksum over the pseudo header and bytes is right.
fn is_right(ends: &Ends, bytes: &[u8]) -> bool {
    let sum = |number: u128| checksum::add(0, &number.to_be_bytes());
    // an address of IPv4 has ffff in front of it, which adds nothing
    let pseudo = sum(ends.source) + sum(ends.destination) + u64::from(ends.protocol);
    checksum::finish(checksum::add(pseudo + bytes.len() as u64, bytes)) == 0
}

impl<'a> Segment<'a> {
    /// Reads a packet that is no fragment.
    pub fn of(network: &'a [u8]) -> Result<Self, Reason> {
        let headers = headers(network)?;
        let mut ends = seen::ends(&headers).ok_or(Reason::Unreadable)?;
        let upper = headers.from(Start::Transport);
        let mut segment = match ends.protocol {
            TCP => return Self::tcp(&headers, ends, upper),
            UDP => {
                let length = upper.get(4..6).ok_or(Reason::Unreadable)?;
                let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                let datagram = upper.get(..length).filter(|_| length >= SHORT);
                let datagram = datagram.ok_or(Reason::Unreadable)?;
                let has_sum = datagram[6..8] != [0, 0];
                if has_sum && !is_right(&ends, datagram) {
                    return Err(Reason::Checksum);
                }
                Self::plain(ends, &datagram[SHORT..])
            }
            ICMP | ICMP6 => {
                (ends.sport, ends.dport) = (0, 0);
                Self::plain(ends, upper.get(SHORT..).unwrap_or_default())
            }
            _ => Self::plain(ends, upper),
        };
        if headers.starts[Start::Transport as usize] == crate::headers::NOWHERE {
            return Err(Reason::Unreadable);
        }
        segment.is_urgent = false;
        Ok(segment)
    }

    fn plain(ends: Ends, payload: &'a [u8]) -> Self {
        Self {
            ends,
            tcp: None,
            payload,
            is_urgent: false,
        }
    }

    fn tcp(headers: &Headers<'a>, ends: Ends, upper: &'a [u8]) -> Result<Self, Reason> {
        let Some(Seen::Part { tcp: Some(tcp), .. }) = Seen::of(headers) else {
            return Err(Reason::Unreadable);
        };
        if !is_right(&ends, upper) {
            return Err(Reason::Checksum);
        }
        let payload = upper.len() - tcp.len as usize;
        Ok(Self {
            ends,
            tcp: Some(tcp),
            payload: &upper[payload..],
            is_urgent: tcp.flags & URGENT != 0,
        })
    }
}

/// What is changed of a segment that passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mend {
    /// Urgent data becomes data like other: both ends, and the rules, read the same then.
    pub clears_urgent: bool,
    /// A smaller window, so that no sender sends what there is no room for.
    pub window: Option<u16>,
}

impl Mend {
    pub fn is_needed(&self) -> bool {
        *self != Self::default()
    }
}

/// Changes a TCP segment.
pub fn mend(packet: &mut Packet, mend: &Mend) {
    let Some(network) = packet.network_mut() else {
        return;
    };
    let at = {
        let Ok(headers) = headers(network) else {
            return;
        };
        headers.starts[Start::Transport as usize] as usize
    };
    let Some(header) = network
        .get_mut(at..)
        .and_then(<[u8]>::first_chunk_mut::<20>)
    else {
        return;
    };
    if mend.clears_urgent {
        let flags = word(header, FLAGS_AT) & !u16::from(URGENT);
        change(header, FLAGS_AT, flags);
        change(header, URGENT_AT, 0);
    }
    if let Some(window) = mend.window {
        change(header, WINDOW_AT, window);
    }
}

/// Places in a TCP header.
const FLAGS_AT: usize = 12;
const WINDOW_AT: usize = 14;
const CHECKSUM_AT: usize = 16;
const URGENT_AT: usize = 18;

fn word(header: &[u8; 20], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Changes two bytes of a TCP header, and its checksum.
fn change(header: &mut [u8; 20], at: usize, new: u16) {
    let sum = checksum::update(word(header, CHECKSUM_AT), word(header, at), new);
    header[at..at + 2].copy_from_slice(&new.to_be_bytes());
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
}
