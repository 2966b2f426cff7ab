// SPDX-License-Identifier: Apache-2.0
//! Rings against a plain deque: the same packets in the same order, however often the end is passed.
use std::collections::VecDeque;

use click_packet::{Batch, PacketPool, Ring};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Append(usize, usize),
    Take(usize),
    PushFront,
    PopBack,
    PopFront,
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0usize..50;
    prop_oneof![
        3 => (n(), n()).prop_map(|(packets, most)| Step::Append(packets, most)),
        3 => n().prop_map(Step::Take),
        1 => Just(Step::PushFront),
        1 => Just(Step::PopBack),
        3 => Just(Step::PopFront),
    ]
}

struct World {
    pool: PacketPool,
    ring: Ring,
    model: VecDeque<u16>,
    number: u16,
    most: usize,
}

impl World {
    fn packet(&mut self) -> click_packet::Packet {
        self.number += 1;
        self.pool.packet_from(&self.number.to_le_bytes()).unwrap()
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Append(packets, n) => self.append(packets, n),
            Step::Take(n) => {
                let mut batch = Batch::new();
                self.ring.take_front(n, &mut batch);
                for packet in batch {
                    assert_eq!(Some(number(&packet)), self.model.pop_front());
                }
            }
            Step::PushFront => {
                let packet = self.packet();
                self.ring.push_front(packet);
                self.model.push_front(self.number);
            }
            Step::PopBack => {
                let packet = self.ring.pop_back();
                assert_eq!(packet.map(|p| number(&p)), self.model.pop_back());
            }
            Step::PopFront => {
                let packet = self.ring.pop_front();
                assert_eq!(packet.map(|p| number(&p)), self.model.pop_front());
            }
        }
        assert_eq!(self.ring.len(), self.model.len());
        assert_eq!(self.ring.is_empty(), self.model.is_empty());
    }

    fn append(&mut self, packets: usize, n: usize) {
        let mut batch = Batch::new();
        batch.extend((0..packets).map(|_| self.packet()));
        let numbers: Vec<u16> = batch.iter().map(number).collect();
        self.ring.append_front(&mut batch, n, self.most);
        let n = n.min(packets);
        self.model.extend(&numbers[..n]);
        let left: Vec<u16> = batch.iter().map(number).collect();
        assert_eq!(left, numbers[n..]);
    }
}

fn number(packet: &click_packet::Packet) -> u16 {
    u16::from_le_bytes([packet.data()[0], packet.data()[1]])
}

proptest! {
    #[test]
    fn rings_do_what_deques_do(
        steps in prop::collection::vec(step(), 0..100),
        most in 0usize..300,
    ) {
        let mut world = World {
            pool: PacketPool::new(10_000),
            ring: Ring::default(),
            model: VecDeque::new(),
            number: 0,
            most,
        };
        for step in &steps {
            world.take(step);
        }
        prop_assert_eq!(world.pool.in_use(), world.model.len());
        drop(world.ring);
        prop_assert_eq!(world.pool.in_use(), 0);
    }
}
