// SPDX-License-Identifier: Apache-2.0
//! Ways to bring a text past the packages of the catalog that inspect: each is a hit or a drop.
//!
//! A way counts only if some server would read the text without the package; behind the package no server may.
use super::bed::{Bed, CLIENT_SEQ, from_client, from_server, package};
use super::packets::{
    ACK, FIN, LINK, RST, SYN, Segment, URG, around, fragment, fragment6, link, udp,
};
use super::receiver::may_read;

const TEXT: &[u8] = b"/etc/passwd";
const JUNK: &[u8] = b"harmless---";
const RULES: &str = r#"drop ip any any -> any any (msg:"passwords"; content:"/etc/passwd"; nocase; sid:1;)
drop tcp any any -> any any (content:"/etc/"; content:"shadow"; distance:0; within:6; sid:2;)"#;

fn request(text: &[u8]) -> Vec<u8> {
    [b"GET ", text, b" HTTP/1.1\r\n"].concat()
}

fn whole() -> Segment {
    from_client(0, &request(TEXT))
}

/// Frames with the text, one way for each name.
fn ways() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let mut ways = links();
    ways.extend(in_fragments());
    ways.extend(in_segments());
    ways.extend(with_lies());
    ways.extend(in_version_6());
    ways
}

/// What may be between the addresses and the packet.
fn links() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let packet = whole().ip();
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let length = ((8 + packet.len()) as u16).to_be_bytes();
    let mut upper = whole();
    upper.data.make_ascii_uppercase();
    [
        ("plain", link(&packet)),
        ("priority tag", around(&[0x81, 0, 0x60, 0, 8, 0], &packet)),
        ("VLAN tag", around(&[0x81, 0, 0, 7, 8, 0], &packet)),
        (
            "two tags",
            around(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0], &packet),
        ),
        (
            "three tags",
            around(
                &[0x81, 0, 0, 0, 0x81, 0, 0, 0, 0x81, 0, 0, 0, 8, 0],
                &packet,
            ),
        ),
        ("SNAP", around(&[&length[..], &snap].concat(), &packet)),
        (
            "SNAP behind a tag",
            around(&[&[0x81, 0, 0, 7], &length[..], &snap].concat(), &packet),
        ),
        ("other case", upper.frame()),
    ]
    .map(|(name, frame)| (name, vec![frame]))
    .into()
}

fn in_fragments() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let packet = whole().ip();
    let end = packet.len() - 20;
    let units = |size: usize| (0..end).step_by(size).map(move |at| (at, at + size));
    let cut = |size| {
        units(size)
            .map(|(a, b)| link(&fragment(&packet, a, b, None)))
            .collect::<Vec<_>>()
    };
    let mut backwards = cut(16);
    backwards.reverse();
    // the text is after the header of 20 bytes and "GET "
    let junk = || link(&fragment(&packet, 24, 40, Some(b"harmless---- HTT")));
    let mut first_junk = cut(8);
    first_junk.insert(3, junk());
    let mut last_junk = cut(8);
    last_junk.insert(5, junk());
    let mut twice = cut(8);
    twice.insert(2, twice[1].clone());
    let mut shifted = cut(16);
    shifted.rotate_left(1);
    shifted.insert(2, junk());
    vec![
        ("fragments", cut(16)),
        ("smallest fragments", cut(8)),
        ("fragments backwards", backwards),
        ("overlapping fragments, other data first", first_junk),
        ("overlapping fragments, other data last", last_junk),
        ("a fragment twice", twice),
        ("fragments that overlap others in part", shifted),
    ]
}

/// Segments of a size.
fn cut(size: usize) -> Vec<Segment> {
    let data = request(TEXT);
    let parts = data.chunks(size).enumerate();
    parts
        .map(|(n, part)| from_client((n * size) as u32, part))
        .collect()
}

fn frames(segments: Vec<Segment>) -> Vec<Vec<u8>> {
    segments.iter().map(Segment::frame).collect()
}

