// SPDX-License-Identifier: Apache-2.0
//! The target's side of a migration (docs/adr/0070-live-migration.md). cosmosd destroys the guest if the
//! client goes away before it ends the migration.

use std::time::Duration;

use cosmos_proto::MoveTarget;
use log::{info, warn};

use crate::control;
use crate::error::{Error, Result};
use crate::guest::Guest;
use crate::lifecycle::Created;
use crate::spec::Spec;
use crate::toolstack::Toolstack;

impl Toolstack {
    /// Creates a guest that a client brings from another host: it is undone when the connection
    /// or this daemon ends before the guest has [arrived](Self::migrate_target).
    pub fn receive(&self, spec: &Spec, connection: u64) -> Result<Created> {
        if spec.replace {
            let message = "replace: a guest that moves takes the place of no other";
            return Err(Error::bad_request(message));
        }
        self.make(spec, |guest| guest.migrate_target.begin(connection))
    }

    /// The guest is whole: it is this host's, and these routers run, whatever becomes of the
    /// client or of this daemon.
    pub fn migrate_target(
        &self,
        connection: u64,
        arrived: &MoveTarget,
        timeout: Duration,
    ) -> Result<()> {
        let routers = &arrived.routers;
        let guest = self.table.get(&arrived.uuid)?;
        guest.check_answers()?;
        if !guest.migrate_target.is_by(connection) {
            let message = "the guest is not being brought here by this client";
            return Err(Error::bad_request(message));
        }
        routers
            .iter()
            .try_for_each(|rid| control::check_rid(*rid))?;
        self.take_history(&guest, &arrived.changes)?;
        self.keep_arrived(&guest, connection, routers)?;
        info!("guest {} has arrived", arrived.uuid);
        self.stay(&guest, connection, timeout)
    }

    /// The one step that decides where the guest is: a restarted daemon lets run what is noted
    /// from here on, and undoes the guest before.
    fn keep_arrived(&self, guest: &Guest, connection: u64, routers: &[u8]) -> Result<()> {
        guest.migrate_source.hold(connection, routers);
        guest.migrate_target.end();
        self.keep(guest).inspect_err(|_| {
            guest.migrate_target.begin(connection);
            guest.migrate_source.end();
        })
    }

    /// Undoes a guest whose client has gone.
    pub fn turn_away(&self, guest: &Guest) {
        let uuid = &guest.domain.uuid;
        info!("guest {uuid}: its mover went away; cosmosd destroys it");
        self.destroy(uuid)
            .unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cosmos_proto::{ChangeId, History, MoveTarget, Writes};

    use crate::error::Code;
    use crate::guest::FORMER;
    use crate::testing::{World, good, spec, uuid};

    const MOVER: u64 = 7;
    const SOON: Duration = Duration::from_secs(60);

    /// A world to which a client has brought a halted guest.
    fn brought() -> World {
        let world = World::new();
        world.toolstack.receive(&spec(1), MOVER).unwrap();
        world.toolstack.run(&uuid(1), 0, false, SOON).unwrap();
        world
    }

    #[test]
    fn a_guest_that_moves_ends_no_other() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let mut again = spec(1);
        for (replace, code) in [(true, Code::BadRequest), (false, Code::Exists)] {
            again.replace = replace;
            let error = world.toolstack.receive(&again, MOVER).err().unwrap();
            assert_eq!(error.code, code);
        }
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "running");
    }

    fn arrived(newest: u64) -> MoveTarget {
        MoveTarget {
            uuid: uuid(1),
            routers: vec![0],
            changes: History {
                incarnation: uuid(9),
                newest,
                applied: vec![5, 6],
                passing: vec![],
            },
            timeout_ms: good(60_000),
        }
    }

    /// Writes a rule; returns the error's code.
    fn write(world: &World, number: u64) -> Result<Vec<u64>, Code> {
        let args = Writes {
            uuid: uuid(1),
            rid: good(0),
            writes: vec![(good("fw.config"), "allow icmp".to_owned())],
            change_id: Some(ChangeId {
                number,
                incarnation: Some(uuid(9)),
            }),
            has_secrets: false,
            timeout_ms: good(1), // The caller has another one.
        };
        let written = world.toolstack.write_change(&args, SOON);
        written.map(|taken| taken.applied).map_err(|e| e.code)
    }

    fn state(world: &World) -> String {
        world.toolstack.routers(&uuid(1), SOON).unwrap()[0]
            .state
            .clone()
    }

    #[test]
    fn what_has_arrived_runs_after_a_crash() {
        let world = brought();
        world.faults.fail("store.spec");
        let arrived = world.toolstack.migrate_target(MOVER, &arrived(7), SOON);
        assert!(arrived.unwrap_err().message.contains("injected"));
        world.faults.mend();
        let world = world.restart();
        assert_eq!(state(&world), "Halted");
        world.toolstack.forget_client(FORMER);
        world.toolstack.forget_client(MOVER);
        assert_eq!(state(&world), "Running");
    }

    #[test]
    fn numbers_go_on_where_the_guest_arrives() {
        let world = brought();
        assert_eq!(write(&world, 8), Err(Code::Busy));
        let bad = arrived(1 << 53);
        let bad = world.toolstack.migrate_target(MOVER, &bad, SOON);
        assert_eq!(bad.unwrap_err().code, Code::BadRequest);
        world
            .toolstack
            .migrate_target(MOVER, &arrived(7), SOON)
            .unwrap();
        let world = world.restart();
        assert_eq!(write(&world, 7), Err(Code::Stale));
        assert_eq!(write(&world, 8), Ok(vec![5, 6, 8]));
    }

    #[test]
    fn what_has_not_is_undone_after_a_crash() {
        let world = brought().restart();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn nobody_but_its_client_lets_it_arrive_and_others_go_without_it() {
        let world = brought();
        let by_another = world.toolstack.migrate_target(MOVER + 1, &arrived(7), SOON);
        assert_eq!(by_another.unwrap_err().code, Code::BadRequest);
        world.toolstack.forget_client(MOVER + 1);
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "arriving");
        assert_eq!(
            world.toolstack.pause(&uuid(1)).unwrap_err().code,
            Code::Busy
        );
        world.toolstack.forget_client(MOVER);
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
