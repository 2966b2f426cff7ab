// SPDX-License-Identifier: Apache-2.0
use std::os::fd::OwnedFd;

use ring::GuestPort;
use serde_json::{Value, json};
use vale_proto::{ChainSet, Counters, PortAdd};

use super::*;
use crate::chain::SetError;
use crate::device::fake_nic::FakeNic;
use crate::device::host_resources::HostResources;
use crate::device::ring_port::RingPort;
use crate::frame::gso::TxOffload;
use crate::policy::token_bucket::PortLimits;
use crate::port;

mod bursts;
#[path = "../chain/tests.rs"]
mod chains;
mod checksums;
mod costs;
mod drops;
mod fair;
mod far_ends;
#[path = "../mirror/tests.rs"]
mod mirrors;
mod offload_rules;
mod order;
mod pairs;
mod queues;
mod segments;
mod traces;
mod uplinks;
mod vectors;

/// A guest of the switch under test.
struct Guest {
    name: PortName,
    ring: GuestPort,
    fds: Vec<OwnedFd>,
}

impl Guest {
    fn send(&mut self, frame: &[u8]) {
        self.ring.push(frame).unwrap();
        let _ = self.ring.publish();
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = [0; ring::BUFFER_SIZE];
        let found =
            std::iter::from_fn(|| self.ring.pop(&mut buffer).map(|len| buffer[..len].to_vec()))
                .collect();
        let _ = self.ring.publish();
        found
    }
}

struct Bench {
    switch: Switch,
    resources: HostResources,
    scratch: Scratch,
}

fn add(name: &str, extra: Value) -> PortAdd {
    let mut args = json!({
        "switch": "vale0", "port": name, "kind": "process", "segment": 1, "slots": 64, "port_security": false,
    });
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
    let add: PortAdd = serde_json::from_value(args).unwrap();
    add.check().unwrap();
    add
}

/// Where a guest offers features (docs/rings.md).
const OFFERED: u64 = 0x18;
const BROADCAST: Mac = Mac([0xff; 6]);

fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

fn frame(destination: Mac, source: Mac, len: usize) -> Vec<u8> {
    let mut frame = [destination.0, source.0].concat();
    frame.extend([0x88, 0xb5]);
    frame.resize(len, 0x5a);
    frame
}

impl Bench {
    fn new() -> Self {
        Self {
            switch: Switch::new("vale0".parse().unwrap(), 0, Shared::default()),
            resources: HostResources::default(),
            scratch: Scratch::default(),
        }
    }

    fn try_add(&mut self, name: &str, extra: Value) -> Result<Guest, AddError> {
        let (port, fds) = port::open(&add(name, extra), &self.resources).unwrap();
        let name = port.face.name.clone();
        self.switch.add(&mut Some(Box::new(port)))?;
        Ok(Guest {
            name,
            ring: GuestPort::map(&fds[0]).unwrap(),
            fds,
        })
    }

    /// A guest with MAC address `last` in segment `segment`. Its port is not open, as with port
    /// security, but takes frames of any type.
    fn guest(&mut self, last: u8, segment: u32) -> Guest {
        let guest = self.open_guest(last, segment);
        let (_, port) = self.switch.find(&guest.name).unwrap();
        port.face.is_open = false;
        guest
    }

    /// A guest without port security.
    fn open_guest(&mut self, last: u8, segment: u32) -> Guest {
        self.try_add(
            &format!("p{segment}-{last}"),
            json!({"mac": mac(last), "segment": segment}),
        )
        .unwrap()
    }

    /// A guest with MAC address `last` that offers features, which the switch has.
    fn agreed(&mut self, last: u8, features: u32) -> Guest {
        let add = add(&format!("agreed{last}"), json!({"mac": mac(last)}));
        let (name, fds) = self.add_agreed(&add, features);
        Guest {
            name,
            ring: GuestPort::map(&fds[0]).unwrap(),
            fds,
        }
    }

    /// A port with rings whose guest offers features, which the switch has.
    fn add_agreed(&mut self, add: &PortAdd, features: u32) -> (PortName, Vec<OwnedFd>) {
        let (mut rings, fds) = RingPort::create(add.slots, None).unwrap();
        rustix::io::pwrite(&fds[0], &features.to_le_bytes(), OFFERED).unwrap();
        rings.negotiate();
        let port = port::Port::new(add, Box::new(rings));
        let name = port.face.name.clone();
        self.switch.add(&mut Some(Box::new(port))).unwrap();
        (name, fds.into())
    }

