// SPDX-License-Identifier: Apache-2.0
//! What an Access-Accept permits a subscriber.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::packet::{VALUE, Values, attribute};
use crate::carried;

/// WISPr's number among vendors, and its rates in bits a second.
const WISPR: [u8; 4] = 14_122u32.to_be_bytes();
const MAX_UP: u8 = 7;
const MAX_DOWN: u8 = 8;
/// The service that a subscriber of PPP gets (RFC 2865, sections 5.6 and 5.7).
const FRAMED: u32 = 2;
const PPP: u32 = 1;
/// The server lets the access server choose, or the subscriber (section 5.8).
const CHOICE: u32 = 0xffff_fffe;
/// Values of Class that are kept.
const CLASSES: usize = 4;
/// The least seconds between interim records (RFC 2869, section 5.16).
const MIN_INTERIM_S: u32 = 60;
/// Bits of a subscriber's IPv6 prefix.
const PREFIX: u8 = 64;

/// The terms of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The subscriber's address.
    pub address: Option<Ipv4Addr>,
    /// The first 64 bits of its IPv6 addresses.
    pub prefix: Option<u64>,
    /// Bytes a second to the subscriber and from it; 0: without limit.
    pub rates: [u64; 2],
    /// Seconds until the session ends; 0: never.
    pub session_s: u32,
    /// Seconds without a packet until it ends; 0: never.
    pub idle_s: u32,
    /// Seconds between interim records; 0: as this end has it.
    pub interim_s: u32,
    /// Values that accounts repeat.
    pub classes: Vec<Vec<u8>>,
}

impl Grant {
    /// Reads an answer's attributes; `None` if it permits another service, or if an attribute that counts cannot be used:
    /// then the login fails (RFC 2865, section 4.2).
    pub fn read(values: Values<'_>) -> Option<Self> {
        let mut me = Self::default();
        for (kind, value) in values {
            match kind {
                attribute::SERVICE_TYPE => (number(value)? == FRAMED).then_some(())?,
                attribute::FRAMED_PROTOCOL => (number(value)? == PPP).then_some(())?,
                attribute::FRAMED_IP_ADDRESS => {
                    let address = number(value).filter(|address| *address < CHOICE)?;
                    me.address = Some(address.into());
                }
                attribute::FRAMED_IPV6_PREFIX => me.prefix = Some(prefix(value)?),
                attribute::SESSION_TIMEOUT => me.session_s = number(value)?,
                attribute::IDLE_TIMEOUT => me.idle_s = number(value)?,
                attribute::ACCT_INTERIM_INTERVAL => {
                    me.interim_s = number(value)?.max(MIN_INTERIM_S);
                }
                attribute::CLASS if me.classes.len() < CLASSES => me.classes.push(value.to_vec()),
                attribute::VENDOR_SPECIFIC => me.vendor(value)?,
                _ => {}
            }
        }
        Some(me)
    }

    /// Reads a vendor's attributes; those of others than WISPr do not count.
    fn vendor(&mut self, value: &[u8]) -> Option<()> {
        let (vendor, rest) = value.split_first_chunk::<4>()?;
        if *vendor != WISPR {
            return Some(());
        }
        for (kind, value) in Values::new(rest)? {
            let rate = match kind {
                MAX_DOWN => &mut self.rates[0],
                MAX_UP => &mut self.rates[1],
                _ => continue,
            };
            // the least limit, so that 1 to 7 bits a second do not become none
            *rate = u64::from(number(value)?).div_ceil(8);
        }
        Some(())
    }
}

/// An attribute's number.
fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

