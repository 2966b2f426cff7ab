// SPDX-License-Identifier: Apache-2.0
//! IPv4 and IPv6 packets for the guard. The parser clips them to their own length, skips their
//! extension headers, and reads their place among fragments.
use crate::frame::drop_reason::DropReason;
use crate::frame::headers::{Ethernet, IPV4, IPV6, be16, octets};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;
/// Experimental headers have no fixed form, so the guard cannot judge a packet behind them.
const EXPERIMENTS: [u8; 2] = [253, 254];
pub const MAX_EXTENSIONS: usize = 8;
/// The first fragment must hold this many bytes of its packet, and no later one may replace them.
/// They cover the headers of TCP, UDP and ICMP (RFC 1858, RFC 3128), in units of 8.
const TRANSPORT: usize = 24;
/// Loose and strict source route, options of IPv4.
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// Place of a packet among fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentPart {
    Whole,
    /// It holds the beginning of the body, or is an IPv6 packet in a single fragment.
    First,
    Later,
}

/// The parts of a packet that the guard reads.
#[derive(Debug)]
pub struct Packet<'a> {
    /// The body's protocol; a later fragment only claims it.
    pub protocol: u8,
    /// Bytes before the body.
    pub headers: usize,
    /// After all headers of IP, to the packet's own end.
    pub body: &'a [u8],
    pub part: FragmentPart,
}

fn is_extension_v4(protocol: u8) -> bool {
    protocol == AUTHENTICATION
}

/// The headers of RFC 7045.
fn is_extension_v6(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION | MOBILITY | HIP | SHIM6
    ) || EXPERIMENTS.contains(&protocol)
}

/// Parses an IPv4 packet. Bytes after its total length are padding.
#[inline]
pub fn ipv4(bytes: &[u8]) -> Result<Packet<'_>, DropReason> {
    let fixed: &[u8; 20] = bytes.first_chunk().ok_or(DropReason::Malformed)?;
    let header = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if fixed[0] >> 4 != 4 || header < 20 || total < header || total > bytes.len() {
        return Err(DropReason::Malformed);
    }
    let packet = &bytes[..total];
    if header > 20 {
        check_options(&packet[20..header])?;
    }
    let flags = u16::from_be_bytes([fixed[6], fixed[7]]);
    let part = match flags & 0x3fff {
        0 => FragmentPart::Whole,
        _ => part(flags & 0x1fff, flags & 0x2000 != 0, total - header)?,
    };
    match is_extension_v4(fixed[9]) {
        true => behind(packet, header, fixed[9], part, is_extension_v4),
        false => Ok(packet_of(packet, header, fixed[9], part)),
    }
}

/// Parses an IPv6 packet. A jumbogram's length would lie in an option: none fits a frame.
#[inline]
pub fn ipv6(bytes: &[u8]) -> Result<Packet<'_>, DropReason> {
    let fixed: &[u8; 40] = bytes.first_chunk().ok_or(DropReason::Malformed)?;
    let end = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if fixed[0] >> 4 != 6 || end > bytes.len() {
        return Err(DropReason::Malformed);
    }
    match is_extension_v6(fixed[6]) {
        true => behind(
            &bytes[..end],
            40,
            fixed[6],
            FragmentPart::Whole,
            is_extension_v6,
        ),
        false => Ok(packet_of(&bytes[..end], 40, fixed[6], FragmentPart::Whole)),
    }
}

/// Bytes of a transport header that name a flow: ports, or type and identifier of an ICMP message.
const FLOW: usize = 8;

/// The end of the bytes that say to which flow a frame belongs.
/// Headers behind IP's own may lie anywhere, so the result is then the frame's length.
pub fn transport_end(ethernet: &Ethernet, frame: &[u8]) -> usize {
    let at = |offset| frame.get(ethernet.payload + offset).copied().unwrap_or(0);
    let end = match ethernet.kind {
        IPV4 if !is_extension_v4(at(9)) => usize::from(at(0) & 15) * 4 + FLOW,
        IPV6 if !is_extension_v6(at(6)) => 40 + FLOW,
        IPV4 | IPV6 => return frame.len(),
        _ => 0,
    };
    ethernet.payload + end
}

fn packet_of(packet: &[u8], headers: usize, protocol: u8, part: FragmentPart) -> Packet<'_> {
    Packet {
        protocol,
        headers,
        body: &packet[headers..],
        part,
    }
}

/// Skips extension headers. The first fragment must hold the whole chain (RFC 7112). The fragment
/// header must be the last of the chain: another fragment could replace a header behind it.
fn behind<'a>(
    packet: &'a [u8],
    mut at: usize,
    mut protocol: u8,
    mut part: FragmentPart,
    is_extension: fn(u8) -> bool,
) -> Result<Packet<'a>, DropReason> {
    for n in 0..=MAX_EXTENSIONS {
        if part == FragmentPart::Later || !is_extension(protocol) {
            return Ok(packet_of(packet, at, protocol, part));
        }
        let known = !EXPERIMENTS.contains(&protocol) && (protocol != HOP_BY_HOP || n == 0);
        let header: [u8; 8] = octets(packet, at).ok_or(DropReason::Hidden)?;
        if part != FragmentPart::Whole || !known {
            return Err(DropReason::Hidden);
        }
        at += match protocol {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        let left = packet.len().checked_sub(at).ok_or(DropReason::Hidden)?;
        match protocol {
            FRAGMENT => {
                let field = u16::from_be_bytes([header[2], header[3]]);
                part = self::part(field >> 3, field & 1 != 0, left)?;
            }
            // With segments left, the sender would choose the route.
            ROUTING if header[3] != 0 => return Err(DropReason::Rogue),
            _ => (),
        }
        protocol = header[0];
    }
    Err(DropReason::Hidden)
}

/// The place of a fragment of `len` bytes at `offset`, in units of 8.
fn part(offset: u16, more: bool, len: usize) -> Result<FragmentPart, DropReason> {
    let begin = usize::from(offset) * 8;
    match begin {
        0 if !more || len >= TRANSPORT => Ok(FragmentPart::First),
        TRANSPORT.. if begin + len <= usize::from(u16::MAX) => Ok(FragmentPart::Later),
        _ => Err(DropReason::Hidden),
    }
}

/// Options of IPv4 are (type, length, body), but for their end (0) and padding (1).
fn check_options(mut options: &[u8]) -> Result<(), DropReason> {
    while let [kind, rest @ ..] = options {
        let length = match kind {
            0 => return Ok(()),
            1 => 1,
            _ => usize::from(*rest.first().ok_or(DropReason::Malformed)?),
        };
        if SOURCE_ROUTES.contains(kind) {
            return Err(DropReason::Rogue);
        }
        if length == 0 || length > options.len() || (*kind > 1 && length < 2) {
            return Err(DropReason::Malformed);
        }
        options = &options[length..];
    }
    Ok(())
}

/// Source and destination port of a UDP datagram.
pub fn udp_ports(body: &[u8]) -> Option<(u16, u16)> {
    body.get(..8)?;
    be16(body, 0).zip(be16(body, 2))
}
