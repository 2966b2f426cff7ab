// SPDX-License-Identifier: Apache-2.0
//! A line of a dump, and its packet.
use click_core::{MAX_PACKET, PacketPool, anno, text};
use click_wire::{checksum, icmp};

use super::binary::{Value, take};
use super::field::Field;
use super::options;
use super::packet::EXTRA_PACKETS;
use super::words::{SECOND_NS, flags, length, protocol, time, whole_seconds};
use crate::prelude::*;

/// Defaults of fields that a line does not have.
#[derive(Clone, Debug)]
pub struct Defaults {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub ports: (u16, u16),
    pub protocol: u8,
    pub aggregate: Option<u32>,
    /// True if checksums are computed and the data is complete.
    pub checksum: bool,
}

/// The values of a line.
#[derive(Clone, Debug)]
pub struct Record {
    pub timestamp_ns: Option<u64>,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    tos: u8,
    ttl: u8,
    id: u16,
    fragment: u16,
    checksum: Option<u16>,
    ip_options: Vec<u8>,
    header_len: Option<usize>,
    ip_len: Option<usize>,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u16,
    tcp_off: Option<u8>,
    window: u16,
    urgent: u16,
    tcp_options: Vec<u8>,
    udp_len: Option<u16>,
    icmp: [u8; 2],
    /// The second word of an ICMP header: identifier and sequence number, or the next hop's MTU.
    icmp_rest: (u16, u16),
    payload: Vec<u8>,
    payload_len: Option<usize>,
    /// Packets it stands for.
    pub count: u32,
    paint: u8,
    aggregate: Option<u32>,
    wire_len: Option<usize>,
}

/// Time to live where none is given, as Click's.
const TTL: u8 = 100;

impl Record {
    fn new(defaults: &Defaults) -> Self {
        Self {
            timestamp_ns: None,
            source: defaults.source,
            destination: defaults.destination,
            protocol: defaults.protocol,
            tos: 0,
            ttl: TTL,
            id: 0,
            fragment: 0,
            checksum: None,
            ip_options: Vec::new(),
            header_len: None,
            ip_len: None,
            ports: defaults.ports,
            seq: 0,
            ack: 0,
            flags: 0,
            tcp_off: None,
            window: 0,
            urgent: 0,
            tcp_options: Vec::new(),
            udp_len: None,
            icmp: [0; 2],
            icmp_rest: (0, 0),
            payload: Vec::new(),
            payload_len: None,
            count: 1,
            paint: 0,
            aggregate: defaults.aggregate,
            wire_len: None,
        }
    }

    /// Parses a line; a field that cannot be read counts as missing, a line without any field that
    /// can is nothing.
    pub fn parse(line: &str, fields: &[Field], defaults: &Defaults) -> Option<Self> {
        let words = text::split_words(line);
        let mut record = Self::new(defaults);
        let mut any = false;
        for (field, word) in fields.iter().zip(&words) {
            any |= word != "-" && record.set(*field, word).is_some();
        }
        any.then_some(record)
    }

    /// Takes a binary record; what is missing at its end counts as missing.
    pub fn of_binary(mut bytes: &[u8], fields: &[Field], defaults: &Defaults) -> Self {
        let mut record = Self::new(defaults);
        for field in fields {
            let Some(value) = take(*field, &mut bytes) else {
                break;
            };
            // a value out of range counts as missing
            let _ = record.set_value(*field, &value);
        }
        record
    }

    fn set_value(&mut self, field: Field, value: &Value<'_>) -> Option<()> {
        match (field, value) {
            (_, Value::Time(ns)) => self.timestamp_ns = Some(*ns),
            (Field::IpSrc | Field::IpDst, Value::Octets(octets)) => {
                let octets: [u8; 4] = (*octets).try_into().ok()?;
                return self.set(field, &Ipv4Addr::from(octets).to_string());
            }
            (Field::IpOpt, Value::Octets(octets)) => self.ip_options = fitting(octets)?,
            (Field::TcpOpt | Field::TcpNtopt | Field::TcpSack, Value::Octets(octets)) => {
                self.tcp_options = fitting(octets)?;
            }
            (_, Value::Octets(_)) => {}
            (Field::IpFragoff, Value::Number(raw)) => self.fragment = u16::try_from(*raw).ok()?,
            (Field::IpFrag, Value::Number(letter)) => {
                let letter = char::from(u8::try_from(*letter).ok()?);
                return self.set(field, &letter.to_string());
            }
            (_, Value::Number(number)) => return self.set(field, &number.to_string()),
        }
        Some(())
    }

