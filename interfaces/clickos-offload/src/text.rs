// SPDX-License-Identifier: Apache-2.0
//! The text of a rule: `ACTION [FIELD VALUE]...`.
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Display, Write as _};
use core::net::IpAddr;
use core::str::{FromStr, SplitWhitespace};

use crate::address::Address;
use crate::redirect::{MAX_TARGETS, Target, Targets};
use crate::rule::{Action, Ip6Pattern, IpPattern, Pattern, Range, Rule};

/// Bytes of a value in an error.
const SHOWN: usize = 40;

impl FromStr for Rule {
    type Err = String;

    /// Reads a rule; the error names the field, the value and the expected form.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut rule = Self::new(match words.next() {
            Some("pass") => Action::Pass,
            Some("drop") => Action::Drop,
            Some("redirect") => Action::Redirect(target("redirect", &mut words)?.into()),
            other => {
                return Err(unexpected(
                    "rule",
                    other.unwrap_or(""),
                    "pass, drop or redirect",
                ));
            }
        });
        let is_ip6 = is_ip6(text);
        match rule.action {
            Action::Redirect(_) if is_ip6 => rule.ip6 = Some(Ip6Pattern::ANY),
            Action::Redirect(_) => rule.ip = Some(IpPattern::ANY),
            _ => {}
        }
        while let Some(field) = words.next() {
            rule.add(field, &mut words, is_ip6)?;
        }
        rule.check().map(|()| rule)
    }
}

/// True if the text has the word for IPv6, or such an address.
fn is_ip6(text: &str) -> bool {
    let mut before = "";
    text.split_whitespace().any(|word| {
        let is_address = matches!(before, "src" | "dst" | "to");
        before = word;
        word == "ip6" || is_address && word.contains(':')
    })
}

impl Rule {
    fn add(
        &mut self,
        field: &str,
        words: &mut SplitWhitespace<'_>,
        is_ip6: bool,
    ) -> Result<(), String> {
        match (field, is_ip6) {
            ("ip", true) => return Err("ip: the rule has a field of IPv6".into()),
            ("ip", false) => {
                self.ip.get_or_insert(IpPattern::ANY);
                return Ok(());
            }
            ("ip6", _) => {
                self.ip6.get_or_insert(Ip6Pattern::ANY);
                return Ok(());
            }
            _ => {}
        }
        let text = value(field, words)?;
        match (field, &mut self.action) {
            ("to", Action::Redirect(targets)) => targets.readdress(station_at(text, is_ip6)?),
            ("or", Action::Redirect(targets)) => more(targets, text)?,
            ("ether-src", _) => self.ether_source = Some(mac(field, text)?),
            ("ether-dst", _) => self.ether_destination = Some(mac(field, text)?),
            ("ether-type", _) => self.ether_type = Some(ether_type(text)?),
            _ if is_ip6 => return self.ip6.get_or_insert(Ip6Pattern::ANY).add(field, text),
            _ => return self.ip.get_or_insert(IpPattern::ANY).add(field, text),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let is_clear =
            self.ip.is_none_or(|ip| ip.is_clear()) && self.ip6.is_none_or(|ip| ip.is_clear());
        match is_clear {
            true => Ok(()),
            false => Err("sport, dport: need proto".into()),
        }
    }
}

impl<A: Address> Pattern<A> {
    /// False if it has ports of any protocol.
    fn is_clear(&self) -> bool {
        let has_ports = self.source_port.or(self.destination_port).is_some();
        !has_ports || self.protocol != Self::ANY.protocol
    }

    fn add(&mut self, field: &str, text: &str) -> Result<(), String> {
        match field {
            "src" => self.source = net(field, text)?,
            "dst" => self.destination = net(field, text)?,
            "proto" => self.protocol = range(field, text)?,
            "tos" => self.tos = range(field, text)?,
            "sport" => self.source_port = Some(range(field, text)?),
            "dport" => self.destination_port = Some(range(field, text)?),
            _ => {
                let fields = "ip, ip6, src, dst, proto, tos, sport, dport, ether-src, ether-dst \
                              or ether-type";
                return Err(unexpected("field", field, fields));
            }
        }
        Ok(())
    }
}

fn value<'a>(field: &str, words: &mut SplitWhitespace<'a>) -> Result<&'a str, String> {
    words
        .next()
        .ok_or_else(|| format!("{field}: the value is missing"))
}

fn unexpected(field: &str, text: &str, expected: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    format!("{field}: expected {expected}, got {shown:?}")
}

fn mac(field: &str, text: &str) -> Result<[u8; 6], String> {
    let mut parts = text.split(':');
    let mut octet = || u8::from_str_radix(parts.next().filter(|p| p.len() == 2)?, 16).ok();
    let octets = [(); 6].map(|()| octet());
    let mac = octets.map(|octet| octet.unwrap_or(0));
    match octets.iter().all(Option::is_some) && parts.next().is_none() {
        true => Ok(mac),
        false => Err(unexpected(field, text, "a MAC address")),
    }
}

fn station(text: &str) -> Result<[u8; 6], String> {
    let mac = mac("redirect", text)?;
    match mac[0] & 1 == 0 && mac != [0; 6] {
        true => Ok(mac),
        false => Err(unexpected(
            "redirect",
            text,
            "the MAC address of one station",
        )),
    }
}

fn target(field: &str, words: &mut SplitWhitespace<'_>) -> Result<Target, String> {
    let mac = station(value(field, words)?)?;
    Ok(Target { mac, address: None })
}

/// Adds a station to those of a rule.
fn more(targets: &mut Targets, text: &str) -> Result<(), String> {
    let mac = station(text)?;
    if targets.iter().any(|target| target.mac == mac) {
        return Err(unexpected("or", text, "another station"));
    }
    match targets.add(Target { mac, address: None }) {
        true => Ok(()),
        false => Err(format!("or: there are {MAX_TARGETS} stations already")),
    }
}

