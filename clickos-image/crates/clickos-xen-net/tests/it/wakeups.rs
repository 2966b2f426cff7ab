// SPDX-License-Identifier: Apache-2.0
//! All interleavings, and reorderings of memory, of one side of a netif ring going to sleep while
//! the other one publishes. A lost event is a deadlock of the model, which loom reports.
use std::rc::Rc;
use std::sync::Arc;

use loom::sync::Notify;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use ring::Memory;
use xen_net::netif::FrontRing;

const FRAMES: u32 = 2;
const REQ_PROD: usize = 0;
const REQ_EVENT: usize = 1;
const RSP_PROD: usize = 2;
const RSP_EVENT: usize = 3;

/// The four indices of a ring as loom's atomics; no slots.
#[derive(Clone)]
struct Model {
    words: Rc<[AtomicU32; 4]>,
    fenced: bool,
}

impl Memory for Model {
    fn size(&self) -> usize {
        4096
    }
    fn load(&self, at: usize) -> u32 {
        self.words[at / 4].load(Ordering::Acquire)
    }
    fn store(&self, at: usize, value: u32) {
        self.words[at / 4].store(value, Ordering::Release);
    }
    fn load_descriptor(&self, _: usize) -> u64 {
        0
    }
    fn store_descriptor(&self, _: usize, _: u64) {}
    fn read(&self, _: usize, _: &mut [u8]) {}
    fn write(&self, _: usize, _: &[u8]) {}
    fn fence(&self) {
        if self.fenced {
            fence(Ordering::SeqCst);
        }
    }
}

/// The backend's macros of `xen/io/ring.h`.
impl Model {
    /// `RING_FINAL_CHECK_FOR_REQUESTS`: true if there are requests beyond `cons`.
    fn final_check(&self, cons: u32) -> bool {
        self.store(REQ_EVENT * 4, cons + 1);
        fence(Ordering::SeqCst);
        self.load(REQ_PROD * 4) != cons
    }

    /// `RING_PUSH_RESPONSES_AND_CHECK_NOTIFY`.
    fn push_responses(&self, old: u32, new: u32) -> bool {
        self.store(RSP_PROD * 4, new);
        fence(Ordering::SeqCst);
        new.wrapping_sub(self.load(RSP_EVENT * 4)) < new.wrapping_sub(old)
    }
}

fn explore(test: impl Fn(Model) + Send + Sync + 'static, fenced: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let words = Rc::new(std::array::from_fn(|_| AtomicU32::new(0)));
        test(Model { words, fenced });
    });
}

/// The backend answers one by one; the frontend sleeps whenever there is no answer.
fn frontend_sleeps(model: Model) {
    let mut ring = FrontRing::<_, 8>::new(model.clone());
    for _ in 0..FRAMES {
        ring.push(&[0; 8]);
    }
    let _ = ring.publish();
    let event = Arc::new(Notify::new());
    let sender = Arc::clone(&event);
    let backend = loom::thread::spawn(move || {
        for n in 0..FRAMES {
            if model.push_responses(n, n + 1) {
                sender.notify();
            }
        }
    });
    let mut seen = 0;
    while seen < FRAMES {
        while ring.pop(&mut [0; 8]).unwrap() {
            seen += 1;
        }
        if seen < FRAMES && !ring.arm_next().unwrap() {
            event.wait();
        }
    }
    backend.join().unwrap();
}

/// The frontend asks one by one; the backend sleeps whenever there is no request.
fn backend_sleeps(model: Model) {
    let mut ring = FrontRing::<_, 8>::new(model.clone());
    let event = Arc::new(Notify::new());
    let sender = Arc::clone(&event);
    let frontend = loom::thread::spawn(move || {
        for _ in 0..FRAMES {
            ring.push(&[0; 8]);
            if ring.publish() {
                sender.notify();
            }
        }
    });
    let mut seen = 0;
    while seen < FRAMES {
        seen = model.load(REQ_PROD * 4);
        if seen < FRAMES && !model.final_check(seen) {
            event.wait();
        }
    }
    frontend.join().unwrap();
}

#[test]
fn no_event_for_the_frontend_is_lost() {
    explore(frontend_sleeps, true);
}

#[test]
fn no_event_for_the_backend_is_lost() {
    explore(backend_sleeps, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_the_lost_event_if_there_is_no_fence() {
    explore(backend_sleeps, false);
}
