// SPDX-License-Identifier: Apache-2.0
//! An interface for tests that sends one frame with the offloads of a network card.
use std::os::fd::BorrowedFd;

use vale_proto::Counters;

use super::{Buffers, Burst, Device, RxFrame};
use crate::frame::gso::TxOffload;
use crate::frame::tx_frame::TxFrame;

/// The offloads and the frame.
pub struct FakeNic(pub TxOffload, pub Vec<u8>);

impl Device for FakeNic {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn take_event(&mut self) {}

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        burst.heads[..self.1.len()].copy_from_slice(&self.1);
        1
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, _: usize) -> Option<RxFrame<'a>> {
        Some(RxFrame {
            bytes: &mut burst.heads[..self.1.len()],
            rest: None,
            offload: self.0,
        })
    }

    fn push(&mut self, _: &mut TxFrame<'_>, _: &mut Buffers, _: &mut Counters) {}

    fn flush(&mut self, _: &mut Counters) {}

    fn sleep_prepare(&mut self) -> bool {
        false
    }
}