    fn set(&mut self, field: Field, word: &str) -> Option<()> {
        match field {
            Field::Timestamp
            | Field::FirstTimestamp
            | Field::TsSec
            | Field::TsUsec
            | Field::TsUsec1 => self.timestamp_ns = Some(self.time(field, word)?),
            Field::Count => self.count = word.parse().ok()?,
            Field::Direction | Field::Link => {
                self.paint = match word {
                    ">" | "L" => 0,
                    "<" | "R" | "X" => 1,
                    number => number.parse().ok()?,
                }
            }
            Field::Aggregate => self.aggregate = Some(word.parse().ok()?),
            Field::WireLen => self.wire_len = Some(length(word)?),
            _ => {
                return self
                    .set_ip(field, word)
                    .or_else(|| self.set_transport(field, word));
            }
        }
        Some(())
    }

    /// The time that a word makes of the one there is.
    fn time(&self, field: Field, word: &str) -> Option<u64> {
        let before_ns = self.timestamp_ns.unwrap_or(0);
        let fraction_ns = before_ns % SECOND_NS;
        match field {
            Field::TsSec => whole_seconds(word)?.checked_add(fraction_ns),
            Field::TsUsec => {
                let us = word.parse::<u64>().ok().filter(|us| *us < 1_000_000)?;
                (before_ns - fraction_ns).checked_add(us * 1000)
            }
            Field::TsUsec1 => word.parse::<u64>().ok()?.checked_mul(1000),
            _ => time(word),
        }
    }

    fn set_ip(&mut self, field: Field, word: &str) -> Option<()> {
        match field {
            Field::IpSrc => self.source = word.parse().ok()?,
            Field::IpDst => self.destination = word.parse().ok()?,
            Field::IpProto => self.protocol = protocol(word)?,
            Field::IpLen => self.ip_len = Some(length(word)?),
            Field::IpId => self.id = word.parse().ok()?,
            Field::IpTos => self.tos = word.parse().ok()?,
            Field::IpDscp => {
                self.tos = self.tos & 3 | word.parse::<u8>().ok().filter(|d| *d < 64)? << 2
            }
            Field::IpEcn => {
                let names = ["no", "ect1", "ect2", "ce"];
                let named = names.iter().position(|n| *n == word);
                let ecn = named
                    .and_then(|n| u8::try_from(n).ok())
                    .or_else(|| word.parse().ok());
                self.tos = self.tos & !3 | ecn.filter(|e| *e < 4)?;
            }
            Field::IpTtl => self.ttl = word.parse().ok()?,
            Field::IpSum => self.checksum = Some(word.parse().ok()?),
            Field::IpFrag => {
                self.fragment = match word {
                    "F" => 0x2000,
                    // somewhere in the middle
                    "f" => 100,
                    "!" => 0x4000,
                    "." => 0,
                    _ => return None,
                }
            }
            Field::IpFragoff => {
                let digits = word.trim_end_matches(['+', '!']);
                let more = if word.contains('+') { 0x2000 } else { 0 };
                let whole = if word.contains('!') { 0x4000 } else { 0 };
                self.fragment = (digits.parse::<u16>().ok()? / 8) & 0x1fff | more | whole;
            }
            Field::IpHl => self.header_len = Some(word.parse().ok().filter(|n| *n <= 60)?),
            Field::IpOpt => self.ip_options = options::parse_ip(word)?,
            Field::PayloadLen => self.payload_len = Some(length(word)?),
            Field::Payload => self.payload = text::unquote_bytes(word),
            _ => return None,
        }
        Some(())
    }

    fn set_transport(&mut self, field: Field, word: &str) -> Option<()> {
        match field {
            Field::Sport => self.ports.0 = word.parse().ok()?,
            Field::Dport => self.ports.1 = word.parse().ok()?,
            Field::TcpSeq => self.seq = word.parse().ok()?,
            Field::TcpAck => self.ack = word.parse().ok()?,
            Field::TcpFlags => self.flags = flags(word)?,
            Field::TcpOff => self.tcp_off = Some(word.parse().ok()?),
            Field::TcpWindow => self.window = word.parse().ok()?,
            Field::TcpUrp => self.urgent = word.parse().ok()?,
            Field::TcpOpt | Field::TcpNtopt | Field::TcpSack => {
                self.tcp_options = options::parse_tcp(word)?;
            }
            Field::UdpLen => self.udp_len = Some(word.parse().ok()?),
            Field::IcmpType | Field::IcmpTypeName => {
                let named = (0..=u8::MAX).find(|k| icmp::type_name(*k) == Some(word));
                self.icmp[0] = named.or_else(|| word.parse().ok())?;
            }
            Field::IcmpCode | Field::IcmpCodeName => {
                self.icmp[1] =
                    icmp::code_named(self.icmp[0], word).or_else(|| word.parse().ok())?;
            }
            Field::IcmpFlowid => self.icmp_rest.0 = word.parse().ok()?,
            Field::IcmpSeq | Field::IcmpNextmtu => self.icmp_rest.1 = word.parse().ok()?,
            _ => return None,
        }
        Some(())
    }

