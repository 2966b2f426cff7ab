// SPDX-License-Identifier: Apache-2.0
//! What boot found out about the guest, in words that everything else reads.
use crate::abi;
use crate::shared::Shared;
use alloc::string::String;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// How Xen runs the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Paravirtualized, by hypercalls only.
    Pv,
    /// In hardware's virtual machine, without emulated devices.
    Pvh,
}

/// Written at boot and after a restore, by the guest's one processor.
pub(crate) struct State {
    pub hypercalls: AtomicUsize,
    pub shared_info: AtomicUsize,
    /// List of machine frames; 0 in a PVH guest, whose frames are its own.
    pub frames: AtomicUsize,
    pub frame_count: AtomicUsize,
    pub console: AtomicUsize,
    pub console_port: AtomicU32,
    pub store: AtomicUsize,
    pub store_port: AtomicU32,
    command_line: [AtomicU8; abi::COMMAND_LINE],
}

pub(crate) static STATE: State = State {
    hypercalls: AtomicUsize::new(0),
    shared_info: AtomicUsize::new(0),
    frames: AtomicUsize::new(0),
    frame_count: AtomicUsize::new(0),
    console: AtomicUsize::new(0),
    console_port: AtomicU32::new(0),
    store: AtomicUsize::new(0),
    store_port: AtomicU32::new(0),
    command_line: [const { AtomicU8::new(0) }; abi::COMMAND_LINE],
};

/// Keeps the text up to its end.
pub(crate) fn set_command_line(text: &[u8]) {
    let text = text.iter().take_while(|byte| **byte != 0);
    for (kept, byte) in STATE.command_line.iter().zip(text) {
        kept.store(*byte, Relaxed);
    }
}

/// The guest's command line, as the toolstack wrote it (`extra` of an xl configuration).
pub fn command_line() -> String {
    let bytes = STATE.command_line.iter().map(|byte| byte.load(Relaxed));
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// How Xen runs this guest.
pub fn kind() -> Kind {
    match STATE.frames.load(Relaxed) {
        0 => Kind::Pvh,
        _ => Kind::Pv,
    }
}

/// A shared page that boot found.
pub(crate) fn page(address: &AtomicUsize) -> Shared {
    let base = NonNull::new(address.load(Relaxed) as *mut u8)
        .expect("boot set the address before anything else ran");
    // SAFETY: boot stored addresses of whole pages that are mapped as long as the guest lives and
    // are used through `Shared` only.
    unsafe { Shared::new(base, crate::PAGE_SIZE) }
}

/// Xen's page about this domain.
pub(crate) fn shared_info() -> Shared {
    page(&STATE.shared_info)
}

/// The frame number by which Xen knows a page of this guest.
pub(crate) fn frame_of(address: usize) -> u64 {
    let own = address / crate::PAGE_SIZE;
    let list = STATE.frames.load(Relaxed);
    if list == 0 {
        return own as u64;
    }
    assert!(
        own < STATE.frame_count.load(Relaxed),
        "page {own:#x} is not memory of this guest"
    );
    // SAFETY: the list has `frame_count` words, and Xen never writes to it.
    unsafe { (list as *const u64).add(own).read() }
}
