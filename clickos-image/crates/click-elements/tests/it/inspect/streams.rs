// SPDX-License-Identifier: Apache-2.0
//! Streams of connections: both directions, other rules while they live, and what their memory may be.
use super::bed::{Bed, from_client, from_server, inspector};
use super::packets::{ACK, FIN, RST, SYN, Segment};

const SECRET: &str = r#"drop tcp any any -> any any (msg:"x"; content:"secret"; sid:1;)"#;

#[test]
fn both_directions_are_read_and_their_words_differ() {
    let mut bed = Bed::with_rules(
        r#"drop tcp any any -> any 80 (content:"ask"; flow:established,to_server; sid:1;)
alert tcp any 80 -> any any (content:"tell"; flow:to_client; sid:2;)"#,
    );
    bed.open();
    assert!(bed.client_sends(0, "tel") && bed.client_sends(3, "l me"));
    assert!(bed.server_sends(0, "as") && bed.server_sends(2, "k tel"));
    assert_eq!(bed.count("ips.alert_count"), 0);
    assert!(bed.server_sends(7, "l"));
    assert_eq!(bed.count("ips.alert_count"), 1);
    assert!(bed.client_sends(7, " as"));
    assert!(!bed.client_sends(10, "k"));
    assert!(
        !bed.client_sends(10, "x") && !bed.server_sends(8, "any"),
        "the flow is dropped"
    );
    assert_eq!(bed.drops("rule"), 1);
    assert_eq!(bed.drops("flow of a rule"), 2);
}

#[test]
fn other_rules_lose_no_stream() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    assert!(bed.client_sends(0, "new se"));
    let refused = bed.router.write_handlers(&[("ips.rules", b"drop tcp")], 2);
    assert!(refused.is_err());
    bed.write(
        "ips.rules",
        &format!(
            "{SECRET}\n{}",
            SECRET.replace("secret", "other").replace("sid:1", "sid:2")
        ),
    );
    assert!(
        !bed.client_sends(6, "cret"),
        "a text that began under the rules before"
    );
    // a swap keeps rules and streams
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    assert!(bed.client_sends(0, "sec"));
    bed.swap(&inspector("CAPACITY 9"));
    assert_eq!(bed.count("ips.capacity"), 9);
    assert!(!bed.client_sends(3, "ret"));
}

#[test]
fn what_does_not_belong_to_the_connection_changes_nothing() {
    let mut bed = Bed::with_rules(SECRET);
    assert!(!bed.client_sends(0, "early"), "without a connection");
    bed.open();
    let mut far = from_client(100_000, b"xx");
    assert!(!bed.passes(&far));
    far = from_client(0, b"sec");
    far.is_broken = true;
    assert!(!bed.passes(&far));
    assert!(
        !bed.passes(&Segment {
            ack: far.ack + 500,
            ..from_client(0, b"sec")
        }),
        "nobody sent that much"
    );
    assert!(bed.client_sends(0, "SEC"));
    assert!(bed.client_sends(3, "ret"));
    let foreign = from_server(0, 0, b"secret");
    assert!(
        bed.send(0, foreign.frame()).is_empty(),
        "the server is on the other side"
    );
    let reasons =
        ["no connection", "beyond the window", "wrong checksum"].map(|reason| bed.drops(reason));
    assert_eq!(reasons, [2, 2, 1]);
}

#[test]
fn the_policy_says_which_bytes_count_where_nothing_is_dropped() {
    for (policy, told) in [("first", 1), ("last", 0)] {
        let mut bed = Bed::new(&inspector(&format!("POLICY {policy}, ACTION alert")));
        bed.write("ips.rules", SECRET);
        bed.open();
        assert!(
            bed.client_sends(3, "ret") && bed.client_sends(3, "XXX") && bed.client_sends(0, "sec")
        );
        let alerts = bed.read("ips.alerts");
        let of_rule = alerts.matches("\"signature_id\":1,").count();
        let of_other = alerts.matches("other data sent again").count();
        assert_eq!((of_rule, of_other), (told, 1), "{policy}: {alerts}");
    }
}

