// SPDX-License-Identifier: Apache-2.0
//! The timestamp option of IP (RFC 781) and its text: `ts{1,!2}+3++4`, `ts.ip{1.0.0.1=5}`,
//! `ts.preip{1.0.0.1=5^1.0.0.2}`.
use super::options::MAX;
use crate::prelude::*;

/// Kinds of entries: times; addresses with times; addresses that were chosen by the sender.
const TIMES: u8 = 0;
const ADDRESSES: u8 = 1;
const CHOSEN: u8 = 3;
/// Where the first entry is, counted as the pointer counts.
const FIRST: usize = 5;
/// A time that is not in milliseconds since midnight.
const ODD: u32 = 1 << 31;

fn entry_len(kind: u8) -> usize {
    if kind == TIMES { 4 } else { 8 }
}

/// The text of an option without kind and length; nothing if it is damaged.
pub fn show(data: &[u8]) -> Option<String> {
    let [pointer, flags, entries @ ..] = data else {
        return None;
    };
    let (kind, overflow) = (flags & 15, flags >> 4);
    let name = match kind {
        TIMES => "ts",
        ADDRESSES => "ts.ip",
        CHOSEN => "ts.preip",
        _ => return None,
    };
    let done = usize::from(*pointer).checked_sub(FIRST)?;
    let mut text = format!("{name}{{");
    for (number, entry) in entries.chunks_exact(entry_len(kind)).enumerate() {
        let at = number * entry_len(kind);
        if at >= done && kind != CHOSEN {
            break;
        }
        text += match number {
            _ if at == done => "^",
            0 => "",
            _ => ",",
        };
        text += &show_entry(entry, kind == CHOSEN && at >= done);
    }
    text += if done == entries.len() && kind != TIMES {
        "^}"
    } else {
        "}"
    };
    let room = entries.len().saturating_sub(done) / entry_len(kind);
    if room > 0 && kind != CHOSEN {
        text += &format!("+{room}");
    }
    if overflow > 0 {
        text += &format!("++{overflow}");
    }
    Some(text)
}

fn show_entry(entry: &[u8], awaited: bool) -> String {
    let (address, time) = entry.split_at(entry.len() - 4);
    let address: Vec<String> = address.iter().map(ToString::to_string).collect();
    let address = address.join(".");
    if awaited {
        return address;
    }
    let time = time.iter().fold(0, |n, octet| n << 8 | u32::from(*octet));
    let odd = if time & ODD > 0 { "!" } else { "" };
    let equals = if address.is_empty() { "" } else { "=" };
    format!("{address}{equals}{odd}{}", time & !ODD)
}

/// The option without kind and length of what is behind `ts` in its text.
pub fn parse(text: &str) -> Option<Vec<u8>> {
    let (head, rest) = text.split_once('{')?;
    let (inside, behind) = rest.split_once('}')?;
    let (before, after) = inside.split_once('^').unwrap_or((inside, ""));
    let kind = match head {
        "" if !inside.contains('.') => TIMES,
        "" if after.contains('.') => CHOSEN,
        "" | ".ip" => ADDRESSES,
        ".preip" => CHOSEN,
        number => number.strip_prefix('.')?.parse().ok().filter(|k| *k < 16)?,
    };
    let mut entries = Vec::new();
    parse_entries(before, kind, false, &mut entries)?;
    let pointer = u8::try_from(entries.len() + FIRST).ok()?;
    parse_entries(after, kind, true, &mut entries)?;
    let (room, overflow) = parse_tail(behind)?;
    entries.resize(entries.len() + room * entry_len(kind), 0);
    Some([&[pointer, overflow << 4 | kind], &entries[..]].concat())
}

fn parse_entries(list: &str, kind: u8, awaited: bool, out: &mut Vec<u8>) -> Option<()> {
    for entry in list.split(',').filter(|e| !e.is_empty()) {
        let (address, time) = match kind {
            TIMES => (None, entry),
            _ => {
                let (address, time) = entry.split_once('=').unwrap_or((entry, "?"));
                (Some(address), time)
            }
        };
        if let Some(address) = address {
            out.extend(address.parse::<Ipv4Addr>().ok()?.octets());
        }
        out.extend(parse_time(time, awaited)?.to_be_bytes());
    }
    Some(())
}

fn parse_time(text: &str, awaited: bool) -> Option<u32> {
    if text == "?" {
        return awaited.then_some(0);
    }
    let digits = text.strip_prefix('!');
    let number: u32 = digits.unwrap_or(text).parse().ok()?;
    Some(number | if digits.is_some() { ODD } else { 0 })
}

/// `+ROOM++OVERFLOW`, each of which may be missing.
fn parse_tail(text: &str) -> Option<(usize, u8)> {
    let (room, overflow) = text.split_once("++").unwrap_or((text, "0"));
    let room = match room.strip_prefix('+') {
        Some(digits) => digits.parse().ok().filter(|n| *n <= MAX / 4)?,
        None if room.is_empty() => 0,
        None => return None,
    };
    Some((room, overflow.parse().ok().filter(|n| *n < 16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_there_and_back() {
        for (text, shown) in [
            ("{1,10000,!45}+2", "ts{1,10000,!45}+2"),
            ("{1,10000,!45,^0,0}", "ts{1,10000,!45}+2"),
            (
                "{1.0.0.1=!8320,1.0.0.2=8321}++5",
                "ts.ip{1.0.0.1=!8320,1.0.0.2=8321^}++5",
            ),
            (
                ".3{1.0.0.1=1,^1.0.0.3,1.0.0.4=?}+1",
                "ts.preip{1.0.0.1=1^1.0.0.3,1.0.0.4,0.0.0.0}",
            ),
            ("{1.0.0.1=1^1.0.0.3}", "ts.preip{1.0.0.1=1^1.0.0.3}"),
            (".ip{}+1", "ts.ip{}+1"),
        ] {
            let bytes = parse(text).unwrap();
            assert_eq!(show(&bytes).unwrap(), shown);
            assert_eq!(parse(&shown[2..]).unwrap(), bytes, "{shown}");
        }
    }

    #[test]
    fn damaged_options_and_texts() {
        for bytes in [&[][..], &[5], &[4, 0], &[5, 2], &[5, 9, 1, 2, 3, 4]] {
            assert_eq!(show(bytes), None, "{bytes:?}");
        }
        assert_eq!(show(&[255, 0, 1]).unwrap(), "ts{}");
        for text in [
            "",
            "{",
            "{x}",
            "{?}",
            "{1.0.0.1}",
            ".9x{}",
            "{1}+99",
            "{1}++16",
            "{1}x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
