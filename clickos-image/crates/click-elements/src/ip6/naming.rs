// SPDX-License-Identifier: Apache-2.0
//! Gives one end of an IPv6 packet's flow another address and port, and does so in packets that errors quote.
use click_wire::{checksum, ipv4};

use super::{Address, HEADER, ICMP6, View};

/// An address and a port. Echo messages of ICMPv6 have an identifier for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    pub address: Address,
    pub port: u16,
}

/// The end that gets another name, and the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    pub own: Endpoint,
    pub peer: Endpoint,
}

/// An end of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Destination,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Source => Self::Destination,
            Self::Destination => Self::Source,
        }
    }

    fn address_at(self) -> usize {
        match self {
            Self::Source => 8,
            Self::Destination => 24,
        }
    }

    /// Where TCP and UDP have its port.
    fn port_at(self) -> usize {
        match self {
            Self::Source => 0,
            Self::Destination => 2,
        }
    }
}

/// A message's identifier, its checksum, and the packet that an error quotes.
const IDENTIFIER_AT: usize = 4;
const MESSAGE_CHECKSUM_AT: usize = HEADER + 2;
const QUOTED_AT: usize = HEADER + 8;

/// Where a packet has the name of an end, and the checksum that depends on it.
struct Place {
    address: usize,
    port: usize,
    checksum: usize,
    /// A checksum of 0 stands for none.
    optional: bool,
}

impl Place {
    /// Where the name is in a packet that may be cut, and what flow it belongs to.
    fn of(bytes: &[u8], end: End) -> Option<(Flow, Self)> {
        let header = View::of(bytes).filter(|h| h.version() == 6)?;
        let echo = matches!(bytes.get(HEADER), Some(128 | 129));
        let (own, peer, checksum) = match header.next_header() {
            ipv4::TCP => (end.port_at(), Some(end.other().port_at()), 16),
            ipv4::UDP => (end.port_at(), Some(end.other().port_at()), 6),
            ICMP6 if echo => (IDENTIFIER_AT, None, 2),
            _ => return None,
        };
        let endpoint = |end: End, port_at: Option<usize>| {
            let address = Address::at(bytes.get(end.address_at()..)?)?;
            let port = port_at.map_or(Some(0), |at| word(bytes, HEADER + at))?;
            Some(Endpoint { address, port })
        };
        let flow = Flow {
            own: endpoint(end, Some(own))?,
            peer: endpoint(end.other(), peer)?,
        };
        let place = Self {
            address: end.address_at(),
            port: HEADER + own,
            checksum: HEADER + checksum,
            optional: header.next_header() == ipv4::UDP,
        };
        Some((flow, place))
    }

    fn write(&self, bytes: &mut [u8], name: Endpoint) {
        let before = self.sum(bytes);
        put_address(bytes, self.address, name.address);
        bytes[self.port..self.port + 2].copy_from_slice(&name.port.to_be_bytes());
        let without = self.optional && word(bytes, self.checksum) == Some(0);
        if !without {
            update(bytes, self.checksum, before, self.sum(bytes));
        }
    }

    fn sum(&self, bytes: &[u8]) -> u64 {
        let address = checksum::add(0, &bytes[self.address..self.address + 16]);
        checksum::add(address, &bytes[self.port..self.port + 2])
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*word))
}

fn put_address(bytes: &mut [u8], at: usize, address: Address) {
    bytes[at..at + 16].copy_from_slice(&address.0.octets());
}

/// Updates a checksum, if it is not cut off, after what it covers had another sum.
fn update(bytes: &mut [u8], at: usize, before: u64, after: u64) {
    let Some(old) = word(bytes, at) else { return };
    let (before, after) = (!checksum::finish(before), !checksum::finish(after));
    let new = match checksum::update(old, before, after) {
        // with UDP it would mean that there is none; for others it is the same number
        0 => 0xffff,
        new => new,
    };
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
}

/// What an end is to be called: a new name may be made for it, unless a packet only tells of others.
pub trait Names {
    fn name(&mut self, end: End, flow: &Flow) -> Option<Endpoint>;
    fn known(&mut self, end: End, flow: &Flow) -> Option<Endpoint>;
}

/// Gives an end of a packet another name; false if there is none for it.
pub fn rename(bytes: &mut [u8], end: End, names: &mut impl Names) -> bool {
    let error = bytes.get(HEADER).is_some_and(|kind| *kind < 128);
    if error && View::of(bytes).is_some_and(|h| h.next_header() == ICMP6) {
        return rename_error(bytes, end, names);
    }
    let Some((flow, place)) = Place::of(bytes, end) else {
        return false;
    };
    let whole = word(bytes, place.checksum).is_some();
    match names.name(end, &flow).filter(|_| whole) {
        Some(name) => place.write(bytes, name),
        None => return false,
    }
    true
}

/// An error is for the sender of the packet it quotes, which went the other way.
fn rename_error(bytes: &mut [u8], end: End, names: &mut impl Names) -> bool {
    let quoted = bytes.get(QUOTED_AT..).unwrap_or_default();
    let Some((flow, place)) = Place::of(quoted, end.other()) else {
        return false;
    };
    let Some(name) = names.known(end, &flow) else {
        return false;
    };
    let before = error_sum(bytes, end);
    place.write(&mut bytes[QUOTED_AT..], name);
    put_address(bytes, end.address_at(), name.address);
    update(bytes, MESSAGE_CHECKSUM_AT, before, error_sum(bytes, end));
    true
}

/// The sum of what of an error changes.
fn error_sum(bytes: &[u8], end: End) -> u64 {
    let at = end.address_at();
    let address = checksum::add(0, &bytes[at..at + 16]);
    checksum::add(address, &bytes[QUOTED_AT..])
}
