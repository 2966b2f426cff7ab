// SPDX-License-Identifier: Apache-2.0
//! Turns of ports that all have more frames than the switch forwards.
use super::*;

/// Forwards while each sender has a full burst of frames of its length. Returns their bytes.
fn contend(bench: &mut Bench, senders: &mut [(Guest, usize)], rounds: usize) -> Vec<u64> {
    let mut sink = bench.guest(99, 1);
    for _ in 0..rounds {
        for (guest, len) in senders.iter_mut() {
            let sent = frame(mac(99), mac(1), *len);
            while guest.ring.push(&sent).is_ok() {}
            let _ = guest.ring.publish();
        }
        bench.round();
        sink.received();
    }
    let bytes = senders
        .iter()
        .map(|(guest, _)| bench.counters(guest).rx_bytes);
    bytes.collect()
}

#[test]
fn senders_of_long_and_of_short_frames_get_the_same_bytes() {
    let mut bench = Bench::new();
    let lengths = [1500, 512, 1000];
    let senders = lengths.iter().zip(1..);
    let mut senders: Vec<_> = senders.map(|(len, n)| (bench.guest(n, 1), *len)).collect();
    let bytes = contend(&mut bench, &mut senders, 1000);
    let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
    assert!(most - least <= most / 20, "{bytes:?}");
}

#[test]
fn a_sender_alone_has_its_turn_in_each_round() {
    let mut bench = Bench::new();
    let mut senders = [(bench.guest(1, 1), 1500)];
    let _idle = bench.guest(2, 1);
    let bytes = contend(&mut bench, &mut senders, 100);
    assert_eq!(bytes, [100 * 63 * 1500]);
}

/// Eight ports of one owner that flood, next to a neighbor that sends now and then: the neighbor's frame
/// leaves in the round that it comes in, after what one port might send: a quantum, and one saved.
#[test]
fn eight_flooding_ports_of_an_owner_cost_a_neighbor_one_burst() {
    let mut bench = Bench::new();
    let mut flooders: Vec<_> = (1..=8)
        .map(|n| {
            let extra = json!({"mac": mac(n), "owner": 7});
            bench.try_add(&format!("f{n}"), extra).unwrap()
        })
        .collect();
    let mut neighbor = bench
        .try_add("n", json!({"mac": mac(20), "owner": 8}))
        .unwrap();
    let (mut sink, mut other) = (bench.guest(99, 1), bench.guest(21, 1));
    let (mut before, mut most) = (vec![0; 8], 0);
    for round in 0..800 {
        for flooder in &mut flooders {
            while flooder.ring.push(&frame(mac(99), mac(1), 60)).is_ok() {}
            let _ = flooder.ring.publish();
        }
        neighbor.send(&frame(mac(21), mac(20), 60));
        bench.round();
        assert_eq!(other.received().len(), 1, "round {round}");
        sink.received();
        let now: Vec<_> = flooders
            .iter()
            .map(|f| bench.counters(f).rx_packets)
            .collect();
        let burst: u64 = now
            .iter()
            .zip(&before)
            .map(|(now, before)| now - before)
            .sum();
        (before, most) = (now, most.max(burst));
    }
    assert!(most <= 128, "{most} frames of the owner in a round");
    let (least, most) = (before.iter().min().unwrap(), before.iter().max().unwrap());
    assert!(most - least <= 64, "{before:?}");
    let sum: u64 = before.iter().sum();
    assert!(
        (800 * 63..=801 * 64).contains(&sum),
        "{sum} frames in 800 quanta"
    );
}

#[test]
fn short_frames_cost_as_much_as_512_bytes() {
    let mut bench = Bench::new();
    let mut senders = [(bench.guest(1, 1), 60), (bench.guest(2, 1), 1536)];
    let bytes = contend(&mut bench, &mut senders, 999);
    let packets = [bytes[0] / 60, bytes[1] / 1536];
    assert!(
        packets[0].abs_diff(3 * packets[1]) <= packets[0] / 20,
        "{packets:?}"
    );
}

/// The owner of a network of many ports floods it: each copy is work that the neighbors wait for.
#[test]
fn copies_of_flooded_frames_cost_their_sender_as_much_as_frames() {
    const COPIES: u64 = 40;
    let mut bench = Bench::new();
    let owned = |last: u8, owner: u64| json!({"mac": mac(last), "owner": owner, "segment": owner});
    let mut flooder = bench.try_add("flooder", owned(1, 7)).unwrap();
    let others = (0..COPIES).map(|n| {
        let name = format!("o{n}");
        bench.try_add(&name, owned(100 + n as u8, 7)).unwrap()
    });
    let mut others: Vec<_> = others.collect();
    let mut neighbor = bench.try_add("neighbor", owned(2, 8)).unwrap();
    let mut sink = bench.try_add("sink", owned(3, 8)).unwrap();
    for _ in 0..10 * COPIES {
        while flooder.ring.push(&frame(BROADCAST, mac(1), 60)).is_ok() {}
        while neighbor.ring.push(&frame(mac(3), mac(2), 60)).is_ok() {}
        let _ = (flooder.ring.publish(), neighbor.ring.publish());
        bench.round();
        others
            .iter_mut()
            .chain([&mut sink])
            .for_each(|port| drop(port.received()));
    }
    let [flooded, sent] = [&flooder, &neighbor].map(|port| bench.counters(port).rx_packets);
    let copies = flooded * COPIES;
    assert!(
        flooded > 0 && copies.abs_diff(sent) <= sent / 10,
        "{copies} copies, {sent} frames"
    );
}