    /// Forwards, and lets each wire hand over its frames, `rounds` times.
    fn rounds(&mut self, wires: &mut [(Guest, Guest)], rounds: usize) {
        for _ in 0..rounds {
            self.round();
            for (left, right) in wires.iter_mut() {
                let (from_left, from_right) = (left.received(), right.received());
                from_left.iter().for_each(|frame| right.send(frame));
                from_right.iter().for_each(|frame| left.send(frame));
            }
        }
    }

    /// Forwards a frame that comes from the first port, which is an interface for the moment.
    fn send_from_interface(&mut self, frame: &[u8], offload: TxOffload) {
        let sent = Box::new(FakeNic(offload, frame.to_vec()));
        let device = self.switch.ports[0].as_mut().unwrap().replace(sent);
        self.switch.take_burst(0, &mut self.scratch);
        self.switch.ports[0].as_mut().unwrap().replace(device);
    }

    fn round(&mut self) {
        self.switch.round(&mut self.scratch);
    }

    fn counters(&self, guest: &Guest) -> Counters {
        self.switch
            .infos()
            .find(|p| p.port == guest.name)
            .unwrap()
            .counters
    }
}

#[test]
fn unicast_goes_to_its_owner_alone_and_is_counted() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1));
    a.send(&frame(mac(2), mac(1), 100));
    bench.round();
    assert_eq!(b.received(), [frame(mac(2), mac(1), 100)]);
    assert!(c.received().is_empty() && a.received().is_empty());
    let (a, b) = (bench.counters(&a), bench.counters(&b));
    assert_eq!(
        a,
        Counters {
            rx_packets: 1,
            rx_bytes: 100,
            ..a
        }
    );
    assert_eq!(
        b,
        Counters {
            tx_packets: 1,
            tx_bytes: 100,
            polls_empty: 1,
            ..Counters::default()
        }
    );
}

/// The switch copies the end of a long frame from ring to ring.
#[test]
fn frames_of_all_lengths_arrive_unaltered_at_one_port_and_at_many() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1));
    for len in [14, 15, 127, 128, 129, 130, 1500, 1514] {
        for destination in [mac(2), Mac([255; 6])] {
            let mut sent = frame(destination, mac(1), len);
            (14..len).for_each(|at| sent[at] = at as u8);
            a.send(&sent);
            bench.round();
            assert_eq!(b.received(), [sent.clone()], "{len}");
            let flooded = destination.is_multicast();
            assert_eq!(c.received().len(), usize::from(flooded), "{len}");
        }
    }
    assert_eq!(bench.counters(&a).rx_bytes, bench.counters(&b).tx_bytes);
}

fn sender_mac(guest: &Guest) -> Mac {
    let last = guest.name.as_str().rsplit('-').next();
    mac(last.unwrap().parse().unwrap())
}

