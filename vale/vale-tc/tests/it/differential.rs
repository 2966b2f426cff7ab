// SPDX-License-Identifier: Apache-2.0
//! The programs judge random frames as valed's own code does, by the same documents.

use crate::machine::frames::{OWN_MAC, PAIR_MAC, Random};
use crate::machine::{self, World};
use clickos_offload::{Action, View, first};
use serde_json::{Value, json};
use vale_proto::{Direction, Mac};
use vale_tc::counter::{self, DROPS, Drop};
use vale_tc::policy::Policy;
use vale_tc::program::Programs;
use valed::frame::drop_reason::DropReason;
use valed::frame::headers::Ethernet;
use valed::frame::key::FilterKey;
use valed::policy::filter::{Filter, Why};
use valed::policy::guard::Guard;

const FRAMES: usize = 60_000;

fn policy(change: Value) -> Policy {
    let mut document = json!({
        "mac": Mac(OWN_MAC),
        "allowed": [
            {"ip": "10.0.0.5/32"}, {"ip": "172.16.0.0/20"}, {"ip": "2001:db8::5/128"},
            {"mac": Mac(PAIR_MAC), "ip": "10.0.0.9/32"},
        ],
    });
    for (key, value) in change.as_object().unwrap() {
        document[key] = value.clone();
    }
    Policy::parse(&document.to_string()).unwrap()
}

fn rules(texts: &[&str]) -> Value {
    let rules = texts
        .iter()
        .map(|text| text.parse::<vale_proto::Rule>().unwrap());
    json!(rules.collect::<Vec<_>>())
}

/// The counter that a frame from the guest moves, as valed judges it: none, a drop's or a rule's.
struct Oracle {
    guard: Guard,
    filter: Option<Filter>,
    policy: Policy,
    /// Errors about known connections.
    related: usize,
}

impl Oracle {
    fn new(policy: &Policy) -> Self {
        Self {
            guard: Guard::of(policy.port_security, policy.mac, &policy.allowed),
            filter: policy.rules.as_ref().map(|rules| Filter::new(rules)),
            policy: policy.clone(),
            related: 0,
        }
    }

    fn sent(&mut self, frame: &[u8], now: u64) -> Result<(), Drop> {
        let ethernet = Ethernet::parse(frame).ok_or(Drop::Malformed)?;
        if ethernet.is_link_control() {
            return Err(Drop::LinkControl);
        }
        self.guard
            .judge(&ethernet, frame)
            .map_err(|refusal| match refusal {
                DropReason::Malformed => Drop::Malformed,
                DropReason::Type => Drop::Type,
                DropReason::Spoof => Drop::Spoof,
                DropReason::Rogue => Drop::Rogue,
                DropReason::Hidden => Drop::Hidden,
            })?;
        self.admit(&ethernet, frame, Direction::Egress, now)
    }

    fn admit(&mut self, e: &Ethernet, frame: &[u8], to: Direction, now: u64) -> Result<(), Drop> {
        let Some(filter) = &mut self.filter else {
            return Ok(());
        };
        let key = FilterKey::parse(e, frame);
        let is_error = matches!(&key, FilterKey::Packet(packet) if packet.is_error());
        if is_error && matches!(filter.explain(key, to, now), Why::Related) {
            self.related += 1;
        }
        let admitted = filter.admits(&key, to, now);
        admitted.then_some(()).ok_or(Drop::Filter)
    }

    /// The verdict, and the number of the offloaded rule that gave it.
    fn received(&mut self, frame: &[u8], now: u64) -> (bool, Option<usize>) {
        let admitted = match Ethernet::parse(frame) {
            Some(e) => self.admit(&e, frame, Direction::Ingress, now).is_ok(),
            None => self.filter.is_none(),
        };
        if !admitted {
            return (false, None);
        }
        let rules: Vec<_> = self.policy.offload.rules().copied().collect();
        let view = View::of(frame, frame.len()).unwrap();
        let rule = first(&rules, &view);
        (rule.is_none_or(|n| rules[n].action == Action::Pass), rule)
    }
}

/// The drop that the program counted last.
fn moved(before: &[u64], after: &[u64]) -> Vec<usize> {
    let pairs = before.iter().zip(after).enumerate();
    pairs.filter(|(_, (a, b))| a != b).map(|(n, _)| n).collect()
}

