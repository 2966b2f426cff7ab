// SPDX-License-Identifier: Apache-2.0
//! A guest goes, and others take its flows (docs/adr/0090).
use std::collections::BTreeSet;

use click_core::{Progress, Router};
use proptest::prelude::*;

use crate::devices::{Memory, devices, environment};

const SECOND_NS: u64 = 1_000_000_000;
/// The host that flows go to.
const FAR: [u8; 4] = [8, 8, 8, 8];

/// A NAT with its part of the ports, and a clock.
struct Nat {
    router: Router,
    devices: [Memory; 2],
    now_ns: u64,
}

impl Nat {
    fn new(ports: &str, capacity: usize) -> Self {
        let config = format!(
            "rw :: IPRewriter(pattern 203.0.113.1 {ports} - - 0 1, drop, MAPPING_CAPACITY {capacity}, GUARANTEE 0);
             FromDevice(0) -> MarkIPHeader -> [0] rw [0] -> Queue -> ToDevice(1);
             FromDevice(1) -> MarkIPHeader -> [1] rw [1] -> Queue -> ToDevice(0);"
        );
        Self::of(&config, 4096)
    }

    fn of(config: &str, answer_bytes: usize) -> Self {
        let devices = devices();
        let mut environment = environment(&devices);
        environment.limits.answer_bytes = answer_bytes;
        let registry = click_elements::registry();
        let router = Router::build("t", config, &registry, environment, 1).unwrap();
        let now_ns = 1000 * SECOND_NS;
        Self {
            router,
            devices,
            now_ns,
        }
    }

    /// Returns the packet as it leaves.
    fn pass(&mut self, device: usize, packet: Vec<u8>) -> Option<Vec<u8>> {
        self.now_ns += SECOND_NS / 1000;
        self.devices[device].borrow_mut().input.push_back(packet);
        for _ in 0..20 {
            if let Progress::Idle { .. } = self.router.run(self.now_ns) {
                break;
            }
        }
        self.devices[1 - device].borrow_mut().output.pop()
    }

    fn open(&mut self, sport: u16) -> Option<Vec<u8>> {
        self.pass(0, datagram([10, 0, 0, 1], sport, FAR, 53))
    }

    /// True if the answer to a translated packet comes to the port that sent it.
    fn answers(&mut self, sent: &[u8], sport: u16) -> bool {
        let port = u16::from_be_bytes([sent[20], sent[21]]);
        let back = self.pass(1, datagram(FAR, 53, [203, 0, 113, 1], port));
        back.is_some_and(|back| {
            back[16..20] == [10, 0, 0, 1] && back[22..24] == sport.to_be_bytes()
        })
    }

    fn read(&mut self, name: &str, param: &str) -> String {
        let value = self.router.read_handler(name, param, self.now_ns);
        String::from_utf8(value.unwrap()).unwrap()
    }

    /// The parts of the table.
    fn parts(&mut self) -> Vec<String> {
        let parts = (0..).map(|part| self.read("rw.state", &part.to_string()));
        parts.take_while(|part| !part.is_empty()).collect()
    }

    fn take(&mut self, parts: &[String]) {
        for part in parts {
            let writes = [("rw.merge", part.as_bytes())];
            self.router.write_handlers(&writes, self.now_ns).unwrap();
        }
    }

    fn lost(&mut self) -> u64 {
        self.read("rw.merge_lost", "").parse().unwrap()
    }

    fn flows(&mut self) -> BTreeSet<String> {
        let state = self.parts().concat();
        state
            .lines()
            .filter(|line| line.contains(' ') && !line.starts_with("ip-"))
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                words[7..].join(" ")
            })
            .collect()
    }
}