fn ether_type(text: &str) -> Result<u16, String> {
    let read = u16::from_str_radix(text, 16)
        .ok()
        .filter(|_| text.len() == 4);
    read.ok_or_else(|| unexpected("ether-type", text, "4 hexadecimal digits"))
}

/// The new destination of a redirected packet.
fn station_at(text: &str, is_ip6: bool) -> Result<IpAddr, String> {
    match is_ip6 {
        true => address::<u128>("to", text).map(|address| IpAddr::V6(address.into())),
        false => address::<u32>("to", text).map(|address| IpAddr::V4(address.into())),
    }
}

fn address<A: Address>(field: &str, text: &str) -> Result<A, String> {
    A::read(text).ok_or_else(|| unexpected(field, text, A::NAME))
}

/// `ADDRESS`, `ADDRESS/BITS` or `ADDRESS-ADDRESS`.
fn net<A: Address>(field: &str, text: &str) -> Result<Range<A>, String> {
    if let Some((first, last)) = text.split_once('-') {
        return ordered(field, text, address(field, first)?, address(field, last)?);
    }
    let (start, bits) = match text.split_once('/') {
        Some((start, bits)) => (start, bits.parse().ok().filter(|bits| *bits <= A::BITS)),
        None => (text, Some(A::BITS)),
    };
    let first: A = address(field, start)?;
    let Some(bits) = bits else {
        let form = format!("a prefix of 0 to {} bits", A::BITS);
        return Err(unexpected(field, text, &form));
    };
    let host = u128::MAX
        .checked_shr(u128::BITS - A::BITS + bits)
        .unwrap_or(0);
    match first.wide() & host {
        0 => Ok(Range {
            first,
            last: A::narrow(first.wide() | host),
        }),
        _ => Err(unexpected(field, text, "no bits behind the prefix")),
    }
}

/// `N` or `N-M`.
fn range<T: FromStr + PartialOrd + Copy>(field: &str, text: &str) -> Result<Range<T>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |part: &str| {
        part.parse()
            .ok()
            .filter(|_| part.bytes().all(|b| b.is_ascii_digit()))
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) => ordered(field, text, first, last),
        _ => {
            let bits = 8 * size_of::<T>();
            Err(unexpected(field, text, &format!("N or N-M of {bits} bits")))
        }
    }
}

fn ordered<T: PartialOrd>(field: &str, text: &str, first: T, last: T) -> Result<Range<T>, String> {
    match first <= last {
        true => Ok(Range { first, last }),
        false => Err(unexpected(field, text, "the smaller value first")),
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Pass => f.write_str("pass")?,
            Action::Drop => f.write_str("drop")?,
            Action::Redirect(targets) => show_targets(f, &targets)?,
        }
        show_mac(f, " ether-src", self.ether_source)?;
        show_mac(f, " ether-dst", self.ether_destination)?;
        if let Some(ether_type) = self.ether_type {
            write!(f, " ether-type {ether_type:04x}")?;
        }
        if let Some(ip) = self.ip6 {
            f.write_str(" ip6")?;
            ip.show(f)?;
        }
        let implied = matches!(self.action, Action::Redirect(_));
        match self.ip {
            Some(IpPattern::ANY) if !implied => f.write_str(" ip"),
            Some(ip) => ip.show(f),
            None => Ok(()),
        }
    }
}

impl<A: Address> Pattern<A> {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_net(f, "src", self.source)?;
        show_net(f, "dst", self.destination)?;
        let wide = |r: Range<u8>| Range {
            first: r.first.into(),
            last: r.last.into(),
        };
        let some = |r: Range<u8>| (r != Self::ANY.tos).then(|| wide(r));
        show_range(f, "proto", some(self.protocol))?;
        show_range(f, "tos", some(self.tos))?;
        show_range(f, "sport", self.source_port)?;
        show_range(f, "dport", self.destination_port)
    }
}

fn show_targets(f: &mut fmt::Formatter<'_>, targets: &Targets) -> fmt::Result {
    let mut word = "redirect";
    for Target { mac, address } in targets.iter() {
        show_mac(f, word, Some(*mac))?;
        if let Some(address) = address {
            write!(f, " to {address}")?;
        }
        word = " or";
    }
    Ok(())
}

fn show_mac(f: &mut fmt::Formatter<'_>, field: &str, mac: Option<[u8; 6]>) -> fmt::Result {
    let Some(mac) = mac else { return Ok(()) };
    f.write_str(field)?;
    let mut separator = ' ';
    for octet in mac {
        write!(f, "{separator}{octet:02x}")?;
        separator = ':';
    }
    Ok(())
}

fn show_net<A: Address>(f: &mut fmt::Formatter<'_>, field: &str, net: Range<A>) -> fmt::Result {
    let Range { first, last } = net;
    if net == Pattern::ANY.source {
        return Ok(());
    }
    write!(f, " {field} ")?;
    first.show(f)?;
    let host = last.wide() - first.wide();
    match first == last {
        true => Ok(()),
        false if host & host.wrapping_add(1) == 0 && first.wide() & host == 0 => {
            write!(f, "/{}", host.leading_zeros() + A::BITS - u128::BITS)
        }
        false => {
            f.write_char('-')?;
            last.show(f)
        }
    }
}

fn show_range(f: &mut fmt::Formatter<'_>, field: &str, range: Option<Range<u16>>) -> fmt::Result {
    let Some(Range { first, last }) = range else {
        return Ok(());
    };
    write!(f, " {field} {first}")?;
    match first == last {
        true => Ok(()),
        false => {
            f.write_char('-')?;
            write!(f, "{last}")
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
