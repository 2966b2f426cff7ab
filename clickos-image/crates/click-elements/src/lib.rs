// SPDX-License-Identifier: Apache-2.0
//! The elements, one file each.
#![no_std]
#![forbid(unsafe_code)]

/// All element classes of this build.
pub fn registry() -> click_core::Registry {
    click_core::Registry::default()
}
