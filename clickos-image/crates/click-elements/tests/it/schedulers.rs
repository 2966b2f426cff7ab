// SPDX-License-Identifier: Apache-2.0
//! Pull schedulers against plain ones that take one packet after the other.
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use click_core::{Device, Environment, MemoryDevice, Progress, Router};
use proptest::prelude::*;

const INPUTS: usize = 4;
/// The device that the packets leave by.
const OUT: u32 = 9;

type Memory = Rc<RefCell<MemoryDevice>>;

/// What a scheduler sends of full queues, in bursts of that many packets: input and length of each packet.
fn sent(scheduler: &str, burst: usize, queues: &[Vec<usize>]) -> Vec<(u8, usize)> {
    let mut config = format!(
        "s :: {scheduler} -> u :: Unqueue(BURST {burst}, ACTIVE false) -> Queue -> ToDevice({OUT});"
    );
    for n in 0..INPUTS {
        config += &format!("FromDevice({n}) -> Queue -> [{n}] s;");
    }
    let numbers = (0..INPUTS as u32).chain([OUT]);
    let devices: BTreeMap<u32, Memory> = numbers
        .map(|n| {
            (
                n,
                Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, n as u8]))),
            )
        })
        .collect();
    for (n, queue) in (0..).zip(queues) {
        let packets = queue.iter().map(|length| vec![n; *length]);
        devices[&u32::from(n)].borrow_mut().input.extend(packets);
    }
    let dynamic = |(n, device): (&u32, &Memory)| (*n, device.clone() as Rc<RefCell<dyn Device>>);
    let environment = Environment {
        devices: devices.iter().map(dynamic).collect(),
        ..Environment::new()
    };
    let registry = click_elements::registry();
    let mut router = Router::build("t", &config, &registry, environment, 1).unwrap();
    let run = |router: &mut Router| {
        while !matches!(router.run(1), Progress::Idle { .. }) {}
    };
    run(&mut router);
    router.write_handlers(&[("u.active", b"true")], 1).unwrap();
    run(&mut router);
    let mut out = devices[&OUT].borrow_mut();
    out.output
        .drain(..)
        .map(|packet| (packet[0], packet.len()))
        .collect()
}

/// Deficit round robin, one packet after the other (Shreedhar and Varghese, SIGCOMM 1995).
fn deficit_round_robin(quantum: usize, queues: &[Vec<usize>]) -> Vec<(u8, usize)> {
    let mut queues: Vec<VecDeque<usize>> =
        queues.iter().map(|q| q.iter().copied().collect()).collect();
    let (mut deficits, mut next, mut sent) = ([0; INPUTS], 0, Vec::new());
    while queues.iter().any(|queue| !queue.is_empty()) {
        while queues[next]
            .front()
            .is_some_and(|length| *length <= deficits[next])
        {
            let length = queues[next].pop_front().unwrap();
            deficits[next] -= length;
            sent.push((next as u8, length));
        }
        if queues[next].is_empty() {
            deficits[next] = 0;
        }
        next = (next + 1) % INPUTS;
        deficits[next] += quantum;
    }
    sent
}

fn round_robin(queues: &[Vec<usize>]) -> Vec<(u8, usize)> {
    let longest = queues.iter().map(Vec::len).max().unwrap_or(0);
    let of_round = |round: usize| {
        (0..)
            .zip(queues)
            .filter_map(move |(n, q)| Some((n, *q.get(round)?)))
    };
    (0..longest).flat_map(of_round).collect()
}

fn queues() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let length = prop_oneof![4 => 1usize..100, 1 => 100usize..1500];
    prop::collection::vec(prop::collection::vec(length, 0..60), INPUTS)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn bursts_pass_in_the_order_of_single_packets(
        queues in queues(), burst in 1usize..70, quantum in 1usize..700,
    ) {
        let drr = sent(&format!("DRRSched({quantum})"), burst, &queues);
        prop_assert_eq!(drr, deficit_round_robin(quantum, &queues));
        prop_assert_eq!(sent("RoundRobinSched", burst, &queues), round_robin(&queues));
        let prioritized = (0..).zip(&queues).flat_map(|(n, q)| q.iter().map(move |length| (n, *length)));
        prop_assert_eq!(sent("PrioSched", burst, &queues), prioritized.collect::<Vec<_>>());
    }
}
