// SPDX-License-Identifier: Apache-2.0
//! What a guest says when it broke an invariant of its own.
use crate::console;
use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sends a panic's message to the console and keeps it for the store. No backtrace: reading the
/// program's own file is forbidden to a confined guest.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string().replace('\n', " ");
        console::line(&text);
        LAST.with_borrow_mut(|last| *last = text);
    }));
}

/// The last panic's message.
pub(crate) fn take() -> String {
    LAST.take()
}