fn in_segments() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let mut backwards = cut(4);
    backwards.reverse();
    let mut mixed = cut(2);
    mixed.sort_by_key(|segment| segment.seq.wrapping_mul(0x9e37_79b1));
    let data = request(TEXT);
    let overlapping = (0..data.len() - 6)
        .step_by(3)
        .map(|at| from_client(at as u32, &data[at..at + 6]));
    let mut all: Vec<Segment> = overlapping.collect();
    let rest = data.len() - 8;
    all.push(from_client(rest as u32, &data[rest..]));
    let mut hole = cut(8);
    hole.rotate_left(1);
    let far = vec![b'.'; 3000];
    let long: Vec<Segment> = far
        .chunks(1000)
        .enumerate()
        .map(|(n, c)| from_client((n * 1000) as u32, c))
        .collect();
    let behind = long
        .into_iter()
        .chain([from_client(3000, &data[..9]), from_client(3009, &data[9..])]);
    let shadow = [
        from_client(0, b"GET /et"),
        from_client(7, b"c/sha"),
        from_client(12, b"dow"),
    ];
    vec![
        ("smallest segments", frames(cut(1))),
        ("segments", frames(cut(5))),
        ("segments backwards", frames(backwards)),
        ("segments out of order", frames(mixed)),
        ("overlapping segments", frames(all)),
        ("a hole that is filled last", frames(hole)),
        ("behind much else", frames(behind.collect())),
        ("two contents in segments", frames(shadow.into())),
    ]
}

/// Other data instead of a part of the text, and what a sender may do with it.
fn junk(change: impl Fn(&mut Segment)) -> Segment {
    let mut segment = from_client(4, JUNK);
    change(&mut segment);
    segment
}

/// The text in parts, with a segment in front of the one that has the text, or behind it.
fn with(segment: Segment, before: bool) -> Vec<Vec<u8>> {
    let data = request(TEXT);
    let mut all = vec![from_client(0, b"GET "), from_client(4, &data[4..])];
    all.insert(if before { 1 } else { 2 }, segment);
    frames(all)
}

fn with_lies() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let data = request(TEXT);
    let mut urgent = from_client(0, b"GET /etc/pXasswd HTTP/1.1\r\n");
    (urgent.flags, urgent.urgent) = (ACK | URG, 11);
    let mut short = from_client(4, JUNK);
    short.data.truncate(3);
    let ahead = |flags| Segment {
        flags,
        ..from_client(30_000, b"")
    };
    let early = [
        from_client(8, &data[8..]),
        from_client(8, &JUNK[..6]),
        from_client(0, &data[..8]),
    ];
    let mut both = from_client(4, b"/etXXXXsswd");
    both.ttl = 1;
    let again = Segment::new(true, SYN, 5_000, 0, b"");
    vec![
        ("wrong checksum", with(junk(|s| s.is_broken = true), true)),
        (
            "time to live that ends before the server",
            with(junk(|s| s.ttl = 1), true),
        ),
        ("sent again with other data", with(junk(|_| {}), true)),
        (
            "sent again with other data behind it",
            with(junk(|_| {}), false),
        ),
        ("sent again in part", with(short, true)),
        ("other data of a hole", frames(early.into())),
        ("half of the text sooner", with(both, true)),
        ("urgent data", vec![urgent.frame()]),
        ("reset beyond the window", with(ahead(RST), true)),
        (
            "reset in the window",
            with(
                Segment {
                    flags: RST | ACK,
                    ..from_client(40, b"")
                },
                true,
            ),
        ),
        (
            "end that is not the end",
            with(
                Segment {
                    flags: FIN | ACK,
                    ..ahead(FIN)
                },
                true,
            ),
        ),
        ("another first packet", with(again, true)),
        ("data with a first packet", {
            let syn = Segment::new(true, SYN, CLIENT_SEQ, 0, &data);
            vec![syn.frame()]
        }),
    ]
}

