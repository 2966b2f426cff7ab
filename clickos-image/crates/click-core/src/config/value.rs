// SPDX-License-Identifier: Apache-2.0
//! The kinds of argument values.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use click_lang::text;

use crate::config::args::ArgContext;
use click_packet::anno;

/// A type an argument can have.
pub trait FromArg: Sized {
    /// Parses an argument.
    ///
    /// # Errors The expected form and the value found.
    fn from_arg(text: &str, arg_context: ArgContext<'_>) -> Result<Self, String>;
}

/// Bytes of a value that a message repeats.
const SHOWN: usize = 128;

/// A value in a message: its beginning, on one line, in characters that are seen.
pub struct Beginning<'a>(&'a str);

impl fmt::Display for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |end: &usize| self.0.is_char_boundary(*end);
        let end = (0..=SHOWN.min(self.0.len())).rev().find(fits);
        let (beginning, rest) = self.0.split_at(end.unwrap_or(0));
        write!(f, "{}", beginning.escape_debug())?;
        f.write_str(if rest.is_empty() { "" } else { "..." })
    }
}

/// Values that messages repeat.
pub trait Shown {
    /// The value as a message shows it.
    fn shown(&self) -> Beginning<'_>;
}

impl Shown for str {
    fn shown(&self) -> Beginning<'_> {
        Beginning(self)
    }
}

/// The message that `found` is not `what` is expected.
#[cold]
#[inline(never)]
pub fn expected(what: &str, found: &str) -> String {
    format!("expected {what}, got \"{}\"", found.shown())
}

/// Parses an unsigned number: decimal, `0x` hexadecimal, `0` octal.
pub fn number(text: &str) -> Option<u64> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', _, ..] => (8, &text[1..]),
        _ => (10, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn unsigned(text: &str, max: u64) -> Result<u64, String> {
    match number(text) {
        Some(n) if n <= max => Ok(n),
        Some(n) => Err(format!("{n} is out of range, the most is {max}")),
        None => Err(expected("a number", text)),
    }
}

macro_rules! unsigned_args {
    ($($t:ty),*) => {$(
        impl FromArg for $t {
            fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
                let max = u64::try_from(<$t>::MAX).unwrap_or(u64::MAX);
                let n = unsigned(text, max)?;
                Ok(<$t>::try_from(n).expect("checked against the type's maximum"))
            }
        }
    )*};
}
unsigned_args!(u8, u16, u32, u64, usize);

impl FromArg for i64 {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |d| (true, d));
        let magnitude = number(digits).and_then(|n| i64::try_from(n).ok());
        match magnitude {
            Some(n) => Ok(if negative { -n } else { n }),
            None => Err(expected("a number", text)),
        }
    }
}

impl FromArg for bool {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        match text {
            "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
            "0" | "false" | "f" | "no" | "n" | "off" => Ok(false),
            _ => Err(expected("true or false", text)),
        }
    }
}

impl FromArg for String {
    fn from_arg(arg: &str, _: ArgContext<'_>) -> Result<Self, String> {
        Ok(text::unquote(arg))
    }
}

/// The bytes a string argument means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl FromArg for Bytes {
    fn from_arg(arg: &str, _: ArgContext<'_>) -> Result<Self, String> {
        Ok(Self(text::unquote_bytes(arg)))
    }
}

/// An argument as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbatim(pub String);

impl FromArg for Verbatim {
    fn from_arg(arg: &str, _: ArgContext<'_>) -> Result<Self, String> {
        Ok(Self(arg.to_string()))
    }
}

impl FromArg for Ipv4Addr {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        match at
            .names
            .find(at.element, text)
            .and_then(|n| n.address(text))
        {
            Some(address) => Ok(address),
            None => Err(expected("an IP address", text)),
        }
    }
}

/// A hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EtherAddr(pub [u8; 6]);

impl core::fmt::Display for EtherAddr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{g:02X}")
    }
}

/// Parses `1:2:3:4:5:6` or `01-02-03-04-05-06`.
fn ether(text: &str) -> Option<[u8; 6]> {
    let separator = if text.contains(':') { ':' } else { '-' };
    let mut address = [0; 6];
    let mut parts = text.split(separator);
    for byte in &mut address {
        let part = parts
            .next()
            .filter(|p| (1..=2).contains(&p.len()) && !p.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

impl FromArg for EtherAddr {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let named = || at.names.find(at.element, text)?.hardware_address(text);
        match ether(text).or_else(named) {
            Some(address) => Ok(Self(address)),
            None => Err(expected("an Ethernet address", text)),
        }
    }
}

/// An address with the mask of its network: `10.0.0.1/8`, `10.0.0.0/255.0.0.0`, or a lone address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address, host bits included.
    pub address: Ipv4Addr,
    /// The mask.
    pub mask: Ipv4Addr,
}

impl Prefix {
    /// The network's address.
    pub fn base(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.address) & u32::from(self.mask))
    }

    /// The address behind the network's.
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base()) | 1)
    }

    /// The last address, which is for broadcasts.
    pub fn last(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.address) | !u32::from(self.mask))
    }

    /// True if the network contains the address.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let mask = u32::from(self.mask);
        u32::from(address) & mask == u32::from(self.address) & mask
    }
}

