// SPDX-License-Identifier: Apache-2.0
//! The frames that a router of a pair sends and takes for itself.
use core::net::IpAddr;

use click_wire::{arp, ether, ipv4, udp};

use super::advertisement::{Advertisement, PROTOCOL, TTL, group, virtual_mac};
use crate::ip6::neighbor::{self, Neighbor};
use crate::ip6::{self, Address};
use crate::prelude::*;

/// The UDP port of the messages that copy flows, at both ends.
pub const COPY_PORT: u16 = 49_112;
/// Class selector 6, network control (RFC 2474).
const NETWORK_CONTROL: u8 = 0xc0;
const IPV4_HEADER: usize = 20;

/// One host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    pub ip: IpAddr,
    pub mac: [u8; 6],
}

/// A frame for the router itself.
#[derive(Debug, PartialEq, Eq)]
pub enum Own {
    Advertisement(IpAddr, Advertisement),
    /// A message of the other router, to [`COPY_PORT`].
    Copy(Vec<u8>),
    /// A host asks for the router's own address; this frame is the answer.
    Asked(Vec<u8>),
    /// A message to all routers that none may take (RFC 9568, section 7.1).
    Bad,
}

/// A packet that no router may forward. Both stations have one IP version.
fn packet(from: Station, to: Station, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (ethertype, length) = match from.ip {
        IpAddr::V4(_) => (ether::IPV4, IPV4_HEADER),
        IpAddr::V6(_) => (ip6::ETHERTYPE, ip6::HEADER),
    };
    let mut frame = vec![0; ether::HEADER + length];
    let header = ether::Repr {
        destination: to.mac,
        source: from.mac,
        ethertype,
    };
    header.emit(&mut frame);
    let payload_len = u16::try_from(payload.len()).unwrap_or(u16::MAX);
    let place = &mut frame[ether::HEADER..];
    match (from.ip, to.ip) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => ip6::Repr {
            traffic_class: NETWORK_CONTROL,
            payload_len,
            next_header: protocol,
            hop_limit: TTL,
            source: Address(source),
            destination: Address(destination),
        }
        .emit(place),
        (IpAddr::V4(source), IpAddr::V4(destination)) => ipv4::Repr {
            tos: NETWORK_CONTROL,
            id: 0,
            fragment: ipv4::DONT_FRAGMENT,
            ttl: TTL,
            protocol,
            source,
            destination,
            payload_len,
        }
        .emit(place),
        _ => unreachable!("a side has one IP version"),
    }
    frame.extend(payload);
    frame
}

/// An advertisement, from the virtual Ethernet address (RFC 9568, section 7.2).
pub fn advertisement(from: IpAddr, message: &Advertisement) -> Vec<u8> {
    let (ip, mac) = group(from);
    let router = Station {
        ip: from,
        mac: virtual_mac(from, message.vrid),
    };
    packet(router, Station { ip, mac }, PROTOCOL, &message.bytes(from))
}

/// A message to the other router.
pub fn copy(from: Station, to: Station, message: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; udp::HEADER];
    datagram.extend(message);
    let ports = udp::Repr {
        source: COPY_PORT,
        destination: COPY_PORT,
    };
    match (from.ip, to.ip) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ports.emit(&mut datagram, source, destination);
            packet(from, to, ipv4::UDP, &datagram)
        }
        _ => {
            let length = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
            for (at, field) in [COPY_PORT, COPY_PORT, length].iter().enumerate() {
                datagram[2 * at..2 * at + 2].copy_from_slice(&field.to_be_bytes());
            }
            let mut frame = packet(from, to, ipv4::UDP, &datagram);
            ip6::fill_checksum(&mut frame[ether::HEADER..], 6);
            frame
        }
    }
}

/// Says where a virtual address is: a gratuitous request (section 6.4.2, item 145), or a neighbor advertisement that
/// nothing asked for (item 150).
pub fn announcement(ip: IpAddr, mac: [u8; 6]) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => {
            let message = arp::Repr {
                operation: arp::REQUEST,
                sender_mac: mac,
                sender_ip: ip,
                target_mac: [0; 6],
                target_ip: ip,
            };
            arp_frame(&message, mac, ether::BROADCAST)
        }
        IpAddr::V6(ip) => {
            let message = Neighbor::announcement(Address(ip), mac);
            neighbor_frame(&message, mac, neighbor::ALL_NODES.1)
        }
    }
}

fn arp_frame(message: &arp::Repr, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; ether::HEADER + arp::LENGTH];
    message.emit_frame(from, to, &mut frame);
    frame
}

fn neighbor_frame(message: &Neighbor, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; neighbor::FRAME];
    message.emit(from, to, &mut frame);
    frame
}

