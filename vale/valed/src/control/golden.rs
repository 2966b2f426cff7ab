// SPDX-License-Identifier: Apache-2.0
//! Holds the answers to bad requests against `interfaces/golden/valed.jsonl`.
use std::sync::Arc;
use std::thread::JoinHandle;

use control_socket::{Peer, Service};
use serde_json::{Value, json};
use vale_proto::PortAdd;

use super::{Control, Poke, TOOLSTACK};
use crate::device::host_resources::HostResources;
use crate::kept::Kept;
use crate::workers::{self, Waits};

/// A valed with one worker and two ports.
struct Bench {
    control: Control,
    worker: Option<JoinHandle<()>>,
}

impl Bench {
    fn new() -> Self {
        let (workers, forwarder) = workers::make(1, Waits::default()).unwrap();
        let run = move || workers.into_iter().for_each(|mut w| w.run().unwrap());
        let worker = Some(std::thread::spawn(run));
        let control = Control {
            forwarder,
            xen: None,
            resources: HostResources::default(),
            kept: Arc::new(Kept::open(None)),
            far_ends: Poke::default(),
        };
        let bench = Self { control, worker };
        for port in ["g1-0", "a"] {
            let add = json!({"switch": "vale0", "port": port, "kind": "process", "segment": 1,
                "port_security": false});
            bench.add(add);
        }
        bench
    }

    fn add(&self, add: Value) {
        let add: PortAdd = serde_json::from_value(add).unwrap();
        let done = self.control.port_add(&operator(), add, Vec::new());
        assert!(done.is_ok());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.control.forwarder.stop();
        self.worker.take().unwrap().join().unwrap();
    }
}

fn operator() -> Peer {
    peer(&["operator".to_owned()])
}

fn peer(roles: &[String]) -> Peer {
    Peer {
        uid: 7,
        pid: 1,
        roles: roles.to_vec(),
        connection: 1,
    }
}

#[test]
fn requests_get_the_golden_answers() {
    let mut bench = Bench::new();
    let verbs: Vec<_> = Control::verbs().iter().map(|verb| verb.name).collect();
    contract::golden::hold("valed", &verbs, &[TOOLSTACK], |roles, line| {
        let peer = peer(roles);
        let (_, work) = control_socket::prepare::<Control>(&peer, line);
        match work.and_then(|work| work.run(&bench.control, &peer, Vec::new())) {
            Err(error) => Err((error.code, error.message)),
            Ok(_) => {
                // The request may have changed something; a refused one has not.
                bench = Bench::new();
                Ok(())
            }
        }
    });
}
