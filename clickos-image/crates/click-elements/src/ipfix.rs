// SPDX-License-Identifier: Apache-2.0
//! Messages of the IP flow information export protocol (RFC 7011) with one kind of record.
use crate::flows::FlowId;
use crate::prelude::*;

const VERSION: u16 = 10;
const HEADER: usize = 16;
const SET_HEADER: usize = 4;
const TEMPLATE_SET: u16 = 2;
/// The number of our template, and of sets with its records.
const TEMPLATE: u16 = 256;

/// The information elements of a record (IANA's registry of IPFIX) and their lengths.
const FIELDS: [(u16, u16); 11] = [
    (8, 4),   // sourceIPv4Address
    (12, 4),  // destinationIPv4Address
    (7, 2),   // sourceTransportPort
    (11, 2),  // destinationTransportPort
    (4, 1),   // protocolIdentifier
    (136, 1), // flowEndReason
    (6, 2),   // tcpControlBits
    (2, 8),   // packetDeltaCount
    (1, 8),   // octetDeltaCount
    (152, 8), // flowStartMilliseconds
    (153, 8), // flowEndMilliseconds
];
const RECORD: usize = 48;
/// Records of a message: it fits the MTU of an Ethernet with its headers and the template.
const MOST: usize = 27;

/// Why a record ends (flowEndReason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Idle = 1,
    Active = 2,
    Forced = 4,
    NoRoom = 5,
}

/// The packets of a flow in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub packets: u64,
    pub bytes: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub tcp_flags: u8,
}

/// Records that wait for their message.
#[derive(Default)]
pub struct Message {
    records: Vec<u8>,
}

fn milliseconds(ns: u64) -> [u8; 8] {
    (ns / 1_000_000).to_be_bytes()
}

impl Message {
    /// Records that wait.
    pub fn count(&self) -> usize {
        self.records.len() / RECORD
    }

    pub fn is_full(&self) -> bool {
        self.count() >= MOST
    }

    /// Adds a record.
    pub fn add(&mut self, id: &FlowId, protocol: u8, counts: &Counts, end: End) {
        self.records.extend(id.source.octets());
        self.records.extend(id.destination.octets());
        self.records.extend(id.sport.to_be_bytes());
        self.records.extend(id.dport.to_be_bytes());
        self.records
            .extend([protocol, end as u8, 0, counts.tcp_flags]);
        self.records.extend(counts.packets.to_be_bytes());
        self.records.extend(counts.bytes.to_be_bytes());
        self.records.extend(milliseconds(counts.first_ns));
        self.records.extend(milliseconds(counts.last_ns));
    }

    /// The message with all records, which are gone then.
    pub fn take(&mut self, now_ns: u64, sequence: u32, domain: u32, template: bool) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + MOST * RECORD);
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(((now_ns / 1_000_000_000) as u32).to_be_bytes());
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(domain.to_be_bytes());
        if template {
            add_template(&mut bytes);
        }
        if !self.records.is_empty() {
            add_set(&mut bytes, TEMPLATE, &self.records);
            self.records.clear();
        }
        let length = (bytes.len() as u16).to_be_bytes();
        bytes[2..4].copy_from_slice(&length);
        bytes
    }
}

fn add_set(bytes: &mut Vec<u8>, number: u16, content: &[u8]) {
    let length = (SET_HEADER + content.len()) as u16;
    bytes.extend(number.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(content);
}

fn add_template(bytes: &mut Vec<u8>) {
    let mut content = Vec::new();
    content.extend(TEMPLATE.to_be_bytes());
    content.extend((FIELDS.len() as u16).to_be_bytes());
    for (element, length) in FIELDS {
        content.extend(element.to_be_bytes());
        content.extend(length.to_be_bytes());
    }
    add_set(bytes, TEMPLATE_SET, &content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_message_fits_an_ethernet() {
        let lengths: u16 = FIELDS.iter().map(|(_, length)| length).sum();
        assert_eq!(usize::from(lengths), RECORD);
        let mut message = Message::default();
        while !message.is_full() {
            message.add(&FlowId::NONE, 6, &Counts::default(), End::Idle);
        }
        let bytes = message.take(5_000_000_000, 7, 9, true);
        assert_eq!(bytes.len(), 16 + 52 + 4 + MOST * RECORD);
        assert!(bytes.len() + 28 <= 1500);
        let length = [bytes[2], bytes[3]];
        assert_eq!(usize::from(u16::from_be_bytes(length)), bytes.len());
        assert_eq!(bytes[4..16], [0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9]);
        assert_eq!(message.count(), 0);
    }
}
