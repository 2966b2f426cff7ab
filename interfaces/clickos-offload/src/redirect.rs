// SPDX-License-Identifier: Apache-2.0
//! The change of a packet that goes to another station.
use core::net::IpAddr;

use crate::view::{FIXED, Header, Ip, Ip6, View, be16, fold, mix, sum};

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;

/// Another station of the guest's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub mac: [u8; 6],
    /// The packet's new destination; it keeps its own without one.
    pub address: Option<IpAddr>,
}

/// Most stations of a rule.
pub const MAX_TARGETS: usize = 8;

/// The stations among which a rule chooses by the packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    list: [Target; MAX_TARGETS],
    count: usize,
}

impl From<Target> for Targets {
    fn from(target: Target) -> Self {
        Self {
            list: [target; MAX_TARGETS],
            count: 1,
        }
    }
}

impl Targets {
    /// Adds a station. False if there are too many.
    pub(crate) fn add(&mut self, target: Target) -> bool {
        let has_room = self.count < MAX_TARGETS;
        if has_room {
            self.list[self.count..].fill(target);
            self.count += 1;
        }
        has_room
    }

    /// Sets the address of the last station.
    pub(crate) fn readdress(&mut self, address: IpAddr) {
        self.list[self.count - 1..]
            .iter_mut()
            .for_each(|target| target.address = Some(address));
    }

    /// The stations in the order of the rule.
    pub fn iter(&self) -> impl Iterator<Item = &Target> {
        self.list[..self.count].iter()
    }

    /// The stations for a flow, the best first. A station that goes leaves the flows of the others
    /// where they are: each has a weight for each flow.
    pub fn for_flow(&self, flow: u64) -> impl Iterator<Item = &Target> {
        let mut order = [(0, 0); MAX_TARGETS];
        if self.count > 1 {
            for (n, target) in self.iter().enumerate() {
                let mut mac = [0; 8];
                mac[..6].copy_from_slice(&target.mac);
                let weight = mix(flow ^ mix(u64::from_le_bytes(mac)));
                order[n] = (weight, n);
            }
            order[..self.count].sort_unstable_by(|a, b| b.cmp(a));
        }
        let places = order.into_iter().take(self.count);
        places.map(|(_, n)| &self.list[n])
    }
}

/// Rewrites the headers of a valid IP packet in `frame`, which the station `from` sends to the target.
/// False if they are not there as a whole; the frame is unchanged then.
#[must_use]
pub fn redirect(frame: &mut [u8], view: &View, target: &Target, from: [u8; 6]) -> bool {
    rewrite(frame, view, target, from).is_some()
}

fn rewrite(frame: &mut [u8], view: &View, target: &Target, from: [u8; 6]) -> Option<()> {
    let bytes = view.ip.map(|ip| ip.header);
    let bytes = bytes.or(view.ip6.map(|ip| ip.header))?;
    frame.get(..ETHERNET + bytes)?;
    match target.address {
        None => {}
        Some(IpAddr::V4(address)) => readdress(frame, &view.ip?, address.octets())?,
        Some(IpAddr::V6(address)) => readdress6(frame, &view.ip6?, address.octets())?,
    }
    frame[..6].copy_from_slice(&target.mac);
    frame[6..12].copy_from_slice(&from);
    Some(())
}

fn readdress(frame: &mut [u8], ip: &Ip, address: [u8; 4]) -> Option<()> {
    let old = ip.destination.to_be_bytes();
    let checksum = transport_checksum(frame, ip);
    frame.get(..checksum.map_or(0, |at| at + 2))?;
    frame[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&address);
    update(frame, ETHERNET + 10, &old, &address);
    if let Some(at) = checksum {
        update(frame, at, &old, &address);
    }
    Some(())
}

/// Only for a packet without extension headers: a routing header has the last destination.
fn readdress6(frame: &mut [u8], ip: &Ip6, address: [u8; 16]) -> Option<()> {
    (ip.header == FIXED).then_some(())?;
    let checksum = match ip.protocol {
        ICMP6 => ip.source_port.map(|_| ETHERNET + FIXED + 2),
        _ => transport_checksum(frame, ip),
    };
    frame.get(..checksum.map_or(0, |at| at + 2))?;
    frame[ETHERNET + 24..ETHERNET + 40].copy_from_slice(&address);
    if let Some(at) = checksum {
        update(frame, at, &ip.destination.to_be_bytes(), &address);
    }
    Some(())
}

/// The place of the checksum of TCP or UDP. Later fragments and UDP without a checksum have none.
fn transport_checksum<A>(frame: &[u8], ip: &Header<A>) -> Option<usize> {
    ip.source_port?;
    let body = ETHERNET + ip.header;
    match ip.protocol {
        TCP => Some(body + 16),
        UDP => Some(body + 6).filter(|at| be16(frame, *at) != Some(0)),
        _ => None,
    }
}

/// Corrects a checksum for a changed address (RFC 1624). The result is never the 0 that means no
/// checksum in UDP, since the sum before was none.
fn update(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let before = !u16::from_be_bytes([frame[at], frame[at + 1]]);
    let changed = !fold(u32::from(before) + u32::from(!sum(old)) + u32::from(sum(new)));
    let changed = if changed == 0 { u16::MAX } else { changed };
    frame[at..at + 2].copy_from_slice(&changed.to_be_bytes());
}
