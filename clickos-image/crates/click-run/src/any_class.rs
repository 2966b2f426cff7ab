// SPDX-License-Identifier: Apache-2.0
//! For tools that do not run a configuration: every name is a class that is used as one.
use click_lang::Classes;

/// Takes every name for a class that is used as one.
pub struct AnyClass;

impl Classes for AnyClass {
    fn knows(&self, _name: &str) -> bool {
        false
    }

    fn unavailable(&self, _name: &str) -> Option<&str> {
        None
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn takes_any(&self) -> bool {
        true
    }
}
