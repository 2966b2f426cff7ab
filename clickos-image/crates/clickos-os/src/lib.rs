// SPDX-License-Identifier: Apache-2.0
//! A guest's small operating system: console, time, Xen store, power, and the entry point.
//!
//! An application names its main function and is a guest:
//! ```text
//! #![no_std]
//! #![no_main]
//! clickos_os::entry!(main);
//! fn main() -> ! {
//!     clickos_os::console::Console::new().line("hello");
//!     clickos_os::power::end(clickos_os::power::Reason::PowerOff)
//! }
//! ```
//! There is one processor and one thread; what has to wait is a future that its owner polls, and
//! an idle guest sleeps in [`wait`]. Everything unsafe is in `xen-sys`.
#![no_std]
#![deny(unsafe_code)]
extern crate alloc;

pub mod clock;
pub mod console;
mod last_words;
pub mod notices;
#[cfg(feature = "boot")]
mod panic;
pub mod platform;
pub mod power;

pub use last_words::end_with;
pub use xen_sys::events::wait;
pub use xen_sys::{Kind, command_line, heap, kind, random, store_ring};

use alloc::rc::Rc;
use core::cell::RefCell;
use xen_sys::Notifier;
use xenstore::page::SharedPage;
use xenstore::{Handle, Mux, RingClient};

/// The connection to the store.
pub type Store = RingClient<SharedPage, Notifier>;
/// The connection to the store, shared by the guest's parts.
pub type SharedStore = Rc<RefCell<Mux<Store>>>;
/// A part's own view of the connection.
pub type StoreHandle = Handle<Store>;

/// Connects to the store; to be called once.
pub fn store() -> SharedStore {
    Mux::new(connect())
}

/// A connection in place of an older one, after a restore.
pub fn connect() -> Store {
    xen_sys::store_client()
}

/// Makes a function of the type `fn() -> !` the guest's main function.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        const _: () = {
            #[allow(unsafe_code, reason = "the name by which boot finds the application")]
            #[unsafe(no_mangle)]
            extern "Rust" fn xen_main() -> ! {
                let main: fn() -> ! = $main;
                main()
            }
        };
    };
}
