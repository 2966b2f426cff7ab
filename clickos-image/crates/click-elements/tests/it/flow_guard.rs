// SPDX-License-Identifier: Apache-2.0
//! What FlowGuard tells of many flows, within the limits of a router.
use std::collections::BTreeMap;

use click_core::{Progress, Router};
use click_wire::checksum;

use crate::devices::{Memory, devices, environment};

const CONFIG: &str = "FromDevice(0) -> MarkIPHeader -> g :: FlowGuard(1000); g[0] -> Discard;
    Idle -> [1]g; g[1] -> Discard; g[2] -> Discard; Idle -> [2]g;";
/// Bytes of a handler's value in these tests.
const MAX: usize = 4096;

/// A datagram without a checksum.
fn datagram(sport: u16) -> Vec<u8> {
    let head = [
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 2,
    ];
    let [high, low] = sport.to_be_bytes();
    [&head[..], &[high, low, 0, 53, 0, 8, 0, 0]].concat()
}

#[test]
fn a_long_table_is_cut_at_a_line() {
    let devices = devices::<1>();
    let mut environment = environment(&devices);
    let [device] = devices;
    environment.limits.answer_bytes = MAX;
    let registry = click_elements::registry();
    let mut router = Router::build("t", CONFIG, &registry, environment, 1).unwrap();
    device.borrow_mut().input.extend((1..=500).map(datagram));
    while router.run(1) == Progress::Worked {}
    let mut read = |name| String::from_utf8(router.read_handler(name, "", 1).unwrap()).unwrap();
    assert_eq!(read("g.table_size"), "500");
    let table = read("g.table");
    assert!(table.len() <= MAX, "{} bytes", table.len());
    assert!(table.ends_with("\n...\n"), "{table}");
    let state = read("g.state");
    assert!(state.len() <= MAX && state.starts_with("flowguard 1\n"));
}

/// A guard between the devices 0, inside, 1, outside, and 2, what the outside may begin; what passes leaves by device 3.
struct Guard {
    router: Router,
    devices: [Memory; 4],
    now_ns: u64,
}

impl Guard {
    fn new() -> Self {
        Self::with(4096)
    }

    fn with(capacity: usize) -> Self {
        let config = format!(
            "FromDevice(0) -> CheckIPHeader -> g :: FlowGuard({capacity}); FromDevice(1) -> CheckIPHeader -> [1]g;
            FromDevice(2) -> CheckIPHeader -> [2]g; g[0] -> out :: ToDevice(3); g[1] -> out; g[2] -> Discard;"
        );
        let devices = devices();
        let environment = environment(&devices);
        let registry = click_elements::registry();
        let router = Router::build("t", &config, &registry, environment, 1).unwrap();
        Self {
            router,
            devices,
            now_ns: 1,
        }
    }

    /// True if a packet that comes by an input passes.
    fn passes(&mut self, input: usize, packet: Vec<u8>) -> bool {
        self.devices[input].borrow_mut().input.push_back(packet);
        while self.router.run(self.now_ns) == Progress::Worked {}
        self.devices[3].borrow_mut().output.drain(..).count() == 1
    }
}

const SERVER: [u8; 4] = [10, 0, 0, 1];
const CLIENT: [u8; 4] = [10, 0, 1, 2];
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A packet between the client's port 1000 and the server's port 80.
fn tcp(from_client: bool, flags: u8, seq: u32, ack: u32) -> Vec<u8> {
    let (ends, ports) = match from_client {
        true => ([CLIENT, SERVER], [1000u16, 80]),
        false => ([SERVER, CLIENT], [80, 1000]),
    };
    let mut body = ports.map(u16::to_be_bytes).concat();
    body.extend([seq, ack].map(u32::to_be_bytes).concat());
    body.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    ipv4(6, ends, &body)
}

