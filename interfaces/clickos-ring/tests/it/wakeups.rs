// SPDX-License-Identifier: Apache-2.0
//! All interleavings, and reorderings of memory, of one side going to sleep while the other
//! publishes. A lost wake-up is a deadlock of the model, which loom reports.
use std::rc::Rc;
use std::sync::Arc;

use clickos_ring::layout::Layout;
use clickos_ring::{GuestPort, InPlacePort, Memory, Slot, SwitchPort};
use loom::cell::Cell;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread::JoinHandle;

const SLOTS: u32 = 64;
const FRAMES: usize = 2;

/// The words of the lines as loom's atomics, the descriptors that are used as its race-checked
/// cells; no frame data.
struct Words {
    lines: [[AtomicU32; 3]; 4],
    descriptors: [[Cell<u64>; 4]; 2],
    fenced: bool,
    version: u32,
}

#[derive(Clone)]
struct Model(Rc<Words>);

impl Model {
    fn new(fenced: bool, version: u32) -> Self {
        let lines = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0)));
        let descriptors = std::array::from_fn(|_| std::array::from_fn(|_| Cell::new(0)));
        Self(Rc::new(Words {
            lines,
            descriptors,
            fenced,
            version,
        }))
    }

    fn word(&self, at: usize) -> Option<&AtomicU32> {
        let at = at.checked_sub(0x100)?;
        Some(&self.0.lines[at / 128][at % 128 / 4])
    }

    fn descriptor(&self, at: usize) -> Option<&Cell<u64>> {
        let at = at.checked_sub(0x1000)?;
        self.0.descriptors[at / 0x1000].get(at % 0x1000 / 8)
    }
}

impl Memory for Model {
    fn size(&self) -> usize {
        1 << 20
    }

    fn load(&self, at: usize) -> u32 {
        match (self.word(at), at) {
            (Some(word), _) => word.load(Ordering::Acquire),
            (None, 0x08) => self.0.version,
            (None, 0x14) => 0,
            (None, 0x0c) => SLOTS,
            (None, _) => 2048,
        }
    }

    fn store(&self, at: usize, value: u32) {
        if let Some(word) = self.word(at) {
            word.store(value, Ordering::Release);
        }
    }

    fn load_descriptor(&self, at: usize) -> u64 {
        self.descriptor(at)
            .map_or(u64::from_le_bytes(*b"VALERING"), Cell::get)
    }

    fn store_descriptor(&self, at: usize, value: u64) {
        if let Some(cell) = self.descriptor(at) {
            cell.set(value);
        }
    }

    fn read(&self, _: usize, _: &mut [u8]) {}

    fn write(&self, _: usize, _: &[u8]) {}

    fn fence(&self) {
        if self.0.fenced {
            fence(Ordering::SeqCst);
        }
    }
}

