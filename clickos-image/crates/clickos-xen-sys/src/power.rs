// SPDX-License-Identifier: Apache-2.0
//! The end of a guest, and its sleep while it is saved.
use crate::abi;
use crate::hypercall::{Refused, call, operate};
use crate::state::{Kind, kind};
use crate::{grants, pvh};
use core::fmt;

/// Why a guest ends (`SHUTDOWN_*` of `sched.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    PowerOff = 0,
    Reboot = 1,
    Crash = 3,
}

/// `SHUTDOWN_suspend`.
const SUSPEND: u32 = 2;

/// Ends the guest.
pub fn end(reason: Reason) -> ! {
    loop {
        let mut reason = reason as u32;
        // SAFETY: the operation takes a reason; nothing runs after it.
        let _ = unsafe { operate(abi::SCHED_OP, abi::SHUTDOWN, &mut reason) };
    }
}

/// Why a guest was not suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendError {
    /// PV guests cannot be suspended.
    Pv,
    Xen(Refused),
}

impl fmt::Display for SuspendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pv => write!(f, "a PV guest cannot be saved"),
            Self::Xen(refused) => refused.fmt(f),
        }
    }
}

/// Sleeps until the guest was saved and restored, maybe on another host. Event channels and grants
/// are gone afterwards; their users make them again. Gives false if the toolstack cancelled
/// the suspend: the domain is the same, and its event channels and grants are as before.
///
/// # Errors
/// Not a PVH guest, or Xen refuses to put the shared pages back.
pub fn suspend() -> Result<bool, SuspendError> {
    if kind() == Kind::Pv {
        return Err(SuspendError::Pv);
    }
    grants::rewrite();
    let mut reason = SUSPEND;
    // SAFETY: the operation takes a reason. When it returns in another domain, memory is as it was
    // but for the shared pages, which are put back before anything uses them.
    let cancelled = unsafe { operate(abi::SCHED_OP, abi::SHUTDOWN, &mut reason) };
    let cancelled = cancelled.map_err(SuspendError::Xen)?;
    if cancelled != 0 {
        return Ok(false);
    }
    pvh::connect().map_err(SuspendError::Xen)?;
    grants::restore().map_err(SuspendError::Xen)?;
    Ok(true)
}

/// Lets other domains run.
pub(crate) fn give_way() {
    // SAFETY: the operation takes nothing and changes nothing.
    let _ = unsafe { call(abi::SCHED_OP, [abi::YIELD, 0, 0, 0]) };
}
