// SPDX-License-Identifier: Apache-2.0
use super::*;
use core::net::Ipv4Addr;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const GUARANTEE_NS: u64 = 20 * MS;
const TIMEOUT_NS: u64 = 60 * MS;
const KEYS: Keys = Keys([
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
]);

fn id(n: u16) -> FlowId {
    FlowId {
        source: Ipv4Addr::new(10, 0, 0, 1),
        sport: n,
        ..FlowId::NONE
    }
}

/// A flow that is rewritten to come from a number.
fn flow(n: u16, as_: u16) -> Flow {
    Flow::new(1, [id(n), id(as_ | 0x8000).reverse()])
}

fn table(capacity: usize) -> (FlowTable, Times) {
    let mut table = FlowTable::new(capacity, KEYS);
    let times = Times {
        guaranteed: table.add_list(GUARANTEE_NS, true),
        rest: table.add_list(TIMEOUT_NS, false).unwrap(),
    };
    table.add_owners(1).unwrap();
    (table, times)
}

#[derive(Clone, Debug)]
enum Step {
    Packet(u16, u16),
    Remove(u16),
    Capacity(usize),
    Reap,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u16..30, 0u16..30).prop_map(|(n, as_)| Step::Packet(n, as_)),
        1 => (0u16..30).prop_map(Step::Remove),
        1 => (1usize..12).prop_map(Step::Capacity),
        1 => Just(Step::Reap),
        2 => (1u64..40).prop_map(Step::Wait),
    ]
}

/// The expected table: flows with the time of their last packet, those silent longest first.
#[derive(Default)]
struct Model {
    flows: Vec<(u16, u16, u64)>,
    capacity: usize,
}

impl Model {
    fn packet(&mut self, n: u16, as_: u16, now: u64) {
        if let Some(known) = self.flows.iter().position(|f| f.0 == n) {
            let (n, as_, _) = self.flows.remove(known);
            return self.flows.push((n, as_, now));
        }
        self.flows.retain(|f| f.1 != as_);
        let oldest = self
            .flows
            .first()
            .is_some_and(|f| f.2 + GUARANTEE_NS <= now);
        if self.flows.len() >= self.capacity && oldest {
            self.flows.remove(0);
        }
        if self.flows.len() < self.capacity {
            self.flows.push((n, as_, now));
        }
    }
}

proptest! {
    #[test]
    fn as_a_list(steps in prop::collection::vec(step(), 1..300)) {
        let (mut table, times) = table(8);
        let mut model = Model { capacity: 8, ..Model::default() };
        let mut now = MS;
        for step in steps {
            now += MS;
            match step {
                Step::Packet(n, as_) => {
                    model.packet(n, as_, now);
                    match table.find_id(&id(n), 1) {
                        Some(at) => table.touch(at, times, now),
                        None => drop(table.insert(flow(n, as_), times, now)),
                    }
                }
                Step::Remove(n) => {
                    model.flows.retain(|f| f.0 != n);
                    if let Some(at) = table.find_id(&id(n), 1) {
                        table.remove(at.slot());
                    }
                }
                Step::Capacity(capacity) => {
                    model.capacity = capacity;
                    let more = model.flows.len().saturating_sub(capacity);
                    model.flows.drain(..more);
                    table.set_capacity(capacity, now);
                }
                Step::Reap => {
                    model.flows.retain(|f| f.2 + TIMEOUT_NS > now);
                    prop_assert!(table.reap(now, 1000));
                }
                Step::Wait(ms) => now += ms * MS,
            }
            prop_assert_eq!(table.len(), model.flows.len());
            prop_assert!(table.len() <= table.capacity());
            prop_assert_eq!(table.count(0) as usize, table.len());
            for (n, as_, touched) in &model.flows {
                let (at, back) = (table.find_id(&id(*n), 1), table.find_id(&id(as_ | 0x8000).reverse(), 1));
                prop_assert_eq!(at.map(At::slot), back.map(At::slot));
                prop_assert_eq!((at.map(At::is_reply), back.map(At::is_reply)), (Some(false), Some(true)));
                prop_assert_eq!(table.touched_ns(at.unwrap().slot()), *touched);
            }
        }
    }
}

#[test]
fn many_flows() {
    let (mut table, times) = table(40_000);
    let key = |n: u32| FlowId {
        source: n.into(),
        ..FlowId::NONE
    };
    for n in 0..100_000u32 {
        let new = Flow::new(0, [key(n), key(!n).reverse()]);
        let now_ns = u64::from(n) * MS;
        assert!(table.insert(new, times, now_ns).is_some());
    }
    assert_eq!(table.len(), 40_000);
    for n in 0..100_000u32 {
        let there = table.find_id(&key(n), 0).is_some();
        assert_eq!(there, n >= 60_000, "{n}");
    }
    assert_eq!(table.find_id(&key(99_999), 1), None, "another map");
    table.clear();
    assert_eq!((table.len(), table.find_id(&key(99_999), 0)), (0, None));
}

#[test]
fn a_flow_that_answers_itself() {
    let (mut table, times) = table(1);
    let own = Flow::new(0, [id(7), id(7)]);
    let at = table.insert(own, times, 1).unwrap();
    assert!(!at.is_reply());
    assert_eq!(table.find_id(&id(7), 0), Some(At::new(at.slot(), true)));
    table.remove(at.slot());
    assert_eq!((table.len(), table.find_id(&id(7), 0)), (0, None));
}