/// A packet of UDP between guests.
fn udp(from: u8, to: u8, ports: [u8; 4], len: usize) -> Vec<u8> {
    let mut sent = frame(mac(to), mac(from), len);
    let [high, low] = (len as u16 - 14).to_be_bytes();
    sent[12..26].copy_from_slice(&[8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
    sent[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    sent[34..38].copy_from_slice(&ports);
    let word = |w: &[u8]| u32::from(w[0]) << 8 | u32::from(w[1]);
    let sum: u32 = sent[14..34].chunks(2).map(word).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    sent[24..26].copy_from_slice(&sum.to_be_bytes());
    sent
}

#[test]
fn a_station_behind_an_uplink_is_learned_unless_a_port_has_its_address() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut up = bench.try_add("up", json!({})).unwrap();
    let mut monitor = bench.try_add("monitor", json!({})).unwrap();
    let other = bench.guest(9, 2);
    bench.switch.port_mut(&up.name).unwrap().face.learns = true;
    let ask = frame(mac(9), mac(1), 60);
    for learned in [false, true] {
        a.send(&ask);
        bench.round();
        assert_eq!((up.received().len(), other.fds.len()), (1, 3));
        assert_eq!(monitor.received().len(), usize::from(!learned));
        // The uplink claims a station of its own, and the address of a guest.
        up.send(&frame(mac(1), mac(9), 60));
        up.send(&frame(mac(1), mac(2), 60));
        bench.round();
        assert_eq!(a.received().len(), 2);
    }
    a.send(&frame(mac(2), mac(1), 60));
    bench.round();
    assert_eq!((b.received().len(), up.received().len()), (1, 0));
    bench.switch.remove(&up.name);
    a.send(&ask);
    bench.round();
    assert_eq!(monitor.received().len(), 1);
}

#[test]
fn segments_do_not_see_each_other() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let (mut other, mut twin) = (bench.guest(3, 2), bench.guest(2, 2));
    for destination in [mac(2), mac(3), Mac([255; 6]), Mac([1, 0, 0x5e, 0, 0, 1])] {
        a.send(&frame(destination, mac(1), 60));
    }
    bench.round();
    assert_eq!(b.received().len(), 3, "unicast, broadcast, multicast");
    assert!(other.received().is_empty() && twin.received().is_empty());
    assert!(a.received().is_empty(), "nothing comes back");
    assert_eq!(
        bench.counters(&a).dropped_unknown,
        1,
        "the MAC of the other segment"
    );
}

#[test]
fn unknown_unicast_goes_to_ports_without_mac_or_is_dropped() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    a.send(&frame(mac(99), mac(1), 60));
    a.send(&frame(mac(1), mac(1), 60));
    bench.round();
    assert_eq!(
        bench.counters(&a).dropped_unknown,
        2,
        "unknown, and its own address"
    );
    let mut uplink = bench.try_add("uplink", json!({})).unwrap();
    a.send(&frame(mac(99), mac(1), 60));
    a.send(&frame(mac(2), mac(1), 60));
    bench.round();
    assert_eq!(uplink.received(), [frame(mac(99), mac(1), 60)]);
    assert_eq!(b.received().len(), 1);
    assert_eq!(bench.counters(&a).dropped_unknown, 2);
    uplink.send(&frame(mac(99), mac(98), 60));
    bench.round();
    assert_eq!(bench.counters(&uplink).dropped_unknown, 1);
}

#[test]
fn a_wire_joins_two_segments() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 2));
    let mut wires = [(bench.open_guest(11, 1), bench.open_guest(12, 2))];
    let (question, answer) = (frame(BROADCAST, mac(1), 60), frame(mac(1), mac(2), 60));
    a.send(&question);
    bench.rounds(&mut wires, 4);
    assert_eq!(b.received(), [question]);
    b.send(&answer);
    bench.rounds(&mut wires, 4);
    assert_eq!(a.received(), [answer]);
    assert_eq!(bench.counters(&b).dropped_unknown, 0);
}

#[test]
fn two_parallel_wires_make_no_storm() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 2));
    let mut wires = [11, 21].map(|n| (bench.open_guest(n, 1), bench.open_guest(n + 1, 2)));
    a.send(&frame(BROADCAST, mac(1), 60));
    b.send(&frame(mac(1), mac(2), 60));
    bench.rounds(&mut wires, 20);
    assert_eq!(b.received().len(), 1, "by the wire that was first");
    assert_eq!(a.received().len(), 1, "the answer");
    let returned = |bench: &Bench| {
        let ports = wires.iter().flat_map(|(left, right)| [left, right]);
        ports
            .map(|port| bench.counters(port).dropped_loop)
            .sum::<u64>()
    };
    assert!(returned(&bench) > 0, "frames that came back");
    let before = returned(&bench);
    bench.round();
    assert_eq!(returned(&bench), before, "no frame circulates");
}

#[test]
fn a_full_destination_costs_only_itself() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1));
    for _ in 0..2 {
        for _ in 0..50 {
            a.send(&frame(mac(2), mac(1), 60));
        }
        a.send(&frame(mac(3), mac(1), 60));
        bench.round();
    }
    assert_eq!(bench.counters(&b).dropped_full, 37);
    assert_eq!((b.received().len(), c.received().len()), (63, 2));
}

#[test]
fn a_link_that_is_down_passes_nothing() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    bench.switch.port_mut(&b.name).unwrap().face.link_up = false;
    a.send(&frame(mac(2), mac(1), 60));
    b.send(&frame(mac(1), mac(2), 60));
    bench.round();
    assert!(a.received().is_empty() && b.received().is_empty());
    assert_eq!(bench.counters(&b).dropped_link_down, 2, "to it and from it");
    bench.switch.port_mut(&b.name).unwrap().face.link_up = true;
    b.send(&frame(mac(1), mac(2), 60));
    bench.round();
    assert_eq!(a.received().len(), 1);
}

