// SPDX-License-Identifier: Apache-2.0
//! Batches against a plain deque: the same operations, the same packets in the same order.
use std::collections::VecDeque;

use click_packet::{Batch, PacketPool};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    PushBack,
    PushFront,
    PopFront,
    PopBack,
    Drain(usize, usize),
    AppendFront(usize),
    Retain(u8),
    Cursor { stop_after: usize, give_at: usize },
    Clear,
    Swap,
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0usize..70;
    prop_oneof![
        8 => Just(Step::PushBack),
        4 => Just(Step::PushFront),
        3 => Just(Step::PopFront),
        2 => Just(Step::PopBack),
        1 => (n(), n()).prop_map(|(a, b)| Step::Drain(a, b)),
        1 => n().prop_map(Step::AppendFront),
        1 => any::<u8>().prop_map(Step::Retain),
        1 => (n(), n()).prop_map(|(stop_after, give_at)| Step::Cursor { stop_after, give_at }),
        1 => Just(Step::Clear),
        2 => Just(Step::Swap),
    ]
}

/// Two batches and what they should hold.
struct Pair {
    batches: [Batch; 2],
    model: [VecDeque<u8>; 2],
    pool: PacketPool,
    number: u8,
}

impl Pair {
    fn packet(&mut self) -> click_packet::Packet {
        self.number = self.number.wrapping_add(1);
        self.pool.packet_from(&[self.number]).unwrap()
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::PushBack => {
                let packet = self.packet();
                self.batches[0].push_back(packet);
                self.model[0].push_back(self.number);
            }
            Step::PushFront => {
                let packet = self.packet();
                self.batches[0].push_front(packet);
                self.model[0].push_front(self.number);
            }
            Step::PopFront => {
                let popped = self.batches[0].pop_front().map(|p| p.data()[0]);
                assert_eq!(popped, self.model[0].pop_front());
            }
            Step::PopBack => {
                let popped = self.batches[0].pop_back().map(|p| p.data()[0]);
                assert_eq!(popped, self.model[0].pop_back());
            }
            Step::Drain(n, taken) => {
                let got: Vec<u8> = (self.batches[0].drain_front(n).take(taken))
                    .map(|p| p.data()[0])
                    .collect();
                let n = n.min(self.model[0].len());
                let expected: Vec<u8> = self.model[0].drain(..n).take(taken).collect();
                assert_eq!(got, expected);
            }
            Step::AppendFront(n) => {
                let [a, b] = &mut self.batches;
                a.append_front(b, n);
                let n = n.min(self.model[1].len());
                let moved: Vec<u8> = self.model[1].drain(..n).collect();
                self.model[0].extend(moved);
            }
            Step::Retain(mask) => {
                self.batches[0].retain_mut(|p| p.data()[0] & mask == 0);
                self.model[0].retain(|n| n & mask == 0);
            }
            Step::Cursor {
                stop_after,
                give_at,
            } => self.cursor(stop_after, give_at),
            Step::Clear => {
                self.batches[0].clear();
                self.model[0].clear();
            }
            Step::Swap => {
                self.batches.swap(0, 1);
                self.model.swap(0, 1);
            }
        }
    }

    /// Keeps every other packet, gives those kept away once, and does not look at the last.
    fn cursor(&mut self, stop_after: usize, give_at: usize) {
        let [a, b] = &mut self.batches;
        let mut cursor = a.cursor_mut();
        let mut kept = VecDeque::new();
        for n in 0..stop_after {
            let Some(packet) = cursor.next() else { break };
            let expected = self.model[0].pop_front();
            assert_eq!(Some(packet.data()[0]), expected);
            if n % 2 == 0 {
                kept.extend(expected);
                cursor.keep(packet);
            }
            assert_eq!(cursor.kept(), kept.len());
            if n == give_at {
                cursor.move_kept_to(b);
                self.model[1].append(&mut kept);
            }
        }
        drop(cursor);
        kept.append(&mut self.model[0]);
        self.model[0] = kept;
    }

    fn check(&self) {
        for (batch, model) in self.batches.iter().zip(&self.model) {
            let got: Vec<u8> = batch.iter().map(|p| p.data()[0]).collect();
            assert_eq!(got, Vec::from(model.clone()));
            assert_eq!(batch.len(), model.len());
        }
        let packets = self.model.iter().map(VecDeque::len).sum::<usize>();
        assert_eq!(self.pool.in_use(), packets);
    }
}

proptest! {
    #[test]
    fn batches_do_what_deques_do(steps in prop::collection::vec(step(), 0..200)) {
        let mut pair = Pair {
            batches: Default::default(),
            model: Default::default(),
            pool: PacketPool::new(1000),
            number: 0,
        };
        for step in &steps {
            pair.take(step);
            pair.check();
        }
    }
}

#[test]
fn a_panic_within_a_sweep_loses_one_packet() {
    let mut pool = PacketPool::new(9);
    let mut batch = Batch::new();
    (0..5).for_each(|n| batch.push_back(pool.packet_from(&[n]).unwrap()));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        batch.retain_mut(|packet| {
            assert_ne!(packet.data(), [2]);
            true
        });
    }));
    assert!(result.is_err());
    let left: Vec<u8> = batch.iter().map(|p| p.data()[0]).collect();
    assert_eq!(left, [0, 1, 3, 4]);
    assert_eq!(pool.in_use(), 4);
}

#[test]
fn an_empty_batch_has_no_memory_and_a_cleared_one_keeps_its() {
    let (mut batch, mut pool) = (Batch::new(), PacketPool::new(1));
    batch.clear();
    assert!(!batch.has_memory() && batch.pop_front().is_none());
    batch.push_back(pool.alloc(1).unwrap());
    batch.clear();
    assert!(batch.has_memory() && batch.is_empty() && pool.in_use() == 0);
}
