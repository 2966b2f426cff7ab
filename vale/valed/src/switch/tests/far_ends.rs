// SPDX-License-Identifier: Apache-2.0
//! Pipes and files as far ends of ports.
use std::fs::File;

use pcap_file::pcap::{PcapReader, PcapWriter};

use super::*;
use crate::device::capture::CaptureDir;

/// A port without a guest.
fn attach(bench: &mut Bench, name: &str, extra: Value) {
    let (port, _) = port::open(&add(name, extra), &bench.resources).unwrap();
    bench.switch.add(&mut Some(Box::new(port))).unwrap();
}

fn counters(bench: &Bench, name: &str) -> Counters {
    let mut infos = bench.switch.infos();
    infos.find(|p| p.port.as_str() == name).unwrap().counters
}

#[test]
fn a_pipe_joins_two_segments() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 2));
    let mut other = bench.guest(3, 2);
    let pipe = |segment| json!({"kind": "pipe", "pipe": "x", "segment": segment});
    attach(&mut bench, "left", pipe(1));
    let to_b = frame(mac(2), mac(1), 1500);
    a.send(&to_b);
    bench.round();
    assert_eq!(
        counters(&bench, "left").dropped_link_down,
        1,
        "one end only"
    );
    attach(&mut bench, "right", pipe(2));
    for _ in 0..60 {
        a.send(&to_b);
    }
    for _ in 0..4 {
        bench.round();
    }
    assert_eq!(b.received(), vec![to_b; 60]);
    let to_a = frame(mac(1), mac(2), 60);
    b.send(&to_a);
    bench.round();
    bench.round();
    assert_eq!(a.received(), [to_a]);
    assert!(other.received().is_empty());
    assert_eq!(counters(&bench, "right").rx_packets, 60);
}

#[test]
fn a_full_pipe_loses_frames_and_their_count_is_right() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let pipe = |segment| json!({"kind": "pipe", "pipe": "x", "segment": segment});
    attach(&mut bench, "left", pipe(1));
    // The other end belongs to a switch that does not forward.
    let (_right, _) = port::open(&add("right", pipe(2)), &bench.resources).unwrap();
    for _ in 0..10 {
        for _ in 0..60 {
            a.send(&frame(mac(9), mac(1), 60));
        }
        bench.round();
    }
    let left = counters(&bench, "left");
    assert_eq!((left.tx_packets, left.dropped_full), (512, 88));
}

#[test]
fn a_file_is_played_into_a_segment_and_another_gets_the_answers() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new();
    let captures = CaptureDir::new(dir.path(), 1 << 20);
    bench.resources.capture_dir = Some(captures.clone());
    let mut writer = PcapWriter::new(File::create(captures.file("in")).unwrap()).unwrap();
    let to_a = frame(mac(1), mac(9), 1000);
    let packet = pcap_file::pcap::PcapPacket::new(Default::default(), 1000, &to_a);
    writer.write_packet(&packet).unwrap();
    drop(writer);
    let mut a = bench.guest(1, 1);
    let pcap = json!({"read": "in", "write": "out"});
    let tape = json!({"kind": "pcap", "pcap": pcap, "mac": mac(9)});
    attach(&mut bench, "tape", tape);
    bench.round();
    assert_eq!(a.received(), [to_a]);
    let to_tape = frame(mac(9), mac(1), 700);
    a.send(&to_tape);
    bench.round();
    assert_eq!(counters(&bench, "tape").tx_bytes, 700);
    let written = loop {
        let mut reader = PcapReader::new(File::open(captures.file("out")).unwrap());
        let packet = reader.as_mut().ok().and_then(PcapReader::next_packet);
        if let Some(Ok(packet)) = packet {
            break packet.data.into_owned();
        }
        std::thread::yield_now();
    };
    assert_eq!(written, to_tape);
}
