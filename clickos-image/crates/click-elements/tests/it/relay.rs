// SPDX-License-Identifier: Apache-2.0
//! The DHCP relay of the catalog takes the requests that are for relays.
use click_core::{Environment, Progress, Router};

use crate::devices::{Memory, devices, environment};

const CLIENT: [u8; 6] = [2, 0, 0, 0, 12, 1];
const LINK: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
const AGENTS: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2];

fn address(network: u8, last: u16) -> [u8; 16] {
    let [high, low] = last.to_be_bytes();
    [
        0x20, 1, 0x0d, 0xb8, 0, network, 0, 0, 0, 0, 0, 0, 0, 0, high, low,
    ]
}

fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2);
    let words = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A datagram between ports, without a checksum.
fn udp(ports: [u16; 2], message: &[u8]) -> Vec<u8> {
    let length = message.len() as u16 + 8;
    let words = [ports[0], ports[1], length, 0].map(u16::to_be_bytes);
    [words.as_flattened(), message].concat()
}

/// A frame with a request of DHCP.
fn request(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..4].copy_from_slice(&[1, 1, 6, 0]);
    message[12..16].copy_from_slice(&from);
    message[28..34].copy_from_slice(&CLIENT);
    message.extend([99, 130, 83, 99, 53, 1, 3, 255]);
    let datagram = udp([68, 67], &message);
    let [high, low] = (datagram.len() as u16 + 20).to_be_bytes();
    let mut header = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend([from, to].as_flattened());
    let right = sum(&header);
    header[10..12].copy_from_slice(&right);
    [&[0xff; 6][..], &CLIENT, &[8, 0], &header, &datagram].concat()
}

/// A frame with a request of DHCPv6.
fn request6(to: [u8; 16]) -> Vec<u8> {
    let mut datagram = udp([546, 547], &[5, 0, 0, to[15]]);
    let length = datagram.len() as u16;
    let pseudo = [&LINK[..], &to, &[0, 0, 0, length as u8, 0, 0, 0, 17]].concat();
    let right = sum(&[&pseudo[..], &datagram].concat());
    datagram[6..8].copy_from_slice(&right);
    let header = [0x60, 0, 0, 0, 0, length as u8, 17, 1];
    let kind = [0x86, 0xdd];
    let head = [&[0x33; 6][..], &CLIENT, &kind, &header, &LINK, &to];
    [&head.concat()[..], &datagram].concat()
}

struct Bench {
    router: Router,
    left: Memory,
    now_ns: u64,
}

impl Bench {
    fn new() -> Self {
        let all = crate::catalog::functions();
        let (_, config) = all.iter().find(|(name, _)| name == "dhcp-relay").unwrap();
        let [left, right] = devices();
        let environment = Environment {
            implicit: vec!["ClickOSControl".to_string()],
            ..environment(&[left.clone(), right])
        };
        let registry = click_elements::registry();
        let router = Router::build("relay.click", config, &registry, environment, 1);
        let router = router.unwrap_or_else(|errors| panic!("{errors:#?}"));
        Self {
            router,
            left,
            now_ns: 1,
        }
    }

    /// True if the relay takes a client's frame, also for the rates.
    fn takes(&mut self, handler: &str, frame: Vec<u8>) -> bool {
        let before = self.count(handler);
        self.left.borrow_mut().input.push_back(frame);
        self.now_ns += 1000;
        while self.router.run(self.now_ns) == Progress::Worked {}
        self.count(handler) > before
    }

    fn count(&mut self, handler: &str) -> u64 {
        let value = self.router.read_handler(handler, "", self.now_ns).unwrap();
        String::from_utf8(value).unwrap().trim().parse().unwrap()
    }
}

#[test]
fn a_renewal_at_another_server_is_not_relayed() {
    let mut bench = Bench::new();
    let client = [10, 9, 1, 77];
    for (from, to, is_taken) in [
        ([0; 4], [255; 4], true),
        (client, [255; 4], true),
        (client, [10, 9, 1, 1], true),
        (client, [10, 9, 1, 5], false),
        (client, [10, 9, 2, 77], false),
    ] {
        let frame = request(from, to);
        assert_eq!(bench.takes("requests.count", frame), is_taken, "{to:?}");
    }
    assert_eq!(bench.count("relay.requests"), 3);
}

#[test]
fn a_message_of_dhcpv6_to_another_station_is_not_relayed() {
    let mut bench = Bench::new();
    for (to, is_taken) in [
        (AGENTS, true),
        (address(1, 1), true),
        (address(1, 5), false),
        (address(2, 0x77), false),
        (address(2, 1), false),
    ] {
        let frame = request6(to);
        assert_eq!(bench.takes("requests6.count", frame), is_taken, "{to:x?}");
    }
    assert_eq!(bench.count("relay6.requests"), 2);
}
