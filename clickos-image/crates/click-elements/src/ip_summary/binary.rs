// SPDX-License-Identifier: Apache-2.0
//! The fields of a dump in binary records: numbers in network byte order, each as wide as its field.
use super::field::Field;
use crate::prelude::*;

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number of this size in octets.
    Number(usize),
    /// Seconds and microseconds, four octets each.
    Time,
    /// Octets as they are in the packet.
    Octets(usize),
    /// An octet with the length, and the octets of the options.
    Options,
    /// Not at all.
    Never,
}

/// How `field` is stored.
pub fn form(field: Field) -> Form {
    use Field as F;
    match field {
        F::Timestamp | F::FirstTimestamp => Form::Time,
        F::TsUsec1 => Form::Number(8),
        F::TsSec | F::TsUsec | F::IpLen | F::IpCaptureLen | F::TcpSeq | F::TcpAck => {
            Form::Number(4)
        }
        F::UdpLen | F::PayloadLen | F::Count | F::Aggregate | F::WireLen => Form::Number(4),
        F::IpId | F::IpSum | F::IpFragoff | F::Sport | F::Dport | F::TcpWindow => Form::Number(2),
        F::TcpUrp | F::IcmpFlowid | F::IcmpSeq | F::IcmpNextmtu | F::EthType => Form::Number(2),
        F::IpProto | F::IpHl | F::IpTos | F::IpDscp | F::IpEcn | F::IpTtl | F::IpFrag => {
            Form::Number(1)
        }
        F::TcpOff | F::TcpFlags | F::IcmpType | F::IcmpCode => Form::Number(1),
        F::IcmpTypeName | F::IcmpCodeName | F::Direction | F::Link => Form::Number(1),
        F::IpSrc | F::IpDst => Form::Octets(4),
        F::EthSrc | F::EthDst => Form::Octets(6),
        F::PayloadMd5 | F::PayloadMd5Hex => Form::Octets(16),
        F::IpOpt | F::TcpOpt | F::TcpNtopt | F::TcpSack => Form::Options,
        F::Payload => Form::Never,
    }
}

/// The first field of these that has no binary form.
pub fn unfit(fields: &[Field]) -> Option<Field> {
    let mut fields = fields.iter().copied();
    fields.find(|field| form(*field) == Form::Never)
}

/// A field of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Number(u64),
    /// Nanoseconds.
    Time(u64),
    Octets(&'a [u8]),
}

/// Takes the value of `field` off the front of a record; nothing if the record ends before.
pub fn take<'a>(field: Field, record: &mut &'a [u8]) -> Option<Value<'a>> {
    Some(match form(field) {
        Form::Number(octets) => Value::Number(number(split(record, octets)?)),
        Form::Time => {
            let (seconds, us) = (number(split(record, 4)?), number(split(record, 4)?));
            Value::Time(seconds * 1_000_000_000 + us * 1000)
        }
        Form::Octets(octets) => Value::Octets(split(record, octets)?),
        Form::Options => {
            let length = number(split(record, 1)?);
            Value::Octets(split(record, usize::try_from(length).ok()?)?)
        }
        Form::Never => return None,
    })
}

fn split<'a>(record: &mut &'a [u8], octets: usize) -> Option<&'a [u8]> {
    let (front, rest) = record.split_at_checked(octets)?;
    *record = rest;
    Some(front)
}

fn number(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |n, octet| n << 8 | u64::from(*octet))
}

/// Appends the value of `field` to a record; what the packet does not have is zero.
pub fn put(field: Field, value: Option<Value<'_>>, record: &mut Vec<u8>) {
    let octets = match &value {
        Some(Value::Octets(octets)) => octets,
        _ => &[][..],
    };
    match (form(field), &value) {
        (Form::Number(width), Some(Value::Number(n))) => {
            record.extend_from_slice(&n.to_be_bytes()[8 - width..]);
        }
        (Form::Time, Some(Value::Time(ns))) => {
            let halves = [ns / 1_000_000_000, ns % 1_000_000_000 / 1000];
            let low = |half: u64| half.to_be_bytes()[4..].to_vec();
            record.extend(halves.map(low).concat());
        }
        (Form::Octets(width), Some(_)) if octets.len() == width => record.extend(octets),
        (Form::Options, _) => {
            record.push(u8::try_from(octets.len()).unwrap_or(0));
            record.extend(octets);
        }
        (Form::Number(width) | Form::Octets(width), _) => record.extend(vec![0; width]),
        (Form::Time, _) => record.extend([0; 8]),
        (Form::Never, _) => {}
    }
}

/// A record with its length in front.
pub fn framed(record: &[u8]) -> Vec<u8> {
    let length = u32::try_from(record.len() + HEADER).unwrap_or(0);
    [&length.to_be_bytes(), record].concat()
}

/// A line of text as a record.
pub fn framed_line(line: &str) -> Vec<u8> {
    let mut framed = framed(format!("{line}\n").as_bytes());
    framed[0] |= TEXT;
    framed
}

/// The head of a record: true for a line of text, and its length.
pub fn unframe(header: [u8; HEADER]) -> Option<(bool, usize)> {
    let length = u32::from_be_bytes(header) & !(u32::from(TEXT) << 24);
    let length = usize::try_from(length).ok()?.checked_sub(HEADER)?;
    (length <= MAX_RECORD).then_some((header[0] & TEXT > 0, length))
}

/// Octets in front of a record.
pub const HEADER: usize = 4;
/// Octets of a record at most; a longer one is damaged.
const MAX_RECORD: usize = 1 << 18;
/// The bit of a line of text.
const TEXT: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_as_wide_as_its_form() {
        for (field, value, bytes) in [
            (Field::IpLen, Value::Number(0x0102_0304), &[1, 2, 3, 4][..]),
            (Field::Sport, Value::Number(0x0102), &[1, 2]),
            (
                Field::Timestamp,
                Value::Time(7_000_003_000),
                &[0, 0, 0, 7, 0, 0, 0, 3],
            ),
            (Field::IpSrc, Value::Octets(&[1, 2, 3, 4]), &[1, 2, 3, 4]),
            (Field::IpOpt, Value::Octets(&[1, 1]), &[2, 1, 1]),
        ] {
            let mut record = Vec::new();
            put(
                field,
                Some(take(field, &mut &bytes[..]).unwrap()),
                &mut record,
            );
            assert_eq!(record, bytes, "{field:?}");
            assert_eq!(take(field, &mut &bytes[..]), Some(value));
            let mut short = &bytes[..bytes.len() - 1];
            assert_eq!(take(field, &mut short), None, "{field:?}");
            record.clear();
            put(field, None, &mut record);
            assert!(record.iter().all(|b| *b == 0), "{field:?}");
        }
    }

    #[test]
    fn records_say_how_long_they_are() {
        let header = |bytes: Vec<u8>| unframe(*bytes.first_chunk().unwrap());
        assert_eq!(header(framed(b"abc")), Some((false, 3)));
        assert_eq!(header(framed_line("!x")), Some((true, 3)));
        assert_eq!(header(vec![0, 0, 0, 3]), None);
        assert_eq!(header(vec![0x7f, 0xff, 0xff, 0xff]), None);
    }
}
