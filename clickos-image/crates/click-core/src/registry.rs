// SPDX-License-Identifier: Apache-2.0
//! The element classes a router can be built of.

/// Element classes by name; `click_elements::registry()` gives the usual one.
#[derive(Default)]
pub struct Registry {}
