// SPDX-License-Identifier: Apache-2.0
//! Workers: the forwarding threads of valed, and the ports that each of them has.
use serde::{Deserialize, Serialize};

use crate::{PortId, PortName, SwitchName};

/// Arguments of `port-move`: another worker gets the port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortMove {
    pub switch: SwitchName,
    pub port: PortName,
    pub worker: usize,
}

impl PortMove {
    pub fn id(&self) -> PortId {
        PortId {
            switch: self.switch.clone(),
            port: self.port.clone(),
        }
    }
}

/// A worker and its work since valed started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerInfo {
    pub worker: usize,
    /// Milliseconds of rounds that moved frames.
    pub busy_ms: u64,
    /// Frames that went to other workers.
    #[serde(default)]
    pub handoffs: u64,
    /// As `handoffs`: its name before 0.3, for one more release.
    #[serde(default)]
    pub handed_over: u64,
    /// Frames that found the ring to another worker full.
    pub dropped_full: u64,
    /// Looks at all ports, and those of them that found no frame.
    #[serde(default)]
    pub rounds: u64,
    #[serde(default)]
    pub rounds_empty: u64,
    /// Waits for a notification, and offers of the processor to other threads.
    #[serde(default)]
    pub sleeps: u64,
    #[serde(default)]
    pub yields: u64,
    pub ports: Vec<PortId>,
}

impl WorkerInfo {
    /// Frames that went to other workers, by either name.
    pub fn all_handoffs(&self) -> u64 {
        self.handoffs.max(self.handed_over)
    }
}

/// Answer of `worker-list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workers {
    pub workers: Vec<WorkerInfo>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_earlier_name_of_handoffs_is_read() {
        for name in ["handoffs", "handed_over"] {
            let worker =
                json!({"worker": 0, "busy_ms": 0, name: 7, "dropped_full": 0, "ports": []});
            let worker: WorkerInfo = serde_json::from_value(worker).unwrap();
            assert_eq!(worker.all_handoffs(), 7, "{name}");
        }
    }
}
