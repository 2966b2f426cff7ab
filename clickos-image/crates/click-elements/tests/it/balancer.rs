// SPDX-License-Identifier: Apache-2.0
//! The balancer of IPv6: servers get the packets of clients, clients get the answers of the address that they use.
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use click_core::{Progress, Router};
use click_wire::checksum;
use proptest::prelude::*;

use crate::devices::{Memory, devices, environment};

pub const CONFIG: &str = "pool :: ServerPool(10.0.2.1, 2001:db8:2::8, 2001:db8:2::9, 10.0.2.8, SRC6 2001:db8:2::1);
    FromDevice(0) -> CheckIP6Header -> b :: IP6Balancer(2001:db8:1::1, pool, CAPACITY 100) -> ToDevice(0);
    FromDevice(1) -> CheckIP6Header -> [1] b [1] -> ToDevice(1);
    b[2] -> ToDevice(2); Idle -> pool;";

pub const OWN: &str = "2001:db8:1::1";
pub const CLIENT: &str = "2001:db8:7::1";
pub const SERVERS: [&str; 2] = ["2001:db8:2::8", "2001:db8:2::9"];
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 58;

/// A balancer and its devices.
pub struct Place {
    pub router: Router,
    pub devices: [Memory; 3],
}

impl Place {
    pub fn new() -> Self {
        let devices = devices();
        let environment = environment(&devices);
        let registry = click_elements::registry();
        let router = Router::build("t", CONFIG, &registry, environment, 1);
        let router = router.unwrap_or_else(|errors| panic!("{errors:#?}"));
        Self { router, devices }
    }

    /// Begins again with another configuration.
    pub fn build(&mut self, config: &str) {
        let environment = environment(&self.devices);
        let registry = click_elements::registry();
        self.router = Router::build("t", config, &registry, environment, 1).unwrap();
    }

    /// Replaces the configuration by a hot swap.
    pub fn swap(&mut self, config: &str, now_ns: u64) {
        let registry = click_elements::registry();
        self.router.hotswap("t", config, &registry, now_ns).unwrap();
    }

    pub fn run_at(&mut self, now_ns: u64) {
        while self.router.run(now_ns) == Progress::Worked {}
    }

    /// The packet that leaves by the output of an input's side, if one comes there.
    pub fn passes(&mut self, input: usize, packet: Vec<u8>) -> Option<Vec<u8>> {
        self.devices[input].borrow_mut().input.push_back(packet);
        while self.router.run(1) == Progress::Worked {}
        let refused: Vec<_> = self.devices[2].borrow_mut().output.drain(..).collect();
        let mut passed: Vec<_> = self.devices[input].borrow_mut().output.drain(..).collect();
        assert_eq!(passed.len() + refused.len(), 1);
        passed.pop()
    }

    pub fn read(&mut self, name: &str) -> String {
        let value = self.router.read_handler(name, "", 1).unwrap();
        String::from_utf8(value).unwrap()
    }

    pub fn write(&mut self, name: &str, value: &str) {
        self.router
            .write_handlers(&[(name, value.as_bytes())], 1)
            .unwrap();
    }
}

pub fn address(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

/// Where the checksum is in a message.
fn sum_at(protocol: u8) -> usize {
    match protocol {
        TCP => 16,
        UDP => 6,
        _ => 2,
    }
}

pub fn sum(packet: &[u8], protocol: u8, message: &[u8]) -> u16 {
    let pseudo = checksum::add(0, &packet[8..40]) + u64::from(protocol) + message.len() as u64;
    checksum::finish(checksum::add(pseudo, message))
}

/// A packet with a right checksum.
pub fn packet(protocol: u8, ends: [&str; 2], message: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, message.len() as u8, protocol, 64];
    packet.extend(ends.map(address).concat());
    let mut message = message.to_vec();
    let right = sum(&packet, protocol, &message);
    message[sum_at(protocol)..][..2].copy_from_slice(&right.to_be_bytes());
    packet.extend(message);
    packet
}

pub fn udp(ends: [&str; 2], ports: [u16; 2]) -> Vec<u8> {
    let ports = ports.map(u16::to_be_bytes).concat();
    packet(UDP, ends, &[&ports[..], &[0, 13, 0, 0], b"words"].concat())
}

pub fn tcp(ends: [&str; 2], ports: [u16; 2], flags: u8, numbers: [u32; 2]) -> Vec<u8> {
    let ports = ports.map(u16::to_be_bytes).concat();
    let numbers = numbers.map(u32::to_be_bytes).concat();
    let rest = [0x50, flags, 0x10, 0, 0, 0, 0, 0];
    packet(TCP, ends, &[&ports[..], &numbers, &rest].concat())
}

fn error(ends: [&str; 2], quoted: &[u8]) -> Vec<u8> {
    packet(ICMP, ends, &[&[2, 0, 0, 0, 0, 0, 5, 0], quoted].concat())
}

