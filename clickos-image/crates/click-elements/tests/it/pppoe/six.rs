// SPDX-License-Identifier: Apache-2.0
//! IPv6 of subscribers: interface identifiers, advertisements, packets both ways.
use super::subscriber::{Bench, Client, SECOND_NS, USERS, up};

const NETWORKS: &str = "NETWORKS6 2001:db8:9::/56";
/// The network of amy, whose address ends with 2, and the server's address on her link.
const AMY: [u8; 8] = [0x20, 1, 0x0d, 0xb8, 0, 9, 0, 2];
const BOB: [u8; 8] = [0x20, 1, 0x0d, 0xb8, 0, 9, 0, 3];
const ROUTER: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1];

fn bench() -> Bench {
    Bench::new(&format!("{USERS}, {NETWORKS}"))
}

fn dial6(bench: &mut Bench, n: u8, name: &'static str, password: &'static str) -> Client {
    let mut client = Client::new(n, name, password);
    client.identifier = Some([n; 8]);
    client.dial(bench);
    assert!(client.is_up());
    client
}

/// An IPv6 packet with a payload.
fn packet(from: [u8; 16], to: [u8; 16], next: u8, hops: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [0x60, 0, 0, 0, length[0], length[1], next, hops];
    [&head[..], &from, &to, payload].concat()
}

/// The same with a checksum of ICMPv6.
fn message(from: [u8; 16], to: [u8; 16], hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = packet(from, to, 58, hops, payload);
    let sum = checksum(&bytes);
    bytes[42..44].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn checksum(packet: &[u8]) -> u16 {
    let pseudo = [0, 58, packet[4], packet[5]];
    let bytes = [&packet[8..], &pseudo].concat();
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn host(prefix: [u8; 8], last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..8].copy_from_slice(&prefix);
    address[15] = last;
    address
}

fn link_local(n: u8) -> [u8; 16] {
    let mut address = [n; 16];
    address[..8].copy_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
    address
}

const FAR: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];
const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const ALL_ROUTERS: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

#[test]
fn a_subscriber_learns_its_network_and_has_packets_both_ways() {
    let mut bench = bench();
    let amy = dial6(&mut bench, 1, "amy", "one");
    assert_eq!(amy.network6, [true; 2]);
    let [advertised] = &amy.packets6[..] else {
        panic!("{:?}", amy.packets6)
    };
    assert_eq!(checksum(advertised), 0);
    assert_eq!(advertised[6..8], [58, 255]);
    assert_eq!(
        (&advertised[8..24], &advertised[24..40]),
        (&ROUTER[..], &ALL_NODES[..])
    );
    assert_eq!(advertised[40..42], [134, 0]);
    assert_eq!(advertised[56..60], [3, 4, 64, 0xc0]);
    assert_eq!(advertised[72..80], AMY);
    assert_eq!(advertised[88..], [5, 1, 0, 0, 0, 0, 5, 0xd4]);
    let own = host(AMY, 7);
    let sent = packet(own, FAR, 17, 64, b"words");
    bench.exchange(0, &[amy.sends6(&sent)]);
    assert_eq!(bench.sent(3), std::slice::from_ref(&sent));
    assert!(bench.sent(1).is_empty());
    let answer = packet(FAR, own, 17, 64, b"answers");
    let stray = packet(FAR, host(BOB, 1), 17, 64, b"none");
    bench.exchange(1, &[answer.clone(), stray]);
    assert_eq!(bench.sent(0), [ethernet6(&amy, &answer)]);
    assert_eq!(bench.read("s.no_session"), "1");
    // both count in the account
    assert!(bench.read("s.sessions").ends_with(" 1 45 0 1 47 0\n"));
}

/// The frame that carries a packet to a subscriber.
fn ethernet6(client: &Client, packet: &[u8]) -> Vec<u8> {
    let mut frame = client.sends6(packet);
    let (to, from) = (frame[..6].to_vec(), frame[6..12].to_vec());
    frame[..6].copy_from_slice(&from);
    frame[6..12].copy_from_slice(&to);
    frame
}

#[test]
fn packets_of_others_networks_and_of_the_link_do_not_pass() {
    let mut bench = bench();
    let amy = dial6(&mut bench, 1, "amy", "one");
    let bob = dial6(&mut bench, 2, "bob", "two");
    let foreign = packet(host(AMY, 7), FAR, 17, 64, b"spoofed");
    let local = packet(link_local(2), FAR, 17, 64, b"local");
    let group = packet(host(AMY, 7), ALL_NODES, 17, 64, b"group");
    bench.exchange(
        0,
        &[bob.sends6(&foreign), bob.sends6(&local), amy.sends6(&group)],
    );
    assert!(bench.sent(3).is_empty());
    assert_eq!(bench.read("s.spoofed"), "1");
    // lengths that lie
    for (cut, length) in [(40, 9), (39, 0), (1, 0)] {
        let mut short = packet(host(AMY, 7), FAR, 17, 64, &[]);
        short[5] = length;
        bench.exchange(0, &[amy.sends6(&short[..cut])]);
    }
    assert!(bench.sent(3).is_empty());
    assert_eq!(bench.read("s.refused"), "3");
}

