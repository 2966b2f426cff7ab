// SPDX-License-Identifier: Apache-2.0
//! Packets that move between the pools of threads, and where their buffers go.
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{scope, spawn};

use click_packet::anno::{self, PacketType};
use click_packet::{Batch, InTransit, Packet, PacketPool, Underway};

fn batch_of(packets: impl IntoIterator<Item = Packet>) -> Batch {
    let mut batch = Batch::new();
    batch.extend(packets);
    batch
}

fn send_all(pool: &mut PacketPool, batch: &mut Batch, to: &Sender<InTransit>) -> usize {
    let mut underway = Underway::default();
    pool.send(batch, usize::MAX, &mut underway, |packet| {
        to.send(packet).unwrap()
    })
}

fn receive_all(pool: &mut PacketPool, from: &Receiver<InTransit>) -> Batch {
    let mut batch = Batch::new();
    pool.receive(usize::MAX, &mut batch, || from.recv().ok());
    batch
}

/// Runs both sides, each on a thread of its own: pools belong to threads.
fn pass(
    sends: impl FnOnce(&mut PacketPool, Sender<InTransit>) + Send,
    receives: impl FnOnce(&mut PacketPool, Receiver<InTransit>) + Send,
) {
    let (sender, receiver) = channel();
    scope(|threads| {
        threads.spawn(|| sends(&mut PacketPool::migrating(100), sender));
        threads.spawn(|| receives(&mut PacketPool::migrating(100), receiver));
    });
}

#[test]
fn a_packet_arrives_as_it_was_where_it_was() {
    let (told, tells) = channel();
    let sends = move |pool: &mut PacketPool, to| {
        let mut packet = pool.packet_from(&[7; 100]).unwrap();
        packet.set_mac_offset(0);
        packet.set_network(14, 20);
        packet.pull(34);
        packet.set_timestamp_ns(5);
        packet.anno_mut().set_u32(anno::AGGREGATE, 9);
        packet.anno_mut().set_dst_ip([1, 2, 3, 4]);
        packet.anno_mut().set_packet_type(PacketType::Multicast);
        told.send(packet.data().as_ptr().addr()).unwrap();
        assert_eq!(send_all(pool, &mut batch_of([packet]), &to), 0);
        assert_eq!(pool.in_use(), 0);
    };
    pass(sends, move |pool, from| {
        let mut batch = receive_all(pool, &from);
        assert_eq!(pool.in_use(), 1);
        let mut packet = batch.pop_front().unwrap();
        assert_eq!(packet.data().as_ptr().addr(), tells.recv().unwrap());
        assert_eq!(packet.data(), [7; 66]);
        assert_eq!(
            (packet.mac_offset(), packet.network_offset()),
            (Some(-34), Some(-20))
        );
        assert_eq!(packet.transport_offset(), Some(0));
        assert_eq!(packet.timestamp_ns(), 5);
        assert_eq!(packet.anno().u32(anno::AGGREGATE), 9);
        assert_eq!(packet.anno().dst_ip(), [1, 2, 3, 4]);
        assert_eq!(packet.anno().packet_type(), PacketType::Multicast);
        assert!(packet.push(34) && packet.data() == [7; 100]);
        drop((packet, batch));
        assert_eq!(pool.in_use(), 0);
    });
}

#[test]
fn shared_packets_leave_with_buffers_of_their_own() {
    let sends = |pool: &mut PacketPool, to| {
        let mut kept = pool.packet_from(&[1; 60]).unwrap();
        let mut copies = Batch::new();
        pool.repeat(&mut kept, 3, &mut copies);
        // buffers for that many shared packets are made, although some are free
        let mut more = Batch::new();
        pool.repeat(&mut kept, 90, &mut more);
        assert_eq!(more.len(), 90);
        drop(more);
        assert_eq!(send_all(pool, &mut copies, &to), 0);
        assert_eq!(pool.in_use(), 1);
        kept.data_mut()[0] = 9;
    };
    pass(sends, |pool, from| {
        let mut batch = receive_all(pool, &from);
        for (n, packet) in batch.iter_mut().enumerate() {
            assert_eq!(packet.data(), [1; 60]);
            packet.data_mut()[0] = n as u8;
        }
        let first: Vec<u8> = batch.iter().map(|packet| packet.data()[0]).collect();
        assert_eq!(first, [0, 1, 2]);
    });
}

#[test]
fn long_packets_and_those_of_other_pools_arrive() {
    let sends = |pool: &mut PacketPool, to| {
        let mut other = PacketPool::new(1);
        let mut batch = batch_of(pool.packet_from(&[1; 9000]));
        batch.push_back(other.packet_from(&[2; 60]).unwrap());
        batch.push_back(pool.packet_from(&[3; 1400]).unwrap());
        assert_eq!(send_all(pool, &mut batch, &to), 0);
        assert_eq!((pool.in_use(), other.in_use()), (0, 0));
    };
    pass(sends, |pool, from| {
        let batch = receive_all(pool, &from);
        let told: Vec<_> = batch
            .iter()
            .map(|p| (p.len(), p.data()[p.len() - 1]))
            .collect();
        assert_eq!(told, [(9000, 1), (60, 2), (1400, 3)]);
    });
}

#[test]
fn a_full_pool_receives_no_more() {
    let sends = |pool: &mut PacketPool, to| {
        let mut batch = batch_of((0..100).map_while(|_| pool.alloc(60)));
        assert_eq!(batch.len(), 100);
        assert_eq!(send_all(pool, &mut batch, &to), 0);
    };
    pass(sends, |pool, from| {
        let own = pool.alloc(60);
        let mut batch = Batch::new();
        assert_eq!(pool.receive(1000, &mut batch, || from.recv().ok()), 99);
        assert!(pool.alloc(60).is_none());
        drop((own, batch.pop_front()));
        assert_eq!(pool.receive(1000, &mut batch, || from.recv().ok()), 1);
    });
}

