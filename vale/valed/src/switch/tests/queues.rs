// SPDX-License-Identifier: Apache-2.0
//! A guest whose port has several queues.
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{pwrite, write};

use super::*;
use crate::device::Device;
use crate::device::queues;
use crate::device::ring_port::RingPort;

const SLOTS: u32 = 64;
/// Where a region of 64 slots has the descriptors of tx (docs/rings.md).
const TX: usize = 0x1000;

/// The guest's side of its queues.
type Guests = Vec<Guest>;

/// The far end of a guest with this number of queues.
fn far_end(count: usize) -> (Box<dyn Device>, Guests) {
    let (mut rings, mut guests) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (ring, fds) = RingPort::create(SLOTS, None).unwrap();
        rings.push(ring);
        guests.push(Guest {
            name: "many".parse().unwrap(),
            ring: GuestPort::map(&fds[0]).unwrap(),
            fds: fds.into(),
        });
    }
    (queues::device(rings).unwrap(), guests)
}

/// A guest with MAC address 2 that has this number of queues.
fn many(bench: &mut Bench, count: usize) -> Guests {
    let (device, guests) = far_end(count);
    let port = port::Port::new(&add("many", json!({"mac": mac(2)})), device);
    bench.switch.add(&mut Some(Box::new(port))).unwrap();
    guests
}

/// A datagram of the flow `port` to `last`; its number is in the payload.
fn datagram(last: u8, port: u16, number: u8) -> Vec<u8> {
    let mut frame = [mac(last).0, mac(3 - last).0].concat();
    frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 3 - last, 10, 0, 0, last]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 80, 0, 12, 0, 0, number, 0, 0, 0]);
    frame
}

fn port_and_number(frame: &[u8]) -> (u16, u8) {
    (u16::from_be_bytes([frame[34], frame[35]]), frame[42])
}

/// Makes the descriptors of tx invalid, of which one is published.
fn break_next(guest: &mut Guest) {
    guest.ring.push(&[1; 60]).unwrap();
    let _ = guest.ring.publish();
    let wrong = vec![0xff; SLOTS as usize * 8];
    pwrite(&guest.fds[0], &wrong, TX as u64).unwrap();
}

fn counters(bench: &Bench) -> Counters {
    let mut infos = bench.switch.infos();
    infos
        .find(|i| i.port == "many".parse().unwrap())
        .unwrap()
        .counters
}

#[test]
fn frames_of_a_flow_keep_their_order_in_one_queue() {
    for count in 2..=queues::MAX {
        let mut bench = Bench::new();
        let mut a = bench.guest(1, 1);
        let mut many = many(&mut bench, count);
        let mut seen = vec![std::collections::HashSet::new(); count];
        for number in 0..20 {
            (0..40).for_each(|port| a.send(&datagram(2, port, number)));
            bench.round();
            for (queue, seen) in many.iter_mut().zip(&mut seen) {
                let found: Vec<_> = queue.received();
                let found: Vec<_> = found.iter().map(|f| port_and_number(f)).collect();
                assert!(found.is_sorted_by_key(|(port, _)| *port), "{found:?}");
                assert!(found.iter().all(|(_, n)| *n == number));
                seen.extend(found.iter().map(|(port, _)| *port));
            }
        }
        assert!(seen.iter().all(|ports| !ports.is_empty()), "{seen:?}");
        // No flow was in two queues.
        assert_eq!(seen.iter().map(|ports| ports.len()).sum::<usize>(), 40);
        assert_eq!(counters(&bench).tx_packets, 800);
    }
}

#[test]
fn other_frames_come_by_the_first_queue() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut many = many(&mut bench, 4);
    for len in [14, 60, 1514] {
        a.send(&frame(mac(2), mac(1), len));
        a.send(&frame(BROADCAST, mac(1), len));
    }
    bench.round();
    assert_eq!(many[0].received().len(), 6);
    assert!(
        many[1..]
            .iter_mut()
            .all(|queue| queue.received().is_empty())
    );
}

/// A queue that is never empty does not keep the others from their turns.
#[test]
fn all_queues_are_served_in_turns() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut many = many(&mut bench, 4);
    let mut got = Vec::new();
    for round in 0..8 {
        for (n, queue) in many.iter_mut().enumerate() {
            while queue.ring.push(&datagram(1, n as u16, round)).is_ok() {}
            let _ = queue.ring.publish();
        }
        bench.round();
        let found = a.received();
        let ports: Vec<_> = found.iter().map(|f| port_and_number(f).0).collect();
        assert!(ports.windows(2).all(|two| two[0] == two[1]), "one queue");
        got.extend(ports.first().copied());
    }
    let mut ports = got.clone();
    ports.sort_unstable();
    assert_eq!(ports, [0, 0, 1, 1, 2, 2, 3, 3], "{got:?}");
}

