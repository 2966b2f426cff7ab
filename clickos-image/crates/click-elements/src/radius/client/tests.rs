// SPDX-License-Identifier: Apache-2.0
//! Servers that answer, are silent, lie, or are not the ones that were asked.
use super::*;
use crate::radius::packet::HEADER;
use crate::radius::packet::tests::{answer, unsigned};
use alloc::string::ToString;
use proptest::prelude::*;

const ONE: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 5);
const TWO: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 6);
const SECRET: &[u8] = b"xyzzy5461";

/// A client with the time.
struct Bench {
    client: Client,
    now_ns: u64,
    drawn: u8,
}

impl Bench {
    fn new(servers: &[Ipv4Addr]) -> Self {
        let place = |address: &Ipv4Addr| Place {
            address: *address,
            port: 1812,
        };
        let places: Vec<Place> = servers.iter().map(place).collect();
        Self {
            client: Client::new(&places, SECRET.to_vec(), (true, 0)),
            now_ns: 1000 * SECOND_NS,
            drawn: 0,
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Client, &mut Moment<'_>) -> R) -> R {
        let drawn = &mut self.drawn;
        let mut draw = || {
            *drawn = drawn.wrapping_add(1);
            [*drawn; 32]
        };
        let mut moment = Moment {
            now_ns: self.now_ns,
            draw: &mut draw,
        };
        act(&mut self.client, &mut moment)
    }

    fn ask(&mut self, session: u16) -> bool {
        let question = Question {
            name: "amy".to_string(),
            proof: Proof::Password(b"one".to_vec()),
        };
        self.with(|client, moment| client.ask(session, question, Attributes::default(), moment))
    }

    fn record(&mut self, interim: bool) {
        let mut record = Attributes::default();
        record.number(attribute::ACCT_STATUS_TYPE, 1);
        self.with(|client, moment| client.record(record, interim, moment));
    }

    fn sent(&mut self) -> Vec<Outgoing> {
        core::mem::take(&mut self.client.outgoing)
    }

    fn wait(&mut self, seconds: u64) -> Vec<u16> {
        let mut silent = Vec::new();
        for _ in 0..seconds {
            self.now_ns += SECOND_NS;
            silent.extend(self.with(Client::tick));
        }
        silent
    }

    fn receive(&mut self, from: (Ipv4Addr, u16), packet: &[u8]) -> Option<(u16, Verdict)> {
        self.with(|client, moment| client.receive(from, packet, moment))
    }

    /// A server's signed answer to what was sent.
    fn answer(&mut self, sent: &Outgoing, code: u8, more: &[u8]) -> Option<(u16, Verdict)> {
        let packet = answer_to(sent, code, more);
        self.receive((sent.to, sent.port), &packet)
    }

    fn count(&self, line: usize, word: &str) -> u64 {
        let text = self.client.statistics(self.now_ns);
        let words: Vec<&str> = text.lines().nth(line).unwrap().split(' ').collect();
        let at = words.iter().position(|found| *found == word).unwrap();
        words[at + 1].parse().unwrap()
    }
}

fn answer_to(sent: &Outgoing, code: u8, more: &[u8]) -> Vec<u8> {
    let request = sent.packet[4..HEADER].try_into().unwrap();
    answer(code, sent.packet[1], more, &request, SECRET)
}

fn unsigned_to(sent: &Outgoing, code: u8) -> Vec<u8> {
    let request = sent.packet[4..HEADER].try_into().unwrap();
    unsigned(code, sent.packet[1], &request, SECRET)
}

#[test]
fn a_login_is_decided_by_its_answer_once() {
    let mut bench = Bench::new(&[ONE]);
    assert!(bench.ask(7));
    let sent = bench.sent().remove(0);
    assert_eq!((sent.to, sent.port, sent.packet[0]), (ONE, 1812, 1));
    let (session, verdict) = bench.answer(&sent, 2, &[8, 6, 10, 0, 0, 9]).unwrap();
    assert_eq!(session, 7);
    assert!(
        matches!(verdict, Verdict::Accept(grant) if grant.address == Some([10, 0, 0, 9].into()))
    );
    // a duplicate counts as nothing
    assert_eq!(bench.answer(&sent, 2, &[8, 6, 10, 0, 0, 9]), None);
    assert_eq!(
        (bench.count(0, "accepts"), bench.count(1, "strays")),
        (1, 1)
    );
    assert!(!bench.client.is_busy());
    for (code, more) in [(3, &[][..]), (11, &[]), (2, &[6, 6, 0, 0, 0, 1])] {
        bench.ask(7);
        let sent = bench.sent().remove(0);
        assert_eq!(bench.answer(&sent, code, more), Some((7, Verdict::Reject)));
    }
    assert_eq!(bench.count(0, "rejects"), 3);
}

#[test]
fn what_is_forged_changes_only_a_count() {
    let mut bench = Bench::new(&[ONE, TWO]);
    bench.ask(7);
    let sent = bench.sent().remove(0);
    let right = answer_to(&sent, 2, &[]);
    for from in [(TWO, 1812), (ONE, 1813), (ONE, 9), ([9; 4].into(), 1812)] {
        assert_eq!(bench.receive(from, &right), None, "{from:?}");
    }
    assert_eq!(bench.count(2, "strays"), 4);
    let mut other = right.clone();
    other[1] ^= 1;
    assert_eq!(bench.receive((ONE, 1812), &other), None);
    for at in (0..right.len()).filter(|at| ![1, 2, 3].contains(at)) {
        let mut wrong = right.clone();
        wrong[at] ^= 1;
        assert_eq!(bench.receive((ONE, 1812), &wrong), None, "byte {at}");
    }
    // no signature, right sum: an attacker makes such an answer of a rejection (CVE-2024-3596)
    let plain = unsigned_to(&sent, 2);
    let bad = bench.count(0, "bad");
    assert_eq!(bench.receive((ONE, 1812), &plain), None);
    assert_eq!(bench.count(0, "bad"), bad + 1);
    // the login still waits, and the right answer decides
    assert!(bench.receive((ONE, 1812), &right).is_some());
    // one without a signature counts where the operator permits it
    bench.client.signed = false;
    bench.ask(8);
    let sent = bench.sent().pop().unwrap();
    assert_eq!(bench.receive((ONE, 1812), &plain), None);
    let plain = unsigned_to(&sent, 3);
    assert_eq!(
        bench.receive((ONE, 1812), &plain),
        Some((8, Verdict::Reject))
    );
}

#[test]
fn a_silent_server_gets_three_tries_and_the_other_one_comes_first_then() {
    let mut bench = Bench::new(&[ONE, TWO]);
    bench.ask(7);
    assert_eq!(bench.wait(7), [0; 0]);
    let sent = bench.sent();
    let to: Vec<Ipv4Addr> = sent.iter().map(|sent| sent.to).collect();
    assert_eq!(to, [ONE, ONE, ONE, TWO]);
    // a repetition is the same packet, a request to another server is another one
    assert!(sent[0] == sent[1] && sent[1] == sent[2]);
    assert_ne!(sent[2].packet[4..HEADER], sent[3].packet[4..HEADER]);
    assert!(bench.answer(&sent[3], 3, &[]).is_some());
    assert!(
        bench
            .client
            .statistics(bench.now_ns)
            .starts_with("10.9.2.5 1812 down ")
    );
    bench.ask(8);
    assert_eq!(bench.sent()[0].to, TWO);
    bench.with(|client, _| client.forget(8));
    // after a minute the first one is asked again
    bench.wait(60);
    bench.ask(9);
    assert_eq!(bench.sent()[0].to, ONE);
    // no server answers at all
    assert_eq!(bench.wait(13), [9]);
    assert_eq!(bench.sent().len(), 5);
    assert_eq!(bench.count(0, "timeouts") + bench.count(1, "timeouts"), 3);
    assert!(!bench.client.is_busy());
}

#[test]
fn no_more_logins_are_under_way_than_identifiers() {
    let mut bench = Bench::new(&[ONE]);
    let asked = (0..300).filter(|session| bench.ask(*session)).count();
    assert_eq!(asked, 256);
    let mut ids: Vec<u8> = bench.sent().iter().map(|sent| sent.packet[1]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 256);
    bench.with(|client, _| client.forget(0));
    assert!(bench.ask(300));
    // a session asks once: a newer login takes the place of the one before
    assert!(bench.ask(300));
    assert_eq!(bench.client.windows[LOGINS].pending.len(), 256);
    let mut off = Bench::new(&[]);
    assert!(!off.ask(1));
}

#[test]
fn records_wait_for_room_and_are_dropped_beyond_it() {
    let mut bench = Bench::new(&[ONE]);
    for _ in 0..UNDER_WAY + QUEUE {
        bench.record(true);
    }
    assert_eq!(bench.client.queue.len(), QUEUE / 2);
    for _ in 0..QUEUE {
        bench.record(false);
    }
    assert_eq!(bench.client.queue.len(), QUEUE);
    assert_eq!(bench.count(1, "dropped"), QUEUE as u64);
    let sent = bench.sent();
    assert_eq!(
        (sent.len(), sent[0].port, sent[0].packet[0]),
        (UNDER_WAY, 1813, 4)
    );
    // an answer needs no signature, and lets the next one go
    let packet = unsigned_to(&sent[0], 5);
    assert_eq!(bench.receive((ONE, 1813), &packet), None);
    assert_eq!((bench.count(0, "recorded"), bench.sent().len()), (1, 1));
    // who answers a record does not decide a login
    bench.ask(7);
    let login = bench.sent().remove(0);
    assert_eq!(bench.answer(&login, 5, &[]), None);
    // records are lost after all tries
    bench.with(|client, _| client.forget(7));
    bench.client.queue.clear();
    bench.wait(125);
    assert_eq!(bench.count(1, "lost"), UNDER_WAY as u64);
    assert!(!bench.client.is_busy());
}

#[test]
fn a_change_of_servers_begins_again_with_what_is_under_way() {
    let mut bench = Bench::new(&[ONE]);
    bench.ask(7);
    bench.record(false);
    bench.sent();
    let two = Place {
        address: TWO,
        port: 99,
    };
    bench.with(|client, moment| client.set_servers(&[two], moment));
    let mut sent: Vec<u16> = bench.sent().iter().map(|sent| sent.port).collect();
    sent.sort_unstable();
    assert_eq!(sent, [99, 100]);
    bench.with(|client, moment| client.set_secret(Vec::new(), moment));
    assert!(!bench.client.is_on() && bench.sent().is_empty());
    assert_eq!(bench.client.queue.len(), 1, "a record waits for a key");
    bench.with(|client, moment| client.set_secret(b"new".to_vec(), moment));
    assert_eq!(bench.sent().len(), 1);
    let mut next = Client::new(&[], Vec::new(), (true, 0));
    let mut old = core::mem::take(&mut bench.client);
    bench.with(|_, moment| next.take_from(&mut old, Given::default(), moment));
    assert!(next.is_on() && next.is_busy(), "a swap keeps all");
}

proptest! {
    /// Datagrams of strangers neither decide a login nor make a panic.
    #[test]
    fn strangers_decide_nothing(
        datagrams in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..64), 0u8..6, 1812u16..1815), 0..20),
    ) {
        let mut bench = Bench::new(&[ONE]);
        bench.ask(7);
        bench.record(false);
        for (mut datagram, code, port) in datagrams {
            let length = datagram.len() as u16;
            if let [first, id, high, low, ..] = &mut datagram[..] {
                (*first, *id) = (code, 1);
                [*high, *low] = length.to_be_bytes();
            }
            prop_assert_eq!(bench.receive((ONE, port), &datagram), None);
        }
        prop_assert_eq!(bench.client.windows.each_ref().map(|w| w.pending.len()), [1, 1]);
    }
}
