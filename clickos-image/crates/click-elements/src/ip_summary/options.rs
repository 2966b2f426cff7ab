// SPDX-License-Identifier: Apache-2.0
//! IP and TCP options as text: options with `;` between them, `.` for none, `?` for damaged ones.
use super::times;
use crate::prelude::*;

const EOL: u8 = 0;
const NOP: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const IP_TIMES: u8 = 68;
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;
const MSS: u8 = 2;
const WSCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMP: u8 = 8;
/// Octets of options a header can have.
pub const MAX: usize = 40;

/// The TCP options to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    All,
    NotTimes,
    Sack,
}

impl Only {
    fn has(self, kind: u8) -> bool {
        match self {
            Self::All => true,
            Self::NotTimes => kind != TIMESTAMP,
            Self::Sack => matches!(kind, SACK | SACK_PERMITTED),
        }
    }
}

/// The options of an IP header.
pub fn show_ip(bytes: &[u8]) -> String {
    show(bytes, Only::All, ip_option)
}

/// The options of a TCP header.
pub fn show_tcp(bytes: &[u8], only: Only) -> String {
    show(bytes, only, tcp_option)
}

/// The octets of some options of a TCP header: all as they are, or without what is between them.
pub fn pick_tcp(bytes: &[u8], only: Only) -> Vec<u8> {
    if only == Only::All {
        return bytes.to_vec();
    }
    let each = each(bytes).map_while(Result::ok);
    let picked = each.filter(|option| only.has(option[0]));
    picked.collect::<Vec<_>>().concat()
}

/// Each option with its kind and length in front; an error where they are damaged.
fn each(bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], ()>> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        while let [NOP, behind @ ..] = rest {
            rest = behind;
        }
        let length = match rest {
            [] | [EOL, ..] => return None,
            [_, length, ..] => usize::from(*length),
            [_] => 0,
        };
        let Some((option, behind)) = rest.split_at_checked(length).filter(|(o, _)| o.len() > 1)
        else {
            rest = &[];
            return Some(Err(()));
        };
        rest = behind;
        Some(Ok(option))
    })
}

fn show(bytes: &[u8], only: Only, one: fn(u8, &[u8]) -> Option<String>) -> String {
    let text = |option: Result<&[u8], ()>| match option.ok()? {
        option if only.has(option[0]) => one(option[0], &option[2..]).map(Some),
        _ => Some(None),
    };
    match each(bytes).map(text).collect::<Option<Vec<_>>>() {
        Some(texts) => {
            let texts: Vec<String> = texts.into_iter().flatten().collect();
            match texts.is_empty() {
                true => ".".to_string(),
                false => texts.join(";"),
            }
        }
        None => "?".to_string(),
    }
}

fn other(kind: u8, data: &[u8]) -> String {
    let octets: Vec<String> = data.iter().map(ToString::to_string).collect();
    if octets.is_empty() {
        kind.to_string()
    } else {
        format!("{kind}={}", octets.join(":"))
    }
}

fn ip_option(kind: u8, data: &[u8]) -> Option<String> {
    match kind {
        RECORD_ROUTE => route("rr", data, true),
        LOOSE_ROUTE => route("lsrr", data, false),
        STRICT_ROUTE => route("ssrr", data, false),
        IP_TIMES => times::show(data),
        _ => Some(other(kind, data)),
    }
}

/// Addresses, a caret where the pointer is, and for recorded routes how many more fit.
fn route(name: &str, data: &[u8], record: bool) -> Option<String> {
    let (pointer, addresses) = data.split_first()?;
    let at = usize::from(*pointer).checked_sub(4)?;
    if at % 4 != 0 || addresses.len() % 4 != 0 {
        return None;
    }
    let text = |a: &[u8]| {
        a.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(".")
    };
    let all: Vec<String> = addresses.chunks(4).map(text).collect();
    let (before, behind) = all.split_at((at / 4).min(all.len()));
    if record {
        let room = if behind.is_empty() {
            String::new()
        } else {
            format!("+{}", behind.len())
        };
        return Some(format!("{name}{{{}}}{room}", before.join(",")));
    }
    let caret = if behind.is_empty() {
        "^".to_string()
    } else {
        format!("^{}", behind.join(","))
    };
    Some(format!("{name}{{{}{caret}}}", before.join(",")))
}

