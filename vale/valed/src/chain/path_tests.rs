// SPDX-License-Identifier: Apache-2.0
//! Chains over two hosts of this process, at two loopback addresses.
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use vale_proto::Kind;

use super::*;
use crate::device::path_port::Paths;
use crate::device::vxlan::free_port::free_port;

#[path = "definition_tests.rs"]
mod definitions;

const HOSTS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];
const SILENT: Duration = Duration::from_millis(1100);

impl Net {
    /// Exchanges states with the other hosts, and removes the ports that are left over.
    fn tick(&mut self, now: Instant) {
        let switch = &mut self.bench.switch;
        switch.receive_states(&switch.received_states(), now);
        let unused = switch.tick_chains(now);
        unused.iter().for_each(|port| drop(switch.remove(port)));
        switch.announce_chains();
    }
}

/// Two hosts: clients on the first one, hops with even numbers there and odd ones on the second.
pub struct Hosts {
    pub nets: [Net; 2],
    port: u16,
    now: Instant,
}

impl Hosts {
    pub fn new(hops: usize) -> Self {
        let (mut first, mut second) = (Net::new(0), Net::new(0));
        for n in 0..hops {
            let net = if n % 2 == 0 { &mut first } else { &mut second };
            let side = |side: &str| format!("h{n}-{side}");
            let last = 10 + 2 * n as u8;
            let mut add = |name, last| net.bench.try_add(name, secure(last)).unwrap();
            let pair = [add(&side("in"), last), add(&side("out"), last + 1)];
            net.hops.push(pair);
        }
        let (port, now) = (free_port(&HOSTS), Instant::now());
        let mut nets = [first, second];
        nets.iter_mut()
            .for_each(|net| net.bench.resources.paths = Paths::at(port));
        Self { nets, port, now }
    }

    /// The definition that a host gets.
    fn definition(host: usize, hops: Vec<Value>, change: &Value) -> ChainSet {
        let mut args = json!({"switch": "vale0", "chain": "web", "segment": 1,
            "classifiers": [{"source_port": "a", "protocol": UDP, "host": HOSTS[0],
                "senders": ["10.0.0.1/32"]}],
            "hops": hops, "path": {"number": 7, "local": HOSTS[host], "hosts": HOSTS}});
        for (key, value) in change.as_object().unwrap() {
            args[key] = value.clone();
        }
        let set: ChainSet = serde_json::from_value(args).unwrap();
        set.check().unwrap();
        set
    }

    /// Sets the chain on one host.
    fn set(&mut self, host: usize, hops: Vec<Value>, change: &Value) {
        let set = Self::definition(host, hops, change);
        let bench = &mut self.nets[host].bench;
        let path = set.path.clone().unwrap();
        let known = bench.switch.paths_of(&set.chain);
        let link = known.is_empty().then(|| {
            let (device, link) = bench.resources.paths.open(&path).unwrap();
            let id = "vale0:path7".parse().unwrap();
            let add = PortAdd::open(id, Kind::Path, set.segment);
            let port = Port::new(&add, Box::new(device));
            bench.switch.add(&mut Some(Box::new(port))).unwrap();
            link
        });
        bench.switch.set_chain(Definition::new(set, link)).unwrap();
    }

    /// Starts valed of a host again, without its chains.
    fn forget_chain(&mut self, host: usize) {
        let switch = &mut self.nets[host].bench.switch;
        switch.chains = Chains::default();
        switch.remove(&"path7".parse().unwrap());
    }

    /// Sends packets of 40 flows.
    fn send_flows(&mut self) {
        for port in 1001..=1040 {
            let flow = packet((mac(1), mac(2)), (A, B), (port, 53), 0);
            self.nets[0].a.send(&flow);
        }
        self.round();
    }

    /// The same; returns the packets that hops 0 and 1 pass on.
    fn flow(&mut self) -> [usize; 2] {
        self.send_flows();
        [0, 1].map(|n| self.relay(n, true))
    }

    /// Sets the chain on both hosts and lets them exchange states.
    pub fn chain(&mut self, hops: Vec<Value>, change: Value) {
        for host in [0, 1] {
            self.set(host, hops.clone(), &change);
        }
        self.tick(3);
    }

