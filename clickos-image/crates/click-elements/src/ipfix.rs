// SPDX-License-Identifier: Apache-2.0
//! Messages of the IP flow information export protocol (RFC 7011) with a kind of record for each version of IP.
use crate::prelude::*;

const VERSION: u16 = 10;
const HEADER: usize = 16;
const SET_HEADER: usize = 4;
const TEMPLATE_SET: u16 = 2;
const OPTIONS_SET: u16 = 3;
/// The numbers of our templates, and of sets with their records: flows of IPv4, of IPv6, and how packets are sampled.
const TEMPLATE: u16 = 256;
const TEMPLATE6: u16 = 257;
const SAMPLING: u16 = 258;

/// An information element (IANA's registry of IPFIX) and its length.
type Field = (u16, u16);

/// Those of the addresses of a record.
const ADDRESSES: [Field; 2] = [
    (8, 4),  // sourceIPv4Address
    (12, 4), // destinationIPv4Address
];
const ADDRESSES6: [Field; 2] = [
    (27, 16), // sourceIPv6Address
    (28, 16), // destinationIPv6Address
];
/// Those behind them.
const FIELDS: [Field; 9] = [
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
const RECORD6: usize = 72;
/// Bytes of all records of a message: it fits the MTU of a tunnel of 1,450 bytes with its headers and the templates.
const MAX: usize = 26 * RECORD;
/// How packets are sampled (RFC 5477, section 8.2): the selector's number is the scope.
const SAMPLING_FIELDS: [Field; 4] = [
    (302, 8), // selectorId
    (304, 2), // selectorAlgorithm
    (305, 4), // samplingPacketInterval
    (306, 4), // samplingPacketSpace
];
/// Systematic sampling by counting packets (RFC 5475, section 5.1).
const BY_COUNT: u16 = 1;

/// The addresses of a record.
pub enum Addresses {
    Four([u8; 4], [u8; 4]),
    Six([u8; 16], [u8; 16]),
}

/// What a record is about.
pub struct Subject {
    pub addresses: Addresses,
    pub ports: [u16; 2],
    pub protocol: u8,
}

/// What goes with the records of a message, if it is time for the templates.
#[derive(Clone, Copy)]
pub struct Templates {
    /// Flows of IPv6 are known.
    pub six: bool,
    /// Of how many packets one is counted.
    pub sample: u32,
}

impl Templates {
    /// Data records that go with the templates: the one of options that says how packets are sampled.
    pub fn records(self) -> u32 {
        (self.sample > 1).into()
    }
}

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
    records6: Vec<u8>,
}

fn milliseconds(ns: u64) -> [u8; 8] {
    (ns / 1_000_000).to_be_bytes()
}

impl Message {
    /// Records that wait.
    pub fn count(&self) -> usize {
        self.records.len() / RECORD + self.records6.len() / RECORD6
    }

    /// True if one more record may not fit.
    pub fn is_full(&self) -> bool {
        // the next one may be of either version
        self.records.len() + self.records6.len() + RECORD6 > MAX
    }

    /// Adds a record.
    pub fn add(&mut self, subject: &Subject, counts: &Counts, end: End) {
        let records = match subject.addresses {
            Addresses::Four(source, destination) => {
                self.records.extend([source, destination].as_flattened());
                &mut self.records
            }
            Addresses::Six(source, destination) => {
                self.records6.extend([source, destination].as_flattened());
                &mut self.records6
            }
        };
        let [sport, dport] = subject.ports;
        records.extend(sport.to_be_bytes());
        records.extend(dport.to_be_bytes());
        records.extend([subject.protocol, end as u8, 0, counts.tcp_flags]);
        records.extend(counts.packets.to_be_bytes());
        records.extend(counts.bytes.to_be_bytes());
        records.extend(milliseconds(counts.first_ns));
        records.extend(milliseconds(counts.last_ns));
    }