    /// The transport header; none in a later fragment.
    fn transport(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.fragment & 0x1fff > 0 {
            return out;
        }
        match self.protocol {
            6 => {
                out.extend(self.ports.0.to_be_bytes());
                out.extend(self.ports.1.to_be_bytes());
                out.extend(self.seq.to_be_bytes());
                out.extend(self.ack.to_be_bytes());
                let words = (20 + self.tcp_options.len()) / 4;
                let words = self.tcp_off.map_or(words, |octets| usize::from(octets) / 4);
                let words = u16::try_from(words.min(15)).unwrap_or(15);
                out.extend((words << 12 | self.flags).to_be_bytes());
                out.extend(self.window.to_be_bytes());
                out.extend([0, 0]);
                out.extend(self.urgent.to_be_bytes());
                out.extend(&self.tcp_options);
                out.resize(out.len().max(usize::from(words) * 4), 0);
            }
            17 => {
                out.extend(self.ports.0.to_be_bytes());
                out.extend(self.ports.1.to_be_bytes());
                out.extend([0; 4]);
            }
            1 => {
                out.extend(self.icmp);
                out.extend([0, 0]);
                out.extend(self.icmp_rest.0.to_be_bytes());
                out.extend(self.icmp_rest.1.to_be_bytes());
            }
            _ => {}
        }
        out
    }

    /// Makes the packet; `None` if there is no buffer.
    pub fn packet(&self, pool: &mut PacketPool, defaults: &Defaults) -> Option<Packet> {
        let mut transport = self.transport();
        // a header longer than its options ends with zeros, which end a list of options
        let header_len = self.header_len.unwrap_or(0).max(20 + self.ip_options.len());
        let header_len = header_len.next_multiple_of(4);
        let headers = header_len + transport.len();
        let mut payload = self.payload.clone();
        let wanted = self.payload_len.unwrap_or(payload.len());
        let total = self
            .ip_len
            .unwrap_or(headers + wanted)
            .clamp(header_len, usize::from(u16::MAX));
        payload.truncate(total.saturating_sub(headers));
        if self.protocol == 17 && transport.len() == 8 {
            let implied = u16::try_from(total - header_len).unwrap_or(u16::MAX);
            transport[4..6].copy_from_slice(&self.udp_len.unwrap_or(implied).to_be_bytes());
        }
        let mut bytes = self.ip_header(header_len, total);
        bytes.extend(transport);
        bytes.extend(payload);
        bytes.truncate(total);
        if defaults.checksum {
            bytes.resize(total, 0);
            self.fill_checksums(&mut bytes, header_len);
        }
        let missing = self.wire_len.unwrap_or(total).saturating_sub(bytes.len());
        bytes.truncate(MAX_PACKET);
        let mut packet = pool.packet_from(&bytes)?;
        packet.set_network(0, header_len);
        packet.set_timestamp_ns(self.timestamp_ns.unwrap_or(0));
        let annotations = packet.anno_mut();
        annotations.set_dst_ip(self.destination.octets());
        annotations.set_u8(anno::PAINT, self.paint);
        annotations.set_u32(
            anno::EXTRA_LENGTH,
            u32::try_from(missing).unwrap_or(u32::MAX),
        );
        annotations.set_u32(EXTRA_PACKETS, self.count.saturating_sub(1));
        if let Some(aggregate) = self.aggregate {
            annotations.set_u32(anno::AGGREGATE, aggregate);
        }
        Some(packet)
    }

    fn ip_header(&self, header_len: usize, total: usize) -> Vec<u8> {
        let words = u8::try_from(header_len / 4).unwrap_or(15);
        let mut b = vec![0x40 | words, self.tos];
        b.extend(u16::try_from(total).unwrap_or(u16::MAX).to_be_bytes());
        b.extend(self.id.to_be_bytes());
        b.extend(self.fragment.to_be_bytes());
        b.extend([self.ttl, self.protocol]);
        b.extend(self.checksum.unwrap_or(0).to_be_bytes());
        b.extend(self.source.octets());
        b.extend(self.destination.octets());
        b.extend(&self.ip_options);
        b.resize(header_len, 0);
        b
    }