    /// Lets time pass, at least from the real time on, which changes of chains take.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.max(Instant::now()) + time;
    }

    fn tick(&mut self, times: usize) {
        for _ in 0..times {
            for net in &mut self.nets {
                net.tick(self.now);
            }
            self.round();
        }
    }

    /// Forwards on both hosts until all datagrams between them have arrived.
    pub fn round(&mut self) {
        for _ in 0..3 {
            for net in &mut self.nets {
                for index in 0..net.bench.switch.ports.len() {
                    net.bench.switch.event(index);
                }
                net.bench.round();
            }
        }
    }

    /// All hops pass on what they have.
    pub fn relay(&mut self, n: usize, forward: bool) -> usize {
        let passed = self.nets[n % 2].relay(n / 2, forward);
        self.round();
        passed
    }

    /// A datagram from the second host, as a stranger there would send it.
    fn inject(&self, from: &str, datagram: &[u8]) {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        let to = SocketAddr::new(HOSTS[0].parse().unwrap(), self.port);
        socket.send_to(datagram, to).unwrap();
    }

    fn path_counters(&self, host: usize) -> Counters {
        let mut ports = self.nets[host].bench.switch.infos();
        ports.find(|p| p.port.as_str() == "path7").unwrap().counters
    }
}

pub fn at(n: usize, weight: u16) -> Value {
    let mut pair = pair(n, weight);
    pair["host"] = HOSTS[n % 2].into();
    pair
}

fn wire(n: usize) -> Value {
    json!({"pairs": [at(n, 1)], "transparent": true})
}

#[test]
fn packets_pass_the_hops_of_both_hosts_in_order_and_answers_the_other_way() {
    for count in 2..=9 {
        let mut hosts = Hosts::new(count);
        hosts.chain((0..count).map(wire).collect(), json!({}));
        hosts.nets[0].a.send(&there(7));
        hosts.round();
        for n in 0..count {
            assert!(hosts.nets[0].b.received().is_empty());
            assert_eq!(hosts.relay(n, true), 1, "hop {n} of {count}");
        }
        assert_eq!(hosts.nets[0].b.received(), [there(7)]);
        hosts.nets[0].b.send(&back(8));
        hosts.round();
        for n in (0..count).rev() {
            assert_eq!(hosts.relay(n, false), 1, "hop {n} of {count}");
        }
        assert_eq!(hosts.nets[0].a.received(), [back(8)]);
        // Each host counts the packets to its own hops.
        let infos = [0, 1].map(|host| hosts.nets[host].info());
        for n in 0..count {
            let counts = infos.each_ref().map(|info| info.hop_counters[n].packets);
            assert_eq!(
                counts,
                [2 * u64::from(n % 2 == 0), 2 * u64::from(n % 2 == 1)]
            );
        }
        assert_eq!(infos.each_ref().map(|i| i.counters.packets), [2, 0]);
        assert!(infos.iter().all(|i| i.hosts.iter().all(|h| h.is_ready)));
    }
}

#[test]
fn a_routed_hop_elsewhere_gets_its_own_address_and_its_packets_leave_there() {
    let mut hosts = Hosts::new(2);
    let routed = json!({"pairs": [at(1, 1)]});
    hosts.chain(vec![wire(0), routed], json!({}));
    hosts.nets[0].a.send(&there(1));
    hosts.round();
    assert_eq!(hosts.relay(0, true), 1);
    let at_hop = packet((mac(1), mac(12)), (A, B), (1000, 53), 1);
    assert_eq!(hosts.nets[1].hops[0][0].received(), [at_hop]);
    // Its address is at the second host: the packet continues from there, as any other of that host.
    let routed = packet((mac(13), mac(2)), (A, B), (1000, 53), 1);
    hosts.nets[1].hops[0][1].send(&routed);
    hosts.round();
    assert_eq!(hosts.nets[1].b.received(), [routed]);
    assert!(hosts.nets[0].b.received().is_empty());
}

#[test]
fn translated_answers_enter_at_the_host_of_the_hop() {
    let nat = Ipv4Addr::new(192, 0, 2, 7);
    let mut hosts = Hosts::new(2);
    hosts.nets[1].bench.allow("h1-out", "192.0.2.7/32");
    let routed = json!({"pairs": [at(1, 1)]});
    hosts.chain(vec![routed, wire(0)], json!({"nat": ["192.0.2.7/32"]}));
    hosts.nets[0].a.send(&there(1));
    hosts.round();
    assert_eq!(hosts.nets[1].hops[0][0].received().len(), 1);
    let translated = packet((mac(13), mac(2)), (nat, B), (5000, 53), 1);
    hosts.nets[1].hops[0][1].send(&translated);
    hosts.round();
    assert_eq!(
        hosts.relay(0, true),
        1,
        "the transparent hop on the first host"
    );
    assert_eq!(
        hosts.nets[1].b.received(),
        [translated],
        "it leaves where its address is"
    );
    let answer = packet((mac(2), mac(13)), (B, nat), (53, 5000), 2);
    // At the first host the answer is on its way: only the second one has the address.
    hosts.nets[0].b.send(&answer);
    hosts.round();
    assert_eq!(hosts.relay(0, false), 0);
    hosts.nets[1].b.send(&answer);
    hosts.round();
    assert_eq!(hosts.relay(0, false), 1);
    assert_eq!(hosts.nets[1].hops[0][1].received(), [answer]);
    let restored = packet((mac(12), mac(1)), (B, A), (53, 1000), 2);
    hosts.nets[1].hops[0][0].send(&restored);
    hosts.round();
    assert_eq!(hosts.nets[0].a.received(), [restored]);
}