#[test]
fn frames_come_from_the_queue_that_has_them() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut many = many(&mut bench, 3);
    for n in [2, 0, 1, 1, 2] {
        for len in [60, 200, 1500] {
            let mut sent = datagram(1, n as u16, len as u8);
            sent.resize(len, n as u8);
            many[n].send(&sent);
            bench.round();
            assert_eq!(a.received(), [sent], "queue {n}");
        }
    }
    assert_eq!(counters(&bench).rx_packets, 15);
    // All slots came back.
    for queue in &mut many {
        assert_eq!(queue.ring.space(), SLOTS - 1);
    }
}

#[test]
fn each_queue_has_room_of_its_own() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut many = many(&mut bench, 2);
    let probe = |bench: &mut Bench, many: &mut Guests, a: &mut Guest, port| {
        a.send(&datagram(2, port, 0));
        bench.round();
        many.iter_mut()
            .position(|queue| !queue.received().is_empty())
    };
    let queue = |n| (0..99).map(move |port| (n, port));
    let mut flow_of = |n| {
        let mut ports = queue(n);
        let found = ports.find(|(n, port)| probe(&mut bench, &mut many, &mut a, *port) == Some(*n));
        found.unwrap().1
    };
    let (first, second) = (flow_of(0), flow_of(1));
    for number in 0..SLOTS as u8 + 5 {
        a.send(&datagram(2, first, number));
        bench.round();
    }
    a.send(&datagram(2, second, 1));
    bench.round();
    assert_eq!(counters(&bench).dropped_full, 6);
    assert_eq!(many[0].received().len(), SLOTS as usize - 1);
    assert_eq!(many[1].received().len(), 1);
}

#[test]
fn what_is_wrong_in_one_queue_is_counted_and_stops_no_other() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut many = many(&mut bench, 3);
    for (n, broken) in [1, 2, 1].into_iter().enumerate() {
        break_next(&mut many[broken]);
        many[0].send(&datagram(1, 7, 1));
        bench.round();
        bench.round();
        assert_eq!(a.received().len(), 1);
        assert_eq!(counters(&bench).dropped_malformed, n as u64 + 1);
    }
}

#[test]
fn what_came_before_the_port_is_dropped_from_all_queues() {
    let (mut device, mut guests) = far_end(2);
    for guest in &mut guests {
        guest.send(&datagram(1, 7, 1));
        break_next(guest);
    }
    device.discard();
    assert_eq!(device.malformed(), 0);
    assert_eq!(device.fetch(&mut crate::device::Burst::default()), 0);
    for guest in &mut guests {
        assert_eq!(guest.ring.space(), SLOTS - 1);
    }
}

/// True if a byte waits in the pipe, which this reads.
fn was_woken(guest: &Guest) -> bool {
    rustix::io::read(&guest.fds[2], &mut [0u8; 8]).is_ok_and(|n| n > 0)
}

#[test]
fn a_sleeping_queue_is_woken_by_its_own_frames_only() {
    let mut bench = Bench::new();
    let mut a = bench.guest(1, 1);
    let mut many = many(&mut bench, 2);
    for guest in &many {
        rustix::fs::fcntl_setfl(&guest.fds[2], rustix::fs::OFlags::NONBLOCK).unwrap();
    }
    let mut woken = [0; 2];
    for port in 0..40 {
        many.iter_mut()
            .for_each(|queue| assert!(!queue.ring.sleep_prepare()));
        a.send(&datagram(2, port, 0));
        bench.round();
        for (n, queue) in many.iter_mut().enumerate() {
            let has_frames = !queue.received().is_empty();
            assert_eq!(was_woken(queue), has_frames, "queue {n}");
            woken[n] += u32::from(has_frames);
            queue.ring.wake_done();
        }
    }
    assert!(woken.iter().all(|count| *count > 0), "{woken:?}");
}

/// The events that an epoll set has now.
fn events(set: &OwnedFd) -> usize {
    let mut found: Vec<Event> = Vec::with_capacity(4);
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    epoll::wait(set, rustix::buffer::spare_capacity(&mut found), Some(&now)).unwrap();
    found.len()
}

/// A worker watches the port as it watches others: edge by edge.
#[test]
fn a_kick_of_any_queue_is_an_event_of_the_port() {
    let (mut device, mut guests) = far_end(4);
    let set = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let flags = EventFlags::IN | EventFlags::ET;
    epoll::add(
        &set,
        device.event_fd().unwrap(),
        EventData::new_u64(1),
        flags,
    )
    .unwrap();
    for _ in 0..3 {
        for guest in &mut guests {
            assert!(!device.sleep_prepare());
            guest.ring.push(&datagram(1, 1, 1)).unwrap();
            assert!(guest.ring.publish(), "the switch sleeps");
            assert_eq!(events(&set), 0);
            write(&guest.fds[1], &1u64.to_ne_bytes()).unwrap();
            assert_eq!(events(&set), 1);
            device.take_event();
            assert_eq!(events(&set), 0);
            assert!(device.sleep_prepare(), "a frame has come");
            device.wake_done();
            device.discard();
        }
    }
}

#[test]
fn a_port_has_rings() {
    assert!(queues::device(Vec::new()).is_err());
}
