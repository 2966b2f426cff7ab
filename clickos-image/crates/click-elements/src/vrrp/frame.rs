// SPDX-License-Identifier: Apache-2.0
//! The frames that a router of a pair sends and takes for itself.
use click_wire::{arp, ether, ipv4, udp};

use super::advertisement::{Advertisement, GROUP, GROUP_MAC, PROTOCOL, TTL, virtual_mac};
use crate::prelude::*;

/// The UDP port of the messages that copy flows, at both ends.
pub const COPY_PORT: u16 = 49_112;
/// Class selector 6, network control (RFC 2474).
const NETWORK_CONTROL: u8 = 0xc0;
const IPV4_HEADER: usize = 20;

/// One host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    pub ip: Ipv4Addr,
    pub mac: [u8; 6],
}

/// A frame for the router itself.
#[derive(Debug, PartialEq, Eq)]
pub enum Own {
    Advertisement(Ipv4Addr, Advertisement),
    /// A message of the other router, to [`COPY_PORT`].
    Copy(Vec<u8>),
    /// A host asks for the router's own address.
    Asked(Station),
    /// A message to all routers that none may take (RFC 9568, section 7.1).
    Bad,
}

fn packet(from: Station, to: Station, repr: ipv4::Repr, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ether::HEADER + IPV4_HEADER];
    let header = ether::Repr {
        destination: to.mac,
        source: from.mac,
        ethertype: ether::IPV4,
    };
    header.emit(&mut frame);
    repr.emit(&mut frame[ether::HEADER..]);
    frame.extend(payload);
    frame
}

fn header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, ttl: u8, payload: usize) -> ipv4::Repr {
    ipv4::Repr {
        tos: NETWORK_CONTROL,
        id: 0,
        fragment: ipv4::DONT_FRAGMENT,
        ttl,
        protocol,
        source: from,
        destination: to,
        payload_len: u16::try_from(payload).unwrap_or(u16::MAX),
    }
}

/// An advertisement, from the virtual Ethernet address (RFC 9568, section 7.2).
pub fn advertisement(from: Ipv4Addr, message: &Advertisement) -> Vec<u8> {
    let body = message.bytes(from);
    let mac = virtual_mac(message.vrid);
    let (ip, group) = (from, (GROUP, GROUP_MAC));
    let to = Station {
        ip: group.0,
        mac: group.1,
    };
    let repr = header(ip, GROUP, PROTOCOL, TTL, body.len());
    packet(Station { ip, mac }, to, repr, &body)
}

/// A message to the other router.
pub fn copy(from: Station, to: Station, message: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; udp::HEADER];
    datagram.extend(message);
    let ports = udp::Repr {
        source: COPY_PORT,
        destination: COPY_PORT,
    };
    ports.emit(&mut datagram, from.ip, to.ip);
    let repr = header(from.ip, to.ip, ipv4::UDP, TTL, datagram.len());
    packet(from, to, repr, &datagram)
}

/// A gratuitous request for a virtual address (section 6.4.2, item 145).
pub fn announcement(ip: Ipv4Addr, mac: [u8; 6]) -> Vec<u8> {
    let message = arp::Repr {
        operation: arp::REQUEST,
        sender_mac: mac,
        sender_ip: ip,
        target_mac: [0; 6],
        target_ip: ip,
    };
    arp_frame(&message, mac, ether::BROADCAST)
}

/// The answer to a host that asked for an own address.
pub fn answer(own: Station, to: Station) -> Vec<u8> {
    let message = arp::Repr {
        operation: arp::REPLY,
        sender_mac: own.mac,
        sender_ip: own.ip,
        target_mac: to.mac,
        target_ip: to.ip,
    };
    arp_frame(&message, own.mac, to.mac)
}

fn arp_frame(message: &arp::Repr, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; ether::HEADER + arp::LENGTH];
    message.emit_frame(from, to, &mut frame);
    frame
}

/// Reads a frame for the router itself; `None` if it is for its function.
pub fn parse(frame: &[u8], own: Station, peer: Option<Station>) -> Option<Own> {
    let header = ether::Repr::parse(frame).ok()?;
    let body = &frame[ether::HEADER..];
    match header.ethertype {
        ether::ARP => {
            let asked = arp::Repr::parse(body).ok()?;
            let (ip, mac) = (asked.sender_ip, asked.sender_mac);
            let is_asked = asked.operation == arp::REQUEST && asked.target_ip == own.ip;
            (is_asked && ip != own.ip && !ether::is_group(mac))
                .then_some(Own::Asked(Station { ip, mac }))
        }
        ether::IPV4 => parse_ipv4(body, header.destination, own, peer),
        _ => None,
    }
}

fn parse_ipv4(body: &[u8], to: [u8; 6], own: Station, peer: Option<Station>) -> Option<Own> {
    let packet = ipv4::View::new_checked(body).ok()?;
    if to == GROUP_MAC && packet.destination() == GROUP {
        let found = Advertisement::parse(&packet);
        return Some(found.map_or(Own::Bad, |message| {
            Own::Advertisement(packet.source(), message)
        }));
    }
    let is_copy = to == own.mac
        && packet.destination() == own.ip
        && packet.protocol() == ipv4::UDP
        && packet.ttl() == TTL
        && peer.is_some_and(|peer| peer.ip == packet.source());
    if !is_copy {
        return None;
    }
    let datagram = packet.payload();
    let ports = udp::Repr::parse(datagram, packet.source(), own.ip).ok()?;
    (ports.destination == COPY_PORT).then(|| Own::Copy(datagram[udp::HEADER..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Station = Station {
        ip: Ipv4Addr::new(10, 0, 0, 3),
        mac: [2, 0, 0, 0, 0, 3],
    };
    const PEER: Station = Station {
        ip: Ipv4Addr::new(10, 0, 0, 4),
        mac: [2, 0, 0, 0, 0, 4],
    };

    #[test]
    fn what_one_router_sends_the_other_takes() {
        let message = Advertisement {
            vrid: 9,
            priority: 1,
            interval_cs: 100,
            addresses: vec![Ipv4Addr::new(10, 0, 0, 1)],
            has_pseudo: true,
        };
        let frame = advertisement(PEER.ip, &message);
        let expected = Own::Advertisement(PEER.ip, message);
        assert_eq!(parse(&frame, OWN, None), Some(expected));
        let frame = copy(PEER, OWN, b"text");
        let taken = parse(&frame, OWN, Some(PEER));
        assert_eq!(taken, Some(Own::Copy(b"text".to_vec())));
        assert_eq!(parse(&frame, OWN, None), None, "an unknown sender");
    }

    #[test]
    fn a_host_that_asks_for_the_own_address_gets_an_answer() {
        let mut frame = announcement(OWN.ip, PEER.mac);
        assert_eq!(parse(&frame, OWN, None), None, "it claims the address");
        frame[28..32].copy_from_slice(&PEER.ip.octets());
        assert_eq!(parse(&frame, OWN, None), Some(Own::Asked(PEER)));
        let reply = answer(OWN, PEER);
        let reply = arp::Repr::parse(&reply[ether::HEADER..]).unwrap();
        assert_eq!((reply.sender_mac, reply.operation), (OWN.mac, arp::REPLY));
    }
}
