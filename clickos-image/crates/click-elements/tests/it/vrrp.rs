// SPDX-License-Identifier: Apache-2.0
//! A pair of routers: one is active, the other has its flows and takes over.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use click_core::{Device, Entropy, Environment, MemoryDevice, Progress, Router};
use click_wire::{checksum, ipv4};

const MS: u64 = 1_000_000;
const STEP_NS: u64 = 10 * MS;
/// The silence after which a backup takes over: three intervals of 200 ms, and the skew.
const TAKEOVER_MS: u64 = 1000;
const INSIDE: [u8; 4] = [10, 0, 0, 9];
const OUTSIDE: [u8; 4] = [198, 51, 100, 7];
const HOST: [u8; 6] = [2, 0, 0, 0, 9, 9];

type Memory = Rc<RefCell<MemoryDevice>>;

/// A NAT of a pair.
struct Nat {
    router: Router,
    devices: [Memory; 2],
    dead: bool,
}

fn virtual_mac(side: usize) -> [u8; 6] {
    [0, 0, 0x5e, 0, 1, side as u8 + 1]
}

fn config(own: u8, priority: u8) -> String {
    let peer = 5 - own;
    let key = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
    format!(
        "vrrp :: VRRP(1 10.0.0.{own} 2:0:0:0:0:{own} 10.0.0.{peer} 2:0:0:0:0:{peer} 10.0.0.1,
                      2 203.0.113.{own} 2:0:0:0:1:{own} - - 203.0.113.1,
                      PRIORITY {priority}, INTERVAL 0.2, PREEMPT false, KEY {key});
         rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop);
         FromDevice(0) -> left :: VRRPPort(vrrp, 0)
             -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [0] rw [0]
             -> EtherEncap(0x0800, 0:0:5e:0:1:2, 2:0:0:0:9:9) -> Queue -> VRRPGate(vrrp) -> ToDevice(1);
         FromDevice(1) -> right :: VRRPPort(vrrp, 1)
             -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [1] rw [1]
             -> EtherEncap(0x0800, 0:0:5e:0:1:1, 2:0:0:0:9:9) -> Queue -> VRRPGate(vrrp) -> ToDevice(0);
         left[1] -> ToDevice(0); right[1] -> ToDevice(1);"
    )
}

impl Nat {
    fn new(own: u8, priority: u8, start: u8) -> Self {
        let device = |n| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, n, own])));
        let devices: [Memory; 2] = [device(0), device(1)];
        let dynamic = |device: &Memory| device.clone() as Rc<RefCell<dyn Device>>;
        let environment = Environment {
            devices: (0..)
                .zip(devices.iter().map(dynamic))
                .collect::<BTreeMap<_, _>>(),
            entropy: Entropy::new(&[start; 32]),
            ..Environment::new()
        };
        let registry = click_elements::registry();
        let text = config(own, priority);
        Self {
            router: Router::build("t", &text, &registry, environment, 1).unwrap(),
            devices,
            dead: false,
        }
    }

    fn run(&mut self, now_ns: u64) {
        for _ in 0..100 {
            if let Progress::Idle { .. } = self.router.run(now_ns) {
                break;
            }
        }
    }

    fn read(&mut self, name: &str, now_ns: u64) -> String {
        let value = self.router.read_handler(name, "", now_ns);
        String::from_utf8(value.unwrap()).unwrap()
    }
}

