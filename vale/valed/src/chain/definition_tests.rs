// SPDX-License-Identifier: Apache-2.0
//! Definitions of a chain over two hosts come, change and go.
use super::*;

/// Flows that were there before spread by weight too.
#[test]
fn a_new_chain_begins_when_all_hosts_know_it() {
    let mut hosts = Hosts::new(2);
    let pairs = json!({"pairs": [at(0, 1), at(1, 3)], "transparent": true});
    let received = |hosts: &mut Hosts| hosts.nets[0].b.received().len();
    assert_eq!((hosts.flow(), received(&mut hosts)), ([0, 0], 40));
    hosts.set(0, vec![pairs.clone()], &json!({}));
    hosts.tick(3);
    let info = hosts.nets[0].info();
    assert!(info.is_changing && !info.hosts[0].is_ready);
    assert_eq!((hosts.flow(), received(&mut hosts)), ([0, 0], 40));
    hosts.chain(vec![pairs], json!({}));
    assert!(!hosts.nets[0].info().is_changing);
    let passed = hosts.flow();
    assert_eq!((passed[0] + passed[1], received(&mut hosts)), (40, 40));
    assert!(passed[0] > 0 && passed[1] > passed[0], "{passed:?}");
}

/// The other hop lies before or behind theirs, or is not there.
#[test]
fn flows_keep_their_instances_while_hops_come_and_go() {
    let mut hosts = Hosts::new(4);
    let pairs = json!({"pairs": [at(0, 1), at(1, 3)], "transparent": true});
    hosts.chain(vec![wire(3), pairs.clone()], json!({}));
    let passed = |hosts: &mut Hosts, first: bool| {
        hosts.send_flows();
        if first {
            hosts.relay(3, true);
        }
        let passed = [0, 1].map(|n| hosts.relay(n, true));
        hosts.relay(3, true);
        assert_eq!(hosts.nets[0].b.received().len(), 40);
        passed
    };
    let before = passed(&mut hosts, true);
    for (first, hops) in [
        (false, vec![pairs.clone()]),
        (true, vec![wire(3), pairs.clone()]),
        (false, vec![pairs.clone(), wire(3)]),
    ] {
        hosts.chain(hops, json!({}));
        assert!(hosts.nets.iter().all(|net| !net.info().is_changing));
        assert_eq!(passed(&mut hosts, first), before);
    }
}

/// The hosts get the definitions at other times, and exchange states in between or not.
#[test]
fn flows_keep_their_instances_whenever_the_hosts_get_new_definitions() {
    for seed in 1..40u64 {
        let mut hosts = Hosts::new(4);
        let pairs = json!({"pairs": [at(0, 1), at(1, 3)], "transparent": true});
        let definitions = [
            vec![wire(3), pairs.clone()],
            vec![pairs.clone()],
            vec![wire(3), pairs.clone()],
            vec![pairs.clone(), wire(3)],
            vec![pairs.clone()],
        ];
        hosts.chain(definitions[0].clone(), json!({}));
        let passed = |hosts: &mut Hosts| {
            hosts.send_flows();
            let mut passed = [0, 0];
            for _ in 0..64 {
                let others = hosts.relay(3, true);
                let now = [0, 1].map(|n| hosts.relay(n, true));
                passed = [passed[0] + now[0], passed[1] + now[1]];
                if others + now[0] + now[1] == 0 {
                    break;
                }
            }
            (passed, hosts.nets[0].b.received().len())
        };
        let before = passed(&mut hosts);
        let mut random = seed;
        let mut next = |n: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % n
        };
        let (mut given, mut log) = ([0, 0], String::new());
        while given != [4, 4] {
            let host = next(2) as usize;
            match next(3) {
                0 if given[host] < 4 && given[host] <= given[1 - host] => {
                    given[host] += 1;
                    hosts.set(host, definitions[given[host]].clone(), &json!({}));
                    log += &format!("set {host} {}; ", given[host]);
                }
                1 => {
                    hosts.nets[host].tick(hosts.now);
                    hosts.round();
                    log += &format!("tick {host}; ");
                }
                _ => {
                    log += "send; ";
                    let (_, received) = passed(&mut hosts);
                    assert_eq!(received, 40, "seed {seed}: {log}");
                }
            }
        }
        hosts.tick(3);
        assert_eq!(passed(&mut hosts), before, "seed {seed}: {log}");
    }
}

