// SPDX-License-Identifier: Apache-2.0
//! Hypercalls, and the errors they answer with.
use crate::state::STATE;
use core::arch::asm;
use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

/// Xen refused a hypercall: the errno of `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub i64);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xen: error {}", self.0)
    }
}

/// Calls the hypervisor.
///
/// # Safety
/// The arguments must be what hypercall `number` takes: pointers among them valid for what it
/// reads and writes, and its effect must not break what other code of the guest relies on.
pub(crate) unsafe fn call(number: usize, arguments: [usize; 4]) -> Result<u64, Refused> {
    let page = STATE.hypercalls.load(Relaxed);
    assert!(page != 0, "no hypercall before boot");
    let [a, b, c, d] = arguments;
    let result: i64;
    // SAFETY: Xen filled the page with one entry of 32 bytes a hypercall; they keep all registers
    // but those named. The caller vouches for the arguments.
    unsafe {
        asm!(
            "call {entry}",
            entry = in(reg) page + 32 * number,
            inlateout("rdi") a => _,
            inlateout("rsi") b => _,
            inlateout("rdx") c => _,
            inlateout("r10") d => _,
            lateout("r8") _,
            lateout("rcx") _,
            lateout("r11") _,
            lateout("rax") result,
        );
    }
    u64::try_from(result).map_err(|_| Refused(result))
}

/// A hypercall of the form "operation and a structure".
///
/// # Safety
/// `T` must be the structure that `operation` of hypercall `number` takes, and its effect must not
/// break what other code of the guest relies on.
pub(crate) unsafe fn operate<T>(
    number: usize,
    operation: usize,
    argument: &mut T,
) -> Result<u64, Refused> {
    let argument: *mut T = argument;
    // SAFETY: the structure is exclusively borrowed for the call; the rest is the caller's promise.
    unsafe { call(number, [operation, argument as usize, 1, 0]) }
}
