// SPDX-License-Identifier: Apache-2.0
//! The console ring (`io/console.h`), and Xen's own console for what happens before it is there.
use crate::abi;
use crate::events;
use crate::hypercall::call;
use crate::state::{STATE, page};
use core::sync::atomic::{Ordering, Ordering::Relaxed, fence};

const OUT: usize = 1024;
const OUT_BYTES: u32 = 2048;
const OUT_CONS: usize = 3080;
const OUT_PROD: usize = 3084;

/// Writes as much as the ring takes; gives how many bytes that were.
pub fn write(bytes: &[u8]) -> usize {
    if STATE.console.load(Relaxed) == 0 {
        emergency(bytes);
        return bytes.len();
    }
    let ring = page(&STATE.console);
    let prod: u32 = ring.read(OUT_PROD);
    let used = prod.wrapping_sub(ring.acquire(OUT_CONS));
    let free = OUT_BYTES.saturating_sub(used) as usize;
    let count = free.min(bytes.len());
    for (at, byte) in bytes[..count].iter().enumerate() {
        let offset = prod.wrapping_add(at as u32) % OUT_BYTES;
        ring.write(OUT + offset as usize, *byte);
    }
    ring.release(OUT_PROD, prod.wrapping_add(count as u32));
    fence(Ordering::SeqCst);
    if count > 0 {
        events::notify(STATE.console_port.load(Relaxed));
    }
    count
}

/// Writes everything, for last words: waits for room, but not for ever.
pub fn write_all(bytes: &[u8]) {
    let mut rest = bytes;
    for _ in 0..1000 {
        rest = &rest[write(rest)..];
        if rest.is_empty() {
            return;
        }
        crate::power::give_way();
    }
}

/// Xen's own log takes it, if it was built or told to.
fn emergency(bytes: &[u8]) {
    const WRITE: usize = 0;
    // SAFETY: the call reads `bytes.len()` bytes at the pointer. It is refused in most set-ups.
    let _ = unsafe {
        call(
            abi::CONSOLE_IO,
            [WRITE, bytes.len(), bytes.as_ptr() as usize, 0],
        )
    };
}
