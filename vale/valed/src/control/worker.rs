// SPDX-License-Identifier: Apache-2.0
//! The verbs about workers.
use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{PortId, PortMove, WorkerInfo, Workers};

use super::{Control, NoArgs, no_such_port, stopped};
use crate::workers::MoveFailure;

impl Control {
    pub(super) fn port_move(&self, peer: &Peer, to: PortMove) -> Result<Done, ApiError> {
        let (id, worker) = (to.id(), to.worker);
        let PortId { switch, port } = &id;
        match self.forwarder.move_port(&id, worker).ok_or_else(stopped)? {
            Ok(()) => {
                info!(
                    "{switch}:{port}: moved to worker {worker} by uid {}",
                    peer.uid
                );
                Ok(Done {})
            }
            Err(MoveFailure::NoSuchPort) => Err(no_such_port(&id)),
            Err(MoveFailure::NoSuchWorker) => {
                let last = self.forwarder.workers() - 1;
                let text = format!("port-move: worker: {worker} is outside 0..={last}");
                Err(ApiError::bad_request(text))
            }
            Err(MoveFailure::Full) => {
                let text = format!("{switch}:{port}: its ring is full and frames wait for it");
                Err(ApiError::new("busy", text))
            }
        }
    }

    pub(super) fn worker_list(&self, _: &Peer, _: NoArgs) -> Result<Workers, ApiError> {
        let loads = self.forwarder.loads().ok_or_else(stopped)?;
        let placed = self.forwarder.placed();
        let info = |load: crate::forwarder::Load| {
            let here = placed.iter().filter(|(_, worker)| *worker == load.worker);
            WorkerInfo {
                worker: load.worker,
                busy_ms: load.busy / 1_000_000,
                handoffs: load.handoffs,
                handed_over: load.handoffs,
                dropped_full: load.lost,
                rounds: load.rounds,
                rounds_empty: load.rounds_empty,
                sleeps: load.sleeps,
                yields: load.yields,
                ports: here.map(|(id, _)| id.clone()).collect(),
            }
        };
        let workers = loads.into_iter().map(info).collect();
        Ok(Workers { workers })
    }
}
