// SPDX-License-Identifier: Apache-2.0
//! Instructions that the switch needs for a frame, by stage. Other work of the machine does not change
//! them.
//!
//! `cargo test --release -p valed --lib -- --ignored --nocapture instructions_of_a_frame`
use std::collections::BTreeMap;
use std::process::Command;

use super::*;

/// Names the case for the process in which valgrind counts.
const CASE: &str = "VALED_COST_CASE";
const TEST: &str = "switch::tests::costs::instructions_of_a_frame";
const ROUNDS: u64 = 200;
const BURST: u64 = 60;

/// A name, the length of the frames, port security, and the rules of the sender's filter.
type Case = (&'static str, usize, bool, Option<usize>);

const CASES: [Case; 6] = [
    ("64 bytes, no port security", 64, false, None),
    ("64 bytes", 64, true, None),
    ("64 bytes, 10 rules", 64, true, Some(10)),
    ("1500 bytes, no port security", 1500, false, None),
    ("1500 bytes", 1500, true, None),
    ("1500 bytes, 10 rules", 1500, true, Some(10)),
];

fn udp_packet(len: usize) -> Vec<u8> {
    let mut sent = frame(mac(2), mac(1), len);
    let [high, low] = (len as u16 - 14).to_be_bytes();
    sent[12..26].copy_from_slice(&[8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
    sent[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9]);
    sent
}

/// Forwards bursts from one guest to another.
fn forward((_, len, secure, rules): Case) {
    let mut bench = Bench::new();
    let guest = |last: u8| {
        let allowed = match secure {
            true => json!([{"ip": format!("10.0.0.{last}/32")}]),
            false => json!([]),
        };
        json!({"mac": mac(last), "port_security": secure, "slots": 256, "allowed": allowed})
    };
    let mut a = bench.try_add("a", guest(1)).unwrap();
    let mut b = bench.try_add("b", guest(2)).unwrap();
    if let Some(count) = rules {
        let mut rules = vec!["egress,tcp,1,192.0.2.0/24".parse().unwrap(); count];
        rules.push("egress".parse().unwrap());
        let mut filter = Some(Box::new(Filter::new(&rules)));
        assert!(bench.switch.set_filter(&a.name, &mut filter));
    }
    let sent = udp_packet(len);
    for _ in 0..ROUNDS {
        for _ in 0..BURST {
            a.ring.push(&sent).unwrap();
        }
        let _ = a.ring.publish();
        bench.round();
        assert_eq!(b.received().len() as u64, BURST);
    }
}

/// The sums of callgrind_annotate by function, in instructions for a frame.
fn stages(out: &std::path::Path) -> Vec<(f64, String)> {
    let output = Command::new("callgrind_annotate")
        .args(["--threshold=100", "--show-percs=no", "--auto=no"])
        .arg(out)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let stage = |line: &str| {
        let (count, rest) = line.trim().split_once(char::is_whitespace)?;
        let count: u64 = count.replace(',', "").parse().ok()?;
        let name = rest.split_once(':').map_or(rest, |(_, name)| name);
        let name = name.split(" [").next().unwrap_or(name);
        Some((count as f64 / (ROUNDS * BURST) as f64, name.to_owned()))
    };
    let mut sums = BTreeMap::new();
    for (count, name) in text.lines().filter_map(stage) {
        *sums.entry(name).or_insert(0.0) += count;
    }
    let mut sums: Vec<_> = sums
        .into_iter()
        .map(|(name, count)| (count, name))
        .collect();
    sums.sort_by(|a, b| b.0.total_cmp(&a.0));
    sums
}

#[test]
#[ignore = "prints figures: cargo test --release -p valed --lib -- --ignored --nocapture instructions_of_a_frame"]
fn instructions_of_a_frame() {
    if let Ok(name) = std::env::var(CASE) {
        return forward(CASES.into_iter().find(|case| case.0 == name).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, ..) in CASES {
        let out = folder.path().join("counts");
        let counted = Command::new("valgrind")
            .args(["--tool=callgrind", "--collect-atstart=no", "-q"])
            .arg("--toggle-collect=*Switch*round*")
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--test-threads=1", TEST])
            .env(CASE, name)
            .output()
            .unwrap();
        assert!(counted.status.success(), "{counted:?}");
        let own = stages(&out);
        let whole = own.first().map_or(0.0, |(count, _)| *count);
        println!("{name}: {whole:.0} instructions for a frame");
        for (count, stage) in own.iter().skip(1).filter(|(count, _)| *count >= 2.0) {
            println!("  {count:7.1}  {stage}");
        }
    }
}