/// A packet that arrived.
struct Arrived<'a> {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    /// TTL or hop limit.
    hops: u8,
    payload: &'a [u8],
}

impl<'a> Arrived<'a> {
    /// Reads a packet without extension headers; `None` if it is cut.
    fn of(ethertype: u16, bytes: &'a [u8]) -> Option<Self> {
        match ethertype {
            ether::IPV4 => Self::of_ipv4(bytes),
            ip6::ETHERTYPE => Self::of_ipv6(bytes),
            _ => None,
        }
    }

    fn of_ipv4(bytes: &'a [u8]) -> Option<Self> {
        let view = ipv4::View::new_checked(bytes).ok()?;
        Some(Self {
            from: view.source().into(),
            to: view.destination().into(),
            protocol: view.protocol(),
            hops: view.ttl(),
            payload: bytes.get(view.header_len()..view.total_len())?,
        })
    }

    fn of_ipv6(bytes: &'a [u8]) -> Option<Self> {
        let view = ip6::View::of(bytes).filter(|view| view.version() == 6)?;
        Some(Self {
            from: view.source().0.into(),
            to: view.destination().0.into(),
            protocol: view.next_header(),
            hops: view.hop_limit(),
            payload: bytes.get(ip6::HEADER..ip6::HEADER + view.payload_len())?,
        })
    }

    /// The text of a datagram to [`COPY_PORT`]. Its tag says more than a checksum.
    fn copy(&self) -> Option<Vec<u8>> {
        let port = self.payload.get(2..4)?;
        let text = self.payload.get(udp::HEADER..)?;
        (self.protocol == ipv4::UDP && port == COPY_PORT.to_be_bytes()).then(|| text.to_vec())
    }
}

