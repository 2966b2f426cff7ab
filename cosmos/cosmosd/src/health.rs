// SPDX-License-Identifier: Apache-2.0
//! What guests of this host need, daemons and room for files, and why it is missing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use control_socket::EventHub;
use cosmos_proto::answer::Fault;
use log::{error, info};
use serde_json::json;

use crate::state::room;

/// See the module.
pub struct Health {
    events: Arc<EventHub>,
    faults: Mutex<BTreeMap<&'static str, String>>,
}

impl Health {
    /// All parts are well until a report says otherwise.
    pub fn new(events: Arc<EventHub>) -> Self {
        Self {
            events,
            faults: Mutex::default(),
        }
    }

    /// Notes how a part is, and tells subscribers when a fault came or went.
    pub fn report(&self, part: &'static str, fault: Option<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &fault {
            Some(reason) => faults.insert(part, reason.clone()),
            None => faults.remove(part),
        };
        if before.is_some() == fault.is_some() {
            return;
        }
        match (fault, part) {
            (Some(reason), room::PART) => {
                error!("no guest can start or change: {reason}; make room there")
            }
            (None, room::PART) => info!("{part} takes files again"),
            (Some(reason), _) => error!("{part} does not answer: {reason}; start it again"),
            (None, _) => info!("{part} answers again"),
        }
        self.publish(&faults);
    }

    /// Notifies subscribers to poll the host again: a part was unavailable for a moment.
    pub fn announce(&self) {
        self.publish(&self.faults.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn publish(&self, faults: &BTreeMap<&'static str, String>) {
        self.events.publish("host", json!({"faults": list(faults)}));
    }

    /// The faults now.
    pub fn faults(&self) -> Vec<Fault> {
        list(&self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn list(faults: &BTreeMap<&'static str, String>) -> Vec<Fault> {
    let faults = faults.iter();
    faults
        .map(|(part, reason)| Fault {
            part: (*part).to_owned(),
            reason: reason.clone(),
        })
        .collect()
}