/// Two NATs between two networks, and the hosts there.
struct World {
    nats: [Nat; 2],
    /// No frame passes between the NATs.
    split: bool,
    now_ns: u64,
    /// What arrived at the hosts of both networks.
    heard: [Vec<Vec<u8>>; 2],
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            nats: [Nat::new(2, 200, 1), Nat::new(3, 100, 2)],
            split: false,
            now_ns: 1000 * MS,
            heard: [Vec::new(), Vec::new()],
        };
        world.wait(2000);
        world
    }

    /// Lets time pass; frames go to all others on their network.
    fn wait(&mut self, ms: u64) {
        for _ in 0..ms * MS / STEP_NS {
            self.now_ns += STEP_NS;
            for n in 0..2 {
                if self.nats[n].dead {
                    continue;
                }
                self.nats[n].run(self.now_ns);
                for side in 0..2 {
                    let sent: Vec<_> = self.nats[n].devices[side]
                        .borrow_mut()
                        .output
                        .drain(..)
                        .collect();
                    for frame in sent {
                        self.deliver(n, side, frame);
                    }
                }
            }
        }
    }

    fn deliver(&mut self, from: usize, side: usize, frame: Vec<u8>) {
        let other = &self.nats[1 - from];
        if !self.split && !other.dead {
            let device = &other.devices[side];
            device.borrow_mut().input.push_back(frame.clone());
        }
        self.heard[side].push(frame);
    }

    /// A host sends a datagram to the virtual router; returns what the host of the other side gets.
    fn send(&mut self, side: usize, packet: &[u8]) -> Vec<Vec<u8>> {
        let mut frame = virtual_mac(side).to_vec();
        frame.extend(HOST);
        frame.extend([8, 0]);
        frame.extend(packet);
        self.heard[1 - side].clear();
        for nat in &self.nats {
            let device = &nat.devices[side];
            device.borrow_mut().input.push_back(frame.clone());
        }
        self.wait(10);
        let heard = self.heard[1 - side].iter();
        let datagrams = heard.filter(|frame| frame[..6] == HOST && frame[23] == ipv4::UDP);
        datagrams.map(|frame| frame[14..].to_vec()).collect()
    }

    fn states(&mut self) -> [String; 2] {
        let now_ns = self.now_ns;
        [0, 1].map(|n| self.nats[n].read("vrrp.state", now_ns))
    }

    /// Opens a flow; returns its public port.
    fn open(&mut self, sport: u16) -> u16 {
        let sent = self.send(0, &datagram(INSIDE, sport, OUTSIDE, 53));
        assert_eq!(sent.len(), 1, "one router forwards");
        u16::from_be_bytes([sent[0][20], sent[0][21]])
    }

    /// How many routers translate an answer.
    fn answers(&mut self, port: u16, sport: u16) -> usize {
        let back = self.send(1, &datagram(OUTSIDE, 53, [203, 0, 113, 1], port));
        let is_good = |p: &&Vec<u8>| p[16..20] == INSIDE && p[22..24] == sport.to_be_bytes();
        back.iter().filter(is_good).count()
    }
}

/// A datagram without a checksum of its own.
fn datagram(source: [u8; 4], sport: u16, destination: [u8; 4], dport: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes.extend(source);
    bytes.extend(destination);
    let sum = checksum::of(&bytes).to_be_bytes();
    bytes[10..12].copy_from_slice(&sum);
    bytes.extend(sport.to_be_bytes());
    bytes.extend(dport.to_be_bytes());
    bytes.extend([0, 8, 0, 0]);
    bytes
}

#[test]
fn the_higher_priority_is_active_and_the_other_has_its_flows() {
    let mut world = World::new();
    assert_eq!(world.states(), ["active", "backup"]);
    let ports: Vec<u16> = (0..1000).map(|n| world.open(2000 + n)).collect();
    world.wait(200);
    world.nats[0].dead = true;
    world.wait(TAKEOVER_MS);
    assert_eq!(world.states()[1], "active");
    let lost = (2000..)
        .zip(ports)
        .filter(|(sport, port)| world.answers(*port, *sport) != 1);
    assert_eq!(lost.count(), 0);
}

#[test]
fn a_new_active_router_announces_its_addresses() {
    let mut world = World::new();
    world.nats[0].dead = true;
    world.heard = [Vec::new(), Vec::new()];
    world.wait(TAKEOVER_MS);
    for (side, ip) in [(0, [10, 0, 0, 1]), (1, [203, 0, 113, 1])] {
        let is_announcement = |frame: &&Vec<u8>| {
            frame[..6] == [0xff; 6] && frame[6..12] == virtual_mac(side) && frame[28..32] == ip
        };
        let announced = world.heard[side].iter().filter(is_announcement).count();
        assert!(announced >= 1, "side {side}");
    }
}