#[test]
fn the_mtu_of_the_destination_holds() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut b = bench
        .try_add("b", json!({"mac": mac(2), "mtu": 1000}))
        .unwrap();
    a.send(&frame(mac(2), mac(1), 1014));
    a.send(&frame(mac(2), mac(1), 1015));
    let mut tagged = frame(mac(2), mac(1), 1018);
    tagged[12..18].copy_from_slice(&[0x81, 0, 0, 5, 8, 0]);
    a.send(&tagged);
    bench.round();
    assert_eq!(b.received().len(), 2);
    assert_eq!(bench.counters(&b).dropped_too_long, 1);
}

#[test]
fn a_sleeping_guest_gets_one_notification_for_a_batch() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut token = [0; 16];
    a.send(&frame(mac(2), mac(1), 60));
    bench.round();
    assert_eq!(bench.counters(&b).kicks, 0, "it did not ask for any");
    b.received();
    assert!(!b.ring.sleep_prepare());
    for _ in 0..10 {
        a.send(&frame(mac(2), mac(1), 60));
    }
    bench.round();
    assert_eq!(bench.counters(&b).kicks, 1);
    assert_eq!(rustix::io::read(&b.fds[2], &mut token), Ok(8));
    a.send(&frame(mac(2), mac(1), 60));
    bench.round();
    assert_eq!(bench.counters(&b).kicks, 1, "woken already");
}

#[test]
fn a_guest_cannot_block_the_switch_with_its_notifications() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    rustix::fs::fcntl_setfl(&b.fds[2], rustix::fs::OFlags::empty()).unwrap();
    for _ in 0..20_000 {
        b.received();
        let _ = b.ring.sleep_prepare();
        a.send(&frame(mac(2), mac(1), 60));
        bench.round();
    }
    assert_eq!(
        bench.counters(&b).tx_packets,
        20_000,
        "the pipe was full long before"
    );
}

