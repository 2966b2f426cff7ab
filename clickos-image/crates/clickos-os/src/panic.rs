// SPDX-License-Identifier: Apache-2.0
//! Last words: of a guest that broke an invariant of its own, or got an exception.
use alloc::string::ToString;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use xen_sys::{heap, power};

use crate::last_words;

/// Guards against last words that fail themselves.
static PANICKED: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if !PANICKED.swap(true, Relaxed) {
        heap::use_reserve();
        last_words::say(&info.to_string().replace('\n', " "));
    }
    power::end(power::Reason::Crash)
}
