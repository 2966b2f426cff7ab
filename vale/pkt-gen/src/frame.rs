// SPDX-License-Identifier: Apache-2.0
//! Makes frames.
use etherparse::PacketBuilder;

use crate::arguments::Arguments;

/// Ethernet, IPv4 and UDP headers, in bytes.
const UDP_HEADERS: usize = 42;
/// Marks a ping's payload; a number follows.
const MARK: [u8; 8] = *b"pkt-gen\0";
const TTL: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Udp,
    Tcp,
    Icmp,
}

/// Makes the frame of the arguments; `number` makes TCP and ICMP sequence numbers differ.
pub fn build(arguments: &Arguments, protocol: Protocol, number: u32) -> Result<Vec<u8>, String> {
    let (source, destination) = (arguments.source, arguments.destination);
    let ip = PacketBuilder::ethernet2(arguments.source_mac().0, arguments.destination_mac().0)
        .ipv4(source.ip().octets(), destination.ip().octets(), TTL);
    let length = usize::from(arguments.length);
    let mut frame = Vec::with_capacity(length);
    let written = match protocol {
        Protocol::Udp => {
            let step = ip.udp(source.port(), destination.port());
            let payload = vec![0; length.saturating_sub(step.size(0))];
            step.write(&mut frame, &payload)
        }
        Protocol::Tcp => {
            let step = ip
                .tcp(source.port(), destination.port(), number, 65_535)
                .ack(1)
                .psh();
            let payload = vec![0; length.saturating_sub(step.size(0))];
            step.write(&mut frame, &payload)
        }
        Protocol::Icmp => {
            let step = ip.icmpv4_echo_request(source.port(), number as u16);
            let payload = vec![0; length.saturating_sub(step.size(0))];
            step.write(&mut frame, &payload)
        }
    };
    written.map_err(|e| format!("frame: {e}"))?;
    Ok(frame)
}

/// A UDP frame whose payload begins with [`MARK`] and `number`.
pub fn build_ping(arguments: &Arguments, number: u64) -> Result<Vec<u8>, String> {
    let (source, destination) = (arguments.source, arguments.destination);
    let mut payload = [&MARK[..], &number.to_be_bytes()].concat();
    payload.resize(usize::from(arguments.length) - UDP_HEADERS, 0);
    let mut frame = Vec::with_capacity(usize::from(arguments.length));
    PacketBuilder::ethernet2(arguments.source_mac().0, arguments.destination_mac().0)
        .ipv4(source.ip().octets(), destination.ip().octets(), TTL)
        .udp(source.port(), destination.port())
        .write(&mut frame, &payload)
        .map_err(|e| format!("frame: {e}"))?;
    Ok(frame)
}

/// The number in a ping or its echo.
pub fn ping_number(frame: &[u8]) -> Option<u64> {
    let payload = frame.get(UDP_HEADERS..UDP_HEADERS + 16)?;
    let (mark, number) = payload.split_at(8);
    (mark == MARK).then(|| u64::from_be_bytes(number.try_into().unwrap_or_default()))
}

/// Makes an echo of a frame: swaps MAC addresses and, for IPv4, addresses and UDP or TCP ports.
/// The checksums stay valid. False if the frame is too short.
pub fn turn_around(frame: &mut [u8]) -> bool {
    if frame.len() < 14 {
        return false;
    }
    swap(frame, 0, 6, 6);
    if frame[12..14] != [8, 0] || frame.len() < 34 {
        return true;
    }
    swap(frame, 26, 30, 4);
    let l4 = 14 + usize::from(frame[14] & 15) * 4;
    if matches!(frame[23], 6 | 17) && frame.len() >= l4 + 4 {
        swap(frame, l4, l4 + 2, 2);
    }
    true
}

fn swap(bytes: &mut [u8], a: usize, b: usize, len: usize) {
    for n in 0..len {
        bytes.swap(a + n, b + n);
    }
}

/// Replaces the MAC addresses that the arguments give.
pub fn readdress(frame: &mut [u8], arguments: &Arguments) {
    for (at, mac) in [(0, arguments.destination_mac), (6, arguments.source_mac)] {
        if let (Some(mac), Some(place)) = (mac, frame.get_mut(at..at + 6)) {
            place.copy_from_slice(&mac.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn arguments(length: &str) -> Arguments {
        Arguments::parse_from([
            "pkt-gen",
            "-f",
            "tx",
            "-i",
            "vale0:p",
            "-l",
            length,
            "-s",
            "10.0.0.1:7",
            "-d",
            "10.0.0.2:9",
        ])
    }

    #[test]
    fn frames_have_the_wanted_length_and_parse() {
        for protocol in [Protocol::Udp, Protocol::Tcp, Protocol::Icmp] {
            for length in ["60", "64", "1514"] {
                let frame = build(&arguments(length), protocol, 5).unwrap();
                assert_eq!(frame.len().to_string(), length);
                let parsed = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
                assert!(
                    parsed.net.is_some() && parsed.transport.is_some(),
                    "{protocol:?}"
                );
            }
        }
    }

    #[test]
    fn a_ping_turned_around_is_recognized_and_turned_twice_is_itself() {
        let ping = build_ping(&arguments("60"), 77).unwrap();
        let mut echo = ping.clone();
        assert!(turn_around(&mut echo));
        assert_eq!(ping_number(&echo), Some(77));
        assert_eq!(
            (&echo[..6], &echo[26..30], &echo[34..36]),
            (&ping[6..12], &ping[30..34], &ping[36..38])
        );
        assert!(turn_around(&mut echo));
        assert_eq!(echo, ping);
        assert!(!turn_around(&mut [0; 13]));
        assert_eq!(ping_number(&[0; 60]), None);
    }
}