#[test]
fn a_hostile_hop_elsewhere_sends_only_packets_of_its_chain() {
    let mut hosts = Hosts::new(2);
    hosts.chain(vec![wire(1), wire(0)], json!({}));
    for spoofed in [
        packet((mac(1), mac(2)), (OTHER, B), (1000, 53), 1), // a source the client may not use
        packet((mac(99), mac(1)), (OTHER, A), (53, 1000), 2),
        frame(mac(2), mac(1), 60), // no IP
    ] {
        hosts.nets[1].hops[0][1].send(&spoofed);
        hosts.round();
    }
    assert_eq!(hosts.relay(0, true), 0);
    let counters = hosts.nets[1].bench.counters(&hosts.nets[1].hops[0][1]);
    assert_eq!(counters.dropped_spoof, 3);
    // A second host that does not judge its hop changes nothing.
    let version = hosts.nets[1].bench.switch.chains.version(7);
    let datagram = |frame: &[u8], change: fn(&mut Label)| {
        let mut label = Label {
            number: 7,
            reverse: false,
            index: 254,
            ttl: 63,
            version,
        };
        change(&mut label);
        [&crate::frame::nsh::frame_headers(&label)[..], frame].concat()
    };
    let spoofed = packet((mac(1), mac(2)), (OTHER, B), (1000, 53), 1);
    let good = datagram(&there(1), |_| ());
    let refused = [
        datagram(&spoofed, |_| ()),
        datagram(&frame(mac(2), mac(1), 60), |_| ()),
        datagram(&there(1), |label| label.version ^= 1),
        datagram(&there(1), |label| label.index = 252), // beyond the last hop
        datagram(&there(1), |label| label.index = 0),
        datagram(&there(1), |label| label.ttl = 1),
        datagram(&there(1), |label| label.reverse = true), // no answer
        good[..40].to_vec(),
    ];
    let stranger = "127.0.0.3";
    hosts.inject(stranger, &good);
    refused
        .iter()
        .for_each(|bytes| hosts.inject(HOSTS[1], bytes));
    let mut other = good.clone();
    other[6] = 8; // of another path
    hosts.inject(HOSTS[1], &other);
    hosts.round();
    assert_eq!(hosts.relay(0, true), 0);
    let counters = hosts.path_counters(0);
    // A stranger, an ended time to live, a short datagram; the others have headers, but no step.
    assert_eq!(
        (counters.dropped_malformed, counters.dropped_unknown),
        (3, 6)
    );
    hosts.inject(HOSTS[1], &good);
    hosts.round();
    assert_eq!(
        hosts.relay(0, true),
        1,
        "it is not the test that drops them"
    );
}

#[test]
fn a_host_that_is_gone_blocks_or_is_passed_by() {
    for (policy, arrives) in [("block", 0), ("bypass", 1)] {
        let mut hosts = Hosts::new(2);
        let mut hop = wire(1);
        hop["on_failure"] = policy.into();
        hosts.chain(vec![hop, wire(0)], json!({}));
        assert_eq!(hosts.nets[0].info().live_pairs, [1, 1]);
        // First the guest of the other host, then the host.
        hosts.nets[1].set_link("h1-in", false);
        hosts.tick(2);
        assert_eq!(hosts.nets[0].info().live_pairs, [0, 1]);
        hosts.nets[1].set_link("h1-in", true);
        hosts.tick(2);
        assert_eq!(hosts.nets[0].info().live_pairs, [1, 1]);
        hosts.nets[0].tick(hosts.now);
        hosts.pass(SILENT);
        hosts.nets[0].tick(hosts.now);
        assert_eq!(hosts.nets[0].info().live_pairs, [0, 1]);
        assert!(!hosts.nets[0].info().hosts[0].is_ready);
        hosts.nets[0].a.send(&there(1));
        hosts.nets[0].bench.round();
        assert_eq!(hosts.nets[0].relay(0, true), arrives, "{policy}");
        let dropped = hosts.nets[0].info().hop_counters[0].dropped;
        assert_eq!(dropped, 1 - arrives as u64);
        hosts.tick(2);
        hosts.nets[0].a.send(&there(2));
        hosts.round();
        assert_eq!(hosts.relay(1, true), 1, "it came back");
    }
}

