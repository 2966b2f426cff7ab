// SPDX-License-Identifier: Apache-2.0
//! Ports that move between workers lose no frame and keep the order of each flow.
use super::*;

/// Numbers the frames of a flow, with lengths of all kinds.
fn numbered(from: u8, to: u8, number: u32) -> Vec<u8> {
    let mut frame = udp(from, to, (7, 7), 64 + (number as usize * 37) % 1400);
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[42], frame[43], frame[44], frame[45]])
}

/// A flow from one guest to another. Never more frames are on their way than a ring holds, so the
/// switch has no reason to lose one.
fn flow(mut from: Guest, mut to: Guest, [a, b]: [u8; 2], stop: &AtomicBool, count: &AtomicU32) {
    let (mut sent, mut received) = (0, 0);
    let mut quiet = Instant::now();
    while received < sent || !stop.load(Ordering::Relaxed) {
        let busy = sent - received >= 128 || stop.load(Ordering::Relaxed);
        if !busy && from.ring.push(&numbered(a, b, sent)).is_ok() {
            sent += 1;
        }
        from.publish();
        while let Some(frame) = to.try_receive() {
            assert_eq!(number_of(&frame), received, "lost or in another order");
            assert_eq!(frame, numbered(a, b, received));
            received += 1;
            count.store(received, Ordering::Relaxed);
            quiet = Instant::now();
        }
        assert!(quiet.elapsed() < PATIENCE, "{received} of {sent}");
        if busy {
            std::thread::yield_now();
        }
    }
}

/// Moves ports around while flows run. Frames of each flow arrive between two moves.
fn move_under_load(workers: usize, moves: usize, slots: u32) {
    let bench = Bench::new(workers);
    let stop = Arc::new(AtomicBool::new(false));
    let flows = [[1, 2], [3, 4]].map(|ends| {
        let [from, to] = ends.map(|last| {
            let mut args = secure(last);
            args["slots"] = json!(slots);
            bench.add(&format!("g{last}"), args)
        });
        let (stop, count) = (Arc::clone(&stop), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&count);
        let thread = std::thread::spawn(move || flow(from, to, ends, &stop, &counted));
        (thread, count)
    });
    let counts = || {
        flows
            .each_ref()
            .map(|(_, count)| count.load(Ordering::Relaxed))
    };
    for n in 0..moves {
        let port = id(&format!("g{}", n % 4 + 1));
        let to = (n / 4 + n) % workers;
        assert_eq!(bench.handle.move_port(&port, to), Some(Ok(())));
        let (placed, before) = (bench.handle.placed(), counts());
        assert!(placed.contains(&(port, to)));
        eventually("frames of each flow", || {
            let mut both = counts().into_iter().zip(before);
            both.all(|(now, before)| now > before).then_some(())
        });
    }
    stop.store(true, Ordering::Relaxed);
    for (thread, _) in flows {
        thread.join().unwrap();
    }
    let lost: u64 = bench.handle.loads().unwrap().iter().map(|l| l.lost).sum();
    assert_eq!(lost, 0);
    for info in bench.handle.ports(None).unwrap() {
        assert_eq!(info.counters.dropped_full, 0, "{info:?}");
    }
}

#[test]
fn ports_move_under_load_without_loss_or_another_order() {
    for workers in 2..=4 {
        move_under_load(workers, 100, 256);
    }
}

#[test]
fn a_port_that_is_not_there_or_a_worker_that_is_not_there_moves_nothing() {
    let bench = Bench::new(2);
    let a = bench.guest(1);
    use crate::workers::moves::MoveFailure::{NoSuchPort, NoSuchWorker};
    assert_eq!(bench.handle.move_port(&a.id, 2), Some(Err(NoSuchWorker)));
    assert_eq!(bench.handle.move_port(&id("x"), 1), Some(Err(NoSuchPort)));
    assert_eq!(bench.handle.move_port(&a.id, 0), Some(Ok(())));
}

