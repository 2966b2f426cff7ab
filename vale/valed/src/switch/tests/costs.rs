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

/// The ways of the frames from the port a to the port b.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    Guests,
    /// The frames of this many flows take turns.
    Flows(u8),
    /// The sender's filter has rules.
    Rules(usize),
    FromUplink,
    ToUplink,
    /// Into the hop of a chain, and out of it.
    IntoHop,
    OutOfHop,
    /// Another port of the segment is a chain's.
    NextToChain,
    /// Another port has a mirror, its segment rates.
    NextToOthers,
    /// Rules decide all frames.
    Offloaded,
}

/// A name, the length of the frames, port security, and their way.
type Case = (&'static str, usize, bool, Course);

const CASES: [Case; 16] = [
    ("64 bytes, no port security", 64, false, Course::Guests),
    ("64 bytes", 64, true, Course::Guests),
    ("64 bytes, 8 flows", 64, true, Course::Flows(8)),
    ("64 bytes, 10 rules", 64, true, Course::Rules(10)),
    ("64 bytes, 100 rules", 64, true, Course::Rules(100)),
    ("64 bytes, from an uplink", 64, true, Course::FromUplink),
    ("64 bytes, to an uplink", 64, true, Course::ToUplink),
    ("64 bytes, into a hop", 64, true, Course::IntoHop),
    ("64 bytes, out of a hop", 64, true, Course::OutOfHop),
    ("64 bytes, a chain of others", 64, true, Course::NextToChain),
    (
        "64 bytes, a mirror of others",
        64,
        true,
        Course::NextToOthers,
    ),
    ("64 bytes, dropped by a rule", 64, true, Course::Offloaded),
    ("1500 bytes, no port security", 1500, false, Course::Guests),
    ("1500 bytes", 1500, true, Course::Guests),
    ("1500 bytes, 10 rules", 1500, true, Course::Rules(10)),
    ("1500 bytes, out of a hop", 1500, true, Course::OutOfHop),
];

/// The ports a and b, and c and d for the others.
fn ports(secure: bool, course: Course) -> (Bench, [Guest; 2]) {
    let mut bench = Bench::new();
    let mut add = |name: &str, last: u8, is_uplink: bool| {
        if is_uplink {
            return uplinks::uplink(&mut bench, name, json!({"slots": 256}));
        }
        let allowed = match (secure, course) {
            (true, Course::OutOfHop) => json!([{"ip": "0.0.0.0/0"}]),
            (true, _) => json!([{"ip": format!("10.0.0.{last}/32")}]),
            (false, _) => json!([]),
        };
        let values =
            json!({"mac": mac(last), "port_security": secure, "slots": 256, "allowed": allowed});
        bench.try_add(name, values).unwrap()
    };
    let ends = [
        add("a", 1, course == Course::FromUplink),
        add("b", 2, course == Course::ToUplink),
    ];
    let [c, d] = [add("c", 3, false), add("d", 4, false)];
    let chain = match course {
        Course::IntoHop => Some(("a", ["b", "d"])),
        Course::OutOfHop => Some(("c", ["d", "a"])),
        Course::NextToChain => Some(("c", ["d", "d"])),
        _ => None,
    };
    if let Some((client, [ingress, egress])) = chain {
        let set: ChainSet = serde_json::from_value(json!({"switch": "vale0", "chain": "web",
            "segment": 1, "classifiers": [{"source_port": client}],
            "hops": [{"pairs": [{"ingress": ingress, "egress": egress}]}]}))
        .unwrap();
        let definition = crate::chain::Definition::new(set, None);
        bench.switch.set_chain(definition).unwrap();
    }
    if course == Course::NextToOthers {
        let set = json!({"switch": "vale0", "mirror": "m", "port": "c", "to_port": "d"});
        let set: vale_proto::MirrorSet = serde_json::from_value(set).unwrap();
        let budget = crate::mirror::budget(&set);
        bench.switch.set_mirror(set, None, budget).unwrap();
        let rates = serde_json::from_value(json!({"rx": {"packets_per_s": 1000}})).unwrap();
        bench.switch.set_segment_limits(2, PortLimits::new(&rates));
    }
    drop((c, d));
    (bench, ends)
}

impl Bench {
    /// Counts frames of the port c into the hop of its chain.
    fn enter_chain(&mut self, frame: &[u8], frames: u64) {
        let (from, _) = self.switch.find(&"c".parse().unwrap()).unwrap();
        let Switch { ports, chains, .. } = &mut self.switch;
        let ethernet = Ethernet::parse(frame).unwrap();
        let step = chains.step(ports, from, None, &ethernet, frame).unwrap();
        chains.note(step, ethernet.source);
        (0..frames).for_each(|_| chains.count(step, frame.len(), 1));
    }
}

/// Forwards bursts from one port to another.
fn forward((_, len, secure, course): Case) {
    let (mut bench, [mut a, mut b]) = ports(secure, course);
    if let Course::Rules(count) = course {
        let mut rules = vec!["egress,tcp,1,192.0.2.0/24".parse().unwrap(); count];
        rules.push("egress".parse().unwrap());
        let mut filter = Some(Box::new(Filter::new(&rules)));
        assert!(bench.switch.set_filter(&a.name, &mut filter));
    }
    if course == Course::Offloaded {
        let rules = ["drop proto 17 dport 9".parse().unwrap()];
        let table = crate::policy::offload_rules::OffloadTable::new(1, &rules);
        let owner = vale_proto::Owner::Operator;
        assert!(
            bench
                .switch
                .swap_offload_table(&b.name, owner, &mut Some(table))
        );
    }
    if course == Course::ToUplink {
        b.send(&frame(mac(1), mac(2), 60));
        bench.round();
        a.received();
    }
    let mut sent = udp(1, 2, [0, 9, 0, 9], len);
    if course == Course::IntoHop {
        // The packet's destination is the last port, not the hop.
        sent[..6].copy_from_slice(&mac(3).0);
    }
    for _ in 0..ROUNDS {
        if course == Course::OutOfHop {
            // A hop sends what entered it.
            let mut entered = sent.clone();
            entered[6..12].copy_from_slice(&mac(3).0);
            bench.enter_chain(&entered, BURST);
        }
        for n in 0..BURST {
            if let Course::Flows(flows) = course {
                sent[35] = n as u8 % flows;
            }
            a.ring.push(&sent).unwrap();
        }
        let _ = a.ring.publish();
        bench.round();
        let expected = if course == Course::Offloaded {
            0
        } else {
            BURST
        };
        assert_eq!(b.received().len() as u64, expected);
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