/// A prefix of 64 bits (RFC 3162, section 2.3), of addresses that a router forwards.
fn prefix(value: &[u8]) -> Option<u64> {
    let [0, PREFIX, bytes @ ..] = value else {
        return None;
    };
    let mut network = [0; 16];
    network.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let [a, b, c, d, e, f, g, h, ..] = network;
    let is_global = matches!(a, 0x20..=0x3f | 0xfc | 0xfd);
    is_global.then_some(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// A grant as a word of a session's state; the address stands elsewhere there.
impl core::fmt::Display for Grant {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [down, up] = self.rates;
        write!(
            f,
            "{down},{up},{},{},{}",
            self.session_s, self.idle_s, self.interim_s
        )?;
        for class in &self.classes {
            let digits: String = class.iter().map(|byte| format!("{byte:02x}")).collect();
            write!(f, ",{digits}")?;
        }
        Ok(())
    }
}

impl Grant {
    /// Reads what [`Display`](core::fmt::Display) writes.
    pub fn carried(word: &str) -> Option<Self> {
        let mut parts = word.split(',');
        let mut next = || carried::number::<u64>(parts.next()?);
        let rates = [next()?, next()?];
        let mut seconds = || next().and_then(|n| u32::try_from(n).ok());
        let (session_s, idle_s, interim_s) = (seconds()?, seconds()?, seconds()?);
        let classes: Option<Vec<Vec<u8>>> = parts.map(bytes).collect();
        let classes = classes.filter(|classes| classes.len() <= CLASSES)?;
        Some(Self {
            address: None,
            prefix: None,
            rates,
            session_s,
            idle_s,
            interim_s,
            classes,
        })
    }
}

/// Bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let right = digits.len() % 2 == 0 && digits.len() <= 2 * VALUE;
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    (right && plain).then(|| (0..digits.len()).step_by(2).map_while(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use proptest::prelude::*;

    fn read(attributes: &[u8]) -> Option<Grant> {
        Grant::read(Values::new(attributes).unwrap())
    }

    #[test]
    fn terms_come_from_attributes() {
        let all = [
            &[6, 6, 0, 0, 0, 2, 7, 6, 0, 0, 0, 1, 8, 6, 10, 0, 0, 9][..],
            &[27, 6, 0, 0, 14, 16, 28, 6, 0, 0, 1, 44, 85, 6, 0, 0, 0, 5],
            &[25, 4, b'a', b'b', 25, 3, b'c'],
            &[
                26, 18, 0, 0, 0x37, 0x2a, 7, 6, 0, 0x0f, 0x42, 0x40, 8, 6, 0, 0x1e, 0x84, 0x80,
            ],
            &[97, 12, 0, 64, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 7],
            &[26, 9, 0, 0, 0, 9, 1, 3, b'x', 18, 3, b'y'],
        ];
        let grant = Grant {
            address: Some([10, 0, 0, 9].into()),
            prefix: Some(0x2001_0db8_0000_0007),
            rates: [250_000, 125_000],
            session_s: 3600,
            idle_s: 300,
            interim_s: 60,
            classes: vec![b"ab".to_vec(), b"c".to_vec()],
        };
        assert_eq!(read(&all.concat()), Some(grant.clone()));
        let word = grant.to_string();
        assert_eq!(word, "250000,125000,3600,300,60,6162,63");
        let rest = Grant {
            address: None,
            prefix: None,
            ..grant
        };
        assert_eq!(Grant::carried(&word), Some(rest));
    }

    #[test]
    fn terms_that_cannot_hold_fail_the_login() {
        for wrong in [
            &[6, 6, 0, 0, 0, 1][..],
            &[6, 5, 0, 0, 2],
            &[7, 6, 0, 0, 0, 2],
            &[8, 6, 0xff, 0xff, 0xff, 0xff],
            &[8, 6, 0xff, 0xff, 0xff, 0xfe],
            &[8, 2],
            &[27, 3, 1],
            &[26, 4, 0, 0],
            &[26, 9, 0, 0, 0x37, 0x2a, 7, 3, 1],
            &[26, 8, 0, 0, 0x37, 0x2a, 7, 9],
            &[97, 12, 0, 56, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 7],
            &[97, 4, 0, 64],
            &[97, 12, 0, 64, 0xfe, 0x80, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        // a prefix may be written with all its bits
        let whole = [&[97, 20, 0, 64, 0x20, 1][..], &[0; 14]].concat();
        assert_eq!(read(&whole).unwrap().prefix, Some(0x2001 << 48));
    }

    #[test]
    fn words_of_strangers_are_no_grant() {
        for wrong in [
            "",
            "1,2,3,4",
            "1,2,3,4,x",
            "1,2,3,4,5,6",
            "1,2,3,4,5,zz",
            "1,2,3,4,99999999999",
        ] {
            assert_eq!(Grant::carried(wrong), None, "{wrong}");
        }
        assert_eq!(Grant::carried("1,2,3,4,5,aa,bb,cc,dd,ee"), None);
    }

    proptest! {
        #[test]
        fn no_attributes_make_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..100) {
            let mut bytes = bytes;
            if let [first, length, ..] = &mut bytes[..] {
                (*first, *length) = (kind, (*length).min(40));
            }
            if let Some(values) = Values::new(&bytes) {
                let grant = Grant::read(values);
                prop_assert!(grant.is_none_or(|grant| grant.classes.len() <= CLASSES));
            }
        }
    }
}