#[test]
fn packets_that_come_find_room_while_all_others_are_on_their_way() {
    spawn(|| {
        let (mut pool, mut underway) = (PacketPool::migrating(100), Underway::default());
        let mut batch = batch_of((0..100).map_while(|_| pool.alloc(60)));
        let mut sent = Vec::new();
        assert_eq!(pool.may_leave(), 100);
        pool.send(&mut batch, 70, &mut underway, |packet| sent.push(packet));
        assert_eq!((pool.may_leave(), batch.len()), (30, 30));
        assert!(pool.alloc(60).is_none());
        let mut come = Batch::new();
        assert_eq!(pool.receive(1000, &mut come, || sent.pop()), 70);
        assert_eq!(pool.in_use(), 170);
        assert_eq!(pool.receive(1000, &mut come, || panic!("100 are here")), 0);
        underway.settle(20);
        assert_eq!((pool.may_leave(), pool.in_use()), (80, 120));
    })
    .join()
    .unwrap();
}

#[test]
fn a_packet_without_a_buffer_for_its_copy_is_lost() {
    let sends = |pool: &mut PacketPool, to| {
        let mut other = PacketPool::new(1);
        let _all: Vec<_> = (0..100).map_while(|_| pool.alloc(60)).collect();
        let mut batch = batch_of(other.alloc(60));
        assert_eq!(send_all(pool, &mut batch, &to), 1);
        assert_eq!(other.in_use(), 0);
    };
    pass(sends, |pool, from| {
        assert!(receive_all(pool, &from).is_empty())
    });
}

#[test]
fn buffers_flow_back_so_that_memory_does_not_grow() {
    let (told, tells) = channel();
    let sends = move |pool: &mut PacketPool, to: Sender<InTransit>| {
        let mut seen = std::collections::HashSet::new();
        for round in 0..4000 {
            let mut batch = batch_of((0..10).map_while(|_| pool.alloc(60)));
            seen.extend(batch.iter().map(|packet| packet.data().as_ptr().addr()));
            assert_eq!(send_all(pool, &mut batch, &to), 0);
            // the other side has dropped the packets of two rounds before
            if round > 1 {
                let () = tells.recv().unwrap();
            }
        }
        // of 40,000 packets; other tests have buffers of the depot, too
        assert!(seen.len() < 10_000, "{} buffers", seen.len());
    };
    pass(sends, move |pool, from| {
        let mut batch = Batch::new();
        while pool.receive(10, &mut batch, || from.recv().ok()) > 0 {
            batch.clear();
            let _ = told.send(());
        }
    });
}

#[test]
fn packets_that_nobody_received_outlive_both_threads() {
    let (sender, receiver) = channel();
    let sends = spawn(move || {
        let mut pool = PacketPool::migrating(100);
        for len in [60, 1400, 9000] {
            let packet = pool.alloc(len).unwrap();
            send_all(&mut pool, &mut batch_of([packet]), &sender);
        }
    });
    sends.join().unwrap();
    assert_eq!(receiver.iter().count(), 3);
}

#[test]
fn packets_outlive_their_pool_and_another_one_follows() {
    spawn(|| {
        let mut pool = PacketPool::migrating(10);
        let packet = pool.packet_from(&[4; 60]).unwrap();
        drop(pool);
        assert_eq!(packet.data(), [4; 60]);
        drop(packet);
        assert!(PacketPool::migrating(10).alloc(60).is_some());
    })
    .join()
    .unwrap();
}

#[test]
fn pools_of_a_thread_have_their_buffers_in_common() {
    spawn(|| {
        let (mut first, mut second) = (PacketPool::migrating(2), PacketPool::migrating(10));
        let mut packet = first.packet_from(&[4; 60]).unwrap();
        let copy = second.duplicate(&mut packet).unwrap();
        assert_eq!((first.in_use(), second.in_use()), (2, 2));
        assert!(first.alloc(60).is_none());
        drop((first, packet));
        assert_eq!((second.in_use(), copy.data()), (1, &[4; 60][..]));
    })
    .join()
    .unwrap();
}

#[test]
#[should_panic(expected = "a pool of one thread")]
fn a_pool_of_one_thread_sends_nothing() {
    PacketPool::new(1).send(&mut Batch::new(), 1, &mut Underway::default(), drop);
}

#[test]
fn packets_underway_count_where_they_were_sent_until_they_arrive() {
    let (sends, receives) = (
        |pool: &mut PacketPool, to: Sender<InTransit>| {
            let mut batch = batch_of((0..100).map_while(|_| pool.alloc(60)));
            let mut underway = Underway::default();
            let lost = pool.send(&mut batch, 70, &mut underway, |packet| {
                to.send(packet).unwrap()
            });
            assert_eq!((lost, pool.in_use()), (0, 100));
            assert!(pool.alloc(60).is_none());
            underway.settle(50);
            assert_eq!(pool.in_use(), 80);
            underway.settle(60);
            assert_eq!(pool.in_use(), 80);
            drop(underway);
            assert_eq!((pool.in_use(), batch.len()), (30, 30));
        },
        |pool: &mut PacketPool, from: Receiver<InTransit>| {
            assert_eq!(receive_all(pool, &from).len(), 70);
        },
    );
    pass(sends, receives);
}
