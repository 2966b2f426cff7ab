// SPDX-License-Identifier: Apache-2.0
//! Rings of version 1, which the guest copies, and of version 2, whose buffers are its packets.
//!
//! `cargo test --release -p clickos-process --test versions -- --nocapture` prints what a packet
//! costs the guest with each of them.
#![allow(clippy::unwrap_used)] // A test.

mod common;

use common::Host;
use common::guest::{Guest, Port};
use ring::{PushError, Regions, Slot};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WIRE: &str = "FromDevice(0) -> ToDevice(1); FromDevice(1) -> ToDevice(0);";
const FIREWALL: &str = "
FromDevice(0) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader(VERBOSE false)
-> IPFilter(
allow tcp && dst port 22, allow tcp && dst port 80,
allow tcp && dst port 443, allow udp && dst port 53,
deny src net 10.0.0.0/8, deny src net 172.16.0.0/12,
allow icmp type echo, allow udp && src port 123,
deny dst host 192.0.2.7, allow all)
-> Unstrip(14) -> ToDevice(1);
";
const WAIT: Duration = Duration::from_secs(10);

/// A guest of two vifs with rings of a version.
fn guest(host: &mut Host, domid: u16, version: u32, config: &str) -> Guest {
    let regions = Arc::new(Regions::default());
    let ports = (1..=2).map(|region| {
        let mut port = Port::of(version, region);
        port.switch.join(&regions, region);
        port
    });
    let mut guest = Guest::start_with(host, domid, ports.collect());
    assert_eq!(guest.install(host, 0, config).0, "Running");
    guest
}

/// A UDP frame of this length that the firewall lets pass.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip_len = (len - 14) as u16;
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    let words = frame[14..34].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[34..38].copy_from_slice(&[0x12, 0x34, 0, 53]);
    frame[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes());
    frame
}

/// The descriptor of a slot of tx: length and region.
fn descriptor(port: &Port, slot: u64) -> (u16, u16) {
    let mut word = [0; 8];
    rustix::io::pread(&port.memfd, &mut word, 0x1000 + slot * 8).unwrap();
    let word = u64::from_le_bytes(word);
    ((word >> 32) as u16, (word >> 48) as u16)
}

#[test]
fn a_received_frame_leaves_by_another_port_from_where_it_lies() {
    let mut host = Host::new();
    for (version, region) in [(1, 0), (2, 1)] {
        let mut guest = guest(&mut host, 4 + version as u16, version, WIRE);
        for n in 0..2000usize {
            let sent = frame(60 + n % 1400);
            let is_short = sent.len() <= 256;
            guest.ports[0].send(&sent);
            assert_eq!(guest.ports[1].receive(WAIT), Some(sent.clone()));
            let slot = n as u64 % 256;
            assert_eq!(
                descriptor(&guest.ports[1], slot),
                (sent.len() as u16, if is_short { 0 } else { region })
            );
        }
        assert_eq!(guest.ports[1].switch.malformed(), 0);
    }
}

/// Packets that wait in a queue take no more than the spare buffers, and the port goes on.
#[test]
fn frames_pass_while_many_wait_in_a_queue() {
    let mut host = Host::new();
    let config = "FromDevice(0) -> c :: Classifier(0/02, -);
        c[0] -> Queue(1000) -> u :: Unqueue(ACTIVE false) -> Queue(1000) -> ToDevice(1);
        c[1] -> ToDevice(0);";
    let mut guest = guest(&mut host, 5, 2, config);
    let held = |n: usize| frame(260 + n);
    for n in 0..600 {
        guest.ports[0].send(&held(n));
        let mut back = frame(1000 + n % 100);
        back[0] = 4;
        guest.ports[0].send(&back);
        assert_eq!(guest.ports[0].receive(WAIT), Some(back), "{n}");
    }
    guest.write(&mut host, 0, &[("u.active", "true")]);
    for n in 0..600 {
        assert_eq!(guest.ports[1].receive(WAIT), Some(held(n)), "{n}");
    }
}

/// Copies of a packet are changed one by one, whatever port sends them.
#[test]
fn copies_of_a_frame_are_frames_of_their_own() {
    let mut host = Host::new();
    let config = "FromDevice(0) -> t :: Tee;
        t[0] -> StoreData(0, \\<aa>) -> ToDevice(0);
        t[1] -> ToDevice(1);";
    let mut guest = guest(&mut host, 5, 2, config);
    for n in 0..1000 {
        let sent = frame(60 + n);
        let mut changed = sent.clone();
        changed[0] = 0xaa;
        guest.ports[0].send(&sent);
        assert_eq!(guest.ports[0].receive(WAIT), Some(changed));
        assert_eq!(guest.ports[1].receive(WAIT), Some(sent));
    }
}

/// Pumps `count` frames through the guest; returns its processor time per packet.
fn ns_per_packet(guest: &mut Guest, frame: &[u8], count: usize) -> f64 {
    let before = cpu_ns(guest);
    let (mut sent, mut received) = (0, 0);
    let mut slots = [Slot::EMPTY; 64];
    let end = Instant::now() + Duration::from_secs(20);
    while received < count {
        assert!(Instant::now() < end, "{received} of {count}");
        let [from, to] = &mut guest.ports[..] else {
            unreachable!()
        };
        let burst = (count - sent).min(64);
        sent += (0..burst)
            .take_while(|_| from.switch.push(frame) != Err(PushError::Full))
            .count();
        if from.switch.publish() {
            from.wake();
        }
        received += to.switch.fetch(&mut slots);
        if to.switch.publish() {
            to.wake();
        }
    }
    (cpu_ns(guest) - before) as f64 / count as f64
}

fn cpu_ns(guest: &Guest) -> u64 {
    let text = guest.proc("schedstat");
    text.split(' ').next().unwrap().parse().unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[cfg_attr(debug_assertions, ignore = "a figure of the release build")]
fn a_packet_costs_no_more_in_place() {
    let mut host = Host::new();
    let (mut domid, mut is_level) = (10, true);
    for (name, config) in [("wire", WIRE), ("firewall", FIREWALL)] {
        let mut guests = [1, 2].map(|version| {
            domid += 1;
            guest(&mut host, domid, version, config)
        });
        for len in [64, 1500] {
            let mut figures = [Vec::new(), Vec::new()];
            for _ in 0..7 {
                for (guest, figures) in guests.iter_mut().zip(&mut figures) {
                    figures.push(ns_per_packet(guest, &frame(len), 200_000));
                }
            }
            let [first, second] = figures.map(median);
            println!("{name} {len} B: version 1 {first:.1} ns, version 2 {second:.1} ns");
            is_level &= second < first * 1.5; // Generous: the machine is shared.
        }
    }
    assert!(is_level, "version 2 costs more than half as much again");
}