    /// The message with all records, which are gone then.
    pub fn take(
        &mut self,
        now_ns: u64,
        sequence: u32,
        domain: u32,
        templates: Option<Templates>,
    ) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + MAX);
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(((now_ns / 1_000_000_000) as u32).to_be_bytes());
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(domain.to_be_bytes());
        if let Some(templates) = templates {
            add_templates(&mut bytes, templates);
        }
        for (number, records) in [
            (TEMPLATE, &mut self.records),
            (TEMPLATE6, &mut self.records6),
        ] {
            if !records.is_empty() {
                add_set(&mut bytes, number, records);
                records.clear();
            }
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

fn add_fields(content: &mut Vec<u8>, fields: &[Field]) {
    for (element, length) in fields {
        content.extend(element.to_be_bytes());
        content.extend(length.to_be_bytes());
    }
}

fn add_templates(bytes: &mut Vec<u8>, templates: Templates) {
    let mut content = Vec::new();
    let mut add = |number: u16, addresses: &[Field]| {
        content.extend(number.to_be_bytes());
        content.extend(((addresses.len() + FIELDS.len()) as u16).to_be_bytes());
        add_fields(&mut content, addresses);
        add_fields(&mut content, &FIELDS);
    };
    add(TEMPLATE, &ADDRESSES);
    if templates.six {
        add(TEMPLATE6, &ADDRESSES6);
    }
    add_set(bytes, TEMPLATE_SET, &content);
    if templates.records() > 0 {
        add_sampling(bytes, templates.sample);
    }
}

/// The template of how packets are sampled, and its record.
fn add_sampling(bytes: &mut Vec<u8>, sample: u32) {
    let mut content = Vec::new();
    for number in [SAMPLING, SAMPLING_FIELDS.len() as u16, 1] {
        content.extend(number.to_be_bytes());
    }
    add_fields(&mut content, &SAMPLING_FIELDS);
    add_set(bytes, OPTIONS_SET, &content);
    let mut record = Vec::new();
    record.extend(1u64.to_be_bytes());
    record.extend(BY_COUNT.to_be_bytes());
    record.extend(1u32.to_be_bytes());
    record.extend((sample - 1).to_be_bytes());
    add_set(bytes, SAMPLING, &record);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(addresses: Addresses) -> Subject {
        Subject {
            addresses,
            ports: [1, 2],
            protocol: 6,
        }
    }

    const ALL: Templates = Templates {
        six: true,
        sample: 100,
    };

    #[test]
    fn a_full_message_fits_a_tunnel() {
        let length = |addresses: &[Field]| -> usize {
            let fields = addresses.iter().chain(&FIELDS);
            fields.map(|(_, length)| usize::from(*length)).sum()
        };
        assert_eq!([length(&ADDRESSES), length(&ADDRESSES6)], [RECORD, RECORD6]);
        for sixes in 0..19 {
            let mut message = Message::default();
            while !message.is_full() {
                let six = Addresses::Six([1; 16], [2; 16]);
                let four = Addresses::Four([1; 4], [2; 4]);
                let next = if message.count() < sixes { six } else { four };
                message.add(&subject(next), &Counts::default(), End::Idle);
            }
            let count = message.count();
            assert!(count >= 17, "{count}");
            let bytes = message.take(5_000_000_000, 7, 9, Some(ALL));
            assert!(bytes.len() + 28 <= 1450, "{}", bytes.len());
            let length = [bytes[2], bytes[3]];
            assert_eq!(usize::from(u16::from_be_bytes(length)), bytes.len());
            assert_eq!(bytes[4..16], [0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9]);
            assert_eq!(message.count(), 0);
        }
    }

    #[test]
    fn a_full_message_whose_last_records_are_of_ipv6_fits_a_tunnel() {
        for fours in 0..27 {
            let mut message = Message::default();
            while !message.is_full() {
                let six = Addresses::Six([1; 16], [2; 16]);
                let four = Addresses::Four([1; 4], [2; 4]);
                let next = if message.count() < fours { four } else { six };
                message.add(&subject(next), &Counts::default(), End::Idle);
            }
            let bytes = message.take(5_000_000_000, 7, 9, Some(ALL));
            assert!(bytes.len() + 28 <= 1450, "{fours}: {}", bytes.len());
        }
    }
}
