// SPDX-License-Identifier: Apache-2.0
//! Logins that RADIUS servers decide, and the accounts that they get.
use hmac::{Hmac, Mac};
use md5::{Digest, Md5};

use super::subscriber::{Bench, Client, SECOND_NS, ip_packet};

const ONE: [u8; 4] = [10, 9, 2, 5];
const OWN: [u8; 4] = [10, 9, 2, 1];
const SECRET: &[u8] = b"xyzzy5461";
pub const ARGUMENTS: &str = "amy 10.0.0.2, PASSWORDS \"amy one\", AUTH ANY, DNS 9.9.9.9, SRC 10.9.2.1, NETWORK 10.0.0.0/24, \
     NETWORKS6 2001:db8:9::/56, RADIUS 10.9.2.5, SECRET xyzzy5461";
/// The address 10.0.0.9, and the class `gold`.
pub const GRANT: [u8; 12] = [8, 6, 10, 0, 0, 9, 25, 6, b'g', b'o', b'l', b'd'];

/// A request of the element to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    to: [u8; 4],
    ports: [u16; 2],
    data: Vec<u8>,
}

impl Request {
    fn of(packet: &[u8]) -> Self {
        assert_eq!(
            (packet[0], packet[9], &packet[12..16]),
            (0x45, 17, &OWN[..])
        );
        let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let data = packet[28..].to_vec();
        assert_eq!(usize::from(port(24)), data.len() + 8);
        assert_eq!(
            usize::from(u16::from_be_bytes([data[2], data[3]])),
            data.len()
        );
        Self {
            to: packet[16..20].try_into().unwrap(),
            ports: [port(20), port(22)],
            data,
        }
    }

    fn value(&self, kind: u8) -> Option<&[u8]> {
        let mut rest = &self.data[20..];
        while !rest.is_empty() {
            let (whole, behind) = rest.split_at(rest[1].into());
            if whole[0] == kind {
                return Some(&whole[2..]);
            }
            rest = behind;
        }
        None
    }

    fn number(&self, kind: u8) -> u32 {
        u32::from_be_bytes(self.value(kind).unwrap().try_into().unwrap())
    }

    /// A server's signed answer, as an IPv4 packet.
    pub fn answer(&self, code: u8, more: &[u8]) -> Vec<u8> {
        let length = u16::try_from(38 + more.len()).unwrap().to_be_bytes();
        let head = [code, self.data[1], length[0], length[1]];
        let request = &self.data[4..20];
        let empty = [&head[..], request, &[80, 18], &[0; 16], more].concat();
        let mut sum = <Hmac<Md5> as Mac>::new_from_slice(SECRET).unwrap();
        sum.update(&empty);
        let sign = sum.finalize().into_bytes();
        let rest = [&[80, 18][..], &sign, more].concat();
        let sum = Md5::digest([&head[..], request, &rest, SECRET].concat());
        self.datagram(&[&head[..], &sum, &rest].concat())
    }

    fn datagram(&self, data: &[u8]) -> Vec<u8> {
        let udp = u16::try_from(data.len() + 8).unwrap();
        let mut packet = ip_packet(self.to, OWN, udp + 20);
        packet[20..22].copy_from_slice(&self.ports[1].to_be_bytes());
        packet[22..24].copy_from_slice(&self.ports[0].to_be_bytes());
        packet[24..26].copy_from_slice(&udp.to_be_bytes());
        packet[28..].copy_from_slice(data);
        packet
    }
}

pub fn requests(bench: &mut Bench) -> Vec<Request> {
    bench
        .exchange(2, &[])
        .iter()
        .map(|packet| Request::of(packet))
        .collect()
}

/// Dials until the server has a question, and returns it.
pub fn ask(bench: &mut Bench, client: &mut Client) -> Request {
    client.dial(bench);
    let asked = requests(bench);
    let [request] = &asked[..] else {
        panic!("{asked:?}")
    };
    request.clone()
}

/// Gives the element a server's packet, and works until both ends have nothing to say.
pub fn decide(bench: &mut Bench, client: &mut Client, packet: Vec<u8>) -> Vec<Request> {
    let mut sent = bench.exchange(2, &[packet]);
    let mut frames = bench.sent(0);
    while !frames.is_empty() {
        let sends: Vec<_> = frames
            .iter()
            .flat_map(|frame| client.answer(frame))
            .collect();
        frames = bench.exchange(0, &sends);
    }
    sent.extend(bench.exchange(2, &[]));
    sent.iter().map(|packet| Request::of(packet)).collect()
}

