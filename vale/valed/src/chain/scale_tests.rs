// SPDX-License-Identifier: Apache-2.0
//! TCP connections through hops whose instances come, go, die and come back.
use std::ops::RangeInclusive;

use super::paths::{Hosts, at};
use super::*;
use crate::chain::{Chains, Next};
use crate::frame::headers::Ethernet;

const TCP: u8 = 6;
const SYN: u8 = 2;
const ACK: u8 = 16;

fn tcp(macs: (Mac, Mac), ips: (Ipv4Addr, Ipv4Addr), ports: (u16, u16), flags: u8) -> Vec<u8> {
    let mut frame = packet(macs, ips, ports, 0);
    (frame[23], frame[47]) = (TCP, flags);
    // The header has 20 bytes now.
    (frame[17], frame[46]) = (40, 0x50);
    frame
}

/// A packet of the client in the connection from this port.
fn send(port: u16, flags: u8) -> Vec<u8> {
    tcp((mac(1), mac(2)), (A, B), (port, 80), flags)
}

/// A packet of the server.
fn answer(port: u16, flags: u8) -> Vec<u8> {
    tcp((mac(2), mac(1)), (B, A), (80, port), flags)
}

fn hop(instances: &[usize]) -> Value {
    let pairs: Vec<_> = instances.iter().map(|n| pair(*n, 1)).collect();
    json!({"pairs": pairs, "transparent": true})
}

fn classifiers() -> Value {
    json!({"classifiers": [{"source_port": "a", "protocol": TCP}]})
}

impl Net {
    /// The instances that a packet passes until it has arrived.
    fn path(&mut self, frame: &[u8], forward: bool) -> Vec<usize> {
        match forward {
            true => self.a.send(frame),
            false => self.b.send(frame),
        }
        self.bench.round();
        let mut passed = Vec::new();
        while let Some(hop) = (0..self.hops.len()).find(|n| self.relay(*n, forward) == 1) {
            passed.push(hop);
        }
        let end = if forward { &mut self.b } else { &mut self.a };
        assert_eq!(end.received(), [frame]);
        passed
    }

    /// A packet and its answer pass the same instances.
    fn both(&mut self, port: u16, flags: [u8; 2]) -> Vec<usize> {
        let there = self.path(&send(port, flags[0]), true);
        let mut back = self.path(&answer(port, flags[1]), false);
        back.reverse();
        assert_eq!(there, back, "port {port}");
        there
    }

    /// Opens connections; returns the instances of each.
    fn open(&mut self, ports: RangeInclusive<u16>) -> BTreeMap<u16, Vec<usize>> {
        let opened = ports.map(|port| (port, self.both(port, [SYN, SYN | ACK])));
        opened.collect()
    }

    /// How many of the connections have other instances now.
    fn lost(&mut self, connections: &BTreeMap<u16, Vec<usize>>) -> usize {
        let moved =
            |(port, before): &(&u16, &Vec<usize>)| self.both(**port, [ACK, ACK]) != **before;
        connections.iter().filter(moved).count()
    }
}

#[test]
fn no_connection_is_lost_while_instances_come() {
    let mut net = Net::new(4);
    net.chain(vec![hop(&[0]), hop(&[3])], classifiers());
    let mut all = net.open(1000..=1199);
    for (instances, ports) in [(&[0, 1][..], 1200..=1399), (&[0, 1, 2], 1400..=1599)] {
        net.chain(vec![hop(instances), hop(&[3])], classifiers());
        all.extend(net.open(ports));
        assert_eq!(net.lost(&all), 0);
    }
    // A hop before the others and a new order change nothing.
    net.chain(vec![hop(&[3]), hop(&[2, 1, 0])], classifiers());
    let turned = all
        .iter()
        .map(|(port, hops)| (*port, vec![hops[1], hops[0]]));
    assert_eq!(net.lost(&turned.collect()), 0);
    let of = |n: usize| all.values().filter(|hops| hops[0] == n).count();
    let counts = [of(0), of(1), of(2)];
    assert!(counts[1] > 100 && counts[2] > 30, "{counts:?}");
}

#[test]
fn an_instance_that_goes_gives_its_connections_to_the_others() {
    let mut net = Net::new(2);
    net.chain(vec![hop(&[0])], classifiers());
    let mut all = net.open(1000..=1099);
    net.chain(vec![hop(&[0, 1])], classifiers());
    all.extend(net.open(1100..=1299));
    let second = all.values().filter(|hops| **hops == [1]).count();
    assert!(second > 50);
    net.chain(vec![hop(&[0])], classifiers());
    // All packets arrive: an instance without state loses no connection.
    assert_eq!(net.lost(&all), second);
}

#[test]
fn connections_stay_with_the_instance_that_took_them_when_theirs_died() {
    let mut net = Net::new(2);
    net.chain(vec![hop(&[0, 1])], classifiers());
    let first = net.open(1000..=1199);
    net.set_link("h0-in", false);
    let moved = first.keys().map(|port| (*port, vec![1])).collect();
    net.lost(&moved);
    let second = net.open(1200..=1299);
    net.set_link("h0-in", true);
    assert_eq!(net.lost(&moved) + net.lost(&second), 0);
    let third = net.open(1300..=1399);
    let back = third.values().filter(|hops| **hops == [0]).count();
    assert!((20..80).contains(&back), "{back}");
}

