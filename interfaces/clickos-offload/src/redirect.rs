// SPDX-License-Identifier: Apache-2.0
//! The change of a packet that goes to another station.
use crate::view::{Ip, be16, fold};

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Another station of the guest's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub mac: [u8; 6],
    /// The packet's new destination; it keeps its own without one.
    pub address: Option<u32>,
}

/// Rewrites the headers of a valid IPv4 packet in `frame`, which the station `from` sends to the target.
/// False if they are not there as a whole; the frame is unchanged then.
#[must_use]
pub fn redirect(frame: &mut [u8], ip: &Ip, target: &Target, from: [u8; 6]) -> bool {
    let checksum = target.address.and_then(|_| transport_checksum(frame, ip));
    if checksum.is_some_and(|at| frame.len() < at + 2) || frame.len() < ETHERNET + ip.header {
        return false;
    }
    if let Some(address) = target.address {
        let at = ETHERNET + 16;
        frame[at..at + 4].copy_from_slice(&address.to_be_bytes());
        update(frame, ETHERNET + 10, ip.destination, address);
        if let Some(at) = checksum {
            update(frame, at, ip.destination, address);
        }
    }
    frame[..6].copy_from_slice(&target.mac);
    frame[6..12].copy_from_slice(&from);
    true
}

/// The place of the checksum of TCP or UDP. Later fragments and UDP without a checksum have none.
fn transport_checksum(frame: &[u8], ip: &Ip) -> Option<usize> {
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
fn update(frame: &mut [u8], at: usize, old: u32, new: u32) {
    let sum = !u16::from_be_bytes([frame[at], frame[at + 1]]);
    let halves = |n: u32| (n >> 16) + (n & 0xffff);
    let changed =
        !fold(u32::from(sum) + u32::from(fold(halves(!old))) + u32::from(fold(halves(new))));
    let changed = if changed == 0 { u16::MAX } else { changed };
    frame[at..at + 2].copy_from_slice(&changed.to_be_bytes());
}