pub fn logged_in(bench: &mut Bench, n: u8, grant: &[u8]) -> (Client, Vec<Request>) {
    let mut client = Client::new(n, "eve", "three");
    let request = ask(bench, &mut client);
    let records = decide(bench, &mut client, request.answer(2, grant));
    assert!(client.is_up(), "{}", bench.read("s.radius"));
    (client, records)
}

#[test]
fn a_login_by_chap_and_one_by_pap() {
    for pap in [false, true] {
        let mut bench = Bench::new(ARGUMENTS);
        let mut eve = Client::new(1, "eve", "three");
        eve.pap = pap;
        let asked = ask(&mut bench, &mut eve);
        assert_eq!((asked.to, asked.ports[1], asked.data[0]), (ONE, 1812, 1));
        assert_eq!(asked.value(1), Some(&b"eve"[..]));
        assert_eq!(
            (asked.value(4), asked.value(32)),
            (Some(&OWN[..]), Some(&b"clickos"[..]))
        );
        assert_eq!(
            (asked.number(5), asked.number(61)),
            (u32::from(eve.session), 32)
        );
        assert_eq!(asked.value(31), Some(&b"02-00-00-00-09-01"[..]));
        if pap {
            let pad = Md5::digest([SECRET, &asked.data[4..20]].concat());
            let text: Vec<u8> = asked
                .value(2)
                .unwrap()
                .iter()
                .zip(pad)
                .map(|(a, b)| a ^ b)
                .collect();
            assert_eq!(text, b"three\0\0\0\0\0\0\0\0\0\0\0");
        } else {
            let (id, sum) = asked.value(3).unwrap().split_at(1);
            let challenge = asked.value(60).unwrap();
            assert_eq!(sum, &Md5::digest([id, b"three", challenge].concat())[..]);
        }
        assert_eq!(eve.network, [false; 2], "it waits");
        decide(&mut bench, &mut eve, asked.answer(2, &GRANT));
        assert!(eve.is_up());
        assert_eq!(eve.address, [10, 0, 0, 9]);
        bench.exchange(0, &[eve.sends([10, 0, 0, 9], 100)]);
        assert_eq!(bench.sent(1).len(), 1);
        // users here log in as before
        let amy = super::subscriber::up(&mut bench, 2, "amy", "one");
        assert_eq!(amy.address, [10, 0, 0, 2]);
        let mut eve = Client::new(3, "eve", "four");
        eve.pap = pap;
        let codes: Vec<u8> = {
            eve.dial(&mut bench);
            requests(&mut bench)
                .iter()
                .map(|r| r.data[0])
                .filter(|code| *code == 1)
                .collect()
        };
        assert_eq!(codes, [1]);
    }
}

#[test]
fn rejections_and_terms_that_cannot_hold_end_the_login() {
    let wrong: [(u8, &[u8]); 9] = [
        (3, &[]),
        (11, &GRANT),
        (2, &[]),
        (2, &[8, 6, 10, 0, 1, 9]),
        (2, &[8, 6, 10, 0, 0, 2]),
        (2, &[8, 6, 10, 0, 0, 1]),
        (2, &[8, 6, 0xff, 0xff, 0xff, 0xfe]),
        (2, &[8, 6, 10, 0, 0, 9, 6, 6, 0, 0, 0, 1]),
        (
            2,
            &[
                8, 6, 10, 0, 0, 9, 97, 12, 0, 64, 0x20, 1, 0x0d, 0xb8, 0, 8, 0, 1,
            ],
        ),
    ];
    for (code, more) in wrong {
        let mut bench = Bench::new(ARGUMENTS);
        let mut eve = Client::new(1, "eve", "three");
        let asked = ask(&mut bench, &mut eve);
        decide(&mut bench, &mut eve, asked.answer(code, more));
        assert!(eve.failed && eve.is_over, "{code} {more:?}");
        assert_eq!(bench.read("s.rejected"), "1");
    }
    // the address of another one's session
    let mut bench = Bench::new(ARGUMENTS);
    logged_in(&mut bench, 1, &GRANT);
    let mut mallory = Client::new(2, "mallory", "x");
    let asked = ask(&mut bench, &mut mallory);
    decide(&mut bench, &mut mallory, asked.answer(2, &GRANT));
    assert!(mallory.failed);
    assert_eq!(bench.read("s.unusable"), "1");
    assert_eq!(bench.read("s.count"), "1");
}

