// SPDX-License-Identifier: Apache-2.0
//! Hops that would send a packet around in a circle, and hops that multiply packets.
use super::*;

#[path = "world_tests.rs"]
mod worlds;

const ICMP: u8 = 1;

/// A ping of a client to the other one.
fn ping() -> Vec<u8> {
    let mut frame = there(1);
    frame[23] = ICMP;
    frame[34..42].copy_from_slice(&[8, 0, 0, 0, 0, 1, 0, 1]);
    frame
}

fn copies(hop: usize, copies: u16) -> Value {
    json!({"pairs": [pair(hop, 1)], "transparent": true, "copies": copies})
}

impl Net {
    /// Lets all hops pass on what they have, until no frame moves. Returns the number of frames.
    fn run(&mut self) -> usize {
        self.bench.round();
        let mut all = 0;
        for _ in 0..50 {
            let mut passed = 0;
            for hop in 0..self.hops.len() {
                passed += self.relay(hop, true) + self.relay(hop, false);
            }
            all += passed;
            if passed == 0 {
                return all;
            }
        }
        panic!("a storm: {all} frames, {:?}", self.info());
    }

    /// A hop takes all frames and sends each several times.
    fn multiply(&mut self, hop: usize, times: usize) {
        let [ingress, egress] = &mut self.hops[hop];
        for frame in ingress.received() {
            (0..times).for_each(|_| egress.send(&frame));
            self.bench.round();
        }
    }

    fn looped(&self) -> (u64, Vec<u64>) {
        let info = self.info();
        let hops = info.hop_counters.iter().map(|hop| hop.looped);
        (info.counters.looped, hops.collect())
    }
}

/// The hop gets the frame with its own address, and copies it instead of routing it.
#[test]
fn one_ping_through_a_hop_that_copies_frames_ends() {
    for count in [1, 2, 3, 20] {
        let mut net = Net::new(count);
        let hops = (0..count.into()).map(|n| json!({"pairs": [pair(n, 1)]}));
        net.chain(
            hops.collect(),
            json!({"classifiers": [{"source_port": "a", "protocol": ICMP}]}),
        );
        net.a.send(&ping());
        let last = usize::from(count) - 1;
        assert_eq!(net.run(), last + 1, "each hop once");
        assert!(net.b.received().is_empty());
        let mut hops = vec![0; count.into()];
        hops[last] = 1;
        assert_eq!(net.looped(), (1, hops));
        assert_eq!(net.bench.counters(&net.hops[last][1]).dropped_loop, 1);
        // The hop as it is: the ping arrives.
        net.chain(
            (0..count.into()).map(transparent).collect(),
            json!({"classifiers": [{"source_port": "a", "protocol": ICMP}]}),
        );
        net.a.send(&ping());
        net.run();
        assert_eq!(net.b.received(), [ping()]);
    }
}

#[test]
fn a_packet_that_left_the_chain_enters_no_earlier_hop() {
    let mut net = Net::new(2);
    // The first hop copies frames, so the second one sends them to the first one's address.
    net.chain(
        vec![json!({"pairs": [pair(0, 1)]}), transparent(1)],
        json!({}),
    );
    net.a.send(&there(1));
    assert_eq!(net.run(), 2);
    assert_eq!(net.looped(), (1, vec![1, 0]));
    // Nor does an answer.
    net.chain(
        vec![transparent(0), json!({"pairs": [pair(1, 1)]})],
        json!({}),
    );
    net.b.send(&back(1));
    assert_eq!(net.run(), 2);
    assert!(net.a.received().is_empty());
}

#[test]
fn a_hop_that_left_the_chain_gets_no_packet_back() {
    let mut net = Net::new(2);
    net.chain(
        vec![json!({"pairs": [pair(0, 1)]}), transparent(1)],
        json!({}),
    );
    net.a.send(&there(1));
    net.bench.round();
    net.chain(vec![transparent(1)], json!({}));
    assert_eq!(net.run(), 2, "the packet inside goes on");
    assert_eq!(net.looped(), (1, vec![1]), "at the hop that sent it");
}