fn in_version_6() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let options = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let routing = [6, 0, 0, 0, 0, 0, 0, 0];
    let both = [&options(43)[..], &routing].concat();
    let packet = whole().ip6(6, &[]);
    let nested = whole().ip6(44, &[44, 0, 0, 0, 0, 0, 0, 9, 6, 0, 0, 0, 0, 0, 0, 8]);
    let parts = (0..packet.len() - 40)
        .step_by(16)
        .map(|at| link(&fragment6(&packet, at, at + 16)));
    vec![
        ("options of IPv6", vec![link(&whole().ip6(60, &options(6)))]),
        ("a chain of headers", vec![link(&whole().ip6(0, &both))]),
        (
            "an atomic fragment",
            vec![link(&whole().ip6(44, &[6, 0, 0, 0, 0, 0, 0, 9]))],
        ),
        ("fragments of IPv6", parts.collect()),
        ("a fragment in a fragment", vec![link(&nested)]),
    ]
}

/// Opens a connection in each network that a way uses.
fn open(bed: &mut Bed) {
    bed.open();
    let answer = (
        SYN | ACK,
        super::bed::SERVER_SEQ,
        CLIENT_SEQ.wrapping_add(1),
    );
    let both = [
        Segment::new(true, SYN, CLIENT_SEQ, 0, b""),
        Segment::new(false, answer.0, answer.1, answer.2, b""),
    ];
    for (side, segment) in both.iter().enumerate() {
        let tagged = |tags: &[u8]| around(tags, &segment.ip());
        let frames = [
            link(&segment.ip6(6, &[])),
            tagged(&[0x81, 0, 0, 7, 8, 0]),
            tagged(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0]),
        ];
        for frame in frames {
            assert_eq!(bed.send(side, frame).len(), 1);
        }
    }
}

fn ips() -> Bed {
    let mut bed = Bed::new(&package("ips", ""));
    bed.write("ips.rules", RULES);
    bed
}

#[test]
fn no_way_leads_past_the_ips() {
    for (name, frames) in ways() {
        let text = if name.contains("two contents") {
            &b"/etc/shadow"[..]
        } else {
            TEXT
        };
        assert!(may_read(&frames, text), "{name}: no server reads the text");
        let mut bed = ips();
        open(&mut bed);
        let passed: Vec<Vec<u8>> = frames
            .into_iter()
            .flat_map(|frame| bed.send(0, frame))
            .collect();
        assert!(!may_read(&passed, text), "{name}: {passed:02x?}");
        let dropped = bed.count("refused.count") + bed.count("left_type/places/too_deep.count");
        let told = bed.count("ips.alert_count");
        let held = bed.count("ips.held");
        assert!(
            dropped + told + held > 0,
            "{name}: neither a hit nor a drop"
        );
    }
}

#[test]
fn every_way_is_told_or_changes_nothing_where_nothing_is_dropped() {
    // a server may read the text on these ways only if it takes what the inspection does not
    let blind = ["three tags", "data with a first packet"];
    for (name, frames) in ways() {
        let mut bed = ips();
        bed.write("ips.action", "alert");
        open(&mut bed);
        let sent = frames.len();
        let passed: usize = frames
            .into_iter()
            .map(|frame| bed.send(0, frame).len())
            .sum();
        let told = bed.count("ips.alert_count");
        assert!(told > 0 || blind.contains(&name), "{name}: nothing is told");
        assert!(passed <= sent, "{name}");
    }
}