#[test]
fn names_that_lists_cannot_hold_are_not_asked_for() {
    let mut bench = Bench::new(ARGUMENTS);
    for name in ["e e", "e,e", "e\"", "\u{7f}", ""] {
        let mut eve = Client::new(1, name, "three");
        eve.dial(&mut bench);
        assert!(eve.failed, "{name}");
    }
    assert!(requests(&mut bench).is_empty());
}

#[test]
fn packets_that_are_no_servers_change_nothing() {
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    let asked = ask(&mut bench, &mut eve);
    let right = asked.answer(2, &GRANT);
    for (at, value) in [
        (9, 6),
        (6, 0x20),
        (7, 1),
        (15, 6),
        (19, 2),
        (21, 9),
        (23, 9),
        (25, 7),
        (27, 1),
    ] {
        let mut wrong = right.clone();
        wrong[at] = value;
        bench.exchange(2, &[wrong]);
    }
    for length in 0..right.len() {
        bench.exchange(2, &[right[..length].to_vec()]);
    }
    assert!(bench.sent(0).is_empty());
    decide(&mut bench, &mut eve, right.clone());
    assert!(eve.is_up());
    // again, and after the session's end
    bench.exchange(2, std::slice::from_ref(&right));
    bench.write("s.disconnect", "eve");
    bench.exchange(0, &[]);
    bench.exchange(2, &[right]);
    assert!(bench.sent(0).is_empty());
    assert_eq!(bench.read("s.count"), "0");
}

#[test]
fn a_repeated_request_waits_and_silence_ends_the_login() {
    let mut bench = Bench::new(&ARGUMENTS.replace("AUTH ANY", "AUTH PAP"));
    let mut eve = Client::new(1, "eve", "three");
    eve.pap = true;
    let asked = ask(&mut bench, &mut eve);
    // the answer is for the last request
    let again = eve.control(0xc023, 1, 77, b"\x03eve\x05three");
    assert!(bench.exchange(0, &[again]).is_empty());
    assert!(requests(&mut bench).is_empty());
    bench.exchange(2, &[asked.answer(2, &GRANT)]);
    let frames = bench.sent(0);
    assert_eq!(frames[0][20..24], [0xc0, 0x23, 2, 77]);
    // no server answers
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    ask(&mut bench, &mut eve);
    let frames = bench.wait(8);
    frames.iter().for_each(|frame| drop(eve.answer(frame)));
    assert!(eve.failed && eve.is_over);
    assert_eq!(requests(&mut bench).len(), 2, "it was repeated twice");
    assert!(bench.read("s.radius").contains(" timeouts 1 "));
}

#[test]
fn a_session_that_ends_asks_no_more() {
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    let asked = ask(&mut bench, &mut eve);
    bench.exchange(0, &[eve.control(0xc021, 5, 1, &[])]);
    bench.exchange(2, &[asked.answer(2, &GRANT)]);
    bench.wait(3);
    assert!(requests(&mut bench).is_empty());
    assert_eq!(bench.read("s.count"), "0");
}

#[test]
fn an_account_has_a_start_interim_records_and_an_end() {
    let mut bench = Bench::new(ARGUMENTS);
    let grant = [&GRANT[..], &[85, 6, 0, 0, 0, 60]].concat();
    let (eve, records) = logged_in(&mut bench, 1, &grant);
    let [start] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(
        (start.ports[1], start.data[0], start.number(40)),
        (1813, 4, 1)
    );
    assert_eq!(start.value(25), Some(&b"gold"[..]));
    assert_eq!(
        (start.value(8), start.number(45)),
        (Some(&[10, 0, 0, 9][..]), 1)
    );
    let sum = Md5::digest([&start.data[..4], &[0; 16], &start.data[20..], SECRET].concat());
    assert_eq!(start.data[4..20], sum[..]);
    bench.exchange(2, &[start.answer(5, &[])]);
    bench.exchange(0, &[eve.sends([10, 0, 0, 9], 100)]);
    bench.exchange(1, &[ip_packet([8, 8, 8, 8], [10, 0, 0, 9], 50)]);
    bench.wait(19);
    assert!(requests(&mut bench).is_empty());
    let keep = eve.control(0xc021, 9, 1, &[9, 9, 9, 9]);
    for _ in 0..45 {
        bench.exchange(0, std::slice::from_ref(&keep));
        bench.wait(1);
    }
    let interim = requests(&mut bench).remove(0);
    assert_eq!((interim.number(40), interim.number(46)), (3, 60));
    assert_eq!(interim.value(44), start.value(44));
    bench.exchange(2, &[interim.answer(5, &[])]);
    bench.write("s.disconnect", "eve");
    let stop = requests(&mut bench).remove(0);
    assert_eq!((stop.number(40), stop.number(49)), (2, 6));
    let [octets, packets, words] = [[42, 43], [47, 48], [52, 53]];
    assert_eq!(octets.map(|kind| stop.number(kind)), [100, 50]);
    assert_eq!(packets.map(|kind| stop.number(kind)), [1, 1]);
    assert_eq!(words.map(|kind| stop.number(kind)), [0, 0]);
    assert_eq!(stop.value(44), start.value(44));
    // a record without an answer is repeated as it was
    bench.wait(3);
    assert_eq!(requests(&mut bench), [stop]);
}

