// SPDX-License-Identifier: Apache-2.0
//! Last words: of a guest that broke an invariant of its own, or got an exception.
use alloc::format;
use alloc::string::{String, ToString};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use xen_sys::{clock, console, events, heap, power};
use xenstore::{Request, Tx};

/// Bytes of the message in the store.
const STORED: usize = 500;
/// Time limit of the store, in milliseconds.
const PATIENCE: u32 = 100;
const MILLISECOND_NS: u64 = 1_000_000;

/// Guards against last words that fail themselves.
static PANICKED: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if !PANICKED.swap(true, Relaxed) {
        heap::use_reserve();
        say(&info.to_string().replace('\n', " "));
    }
    power::end(power::Reason::Crash)
}

/// Ends the domain, with a text as its last words. For the toolstack it crashed.
pub fn end_with(text: &str) -> ! {
    say(text);
    power::end(power::Reason::Crash)
}

fn say(text: &str) {
    console::write_all(b"\r\n");
    console::write_all(text.as_bytes());
    console::write_all(b"\r\n");
    tell_store(text);
}

/// Writes the key `panic`. The connection is made anew: the one in use may be half-way through
/// something, and its owner will not go on.
fn tell_store(text: &str) {
    let text: String = text.chars().take(STORED).collect();
    let path = format!("{}/panic", clickos_protocol::ROOT);
    let Ok(request) = Request::write(Tx::NONE, &path, text.as_bytes()) else {
        return;
    };
    let mut client = xen_sys::store_client();
    if client.submit(&request).is_err() {
        return;
    }
    for _ in 0..PATIENCE {
        client.pump();
        if client.poll_reply().is_some() {
            return;
        }
        events::wait(&[], Some(clock::system_ns() + MILLISECOND_NS));
    }
}