/// A datagram without a checksum.
fn datagram(source: [u8; 4], sport: u16, destination: [u8; 4], dport: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes.extend(source);
    bytes.extend(destination);
    bytes.extend(sport.to_be_bytes());
    bytes.extend(dport.to_be_bytes());
    bytes.extend([0, 8, 0, 0]);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    /// Each flow continues at the NAT that stays, and merging once more changes nothing.
    #[test]
    fn all_flows_go_on(
        goes in prop::collection::btree_set(1u16..=u16::MAX, 0..40),
        stays in prop::collection::btree_set(1u16..=u16::MAX, 0..40),
    ) {
        let (mut leaver, mut heir) = (Nat::new("1024-2047", 100), Nat::new("2048-4095", 100));
        let sent: Vec<_> = goes.difference(&stays).map(|port| (*port, leaver.open(*port).unwrap()))
            .chain(stays.iter().map(|port| (*port, heir.open(*port).unwrap())))
            .collect();
        for _ in 0..2 {
            heir.take(&leaver.parts());
            prop_assert_eq!(heir.flows().len(), sent.len());
        }
        prop_assert_eq!(heir.lost(), 0);
        for (port, packet) in sent {
            prop_assert!(heir.answers(&packet, port), "{}", port);
        }
    }

    /// Parts have every flow once.
    #[test]
    fn parts_are_the_whole(count in 0u16..60, gone in prop::collection::vec(any::<bool>(), 60)) {
        let mut nat = Nat::new("1024-2047", 60);
        for port in 1..=count {
            nat.open(port).unwrap();
        }
        let parts = nat.parts();
        prop_assert_eq!(parts.len(), usize::from(count).div_ceil(4), "4 places a part");
        let lines = parts.iter().flat_map(|part| part.lines().skip(1)).count();
        prop_assert_eq!(lines, usize::from(count));
        // Places that are free again leave gaps.
        let state = parts.concat();
        let left = state.lines().filter(|line| !line.starts_with("ip-"));
        let left: Vec<_> = left.zip(gone).filter(|(_, gone)| !gone).map(|each| each.0).collect();
        let text = format!("ip-rewriter 1\n{}\n", left.join("\n"));
        let text = text.replace("\n\n", "\n");
        nat.router.write_handlers(&[("rw.state", text.as_bytes())], nat.now_ns).unwrap();
        prop_assert_eq!(nat.flows().len(), left.len());
    }
}

/// Two guests gave one port: the flow heard of last has it, whichever guest's it was.
#[test]
fn of_two_flows_the_one_heard_of_last_stays() {
    let (mut leaver, mut heir) = (Nat::new("1024", 100), Nat::new("1024", 100));
    let old = heir.open(5).unwrap();
    let new = leaver.open(6).unwrap();
    heir.now_ns += 10 * SECOND_NS;
    let parts = leaver.parts();
    heir.take(&parts);
    assert_eq!((heir.flows().len(), heir.lost()), (1, 1));
    assert!(heir.answers(&new, 6));
    let (mut leaver, mut heir) = (Nat::new("1024", 100), Nat::new("1024", 100));
    leaver.open(6).unwrap();
    leaver.now_ns += 10 * SECOND_NS;
    let parts = leaver.parts();
    let known = heir.open(5).unwrap();
    assert_eq!(old, known);
    heir.take(&parts);
    assert_eq!((heir.flows().len(), heir.lost()), (1, 1));
    assert!(heir.answers(&known, 5));
}

/// A flow that continued at the other guest keeps what that knows about it.
#[test]
fn an_older_copy_changes_nothing() {
    let (mut leaver, mut heir) = (Nat::new("1024-2047", 100), Nat::new("2048-4095", 100));
    let sent = leaver.open(5).unwrap();
    let parts = leaver.parts();
    heir.take(&parts);
    heir.now_ns += SECOND_NS;
    assert!(heir.answers(&sent, 5));
    let before = heir.parts();
    leaver.now_ns += 5 * SECOND_NS;
    let parts = leaver.parts();
    heir.take(&parts);
    assert_eq!(heir.parts(), before);
    assert_eq!(heir.lost(), 0);
}

#[test]
fn a_full_table_counts_what_it_loses() {
    let (mut leaver, mut heir) = (Nat::new("1024-2047", 100), Nat::new("2048-4095", 8));
    for port in 0..6 {
        leaver.open(100 + port).unwrap();
        heir.open(200 + port).unwrap();
    }
    heir.take(&leaver.parts());
    assert_eq!(heir.flows().len(), 8);
    assert_eq!(heir.lost(), 4);
}

/// A guest that goes must give away all that it has.
#[test]
fn no_flow_opens_while_new_ones_are_blocked() {
    // The second name is of before 1.0.
    for handler in ["rw.block_new_flows", "rw.hold"] {
        check_no_flow_opens(handler);
    }
}