#[test]
fn gigawords_count_on() {
    let mut bench = Bench::new(ARGUMENTS);
    bench.write(
        "s.state",
        "pppoe 1\n7 02-00-00-00-09-01 eve 10.0.0.9 99 1492 1000 5 12884901889 0 6 8589934594 0 77 - 0,0,0,0,0,676f\n",
    );
    bench.write("s.disconnect", "eve");
    let stop = requests(&mut bench).remove(0);
    assert_eq!([42, 52, 43, 53].map(|kind| stop.number(kind)), [1, 3, 2, 2]);
    assert_eq!(stop.value(44), Some(&b"000000000000004d"[..]));
    assert_eq!(stop.value(25), Some(&b"go"[..]));
}

#[test]
fn servers_set_the_end_of_a_session_and_its_rates() {
    for (attribute, why) in [(27, "session-timeout"), (28, "idle-timeout")] {
        let mut bench = Bench::new(ARGUMENTS);
        let grant = [&GRANT[..], &[attribute, 6, 0, 0, 0, 10]].concat();
        let (eve, _) = logged_in(&mut bench, 1, &grant);
        for _ in 0..6 {
            bench.exchange(0, &[eve.sends([10, 0, 0, 9], 100)]);
            bench.wait(1);
        }
        assert_eq!(bench.read("s.count"), "1");
        bench.wait(5);
        assert_eq!(bench.read("s.count") == "1", attribute == 28);
        bench.wait(6);
        assert!(bench.read("s.ended").ends_with(&format!(" {why}\n")));
    }
    // 800 kbit/s from the subscriber
    let mut bench = Bench::new(ARGUMENTS);
    let rates = [26, 12, 0, 0, 0x37, 0x2a, 7, 6, 0, 0x0c, 0x35, 0];
    let (eve, _) = logged_in(&mut bench, 1, &[&GRANT[..], &rates].concat());
    bench.exchange(0, &vec![eve.sends([10, 0, 0, 9], 1000); 100]);
    assert_eq!(bench.sent(1).len(), 16);
}

#[test]
fn sessions_of_a_server_outlive_users_swaps_and_moves() {
    let mut bench = Bench::new(ARGUMENTS);
    let (eve, _) = logged_in(&mut bench, 1, &GRANT);
    bench.write("s.users", "bob 10.0.0.3");
    assert_eq!(bench.read("s.count"), "1");
    let state = bench.read("s.state");
    assert!(state.ends_with(" - 0,0,0,0,0,676f6c64\n"), "{state}");
    let mut other = Bench::new(ARGUMENTS);
    other.write("s.state", &state);
    assert_eq!(other.read("s.state"), state);
    other.exchange(0, &[eve.sends([10, 0, 0, 9], 60)]);
    assert_eq!(other.sent(1).len(), 1);
    // not where the address is a user's, nor beyond the network
    for arguments in ["bob 10.0.0.9", "bob 10.0.0.3, NETWORK 10.0.1.0/24"] {
        let mut third = Bench::new(arguments);
        third.write("s.state", &state);
        assert_eq!(third.read("s.count"), "0");
    }
    // a user here that has the address takes it
    other.write("s.users", "amy 10.0.0.9");
    super::subscriber::up(&mut other, 3, "amy", "one");
    assert!(other.read("s.ended").ends_with(" replaced\n"));
    assert_eq!(other.read("s.count"), "1");
    // a newer login of the same name replaces the session, with the same address
    let (_, records) = logged_in(&mut bench, 2, &GRANT);
    let kinds: Vec<u32> = records.iter().map(|record| record.number(40)).collect();
    assert_eq!(kinds, [2, 1]);
    assert_eq!(records[0].number(49), 13);
    bench.now_ns += SECOND_NS;
    assert_eq!(bench.read("s.count"), "1");
}
