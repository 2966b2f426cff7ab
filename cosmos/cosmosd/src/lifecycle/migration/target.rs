// SPDX-License-Identifier: Apache-2.0
//! The target's side of a migration (docs/adr/0070-live-migration.md). cosmosd destroys the guest if the
//! client goes away before it ends the migration.

use cosmos_proto::answer::Created;
use cosmos_proto::{MigrateFinish, OfGuest};
use log::{info, warn};

use super::source;
use crate::base::error::{Code, Error, Result};
use crate::changes;
use crate::control;
use crate::guest::Guest;
use crate::lifecycle::{Maker, destroy};
use crate::site::Site;
use crate::spec::Spec;

/// Creates a guest that a client brings from another host: it is undone when the connection
/// or this daemon ends before the guest has [arrived](finish).
pub fn receive(maker: &Maker, spec: &Spec, connection: u64) -> Result<Created> {
    if spec.replace {
        let message = "replace: a guest that moves takes the place of no other";
        return Err(Error::bad_request(message));
    }
    if spec.kernel.is_some() {
        let message = "kernel: only a guest of Click moves while it runs";
        return Err(Error::new(Code::Unsupported, message));
    }
    maker.make(spec, |guest| guest.migrate_target.begin(connection))
}

/// The guest is whole: it is this host's, and these routers run, whatever becomes of the
/// client or of this daemon.
pub fn finish(site: &Site, arrived: &MigrateFinish, connection: u64) -> Result<()> {
    let routers = &arrived.routers;
    let guest = site.table.get(&arrived.uuid)?;
    guest.check_answers()?;
    if !guest.migrate_target.is_by(connection) {
        let message = "the guest is not being brought here by this client";
        return Err(Error::bad_request(message));
    }
    routers
        .iter()
        .try_for_each(|rid| control::check_rid(*rid))?;
    changes::take_history(site, &guest, &arrived.changes)?;
    keep_arrived(site, &guest, connection, routers)?;
    info!("guest {}: migration finished", arrived.uuid);
    source::resume(site, &guest, connection, arrived.timeout_ms.duration())
}

/// The one step that decides where the guest is: a restarted daemon lets run what is noted
/// from here on, and undoes the guest before.
fn keep_arrived(site: &Site, guest: &Guest, connection: u64, routers: &[u8]) -> Result<()> {
    guest.migrate_source.hold(connection, routers);
    guest.migrate_target.end();
    site.save_record(guest).inspect_err(|_| {
        guest.migrate_target.begin(connection);
        guest.migrate_source.end();
    })
}

/// Undoes a guest whose client has gone.
pub fn abort_incoming(site: &Site, guest: &Guest) {
    let uuid = &guest.domain.uuid;
    let of = OfGuest { uuid: uuid.clone() };
    info!("guest {uuid}: migration client disconnected, destroying the copy");
    destroy::destroy(site, &of).unwrap_or_else(|e| warn!("guest {uuid}: {e}"));
}

#[cfg(test)]
mod tests {
    use crate::changes;
    use crate::lifecycle::{migration, pause};
    use cosmos_proto::{ChangeId, History, MigrateBegin, MigrateFinish, Run, Writes};

    use super::{finish, receive};
    use crate::base::error::Code;
    use crate::guest::FORMER;
    use crate::routers;
    use crate::testing::{World, good, linux, of, spec, uuid};

    const MOVER: u64 = 7;

    /// A world to which a client has brought a halted guest.
    fn brought() -> World {
        let world = World::new();
        receive(&world.maker, &spec(1), MOVER).unwrap();
        let run = Run {
            uuid: uuid(1),
            rid: good(0),
            run: false,
            timeout_ms: good(60_000),
        };
        routers::run(&world.site, &run).unwrap();
        world
    }

    #[test]
    fn a_guest_that_moves_ends_no_other() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let mut again = spec(1);
        for (replace, code) in [(true, Code::BadRequest), (false, Code::Exists)] {
            again.replace = replace;
            let error = receive(&world.maker, &again, MOVER).err().unwrap();
            assert_eq!(error.code, code);
        }
        assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
    }

    #[test]
    fn a_guest_whose_kernel_is_not_clicks_does_not_move() {
        let world = World::new();
        let arriving = receive(&world.maker, &linux(1), MOVER);
        assert_eq!(arriving.err().unwrap().code, Code::Unsupported);
        world.create(&linux(1)).unwrap();
        let leaving = MigrateBegin {
            uuid: uuid(1),
            timeout_ms: good(60_000),
        };
        let leaving = migration::begin(&world.site, &leaving, MOVER);
        assert_eq!(leaving.err().unwrap().code, Code::Unsupported);
        assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
    }

    fn arrived(newest: u64) -> MigrateFinish {
        MigrateFinish {
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
            timeout_ms: good(60_000),
        };
        let written = changes::write(&world.site, &args);
        written.map(|taken| taken.applied).map_err(|e| e.code)
    }

    fn state(world: &World) -> String {
        routers::list(&world.site, &of(1)).unwrap().routers[0]
            .state
            .clone()
    }

    #[test]
    fn what_has_arrived_runs_after_a_crash() {
        let world = brought();
        world.faults.fail("store.spec");
        let arrived = finish(&world.site, &arrived(7), MOVER);
        assert!(arrived.unwrap_err().message.contains("injected"));
        world.faults.mend();
        let world = world.restart();
        assert_eq!(state(&world), "Halted");
        migration::forget_client(&world.site, FORMER);
        migration::forget_client(&world.site, MOVER);
        assert_eq!(state(&world), "Running");
    }

    #[test]
    fn numbers_go_on_where_the_guest_arrives() {
        let world = brought();
        assert_eq!(write(&world, 8), Err(Code::Busy));
        let bad = arrived(1 << 53);
        let bad = finish(&world.site, &bad, MOVER);
        assert_eq!(bad.unwrap_err().code, Code::BadRequest);
        finish(&world.site, &arrived(7), MOVER).unwrap();
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
        let by_another = finish(&world.site, &arrived(7), MOVER + 1);
        assert_eq!(by_another.unwrap_err().code, Code::BadRequest);
        migration::forget_client(&world.site, MOVER + 1);
        assert_eq!(world.info(&uuid(1)).unwrap().state, "arriving");
        assert_eq!(
            pause::pause(&world.site, &of(1)).unwrap_err().code,
            Code::Busy
        );
        migration::forget_client(&world.site, MOVER);
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