fn check_no_flow_opens(handler: &str) {
    let mut nat = Nat::new("1024-2047", 100);
    let sent = nat.open(5).unwrap();
    let writes = [(handler, b"10".as_slice())];
    nat.router.write_handlers(&writes, nat.now_ns).unwrap();
    assert_eq!(nat.open(6), None);
    assert_eq!(nat.read("rw.mapping_failures", ""), "1");
    assert_eq!(nat.open(5).as_ref(), Some(&sent), "a known flow goes on");
    assert!(nat.answers(&sent, 5));
    nat.now_ns += 10 * SECOND_NS;
    assert!(nat.open(6).is_some(), "the time is over");
}

#[test]
fn what_is_no_part_or_state_changes_nothing() {
    let mut nat = Nat::new("1024-2047", 100);
    nat.open(5).unwrap();
    let before = nat.parts();
    for part in ["-1", "x", "0 1", "99999999999999999999999"] {
        let read = nat.router.read_handler("rw.state", part, nat.now_ns);
        assert!(read.is_err(), "{part}");
    }
    assert_eq!(nat.read("rw.state", "18446744073709551615"), "");
    let good = before[0].lines().nth(1).unwrap();
    for text in [
        "",
        "ip-rewriter 2\n",
        &format!("ip-rewriter 1\n{good}\nx\n"),
        &format!("ip-rewriter 1\n{good}\n9 17 0 0 0 1 0 1.1.1.1 1 1.1.1.2 2 1.1.1.1 1 1.1.1.2 2\n"),
    ] {
        let writes = [("rw.merge", text.as_bytes())];
        let refused = nat.router.write_handlers(&writes, nat.now_ns).unwrap_err();
        assert!(refused.to_string().contains("line "), "{text}: {refused}");
        assert_eq!(nat.parts(), before);
    }
}

#[test]
fn changes_are_no_longer_than_a_value_may_be() {
    let mut nat = Nat::new("1024-65535", 1000);
    assert_eq!(nat.read("rw.changes", "all"), "");
    (1..=300).for_each(|sport| drop(nat.open(sport)));
    let mut found = 0;
    loop {
        let changes = nat.read("rw.changes", &usize::MAX.to_string());
        assert!(changes.len() <= 4096, "{} bytes", changes.len());
        if changes.is_empty() {
            break;
        }
        found += changes.lines().count() - 1;
    }
    assert_eq!(found, 300);
}

/// A segment of 10.0.0.1:5000 to port 21 of the far host.
fn segment(flags: u8, seq: u32, text: &[u8]) -> Vec<u8> {
    let mut bytes = datagram([10, 0, 0, 1], 5000, FAR, 21);
    bytes.truncate(24);
    let length = (40 + text.len()) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[9] = 6;
    bytes.extend(seq.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend(text);
    bytes
}

/// FTP's command with a longer address moves the sequence numbers of its connection, which other guests take as well.
#[test]
fn a_flow_with_moved_numbers_goes_on_at_another_guest() {
    let config = "
        rw :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, drop);
        FromDevice(0) -> MarkIPHeader -> FTPPortMapper(rw, rw, 0) -> [0] rw [0] -> Queue -> ToDevice(1);
        FromDevice(1) -> MarkIPHeader -> [1] rw [1] -> Queue -> ToDevice(0);";
    let (mut nat, mut other) = (Nat::of(config, 1 << 16), Nat::of(config, 1 << 16));
    nat.pass(0, segment(2, 100, b"")).unwrap();
    nat.pass(0, segment(16, 101, b"PORT 10,0,0,1,200,200\r\n"));
    assert_eq!(nat.read("rw.changes", "all"), "");
    for (from, to) in [
        ("rw.state", "rw.state"),
        ("rw.state", "rw.merge"),
        ("rw.changes", "rw.merge"),
    ] {
        let param = if from == "rw.state" { "" } else { "65536" };
        let text = nat.read(from, param);
        assert!(text.contains(" 21 0/124:"), "{text}");
        let writes = [(to, text.as_bytes())];
        other.router.write_handlers(&writes, other.now_ns).unwrap();
        assert!(other.read("rw.tcp_table", "").contains(" seq "));
    }
}
