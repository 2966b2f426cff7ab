// SPDX-License-Identifier: Apache-2.0
//! What a domain says before it ends: on its console, and in the store key `panic`.
use alloc::format;
use alloc::string::String;
use xen_sys::{clock, console, events, power};
use xenstore::{Request, Tx};

/// Bytes of the message in the store.
const STORED: usize = 500;
/// Time limit of the store, in milliseconds.
const PATIENCE: u32 = 100;
const MILLISECOND_NS: u64 = 1_000_000;

/// Ends the domain with these last words. For the toolstack it crashed.
pub fn end_with(text: &str) -> ! {
    say(text);
    power::end(power::Reason::Crash)
}

/// Says last words.
pub(crate) fn say(text: &str) {
    console::write_all(b"\r\n");
    console::write_all(text.as_bytes());
    console::write_all(b"\r\n");
    tell_store(text);
}

/// Writes the key `panic`. The connection is made again: the one in use may be half-way through
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