/// Its packets neither bypass it nor go to another instance.
#[test]
fn a_restored_chain_drops_packets_until_the_other_hosts_know_it() {
    let mut hosts = Hosts::new(2);
    let pairs = vec![json!({"pairs": [at(0, 1), at(1, 3)], "transparent": true})];
    hosts.chain(pairs.clone(), json!({}));
    let before = hosts.flow();
    assert_eq!(hosts.nets[0].b.received().len(), 40);
    hosts.forget_chain(0);
    hosts.set(0, pairs.clone(), &json!({"restored": true}));
    assert_eq!(hosts.flow(), [0, 0]);
    assert_eq!(hosts.nets[0].b.received().len(), 0);
    assert_eq!(hosts.nets[0].info().counters.dropped, 40);
    // An agent that starts again sets it without the word.
    hosts.set(0, pairs.clone(), &json!({}));
    assert_eq!(hosts.flow(), [0, 0]);
    assert_eq!(hosts.nets[0].b.received().len(), 0);
    hosts.tick(2);
    assert_eq!(hosts.flow(), before);
    assert_eq!(hosts.nets[0].b.received().len(), 40);
    // The other host is gone, so the rest continues without it.
    hosts.forget_chain(0);
    hosts.forget_chain(1);
    hosts.set(0, pairs, &json!({"restored": true}));
    assert_eq!(hosts.flow(), [0, 0]);
    hosts.pass(SILENT);
    hosts.nets[0].tick(hosts.now);
    assert_eq!(hosts.flow(), [40, 0]);
}

#[test]
fn hops_come_and_go_on_both_hosts_without_loss() {
    let mut hosts = Hosts::new(4);
    let orders: [&[usize]; 6] = [
        &[0, 1],
        &[0, 3, 1],
        &[3, 0, 1, 2],
        &[1, 2],
        &[2, 1, 3],
        &[2, 1],
    ];
    let mut number = 0;
    hosts.chain(orders[0].iter().map(|n| wire(*n)).collect(), json!({}));
    for round in 0..24 {
        let hops: Vec<_> = orders[round % orders.len()]
            .iter()
            .map(|n| wire(*n))
            .collect();
        let first = number + 1;
        let mut send = |hosts: &mut Hosts| {
            for _ in 0..3 {
                number += 1;
                hosts.nets[0].a.send(&there(number));
            }
            hosts.round();
        };
        // Packets are inside of hops of both hosts at each step of the change, in both orders.
        send(&mut hosts);
        hosts.set(round % 2, hops.clone(), &json!({}));
        hosts.relay(0, true);
        send(&mut hosts);
        hosts.tick(1);
        hosts.relay(1, true);
        send(&mut hosts);
        hosts.set(1 - round % 2, hops, &json!({}));
        hosts.relay(3, true);
        send(&mut hosts);
        hosts.tick(1);
        hosts.relay(2, true);
        send(&mut hosts);
        hosts.tick(1);
        for hop in [0, 1, 2, 3].repeat(5) {
            hosts.relay(hop, true);
        }
        hosts.tick(3);
        hosts.pass(SILENT * 2);
        hosts.tick(3);
        hosts.now = Instant::now();
        let mut arrived: Vec<_> = hosts.nets[0]
            .b
            .received()
            .iter()
            .map(|f| number_of(f))
            .collect();
        arrived.sort_unstable();
        let sent: Vec<_> = (first..=number).collect();
        assert_eq!(arrived, sent, "round {round}");
        let live = hosts.nets[0].info();
        assert!(hosts.nets.iter().all(|net| !net.info().is_changing));
        assert_eq!(live.set.hops.len(), orders[round % orders.len()].len());
    }
}