/// Packets to unknown stations go to all open ports.
#[test]
fn a_flooded_packet_enters_no_hop_again() {
    let mut net = Net::new(1);
    let mut open = |name: &str, last: u8| {
        let values = json!({"mac": mac(last), "port_security": false});
        net.bench.try_add(name, values).unwrap()
    };
    let mut station = open("station", 5);
    let hop = [open("h9-in", 31), open("h9-out", 32)];
    net.hops.push(hop);
    net.chain(vec![json!({"pairs": [pair(9, 1)]})], json!({}));
    let unknown = |source| packet((source, mac(77)), (A, B), (1000, 53), 1);
    net.a.send(&unknown(mac(1)));
    net.bench.round();
    net.hops[1][0].received();
    net.hops[1][1].send(&unknown(mac(32)));
    net.bench.round();
    assert_eq!(station.received().len(), 1);
    assert_eq!(net.run(), 0, "the hop did not get it again");
}

#[test]
fn a_hop_sends_no_more_frames_than_it_declares() {
    for (declared, made) in [(1, 1), (1, 3), (2, 2), (2, 5), (16, 16)] {
        let mut net = Net::new(1);
        net.chain(vec![copies(0, declared)], json!({}));
        let mut got = 0;
        for n in 0..20 {
            net.a.send(&there(n));
            net.bench.round();
            net.multiply(0, made);
            got += net.b.received().len();
        }
        assert_eq!(got, 20 * made.min(declared.into()), "{declared} {made}");
        let cut = 20 * made.saturating_sub(declared.into()) as u64;
        assert_eq!(net.looped(), (cut, vec![cut]));
        assert_eq!(net.bench.counters(&net.hops[0][1]).dropped_loop, cut);
    }
}

/// Packets inside of a hop leave it by the definition that is in force then.
#[test]
fn a_changed_chain_knows_the_packets_inside_of_its_hops() {
    let mut net = Net::new(2);
    net.chain(vec![transparent(0)], json!({}));
    for n in 0..10 {
        net.a.send(&there(n));
    }
    net.bench.round();
    net.chain(vec![transparent(1), transparent(0)], json!({}));
    net.run();
    assert_eq!(net.b.received().len(), 10);
}

/// Two chains have the same hop.
#[test]
fn another_chain_knows_the_packets_inside_of_its_hop() {
    let mut net = Net::new(1);
    net.chain(vec![json!({"pairs": [pair(0, 1)]})], json!({}));
    net.a.send(&there(1));
    net.bench.round();
    let set = ChainSet {
        chain: "aaa".parse().unwrap(),
        ..net.info().set
    };
    let definition = Definition::new(set, None);
    net.bench.switch.set_chain(definition).unwrap();
    net.bench.switch.remove_chain(&"web".parse().unwrap());
    let routed = packet((mac(11), mac(2)), (A, B), (1000, 53), 1);
    for _ in 0..2 {
        net.hops[0][1].send(&routed);
        net.bench.round();
    }
    assert_eq!(net.b.received(), [routed], "one entered");
}

#[test]
fn a_hop_may_send_some_frames_by_itself() {
    let mut net = Net::new(1);
    net.chain(vec![transparent(0)], json!({}));
    // An error about a packet, from a router behind the hop.
    let mut error = packet((mac(11), mac(1)), (B, A), (0, 0), 1);
    error[23] = ICMP;
    error[34] = 11;
    net.chain(
        vec![transparent(0)],
        json!({"classifiers": [{"source_port": "a"}]}),
    );
    let sent = (0..200).map(|_| {
        net.hops[0][0].send(&error);
        net.bench.round();
        net.a.received().len()
    });
    assert_eq!(sent.sum::<usize>(), 64);
    assert_eq!(net.looped().0, 200 - 64);
}

#[test]
fn a_packet_does_not_go_around_between_hosts() {
    let mut hosts = paths::Hosts::new(2);
    let copying = json!({"pairs": [paths::at(0, 1)]});
    let wire = json!({"pairs": [paths::at(1, 1)], "transparent": true});
    hosts.chain(vec![copying, wire], json!({}));
    hosts.nets[0].a.send(&there(1));
    hosts.round();
    assert_eq!([hosts.relay(0, true), hosts.relay(1, true)], [1, 1]);
    for _ in 0..5 {
        assert_eq!([hosts.relay(0, true), hosts.relay(1, true)], [0, 0]);
    }
    assert_eq!(hosts.nets[0].looped(), (1, vec![1, 0]));
}