#[test]
fn solicitations_are_answered_in_measure() {
    let mut bench = Bench::new(&format!("{USERS}, {NETWORKS}, ECHO 0"));
    let amy = dial6(&mut bench, 1, "amy", "one");
    let asks = amy.sends6(&message(
        link_local(1),
        ALL_ROUTERS,
        255,
        &[133, 0, 0, 0, 0, 0, 0, 0],
    ));
    assert!(
        bench.exchange(0, std::slice::from_ref(&asks)).is_empty(),
        "it has just got one"
    );
    bench.now_ns += 3 * SECOND_NS;
    let answers = bench.exchange(0, &vec![asks; 9]);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0][62], 134);
    // who asks for the router's address gets it, unless the question was routed or is wrong
    let question = |from, hops, target: [u8; 16]| {
        let payload = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target].concat();
        amy.sends6(&message(from, ROUTER, hops, &payload))
    };
    let answers = bench.exchange(0, &[question(link_local(1), 255, ROUTER)]);
    assert_eq!(
        (answers.len(), answers[0][62], answers[0][66]),
        (1, 136, 0xc0)
    );
    assert_eq!(answers[0][46..62], link_local(1));
    let mut wrong = question(link_local(1), 255, ROUTER);
    *wrong.last_mut().unwrap() ^= 1;
    let wrong = [
        question(link_local(1), 254, ROUTER),
        question(link_local(1), 255, link_local(1)),
        question(ROUTER, 255, ROUTER),
        question([0; 16], 255, ROUTER),
        wrong,
    ];
    assert!(bench.exchange(0, &wrong).is_empty());
    // one comes by itself
    let sent = bench.wait(301);
    let advertised = sent
        .iter()
        .filter(|f| f[20..22] == [0, 0x57] && f[62] == 134);
    assert_eq!(advertised.count(), 1);
}

#[test]
fn identifiers_are_neither_none_nor_the_routers() {
    let mut bench = bench();
    for (n, bad) in [(1, [0; 8]), (2, [0, 0, 0, 0xff, 0xfe, 0, 0, 1])] {
        let mut amy = Client::new(n, "amy", "one");
        amy.identifier = Some(bad);
        amy.dial(&mut bench);
        assert_eq!(amy.network6, [true; 2]);
        assert_ne!(amy.identifier, Some(bad), "another one was proposed");
    }
    let amy = up(&mut bench, 3, "amy", "one");
    let answers = bench.exchange(0, &[amy.control(0x8057, 1, 9, &[2, 4, 0, 0x4f])]);
    let reject = answers
        .iter()
        .find(|f| f[20..23] == [0x80, 0x57, 4])
        .unwrap();
    assert_eq!(reject[26..], [2, 4, 0, 0x4f]);
    // an end of IPv6 leaves the session, and so does a host that does not know it
    let ends = [
        (4, 0x8057, 5, &[][..]),
        (5, 0xc021, 8, &[0x80, 0x57, 1, 1, 0, 4]),
    ];
    for (n, protocol, code, data) in ends {
        let bob = dial6(&mut bench, n, "bob", "two");
        let sent = bob.sends6(&packet(host(BOB, 1), FAR, 17, 64, b"x"));
        bench.exchange(0, std::slice::from_ref(&sent));
        assert_eq!(bench.sent(3).len(), 1);
        bench.exchange(0, &[bob.control(protocol, code, 7, data)]);
        assert_eq!(bench.read("s.count"), "2");
        bench.exchange(0, &[sent]);
        assert!(bench.sent(3).is_empty());
    }
}

#[test]
fn no_network_no_ipv6() {
    let mut bench = Bench::new(&format!("{USERS}, NETWORKS6 ::/128"));
    let mut amy = Client::new(1, "amy", "one");
    amy.identifier = Some([1; 8]);
    amy.dial(&mut bench);
    assert!(amy.is_up());
    assert_eq!(amy.network6, [false; 2]);
}

#[test]
fn a_guest_and_a_swap_take_ipv6_along() {
    let mut first = bench();
    let amy = dial6(&mut first, 1, "amy", "one");
    let state = first.read("s.state");
    let mut other = bench();
    other.write("s.state", &state);
    let sent = packet(host(AMY, 7), FAR, 17, 64, b"words");
    other.exchange(0, &[amy.sends6(&sent)]);
    assert_eq!(other.sent(3), std::slice::from_ref(&sent));
    let answer = packet(FAR, host(AMY, 7), 17, 64, b"answers");
    other.exchange(1, std::slice::from_ref(&answer));
    assert_eq!(other.sent(0), [ethernet6(&amy, &answer)]);
    assert_eq!(other.read("s.state").lines().count(), 2);
    for more in [" 0 1", " 0 x -", " 0 - 1,2", " x - -"] {
        let wrong = format!(
            "{}{more}\n",
            state.trim_end().rsplitn(4, ' ').last().unwrap()
        );
        let writes = [("s.state", wrong.as_bytes())];
        assert!(
            other.router.write_handlers(&writes, other.now_ns).is_err(),
            "{wrong}"
        );
    }
}