/// The server that a packet goes to, if it is as the client's apart from that.
fn server_of(sent: &[u8], got: &[u8]) -> &'static str {
    let found = SERVERS.into_iter().find(|s| address(s) == got[24..40]);
    let server = found.expect("the destination is a server");
    let mut expected = sent.to_vec();
    expected[24..40].copy_from_slice(&address(server));
    let at = 40 + sum_at(got[6]);
    expected[at..at + 2].copy_from_slice(&got[at..at + 2]);
    assert_eq!(expected, got);
    assert_eq!(sum(got, got[6], &got[40..]), 0, "its checksum is right");
    server
}

#[test]
fn servers_get_flows_and_clients_their_answers() {
    let mut place = Place::new();
    let mut used = BTreeSet::new();
    for host in 1..=20 {
        let client = format!("2001:db8:7::{host}");
        let question = udp([&client, OWN], [5000, 80]);
        let got = place.passes(0, question.clone()).expect("it passes");
        let server = server_of(&question, &got);
        used.insert(server);
        let got = place.passes(1, udp([server, &client], [80, 5000]));
        assert_eq!(got, Some(udp([OWN, &client], [80, 5000])));

        let question = tcp([&client, OWN], [5001, 80], 2, [100, 0]);
        let got = place.passes(0, question.clone()).expect("it passes");
        assert_eq!(
            server_of(&question, &got),
            server,
            "a client has one server"
        );
        let answer = |from: &str| tcp([from, &client], [80, 5001], 0x12, [7, 101]);
        assert_eq!(place.passes(1, answer(server)), Some(answer(OWN)));
    }
    assert_eq!(used.len(), 2, "both servers have clients");
    assert_eq!(place.read("b.table_size"), "40");
    let table = place.read("b.table");
    assert!(
        table
            .lines()
            .all(|l| SERVERS.iter().any(|s| l.ends_with(s))),
        "{table}"
    );
}

#[test]
fn others_do_not_pass() {
    let mut place = Place::new();
    let question = udp([CLIENT, OWN], [5000, 80]);
    let got = place.passes(0, question.clone()).unwrap();
    let server = server_of(&question, &got);
    let other = SERVERS.into_iter().find(|s| *s != server).unwrap();
    for (input, packet) in [
        (0, udp([CLIENT, "2001:db8:1::2"], [5000, 80])),
        (0, packet(50, [CLIENT, OWN], &[7; 12])),
        (1, udp([other, CLIENT], [80, 5000])),
        (1, udp([server, CLIENT], [80, 5001])),
        (1, udp([OWN, CLIENT], [80, 5000])),
        (1, tcp([server, CLIENT], [80, 5000], 2, [1, 0])),
    ] {
        assert_eq!(
            place.passes(input, packet.clone()),
            None,
            "{input} {packet:x?}"
        );
    }
    assert!(place.passes(1, udp([server, CLIENT], [80, 5000])).is_some());
}

#[test]
fn errors_have_the_addresses_of_their_receiver() {
    for (question, upper) in [
        (udp([CLIENT, OWN], [5000, 80]), 8),
        (tcp([CLIENT, OWN], [5000, 80], 2, [100, 0]), 20),
    ] {
        let mut place = Place::new();
        let to_server = place.passes(0, question.clone()).unwrap();
        let server = server_of(&question, &to_server);
        // about the client's packet, of the server itself and of a router before it
        for (sender, source) in [(server, OWN), ("2001:db8:2::fe", "2001:db8:2::fe")] {
            let got = place
                .passes(1, error([sender, CLIENT], &to_server))
                .unwrap();
            assert_eq!(got, error([source, CLIENT], &question));
            // quoted up to the ports only
            let cut = 40 + 4;
            let got = place
                .passes(1, error([sender, CLIENT], &to_server[..cut]))
                .unwrap();
            assert_eq!(got, error([source, CLIENT], &question[..cut]));
        }
        let answer = match upper {
            8 => udp([server, CLIENT], [80, 5000]),
            _ => tcp([server, CLIENT], [80, 5000], 0x12, [7, 101]),
        };
        let to_client = place.passes(1, answer.clone()).unwrap();
        let router = "2001:db8:9::1";
        let got = place.passes(0, error([router, OWN], &to_client)).unwrap();
        assert_eq!(got, error([router, server], &answer));
        for (input, wrong) in [
            (1, error([server, "2001:db8:7::2"], &to_server)),
            (1, error([server, CLIENT], &question)),
            (0, error([router, OWN], &question)),
            (0, error([router, OWN], &answer)),
            (0, error([router, OWN], &udp([OWN, CLIENT], [81, 5000]))),
        ] {
            assert_eq!(
                place.passes(input, wrong.clone()),
                None,
                "{input} {wrong:x?}"
            );
        }
    }
}

/// A fragment of a datagram.
pub fn fragment(ends: [&str; 2], offset: u16, more: bool, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, bytes.len() as u8 + 8, 44, 64];
    packet.extend(ends.map(address).concat());
    packet.extend([UDP, 0]);
    packet.extend((offset << 3 | u16::from(more)).to_be_bytes());
    packet.extend([0, 0, 0, 7]);
    packet.extend(bytes);
    packet
}

