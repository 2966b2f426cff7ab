// SPDX-License-Identifier: Apache-2.0
//! Packets of a client and a server, and what may be around them.
use click_wire::checksum;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;
pub const URG: u8 = 32;
pub const CLIENT: [u8; 4] = [10, 0, 0, 1];
pub const SERVER: [u8; 4] = [10, 0, 0, 2];
/// The length of the link header of plain frames.
pub const LINK: usize = 14;

/// A segment.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from_client: bool,
    pub client: [u8; 4],
    pub ports: [u16; 2],
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub urgent: u16,
    pub ttl: u8,
    pub data: Vec<u8>,
    pub is_broken: bool,
}

impl Segment {
    pub fn new(from_client: bool, flags: u8, seq: u32, ack: u32, data: &[u8]) -> Self {
        Self {
            from_client,
            client: CLIENT,
            ports: [1000, 80],
            flags,
            seq,
            ack,
            urgent: 0,
            ttl: 64,
            data: data.to_vec(),
            is_broken: false,
        }
    }

    fn tcp(&self, pseudo: u64) -> Vec<u8> {
        let [client, server] = self.ports;
        let (from, to) = if self.from_client {
            (client, server)
        } else {
            (server, client)
        };
        let mut bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([0x50, self.flags, 0xf0, 0, 0, 0]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(&self.data);
        let sum = checksum::finish(checksum::add(pseudo + 6 + bytes.len() as u64, &bytes));
        let sum = if self.is_broken { sum ^ 0x55 } else { sum };
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn addresses<const N: usize>(&self, client: [u8; N], server: [u8; N]) -> Vec<u8> {
        let (from, to) = if self.from_client {
            (client, server)
        } else {
            (server, client)
        };
        [from, to].concat()
    }

    /// The packet of IPv4.
    pub fn ip(&self) -> Vec<u8> {
        let addresses = self.addresses(self.client, SERVER);
        let tcp = self.tcp(checksum::add(0, &addresses));
        ip4(&addresses, 6, self.ttl, &tcp)
    }

    /// The packet of IPv6, with extension headers, of which the first has a number, and the last names TCP.
    pub fn ip6(&self, first: u8, headers: &[u8]) -> Vec<u8> {
        let addresses = self.addresses(host6(1), host6(2));
        let tcp = self.tcp(checksum::add(0, &addresses));
        let length = (headers.len() + tcp.len()) as u16;
        let mut bytes = vec![0x60, 0, 0, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend([first, self.ttl]);
        [bytes, addresses, headers.to_vec(), tcp].concat()
    }

    /// The plain frame.
    pub fn frame(&self) -> Vec<u8> {
        link(&self.ip())
    }
}

fn host6(last: u8) -> [u8; 16] {
    [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]
}

/// A packet of IPv4.
pub fn ip4(addresses: &[u8], protocol: u8, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 9, 0, 0, ttl, protocol, 0, 0]);
    bytes.extend(addresses);
    fill_checksum(&mut bytes);
    bytes.extend(payload);
    bytes
}

pub fn fill_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = checksum::of(&header[..20]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A datagram without a checksum.
pub fn udp(sport: u16, dport: u16, data: &[u8]) -> Vec<u8> {
    let length = (8 + data.len()) as u16;
    let mut bytes = [
        sport.to_be_bytes(),
        dport.to_be_bytes(),
        length.to_be_bytes(),
        [0, 0],
    ]
    .concat();
    bytes.extend(data);
    ip4(&[CLIENT, SERVER].concat(), 17, 64, &bytes)
}

/// A frame: addresses, what is between them and the packet, and the packet.
pub fn around(between: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], between, packet].concat()
}

/// A plain frame.
pub fn link(packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 6 {
        [0x86, 0xdd]
    } else {
        [8, 0]
    };
    around(&kind, packet)
}

/// A fragment of a packet of IPv4: some bytes of its payload, in place of which others may stand.
pub fn fragment(packet: &[u8], start: usize, end: usize, instead: Option<&[u8]>) -> Vec<u8> {
    let payload = &packet[20..];
    let is_last = end >= payload.len();
    let part = instead.unwrap_or(&payload[start.min(payload.len())..end.min(payload.len())]);
    let mut bytes = packet[..20].to_vec();
    bytes[2..4].copy_from_slice(&((20 + part.len()) as u16).to_be_bytes());
    let field = (start / 8) as u16 | if is_last { 0 } else { 0x2000 };
    bytes[6..8].copy_from_slice(&field.to_be_bytes());
    fill_checksum(&mut bytes);
    bytes.extend(part);
    bytes
}

/// A fragment of a packet of IPv6 without extension headers.
pub fn fragment6(packet: &[u8], start: usize, end: usize) -> Vec<u8> {
    let payload = &packet[40..];
    let is_last = end >= payload.len();
    let part = &payload[start..end.min(payload.len())];
    let mut bytes = packet[..40].to_vec();
    bytes[4..6].copy_from_slice(&((8 + part.len()) as u16).to_be_bytes());
    bytes[6] = 44;
    let field = start as u16 | u16::from(!is_last);
    bytes.extend([packet[6], 0]);
    bytes.extend(field.to_be_bytes());
    bytes.extend([0, 0, 0, 7]);
    bytes.extend(part);
    bytes
}
