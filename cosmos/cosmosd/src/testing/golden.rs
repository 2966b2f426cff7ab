// SPDX-License-Identifier: Apache-2.0
//! Holds the answers to bad requests against `interfaces/golden/cosmosd.jsonl`.
use control_socket::{Peer, Service};

use crate::service::Daemon;
use crate::testing::World;

#[test]
fn requests_get_the_golden_answers() {
    let mut bench = World::running();
    let verbs: Vec<_> = Daemon::verbs().iter().map(|verb| verb.name).collect();
    contract::golden::hold("cosmosd", &verbs, &["agent", "nova"], |roles, line| {
        let peer = Peer {
            uid: 7,
            pid: 1,
            roles: roles.to_vec(),
            connection: 1,
        };
        let (_, work) = control_socket::prepare::<Daemon>(&peer, line);
        let done = work.and_then(|work| work.run(&bench.daemon, &peer, Vec::new()));
        match done {
            Err(error) => Err((error.code, error.message)),
            Ok(_) => {
                // The request may have changed something; a refused one has not.
                bench = World::running();
                Ok(())
            }
        }
    });
}