/// A TCP frame as a host leaves it to its network card, with 3,000 bytes of payload.
fn tcp_burst() -> (Vec<u8>, TxOffload) {
    let mut frame = frame(mac(2), mac(1), 54 + 3000);
    frame[12..34].copy_from_slice(&[
        8, 0, 0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame[34..54].copy_from_slice(&[
        0, 80, 0, 99, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
    ]);
    let mut header = [1, 1, 54, 0, 0, 0, 34, 0, 16, 0];
    header[4..6].copy_from_slice(&1400u16.to_ne_bytes());
    let offload = TxOffload::parse(&header, frame.len()).unwrap();
    (frame, offload)
}

#[test]
fn a_long_frame_reaches_a_guest_in_segments() {
    let mut bench = Bench::new();
    let (a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let (burst, offload) = tcp_burst();
    bench.send_from_interface(&burst, offload);
    bench.round();
    let lengths: Vec<_> = b.received().iter().map(Vec::len).collect();
    assert_eq!(lengths, [1454, 1454, 254]);
    assert_eq!(
        (bench.counters(&a).rx_packets, bench.counters(&b).tx_packets),
        (1, 3)
    );
}

#[test]
fn segments_longer_than_the_mtu_are_dropped_and_wrong_ones_are_malformed() {
    let mut bench = Bench::new();
    let a = bench.guest(1, 1);
    let mut b = bench
        .try_add("b", json!({"mac": mac(2), "mtu": 1400}))
        .unwrap();
    let (mut burst, offload) = tcp_burst();
    bench.send_from_interface(&burst, offload);
    assert_eq!(bench.counters(&b).dropped_too_long, 1);
    burst[23] = 17;
    bench.send_from_interface(&burst, offload);
    assert_eq!(bench.counters(&a).dropped_malformed, 1);
    bench.round();
    assert!(b.received().is_empty());
}

#[test]
fn a_checksum_left_to_the_card_is_completed() {
    let mut bench = Bench::new();
    let (_a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut udp = frame(mac(2), mac(1), 60);
    udp[34..60].fill(0);
    let header = [1, 0, 0, 0, 0, 0, 34, 0, 6, 0];
    let offload = TxOffload::parse(&header, udp.len()).unwrap();
    bench.send_from_interface(&udp, offload);
    bench.round();
    assert_eq!(b.received()[0][40..42], [0xff, 0xff]);
}

#[test]
fn names_addresses_and_places_are_taken_once() {
    let mut bench = Bench::new();
    let a = bench.guest(1, 1);
    let refused =
        |bench: &mut Bench, name: &str, extra| bench.try_add(name, extra).map(drop).unwrap_err();
    assert_eq!(refused(&mut bench, "p1-1", json!({})), AddError::NameTaken);
    assert_eq!(
        refused(&mut bench, "x", json!({"mac": mac(1)})),
        AddError::MacTaken(mac(1))
    );
    assert!(bench.switch.remove(&a.name).is_some() && bench.switch.remove(&a.name).is_none());
    bench.guest(1, 1);
    for n in 1..MAX_PORTS {
        bench.try_add(&format!("n{n}"), json!({})).unwrap();
    }
    assert_eq!(refused(&mut bench, "more", json!({})), AddError::Full);
}

#[test]
fn what_a_guest_changes_after_the_check_is_not_delivered() {
    for len in [60, 1500] {
        changes_after_the_check(len);
    }
}

fn changes_after_the_check(len: usize) {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let mut honest = frame(mac(2), mac(1), len);
    honest[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6]);
    honest[26..30].copy_from_slice(&[10, 0, 0, 1]);
    let (stop, memfd) = (
        std::sync::atomic::AtomicBool::new(false),
        rustix::io::dup(&a.fds[0]).unwrap(),
    );
    let buffers = 0x1000 + 2 * 0x1000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The source address flips between two values in every tx buffer.
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for slot in 0..64 {
                    for source in [mac(1), mac(9)] {
                        rustix::io::pwrite(&memfd, &source.0, buffers + slot * 2048 + 6).unwrap();
                    }
                }
            }
        });
        let port = bench.switch.port_mut(&a.name).unwrap();
        port.face.guard = crate::policy::guard::Guard::new(&add(
            "a",
            json!({"mac": mac(1), "port_security": true, "allowed": [{"ip": "10.0.0.1/32"}]}),
        ));
        for _ in 0..10_000 {
            a.send(&honest);
            bench.round();
            for frame in b.received() {
                assert_eq!(frame[6..12], mac(1).0, "a checked source became another");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (counters, delivered) = (bench.counters(&a), bench.counters(&b).tx_packets);
    assert_eq!(counters.rx_packets, delivered + counters.dropped_spoof);
    assert!(delivered > 0);
}

/// Nanoseconds that the switch needs for a frame, the least of many rounds.
fn cost(bench: &mut Bench, a: &mut Guest, b: &mut Guest, sent: &[u8]) -> f64 {
    let round = |_| {
        for _ in 0..60 {
            a.ring.push(sent).unwrap();
        }
        let _ = a.ring.publish();
        let start = std::time::Instant::now();
        bench.round();
        let spent = start.elapsed().as_nanos() as f64;
        assert_eq!(b.received().len(), 60);
        spent / 60.0
    };
    (0..3000).map(round).fold(f64::MAX, f64::min)
}

#[test]
#[ignore = "prints figures: cargo test --release -p valed --lib -- --ignored --nocapture cost_of"]
fn cost_of_a_frame() {
    let mut bench = Bench::new();
    let secure = |last: u8| {
        json!({"mac": mac(last), "port_security": true, "slots": 256,
            "allowed": [{"ip": format!("10.0.0.{last}/32")}]})
    };
    let mut a = bench.try_add("a", secure(1)).unwrap();
    let mut b = bench.try_add("b", secure(2)).unwrap();
    for len in [60, 1500] {
        let mut sent = frame(mac(2), mac(1), len);
        let [high, low] = (len as u16 - 14).to_be_bytes();
        sent[12..26].copy_from_slice(&[8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
        sent[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9]);
        let ns = cost(&mut bench, &mut a, &mut b, &sent);
        println!("{len} bytes: {ns:.1} ns");
        for count in [0, 10, 100, 1000] {
            let mut rules = vec!["egress,tcp,1,192.0.2.0/24".parse().unwrap(); count];
            rules.push("egress".parse().unwrap());
            let mut filter = Some(Box::new(Filter::new(&rules)));
            assert!(bench.switch.set_filter(&a.name, &mut filter));
            let known = cost(&mut bench, &mut a, &mut b, &sent);
            let later = cost(&mut bench, &mut a, &mut b, &later_fragment(&sent));
            println!("{len} bytes, {count} rules before: {known:.1} ns, scanned {later:.1} ns");
        }
        assert!(bench.switch.set_filter(&a.name, &mut None));
    }
}

/// No connection knows a later fragment, so the filter scans all rules.
fn later_fragment(packet: &[u8]) -> Vec<u8> {
    let mut fragment = packet.to_vec();
    fragment[21] = 100;
    fragment
}