    fn fill_checksums(&self, b: &mut [u8], header_len: usize) {
        if self.checksum.is_none() {
            let sum = checksum::of(&b[..header_len]);
            b[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let at = match self.protocol {
            1 => 2,
            6 => 16,
            17 => 6,
            _ => return,
        };
        let data = &mut b[header_len..];
        let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
        if self.fragment & 0x3fff > 0 || data.len() < at + 2 {
            return;
        }
        let pseudo = checksum::pseudo(self.source, self.destination, self.protocol, length);
        let start = if self.protocol == 1 { 0 } else { pseudo };
        let sum = checksum::finish(checksum::add(start, data));
        let sum = if self.protocol == 17 && sum == 0 {
            0xffff
        } else {
            sum
        };
        data[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Options of a header, filled up to a multiple of four octets.
fn fitting(octets: &[u8]) -> Option<Vec<u8>> {
    let mut options = octets.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    (options.len() <= options::MAX).then_some(options)
}

#[cfg(test)]
mod tests {
    use super::super::{fields, show, store};
    use super::*;

    fn shown(packet: &Packet, fields: &[Field]) -> String {
        let mut line = String::new();
        show(packet, fields, &mut line);
        line
    }

    fn defaults() -> Defaults {
        Defaults {
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            ports: (0, 0),
            protocol: 6,
            aggregate: None,
            checksum: true,
        }
    }

    #[test]
    fn every_field_of_a_line_comes_back() {
        for (names, line) in [
            (
                "timestamp src sport dst dport proto tcp_seq tcp_ack tcp_flags tcp_window tcp_urp payload",
                r#"1.500000 1.0.0.1 2 3.0.0.4 5 T 6 7 SA 8 9 "a \"b\"\n\001""#,
            ),
            (
                "src dst proto icmp_type_name icmp_code icmp_flowid icmp_seq",
                "1.0.0.1 1.0.0.2 I echo 0 5 6",
            ),
            (
                "src proto sport ip_len ip_id ip_tos ip_ttl ip_fragoff udp_len payload_len",
                "1.0.0.1 U 5 40 7 8 9 0+ 20 12",
            ),
            (
                "ip_ecn ip_dscp link aggregate count ip_frag ip_hl tcp_off tcp_opt ip_opt",
                "ect1 5 3 77 2 ! 24 24 mss5 rr{}",
            ),
            ("proto sport ip_frag", "T - f"),
        ] {
            let fields = fields(names).unwrap();
            let record = Record::parse(line, &fields, &defaults());
            let Some(record) = record else {
                panic!("{line}")
            };
            let packet = record.packet(&mut PacketPool::new(4), &defaults()).unwrap();
            assert_eq!(shown(&packet, &fields), line, "{names}");
        }
    }

    #[test]
    fn binary_records_say_what_lines_say() {
        let names = "timestamp ip_src ip_dst proto sport dport ip_id ip_tos ttl ip_fragoff ip_frag ip_opt \
            tcp_seq tcp_ack tcp_flags tcp_window tcp_opt payload_len count link aggregate";
        let line =
            "1.000005 1.0.0.1 2.0.0.2 T 1 2 3 4 5 0! ! rr{1.2.3.4}+1 6 7 SA 8 mss5;wscale1 9 3 4 5";
        let fields = fields(names).unwrap();
        let record = Record::parse(line, &fields, &defaults()).unwrap();
        let mut pool = PacketPool::new(4);
        let packet = record.packet(&mut pool, &defaults()).unwrap();
        let bytes = store(&packet, &fields);
        let again = Record::of_binary(&bytes, &fields, &defaults());
        let again = again.packet(&mut pool, &defaults()).unwrap();
        assert_eq!(shown(&again, &fields), line);
        for end in 0..bytes.len() {
            let cut = Record::of_binary(&bytes[..end], &fields, &defaults());
            assert!(cut.packet(&mut pool, &defaults()).is_some(), "{end}");
        }
    }

    #[test]
    fn times_beyond_what_can_be_counted_are_missing() {
        for (names, line, expected) in [
            ("ts_usec ts_sec", "999999 18446744073", Some(999_999_000)),
            (
                "ts_sec ts_usec",
                "18446744073 999999",
                Some(18_446_744_073_000_000_000),
            ),
            ("ts_usec1", "18446744073709551615", None),
            ("timestamp", "18446744073.999999", None),
        ] {
            let record = Record::parse(line, &fields(names).unwrap(), &defaults());
            let time_ns = record.and_then(|r| r.timestamp_ns);
            assert_eq!(time_ns, expected, "{names}");
        }
    }

    #[test]
    fn damaged_lines_give_packets_or_nothing() {
        let fields = fields("timestamp src ip_len payload_len tcp_off ip_fragoff payload").unwrap();
        for line in [
            "",
            "- - -",
            "9999999999999999999999 x 65535 65535 255 99999 \"",
            "1 1.0.0.1 0 65535 0 8 \"\\<zz\"",
            "é é é é",
        ] {
            if let Some(record) = Record::parse(line, &fields, &defaults()) {
                assert!(
                    record
                        .packet(&mut PacketPool::new(4), &defaults())
                        .is_some(),
                    "{line}"
                );
            }
        }
    }
}
