// SPDX-License-Identifier: Apache-2.0
//! The parts of a router that move to another host.

use serde_json::{Value, json};

use crate::commands::{REFUSED, Result, Session};
use crate::output::text;

/// Writes in one request: all of them are done, or none.
const BATCH: usize = 64;

/// A handler whose value could not be read, and why.
pub type Skipped = (String, String);

/// The state of one router.
pub struct Carried {
    pub config: String,
    /// Names and values.
    values: Vec<(String, String)>,
}

/// Reads it from a halted router.
pub fn read(host: &Session<'_>, router: &Value) -> Result<(Carried, Vec<Skipped>)> {
    let config = value_of(host, router, "config")?;
    let listed = host.call("handler-list", router.clone())?;
    let listed = listed["handlers"].as_array().into_iter().flatten();
    let carried = listed.filter(|h| h["read"] == json!(true) && h["write"] == json!(true));
    let (mut values, mut skipped) = (Vec::new(), Vec::new());
    for name in carried.map(|handler| text(&handler["name"])) {
        match value_of(host, router, &name) {
            Ok(value) => values.push((name, value)),
            Err(e) if e.status == REFUSED => skipped.push((name, e.message)),
            Err(e) => return Err(e),
        }
    }
    Ok((Carried { config, values }, skipped))
}

impl Carried {
    /// Writes what is different in a router that was just installed.
    pub fn write(&self, host: &Session<'_>, router: &Value, seconds: u64) -> Result<()> {
        let mut changed = Vec::new();
        for (name, value) in &self.values {
            if value_of(host, router, name)? != *value {
                changed.push((name, value));
            }
        }
        changed.chunks(BATCH).try_for_each(|writes| {
            let mut args = router.clone();
            args["writes"] = json!(writes);
            args["timeout_ms"] = json!(seconds * 1000);
            host.call_for("handler-write", args, seconds).map(drop)
        })
    }
}

fn value_of(host: &Session<'_>, router: &Value, name: &str) -> Result<String> {
    let mut args = router.clone();
    args["name"] = json!(name);
    Ok(text(&host.call("handler-read", args)?["value"]))
}