fn tcp_option(kind: u8, data: &[u8]) -> Option<String> {
    let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    Some(match (kind, data) {
        (MSS, [high, low]) => format!("mss{}", u16::from_be_bytes([*high, *low])),
        (WSCALE, [scale]) => format!("wscale{scale}"),
        (SACK_PERMITTED, []) => "sackok".to_string(),
        (SACK, d) if !d.is_empty() && d.len() % 8 == 0 => {
            let edge = |at: usize| Some(format!("{}-{}", number(at)?, number(at + 4)?));
            let blocks: Option<Vec<String>> = (0..d.len()).step_by(8).map(edge).collect();
            format!("sack{}", blocks?.join(";sack"))
        }
        (TIMESTAMP, d) if d.len() == 8 => format!("ts{}:{}", number(0)?, number(4)?),
        _ => other(kind, data),
    })
}

/// IP options from their text, filled up to a multiple of four octets.
pub fn parse_ip(text: &str) -> Option<Vec<u8>> {
    parse(text, |word, out| {
        for (name, kind) in [
            ("rr{", RECORD_ROUTE),
            ("lsrr{", LOOSE_ROUTE),
            ("ssrr{", STRICT_ROUTE),
        ] {
            if let Some(rest) = word.strip_prefix(name) {
                return parse_route(kind, rest, out);
            }
        }
        match word.strip_prefix("ts") {
            Some(rest) => push(out, IP_TIMES, &times::parse(rest)?),
            None => parse_other(word, out),
        }
    })
}

/// TCP options from their text, filled up to a multiple of four octets.
pub fn parse_tcp(text: &str) -> Option<Vec<u8>> {
    parse(&joined_sacks(text), parse_tcp_option)
}

/// Blocks of `sack` that follow one another are one option.
fn joined_sacks(text: &str) -> String {
    let mut joined = String::new();
    let mut in_sack = false;
    for word in text.split([';', ',']) {
        let blocks = word.strip_prefix("sack").filter(|rest| *rest != "ok");
        match blocks.filter(|_| in_sack) {
            Some(blocks) => joined.extend([":", blocks]),
            None if joined.is_empty() => joined.push_str(word),
            None => joined.extend([";", word]),
        }
        in_sack = blocks.is_some();
    }
    joined
}

fn parse(text: &str, one: impl Fn(&str, &mut Vec<u8>) -> Option<()>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if text == "." {
        return Some(out);
    }
    // commas may stand between options, and stand within braces
    let mut depth = 0i32;
    let between = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && matches!(c, ';' | ',')
    };
    for word in text.split(between) {
        match word {
            "eol" => out.push(EOL),
            "nop" => out.push(NOP),
            _ => one(word, &mut out)?,
        }
    }
    out.resize(out.len().next_multiple_of(4), EOL);
    (out.len() <= MAX).then_some(out)
}

fn push(out: &mut Vec<u8>, kind: u8, data: &[u8]) -> Option<()> {
    out.extend([kind, u8::try_from(data.len() + 2).ok()?]);
    out.extend(data);
    Some(())
}

fn parse_route(kind: u8, rest: &str, out: &mut Vec<u8>) -> Option<()> {
    let (inside, behind) = rest.split_once('}')?;
    let (before, after) = inside.split_once('^').unwrap_or((inside, ""));
    let mut data = vec![0];
    let mut add = |list: &str| -> Option<usize> {
        for word in list.split(',').filter(|w| !w.is_empty()) {
            data.extend(word.parse::<Ipv4Addr>().ok()?.octets());
        }
        Some(data.len() + 3)
    };
    let end = add(before)?;
    let pointer = u8::try_from(end).ok()?;
    add(after)?;
    if let Some(room) = behind.strip_prefix('+') {
        let room: usize = room.parse().ok().filter(|r| *r <= MAX / 4)?;
        data.resize(data.len() + 4 * room, 0);
    } else if !behind.is_empty() {
        return None;
    }
    data[0] = pointer;
    push(out, kind, &data)
}

