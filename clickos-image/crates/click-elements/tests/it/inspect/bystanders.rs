// SPDX-License-Identifier: Apache-2.0
//! Who can guess a number within a window, or opens connections of its own, ends no connection of others.
use super::bed::{Bed, CLIENT_SEQ, SERVER_SEQ, from_client, from_server, inspector, package};
use super::packets::{ACK, FIN, LINK, RST, SYN, Segment, around, fill_checksum, link, udp};

const SECRET: &str = r#"drop tcp any any -> any any (msg:"x"; content:"secret"; sid:1;)"#;

#[test]
fn data_that_acknowledges_nothing_is_no_data() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    let forged = Segment {
        flags: FIN,
        ack: 0,
        ..from_client(4, b"XXXX")
    };
    assert!(!bed.passes(&forged));
    assert!(bed.client_sends(0, "honest text"));
}

#[test]
fn a_forged_reset_ends_no_connection() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    let reset = |at| Segment {
        flags: RST,
        ..from_client(at, b"")
    };
    let syn = Segment::new(true, SYN, CLIENT_SEQ.wrapping_add(9000), 0, b"");
    for at in [5, 40_000, 0] {
        assert!(bed.passes(&reset(at)) && bed.passes(&syn), "{at}");
        assert!(bed.server_sends(0, "still here"), "{at}");
    }
    assert!(bed.client_sends(0, "sec") && !bed.client_sends(3, "ret"));
}

#[test]
fn a_forged_reset_does_not_shorten_the_life_of_a_silent_connection() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    assert!(bed.passes(&Segment {
        flags: RST,
        ..from_client(40_000, b"")
    }));
    bed.wait(1000);
    assert!(bed.server_sends(0, "still here"));
}

#[test]
fn a_connection_instead_of_one_that_was_reset_is_new() {
    let rules = r#"alert tcp any any -> any any (content:"mark"; flowbits:set,a; sid:1;)
drop tcp any any -> any any (content:"text"; flowbits:isset,a; sid:2;)
pass tcp any any -> any any (content:"trusted"; sid:3;)"#;
    for first in ["mark", "trusted"] {
        let mut bed = Bed::with_rules(rules);
        bed.open();
        assert!(bed.client_sends(0, first));
        let reset = Segment {
            flags: RST,
            ..from_client(first.len() as u32, b"")
        };
        assert!(bed.passes(&reset));
        // the same ports, other numbers
        let at = CLIENT_SEQ.wrapping_add(100_000);
        let mine = |data: &[u8], place: u32| {
            let seq = at.wrapping_add(1 + place);
            Segment::new(true, ACK, seq, SERVER_SEQ + 50_001, data)
        };
        let answer = Segment::new(
            false,
            SYN | ACK,
            SERVER_SEQ + 50_000,
            at.wrapping_add(1),
            b"",
        );
        for segment in [
            Segment::new(true, SYN, at, 0, b""),
            answer,
            mine(b"", 0),
            mine(b"text", 0),
        ] {
            assert!(bed.passes(&segment), "{first} {segment:?}");
        }
        assert!(!bed.passes(&mine(b"mark", 4)), "{first}");
    }
}

#[test]
fn a_server_that_has_started_again_may_refuse() {
    let mut bed = Bed::with_rules(SECRET);
    bed.open();
    let at = CLIENT_SEQ.wrapping_add(100_000);
    assert!(bed.passes(&Segment::new(true, SYN, at, 0, b"")));
    let refusal = Segment::new(false, RST | ACK, 0, at.wrapping_add(1), b"");
    assert!(bed.passes(&refusal));
}

#[test]
fn no_host_takes_the_memory_of_all_streams() {
    let mut bed = Bed::new(&inspector("MEMORY 1000000, STREAM 65535"));
    bed.write("ips.rules", SECRET);
    let of = |port: u16, segment: Segment| Segment {
        ports: [port, 80],
        ..segment
    };
    let open = |bed: &mut Bed, port: u16| {
        let syn = Segment::new(true, SYN, CLIENT_SEQ, 0, b"");
        let ack = CLIENT_SEQ.wrapping_add(1);
        let answer = Segment::new(false, SYN | ACK, SERVER_SEQ, ack, b"");
        bed.passes(&of(port, syn)) && bed.passes(&of(port, answer))
    };
    // bytes with a hole in front of them, which no receiver acknowledges
    for port in 1..40 {
        assert!(open(&mut bed, port));
        for n in 1..40 {
            bed.passes(&of(port, from_client(n * 1400, &[b'x'; 1400])));
        }
    }
    for n in 0..40 {
        assert!(open(&mut bed, 1000 + n));
        assert!(bed.passes(&of(1000 + n, from_client(0, &[b'y'; 1400]))));
        assert!(bed.passes(&of(1000 + n, from_server(0, 1400, b""))));
    }
    assert!(bed.count("ips.memory") <= 1_000_000);
    // those that took little are still there
    assert!(bed.passes(&of(1000, from_client(1400, b"more"))));
}