/// The mask of a prefix length.
pub fn mask_of(length: u8) -> Ipv4Addr {
    Ipv4Addr::from(
        u32::MAX
            .checked_shl(32 - u32::from(length.min(32)))
            .unwrap_or(0),
    )
}

impl FromArg for Prefix {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let Some((address, mask)) = text.split_once('/') else {
            let network = || at.names.find(at.element, text)?.network(text);
            let lone = |address| Self {
                address,
                mask: mask_of(32),
            };
            let address = Ipv4Addr::from_arg(text, at).map(lone);
            return address.or_else(|e| network().ok_or(e));
        };
        let full = if address.split('.').count() < 4 {
            short_address(address)
        } else {
            None
        };
        let address = full.map_or_else(|| Ipv4Addr::from_arg(address, at), Ok)?;
        let mask = match number(mask) {
            Some(length) if length <= 32 => mask_of(u8::try_from(length).expect("at most 32")),
            _ => match mask.parse() {
                Ok(mask) => mask,
                Err(_) => return Err(expected("an IP prefix", text)),
            },
        };
        Ok(Self { address, mask })
    }
}

/// `10` or `10.1` in front of a slash.
fn short_address(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    for (octet, part) in octets.iter_mut().zip(text.split('.')) {
        *octet = part.parse().ok()?;
    }
    Some(octets.into())
}

/// A span of time: `1.5`, `20ms`, `3s`, `2min`; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its length in nanoseconds.
    pub ns: u64,
}

const UNITS: [(&str, u64); 9] = [
    ("nsec", 1),
    ("ns", 1),
    ("usec", 1_000),
    ("us", 1_000),
    ("msec", 1_000_000),
    ("ms", 1_000_000),
    ("sec", 1_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
];

impl FromArg for Span {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let unit = UNITS
            .iter()
            .find_map(|(name, ns)| Some((text.strip_suffix(name)?, *ns)));
        let (digits, scale) = unit.unwrap_or((text, 1_000_000_000));
        decimal(digits.trim_end(), scale)
            .map_or_else(|| Err(expected("a time", text)), |ns| Ok(Self { ns }))
    }
}

/// A decimal number times `scale`.
fn decimal(text: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = whole.checked_mul(scale)?;
    let mut unit = scale;
    for digit in fraction.bytes() {
        unit /= 10;
        total = total.checked_add(u64::from(digit - b'0') * unit)?;
    }
    Some(total)
}

/// The number of a device: `0`, or `vif0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceId(pub u32);

impl FromArg for DeviceId {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let name = text::unquote(text);
        let id =
            number(name.strip_prefix("vif").unwrap_or(&name)).and_then(|n| u32::try_from(n).ok());
        let Some(id) = id else {
            return Err(expected("the number of a device", text));
        };
        let devices = &at.environment.devices;
        if devices.contains_key(&id) {
            return Ok(Self(id));
        }
        let known: Vec<String> = devices.keys().map(ToString::to_string).collect();
        Err(match &known[..] {
            [] => format!("no device {id}; there are none"),
            [only] => format!("no device {id}, expected {only}"),
            _ => format!("no device {id}, expected one of {}", known.join(", ")),
        })
    }
}

/// Where a one-byte annotation is: its offset, or its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteAnno(pub usize);

/// Where an annotation of four bytes is: its offset, or its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordAnno(pub usize);

/// Annotations that have names everywhere.
const ANNOTATIONS: [(&str, usize); 6] = [
    ("AGGREGATE", anno::AGGREGATE),
    ("DST_IP", anno::DST_IP),
    ("EXTRA_LENGTH", anno::EXTRA_LENGTH),
    ("FIX_IP_SRC", anno::FIX_IP_SRC),
    ("ICMP_PARAMPROB", anno::ICMP_PARAMPROB),
    ("PAINT", anno::PAINT),
];

/// The offset of an annotation of `size` bytes.
fn annotation(text: &str, size: usize, at: ArgContext<'_>) -> Result<usize, String> {
    let defined = || at.names.find(at.element, text).and_then(|n| n.annotation);
    let known = || ANNOTATIONS.iter().find(|(name, _)| *name == text);
    let given = || number(text).and_then(|n| usize::try_from(n).ok());
    let offset = defined()
        .or_else(|| known().map(|(_, at)| *at))
        .or_else(given);
    let last = anno::SIZE - size;
    match offset {
        Some(offset) if offset <= last => Ok(offset),
        Some(offset) => Err(format!(
            "annotation {offset} is out of range, the last is {last}"
        )),
        None => Err(expected("an annotation", text)),
    }
}

impl FromArg for ByteAnno {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        annotation(text, 1, at).map(Self)
    }
}

impl FromArg for WordAnno {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        annotation(text, 4, at).map(Self)
    }
}