fn parse_tcp_option(word: &str, out: &mut Vec<u8>) -> Option<()> {
    if word == "sackok" {
        return push(out, SACK_PERMITTED, &[]);
    }
    if let Some(n) = word.strip_prefix("mss") {
        return push(out, MSS, &n.parse::<u16>().ok()?.to_be_bytes());
    }
    if let Some(n) = word.strip_prefix("wscale") {
        return push(out, WSCALE, &[n.parse().ok()?]);
    }
    let mut data = Vec::new();
    let mut numbers = |text: &str, separators: &[char]| -> Option<usize> {
        for n in text.split(separators) {
            data.extend(n.parse::<u32>().ok()?.to_be_bytes());
        }
        Some(data.len())
    };
    if let Some(blocks) = word.strip_prefix("sack") {
        numbers(blocks, &['-', ':']).filter(|n| n % 8 == 0)?;
        return push(out, SACK, &data);
    }
    if let Some(times) = word.strip_prefix("ts") {
        numbers(times, &[':']).filter(|n| *n == 8)?;
        return push(out, TIMESTAMP, &data);
    }
    parse_other(word, out)
}

/// `98`, or `99=0:5:10`.
fn parse_other(word: &str, out: &mut Vec<u8>) -> Option<()> {
    let (kind, data) = word.split_once('=').unwrap_or((word, ""));
    let octets: Option<Vec<u8>> = data
        .split(':')
        .filter(|o| !o.is_empty())
        .map(|o| o.parse().ok())
        .collect();
    push(out, kind.parse().ok()?, &octets?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_options_there_and_back() {
        for text in [
            "mss1400;wscale10",
            "sackok",
            "sackok;sack1-2;sack3-4",
            "ts5:6",
            "99=0:5:10",
            "98",
            ".",
        ] {
            assert_eq!(show_tcp(&parse_tcp(text).unwrap(), Only::All), text);
        }
        let bytes = parse_tcp("nop,wscale3,sack1-2:3-4,ts5:6").unwrap();
        for (only, shown) in [
            (Only::NotTimes, "wscale3;sack1-2;sack3-4"),
            (Only::Sack, "sack1-2;sack3-4"),
        ] {
            assert_eq!(show_tcp(&bytes, only), shown);
            assert_eq!(show_tcp(&pick_tcp(&bytes, only), Only::All), shown);
        }
    }

    #[test]
    fn ip_options_there_and_back() {
        for text in [
            "rr{2.3.4.5}+3",
            "rr{}+1",
            "ssrr{128.4.45.60^1.1.1.1,2.2.2.2}",
            "lsrr{1.2.3.4^}",
            "ts{1}+1;rr{}+1",
            "99=1:2",
        ] {
            assert_eq!(show_ip(&parse_ip(text).unwrap()), text);
        }
        // a pointer to nowhere
        assert_eq!(show_ip(&parse_ip("7=1").unwrap()), "?");
    }

    #[test]
    fn damaged_options() {
        for bytes in [&[2u8][..], &[2, 0], &[2, 9, 1], &[7, 3, 5], &[131, 2]] {
            let _ = show_tcp(bytes, Only::All);
            assert_eq!(show_ip(bytes), "?", "{bytes:?}");
        }
        for text in [
            "",
            "mss",
            "mss70000",
            "rr{",
            "rr{}+99",
            "sack1",
            "ts1",
            "x",
            "5=1:2:300",
        ] {
            assert!(
                parse_tcp(text).is_none() && parse_ip(text).is_none(),
                "{text}"
            );
        }
    }
}