/// The segments that open a connection.
fn handshake() -> [Segment; 3] {
    let ack = CLIENT_SEQ.wrapping_add(1);
    [
        Segment::new(true, SYN, CLIENT_SEQ, 0, b""),
        Segment::new(false, SYN | ACK, SERVER_SEQ, ack, b""),
        Segment::new(true, ACK, ack, SERVER_SEQ + 1, b""),
    ]
}

/// Opens a connection of a host; true if it is open.
fn open(bed: &mut Bed, host: u8, port: u16) -> bool {
    handshake().into_iter().all(|segment| {
        bed.passes(&Segment {
            client: [10, 0, 1, host],
            ports: [port, 80],
            ..segment
        })
    })
}

#[test]
fn a_host_with_all_flows_leaves_places_to_others() {
    let mut bed = Bed::new(&inspector("CAPACITY 64"));
    bed.write("ips.rules", SECRET);
    let opened = (1..=200).filter(|port| open(&mut bed, 1, *port)).count();
    assert_eq!(
        opened, 56,
        "its own connections are open, and none is broken for another"
    );
    for host in 2..10 {
        assert!(open(&mut bed, host, 7), "{host}");
    }
    for host in 2..10 {
        let data = Segment {
            client: [10, 0, 1, host],
            ports: [7, 80],
            ..from_client(0, b"words")
        };
        assert!(bed.passes(&data), "{host}");
    }
    let again = (300..400).filter(|port| open(&mut bed, 1, *port)).count();
    assert_eq!(again, 0, "it has no more than before");
}

/// A fragment of a host's datagram of 24 bytes, which has two.
fn fragment(host: u8, id: u16, is_last: bool) -> Vec<u8> {
    let mut packet = udp(7, 9, &[0; 16]);
    let (offset, part) = match is_last {
        false => (0x2000u16, packet[20..36].to_vec()),
        true => (2, packet[36..44].to_vec()),
    };
    packet.truncate(20);
    packet.extend(part);
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[6..8].copy_from_slice(&offset.to_be_bytes());
    packet[12..16].copy_from_slice(&[10, 0, 1, host]);
    fill_checksum(&mut packet);
    packet
}

#[test]
fn fragments_of_a_host_leave_places_to_others() {
    let mut bed = Bed::new(&inspector(""));
    bed.write("ips.rules", SECRET);
    assert!(bed.send(0, link(&fragment(2, 1, false))).is_empty());
    for id in 0..500 {
        bed.send(0, link(&fragment(1, id, false)));
    }
    assert_eq!(bed.send(0, link(&fragment(2, 1, true))).len(), 2);
}

/// An inspector of frames with a tag.
fn tagged(arguments: &str) -> Bed {
    let mut bed = Bed::new(&inspector(arguments).replace("IPHeader(14)", "IPHeader(18)"));
    bed.write("ips.rules", SECRET);
    bed
}

/// A frame within a VLAN.
fn within(vlan: u8, packet: &[u8]) -> Vec<u8> {
    around(&[0x81, 0, 0, vlan, 8, 0], packet)
}

/// Sends a host's segment within a VLAN; true if it passes.
fn passes(bed: &mut Bed, (vlan, client): (u8, [u8; 4]), segment: Segment) -> bool {
    let side = usize::from(!segment.from_client);
    let frame = within(vlan, &Segment { client, ..segment }.ip());
    bed.send(side, frame).len() == 1
}

/// Opens a connection of a host in a VLAN; true if it is open.
fn open_within(bed: &mut Bed, host: (u8, [u8; 4])) -> bool {
    handshake()
        .into_iter()
        .all(|segment| passes(bed, host, segment))
}

