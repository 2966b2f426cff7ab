// SPDX-License-Identifier: Apache-2.0
//! Instructions of the routers of a pair for a packet, with and without copies of flows. Other work of the machine does
//! not change them.
//!
//! `cargo test --release -p click-elements --test it -- --ignored --nocapture instructions_of_copies`
use std::process::Command;

use super::*;

/// Names the case for the process in which valgrind counts.
const CASE: &str = "CLICK_COPIES_CASE";
const TEST: &str = "vrrp::cost::instructions_of_copies";
const FLOWS: u16 = 2_000;
/// Flows that get a packet or begin between two looks for changes.
const BURST: usize = 200;
const ROUNDS: usize = 10;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// A packet of a known flow.
    Packet,
    /// A new flow, with its first packet.
    Flow,
    /// A copy, at the standby.
    Copy,
}

fn cases() -> impl Iterator<Item = (String, &'static str, Work, bool)> {
    let functions = [("NAT", NAT), ("firewall with state", FIREWALL)];
    let works = [
        (Work::Packet, false),
        (Work::Packet, true),
        (Work::Flow, false),
        (Work::Flow, true),
        (Work::Copy, true),
    ];
    functions.into_iter().flat_map(move |(name, function)| {
        works.into_iter().map(move |(work, copies)| {
            let with = if copies { "with" } else { "without" };
            (
                format!("{name}, {work:?}, {with} copies"),
                function,
                work,
                copies,
            )
        })
    })
}

/// Runs a router while valgrind counts.
#[inline(never)]
fn counted_run(member: &mut Member, now_ns: u64) {
    member.run(now_ns);
}

impl World {
    /// A datagram of each flow reaches the active router.
    fn flood(&mut self) {
        let flows: Vec<u16> = (0..FLOWS).collect();
        for burst in flows.chunks(BURST) {
            self.give(burst);
            self.wait(50);
        }
        self.wait(200);
    }

    fn give(&self, flows: &[u16]) {
        for n in flows {
            let packet = datagram(INSIDE, 2_000 + n, OUTSIDE, 53);
            let device = &self.members[0].devices[0];
            device.borrow_mut().input.push_back(frame_to(0, &packet));
        }
    }

    /// The same in one moment, so that no copy is due.
    fn forward(&mut self) {
        let flows: Vec<u16> = (0..FLOWS).collect();
        for burst in flows.chunks(BURST) {
            self.give(burst);
            counted_run(&mut self.members[0], self.now_ns);
        }
    }

    fn count(&mut self, member: usize) {
        self.run = Box::new(move |n, router, now_ns| match n == member {
            true => counted_run(router, now_ns),
            false => router.run(now_ns),
        });
    }
}

/// Returns how many units of the work were counted.
fn work(function: &'static str, work: Work, copies: bool) -> usize {
    let mut world = World::with(function, copies);
    match work {
        Work::Packet => {
            world.flood();
            (0..ROUNDS).for_each(|_| world.forward());
            return ROUNDS * usize::from(FLOWS);
        }
        Work::Flow => world.count(0),
        Work::Copy => world.count(1),
    }
    world.flood();
    let known = if copies {
        FLOWS.to_string()
    } else {
        "0".into()
    };
    assert_eq!(world.read(1, "rw.table_size"), known);
    usize::from(FLOWS)
}

#[test]
#[ignore = "prints figures: cargo test --release -p click-elements --test it -- --ignored --nocapture instructions_of_copies"]
fn instructions_of_copies() {
    if let Ok(name) = std::env::var(CASE) {
        let case = cases().find(|case| case.0 == name).unwrap();
        println!("units {}", work(case.1, case.2, case.3));
        return;
    }
    let out = std::env::temp_dir().join(format!("copies-{}", std::process::id()));
    for (name, ..) in cases() {
        let counted = Command::new("valgrind")
            .args(["--tool=callgrind", "--collect-atstart=no", "-q"])
            .arg("--toggle-collect=*counted_run*")
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "--test-threads=1",
                TEST,
            ])
            .env(CASE, &name)
            .output()
            .unwrap();
        assert!(counted.status.success(), "{counted:?}");
        let number = |text: &str, word: &str| -> f64 {
            let behind = text.split_once(word).unwrap().1;
            let digits = behind.split_ascii_whitespace().next();
            digits.unwrap().parse().unwrap()
        };
        let units = number(&String::from_utf8_lossy(&counted.stdout), "units ");
        let total = number(&std::fs::read_to_string(&out).unwrap(), "summary: ");
        println!("{name}: {:.0} instructions", total / units);
    }
    std::fs::remove_file(out).unwrap();
}