fn ipv4(protocol: u8, ends: [[u8; 4]; 2], body: &[u8]) -> Vec<u8> {
    let length = 20 + body.len() as u8;
    let mut packet = vec![0x45, 0, 0, length, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend(ends.concat());
    let sum = checksum::of(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend(body);
    packet
}

/// A connection that the client outside has opened.
fn opened() -> Guard {
    let mut guard = Guard::new();
    assert!(guard.passes(2, tcp(true, SYN, 1000, 0)));
    assert!(guard.passes(0, tcp(false, SYN | ACK, 5000, 1001)));
    assert!(guard.passes(1, tcp(true, ACK, 1001, 5001)));
    guard
}

#[test]
fn a_first_packet_does_not_end_an_open_connection() {
    let mut guard = opened();
    assert!(
        guard.passes(2, tcp(true, SYN, 4_000_000, 0)),
        "the server decides"
    );
    assert!(
        guard.passes(0, tcp(false, ACK, 5001, 1001)),
        "it knows the connection"
    );
    assert!(guard.passes(1, tcp(true, ACK, 1001, 5001)));
    assert!(!guard.passes(1, tcp(true, ACK, 4_000_001, 5001)));
}

#[test]
fn a_connection_begins_anew_if_both_ends_do() {
    let mut guard = opened();
    assert!(guard.passes(2, tcp(true, SYN, 4_000_000, 0)));
    assert!(!guard.passes(0, tcp(false, SYN | ACK, 90_000_000, 77)));
    assert!(guard.passes(0, tcp(false, SYN | ACK, 90_000_000, 4_000_001)));
    assert!(guard.passes(1, tcp(true, ACK, 4_000_001, 90_000_001)));
    assert!(
        !guard.passes(1, tcp(true, ACK, 1001, 5001)),
        "the former one"
    );
}

#[test]
fn a_packet_with_a_source_of_the_other_side_is_of_no_flow() {
    let mut guard = opened();
    assert!(!guard.passes(1, tcp(false, ACK, 5001, 1001)));
    assert!(!guard.passes(2, tcp(false, ACK, 5001, 1001)));
    assert!(!guard.passes(0, tcp(true, ACK, 1001, 5001)));
    assert!(guard.passes(0, tcp(false, ACK, 5001, 1001)));
}

/// A packet as the model knows it: protocol, ends and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    protocol: u8,
    from: (u8, u8),
    to: (u8, u8),
}

impl Key {
    fn back(self) -> Self {
        let (from, to) = (self.to, self.from);
        Self { from, to, ..self }
    }

    fn ends(self) -> [[u8; 4]; 2] {
        [self.from.0, self.to.0].map(|host| [10, 0, 0, host])
    }

    fn packet(self, answers: bool) -> Vec<u8> {
        let (sport, dport) = (self.from.1, self.to.1);
        let body = match self.protocol {
            1 => [if answers { 0 } else { 8 }, 0, 0, 0, 0, sport, 0, 0],
            17 => [0, sport, 0, dport, 0, 8, 0, 0],
            _ => [7; 8],
        };
        ipv4(self.protocol, self.ends(), &body)
    }
}

/// Flows by their first packets, and whether they began outside.
#[derive(Default)]
struct Model(BTreeMap<Key, bool>);

impl Model {
    /// Whether the sender of such packets is outside, if they are of a flow, and whether they are answers.
    fn sender(&self, key: Key) -> Option<(bool, bool)> {
        let forth = self.0.get(&key).map(|outside| (*outside, false));
        forth.or(self.0.get(&key.back()).map(|outside| (!outside, true)))
    }

    fn passes(&mut self, input: usize, key: Key, answers: bool) -> bool {
        let (outside, is_ping) = (input > 0, key.protocol == 1);
        match self.sender(key) {
            Some((from, back)) => from == outside && (!is_ping || back == answers),
            None if input != 1 && !(is_ping && answers) => self.0.insert(key, outside).is_none(),
            None => false,
        }
    }

    fn passes_error(&self, input: usize, about: Key, to: u8) -> bool {
        let sent = self
            .sender(about)
            .is_some_and(|(from, _)| from != (input > 0));
        sent && to == about.from.0
    }
}

#[test]
fn a_guard_decides_as_a_list_of_flows_does() {
    let mut passed = 0;
    for seed in 0..40u64 {
        let (mut guard, mut model, mut state) = (Guard::new(), Model::default(), seed);
        let mut below = |bound: u8| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8 % bound
        };
        for step in 0..400 {
            let protocol = [1, 17, 17, 50][usize::from(below(4))];
            let (from, number) = (1 + below(4), below(3));
            let to = 1 + (from + below(3)) % 4;
            let other = if protocol == 1 { number } else { below(3) };
            let [sport, dport] = if protocol == 50 {
                [0; 2]
            } else {
                [number, other]
            };
            let key = Key {
                protocol,
                from: (from, sport),
                to: (to, dport),
            };
            let (input, answers) = (usize::from(below(3)), below(2) == 0);
            let (packet, wanted) = if below(4) == 0 {
                let to = if below(4) == 0 { 9 } else { key.from.0 };
                let quote = key.packet(answers);
                let body = [&[3, 1, 0, 0, 0, 0, 0, 0], &quote[..]].concat();
                let ends = [[10, 0, 0, 8], [10, 0, 0, to]];
                (ipv4(1, ends, &body), model.passes_error(input, key, to))
            } else {
                (key.packet(answers), model.passes(input, key, answers))
            };
            let found = guard.passes(input, packet);
            assert_eq!(
                found, wanted,
                "seed {seed}, step {step}: {input} {key:?} {answers}"
            );
            passed += usize::from(found);
        }
    }
    assert!(passed > 1000, "{passed}");
}

