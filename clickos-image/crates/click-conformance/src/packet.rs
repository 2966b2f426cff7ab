// SPDX-License-Identifier: Apache-2.0
//! Packets from text: `ether DST SRC / ip SRC DST ttl 9 / udp 1 53 / text hello`.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use click_wire::{arp, ether, icmp, ipv4, tcp, udp};

/// The packet a line describes.
///
/// # Errors The part that the parser cannot read.
pub fn build(line: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut addresses = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
    // from the innermost layer outwards: the outer ones need the lengths
    let layers: Vec<&str> = line.split(" / ").collect();
    for layer in &layers {
        let words: Vec<&str> = layer.split_whitespace().collect();
        if words.first() == Some(&"ip") {
            addresses = (ip(word(&words, 1)?)?, ip(word(&words, 2)?)?);
        }
    }
    let mut inner = "";
    for layer in layers.iter().rev() {
        bytes = wrap(layer, inner, bytes, addresses)?;
        inner = layer.split_whitespace().next().unwrap_or("");
    }
    Ok(bytes)
}

fn word<'a>(words: &[&'a str], index: usize) -> Result<&'a str, String> {
    words
        .get(index)
        .copied()
        .ok_or_else(|| format!("\"{}\" is too short", words.join(" ")))
}

fn ip(text: &str) -> Result<Ipv4Addr, String> {
    text.parse().map_err(|_| format!("not an address: {text}"))
}

fn mac(text: &str) -> Result<[u8; 6], String> {
    let parts: Vec<u8> = text
        .split(':')
        .filter_map(|p| u8::from_str_radix(p, 16).ok())
        .collect();
    parts
        .try_into()
        .map_err(|_| format!("not an Ethernet address: {text}"))
}

fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed
        .ok()
        .and_then(|n| T::try_from(n).ok())
        .ok_or_else(|| format!("not a number: {text}"))
}

/// The number behind a keyword.
fn option<T: TryFrom<u64>>(words: &[&str], name: &str, default: T) -> Result<T, String> {
    match words.iter().position(|w| *w == name) {
        Some(at) => number(word(words, at + 1)?),
        None => Ok(default),
    }
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    digits
        .chunks(2)
        .map(byte)
        .collect::<Option<_>>()
        .ok_or_else(|| format!("not hexadecimal: {text}"))
}

fn with_header(len: usize, payload: Vec<u8>) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes.extend(payload);
    bytes
}

fn wrap(
    layer: &str,
    inner: &str,
    payload: Vec<u8>,
    (from, to): (Ipv4Addr, Ipv4Addr),
) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = layer.split_whitespace().collect();
    let rest = layer
        .trim_start()
        .split_once(' ')
        .map_or("", |(_, rest)| rest);
    let protocol = match inner {
        "udp" => ipv4::UDP,
        "tcp" => ipv4::TCP,
        "icmp" => ipv4::ICMP,
        _ => 0xfd,
    };
    match *words.first().unwrap_or(&"") {
        "hex" | "bytes" => Ok([hex(rest)?, payload].concat()),
        "text" => Ok([rest.as_bytes(), &payload].concat()),
        "zeros" => Ok(with_header(number(word(&words, 1)?)?, payload)),
        "ether" => {
            let ethertype = match (words.get(3), inner) {
                (Some(kind), _) => number(kind)?,
                (None, "arp") => ether::ARP,
                (None, _) => ether::IPV4,
            };
            let header = ether::Repr {
                destination: mac(word(&words, 1)?)?,
                source: mac(word(&words, 2)?)?,
                ethertype,
            };
            let mut bytes = with_header(ether::HEADER, payload);
            header.emit(&mut bytes);
            Ok(bytes)
        }
        "arp" => {
            let operation = if word(&words, 1)? == "request" {
                arp::REQUEST
            } else {
                arp::REPLY
            };
            let repr = arp::Repr {
                operation,
                sender_mac: mac(word(&words, 2)?)?,
                sender_ip: ip(word(&words, 3)?)?,
                target_mac: mac(word(&words, 4)?)?,
                target_ip: ip(word(&words, 5)?)?,
            };
            let mut bytes = with_header(arp::LENGTH, payload);
            repr.emit(&mut bytes);
            Ok(bytes)
        }
        "ip" => {
            let repr = ipv4::Repr {
                tos: option(&words, "tos", 0)?,
                id: option(&words, "id", 0)?,
                fragment: option(&words, "frag", 0)?,
                ttl: option(&words, "ttl", 64)?,
                protocol: option(&words, "proto", protocol)?,
                source: ip(word(&words, 1)?)?,
                destination: ip(word(&words, 2)?)?,
                payload_len: u16::try_from(payload.len()).map_err(|e| e.to_string())?,
            };
            let mut bytes = with_header(ipv4::HEADER, payload);
            repr.emit(&mut bytes);
            Ok(bytes)
        }
        "udp" => {
            let repr = udp::Repr {
                source: number(word(&words, 1)?)?,
                destination: number(word(&words, 2)?)?,
            };
            let mut bytes = with_header(udp::HEADER, payload);
            repr.emit(&mut bytes, from, to);
            Ok(bytes)
        }
        "tcp" => {
            let repr = tcp::Repr {
                source: number(word(&words, 1)?)?,
                destination: number(word(&words, 2)?)?,
                sequence: option(&words, "seq", 0)?,
                acknowledgement: option(&words, "ack", 0)?,
                flags: option(&words, "flags", 2)?,
                window: option(&words, "window", 512)?,
            };
            let mut bytes = with_header(tcp::HEADER, payload);
            repr.emit(&mut bytes, from, to);
            Ok(bytes)
        }
        "icmp" => {
            let rest = words.get(3).map_or(Ok(0), |w| number(w))?;
            let repr = icmp::Repr {
                kind: number(word(&words, 1)?)?,
                code: number(word(&words, 2)?)?,
                rest,
            };
            let mut bytes = with_header(icmp::HEADER, payload);
            repr.emit(&mut bytes);
            Ok(bytes)
        }
        other => Err(format!("unknown layer \"{other}\"")),
    }
}