#[test]
fn a_network_of_many_forged_hosts_ends_no_connection_of_another_network() {
    let mut bed = tagged("CAPACITY 64");
    let host = |n: u8| (7, [10, 0, 7, n]);
    for n in 0..20 {
        assert!(open_within(&mut bed, host(n)), "{n}");
    }
    // a connection that is silent for so long may go
    bed.wait(6);
    for n in 0..500u16 {
        let [high, low] = n.to_be_bytes();
        open_within(&mut bed, (8, [10, 8, high, low]));
    }
    for n in 0..20 {
        assert!(passes(&mut bed, host(n), from_client(0, b"words")), "{n}");
    }
    // and it gets half of those that may go, of which some remain free
    bed.wait(6);
    for n in 20..30 {
        assert!(open_within(&mut bed, host(n)), "{n}");
    }
    for n in 0..30 {
        assert!(passes(&mut bed, host(n), from_client(5, b"more")), "{n}");
    }
}

#[test]
fn a_network_alone_leaves_an_eighth_to_others() {
    let mut bed = tagged("CAPACITY 64");
    let host = |vlan: u8, n: u8| (vlan, [10, vlan, 0, n]);
    let opened = (0..64).filter(|n| open_within(&mut bed, host(8, *n)));
    assert_eq!(opened.count(), 56);
    assert!((0..56).all(|n| passes(&mut bed, host(8, n), from_client(0, b"words"))));
    // others are inspected, also if it gives nothing up
    for vlan in 9..12 {
        assert!(open_within(&mut bed, host(vlan, 1)), "{vlan}");
        assert!(!passes(&mut bed, host(vlan, 1), from_client(0, b"secret")));
    }
    assert!((0..56).all(|n| passes(&mut bed, host(8, n), from_client(5, b"more"))));
}

#[test]
fn forged_tags_end_no_open_connection() {
    let mut bed = tagged("CAPACITY 64");
    let host = |n: u8| (7, [10, 0, 7, n]);
    for n in 0..40 {
        assert!(open_within(&mut bed, host(n)), "{n}");
    }
    for vlan in 8..=255 {
        open_within(&mut bed, (vlan, [10, 8, 0, vlan]));
        // half-open ones, and those of one host
        for n in 0..4 {
            let syn = Segment::new(true, SYN, CLIENT_SEQ, 0, b"");
            passes(&mut bed, (vlan, [10, 9, n, vlan]), syn);
        }
    }
    for n in 0..40 {
        assert!(passes(&mut bed, host(n), from_client(0, b"words")), "{n}");
        assert!(!passes(&mut bed, host(n), from_client(5, b"secret")), "{n}");
    }
}

#[test]
fn a_flow_without_a_place_passes_only_if_nothing_is_dropped() {
    let mut bed = tagged("CAPACITY 8");
    // as many networks as places, each with an open connection
    for vlan in 1..=8 {
        assert!(open_within(&mut bed, (vlan, [10, 8, 0, vlan])), "{vlan}");
    }
    assert!(!open_within(&mut bed, (9, [10, 8, 0, 9])));
    assert!(bed.drops("table full") > 0);
    bed.write("ips.action", "alert");
    let host = (9, [10, 8, 0, 10]);
    assert!(open_within(&mut bed, host));
    assert!(passes(&mut bed, host, from_client(0, b"secret")));
    assert_eq!(bed.count("ips.alert_count"), 0);
}

#[test]
fn forged_tags_take_no_memory_of_open_connections() {
    let mut bed = tagged("MEMORY 1000000, STREAM 65535");
    // bytes with a hole in front of them, which no receiver acknowledges
    let fill = |bed: &mut Bed, host| {
        open_within(bed, host);
        let sent = (1..10).filter(|at| {
            let data = from_client(at * 1400, &[b'x'; 1400]);
            passes(bed, host, data)
        });
        sent.count()
    };
    let own = |n: u8| (7, [10, 0, 7, n]);
    assert!((0..20).all(|n| fill(&mut bed, own(n)) == 9));
    for vlan in 8..=255 {
        fill(&mut bed, (vlan, [10, 8, 0, vlan]));
    }
    assert!(bed.count("ips.memory") <= 1_000_000);
    for n in 0..20 {
        assert!(passes(&mut bed, own(n), from_server(0, 0, b"")), "{n}");
    }
}