#[test]
fn senders_share_the_room_of_a_slow_receiver() {
    let mut bench = Bench::new();
    let mut senders = [1, 2, 3].map(|n| bench.guest(n, 1));
    let mut sink = bench.guest(9, 1);
    let mut shares = [0; 3];
    for _ in 0..300 {
        for (sender, n) in senders.iter_mut().zip(1..) {
            (0..40).for_each(|_| sender.send(&frame(mac(9), mac(n), 60)));
        }
        bench.round();
        for got in sink.received() {
            shares[usize::from(got[11]) - 1] += 1;
        }
    }
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert_eq!(
        shares.iter().sum::<i32>(),
        300 * 63,
        "a full ring in each round"
    );
    assert!(most - least <= 120, "{shares:?}");
}

/// A sender whose frames wait, and the numbers of the frames that a receiver gets.
fn holding(bench: &mut Bench) -> Guest {
    bench
        .try_add(
            "holds",
            json!({"mac": mac(1), "backpressure": true, "slots": 256}),
        )
        .unwrap()
}

fn numbered(to: u8, number: u8) -> Vec<u8> {
    let mut sent = frame(mac(to), mac(1), 60 + usize::from(number) * 7);
    sent[14] = number;
    sent
}

#[test]
fn a_sender_with_backpressure_loses_nothing_and_keeps_its_order() {
    let mut bench = Bench::new();
    let (mut a, mut b, mut c) = (holding(&mut bench), bench.guest(2, 1), bench.guest(3, 1));
    for number in 0..200 {
        a.send(&numbered(if number % 4 == 0 { 3 } else { 2 }, number));
    }
    let mut got = Vec::new();
    for _ in 0..20 {
        bench.round();
        bench.round();
        got.extend(b.received());
    }
    let to_b: Vec<_> = (0..200)
        .filter(|n| n % 4 != 0)
        .map(|n| numbered(2, n))
        .collect();
    assert_eq!(got, to_b);
    assert_eq!(
        c.received().len(),
        50,
        "other receivers get theirs meanwhile"
    );
    assert_eq!(bench.counters(&b).dropped_full, 0);
}

#[test]
fn a_receiver_that_never_reads_blocks_a_sender_for_a_time_only() {
    let mut bench = Bench::new();
    let (mut a, b) = (holding(&mut bench), bench.guest(2, 1));
    (0..100).for_each(|number| a.send(&numbered(2, number)));
    (0..10).for_each(|_| bench.round());
    assert_eq!(
        (
            bench.counters(&b).tx_packets,
            bench.counters(&b).dropped_full
        ),
        (63, 0)
    );
    assert!(bench.switch.has_blocked_frames());
    assert_eq!(
        bench.counters(&a).rx_packets,
        64,
        "the others stay in the sender's ring"
    );
    for second in 1..3 {
        bench.scratch.now = second * 1_000_000_000;
        (0..10).for_each(|_| bench.round());
    }
    assert_eq!(bench.counters(&b).dropped_full, 37);
    assert!(!bench.switch.has_blocked_frames());
}

/// A worker that gets no processor makes a move long.
#[test]
fn frames_wait_for_a_receiver_that_moves_however_long_it_takes() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.guest(1, 1), bench.guest(2, 1));
    bench.switch.port_mut(&b.name).unwrap().face.is_moving = true;
    (0..60).for_each(|number| a.send(&numbered(2, number)));
    for second in 1..3 {
        bench.scratch.now = second * 1_000_000_000;
        (0..10).for_each(|_| bench.round());
    }
    assert_eq!(bench.counters(&b).dropped_full, 0);
    bench.switch.port_mut(&b.name).unwrap().face.is_moving = false;
    let mut got = Vec::new();
    for _ in 0..4 {
        bench.round();
        bench.round();
        got.extend(b.received());
    }
    assert!(got.into_iter().eq((0..60).map(|n| numbered(2, n))));
}

#[test]
fn a_removed_or_disconnected_receiver_blocks_no_one() {
    let mut bench = Bench::new();
    let (mut a, b) = (holding(&mut bench), bench.guest(2, 1));
    (0..70).for_each(|number| a.send(&numbered(2, number)));
    bench.round();
    assert!(bench.switch.has_blocked_frames());
    let port = bench.switch.remove(&b.name).unwrap();
    assert!(!bench.switch.has_blocked_frames());
    bench.switch.add(&mut Some(port)).unwrap();
    bench.switch.port_mut(&b.name).unwrap().face.link_up = false;
    bench.round();
    assert_eq!(
        (
            bench.switch.has_blocked_frames(),
            bench.counters(&b).dropped_link_down
        ),
        (false, 6)
    );
}