/// An operator inserts a hop and takes it out at once.
#[test]
fn a_definition_that_comes_back_waits_and_knows_what_lives() {
    let mut hosts = Hosts::new(2);
    let both = vec![wire(0), wire(1)];
    hosts.chain(both.clone(), json!({}));
    let version = hosts.nets[0].bench.switch.chains.version(7);
    hosts.chain(vec![wire(1)], json!({}));
    hosts.set(0, both.clone(), &json!({}));
    hosts.tick(3);
    assert!(hosts.nets[0].info().is_changing, "the other host lacks it");
    hosts.nets[0].a.send(&there(1));
    hosts.round();
    assert_eq!((hosts.relay(0, true), hosts.relay(1, true)), (0, 1));
    // A packet of its first time comes late.
    let label = Label {
        number: 7,
        reverse: false,
        index: 253,
        ttl: 62,
        version,
    };
    let late = [&crate::frame::nsh::frame_headers(&label)[..], &there(2)].concat();
    hosts.inject(HOSTS[1], &late);
    hosts.round();
    let info = hosts.nets[0].info();
    assert_eq!((info.is_changing, info.live_pairs), (false, vec![1, 1]));
    hosts.nets[0].a.send(&there(3));
    hosts.round();
    assert_eq!((hosts.relay(0, true), hosts.relay(1, true)), (1, 1));
    assert_eq!(hosts.nets[0].b.received(), [1, 2, 3].map(there));
    hosts.chain(both, json!({}));
    assert!(hosts.nets.iter().all(|net| !net.info().is_changing));
}

/// The hop that got the packet may answer at another worker than the one of the path.
#[test]
fn a_packet_by_a_definition_that_waits_puts_it_in_force_at_all_workers() {
    let mut hosts = Hosts::new(2);
    hosts.chain(vec![wire(0)], json!({}));
    let ports = &hosts.nets[0].bench.switch.ports;
    let set = |hops: &[usize]| {
        let hops = hops.iter().map(|n| wire(*n)).collect();
        Hosts::definition(0, hops, &json!({}))
    };
    let paths = Paths::at(free_port(&HOSTS));
    let (_port, link) = paths.open(&set(&[0]).path.unwrap()).unwrap();
    let mut workers = [Chains::default(), Chains::default()];
    let define = |workers: &mut [Chains], set: &ChainSet| {
        let definition = Definition::new(set.clone(), Some(link.clone()));
        let chains = workers.iter_mut();
        chains.for_each(|chains| chains.set(definition.clone(), ports).unwrap());
    };
    // The last definition is the second one again, which has had packets.
    for hops in [&[0][..], &[1], &[0, 1], &[1]] {
        let set = set(hops);
        define(&mut workers, &set);
        let info = |chains: &Chains| chains.infos().next().unwrap();
        assert!(workers.iter().all(|chains| info(chains).is_changing));
        assert!(!workers.iter().any(Chains::is_due), "{hops:?}");
        let mut other = [Chains::default()];
        define(&mut other, &set);
        let label = Label {
            number: 7,
            reverse: false,
            index: 255,
            ttl: 63,
            version: other[0].version(7),
        };
        let (packet, [first, second]) = (there(1), &mut workers);
        let ethernet = Ethernet::parse(&packet).unwrap();
        let step = first.step(ports, 0, Some(label), &ethernet, &packet);
        first.count(step.unwrap(), packet.len(), 1);
        for chains in [first, second] {
            assert!(chains.is_due(), "{hops:?}");
            chains.promote_due(ports);
            let info = info(chains);
            assert!(!info.is_changing && !chains.is_due(), "{hops:?}");
            assert_eq!(info.set.hops.len(), hops.len());
        }
    }
}

fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[42..46].try_into().unwrap())
}
