// SPDX-License-Identifier: Apache-2.0
//! Cuts one long TCP or UDP frame into segments with complete headers and checksums.
use super::checksum::{add, finish};
use super::vnet::{Checksum, Gso, GsoKind};
use crate::headers::{Ethernet, IPV4, IPV6, be16, octets};

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Writes the segments of a frame one after another into the caller's buffer.
pub struct Segments<'a> {
    frame: &'a [u8],
    /// Offsets of the IP header, the TCP or UDP header, and the payload.
    l3: usize,
    l4: usize,
    payload: usize,
    protocol: u8,
    is_v6: bool,
    size: usize,
    /// Payload bytes and segments that it has made.
    done: usize,
    made: u32,
}

impl<'a> Segments<'a> {
    /// None if the frame's headers are incomplete or do not match `gso`.
    pub fn new(frame: &'a [u8], gso: Gso) -> Option<Self> {
        let ethernet = Ethernet::parse(frame)?;
        let l3 = ethernet.payload;
        let (is_v6, l4, protocol) = match ethernet.kind {
            IPV4 => {
                let header = usize::from(frame.get(l3)? & 15) * 4;
                let fragment = be16(frame, l3 + 6)? & 0x3fff != 0;
                if header < 20 || fragment {
                    return None;
                }
                (false, l3 + header, *frame.get(l3 + 9)?)
            }
            // Extension headers do not occur: senders segment such packets themselves.
            IPV6 => (true, l3 + 40, *frame.get(l3 + 6)?),
            _ => return None,
        };
        let header = match (gso.kind, protocol, is_v6) {
            (GsoKind::TcpV4, TCP, false) | (GsoKind::TcpV6, TCP, true) => {
                usize::from(frame.get(l4 + 12)? >> 4) * 4
            }
            (GsoKind::Udp, UDP, _) => 8,
            _ => return None,
        };
        let payload = l4 + header;
        let complete = header >= if protocol == TCP { 20 } else { 8 } && payload < frame.len();
        let size = usize::from(gso.size);
        complete.then_some(Self {
            frame,
            l3,
            l4,
            payload,
            protocol,
            is_v6,
            size,
            done: 0,
            made: 0,
        })
    }

    /// Bytes of the headers that each segment repeats.
    pub fn headers(&self) -> usize {
        self.payload
    }

    /// The checksum of each segment.
    pub fn checksum(&self) -> Checksum {
        let offset = if self.protocol == TCP { 16 } else { 6 };
        // At most 22 bytes of Ethernet and 60 of IP.
        let start = u16::try_from(self.l4).unwrap_or(u16::MAX);
        Checksum { start, offset }
    }

    /// Bytes of the longest segment.
    pub fn longest(&self) -> usize {
        self.payload + self.size.min(self.frame.len() - self.payload)
    }

    /// The number of segments.
    pub fn count(&self) -> usize {
        (self.frame.len() - self.payload).div_ceil(self.size)
    }

    /// Writes the next segment to `out`; false after the last.
    pub fn next_into(&mut self, out: &mut Vec<u8>) -> bool {
        let left = self.frame.len() - self.payload - self.done;
        if left == 0 {
            return false;
        }
        let take = left.min(self.size);
        let from = self.payload + self.done;
        out.clear();
        out.extend_from_slice(&self.frame[..self.payload]);
        out.extend_from_slice(&self.frame[from..from + take]);
        self.fix_network_header(out);
        self.fix_transport_header(out, take == left);
        self.done += take;
        self.made += 1;
        true
    }

    fn fix_network_header(&self, out: &mut [u8]) {
        if self.is_v6 {
            return put16(out, self.l3 + 4, (out.len() - self.l3 - 40) as u16);
        }
        put16(out, self.l3 + 2, (out.len() - self.l3) as u16);
        let id = be16(out, self.l3 + 4).unwrap_or(0);
        put16(out, self.l3 + 4, id.wrapping_add(self.made as u16));
        put16(out, self.l3 + 10, 0);
        let sum = finish(add(0, &out[self.l3..self.l4]));
        put16(out, self.l3 + 10, sum);
    }

    fn fix_transport_header(&self, out: &mut [u8], last: bool) {
        if self.protocol == TCP {
            let sequence = octets(out, self.l4 + 4).map_or(0, u32::from_be_bytes);
            let sequence = sequence.wrapping_add(self.done as u32);
            out[self.l4 + 4..self.l4 + 8].copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut out[self.l4 + 13];
            *flags &= if last { 0xff } else { !FIN_PSH };
            *flags &= if self.made == 0 { 0xff } else { !CWR };
        } else {
            put16(out, self.l4 + 4, (out.len() - self.l4) as u16);
        }
        let checksum = self.checksum().field();
        put16(out, checksum, 0);
        let sum = finish(add(
            self.pseudo_header(out.len() - self.l4),
            &out[self.l4..],
        ));
        put16(out, checksum, if sum == 0 { 0xffff } else { sum });
    }

    /// RFC 9293, 3.1; RFC 8200, 8.1.
    fn pseudo_header(&self, length: usize) -> u64 {
        let addresses = if self.is_v6 {
            self.l3 + 8..self.l3 + 40
        } else {
            self.l3 + 12..self.l3 + 20
        };
        add(
            u64::from(self.protocol) + length as u64,
            &self.frame[addresses],
        )
    }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
