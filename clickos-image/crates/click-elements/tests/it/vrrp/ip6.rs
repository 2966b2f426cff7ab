// SPDX-License-Identifier: Apache-2.0
//! A pair whose networks have IPv6: advertisements, copies of flows and announcements go over it.
use super::{Member, NAT, World, config};

const VIRTUAL_MAC: [u8; 6] = [0, 0, 0x5e, 0, 2, 1];
/// All routers of VRRP (RFC 9568, section 5.1.2.2), and all nodes.
const ROUTERS: [u8; 6] = [0x33, 0x33, 0, 0, 0, 18];
const NODES: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
const NEXT_HEADER_AT: usize = 20;
const TARGET_AT: usize = 62;

/// A router of a pair that has the same flows, with other networks.
fn member(own: u8) -> Member {
    let (peer, priority) = (5 - own, if own == 2 { 200 } else { 100 });
    let text = config(NAT, own, priority, true);
    let (_, rest) = text.split_once("PRIORITY").unwrap();
    let sides = format!(
        "vrrp :: VRRP(1 fe80::{own} 2:0:0:0:0:{own} fe80::{peer} 2:0:0:0:0:{peer} fe80::1 2001:db8::1,
                      2 203.0.113.{own} 2:0:0:0:1:{own} - - 203.0.113.1 2001:db8::2, PRIORITY"
    );
    Member::of(sides + rest, own, own)
}

/// The frames of a network to a group, with a protocol.
fn heard(world: &World, side: usize, group: [u8; 6], protocol: u8) -> Vec<&Vec<u8>> {
    let frames = world.heard[side].iter();
    frames
        .filter(|frame| frame[..6] == group && frame[NEXT_HEADER_AT] == protocol)
        .collect()
}

#[test]
fn a_pair_of_ipv6_takes_over_with_its_flows() {
    let mut world = World::of(NAT, [member(2), member(3)]);
    world.virtual_macs[0] = VIRTUAL_MAC;
    assert_eq!(world.states(), ["active", "backup"]);
    for n in 0..2 {
        assert!(world.read(n, "vrrp.copies").starts_with("connected true"));
    }
    let port = world.open(7);
    for side in &mut world.heard {
        side.clear();
    }
    world.take_over();
    let sent = heard(&world, 0, ROUTERS, 112);
    assert!(sent.iter().all(|frame| frame[6..12] == VIRTUAL_MAC));
    let (count, hops) = (sent[0][57], sent[0][21]);
    assert_eq!((count, hops), (2, 255));
    let told = |side| {
        let frames = heard(&world, side, NODES, 58);
        let targets = frames
            .iter()
            .map(|frame| frame[TARGET_AT..TARGET_AT + 16].to_vec());
        targets.collect::<Vec<_>>()
    };
    let bytes = |ip: &str| ip.parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec();
    assert_eq!(told(0), [bytes("fe80::1"), bytes("2001:db8::1")]);
    assert_eq!(
        told(1),
        [bytes("2001:db8::2")],
        "it goes with those of IPv4"
    );
    assert_eq!(world.answers(port, 7), 1, "the flow goes on");
}