#[test]
fn later_fragments_follow_the_first() {
    let mut place = Place::new();
    let first = [&[0x13, 0x88, 0, 80, 0, 24, 9, 9][..], &[7; 8]].concat();
    let ends = [CLIENT, OWN];
    assert_eq!(place.passes(0, fragment(ends, 2, false, &[7; 8])), None);
    let got = place.passes(0, fragment(ends, 0, true, &first)).unwrap();
    let server = SERVERS
        .into_iter()
        .find(|s| address(s) == got[24..40])
        .unwrap();
    let got = place.passes(0, fragment(ends, 2, false, &[7; 8])).unwrap();
    assert_eq!(got, fragment([CLIENT, server], 2, false, &[7; 8]));
    let back = [server, CLIENT];
    let first = [&[0, 80, 0x13, 0x88, 0, 24, 9, 9][..], &[7; 8]].concat();
    assert!(place.passes(1, fragment(back, 0, true, &first)).is_some());
    let got = place.passes(1, fragment(back, 2, false, &[7; 8])).unwrap();
    assert_eq!(got, fragment([OWN, CLIENT], 2, false, &[7; 8]));
}

/// Opens a connection; returns its server.
fn connect(place: &mut Place, port: u16) -> &'static str {
    let first = tcp([CLIENT, OWN], [port, 80], 2, [100, 0]);
    let got = place.passes(0, first.clone()).expect("a server takes it");
    let server = server_of(&first, &got);
    let answer = tcp([server, CLIENT], [80, port], 0x12, [7, 101]);
    assert!(place.passes(1, answer).is_some());
    assert_eq!(
        server_of(&data(port), &place.passes(0, data(port)).unwrap()),
        server
    );
    server
}

fn data(port: u16) -> Vec<u8> {
    tcp([CLIENT, OWN], [port, 80], 0x10, [101, 8])
}

#[test]
fn a_draining_server_keeps_its_connections() {
    let mut place = Place::new();
    let server = connect(&mut place, 5000);
    place.write("pool.draining", server);
    assert_eq!(
        server_of(&data(5000), &place.passes(0, data(5000)).unwrap()),
        server
    );
    assert_ne!(connect(&mut place, 5001), server);
    // a connection that is over begins elsewhere
    let reset = tcp([CLIENT, OWN], [5000, 80], 4, [101, 0]);
    assert!(place.passes(0, reset).is_some());
    assert_ne!(connect(&mut place, 5000), server);
    place.write("pool.draining", &SERVERS.join(" "));
    assert_eq!(
        place.passes(0, tcp([CLIENT, OWN], [5002, 80], 2, [1, 0])),
        None
    );
}

#[test]
fn another_guest_takes_flows_over() {
    let mut place = Place::new();
    let server = connect(&mut place, 5000);
    let state = place.read("b.state");
    assert!(
        state.starts_with("balancer 1\n6 2001:db8:7::1 5000 2001:db8:1::1 80 out "),
        "{state}"
    );
    for handler in ["b.state", "b.merge"] {
        let mut other = Place::new();
        other.write("pool.draining", server);
        other.write(handler, &state);
        assert_eq!(
            server_of(&data(5000), &other.passes(0, data(5000)).unwrap()),
            server
        );
        let answer = tcp([server, CLIENT], [80, 5000], 0x10, [8, 101]);
        assert!(other.passes(1, answer).is_some());
        let mut refused = |text: &str| {
            other
                .router
                .write_handlers(&[(handler, text.as_bytes())], 1)
                .is_err()
        };
        assert!(refused(&state.replace(server, "server")));
        assert!(refused("flowguard 1\n"));
    }
}

proptest! {
    #[test]
    fn garbage_is_survived(
        packets in prop::collection::vec(
            (0usize..2, prop::collection::vec(any::<u8>(), 0..120), 0u8..6, any::<bool>()), 1..40),
    ) {
        let mut place = Place::new();
        for (input, mut bytes, next, about) in packets {
            if bytes.len() >= 48 {
                bytes[0] = 0x60;
                let length = (bytes.len() - 40) as u16;
                bytes[4..6].copy_from_slice(&length.to_be_bytes());
                bytes[6] = [TCP, UDP, ICMP, 44, 0, 60][usize::from(next)];
                let ends = [[CLIENT, OWN], [SERVERS[0], CLIENT]][input];
                bytes[8..40].copy_from_slice(&ends.map(address).concat());
                if about && bytes.len() >= 96 {
                    bytes[40] = 1;
                    bytes[48] = 0x60;
                    bytes[54] = [UDP, 44, ICMP, TCP, 0, 60][usize::from(next)];
                    let ends = [[OWN, CLIENT], [CLIENT, SERVERS[0]]][input];
                    bytes[56..88].copy_from_slice(&ends.map(address).concat());
                }
            }
            place.devices[input].borrow_mut().input.push_back(bytes);
            while place.router.run(1) == Progress::Worked {}
        }
        prop_assert_eq!(place.router.packets_in_use(), 0);
    }
}