/// A segment without data from port 80 or to it.
fn segment(ends: [[u8; 4]; 2], ports: [u16; 2], flags: u8, numbers: [u32; 2]) -> Vec<u8> {
    let mut body = ports.map(u16::to_be_bytes).concat();
    body.extend(numbers.map(u32::to_be_bytes).concat());
    body.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    ipv4(6, ends, &body)
}

impl Guard {
    /// True if a host opens a connection by an input.
    fn opens(&mut self, (input, host, peer): (usize, [u8; 4], [u8; 4]), port: u16) -> bool {
        let begins = segment([host, peer], [port, 80], SYN, [100, 0]);
        let answer = segment([peer, host], [80, port], SYN | ACK, [200, 101]);
        let back = usize::from(input == 0);
        self.passes(input, begins)
            && self.passes(back, answer)
            && self.has((input, host, peer), port)
    }

    /// True if the connection is open.
    fn has(&mut self, (input, host, peer): (usize, [u8; 4], [u8; 4]), port: u16) -> bool {
        let input = if input == 2 { 1 } else { input };
        self.passes(input, segment([host, peer], [port, 80], ACK, [101, 201]))
    }
}

/// Neither an inside nor an outside host keeps others out with silent open connections, and it ends none of theirs.
#[test]
fn a_host_with_all_places_leaves_others_their_share() {
    const PLACES: u16 = 64;
    for (input, peer) in [(0, CLIENT), (2, SERVER)] {
        let host = |n: u8| match input {
            0 => (input, [10, 0, 0, n], peer),
            _ => (input, [10, 0, 1, n], peer),
        };
        let mut guard = Guard::with(PLACES.into());
        assert!(guard.opens(host(10), 5000));
        let count = (1..=PLACES)
            .filter(|port| guard.opens(host(20), *port))
            .count();
        assert_eq!(count, usize::from(PLACES) - 1, "what is left");
        for n in 30..36 {
            for port in 1..=PLACES / 8 {
                assert!(guard.opens(host(n), port), "{input} {n} {port}");
            }
        }
        assert!(guard.has(host(10), 5000), "the silent one of another host");
        for n in 30..36 {
            assert!((1..=PLACES / 8).all(|port| guard.has(host(n), port)));
        }
        assert!(!guard.opens(host(20), 6000), "no more for itself");
        let left = (1..=PLACES).filter(|port| guard.has(host(20), *port));
        assert_eq!(
            left.count(),
            usize::from(PLACES) - 1 - 6 * usize::from(PLACES) / 8
        );
    }
}

/// A host with more than its share takes the places of its own flows, not those of others.
#[test]
fn datagrams_of_a_greedy_host_end_no_others() {
    let mut guard = Guard::with(64);
    let of = |host: u8, sport: u16| {
        let body = [sport.to_be_bytes(), [0, 53], [0, 8], [0, 0]].concat();
        ipv4(17, [[10, 0, 0, host], CLIENT], &body)
    };
    assert!(guard.passes(0, of(9, 7)));
    (1..=63).for_each(|port| assert!(guard.passes(0, of(1, port))));
    guard.now_ns += 6_000_000_000;
    let passed = (100..400).filter(|port| guard.passes(0, of(1, *port)));
    assert_eq!(passed.count(), 63, "as many as it had");
    let answer = [[0, 53], [0, 7], [0, 8], [0, 0]].concat();
    assert!(guard.passes(1, ipv4(17, [CLIENT, [10, 0, 0, 9]], &answer)));
}
