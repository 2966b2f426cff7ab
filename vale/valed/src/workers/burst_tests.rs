// SPDX-License-Identifier: Apache-2.0
//! Bursts to the ports of another worker arrive as they do at one worker.
use super::*;

/// Frame `n` of a burst: three receivers, two flows, all lengths, and a tag every third time.
fn nth(n: usize) -> Vec<u8> {
    let (to, port) = (2 + (n / 5 % 3) as u8, if n % 7 == 0 { 8 } else { 7 });
    let mut frame = udp(1, to, (7, port), 60 + n * 37 % 1400);
    if n % 3 == 0 {
        frame.splice(12..12, [0x81, 0, 0, 5]);
    }
    frame
}

/// The frames of three receivers, and what their ports counted: a filter, a short MTU, and neither.
fn outcome(workers: usize) -> Vec<(Vec<Vec<u8>>, [u64; 4])> {
    const FRAMES: usize = 250;
    let bench = Bench::new(workers);
    let add = |n: u8, extra: Value| {
        let mut args = secure(n);
        args["vlan_tags"] = json!(true);
        for (key, value) in extra.as_object().unwrap() {
            args[key] = value.clone();
        }
        bench.add(&format!("g{n}"), args)
    };
    let mut sender = add(1, json!({}));
    let extras = [json!({}), json!({"mtu": 1000}), json!({})];
    let mut receivers: Vec<_> = (2..).zip(extras).map(|(n, extra)| add(n, extra)).collect();
    for receiver in &receivers {
        let moved = bench.handle.move_port(&receiver.id, workers - 1);
        assert_eq!(moved, Some(Ok(())));
    }
    let filter = Filter::new(&["ingress,udp,7".parse().unwrap()]);
    let set = bench
        .handle
        .set_filter(&receivers[0].id, Some(Box::new(filter)));
    assert_eq!(set, Some(true));
    for n in 0..FRAMES {
        sender.ring.push(&nth(n)).unwrap();
        if n % 50 == 49 {
            sender.publish();
        }
    }
    bench.settle_all();
    assert_eq!(bench.counters(&sender).rx_packets, FRAMES as u64);
    let outcome = |receiver: &mut Guest| {
        let received = bench.rest(receiver);
        let c = bench.counters(receiver);
        let counted = [
            c.tx_packets,
            c.tx_bytes,
            c.dropped_filter,
            c.dropped_too_long,
        ];
        (received, counted)
    };
    receivers.iter_mut().map(outcome).collect()
}

#[test]
fn a_burst_to_another_worker_arrives_as_at_one_worker() {
    let (one, two) = (outcome(1), outcome(2));
    assert_eq!(one, two);
    let counted = |n: usize| two[n].1;
    assert!(counted(0)[2] > 0 && counted(1)[3] > 0, "{two:?}");
    assert_eq!(counted(2)[0], two[2].0.len() as u64);
}

/// Else a flood that another worker's port sends would keep all ports of this one from their turns.
#[test]
fn a_worker_takes_a_burst_of_copies_from_another_one_in_a_round() {
    const FLOODED: u64 = 60;
    let bench = Bench::new(2);
    let add = |n: u8, worker: usize| {
        let guest = bench.guest(n);
        assert_eq!(bench.handle.move_port(&guest.id, worker), Some(Ok(())));
        guest
    };
    let mut sender = add(1, 0);
    let others: Vec<_> = (2..42).map(|n| add(n, 1)).collect();
    let (held, has_all) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let copies = std::thread::scope(|scope| {
        let barriers = (Arc::clone(&held), Arc::clone(&has_all));
        let turn = scope.spawn(|| {
            bench.handle.at(1, move |f| {
                barriers.0.wait();
                barriers.1.wait();
                f.turn().unwrap();
                let ports = f.list(None);
                let copies = ports.iter().map(|(_, port)| port.counters.tx_packets);
                copies.sum::<u64>()
            })
        });
        held.wait();
        (0..FLOODED).for_each(|_| sender.ring.push(&group(1)).unwrap());
        sender.publish();
        eventually("the frames are on their way", || {
            let handoffs = bench.handle.at(0, |f| f.load().handoffs).unwrap();
            (handoffs == FLOODED).then_some(())
        });
        has_all.wait();
        turn.join().unwrap().unwrap()
    });
    let ports = others.len() as u64;
    assert!((256..256 + ports).contains(&copies), "{copies} copies");
    bench.settle_all();
    let counters = others.iter().map(|other| bench.counters(other));
    assert_eq!(counters.map(|c| c.tx_packets).sum::<u64>(), FLOODED * ports);
}
