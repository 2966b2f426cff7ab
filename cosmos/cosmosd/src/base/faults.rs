// SPDX-License-Identifier: Apache-2.0
//! Failures that unit tests ask of simulated surroundings.

use std::sync::Mutex;

use crate::base::error::{Code, Error, Result};

/// The engine of the simulated host.
pub const ENGINE: &str = "e5";

/// Failures to come, and what was called.
#[derive(Default)]
pub struct FaultInjector {
    fail: Mutex<Vec<String>>,
    calls: Mutex<Vec<String>>,
}

impl FaultInjector {
    /// Lets the call of this name fail from now on.
    pub fn fail(&self, call: &str) {
        self.fail.lock().unwrap().push(call.to_owned());
    }

    pub fn mend(&self) {
        self.fail.lock().unwrap().clear();
    }

    /// Notes a call; fails if the test asked for a failure.
    pub fn call(&self, call: &str) -> Result<()> {
        self.calls.lock().unwrap().push(call.to_owned());
        if self.fail.lock().unwrap().iter().any(|f| f == call) {
            return Err(Error::new(Code::Internal, format!("{call}: injected")));
        }
        Ok(())
    }

    /// The calls since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}
