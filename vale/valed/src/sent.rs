// SPDX-License-Identifier: Apache-2.0
//! An interface for tests that sends one frame with the offloads of a network card.
use std::os::fd::BorrowedFd;

use vale_proto::Counters;

use super::{Buffers, Burst, Device, Taken};
use crate::offload::Offload;
use crate::outgoing::Outgoing;

/// The offloads and the frame.
pub struct Sent(pub Offload, pub Vec<u8>);

impl Device for Sent {
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn take_event(&mut self) {}

    fn fetch(&mut self, burst: &mut Burst) -> usize {
        burst.heads[..self.1.len()].copy_from_slice(&self.1);
        1
    }

    fn taken<'a>(&'a self, burst: &'a mut Burst, _: usize) -> Option<Taken<'a>> {
        Some(Taken {
            bytes: &mut burst.heads[..self.1.len()],
            rest: None,
            offload: self.0,
        })
    }

    fn push(&mut self, _: &mut Outgoing<'_>, _: &mut Buffers, _: &mut Counters) {}

    fn flush(&mut self, _: &mut Counters) {}

    fn sleep_prepare(&mut self) -> bool {
        false
    }
}