#[test]
fn a_harmless_request_passes_each_way_that_a_sender_means_honestly() {
    let data = request(JUNK);
    for size in [1, 5, 40] {
        let mut bed = ips();
        bed.open();
        let mut at = 0;
        for part in data.chunks(size) {
            assert!(bed.passes(&from_client(at, part)), "{size}");
            // sent again, as if it had been lost
            assert!(bed.passes(&from_client(at, part)), "{size}");
            at += part.len() as u32;
        }
        bed.server_has(at);
        assert!(bed.passes(&from_server(0, at, b"HTTP/1.1 200 OK")));
        assert_eq!(bed.count("refused.count"), 0);
    }
    let mut bed = ips();
    bed.open();
    let packet = from_client(0, &data).ip();
    let frames = (0..packet.len() - 20)
        .step_by(8)
        .map(|at| link(&fragment(&packet, at, at + 8, None)));
    let passed: usize = frames.map(|frame| bed.send(0, frame).len()).sum();
    assert_eq!(passed, (packet.len() - 20).div_ceil(8));
}

/// Disguises of one packet for functions that judge packets alone.
fn disguises(packet: &[u8]) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let length = ((8 + packet.len()) as u16).to_be_bytes();
    let snap = [&length[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    let end = packet.len() - 20;
    let parts = (0..end)
        .step_by(8)
        .map(|at| link(&fragment(packet, at, at + 8, None)));
    let parts: Vec<Vec<u8>> = parts.collect();
    let mut backwards = parts.clone();
    backwards.reverse();
    let mut overlapping = parts.clone();
    overlapping.insert(1, link(&fragment(packet, 8, 16, Some(b"junkjunk"))));
    let one = |between: &[u8]| vec![around(between, packet)];
    vec![
        ("plain", vec![link(packet)]),
        ("priority tag", one(&[0x81, 0, 0x60, 0, 8, 0])),
        ("two tags", one(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0])),
        (
            "three tags",
            one(&[0x81, 0, 0, 0, 0x81, 0, 0, 0, 0x81, 0, 0, 0, 8, 0]),
        ),
        ("SNAP", vec![around(&snap, packet)]),
        ("fragments", parts),
        ("fragments backwards", backwards),
        ("overlapping fragments", overlapping),
    ]
}

#[test]
fn no_disguise_leads_past_the_dns_filter() {
    let name = b"\x07bLoCkEd\x07invalid\x00\x00\x01\x00\x01";
    let question = [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &name[..]].concat();
    for (name, frames) in disguises(&udp(999, 53, &question)) {
        let mut bed = Bed::new(&package("dns-filter", ""));
        let passed: Vec<Vec<u8>> = frames
            .into_iter()
            .flat_map(|frame| bed.send(0, frame))
            .collect();
        let first = passed.iter().any(|frame| {
            frame
                .get(LINK + 6..LINK + 8)
                .is_some_and(|f| f[0] & 0x1f == 0 && f[1] == 0)
        });
        assert!(!first, "{name}: {passed:02x?}");
    }
}

#[test]
fn no_disguise_leads_past_the_syn_guard() {
    const MAX: usize = 5;
    let packet = Segment::new(true, SYN, 1, 0, b"").ip();
    for (name, frames) in disguises(&packet) {
        let mut bed = Bed::new(&package(
            "syn-guard",
            &format!("define($SOURCE_ATTEMPTS {MAX});"),
        ));
        let mut passed = 0;
        for _ in 0..10 * MAX {
            // without the fragment that has the flags no server sees an attempt
            let flags = |frame: &Vec<u8>| frame.windows(8).any(|part| part == &packet[32..40]);
            passed += frames
                .iter()
                .flat_map(|frame| bed.send(0, frame.clone()))
                .filter(flags)
                .count();
        }
        assert!(
            passed <= MAX || name.contains("fragments") && is_headless(&mut bed, &frames),
            "{name}: {passed}"
        );
    }
}

/// True if first fragments do not pass, so that the others are no packet.
fn is_headless(bed: &mut Bed, frames: &[Vec<u8>]) -> bool {
    frames
        .iter()
        .filter(|frame| frame[LINK + 7] == 0 && frame[LINK + 6] & 0x1f == 0)
        .all(|first| bed.send(0, first.clone()).is_empty())
}