#[test]
fn the_memory_of_streams_is_shared_by_networks() {
    let mut bed = tagged("MEMORY 1000000, STREAM 65535");
    let own = (7, [10, 0, 7, 1]);
    assert!(open_within(&mut bed, own));
    assert!(passes(&mut bed, own, from_client(0, b"words")));
    bed.wait(6);
    // bytes with a hole in front of them, which no receiver acknowledges
    for n in 0..200 {
        let host = (8, [10, 8, 0, n]);
        open_within(&mut bed, host);
        for at in 1..10 {
            passes(&mut bed, host, from_client(at * 1400, &[b'x'; 1400]));
        }
        // they are idle, too
        if n % 50 == 49 {
            bed.wait(6);
        }
    }
    assert!(bed.count("ips.memory") <= 1_000_000);
    assert!(passes(&mut bed, own, from_client(5, b"more")));
}

#[test]
fn a_connection_does_not_go_for_its_own_data() {
    let mut bed = Bed::new(&inspector("MEMORY 228600, STREAM 65535"));
    // a network may take seven eighths of it
    bed.write("ips.rules", SECRET);
    bed.open();
    assert!(bed.client_sends(0, "words"));
    bed.wait(6);
    for host in 2..250 {
        if bed.count("ips.memory") > 192_000 {
            break;
        }
        assert!(open(&mut bed, host, 7));
        // bytes with a hole in front of them
        assert!(bed.passes(&Segment {
            client: [10, 0, 1, host],
            ports: [7, 80],
            ..from_client(1400, &[b'x'; 1400])
        }));
    }
    // it is the one that was silent longest, and there is no memory for this
    let more = "y".repeat(5000);
    bed.client_sends(5, &more);
    bed.wait(6);
    assert!(bed.client_sends(5, &more[..1000]), "others are silent, too");
}

#[test]
fn fragments_of_a_network_leave_places_to_others() {
    let mut bed = tagged("");
    assert!(bed.send(0, within(7, &fragment(2, 1, false))).is_empty());
    for id in 0..500 {
        bed.send(0, within(8, &fragment(id as u8, id, false)));
    }
    assert_eq!(bed.send(0, within(7, &fragment(2, 1, true))).len(), 2);
}

#[test]
fn data_without_a_connection_ends_none() {
    let mut bed = Bed::new(&inspector("MEMORY 20000"));
    bed.write("ips.rules", SECRET);
    bed.open();
    let data = [b'x'; 1400];
    let filled = (1..20).filter(|n| bed.passes(&from_client(n * 1400, &data)));
    assert!(filled.count() < 19, "the memory is full");
    bed.wait(6);
    let stranger = Segment {
        ports: [9, 80],
        ..from_client(0, &data)
    };
    assert!(!bed.passes(&stranger));
    assert_eq!(bed.count("ips.table_size"), 1);
}

#[test]
fn bytes_on_their_way_are_no_work() {
    let rules = (0..10).map(|n| {
        format!(
            "drop tcp any any -> any any (content:\"often\"; content:\"x{n}\"; distance:0; sid:{};)\n",
            n + 1
        )
    });
    let mut bed = Bed::with_rules(&rules.collect::<String>());
    bed.open();
    let data = format!("{:900}", "often");
    for n in 0..60 {
        assert!(bed.client_sends(n * 900, &data), "{n}");
    }
    assert!(bed.client_sends(54_000, "of"));
    assert!(!bed.client_sends(54_002, "ten x7"));
}

#[test]
fn a_fragment_within_a_fragment_does_not_pass() {
    let mut bed = Bed::new(&package("ips", ""));
    bed.write("ips.rules", "");
    // the first part of a packet, and in it a fragment header that names no fragment
    let datagram = [0, 7, 0, 9, 0, 8, 0, 0];
    for (headers, passes) in [
        (vec![17u8, 0, 0, 0, 0, 0, 0, 1], 1),
        (
            [[44u8, 0, 0, 1, 0, 0, 0, 1], [17, 0, 0, 0, 0, 0, 0, 2]].concat(),
            0,
        ),
        (
            [[44u8, 0, 0, 0, 0, 0, 0, 1], [17, 0, 0, 0, 0, 0, 0, 2]].concat(),
            0,
        ),
    ] {
        let mut packet = Segment::new(true, ACK, 0, 0, b"").ip6(44, &[]);
        packet.truncate(40);
        packet[4..6].copy_from_slice(&((headers.len() + 8) as u16).to_be_bytes());
        packet.extend(&headers);
        packet.extend(datagram);
        let frame = around(&[0x86, 0xdd], &packet);
        assert!(frame.len() > LINK);
        assert_eq!(bed.send(0, frame).len(), passes, "{headers:?}");
    }
}