fn check(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

fn explore(
    test: impl Fn(SwitchPort<Model>, GuestPort<Model>) + Send + Sync + 'static,
    fenced: bool,
) {
    check(3, move || {
        let model = Model::new(fenced, 1);
        let switch = SwitchPort::format(model.clone(), SLOTS).unwrap();
        test(switch, GuestPort::attach(model).unwrap());
    });
}

fn explore_in_place(
    test: impl Fn(SwitchPort<Model>, InPlacePort<Model>) + Send + Sync + 'static,
    fenced: bool,
) {
    // The guest also looks for its slots, which is one more word to interleave.
    check(2, move || {
        let model = Model::new(fenced, 2);
        let layout = Layout::of(2, SLOTS).unwrap();
        let switch = SwitchPort::format_as(model.clone(), layout, 0).unwrap();
        test(switch, InPlacePort::attach(model).unwrap());
    });
}

/// A side that takes frames.
trait Taker {
    fn publish(&mut self) -> bool;
    fn sleep_prepare(&mut self) -> bool;
    fn wake_done(&mut self);
}

macro_rules! taker {
    ($($port:ident)*) => {$(
        impl Taker for $port<Model> {
            fn publish(&mut self) -> bool {
                self.publish()
            }

            fn sleep_prepare(&mut self) -> bool {
                self.sleep_prepare()
            }

            fn wake_done(&mut self) {
                self.wake_done();
            }
        }
    )*};
}

taker!(SwitchPort GuestPort InPlacePort);

/// Takes all frames, and sleeps whenever there is none. `take` gets the number of those before.
fn take_all<P: Taker>(port: &mut P, waker: &Notify, mut take: impl FnMut(&mut P, usize) -> bool) {
    let mut seen = 0;
    while seen < FRAMES {
        while take(port, seen) {
            seen += 1;
        }
        let _ = port.publish();
        if seen < FRAMES && !port.sleep_prepare() {
            waker.wait();
            port.wake_done();
        }
    }
}

/// The switch sends frames one by one.
fn switch_sends(mut switch: SwitchPort<Model>, waker: &Arc<Notify>) -> JoinHandle<()> {
    let waker = Arc::clone(waker);
    loom::thread::spawn(move || {
        for _ in 0..FRAMES {
            switch.push(b"x").unwrap();
            if switch.publish() {
                waker.notify();
            }
        }
    })
}

/// The guest sends frames that stay where they are, and gets their slots back when the switch has
/// taken them.
fn switch_sleeps_in_place(mut switch: SwitchPort<Model>, mut guest: InPlacePort<Model>) {
    let kick = Arc::new(Notify::new());
    let kicker = Arc::clone(&kick);
    let offset = guest.layout().frame(SLOTS as usize) as u32;
    let sender = loom::thread::spawn(move || {
        for slot in 0..FRAMES as u32 {
            assert_eq!(guest.send(0, offset, 60), Ok(slot));
            assert!(
                !guest.is_taken(slot),
                "a frame that the switch has not seen"
            );
            if guest.publish() {
                kicker.notify();
            }
            guest.refresh();
        }
        assert_eq!(guest.malformed(), 0);
    });
    take_all(&mut switch, &kick, |switch, _| {
        switch.fetch(&mut [Slot::EMPTY; 1]) > 0
    });
    sender.join().unwrap();
    assert_eq!(switch.malformed(), 0);
}

/// The guest takes frames and offers other buffers in their place.
fn guest_sleeps_in_place(switch: SwitchPort<Model>, mut guest: InPlacePort<Model>) {
    let wake = Arc::new(Notify::new());
    let sender = switch_sends(switch, &wake);
    take_all(&mut guest, &wake, |guest, seen| {
        let Some((slot, len)) = guest.receive() else {
            return false;
        };
        assert_eq!((slot as usize, len), (seen, 1));
        let spare = guest.layout().frame(SLOTS as usize + seen);
        guest.offer(slot, spare as u32);
        true
    });
    sender.join().unwrap();
    assert_eq!(guest.malformed(), 0);
}

/// The guest sends frames one by one; the switch sleeps whenever there is none.
fn switch_sleeps(mut switch: SwitchPort<Model>, mut guest: GuestPort<Model>) {
    let kick = Arc::new(Notify::new());
    let kicker = Arc::clone(&kick);
    let sender = loom::thread::spawn(move || {
        for _ in 0..FRAMES {
            guest.push(b"x").unwrap();
            if guest.publish() {
                kicker.notify();
            }
        }
    });
    take_all(&mut switch, &kick, |switch, _| {
        switch.pop(&mut [0; 64]).is_some()
    });
    sender.join().unwrap();
    assert_eq!(switch.malformed(), 0);
}

/// The other way around.
fn guest_sleeps(switch: SwitchPort<Model>, mut guest: GuestPort<Model>) {
    let wake = Arc::new(Notify::new());
    let sender = switch_sends(switch, &wake);
    take_all(&mut guest, &wake, |guest, _| {
        guest.pop(&mut [0; 64]).is_some()
    });
    sender.join().unwrap();
    assert_eq!(guest.malformed(), 0);
}

#[test]
fn no_kick_is_lost() {
    explore(switch_sleeps, true);
}

#[test]
fn no_wake_is_lost() {
    explore(guest_sleeps, true);
}

#[test]
fn no_kick_is_lost_in_place() {
    explore_in_place(switch_sleeps_in_place, true);
}

#[test]
fn no_wake_is_lost_in_place() {
    explore_in_place(guest_sleeps_in_place, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_the_lost_kick_if_there_is_no_fence() {
    explore(switch_sleeps, false);
}