/// Returns the number of errors that belonged to a connection.
fn compare(policy: &Policy, seed: u64) -> usize {
    let programs = Programs::of(policy).unwrap();
    let mut world = World::new(counter::count(policy));
    let mut oracle = Oracle::new(policy);
    let mut random = Random::new(seed);
    let mut passed = [0; 2];
    for n in 0..FRAMES {
        world.now += 1 + random.below(400_000_000) as u64;
        let from_guest = random.below(2) == 0;
        let frame = random.frame(from_guest);
        let before = world.counters.clone();
        let program = if from_guest {
            &programs.from_guest
        } else {
            &programs.to_guest
        };
        let found = machine::run(program, &mut world, &frame);
        let moved = moved(&before, &world.counters);
        let good = match from_guest {
            true => from(&mut oracle, &frame, world.now, found, &moved),
            false => to(&mut oracle, policy, &frame, world.now, found, &moved),
        };
        assert!(
            good,
            "frame {n}, from the guest {from_guest}: {found} {moved:?} {frame:02x?}"
        );
        passed[usize::from(from_guest)] += usize::from(found);
    }
    assert!(passed.iter().all(|n| *n > FRAMES / 50), "{passed:?}");
    oracle.related
}

fn from(oracle: &mut Oracle, frame: &[u8], now: u64, found: bool, moved: &[usize]) -> bool {
    let wanted = oracle.sent(frame, now);
    let is_tagged = frame[12..14] == [0x81, 0];
    match wanted {
        Ok(()) => found,
        Err(_) if is_tagged => !found,
        Err(drop) => !found && moved == [drop as usize],
    }
}

fn to(
    oracle: &mut Oracle,
    policy: &Policy,
    frame: &[u8],
    now: u64,
    found: bool,
    moved: &[usize],
) -> bool {
    let (wanted, rule) = oracle.received(frame, now);
    let counter = rule.map(|n| counter::first_offload(policy) + n);
    wanted == found && counter.is_none_or(|n| moved.contains(&n))
}

#[test]
fn port_security_agrees_with_valeds() {
    compare(&policy(json!({})), 1);
    compare(&policy(json!({"rules": [], "port_security": true})), 2);
}

#[test]
fn filters_agree_with_valeds() {
    let rules = rules(&[
        "egress,tcp,80-90",
        "egress,udp,53,192.0.2.0/24",
        "egress,icmp,8",
        "egress,ipv6,icmpv6",
        "egress,ipv6,udp,2001:db9::/32",
        "ingress,udp,5000,10.0.0.0/16",
        "ingress,tcp,443,2001:db8::/64",
        "ingress,ipv4,tcp",
        "egress,ipv4,sctp,53-80",
        "egress,udplite,5000,stateless",
        "ingress,dccp,443,stateless",
        "ingress,icmp,3,code=1",
        "ingress,ipv6,icmpv6,1,code=0,stateless",
    ]);
    compare(&policy(json!({"rules": rules})), 3);
    compare(
        &policy(json!({"rules": rules, "port_security": false, "mac": null, "allowed": []})),
        4,
    );
}

#[test]
fn errors_about_connections_agree_with_valeds() {
    let rules = rules(&["egress", "ingress,udp"]);
    let related = compare(&policy(json!({"rules": rules})), 7);
    assert!(related > 100, "{related}");
}

#[test]
fn offloaded_rules_agree_with_valeds() {
    let tables = json!({
        "operator": ["pass src 10.0.0.7 proto 6", "drop proto 17 dport 53"],
        "guest": [
            "drop ip6 proto 6 sport 80-443",
            "drop src 2001:db9::/33 proto 17",
            "drop ether-type 88cc",
            "drop tos 16",
            "drop src 10.0.0.0/8 proto 1",
            "pass ip6",
        ],
    });
    compare(&policy(json!({"offload": tables})), 5);
    compare(
        &policy(json!({"offload": tables, "rules": rules(&["ingress", "egress"])})),
        6,
    );
}

#[test]
fn an_old_connection_ends() {
    let policy = policy(json!({"rules": rules(&["egress"])}));
    let programs = Programs::of(&policy).unwrap();
    let mut world = World::new(counter::count(&policy));
    let asks = frame([10, 0, 0, 5], [192, 0, 2, 1], [5000, 53]);
    let answers = frame([192, 0, 2, 1], [10, 0, 0, 5], [53, 5000]);
    assert!(!machine::run(&programs.to_guest, &mut world, &answers));
    assert!(machine::run(&programs.from_guest, &mut world, &asks));
    world.now += 119_000_000_000;
    assert!(machine::run(&programs.to_guest, &mut world, &answers));
    world.now += 121_000_000_000;
    assert!(!machine::run(&programs.to_guest, &mut world, &answers));
    assert_eq!(world.counters[Drop::Filter as usize], 2);
    assert_eq!(world.counters[DROPS.len()], 1);
}

fn frame(source: [u8; 4], destination: [u8; 4], ports: [u16; 2]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2];
    frame.extend(OWN_MAC);
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(source.into_iter().chain(destination));
    frame.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    frame.extend([0, 8, 0, 0]);
    frame
}
