// SPDX-License-Identifier: Apache-2.0
//! Whatever senders do, no packet costs more than a bound, nothing panics, and no memory stays.
use proptest::prelude::*;

use super::bed::{Bed, from_client, from_server, inspector};
use super::packets::{FIN, RST, SYN, Segment, URG, fragment, link, udp};

const RULES: &str = r#"alert tcp any any -> any any (content:"aa"; sid:1;)
drop tcp any any -> any any (content:"ab"; content:"ba"; distance:0; within:9; pcre:"/a+b+a/R"; sid:2;)
alert ip any any -> any any (content:"b"; offset:1; depth:9; content:!"bbb"; sid:3;)
pass tcp any any -> any 81 (content:"bab"; flowbits:set,x; sid:4;)
alert udp any any -> any any (content:"a"; threshold:type both, track by_src, count 2, seconds 1; sid:5;)"#;

/// Segments of a few letters near each other.
fn segment() -> impl Strategy<Value = Segment> {
    let data = prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], 0..30);
    let flags = prop_oneof![8 => Just(0u8), 1 => Just(SYN), 1 => Just(FIN), 1 => Just(RST), 1 => Just(URG), 1 => any::<u8>()];
    (any::<bool>(), 0u32..60, 0u32..60, data, flags, any::<u8>()).prop_map(
        |(client, at, has, data, flags, odd)| {
            let mut made = if client {
                from_client(at, &data)
            } else {
                from_server(at, has, &data)
            };
            made.flags = if flags == SYN {
                SYN
            } else {
                made.flags | flags
            };
            made.is_broken = odd == 0;
            made.urgent = u16::from(odd & 7);
            made
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_segments_leave_nothing_behind(segments in prop::collection::vec((segment(), 0usize..3), 1..60), mode in 0usize..3) {
        let action = ["rule", "drop", "alert"][mode];
        let mut bed = Bed::new(&inspector(&format!("ACTION {action}, MEMORY 20000, STREAM 64, WINDOW 16, POLICY last")));
        bed.write("ips.rules", RULES);
        bed.open();
        for (segment, cut) in segments {
            let side = usize::from(!segment.from_client);
            let packet = segment.ip();
            match cut {
                0 => { bed.send(side, link(&fragment(&packet, 0, 24, None))); }
                1 => { bed.send(side, link(&fragment(&packet, 24, 2000, None))); }
                _ => { bed.send(side, link(&packet)); }
            }
            prop_assert!(bed.count("ips.memory") <= 20_000);
        }
        bed.write("ips.clear", "");
        prop_assert_eq!(bed.count("ips.memory"), 0);
        bed.wait(31);
        prop_assert_eq!(bed.count("ips.held"), 0);
    }

    #[test]
    fn any_rules_are_taken_or_refused(text in "[a-z0-9:;,\"|!$\\[\\]()/ .>\\\\-]{0,80}", cut in 0usize..400) {
        let mut bed = Bed::new(&inspector(""));
        let line = RULES.lines().nth(cut % 5).unwrap();
        let at = cut % line.len();
        for rules in [format!("{}{text}{}", &line[..at], &line[at..]), format!("{}{text}", &line[..at])] {
            let _ = bed.router.write_handlers(&[("ips.rules", rules.as_bytes())], 1);
        }
    }
}

#[test]
fn fragments_that_never_are_a_packet_wait_within_bounds() {
    let mut bed = Bed::new(&inspector(""));
    let packet = udp(1, 2, &[b'x'; 100]);
    for id in 0..2000u16 {
        let mut packet = packet.clone();
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        for start in [0, 16, 32, 48] {
            bed.send(0, link(&fragment(&packet, start, start + 8, None)));
            assert!(bed.count("ips.held") <= 256);
        }
    }
    bed.wait(31);
    assert_eq!(bed.count("ips.held"), 0);
    assert_eq!(bed.send(0, link(&udp(1, 2, b"x"))).len(), 1);
}

#[test]
fn rules_that_cost_too_much_let_nothing_pass_that_nobody_read() {
    // each byte of each content stands everywhere, so that each search finds all
    let content = format!("content:\"{}\"; distance:0; ", "a".repeat(200)).repeat(14);
    let rules = (0..40).map(|n| format!("drop tcp any any -> any any ({content} content:\"b{n:03}\"; distance:0; fast_pattern; sid:{};)", n + 1));
    let mut bed = Bed::new(&inspector(""));
    bed.write("ips.rules", &rules.collect::<Vec<_>>().join("\n"));
    bed.open();
    let names: String = (0..40).map(|n| format!("b{n:03}")).collect();
    let (mut at, mut passed) = (0, 0);
    for _ in 0..30 {
        let data = "a".repeat(1200) + &names;
        passed += u32::from(bed.client_sends(at, &data));
        at += data.len() as u32;
        bed.passes(&from_server(0, at, b""));
    }
    assert!(passed < 30, "{passed}");
    assert_eq!(bed.drops("too much work"), 1);
    assert!(bed.drops("flow of a rule") > 0);
    assert!(bed.read("ips.alerts").contains("too much work"));
    // another connection has work of its own
    assert_eq!(bed.send(0, link(&udp(1, 2, b"x"))).len(), 1);
}
