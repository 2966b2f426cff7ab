// SPDX-License-Identifier: Apache-2.0
//! The end of a round: a valed that is killed there must not have shown a frame that its successor
//! would take again.
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use super::*;
use crate::device::{Buffers, Burst, Device};
use crate::frame::rx_frame::RxFrame;

/// An interface that sends one frame, and notes when the switch ends a round.
struct Noted(FakeNic, Arc<Mutex<Vec<&'static str>>>);

impl Device for Noted {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn take_event(&mut self) {}

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        self.0.fetch(burst)
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, n: usize) -> Option<RxFrame<'a>> {
        self.0.taken(burst, n)
    }

    fn push(&mut self, _: &mut TxFrame<'_>, _: &mut Buffers, _: &mut Counters) {}

    fn release(&mut self) {
        self.1.lock().unwrap().push("release");
    }

    fn flush(&mut self, _: &mut Counters) {
        self.1.lock().unwrap().push("flush");
    }

    fn sleep_prepare(&mut self) -> bool {
        false
    }
}

#[test]
fn all_taken_frames_are_released_before_any_copy_is_published() {
    let mut bench = Bench::new();
    let _guests = [bench.guest(1, 1), bench.guest(2, 1), bench.guest(3, 1)];
    let log = Arc::default();
    for n in 0..3 {
        let frame = frame(BROADCAST, mac(n + 1), 60);
        let noted = Noted(FakeNic(TxOffload::default(), frame), Arc::clone(&log));
        let port = bench.switch.ports[usize::from(n)].as_mut();
        port.unwrap().replace(Box::new(noted));
    }
    bench.round();
    let expected = [["release"; 3], ["flush"; 3]].concat();
    assert_eq!(*log.lock().unwrap(), expected);
}
