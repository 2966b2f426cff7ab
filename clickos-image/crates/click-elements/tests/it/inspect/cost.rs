// SPDX-License-Identifier: Apache-2.0
//! Instructions of a packet with one text, one rule and 500 rules, and memory of flows.
//!
//! `cargo test --release -p click-elements --features regex,simd --test it -- --ignored --nocapture costs_of_inspection`
use std::process::Command;

use click_core::Limits;

use super::bed::{Bed, CLIENT_SEQ, SERVER_SEQ, from_client, from_server, inspector};
use super::generator::{self, Row};
use super::packets::{ACK, SYN, Segment, link, udp};

/// Names the case for the process that is counted.
const CASE: &str = "CLICK_INSPECTION_CASE";
const TEST: &str = "inspect::cost::costs_of_inspection";
const PACKETS: usize = 5_000;
const FLOWS: u32 = 10_000;
/// Bytes of a full segment.
const FULL: usize = 1_448;
/// Bytes of the headers of a datagram.
const HEADERS: usize = 14 + 20 + 8;
const SIZES: [&str; 3] = ["64 bytes", "512 bytes", "stream"];

/// The configurations, and their rules.
fn functions() -> Vec<(&'static str, String, String)> {
    let wire = |between: &str| {
        format!(
            "FromDevice(0) -> MarkIPHeader(14) {between} -> Queue -> ToDevice(1); FromDevice(1) -> Queue -> ToDevice(0);"
        )
    };
    let alerts = generator::text(&generator::rules(7, 500)).replace("\ndrop ", "\nalert ");
    let one = r#"alert ip any any -> any any (content:"/etc/passwd"; sid:1;)"#;
    vec![
        ("no inspection", wire(""), String::new()),
        (
            "StringMatcher, 1 text",
            wire(r#"-> StringMatcher("/etc/passwd")"#),
            String::new(),
        ),
        (
            "StreamInspector, 1 rule",
            inspector("CAPACITY 20000, MEMORY 200000000"),
            one.into(),
        ),
        (
            "StreamInspector, 500 rules",
            inspector("CAPACITY 20000, MEMORY 200000000"),
            alerts,
        ),
    ]
}

/// Text as a protocol may have it, with the data of a rule in one of eight packets.
fn data(row: &mut Row, length: usize, rules: &[generator::Made]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if row.below(8) == 0 {
        bytes.extend(&rules[row.below(rules.len())].data);
    }
    while bytes.len() < length {
        let word = 2 + row.below(9);
        bytes.extend(row.word(word).bytes());
        bytes.push(b" \r\n:/"[row.below(5)]);
    }
    bytes.truncate(length);
    bytes
}

/// Runs a router while valgrind counts.
#[inline(never)]
fn counted_send(bed: &mut Bed, side: usize, frame: Vec<u8>) -> usize {
    bed.send(side, frame).len()
}

/// Sends packets; returns how many were counted.
fn packets(bed: &mut Bed, size: &str) -> usize {
    let (mut row, rules) = (Row::new(11), generator::rules(7, 500));
    let length = match size {
        "64 bytes" => 64 - HEADERS,
        "512 bytes" => 512 - HEADERS,
        _ => return stream(bed, &mut row, &rules),
    };
    for number in 0..PACKETS {
        let packet = udp(
            1_000 + (number % 100) as u16,
            80,
            &data(&mut row, length, &rules),
        );
        assert_eq!(counted_send(bed, 0, link(&packet)), 1);
    }
    PACKETS
}

/// Full segments of one connection, each second of which is acknowledged.
fn stream(bed: &mut Bed, row: &mut Row, rules: &[generator::Made]) -> usize {
    bed.open();
    let mut at = 0;
    for number in 0..PACKETS {
        let segment = from_client(at, &data(row, FULL, rules));
        assert_eq!(counted_send(bed, 0, segment.frame()), 1);
        at += FULL as u32;
        if number % 2 == 1 {
            counted_send(bed, 1, from_server(0, at, b"").frame());
        }
    }
    PACKETS
}

/// The memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Opens connections, each with a request and an answer that are acknowledged; prints their memory.
fn flows(bed: &mut Bed) {
    let (mut row, rules) = (Row::new(3), generator::rules(7, 500));
    let before = resident_kib();
    for number in 0..FLOWS {
        let ports = [1_000 + number as u16, 80];
        let change = |segment: Segment| Segment { ports, ..segment };
        let request = from_client(0, &data(&mut row, 400, &rules));
        let answer = from_server(0, 400, &data(&mut row, FULL, &rules));
        for segment in [
            Segment::new(true, SYN, CLIENT_SEQ, 0, b""),
            Segment::new(
                false,
                SYN | ACK,
                SERVER_SEQ,
                CLIENT_SEQ.wrapping_add(1),
                b"",
            ),
            request,
            answer,
            Segment {
                ack: SERVER_SEQ + 1 + FULL as u32,
                ..from_client(400, b"")
            },
        ] {
            assert!(bed.passes(&change(segment)));
        }
    }
    let (streams, all) = (bed.count("ips.memory") >> 10, resident_kib() - before);
    println!("memory {streams} {all}");
    assert_eq!(bed.count("ips.table_size"), u64::from(FLOWS));
}

fn bed(config: &str, rules: &str) -> Bed {
    let limits = Limits {
        packet_buffers: 512,
        ..Limits::default()
    };
    let mut bed = Bed::within(config, limits);
    if !rules.is_empty() {
        bed.write("ips.rules", rules);
    }
    bed
}

fn in_child(case: &str) {
    let (name, size) = case.split_once('|').unwrap();
    let (_, config, rules) = functions()
        .into_iter()
        .find(|function| function.0 == name)
        .unwrap();
    let mut bed = bed(&config, &rules);
    match size {
        "flows" => flows(&mut bed),
        _ => println!("units {}", packets(&mut bed, size)),
    }
}

/// The numbers after a word of a process's output.
fn numbers(text: &str, word: &str) -> Vec<f64> {
    let behind = text.split_once(word).unwrap().1.lines().next().unwrap();
    let words = behind.split_ascii_whitespace();
    words.map_while(|number| number.parse().ok()).collect()
}

#[test]
#[ignore = "prints figures: cargo test --release -p click-elements --features regex,simd --test it -- --ignored --nocapture costs_of_inspection"]
fn costs_of_inspection() {
    if let Ok(case) = std::env::var(CASE) {
        return in_child(&case);
    }
    let program = std::env::current_exe().unwrap();
    let words = [
        "--ignored",
        "--exact",
        "--nocapture",
        "--test-threads=1",
        TEST,
    ];
    let out = std::env::temp_dir().join(format!("inspection-{}", std::process::id()));
    for (name, ..) in functions() {
        for size in SIZES {
            let counted = Command::new("valgrind")
                .args([
                    "--tool=callgrind",
                    "--collect-atstart=no",
                    "-q",
                    "--toggle-collect=*counted_send*",
                ])
                .arg(format!("--callgrind-out-file={}", out.display()))
                .arg(&program)
                .args(words)
                .env(CASE, format!("{name}|{size}"))
                .output()
                .unwrap();
            assert!(counted.status.success(), "{counted:?}");
            let units = numbers(&String::from_utf8_lossy(&counted.stdout), "units ")[0];
            let total = numbers(&std::fs::read_to_string(&out).unwrap(), "summary: ")[0];
            println!("{name}, {size}: {:.0} instructions", total / units);
        }
        if name.starts_with("StreamInspector") {
            let case = format!("{name}|flows");
            let child = Command::new(&program)
                .args(words)
                .env(CASE, case)
                .output()
                .unwrap();
            let memory = numbers(&String::from_utf8_lossy(&child.stdout), "memory ");
            println!(
                "{name}, {FLOWS} flows: {} KiB of streams, {} KiB in all",
                memory[0], memory[1]
            );
        }
    }
    std::fs::remove_file(out).unwrap();
}
