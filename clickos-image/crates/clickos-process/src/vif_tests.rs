// SPDX-License-Identifier: Apache-2.0
//! Frames from one vif to another, in rings of both versions: they arrive unchanged, and what each costs.
#![allow(clippy::unwrap_used)] // A test.
use super::*;
use proptest::prelude::*;
use ring::{BUFFER_SIZE, Regions, Slot, SwitchPort};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

const SLOTS: u32 = 256;
/// Frames of one turn.
const BURST: usize = 32;
/// Turns of each version, which alternate.
const TURNS: usize = 40_000;

/// A vif and the switch's side of its port.
struct Side {
    vif: Vif,
    switch: SwitchPort,
}

impl Side {
    fn new((switch, memfd): (SwitchPort, OwnedFd)) -> Self {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let resources = VifResources {
            memfd,
            kick: event(),
            wake: event(),
            keep: event(),
        };
        let vif = map(0, [2, 0, 0, 0, 0, 1], 1500, resources).unwrap();
        Self { vif, switch }
    }
}

/// A port of a guest in a version of the rings.
fn port(version: u32, regions: &Arc<Regions>) -> Side {
    Side::new(match version {
        1 => SwitchPort::create(SLOTS).unwrap(),
        _ => SwitchPort::create_in(regions, SLOTS).unwrap(),
    })
}

fn ports(version: u32) -> [Side; 2] {
    let regions = Arc::default();
    [(); 2].map(|()| port(version, &regions))
}

/// Passes a burst from one port to the other; returns the guest's nanoseconds for a frame.
fn pass([from, to]: &mut [Side; 2], frame: &[u8], pool: &mut PacketPool) -> f64 {
    for _ in 0..BURST {
        from.switch.push(frame).unwrap();
    }
    let _ = from.switch.publish();
    let (mut batch, start) = (Batch::default(), Instant::now());
    let count = from
        .vif
        .device
        .borrow_mut()
        .receive(BURST, pool, &mut batch);
    let sent = to.vif.device.borrow_mut().transmit(&mut batch, pool);
    to.vif.publish();
    from.vif.publish();
    let ns = start.elapsed().as_nanos() as f64 / BURST as f64;
    assert_eq!((count, sent), (BURST, BURST));
    let (mut slots, mut got) = ([Slot::EMPTY; BURST], [0; BUFFER_SIZE]);
    assert_eq!(to.switch.fetch(&mut slots), BURST);
    for slot in slots {
        to.switch.read(slot, &mut got);
        assert_eq!(&got[..slot.len()], frame);
    }
    let _ = to.switch.publish();
    ns
}

