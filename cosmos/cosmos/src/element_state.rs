// SPDX-License-Identifier: Apache-2.0
//! The parts of a router that move to another host.

use cosmos_proto::{OfRouter, Param, Read, Writes, verb};

use crate::commands::{REFUSED, Result, Session, checked, timeout_ms};

/// Writes in one request: all of them are done, or none.
const BATCH: usize = 64;

/// A handler whose value could not be read, and why.
pub type Skipped = (String, String);

/// The state of one router.
pub struct ElementState {
    pub config: String,
    /// Names and values.
    values: Vec<(String, String)>,
}

/// Reads it from a halted router.
pub fn read(host: &Session<'_>, router: &OfRouter) -> Result<(ElementState, Vec<Skipped>)> {
    let config = value_of(host, router, "config")?;
    let listed = host.call::<verb::ListHandlers>(router)?.handlers;
    let carried = listed.into_iter().filter(|h| h.read && h.write);
    let mut names: Vec<String> = carried.map(|handler| handler.name).collect();
    // Other handlers may forget what was learned.
    names.sort_by_key(|name| name.ends_with(".state"));
    let (mut values, mut skipped) = (Vec::new(), Vec::new());
    for name in names {
        match value_of(host, router, &name) {
            Ok(value) => values.push((name, value)),
            Err(e) if e.status == REFUSED => skipped.push((name, e.message)),
            Err(e) => return Err(e),
        }
    }
    Ok((ElementState { config, values }, skipped))
}

impl ElementState {
    /// Writes what is different in a router that was just installed.
    pub fn write(&self, host: &Session<'_>, router: &OfRouter, seconds: u64) -> Result<()> {
        let mut changed = Vec::new();
        for (name, value) in &self.values {
            if value_of(host, router, name)? != *value {
                changed.push((checked("writes", &**name)?, value.clone()));
            }
        }
        changed.chunks(BATCH).try_for_each(|writes| {
            let args = Writes {
                uuid: router.uuid.clone(),
                rid: router.rid,
                writes: writes.to_vec(),
                change_id: None,
                has_secrets: true, // They may be among what the guest was given.
                timeout_ms: timeout_ms(seconds)?,
            };
            host.call_for::<verb::WriteHandlers>(&args, seconds)
                .map(drop)
        })
    }
}

fn value_of(host: &Session<'_>, router: &OfRouter, name: &str) -> Result<String> {
    let args = Read {
        uuid: router.uuid.clone(),
        rid: router.rid,
        name: checked("name", name)?,
        param: Param::default(),
        timeout_ms: router.timeout_ms,
    };
    Ok(host.call::<verb::ReadHandler>(&args)?.value)
}
