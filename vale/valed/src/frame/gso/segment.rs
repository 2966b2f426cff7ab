// SPDX-License-Identifier: Apache-2.0
//! Cuts one long TCP or UDP frame into segments with complete headers and checksums.
use super::checksum::{add, finish};
use super::transport::{CWR, TCP, Transport, UDP};
use super::vnet::{Checksum, Gso, GsoKind};
use crate::frame::headers::{be16, octets};

const FIN_PSH: u8 = 0x09;

/// Writes the segments of a frame one after another into the caller's buffer.
pub struct Segments<'a> {
    frame: &'a [u8],
    transport: Transport,
    /// Offset of the payload.
    payload: usize,
    size: usize,
    /// Payload bytes and segments that it has made.
    done: usize,
    made: u32,
}

impl<'a> Segments<'a> {
    /// None if the frame's headers are incomplete or do not match `gso`.
    pub fn new(frame: &'a [u8], gso: Gso) -> Option<Self> {
        let transport = Transport::parse(frame)?;
        let (l4, protocol) = (transport.l4, transport.protocol);
        let header = match (gso.kind, protocol, transport.is_v6) {
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
            transport,
            payload,
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
        self.transport.checksum()
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
        if self.transport.is_v6 {
            return put16(
                out,
                self.transport.l3 + 4,
                (out.len() - self.transport.l3 - 40) as u16,
            );
        }
        put16(
            out,
            self.transport.l3 + 2,
            (out.len() - self.transport.l3) as u16,
        );
        let id = be16(out, self.transport.l3 + 4).unwrap_or(0);
        put16(
            out,
            self.transport.l3 + 4,
            id.wrapping_add(self.made as u16),
        );
        put16(out, self.transport.l3 + 10, 0);
        let sum = finish(add(0, &out[self.transport.l3..self.transport.l4]));
        put16(out, self.transport.l3 + 10, sum);
    }

    fn fix_transport_header(&self, out: &mut [u8], last: bool) {
        if self.transport.protocol == TCP {
            let sequence = octets(out, self.transport.l4 + 4).map_or(0, u32::from_be_bytes);
            let sequence = sequence.wrapping_add(self.done as u32);
            out[self.transport.l4 + 4..self.transport.l4 + 8]
                .copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut out[self.transport.l4 + 13];
            *flags &= if last { 0xff } else { !FIN_PSH };
            *flags &= if self.made == 0 { 0xff } else { !CWR };
        } else {
            put16(
                out,
                self.transport.l4 + 4,
                (out.len() - self.transport.l4) as u16,
            );
        }
        let checksum = self.checksum().field();
        put16(out, checksum, 0);
        let sum = finish(add(
            self.pseudo_header(out.len() - self.transport.l4),
            &out[self.transport.l4..],
        ));
        put16(out, checksum, if sum == 0 { 0xffff } else { sum });
    }

    /// RFC 9293, 3.1; RFC 8200, 8.1.
    fn pseudo_header(&self, length: usize) -> u64 {
        let addresses = if self.transport.is_v6 {
            self.transport.l3 + 8..self.transport.l3 + 40
        } else {
            self.transport.l3 + 12..self.transport.l3 + 20
        };
        add(
            u64::from(self.transport.protocol) + length as u64,
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
