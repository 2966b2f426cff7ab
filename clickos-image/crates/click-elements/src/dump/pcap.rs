// SPDX-License-Identifier: Apache-2.0
//! Records of pcap files, read one after the other.
use click_core::MAX_PACKET;
use click_core::anno::EXTRA_LENGTH;

use super::link::Link;
use crate::files::Source;
use crate::prelude::*;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// The type of the block that a pcapng file begins with, in either byte order.
const PCAPNG: u32 = 0x0a0d_0d0a;

/// A file that is being read.
pub struct Pcap {
    pub source: Source,
    swapped: bool,
    ns_per_unit: u64,
    /// Bytes of each record's header that only a modified version of the format has.
    more_header: u64,
    pub link: Link,
}

/// The fields of a record's header.
pub struct Record {
    pub time_ns: u64,
    /// Bytes that follow.
    pub stored: usize,
    /// Bytes the packet had.
    length: usize,
}

impl Pcap {
    /// Reads the header.
    pub fn new(mut source: Source) -> Result<Self, String> {
        let mut header = [0; FILE_HEADER];
        if !source.read_exact(&mut header) {
            let why = source.take_failure();
            return Err(why.unwrap_or_else(|| "too short for a pcap file".to_string()));
        }
        let mut pcap = Self {
            source,
            swapped: false,
            ns_per_unit: 1000,
            more_header: 0,
            link: Link::default(),
        };
        pcap.understand(&header)?;
        Ok(pcap)
    }

    fn understand(&mut self, header: &[u8]) -> Result<(), String> {
        let magic = self.number(header, 0);
        let variant = |magic| match magic {
            0xa1b2_c3d4u32 => Some((1000, 0)),
            0xa1b2_3c4d => Some((1, 0)),
            0xa1b2_cd34 => Some((1000, 8)),
            _ => None,
        };
        self.swapped = variant(magic).is_none();
        let known = variant(self.number(header, 0));
        (self.ns_per_unit, self.more_header) = known.ok_or_else(|| match magic {
            PCAPNG => "a pcapng file; convert it: editcap -F pcap FILE NEW".to_string(),
            _ => format!("not a pcap file (magic {magic:#010x})"),
        })?;
        self.link = Link::of_header(self.number(header, 20));
        Ok(())
    }

    /// A number in the byte order of the file.
    fn number(&self, bytes: &[u8], at: usize) -> u32 {
        let four = bytes[at..].first_chunk().copied().unwrap_or_default();
        match self.swapped {
            true => u32::from_be_bytes(four),
            false => u32::from_le_bytes(four),
        }
    }

    /// Continues at a place of the file; nothing happens if it is past that.
    pub fn skip_to(&mut self, at: u64) {
        self.source.skip(at.saturating_sub(self.source.at()));
    }

    /// The next record; `None` at the end of the file, or where it is damaged.
    pub fn record(&mut self) -> Option<Record> {
        let mut header = [0; RECORD_HEADER];
        if !self.source.read_exact(&mut header) {
            return None;
        }
        self.source.skip(self.more_header);
        let [seconds, fraction, stored, length] = [0, 4, 8, 12].map(|at| self.number(&header, at));
        let stored = usize::try_from(stored).ok().filter(|n| *n <= MAX_PACKET)?;
        Some(Record {
            time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.ns_per_unit,
            stored,
            length: usize::try_from(length).ok()?,
        })
    }

    /// Leaves out what follows a record's header.
    pub fn pass_over(&mut self, record: &Record) {
        self.source.skip(record.stored as u64);
    }

    /// Fills `packet`, which has the length that is stored, with what is after a record's header;
    /// nothing where the file ends. What the packet lost when it was stored is in its extra length
    /// annotation; what the file has beyond the packet's length is left out.
    pub fn packet(&mut self, record: &Record, mut packet: Packet) -> Option<Packet> {
        if !self.source.read_exact(packet.data_mut()) {
            return None;
        }
        packet.take(record.stored.saturating_sub(record.length));
        let lost = u32::try_from(record.length.saturating_sub(record.stored)).unwrap_or(u32::MAX);
        if lost > 0 {
            packet.anno_mut().set_u32(EXTRA_LENGTH, lost);
        }
        packet.set_timestamp_ns(record.time_ns);
        packet.set_mac_offset(0);
        Some(packet)
    }
}