/// Filters and rates go with the port, and floods reach a moving port once.
#[test]
fn a_moved_port_keeps_its_filter_its_counters_and_its_group_frames() {
    let bench = Bench::new(3);
    let (mut a, mut b) = (bench.guest(1), bench.guest(2));
    let rules = ["ingress,udp,7".parse().unwrap()];
    let filter = Some(Box::new(Filter::new(&rules)));
    assert_eq!(bench.handle.set_filter(&b.id, filter), Some(true));
    for n in 0..30 {
        assert_eq!(bench.handle.move_port(&b.id, n % 3), Some(Ok(())));
        a.send(&udp(1, 2, (7, 8), 60));
        a.send(&udp(1, 2, (7, 7), 60));
        a.send(&group(1));
        assert_eq!(bench.handle.move_port(&a.id, (n / 3) % 3), Some(Ok(())));
        assert_eq!(b.receive(), udp(1, 2, (7, 7), 60));
        assert_eq!(b.receive(), group(1));
    }
    assert!(bench.rest(&mut b).is_empty());
    let counters = bench.counters(&b);
    assert_eq!((counters.tx_packets, counters.dropped_filter), (60, 30));
    assert_eq!(bench.counters(&a).rx_packets, 90);
}

/// A sender with backpressure waits for a receiver at another worker, also while both move.
#[test]
fn a_sender_with_backpressure_loses_nothing_to_another_worker() {
    for moves in [false, true] {
        let bench = Bench::new(2);
        let mut args = secure(1);
        args["backpressure"] = json!(true);
        let mut a = bench.add("g1", args);
        let mut args = secure(2);
        args["slots"] = json!(64);
        let mut b = bench.add("g2", args);
        let (mut sent, mut received, mut movers) = (0, 0, Vec::new());
        while received < 3000 {
            while sent < 3000 && a.ring.push(&numbered(1, 2, sent)).is_ok() {
                sent += 1;
            }
            a.publish();
            if moves && received % 40 == 0 {
                let end = [&a, &b][received as usize / 40 % 2].id.clone();
                let to = received as usize / 80 % 2;
                let handle = bench.handle.clone();
                movers.push(std::thread::spawn(move || handle.move_port(&end, to)));
            }
            assert_eq!(number_of(&b.receive()), received);
            received += 1;
        }
        assert_eq!(bench.counters(&b).dropped_full, 0);
        for mover in movers {
            assert_eq!(mover.join().unwrap(), Some(Ok(())));
        }
    }
}

/// Sends frames, waits until the switch has taken all, and removes the port, which waits for them.
fn send_and_go(bench: &Bench, mut from: Guest, frames: u32) -> JoinHandle<Option<()>> {
    (0..frames).for_each(|n| from.ring.push(&numbered(1, 2, n)).unwrap());
    from.publish();
    eventually("all frames are taken", || {
        (from.ring.space() == from.ring.slots() - 1).then_some(())
    });
    let handle = bench.handle.clone();
    let removal = std::thread::spawn(move || handle.remove(&from.id));
    eventually("the removal begins", || {
        bench.handle.port_map.try_lock().is_err().then_some(())
    });
    removal
}

#[test]
fn frames_between_workers_arrive_although_their_port_goes() {
    let bench = Bench::new(2);
    let (from, mut to) = (bench.guest(1), bench.guest(2));
    let handle = bench.handle.clone();
    let ((begin, begun), (end, ended)) = (sync_channel(0), sync_channel::<()>(0));
    let busy = std::thread::spawn(move || {
        handle.at(1, move |_| {
            begin.send(()).unwrap();
            ended.recv().unwrap();
        })
    });
    begun.recv().unwrap();
    let removal = send_and_go(&bench, from, 200);
    assert_eq!(to.received().len(), 0);
    end.send(()).unwrap();
    (0..200).for_each(|n| assert_eq!(number_of(&to.receive()), n));
    removal.join().unwrap().unwrap();
    busy.join().unwrap();
    assert_eq!(bench.handle.placed().len(), 1);
}

#[test]
fn frames_for_a_full_receiver_arrive_although_their_port_goes() {
    // A port takes one burst into its hands; those of other workers' ports come on top.
    for (workers, frames) in [(1, 64), (2, 71)] {
        let bench = Bench::new(workers);
        let [from, mut to] = [(1, 128), (2, 64)].map(|(last, slots)| {
            let mut args = secure(last);
            (args["backpressure"], args["slots"]) = (json!(true), json!(slots));
            bench.add(&format!("g{last}"), args)
        });
        let removal = send_and_go(&bench, from, frames);
        (0..frames).for_each(|n| assert_eq!(number_of(&to.receive()), n));
        removal.join().unwrap().unwrap();
    }
}