#[test]
fn a_connection_ends_and_another_one_begins_with_the_same_ports() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    assert!(bed.client_sends(0, "sec"));
    let fin = |segment: Segment| Segment {
        flags: FIN | ACK,
        ..segment
    };
    assert!(bed.passes(&fin(from_client(3, b""))));
    assert!(bed.passes(&fin(from_server(0, 4, b""))));
    bed.open();
    assert!(bed.client_sends(0, "ret"));
    assert_eq!(bed.count("ips.table_size"), 1);
    // one that is reset is still read
    assert!(bed.passes(&Segment {
        flags: RST | ACK,
        ..from_client(3, b"")
    }));
    assert!(bed.client_sends(3, " sec") && !bed.client_sends(7, "ret"));
}

#[test]
fn connections_from_before_are_read_only_if_asked() {
    for (midstream, passes) in [("false", false), ("true", true)] {
        let mut bed = Bed::new(&inspector(&format!("MIDSTREAM {midstream}")));
        bed.write("ips.rules", SECRET);
        assert_eq!(bed.client_sends(0, "sec"), passes);
        assert_eq!(bed.server_sends(0, "hello"), passes);
        assert!(!bed.client_sends(3, "ret"));
    }
}

#[test]
fn memory_of_streams_is_bounded_and_silent_flows_go_first() {
    let mut bed = Bed::new(&inspector("MEMORY 40000, CAPACITY 100"));
    bed.write(
        "ips.rules",
        &format!(
            "{SECRET}\n{}",
            r#"drop tcp any any -> any any (content:"a"; content:"b"; sid:2;)"#
        ),
    );
    let mut open = |port: u16| {
        let change = |segment: Segment| Segment {
            ports: [port, 80],
            ..segment
        };
        let first = super::bed::CLIENT_SEQ;
        let syn = change(Segment::new(true, SYN, first, 0, b""));
        let answer = change(Segment::new(
            false,
            SYN | ACK,
            super::bed::SERVER_SEQ,
            first.wrapping_add(1),
            b"",
        ));
        let data = change(from_client(0, &[b'x'; 1400]));
        let passes = [syn, answer, data]
            .iter()
            .all(|segment| bed.passes(segment));
        assert!(bed.count("ips.memory") <= 40_000);
        (passes, bed.count("ips.table_size"))
    };
    let filled: Vec<bool> = (1..60).map(|port| open(port).0).collect();
    assert!(filled[0] && !filled[58], "{filled:?}");
    let held = filled.iter().filter(|passes| **passes).count();
    assert!(held > 10, "{held}");
    let mut bed = Bed::new(&inspector("CAPACITY 2"));
    let mut open = |port: u16, seconds| {
        bed.wait(seconds);
        handshake(port).iter().all(|segment| bed.passes(segment))
    };
    assert!(
        open(1, 0) && open(2, 0) && !open(3, 1),
        "open connections are guaranteed for a time"
    );
    assert!(open(4, 6));
    // those that are not open are forgotten for others immediately
    let mut bed = Bed::new(&inspector("CAPACITY 2"));
    assert!((1..9).all(|port| bed.passes(&handshake(port)[0])));
    assert_eq!(bed.count("ips.table_size"), 2);
}

/// The packets that open a connection of a port.
fn handshake(port: u16) -> [Segment; 2] {
    let first = super::bed::CLIENT_SEQ;
    let answer = (SYN | ACK, super::bed::SERVER_SEQ, first.wrapping_add(1));
    [
        Segment::new(true, SYN, first, 0, b""),
        Segment::new(false, answer.0, answer.1, answer.2, b""),
    ]
    .map(|segment| Segment {
        ports: [port, 80],
        ..segment
    })
}