/// The states of a busy host come late; its packets come.
#[test]
fn a_host_that_sends_packets_lives() {
    let mut hosts = Hosts::new(2);
    hosts.chain(vec![wire(0), wire(1)], json!({}));
    for n in 0..5 {
        hosts.nets[0].a.send(&there(n));
        hosts.round();
        assert_eq!([0, 1].map(|hop| hosts.relay(hop, true)), [1, 1]);
        hosts.pass(SILENT / 2);
        hosts.nets[0].tick(hosts.now);
        assert_eq!(hosts.nets[0].info().live_pairs, [1, 1]);
    }
    assert_eq!(hosts.nets[0].b.received().len(), 5);
    hosts.pass(SILENT);
    hosts.nets[0].tick(hosts.now);
    assert_eq!(hosts.nets[0].info().live_pairs, [1, 0]);
}

#[test]
fn flows_spread_over_hosts_by_weight_and_answers_find_the_same_instance() {
    let mut hosts = Hosts::new(2);
    let pairs = json!([at(0, 1), at(1, 3)]);
    hosts.chain(
        vec![json!({"pairs": pairs, "transparent": true})],
        json!({}),
    );
    let mut counts = [0, 0];
    for port in 1001..=1200 {
        hosts.nets[0]
            .a
            .send(&packet((mac(1), mac(2)), (A, B), (port, 53), 0));
        hosts.round();
        let there = [0, 1].map(|n| hosts.relay(n, true));
        assert_eq!(hosts.nets[0].b.received().len(), 1);
        hosts.nets[0]
            .b
            .send(&packet((mac(2), mac(1)), (B, A), (53, port), 0));
        hosts.round();
        assert_eq!([0, 1].map(|n| hosts.relay(n, false)), there, "port {port}");
        assert_eq!(hosts.nets[0].a.received().len(), 1);
        counts = [counts[0] + there[0], counts[1] + there[1]];
    }
    assert!((25..75).contains(&counts[0]), "{counts:?}");
}

#[test]
fn a_removed_chain_lets_its_last_packets_pass_and_frees_its_port() {
    let mut hosts = Hosts::new(2);
    hosts.chain(vec![wire(1)], json!({}));
    hosts.nets[0].a.send(&there(1));
    hosts.round();
    let name = "web".parse().unwrap();
    hosts
        .nets
        .iter_mut()
        .for_each(|net| net.bench.switch.remove_chain(&name));
    assert!(
        hosts
            .nets
            .iter()
            .all(|net| net.bench.switch.chains().next().is_none())
    );
    assert_eq!(hosts.relay(1, true), 1);
    assert_eq!(hosts.nets[0].b.received(), [there(1)]);
    hosts.nets[0].a.send(&there(2));
    hosts.round();
    assert_eq!(hosts.nets[0].b.received(), [there(2)], "it goes straight");
    hosts.tick(2);
    hosts.pass(SILENT);
    hosts.tick(2);
    let left = |net: &Net| {
        net.bench
            .switch
            .ports()
            .filter(|p| p.face.is_path())
            .count()
    };
    assert_eq!(hosts.nets.each_ref().map(left), [0, 0]);
}

#[test]
fn flooded_frames_do_not_reach_other_hosts_by_a_path() {
    let mut hosts = Hosts::new(2);
    hosts.chain(vec![wire(1)], json!({}));
    let before = hosts.path_counters(0);
    let mut request = frame(Mac([255; 6]), mac(1), 60);
    request[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    request[22..32].copy_from_slice(&[2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    hosts.nets[0].a.send(&request);
    hosts.round();
    assert_eq!(hosts.nets[0].b.received(), [request]);
    assert_eq!(hosts.path_counters(0).tx_packets, before.tx_packets);
}

#[test]
fn packets_to_another_host_wait_while_its_port_moves_to_another_worker() {
    let mut hosts = Hosts::new(2);
    hosts.chain(vec![wire(1)], json!({}));
    let path = "path7".parse().unwrap();
    let set_moving = |hosts: &mut Hosts, is_moving| {
        let port = hosts.nets[0].bench.switch.port_mut(&path);
        port.unwrap().face.is_moving = is_moving;
        hosts.round();
    };
    hosts.nets[0].a.send(&there(1));
    set_moving(&mut hosts, true);
    assert_eq!(hosts.relay(1, true), 0);
    set_moving(&mut hosts, false);
    assert_eq!(hosts.relay(1, true), 1);
}
