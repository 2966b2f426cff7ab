// SPDX-License-Identifier: Apache-2.0
//! Mirrors of a switch with guests.
use pcap_file::pcap::PcapReader;
use vale_proto::{MirrorCounters, MirrorSet};

use super::*;
use crate::device::capture::CaptureDir;

fn mirror(bench: &mut Bench, extra: Value) {
    let mut args = json!({"switch": "vale0", "mirror": "m"});
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
    let set: MirrorSet = serde_json::from_value(args).unwrap();
    set.check().unwrap();
    let budget = crate::mirror::budget(&set);
    bench.switch.set_mirror(set, None, budget).unwrap();
}

fn counters(bench: &Bench) -> MirrorCounters {
    bench.switch.mirrors().next().unwrap().counters
}

/// Sends a short and a long frame and returns the lengths that the monitor got, in order.
fn exchange(bench: &mut Bench, [a, b, monitor]: [&mut Guest; 3]) -> Vec<usize> {
    let (to_b, to_a) = (frame(mac(2), mac(1), 1500), frame(mac(1), mac(2), 60));
    a.send(&to_b);
    b.send(&to_a);
    bench.round();
    assert_eq!((a.received(), b.received()), (vec![to_a], vec![to_b]));
    let mut lengths: Vec<_> = monitor.received().iter().map(Vec::len).collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn a_monitor_gets_the_side_that_the_mirror_names() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    // A port of another segment: the operator may show it this one.
    let mut monitor = bench.guest(3, 2);
    for (source, lengths) in [
        (json!({"port": a.name, "side": "rx"}), vec![1500]),
        (json!({"port": a.name, "side": "tx"}), vec![60]),
        (json!({"port": a.name}), vec![60, 1500]),
        (json!({"segment": 1}), vec![60, 1500]),
        (json!({"segment": 2}), vec![]),
        (json!({"port": "other"}), vec![]),
    ] {
        let mut set = source.clone();
        set["to_port"] = json!(monitor.name);
        mirror(&mut bench, set);
        let got = exchange(&mut bench, [&mut a, &mut b, &mut monitor]);
        assert_eq!(got, lengths, "{source}");
        let bytes = lengths.iter().sum::<usize>() as u64;
        assert_eq!(counters(&bench).bytes, bytes, "{source}");
    }
    bench.switch.remove_mirror(&"m".parse().unwrap());
    let got = exchange(&mut bench, [&mut a, &mut b, &mut monitor]);
    assert_eq!((got.len(), bench.switch.mirrors().count()), (0, 0));
}

#[test]
fn a_mirror_is_found_again_when_its_port_comes_back() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    mirror(&mut bench, json!({"segment": 1, "to_port": "late"}));
    let monitor = json!({"segment": 2, "mac": mac(3)});
    for round in 1..3 {
        let mut unplugged = bench.guest(9, 3);
        exchange(&mut bench, [&mut a, &mut b, &mut unplugged]);
        assert_eq!(counters(&bench).dropped, 2 * round);
        bench.switch.remove(&unplugged.name).unwrap();
        let mut late = bench.try_add("late", monitor.clone()).unwrap();
        let got = exchange(&mut bench, [&mut a, &mut b, &mut late]);
        assert_eq!(got, [60, 1500]);
        bench.switch.remove(&late.name).unwrap();
    }
}

#[test]
fn a_mirror_keeps_its_rate_and_refused_frames_have_no_copy() {
    let mut bench = Bench::new();
    let secure = json!({"mac": mac(1), "port_security": true, "allowed": []});
    let mut a = bench.try_add("a", secure).unwrap();
    let (mut b, mut c) = (bench.guest(2, 1), bench.guest(4, 1));
    let mut monitor = bench.guest(3, 2);
    mirror(
        &mut bench,
        json!({"segment": 1, "to_port": monitor.name, "packets_per_s": 1}),
    );
    a.send(&frame(mac(2), mac(7), 60));
    bench.round();
    assert!(monitor.received().is_empty(), "port security refused it");
    let mut copies = 0;
    for _ in 0..4 {
        (0..32).for_each(|_| b.send(&frame(mac(4), mac(2), 60)));
        bench.round();
        copies += monitor.received().len();
        assert_eq!(c.received().len(), 32);
    }
    let counted = counters(&bench);
    assert_eq!((copies, counted.packets, counted.over_rate), (64, 64, 64));
}

/// A monitor that sends its copies back makes no copies of copies.
#[test]
fn copies_have_no_copies() {
    let mut bench = Bench::new();
    let (mut a, mut monitor) = (bench.open_guest(1, 1), bench.open_guest(2, 1));
    mirror(&mut bench, json!({"segment": 1, "to_port": monitor.name}));
    let sent = frame(BROADCAST, mac(9), 60);
    a.send(&sent);
    for _ in 0..10 {
        bench.round();
        monitor.received().iter().for_each(|f| monitor.send(f));
        a.received();
    }
    assert_eq!(counters(&bench).packets, 1);
}

/// The destination gets the frame with its offloads as without a mirror.
#[test]
fn a_copy_leaves_the_offloads_of_the_frame_alone() {
    let mut bench = Bench::new();
    let _a = bench.guest(1, 1);
    let (mut b, mut monitor) = (bench.guest(2, 1), bench.guest(3, 2));
    let (burst, offload) = tcp_burst();
    bench.send_from_interface(&burst, offload);
    bench.round();
    let plain = b.received();
    assert_eq!(plain.len(), 3);
    mirror(&mut bench, json!({"port": "p1-1", "to_port": monitor.name}));
    bench.send_from_interface(&burst, offload);
    bench.round();
    assert!(b.received() == plain && monitor.received() == plain);
}

#[test]
fn a_file_gets_the_frames_and_is_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.pcap");
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    let captures = CaptureDir::new(directory.path(), 1 << 20);
    let capture = captures.create("x").unwrap();
    assert!(captures.create("x").is_err());
    let set = json!({"switch": "vale0", "mirror": "m", "segment": 1, "to_file": "x"});
    let set = serde_json::from_value(set).unwrap();
    let budget = crate::mirror::budget(&set);
    bench.switch.set_mirror(set, Some(capture), budget).unwrap();
    let sent: Vec<_> = (0..20).map(|n| frame(mac(2), mac(1), 100 + n)).collect();
    sent.iter().for_each(|frame| a.send(frame));
    bench.round();
    assert_eq!(b.received(), sent);
    let frames = || {
        let mut reader = PcapReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let next = || Some(reader.next_packet()?.ok()?.data.to_vec());
        std::iter::from_fn(next).collect::<Vec<_>>()
    };
    while frames().len() < sent.len() {
        std::thread::yield_now();
    }
    assert_eq!(frames(), sent);
    assert_eq!(counters(&bench).packets, 20);
}

#[test]
fn a_switch_has_a_bounded_number_of_mirrors() {
    let mut bench = Bench::new();
    let mut set = |n: usize| {
        let name = format!("m{n}");
        let set = json!({"switch": "vale0", "mirror": name, "segment": 1, "to_port": "p"});
        let set = serde_json::from_value(set).unwrap();
        let budget = crate::mirror::budget(&set);
        bench.switch.set_mirror(set, None, budget)
    };
    assert!((0..vale_proto::MAX_MIRRORS).all(|n| set(n).is_ok()));
    assert!(set(0).is_ok(), "it is replaced");
    assert!(set(vale_proto::MAX_MIRRORS).is_err());
}