#[test]
fn one_that_comes_back_stays_backup_and_gets_all_flows() {
    let mut world = World::new();
    let port = world.open(7);
    world.wait(200);
    world.nats[0].dead = true;
    world.wait(TAKEOVER_MS);
    world.nats[0] = Nat::new(2, 200, 9);
    world.wait(2000);
    assert_eq!(world.states(), ["backup", "active"]);
    let (now_ns, flows) = (world.now_ns, "rw.size");
    assert_eq!(world.nats[0].read(flows, now_ns), "1");
    world.nats[1].dead = true;
    world.wait(TAKEOVER_MS);
    assert_eq!(world.states()[0], "active");
    assert_eq!(world.answers(port, 7), 1);
}

#[test]
fn after_a_split_one_gives_way_at_once_and_none_answers_twice() {
    let mut world = World::new();
    let port = world.open(7);
    world.wait(200);
    world.split = true;
    world.wait(2 * TAKEOVER_MS);
    assert_eq!(world.states(), ["active", "active"]);
    world.split = false;
    world.wait(1000);
    assert_eq!(world.states(), ["active", "backup"]);
    assert_eq!(world.answers(port, 7), 1);
}

#[test]
fn an_idle_flow_with_packets_is_kept_at_the_other() {
    let mut world = World::new();
    let port = world.open(7);
    // UDP flows end after five minutes.
    for _ in 0..40 {
        world.wait(10_000);
        assert_eq!(world.answers(port, 7), 1);
    }
    let now_ns = world.now_ns;
    assert_eq!(world.nats[1].read("rw.size", now_ns), "1");
}

/// An advertisement of a station of side 0, with any priority.
fn advertisement(from: [u8; 4], priority: u8) -> Vec<u8> {
    let mut body = vec![0x31, 1, priority, 1, 0, 20, 0, 0, 10, 0, 0, 1];
    let sum = checksum::of(&body).to_be_bytes();
    body[6..8].copy_from_slice(&sum);
    let mut header = vec![0x45, 0, 0, 32, 0, 1, 0, 0, 255, 112, 0, 0];
    header.extend(from);
    header.extend([224, 0, 0, 18]);
    let sum = checksum::of(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    [&[1, 0, 0x5e, 0, 0, 18], &HOST[..], &[8, 0], &header, &body].concat()
}

#[test]
fn no_station_but_the_other_router_decides_about_a_pair() {
    let mut world = World::new();
    for (priority, from) in [(255, 9), (0, 9), (255, 1), (1, 254)] {
        for _ in 0..2 * TAKEOVER_MS / 10 {
            for nat in &world.nats {
                let frame = advertisement([10, 0, 0, from], priority);
                nat.devices[0].borrow_mut().input.push_back(frame);
            }
            world.wait(10);
        }
        let now_ns = world.now_ns;
        assert_eq!(world.states(), ["active", "backup"], "{priority}");
        let changes = world
            .nats
            .each_mut()
            .map(|nat| nat.read("vrrp.transitions", now_ns));
        assert_eq!(changes, ["1", "0"], "{priority}");
    }
}

#[test]
fn a_host_that_asks_without_end_does_not_silence_a_router() {
    let mut world = World::new();
    let mut asks = [&[0xff; 6], &HOST[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    asks.extend([&HOST[..], &INSIDE, &[0; 6], &[10, 0, 0, 2]].concat());
    for _ in 0..2 * TAKEOVER_MS / 10 {
        let device = &world.nats[0].devices[0];
        device.borrow_mut().input.extend(vec![asks.clone(); 1000]);
        world.wait(10);
    }
    assert_eq!(world.states(), ["active", "backup"]);
    let now_ns = world.now_ns;
    assert_eq!(world.nats[1].read("vrrp.transitions", now_ns), "0");
}