/// True for the address of a router on a link (sections 5.1.1.1 and 5.1.2.1).
fn is_router(from: IpAddr) -> bool {
    match from {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_loopback() || ip.octets()[0] >= 224),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Reads a frame for the router itself; `None` if it is for its function.
pub fn parse(frame: &[u8], own: Station, peer: Option<Station>) -> Option<Own> {
    let header = ether::Repr::parse(frame).ok()?;
    if let Some(answer) = answer(frame, &header, own) {
        return Some(Own::Asked(answer));
    }
    let packet = Arrived::of(header.ethertype, &frame[ether::HEADER..])?;
    if (packet.to, header.destination) == group(own.ip) {
        let is_local = packet.protocol == PROTOCOL && packet.hops == TTL && is_router(packet.from);
        let message = is_local.then(|| Advertisement::parse(packet.payload, packet.from));
        // where the other router is not known, its Ethernet address is that of the virtual router, which port security keeps
        // from other stations
        let is_heard =
            |m: &Advertisement| peer.is_some() || header.source == virtual_mac(packet.from, m.vrid);
        let found = message.flatten().filter(is_heard);
        return Some(found.map_or(Own::Bad, |m| Own::Advertisement(packet.from, m)));
    }
    let is_of_peer = (packet.to, header.destination) == (own.ip, own.mac)
        && packet.hops == TTL
        && peer.is_some_and(|peer| peer.ip == packet.from);
    is_of_peer.then(|| packet.copy().map(Own::Copy))?
}

/// The answer to a host that asks for the router's own address.
fn answer(frame: &[u8], header: &ether::Repr, own: Station) -> Option<Vec<u8>> {
    match (own.ip, header.ethertype) {
        (IpAddr::V4(ip), ether::ARP) => {
            let asked = arp::Repr::parse(&frame[ether::HEADER..]).ok()?;
            let is_asked = asked.operation == arp::REQUEST && asked.target_ip == ip;
            let is_other = asked.sender_ip != ip && !ether::is_group(asked.sender_mac);
            (is_asked && is_other).then(|| {
                let message = arp::Repr {
                    operation: arp::REPLY,
                    sender_mac: own.mac,
                    sender_ip: ip,
                    target_mac: asked.sender_mac,
                    target_ip: asked.sender_ip,
                };
                arp_frame(&message, own.mac, asked.sender_mac)
            })
        }
        (IpAddr::V6(ip), ip6::ETHERTYPE) => {
            let asked = Neighbor::parse(frame).filter(|n| n.target == Address(ip))?;
            let (message, to) = asked.answer(own.mac, header.source)?;
            Some(neighbor_frame(&message, own.mac, to))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Own and peer of each IP version.
    fn pairs() -> [[Station; 2]; 2] {
        let station = |ip: &str, last| Station {
            ip: ip.parse().unwrap(),
            mac: [2, 0, 0, 0, 0, last],
        };
        [
            [station("10.0.0.3", 3), station("10.0.0.4", 4)],
            [station("fe80::3", 3), station("fe80::4", 4)],
        ]
    }

    fn message(ip: &str) -> Advertisement {
        Advertisement {
            vrid: 9,
            priority: 1,
            interval_cs: 100,
            addresses: vec![ip.parse().unwrap()],
            has_pseudo: true,
        }
    }

    #[test]
    fn what_one_router_sends_the_other_takes() {
        for ([own, peer], ip) in pairs().into_iter().zip(["10.0.0.1", "fe80::1"]) {
            let frame = advertisement(peer.ip, &message(ip));
            let expected = Own::Advertisement(peer.ip, message(ip));
            assert_eq!(parse(&frame, own, None), Some(expected));
            let frame = copy(peer, own, b"text");
            let taken = parse(&frame, own, Some(peer));
            assert_eq!(taken, Some(Own::Copy(b"text".to_vec())));
            assert_eq!(parse(&frame, own, None), None, "an unknown sender");
            for length in 0..frame.len() {
                assert_eq!(parse(&frame[..length], own, Some(peer)), None);
            }
        }
    }

    #[test]
    fn a_message_that_was_forwarded_is_bad() {
        for ([own, peer], ip) in pairs().into_iter().zip(["10.0.0.1", "fe80::1"]) {
            let mut frame = advertisement(peer.ip, &message(ip));
            let at = if own.ip.is_ipv4() { 22 } else { 21 };
            assert_eq!(frame[at], TTL);
            frame[at] = 254;
            assert_eq!(parse(&frame, own, None), Some(Own::Bad));
        }
    }

    #[test]
    fn a_router_that_is_not_known_sends_from_the_virtual_ethernet_address() {
        for ([own, peer], ip) in pairs().into_iter().zip(["10.0.0.1", "fe80::1"]) {
            let mut frame = advertisement(peer.ip, &message(ip));
            for mac in [peer.mac, virtual_mac(peer.ip, 8), [0, 0, 0x5e, 0, 3, 9]] {
                frame[6..12].copy_from_slice(&mac);
                assert_eq!(parse(&frame, own, None), Some(Own::Bad), "{mac:?}");
                let expected = Own::Advertisement(peer.ip, message(ip));
                assert_eq!(parse(&frame, own, Some(peer)), Some(expected));
            }
        }
    }

    #[test]
    fn a_group_or_a_host_of_another_link_is_no_router() {
        let [[own4, _], [own6, _]] = pairs();
        for (own, from) in [
            (own4, "0.0.0.0"),
            (own4, "127.0.0.1"),
            (own4, "224.0.0.18"),
            (own4, "255.255.255.255"),
            (own6, "::"),
            (own6, "2001:db8::9"),
            (own6, "ff02::12"),
        ] {
            let ip = if own.ip.is_ipv4() {
                "10.0.0.1"
            } else {
                "fe80::1"
            };
            let frame = advertisement(from.parse().unwrap(), &message(ip));
            assert_eq!(parse(&frame, own, None), Some(Own::Bad), "{from}");
        }
    }

    #[test]
    fn a_host_that_asks_by_arp_for_the_own_address_gets_an_answer() {
        let [[own, peer], _] = pairs();
        let mut frame = announcement(own.ip, peer.mac);
        assert_eq!(parse(&frame, own, None), None, "it claims the address");
        frame[28..32].copy_from_slice(&[10, 0, 0, 4]);
        let Some(Own::Asked(reply)) = parse(&frame, own, None) else {
            panic!("no answer");
        };
        assert_eq!((&reply[..6], &reply[6..12]), (&peer.mac[..], &own.mac[..]));
        let reply = arp::Repr::parse(&reply[ether::HEADER..]).unwrap();
        assert_eq!((reply.sender_mac, reply.operation), (own.mac, arp::REPLY));
    }

    #[test]
    fn a_host_that_solicits_the_own_address_gets_an_answer() {
        let [_, [own, peer]] = pairs();
        let (IpAddr::V6(ip), IpAddr::V6(asker)) = (own.ip, peer.ip) else {
            panic!("IPv6");
        };
        let mut question = Neighbor {
            kind: neighbor::SOLICITATION,
            flags: 0,
            source: Address(asker),
            destination: Address("ff02::1:ff00:3".parse().unwrap()),
            target: Address(ip),
            link: Some(peer.mac),
        };
        let ask = |question: &Neighbor| {
            let frame = neighbor_frame(question, peer.mac, [0x33, 0x33, 0xff, 0, 0, 3]);
            parse(&frame, own, None)
        };
        let Some(Own::Asked(reply)) = ask(&question) else {
            panic!("no answer");
        };
        assert_eq!(reply[..6], peer.mac);
        let reply = Neighbor::parse(&reply).unwrap();
        assert_eq!((reply.target, reply.link), (Address(ip), Some(own.mac)));
        question.target = Address(asker);
        assert_eq!(ask(&question), None, "another address");
    }
}
