// SPDX-License-Identifier: Apache-2.0
//! The elements that reach an operating system, one file each under `src/elements/os/`: group `os`, which no guest has.
#![forbid(unsafe_code)]

mod kernel_interface;
mod server;
mod socket;

use click_core::{Entry, Registry};

/// Modules under `src/elements/os/` and an entry of the registry for each.
macro_rules! elements {
    ($($module:ident)*) => {
        mod elements {
            pub mod os {
                $(pub mod $module;)*
            }
        }

        /// The classes of this crate, without aliases.
        static ENTRIES: &[Entry] = &[$(Entry {
            class: &elements::os::$module::ELEMENT,
            group: "os",
            source: match cfg!(feature = "docs") {
                true => include_str!(concat!("elements/os/", stringify!($module), ".rs")),
                false => "",
            },
        }),*];
    };
}

elements! {
    chatter_socket control_socket from_host from_socket kernel_tap kernel_tun mcast_socket socket to_host to_socket
}

/// All element classes of a program: those of guests, and those that reach an operating system.
pub fn registry() -> Registry {
    click_elements::registry().with_os(ENTRIES)
}

/// All classes of a program, without aliases.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    click_elements::entries().iter().chain(ENTRIES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_lang::Classes;

    #[test]
    fn a_guest_knows_the_names_of_all_classes_it_cannot_have() {
        let guest = click_elements::registry();
        for Entry { class, .. } in ENTRIES {
            let why = guest.unavailable(class.name);
            assert!(
                why.is_some_and(|why| why.contains("guest")),
                "{}",
                class.name
            );
        }
    }

    #[test]
    fn each_file_is_an_element() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/elements/os");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), ENTRIES.len());
    }
}