/// Frames of 9,000 bytes come and go by rings of version 1.
#[test]
fn long_frames_pass_a_guest_unchanged() {
    let mut pool = PacketPool::new(1 << 20);
    let mut sides = [(); 2].map(|()| {
        let (mut switch, memfd) = SwitchPort::create(SLOTS).unwrap();
        switch.set_long();
        Side::new((switch, memfd))
    });
    let [from, to] = &mut sides;
    for len in [60, 2048, 2049, 9014, 9022] {
        let frame: Vec<u8> = (0..len).map(|n| n as u8 ^ len as u8).collect();
        for _ in 0..BURST {
            from.switch.push(&frame).unwrap();
        }
        let _ = from.switch.publish();
        let mut batch = Batch::default();
        let mut device = from.vif.device.borrow_mut();
        let received = device.receive(BURST, &mut pool, &mut batch);
        drop(device);
        let sent = to.vif.device.borrow_mut().transmit(&mut batch, &mut pool);
        assert_eq!((received, sent), (BURST, BURST), "{len}");
        to.vif.publish();
        from.vif.publish();
        let mut got = [0; ring::LONGEST];
        for _ in 0..BURST {
            assert_eq!(to.switch.pop(&mut got), Some(len));
            assert_eq!(&got[..len], frame);
        }
        let _ = (to.switch.publish(), from.switch.publish());
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The versions take turns, so that a busy moment slows both. Rings of version 2 save a copy of
/// the frame, and a long frame shows it.
///
/// `cargo test --release -p clickos-process --lib cost_of -- --nocapture`
#[test]
#[cfg_attr(debug_assertions, ignore = "a promise of the release build")]
fn cost_of_a_forwarded_frame() {
    let mut pool = PacketPool::new(1 << 20);
    for len in [64, 128, 256, 512, 1500] {
        let frame: Vec<u8> = (0..len).map(|n| n as u8).collect();
        let mut versions = [1, 2].map(ports);
        let mut figures = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (ports, figures) in versions.iter_mut().zip(&mut figures) {
                figures.push(pass(ports, &frame, &mut pool));
            }
        }
        let [first, second] = figures.map(median);
        println!("{len} B: version 1 {first:.1} ns, version 2 {second:.1} ns");
        if len == 1500 {
            bounds::hold("max_process_ring_cost_ratio", second / first);
        }
    }
}

/// A step of a guest of two ports, or of the switch at one of them.
#[derive(Clone, Debug)]
enum Step {
    /// The switch delivers frames, of which the first has this length.
    Deliver(usize, u8, usize),
    Receive(usize, u8),
    Transmit(usize, u8),
    /// The packet at the front once more, at the end.
    Copy,
    Drop(u8),
    Fetch(usize, u8),
    /// The port goes and comes back, while its packets wait.
    Replug(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (port, count) = (0..2usize, 1..64u8);
    prop_oneof![
        3 => (port.clone(), count.clone(), 14..1600usize).prop_map(|(p, n, l)| Step::Deliver(p, n, l)),
        3 => (port.clone(), count.clone()).prop_map(|(p, n)| Step::Receive(p, n)),
        3 => (port.clone(), count.clone()).prop_map(|(p, n)| Step::Transmit(p, n)),
        3 => (port.clone(), count.clone()).prop_map(|(p, n)| Step::Fetch(p, n)),
        1 => Just(Step::Copy),
        1 => count.prop_map(Step::Drop),
        1 => port.prop_map(Step::Replug),
    ]
}

/// A guest and its switch, with what each has to find.
struct Model {
    version: u32,
    regions: Arc<Regions>,
    ports: [Side; 2],
    pool: PacketPool,
    packets: VecDeque<(click_packet::Packet, Vec<u8>)>,
    /// Frames on their way to the guest and from there, by port.
    inward: [VecDeque<Vec<u8>>; 2],
    outward: [VecDeque<Vec<u8>>; 2],
    number: u8,
}

impl Model {
    fn new(version: u32) -> Self {
        let regions = Arc::default();
        Self {
            version,
            ports: [(); 2].map(|()| port(version, &regions)),
            regions,
            pool: PacketPool::new(1 << 20),
            packets: VecDeque::new(),
            inward: Default::default(),
            outward: Default::default(),
            number: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Deliver(port, count, len) => {
                (0..count)
                    .for_each(|n| self.deliver(port, 14 + (len + 31 * usize::from(n)) % 1586));
                let _ = self.ports[port].switch.publish();
            }
            Step::Receive(port, count) => self.receive(port, count.into()),
            Step::Transmit(port, count) => self.transmit(port, count.into()),
            Step::Copy => {
                let Some((packet, frame)) = self.packets.front_mut() else {
                    return;
                };
                let copy = (self.pool.duplicate(packet).unwrap(), frame.clone());
                self.packets.push_back(copy);
            }
            Step::Drop(count) => drop(
                self.packets
                    .drain(..usize::from(count).min(self.packets.len())),
            ),
            Step::Fetch(port, count) => self.fetch(port, count.into()),
            Step::Replug(at) => {
                (0..2).for_each(|port| self.fetch(port, SLOTS as usize));
                self.ports[at] = port(self.version, &self.regions);
                self.inward[at].clear();
            }
        }
    }

    fn deliver(&mut self, port: usize, len: usize) {
        self.number = self.number.wrapping_add(1);
        let frame = vec![self.number; len];
        if self.ports[port].switch.push(&frame).is_ok() {
            self.inward[port].push_back(frame);
        }
    }

    fn receive(&mut self, port: usize, count: usize) {
        let mut batch = Batch::default();
        let mut device = self.ports[port].vif.device.borrow_mut();
        device.receive(count, &mut self.pool, &mut batch);
        device.publish();
        while let Some(packet) = batch.pop_front() {
            let frame = self.inward[port].pop_front().unwrap();
            assert_eq!(packet.data(), frame);
            self.packets.push_back((packet, frame));
        }
    }

    fn transmit(&mut self, port: usize, count: usize) {
        let (mut batch, mut frames) = (Batch::default(), VecDeque::new());
        for (packet, frame) in self.packets.drain(..count.min(self.packets.len())) {
            batch.push_back(packet);
            frames.push_back(frame);
        }
        let mut device = self.ports[port].vif.device.borrow_mut();
        let sent = device.transmit(&mut batch, &mut self.pool);
        device.publish();
        self.outward[port].extend(frames.drain(..sent));
        while let Some(packet) = batch.pop_back() {
            self.packets
                .push_front((packet, frames.pop_back().unwrap()));
        }
    }

    fn fetch(&mut self, port: usize, count: usize) {
        let (mut slots, mut got) = ([Slot::EMPTY; SLOTS as usize], [0; BUFFER_SIZE]);
        let switch = &mut self.ports[port].switch;
        let found = switch.fetch(&mut slots[..count]);
        for slot in &slots[..found] {
            switch.read(*slot, &mut got);
            assert_eq!(got[..slot.len()], self.outward[port].pop_front().unwrap());
        }
        let _ = switch.publish();
        assert_eq!(switch.malformed(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Packets wait, are copied, dropped, or sent by another port: the switch finds the bytes that came.
    #[test]
    fn frames_pass_unchanged(steps in prop::collection::vec(step(), 1..120), version in 1..3u32) {
        let mut model = Model::new(version);
        steps.iter().for_each(|step| model.take(step));
        // All that is left goes out.
        while !model.packets.is_empty() {
            model.take(&Step::Transmit(0, 63));
            model.fetch(0, 64);
        }
        (0..2).for_each(|port| model.fetch(port, SLOTS as usize));
        prop_assert!(model.outward.iter().all(VecDeque::is_empty));
    }
}
