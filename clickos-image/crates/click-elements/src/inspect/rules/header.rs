// SPDX-License-Identifier: Apache-2.0
//! Protocols, addresses and ports of rules.
use core::net::IpAddr;

use super::text::{fault, shown};
use crate::guard::ends::mapped;
use crate::prelude::*;

/// Addresses, networks or ports of one list.
const MAX: usize = 256;
/// Lists in lists, and variables in variables.
const DEEPEST: usize = 8;
/// Words, lists and variables that are read for one end; a long one counts for as many as it has parts of some bytes.
const MAX_STEPS: usize = 4096;
const STEP_BYTES: usize = 16;
/// Variables of a set.
const MAX_NAMES: usize = 256;

/// The protocol of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
    Icmp,
    /// Any.
    Ip,
}

impl Protocol {
    pub fn of(word: &str) -> Result<Self, String> {
        Ok(match word {
            "tcp" => Self::Tcp,
            "udp" => Self::Udp,
            "icmp" => Self::Icmp,
            "ip" => Self::Ip,
            _ => return Err(fault("protocol", word, "expected tcp, udp, icmp or ip")),
        })
    }

    /// True for packets with this number in their header.
    pub fn is(self, number: u8) -> bool {
        match self {
            Self::Tcp => number == 6,
            Self::Udp => number == 17,
            Self::Icmp => number == 1 || number == 58,
            Self::Ip => true,
        }
    }
}

/// Values that match, and those of them that do not. Without the former, all others match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Either<T> {
    those: Vec<T>,
    but: Vec<T>,
}

impl<T> Either<T> {
    /// Everything matches.
    pub const ALL: Self = Self {
        those: Vec::new(),
        but: Vec::new(),
    };

    /// Networks or ranges of ports in it.
    pub fn len(&self) -> usize {
        self.those.len() + self.but.len()
    }

    fn is(&self, of: impl Fn(&T) -> bool) -> bool {
        (self.those.is_empty() || self.those.iter().any(&of)) && !self.but.iter().any(&of)
    }
}

/// A network: its address, and the mask of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    address: u128,
    mask: u128,
}

/// Addresses of one end.
pub type Nets = Either<Net>;
/// Ports of one end, from the first to the last of each range.
pub type Ports = Either<(u16, u16)>;

impl Nets {
    pub fn has(&self, address: u128) -> bool {
        self.is(|net| address & net.mask == net.address)
    }

    /// Reads a list, a network, an address, a variable or `any`.
    pub fn of(word: &str, names: &Variables) -> Result<Self, String> {
        read("network", word, names, net)
    }
}

impl Ports {
    pub fn has(&self, port: u16) -> bool {
        self.is(|(first, last)| (*first..=*last).contains(&port))
    }

    /// Reads a list, a range, a port, a variable or `any`.
    pub fn of(word: &str, names: &Variables) -> Result<Self, String> {
        read("port", word, names, ports)
    }
}

fn net(word: &str) -> Option<Net> {
    let (address, length) = word
        .split_once('/')
        .map_or((word, None), |(a, l)| (a, Some(l)));
    let (number, most) = match address.parse().ok()? {
        IpAddr::V4(four) => (mapped(four.into()), 32),
        IpAddr::V6(six) => (six.into(), 128),
    };
    let length = length.map_or(Some(most), |length| length.parse().ok());
    let length = length.filter(|length: &u32| *length <= most)?;
    let mask = u128::MAX.checked_shl(most - length).unwrap_or(0);
    Some(Net {
        address: number & mask,
        mask,
    })
}

fn ports(word: &str) -> Option<(u16, u16)> {
    let number = |text: &str, default| match text.trim() {
        "" => Some(default),
        text => text.parse::<u16>().ok(),
    };
    let (first, last) = match word.split_once(':') {
        Some((first, last)) => (number(first, 0)?, number(last, u16::MAX)?),
        None => (word.parse().ok()?, word.parse().ok()?),
    };
    (first <= last && word != ":").then_some((first, last))
}

/// Names for lists: `$NAME` stands for the text that a line `var NAME TEXT` gives.
#[derive(Debug, Default)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Those that rules usually refer to, for everything.
    pub fn usual() -> Self {
        let all = ["HOME_NET", "EXTERNAL_NET"].map(|name| (name.into(), "any".into()));
        Self(all.into())
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(fault(
                "var",
                name,
                "expected a name of letters, digits and _",
            ));
        }
        self.0.retain(|(known, _)| known != name);
        if self.0.len() == MAX_NAMES {
            return Err(format!(
                "var: {} variables, the limit is {MAX_NAMES}",
                self.0.len() + 1
            ));
        }
        self.0.push((name.into(), value.into()));
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a word; `one` reads what is neither list nor variable.
fn read<T>(
    keyword: &str,
    word: &str,
    names: &Variables,
    one: impl Fn(&str) -> Option<T>,
) -> Result<Either<T>, String> {
    let mut reader = Reader {
        keyword,
        names,
        one,
        found: Either::ALL,
        is_any: false,
        steps: 0,
    };
    reader.add(word.trim(), false, 0)?;
    if reader.is_any {
        reader.found.those.clear();
    }
    Ok(reader.found)
}

struct Reader<'a, T, F> {
    keyword: &'a str,
    names: &'a Variables,
    one: F,
    found: Either<T>,
    is_any: bool,
    steps: usize,
}