#[test]
fn hosts_with_the_same_addresses_in_two_networks_have_flows_of_their_own() {
    let mut bed = Bed::new(&super::bed::package("ips", ""));
    bed.write("ips.rules", SECRET);
    let within = |vlan: u8, segment: &Segment| {
        super::packets::around(&[0x81, 0, 0, vlan, 8, 0], &segment.ip())
    };
    let mut sends = |vlan: u8, segment: &Segment| {
        let side = usize::from(!segment.from_client);
        bed.send(side, within(vlan, segment)).len() == 1
    };
    for segment in handshake(1000) {
        assert!(sends(7, &segment) && sends(8, &segment));
    }
    // a friend in the other network says that it has what the server has not
    assert!(sends(8, &from_client(0, b"harmless")));
    assert!(sends(8, &from_server(0, 8, b"")));
    assert!(sends(7, &from_client(0, b"sec")) && !sends(7, &from_client(3, b"ret")));
    // a tag with a priority only is no other network
    assert!(bed.send(0, handshake(9)[0].frame()).len() == 1);
    assert!(bed.send(1, within(0, &handshake(9)[1])).len() == 1);
}

#[test]
fn what_waits_in_a_stream_is_bounded() {
    let mut bed = Bed::new(&inspector("STREAM 4096, WINDOW 1"));
    bed.write("ips.rules", SECRET);
    bed.open();
    let part = "y".repeat(1000);
    let passed = (1..10)
        .filter(|n| bed.client_sends(n * 1000, &part))
        .count();
    assert_eq!(passed, 3);
    assert!(bed.client_sends(0, &part), "the hole");
    assert!(
        !bed.client_sends(4000, &part),
        "not before it is acknowledged"
    );
    bed.server_has(4000);
    assert!(bed.client_sends(4000, &part));
}

#[test]
fn windows_offer_no_more_than_there_is_room_for() {
    let sum = |packet: &[u8]| {
        let sum = click_wire::checksum::add(0, &packet[12..20]) + 6 + packet[20..].len() as u64;
        click_wire::checksum::finish(click_wire::checksum::add(sum, &packet[20..]))
    };
    for (arguments, want) in [
        ("STREAM 4096", 4096),
        ("", 0xf000),
        ("STREAM 4096, ACTION alert", 0xf000),
    ] {
        let mut bed = Bed::new(&inspector(arguments));
        bed.open();
        let passed = bed.send(1, from_server(0, 0, b"").frame());
        let packet = &passed[0][super::packets::LINK..];
        assert_eq!(
            u16::from_be_bytes([packet[34], packet[35]]),
            want,
            "{arguments}"
        );
        assert_eq!(sum(packet), 0, "{arguments}");
    }
}

#[test]
fn the_newest_alerts_are_read_where_not_all_fit() {
    let limits = click_core::Limits {
        answer_bytes: 2000,
        ..click_core::Limits::default()
    };
    let mut bed = Bed::within(&inspector(""), limits);
    bed.write(
        "ips.rules",
        r#"alert udp any any -> any any (content:"x"; sid:1;)"#,
    );
    for port in 1..=100 {
        bed.send(0, super::packets::link(&super::packets::udp(port, 9, b"x")));
    }
    let text = bed.read("ips.alerts");
    let last = text.lines().last().unwrap();
    assert!(text.len() <= 2000 && text.lines().count() > 3, "{text}");
    assert!(last.contains("\"src_port\":100,"), "{last}");
}

#[test]
fn a_row_of_segments_behind_a_hole_is_one_piece() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    let passed = (1..=200).filter(|n| bed.client_sends(*n, "x")).count();
    assert_eq!(passed, 200);
    assert!(bed.client_sends(300, "x"));
    let spread = (1..200)
        .filter(|n| bed.client_sends(300 + 2 * n, "x"))
        .count();
    assert_eq!(spread, 62, "pieces are bounded");
    assert!(bed.client_sends(0, "x"));
    bed.server_has(201);
    assert_eq!(bed.drops("table full"), 137);
}
