// SPDX-License-Identifier: Apache-2.0
//! Many ports, and ports that come and go under load.
use vale_proto::Owner;

use super::*;
use crate::policy::offload_rules::OffloadTable;

const PORTS: usize = 256;

fn mac_of(n: usize) -> [u8; 6] {
    [2, 0, 0, 1, (n >> 8) as u8, n as u8]
}

/// A frame of an EtherType for experiments.
fn frame(from: usize, to: usize) -> Vec<u8> {
    let mut frame = [mac_of(to), mac_of(from)].concat();
    frame.extend([0x88, 0xb5]);
    frame.resize(60, to as u8);
    frame
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[test]
fn all_of_256_ports_reach_each_other_at_four_workers() {
    let bench = Bench::new(4);
    let mut guests: Vec<_> = (0..PORTS)
        .map(|n| {
            bench.add(
                &format!("p{n}"),
                json!({"mac": text(mac_of(n)), "slots": 64}),
            )
        })
        .collect();
    assert!(
        bench.try_add("more", json!({})).is_err(),
        "the switch is full"
    );
    for step in [1, 2, 101] {
        for (n, guest) in guests.iter_mut().enumerate() {
            guest.send(&frame(n, (n + step) % PORTS));
        }
        for (n, guest) in guests.iter_mut().enumerate() {
            let from = (n + PORTS - step) % PORTS;
            assert_eq!(guest.receive(), frame(from, n), "{step}");
        }
    }
    guests[7].send(&[&BROADCAST[..], &frame(7, 0)[6..]].concat());
    let reached = guests.iter_mut().filter(|guest| guest.id != id("p7"));
    assert_eq!(reached.map(Guest::receive).count(), PORTS - 1);
    let ports = bench.handle.ports(None).unwrap();
    assert_eq!(ports.len(), PORTS);
    assert!(
        ports
            .iter()
            .all(|p| p.counters.rx_packets >= 3 && p.counters.dropped_full == 0)
    );
}

/// Two guests exchange frames one by one while a port of the same segment comes and goes. No frame is
/// lost.
#[test]
fn ports_that_come_and_go_disturb_no_others() {
    let bench = Bench::new(3);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    let shared = Arc::new((AtomicBool::new(false), AtomicU32::new(0)));
    let (stop, rounds) = &*shared;
    let exchanging = Arc::clone(&shared);
    let exchange = std::thread::spawn(move || {
        let ((stop, rounds), mut longest) = (&*exchanging, Duration::ZERO);
        while !stop.load(Ordering::Relaxed) {
            let start = Instant::now();
            a.send(&udp(1, 2, (7, 7), 100));
            assert_eq!(b.receive(), udp(1, 2, (7, 7), 100));
            b.send(&udp(2, 1, (7, 7), 100));
            assert_eq!(a.receive(), udp(2, 1, (7, 7), 100));
            longest = longest.max(start.elapsed());
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        longest
    });
    let mut changes = 0..;
    while changes.start < 200 || rounds.load(Ordering::Relaxed) <= 100 {
        let n = changes.next().unwrap();
        let port = bench.add("churn", json!({"segment": n % 2 + 1, "mac": mac_text(3)}));
        assert_eq!(bench.handle.set_link(&port.id, n % 3 > 0), Some(true));
        assert_eq!(bench.handle.move_port(&port.id, n % 3), Some(Ok(())));
        assert_eq!(bench.handle.remove(&port.id), Some(()));
        assert_eq!(port.fds.len(), 3);
        drop(port);
    }
    stop.store(true, Ordering::Relaxed);
    let longest = exchange.join().unwrap();
    println!("{rounds:?} round trips, the longest {longest:?}");
}

/// A frame that is on its way to a port is never delivered to a later port at the same place.
#[test]
fn a_frame_for_a_port_that_is_gone_reaches_no_later_one() {
    let bench = Bench::new(2);
    let mut a = bench.guest(1);
    for n in 0..300 {
        let first = bench.add("first", json!({"mac": mac_text(2)}));
        (0..50).for_each(|_| a.send(&udp(1, 2, (7, 7), 60)));
        assert_eq!(bench.handle.remove(&first.id), Some(()));
        let mut second = bench.add("second", json!({"mac": mac_text(3), "segment": 2}));
        if n % 10 == 0 {
            assert!(bench.rest(&mut second).is_empty());
        }
        assert_eq!(second.try_receive(), None);
        assert_eq!(bench.handle.remove(&second.id), Some(()));
        eventually("the sender's ring is empty", || {
            (a.ring.space() >= 60).then_some(())
        });
    }
}

/// Packets meet a table that comes and goes while they arrive from another worker. The guest or the
/// switch gets each one.
#[test]
fn tables_come_and_go_under_load_without_a_lost_packet() {
    const PACKETS: u64 = 20_000;
    const BURST: u64 = 100;
    let bench = Bench::new(2);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    let port = || {
        let ports = bench.handle.ports(None).unwrap();
        ports.into_iter().find(|p| p.port == id("g2").port).unwrap()
    };
    let done = AtomicBool::new(false);
    let [changes, decided] = [AtomicU64::new(0), AtomicU64::new(0)];
    let (mut received, mut sent) = (0, 0);
    std::thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let ended = |now: Option<OffloadTable>| {
                let change = bench.handle.set_table(&id("g2"), Owner::Guest, now, None);
                let before = change.unwrap().unwrap().before;
                let hits = before.map_or(0, |table| table.rules[0].hits);
                decided.fetch_add(hits, Ordering::Relaxed);
            };
            while !done.load(Ordering::Relaxed) {
                ended(Some(OffloadTable::new(1, &["drop".parse().unwrap()])));
                ended(None);
                changes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let judged = || {
            let now = port().counters;
            assert_eq!(now.dropped_full, 0);
            now.tx_packets + now.dropped_offload
        };
        let is_rare =
            || changes.load(Ordering::Relaxed) <= 10 || decided.load(Ordering::Relaxed) == 0;
        while sent < PACKETS || is_rare() || received == 0 {
            (0..BURST).for_each(|_| a.send(&udp(1, 2, (1, 2), 60)));
            sent += BURST;
            eventually("a judge of each packet", || {
                (judged() == sent).then_some(())
            });
            received += b.received().len() as u64;
        }
        done.store(true, Ordering::Relaxed);
        changer.join().unwrap();
    });
    assert_eq!(received + decided.into_inner(), sent);
}