impl<T, F: Fn(&str) -> Option<T>> Reader<'_, T, F> {
    fn add(&mut self, word: &str, is_negated: bool, depth: usize) -> Result<(), String> {
        let keyword = self.keyword;
        let wrong = |reason: &str| Err(fault(keyword, word, reason));
        self.steps += 1 + word.len() / STEP_BYTES;
        if self.steps > MAX_STEPS {
            return Err(format!("{}: more than {MAX_STEPS} words", self.keyword));
        }
        if depth > DEEPEST {
            return Err(format!(
                "{}: {} lists in lists, the limit is {DEEPEST}",
                self.keyword, depth
            ));
        }
        if let Some(rest) = word.strip_prefix('!') {
            if is_negated {
                return wrong("! within a list with ! is not taken");
            }
            return self.add(rest.trim_start(), true, depth + 1);
        }
        if let Some(name) = word.strip_prefix('$') {
            let Some(value) = self.names.get(name) else {
                return wrong("no such variable; give it by a line: var NAME LIST");
            };
            return self.add(value.trim(), is_negated, depth + 1);
        }
        if let Some(list) = word.strip_prefix('[') {
            let Some(list) = list.strip_suffix(']') else {
                return wrong("a bracket is not closed");
            };
            return items(list).try_for_each(|item| self.add(item.trim(), is_negated, depth + 1));
        }
        if word == "any" {
            if is_negated {
                return wrong("nothing would match");
            }
            self.is_any = true;
            return Ok(());
        }
        self.put(word, is_negated)
    }

    fn put(&mut self, word: &str, is_negated: bool) -> Result<(), String> {
        let value = (self.one)(word);
        let value =
            value.ok_or_else(|| format!("{}: \"{}\" is not one", self.keyword, shown(word)))?;
        let (those, but) = (&mut self.found.those, &mut self.found.but);
        if those.len() + but.len() == MAX {
            return Err(format!(
                "{}: {} in a list, the limit is {MAX}",
                self.keyword,
                MAX + 1
            ));
        }
        if is_negated { but } else { those }.push(value);
        Ok(())
    }
}

/// The items of a list, at commas outside inner lists.
fn items(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    list.split(move |c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::ends::number;

    fn nets(text: &str) -> Result<Nets, String> {
        let mut names = Variables::usual();
        names.set("HOME_NET", "[10.0.0.0/8,!10.1.0.0/16]").unwrap();
        Nets::of(text, &names)
    }

    #[test]
    fn networks_have_lists_negations_and_variables() {
        for (text, is, is_not) in [
            ("any", "1.2.3.4", ""),
            ("$HOME_NET", "10.2.0.1", "10.1.0.1"),
            ("!$EXTERNAL", "", ""),
            ("![10.0.0.0/8, 2001:db8::/32]", "11.0.0.1", "2001:db8::1"),
            ("[192.0.2.1,[2001:db8::/32]]", "2001:db8::5", "192.0.2.2"),
            ("0.0.0.0/0", "9.9.9.9", "2001:db8::1"),
            ("::/0", "2001:db8::1", ""),
        ] {
            let Ok(found) = nets(text) else {
                assert!(is.is_empty(), "{text}");
                continue;
            };
            assert!(found.has(number(is).unwrap()), "{text} {is}");
            assert!(
                number(is_not).is_none_or(|n| !found.has(n)),
                "{text} {is_not}"
            );
        }
    }

    #[test]
    fn wrong_networks_are_refused() {
        for wrong in [
            "10.0.0.0/33",
            "10.0.0.0/x",
            "::/129",
            "10.0.0",
            "x",
            "",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
        ] {
            assert!(nets(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_have_ranges() {
        let ports = |text| Ports::of(text, &Variables::usual());
        let found = ports("[80, 1000:2000, !1500, !1600:1700]").unwrap();
        let is = |port| found.has(port);
        assert!(is(80) && is(1000) && is(2000) && is(1501));
        assert!(!is(1500) && !is(1650) && !is(81));
        assert!(ports("1024:").unwrap().has(65535) && ports(":1024").unwrap().has(0));
        for wrong in [
            "", "80-90", "90:80", "65536", ":", "[80", "!any", "!![80]", "$X",
        ] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let long = format!("[{}]", vec!["80"; MAX + 1].join(","));
        let deep = format!("{}80{}", "[".repeat(30), "]".repeat(30));
        for (text, limit) in [(long, "the limit is 256"), (deep, "the limit is 8")] {
            let error = Ports::of(&text, &Variables::usual()).unwrap_err();
            assert!(error.contains(limit), "{error}");
        }
        let mut names = Variables::usual();
        let many = |word: &str| format!("[{}]", vec![word; 100].join(","));
        for (name, value) in [
            ("A", "$B"),
            ("B", "[$A,$A]"),
            ("C", "any"),
            ("D", "$C"),
            ("E", "$D"),
        ] {
            names.set(name, &many(value)).unwrap();
        }
        assert!(Ports::of("$A", &names).is_err());
        let error = Ports::of("$E", &names).unwrap_err();
        assert!(error.contains("more than 4096 words"), "{error}");
        // words that are few, but long
        names
            .set("F", &format!("[80{}]", " ".repeat(8000)))
            .unwrap();
        names.set("G", &many("$F")).unwrap();
        assert!(Ports::of("$F", &names).is_ok());
        assert!(Ports::of("$G", &names).is_err());
    }
}
