// SPDX-License-Identifier: Apache-2.0
//! The move of a port to another worker, without a lost frame or another order.
use std::time::{Duration, Instant};

use vale_proto::PortId;

use super::Handle;

/// Why a port cannot move.
#[derive(Debug, PartialEq, Eq)]
pub enum MoveFailure {
    NoSuchPort,
    NoSuchWorker,
    /// Blocked frames of other workers waited for the port all the time.
    Full,
}

impl Handle {
    /// Moves a port. Meanwhile the frames to it wait at their sources; all others go on.
    ///
    /// 1. All workers let new frames to the port wait.
    /// 2. All workers take the frames of each other, and the old worker delivers its blocked ones.
    ///    After that, none to the port is on its way.
    /// 3. The old worker detaches the port, which ends the frames from it.
    /// 4. All workers take the frames of each other: after that, none from the port is on its way.
    /// 5. The new worker attaches the port.
    /// 6. The waiting frames go to the new worker.
    pub fn move_port(&self, id: &PortId, to: usize) -> Option<Result<(), MoveFailure>> {
        let mut port_map = self.lock();
        if to >= self.workers() {
            return Some(Err(MoveFailure::NoSuchWorker));
        }
        let Some(from) = port_map.of(id) else {
            return Some(Err(MoveFailure::NoSuchPort));
        };
        if from == to {
            return Some(Ok(()));
        }
        let of = id.clone();
        self.each(move |_, f| f.set_moving(&of, true))?;
        self.each(|_, f| f.drain())?;
        if !self.await_blocked(id, from)? {
            let of = id.clone();
            self.each(move |_, f| f.set_moving(&of, false))?;
            return Some(Err(MoveFailure::Full));
        }
        let of = id.clone();
        let Some(port) = self.at(from, move |f| f.detach_port(&of, to))? else {
            return Some(Err(MoveFailure::NoSuchPort));
        };
        self.each(|_, f| f.drain())?;
        let of = id.clone();
        let _proxy = self.at(to, move |f| f.attach_port(&of, port))?;
        port_map.set(id, Some(to));
        let of = id.clone();
        self.each(move |n, f| {
            if n != to {
                f.note_worker(&of, to);
            }
            f.set_moving(&of, false);
        })?;
        Some(Ok(()))
    }

    /// Waits until the worker has no blocked frames of others for the port. False after
    /// [`super::Waits::changes`].
    fn await_blocked(&self, id: &PortId, worker: usize) -> Option<bool> {
        self.within_patience(|| {
            let of = id.clone();
            self.at(worker, move |f| !f.has_blocked_for(&of))
        })
    }

    /// Waits until the switch has delivered all frames from a port without far end. False after
    /// [`super::Waits::changes`]. A frame that a rule redirects goes to two workers, one after the other.
    pub(super) fn await_frames_of(&self, id: &PortId) -> Option<bool> {
        let has_blocked = || {
            let of = id.clone();
            let blocked = self.each(move |_, f| f.has_blocked_from(&of))?;
            Some(blocked.into_iter().any(|blocked| blocked))
        };
        self.within_patience(|| {
            if has_blocked()? {
                return Some(false);
            }
            self.each(|_, f| f.drain())?;
            self.each(|_, f| f.drain())?;
            Some(!has_blocked()?)
        })
    }

    /// Asks again until the answer is true. False after [`super::Waits::changes`].
    fn within_patience(&self, ask: impl Fn() -> Option<bool>) -> Option<bool> {
        let end = Instant::now() + self.waits.changes;
        loop {
            if ask()? {
                return Some(true);
            }
            if Instant::now() > end {
                return Some(false);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