#[test]
fn all_workers_know_where_a_connection_began() {
    let mut net = Net::new(2);
    net.chain(vec![hop(&[0])], classifiers());
    let ports = &net.bench.switch.ports;
    let definition = |instances: &[usize]| {
        let mut args = json!({"switch": "vale0", "chain": "web", "segment": 1,
            "hops": [hop(instances)]});
        args["classifiers"] = classifiers()["classifiers"].clone();
        Definition::new(serde_json::from_value(args).unwrap(), None)
    };
    let mut workers = [Chains::default(), Chains::default()];
    let hop_of = |worker: &Chains, port: &str, frame: &[u8]| {
        let source = ports
            .iter()
            .position(|p| p.as_ref().is_some_and(|p| p.face.name.as_str() == port));
        let ethernet = Ethernet::parse(frame).unwrap();
        let step = worker.step(ports, source.unwrap(), None, &ethernet, frame);
        match step.unwrap().next {
            Next::Hop { port, .. } => {
                let name = ports[port].as_ref().unwrap().face.name.to_string();
                name.split_once('-').unwrap().0.to_owned()
            }
            other => panic!("{other:?}"),
        }
    };
    let mut all = Vec::new();
    for (instances, first) in [(&[0][..], 1000), (&[0, 1], 2000)] {
        let definition = definition(instances);
        let set = |worker: &mut Chains| worker.set(definition.clone(), ports).unwrap();
        workers.iter_mut().for_each(set);
        for port in first..first + 200 {
            let hop = hop_of(&workers[0], "a", &send(port, SYN));
            all.push((port, hop));
        }
        for (port, hop) in &all {
            assert_eq!(hop_of(&workers[1], "b", &answer(*port, ACK)), *hop);
            assert_eq!(hop_of(&workers[0], "a", &send(*port, ACK)), *hop);
        }
    }
    assert!(all.iter().filter(|(_, hop)| hop == "h1").count() > 50);
}

#[test]
fn both_directions_of_translated_connections_have_one_instance_whatever_comes_and_goes() {
    let mut nat = SharedNat::new(3);
    let mut opened: BTreeMap<u8, usize> = BTreeMap::new();
    for (instances, servers) in [
        (&[0][..], 1..=80),
        (&[0, 1], 81..=160),
        (&[0, 1, 2], 161..=240),
    ] {
        nat.chain(instances, TCP);
        for server in servers {
            let [there, back] = nat.pass(server, 2000, flagged(SYN));
            assert_eq!(there, back, "server {server}");
            opened.insert(server, there);
        }
        for (server, instance) in &opened {
            let passed = nat.pass(*server, 2000, flagged(0));
            assert_eq!(passed, [*instance; 2], "server {server}");
        }
    }
    let of = |n: usize| opened.values().filter(|found| **found == n).count();
    assert!(of(1) > 20 && of(2) > 15, "{opened:?}");
    nat.chain(&[0, 2], TCP);
    for (server, instance) in &opened {
        let [there, back] = nat.pass(*server, 2000, flagged(0));
        assert!(there == back && [0, 2].contains(&there), "server {server}");
        assert!(there == *instance || *instance == 1, "server {server}");
    }
}

/// Makes a packet one of a TCP connection that begins, or continues, and its answer the answer to it.
fn flagged(begin: u8) -> impl Fn(Vec<u8>, bool) -> Vec<u8> {
    move |mut frame, forward| {
        let answers = u8::from(!forward || begin == 0) * ACK;
        (frame[23], frame[47]) = (TCP, begin | answers);
        (frame[17], frame[46]) = (40, 0x50);
        frame
    }
}

/// The two instances, one of each hop, that a packet passes on two hosts.
fn path(hosts: &mut Hosts, port: u16, flags: u8, forward: bool) -> Vec<usize> {
    match forward {
        true => hosts.nets[0].a.send(&send(port, flags)),
        false => hosts.nets[0].b.send(&answer(port, flags)),
    }
    hosts.round();
    let order = if forward { [0, 1, 2, 3] } else { [2, 3, 0, 1] };
    let mut passed = order.to_vec();
    passed.retain(|n| hosts.relay(*n, forward) == 1);
    let net = &mut hosts.nets[0];
    let end = if forward { &mut net.b } else { &mut net.a };
    assert_eq!(end.received().len(), 1, "port {port}");
    passed.sort_unstable();
    passed
}

#[test]
fn no_connection_between_hosts_is_lost_while_instances_come() {
    let mut hosts = Hosts::new(4);
    let chain = |hosts: &mut Hosts, instances: [&[usize]; 2]| {
        let hop = |instances: &&[usize]| {
            let pairs: Vec<_> = instances.iter().map(|n| at(*n, 1)).collect();
            json!({"pairs": pairs, "transparent": true})
        };
        let mut change = classifiers();
        change["classifiers"][0]["host"] = "127.0.0.1".into();
        change["classifiers"][0]["senders"] = json!(["10.0.0.1/32"]);
        hosts.chain(instances.iter().map(hop).collect(), change);
    };
    let mut all = BTreeMap::new();
    for (instances, first) in [
        ([&[1][..], &[3]], 1000),
        ([&[0, 1], &[3]], 1100),
        ([&[0, 1], &[2, 3]], 1200),
    ] {
        chain(&mut hosts, instances);
        for port in first..first + 100 {
            all.insert(port, path(&mut hosts, port, SYN, true));
        }
        for (port, before) in &all {
            assert_eq!(path(&mut hosts, *port, ACK, false), *before, "{port}");
            assert_eq!(path(&mut hosts, *port, ACK, true), *before, "{port}");
        }
    }
    for pair in [[0, 2], [0, 3], [1, 2], [1, 3]] {
        assert!(all.values().filter(|found| **found == pair).count() > 5);
    }
}
