// SPDX-License-Identifier: Apache-2.0
//! Numbered changes of guests (docs/adr/0071).
//!
//! The ledger has a change on disk before the guest can see it. A guest answers in order, so a
//! change without an answer keeps its nodes in the store, and its verdict is found there later.

use std::sync::MutexGuard;

use clickos_protocol::Marks;
use cosmos_proto::answer::{Applied, Changes, Installed};
use cosmos_proto::{ChangeFence, ChangeId, History, Install, Writes};
use log::warn;

use crate::base::error::{Code, Error, Result};
use crate::control;
use crate::guest::{Guest, State};
use crate::routers;
use crate::site::Site;
use crate::state::ledger::{ChangeNode, LedgerState, PendingChange};

/// Writes handlers, with a number or without one.
pub fn write(site: &Site, args: &Writes) -> Result<Applied> {
    let Some(change_id) = &args.change_id else {
        return routers::write(site, args).map(|()| Applied::default());
    };
    let (rid, has_secrets) = (args.rid.get(), args.has_secrets);
    let guest = site.table.get(&args.uuid)?;
    let router = site.router(&guest, args.rid, args.timeout_ms)?;
    let asked = {
        let _order = lock_changes(site, &guest)?;
        control::begin_write(router, &args.writes, |seq| {
            let place = ChangeNode::Request { rid, seq };
            let change = pending(change_id, place, args.writes.len(), has_secrets);
            begin(site, &guest, change_id, change)
        })?
    };
    let answer = asked
        .wait_response()
        .map_err(|error| error.of_write(has_secrets));
    conclude(site, &guest, change_id, answer).map_err(Error::after_change)
}

/// Installs a router, with a number or without one.
pub fn install(site: &Site, args: &Install) -> Result<Installed> {
    let Some(change_id) = &args.change_id else {
        let generation = routers::install(site, args)?;
        return Ok(installed(generation, Applied::default()));
    };
    let (rid, guest) = (args.rid.get(), site.table.get(&args.uuid)?);
    let router = site.router(&guest, args.rid, args.timeout_ms)?;
    let proposal = {
        let _order = lock_changes(site, &guest)?;
        control::propose(router, &routers::spec_of(args), |generation| {
            let place = ChangeNode::Install { rid, generation };
            begin(site, &guest, change_id, pending(change_id, place, 0, false))
        })?
    };
    let answer = proposal.wait_or_keep();
    let generation = *answer.as_ref().unwrap_or(&0);
    let changes = conclude(site, &guest, change_id, answer.map(|_| Marks::default()))
        .map_err(Error::after_change)?;
    routers::note_config(site, &guest, args)?;
    Ok(installed(generation, changes))
}

/// Ends what may be under way up to a number: the guest takes no change of such a number any
/// more. Returns the verdicts.
pub fn fence(site: &Site, fence: &ChangeFence) -> Result<Changes> {
    let guest = site.table.get(&fence.uuid)?;
    let _order = lock_changes(site, &guest)?;
    site.change_ledger(&guest, |ledger| {
        ledger.newest = ledger.newest.max(fence.number);
        Ok(ledger.changes())
    })
}

/// Waits for the turn of a numbered change. A guest that moves, or has moved, takes none.
fn lock_changes<'a>(site: &Site, guest: &'a Guest) -> Result<MutexGuard<'a, ()>> {
    let order = guest.ledger.lock_changes();
    guest.check_not_migrating()?;
    guest.ledger.state().check_here()?;
    sweep(site, guest)?;
    Ok(order)
}

/// The numbered changes of a guest that was halted to move. None is on its way to it.
///
/// # Errors
/// `busy` if the guest has not answered one of them.
pub fn history(site: &Site, guest: &Guest) -> Result<History> {
    sweep(site, guest)?;
    let ledger = guest.ledger.state();
    match ledger.pending.len() {
        0 => Ok(ledger.history()),
        pending => {
            let message = format!("the guest has not answered {pending} changes; try again");
            Err(Error::new(Code::Busy, message))
        }
    }
}

/// Begins the ledger of a guest that has come from another host.
pub fn take_history(site: &Site, guest: &Guest, history: &History) -> Result<()> {
    site.change_ledger(guest, |ledger| {
        *ledger = LedgerState::arrived(history)?;
        Ok(())
    })
}

fn begin(site: &Site, guest: &Guest, change_id: &ChangeId, change: PendingChange) -> Result<()> {
    site.change_ledger(guest, |ledger| {
        ledger.check(change_id)?;
        ledger.begin(change);
        Ok(())
    })
}

/// Notes a verdict. Without one the change stays pending, unless a sweep found it.
fn conclude(
    site: &Site,
    guest: &Guest,
    change_id: &ChangeId,
    answer: Result<Marks>,
) -> Result<Applied> {
    if let Err(error) = &answer {
        if matches!(error.code, Code::Timeout | Code::Store | Code::DeadGuest) {
            let found = guest.ledger.state().accepted();
            return match found.applied.contains(&change_id.number) {
                true => Ok(found),
                false => Err(routers::with_cause(site, guest, error.clone())),
            };
        }
    }
    close(site, guest, change_id.number, &answer)?;
    // The guest answered earlier changes before this one. A change that another thread begins
    // meanwhile may not be in the store yet.
    let order = guest.ledger.lock_changes();
    sweep(site, guest)?;
    drop(order);
    answer.map(|_| guest.ledger.state().accepted())
}

fn close(site: &Site, guest: &Guest, number: u64, verdict: &Result<Marks>) -> Result<()> {
    let place = site.change_ledger(guest, |ledger| Ok(ledger.close(number, verdict)))?;
    // On disk first: nodes without a place in the ledger are removed at the next start.
    match place {
        Some(place) => control::forget(&*site.store, guest.domain.domid, place),
        None => Ok(()),
    }
}

/// Notes the verdicts that came late. A guest without a link to the store tells none: what is
/// missing there may be done.
pub fn sweep(site: &Site, guest: &Guest) -> Result<()> {
    let pending = guest.ledger.state().pending.clone();
    for change in pending {
        let verdict = match guest.state() {
            State::Running | State::Paused if guest.unreachable().is_some() => None,
            State::Running | State::Paused => {
                control::verdict(&*site.store, guest.domain.domid, change.place)?
            }
            State::Crashed | State::Error => Some(Err(died())),
            _ => None,
        };
        if let Some(verdict) = verdict {
            warn!(
                "guest {}: change {} was answered late",
                guest.domain.uuid, change.number
            );
            close(site, guest, change.number, &verdict)?;
        }
    }
    Ok(())
}

fn pending(
    change_id: &ChangeId,
    place: ChangeNode,
    writes: usize,
    has_secrets: bool,
) -> PendingChange {
    PendingChange {
        number: change_id.number,
        place,
        has_secrets,
        writes,
    }
}

fn died() -> Error {
    Error::new(Code::DeadGuest, "the guest died before it answered")
}

fn installed(generation: u64, changes: Applied) -> Installed {
    Installed {
        generation,
        changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::{destroy, links, migration, relink};
    use crate::spec::Spec;
    use crate::testing::{World, good, of, spec, uuid};
    use cosmos_proto::{MigrateBegin, Passing, Run};

    /// No answer takes as long, in milliseconds.
    const SOON: u64 = 60_000;
    /// For an answer that does not come.
    const BRIEF: u64 = 50;

    fn running(spec: &Spec) -> World {
        let world = World::new();
        world.create(spec).unwrap();
        world
    }

    fn write(world: &World, number: u64, value: &str) -> Result<Applied> {
        write_within(SOON, world, number, value)
    }

    fn write_within(timeout_ms: u64, world: &World, number: u64, value: &str) -> Result<Applied> {
        let args = writes(number, value, false);
        super::write(&world.site, &within(timeout_ms, &args))
    }

    fn writes(number: u64, value: &str, has_secrets: bool) -> Writes {
        let incarnation = None;
        Writes {
            uuid: uuid(1),
            rid: good(0),
            writes: vec![(good("fw.config"), value.to_owned())],
            change_id: Some(ChangeId {
                number,
                incarnation,
            }),
            has_secrets,
            timeout_ms: good(SOON),
        }
    }

    fn within(timeout_ms: u64, args: &Writes) -> Writes {
        Writes {
            timeout_ms: good(timeout_ms),
            ..args.clone()
        }
    }

    fn fence(world: &World, number: u64) -> Changes {
        let uuid = uuid(1);
        super::fence(&world.site, &ChangeFence { uuid, number }).unwrap()
    }

    fn install_within(
        timeout_ms: u64,
        world: &World,
        number: u64,
        config: &str,
    ) -> Result<Installed> {
        let args = Install {
            uuid: uuid(1),
            rid: good(0),
            config: good(config),
            config_name: good("new.click"),
            halted: false,
            change_id: Some(ChangeId {
                number,
                incarnation: None,
            }),
            timeout_ms: good(timeout_ms),
        };
        install(&world.site, &args)
    }

    fn leaving(n: u16) -> MigrateBegin {
        MigrateBegin {
            uuid: uuid(n),
            timeout_ms: good(SOON),
        }
    }

    fn code(result: Result<Applied>) -> &'static str {
        result.err().map_or("taken", |error| error.code.as_str())
    }

    #[test]
    fn a_number_counts_once_and_over_restarts() {
        let mut world = running(&spec(1));
        assert_eq!(write(&world, 5, "allow icmp").unwrap().applied, [5]);
        assert_eq!(code(write(&world, 5, "deny tcp")), "stale");
        assert_eq!(code(write(&world, 6, "bad")), "handler-error");
        world = world.restart();
        assert_eq!(code(write(&world, 6, "deny tcp")), "stale");
        assert_eq!(code(write(&world, 4, "deny tcp")), "stale");
        assert_eq!(world.store.rule(1).unwrap(), "allow icmp");
        let changes = fence(&world, 0);
        assert_eq!((changes.newest, changes.applied), (6, vec![5]));
        assert_eq!(changes.refused[0].message, "fw.config: bad rule");
    }

    #[test]
    fn a_late_answer_of_a_guest_that_has_ended_changes_no_file() {
        let world = running(&spec(1));
        write(&world, 5, "allow icmp").unwrap();
        let old = world.site.table.get(&uuid(1)).unwrap();
        let begin = |number| {
            let change_id = writes(number, "", false).change_id.unwrap();
            let change = pending(&change_id, ChangeNode::Request { rid: 0, seq: 1 }, 1, false);
            begin(&world.site, &old, &change_id, change)
        };
        begin(6).unwrap();
        let again = Spec {
            number: 9,
            replace: true,
            ..spec(1)
        };
        world.create(&again).unwrap();
        let error = close(&world.site, &old, 6, &Ok(Marks::default()));
        assert_eq!(error.unwrap_err().code, Code::DeadGuest);
        let world = world.restart();
        assert_eq!(fence(&world, 0).newest, 9);
        // No file comes back after the end, either.
        let old = world.site.table.get(&uuid(1)).unwrap();
        world.destroy(&uuid(1)).unwrap();
        world.site.set_migrated_away(&old, true).unwrap_err();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn no_answer_and_no_ledger_has_what_a_guest_says_about_a_secret() {
        let mut world = running(&spec(1));
        let hidden = "writes: the guest refused them; \
                      the values have secrets, so its reason is not shown";
        let mut numbered = writes(5, "bad", true);
        let write = |world: &World, args: &Writes, limit| {
            let refused = super::write(&world.site, &within(limit, args)).unwrap_err();
            (refused.code, refused.message)
        };
        let refused = (Code::HandlerError, hidden.to_owned());
        assert_eq!(write(&world, &numbered, SOON), refused);
        let change_id = numbered.change_id.take();
        assert_eq!(write(&world, &numbered, SOON), refused);
        // One that is answered late, to the next cosmosd.
        numbered.change_id = change_id;
        numbered.change_id.as_mut().unwrap().number = 6;
        world.store.hold_answers(true);
        assert_eq!(write(&world, &numbered, BRIEF).0, Code::Timeout);
        world = world.restart();
        world.store.hold_answers(false);
        let changes = fence(&world, 6);
        assert_eq!(changes.refused.len(), 2);
        for refusal in changes.refused {
            assert_eq!(
                (&*refusal.code, &*refusal.message),
                ("handler-error", hidden)
            );
        }
    }

    #[test]
    fn a_fenced_number_is_never_taken() {
        let world = running(&spec(1));
        assert_eq!(fence(&world, 9).newest, 9);
        assert_eq!(code(write(&world, 9, "allow icmp")), "stale");
        assert_eq!(write(&world, 10, "allow icmp").unwrap().applied, [10]);
    }

    #[test]
    fn an_answer_after_the_deadline_counts() {
        let mut world = running(&spec(1));
        world.store.hold_answers(true);
        assert_eq!(
            code(write_within(BRIEF, &world, 5, "allow icmp")),
            "timeout"
        );
        assert_eq!(fence(&world, 5).pending, [5]);
        world = world.restart();
        assert_eq!(fence(&world, 5).pending, [5]);
        world.store.hold_answers(false);
        let changes = fence(&world, 5);
        assert_eq!((changes.pending, changes.applied), (vec![], vec![5]));
        assert_eq!(write(&world, 6, "deny all").unwrap().applied, [5, 6]);
        let keys = world.store.keys();
        assert!(
            !keys.iter().any(|key| key.contains("/request/")),
            "{keys:?}"
        );
    }

    #[test]
    fn a_command_is_marked_over_restarts_and_moves() {
        let mut world = running(&spec(1));
        let mut command = writes(5, "", false);
        command.writes[0].0 = good("c.reset");
        let marked = [Passing {
            number: 5,
            commands: vec![0],
            edits: vec![],
        }];
        world.store.hold_answers(true);
        let late = super::write(&world.site, &within(BRIEF, &command));
        assert_eq!(code(late), "timeout");
        world = world.restart();
        world.store.hold_answers(false);
        assert_eq!(fence(&world, 5).passing, marked);
        world = world.restart();
        assert_eq!(write(&world, 6, "deny all").unwrap().passing, marked);
        let guest = world.site.table.get(&uuid(1)).unwrap();
        let history = history(&world.site, &guest).unwrap();
        assert_eq!(
            LedgerState::arrived(&history).unwrap().accepted().passing,
            marked
        );
        // A change whose number is forgotten keeps no marks.
        (7..30).for_each(|number| drop(write(&world, number, "deny all").unwrap()));
        assert_eq!(fence(&world, 30).passing, []);
    }

    #[test]
    fn a_change_that_never_came_to_the_guest_is_dropped() {
        let world = running(&spec(1));
        world.faults.fail("store.request");
        assert_eq!(code(write(&world, 5, "allow icmp")), "internal");
        world.faults.mend();
        let changes = fence(&world, 5);
        assert_eq!((changes.pending, changes.applied), (vec![], vec![]));
        assert_eq!(world.store.rule(1).unwrap(), "deny all");
    }

    /// The guest may have done it, so there is no verdict before it tells.
    #[test]
    fn a_store_that_began_anew_leaves_each_change_with_one_verdict() {
        for (number, told, verdict) in [(5, None, "refused"), (6, Some(".200 "), "applied")] {
            let world = running(&spec(1));
            world.store.hold_answers(true);
            let asked = write_within(BRIEF, &world, number, "allow icmp");
            assert_eq!(code(asked), "timeout");
            let keys = world.store.keys();
            let asked = keys.iter().find(|key| key.contains("/request/"));
            let answer = asked.unwrap().replace("/request/", "/response/");
            world.store.clear();
            relink::note_new_store(&world.site);
            relink::relink_all(&world.site);
            assert_eq!(fence(&world, number).pending, [number]);
            assert_eq!(code(write(&world, 9, "deny tcp")), "dead-guest");
            if let Some(told) = told {
                world.store.put(&answer, told);
            }
            relink::relink_all(&world.site);
            let changes = fence(&world, number);
            assert!(changes.pending.is_empty(), "{changes:?}");
            let is_applied = changes.applied == [number];
            assert_eq!(is_applied, verdict == "applied", "{changes:?}");
            assert_eq!(changes.refused.len(), usize::from(!is_applied));
        }
    }

    #[test]
    fn a_guest_that_dies_without_a_link_answers_nothing_more() {
        let world = running(&spec(1));
        world.store.hold_answers(true);
        let asked = write_within(BRIEF, &world, 5, "allow icmp");
        assert_eq!(code(asked), "timeout");
        relink::lose_store(&world.site, "it is gone");
        assert_eq!(fence(&world, 5).pending, [5]);
        let guest = world.site.table.get(&uuid(1)).unwrap();
        destroy::mark_crashed(&world.site, &guest, "killed");
        let changes = fence(&world, 5);
        assert_eq!((changes.pending, changes.refused.len()), (vec![], 1));
    }

    #[test]
    fn a_configuration_that_a_lost_store_had_is_not_waited_for() {
        let world = running(&spec(1));
        let asked = install_within(BRIEF, &world, 5, "Silent");
        assert_eq!(asked.unwrap_err().code, Code::Timeout);
        assert_eq!(fence(&world, 5).pending, [5]);
        world.store.clear();
        relink::note_new_store(&world.site);
        relink::relink_all(&world.site);
        relink::relink_all(&world.site);
        let changes = fence(&world, 5);
        assert_eq!((changes.pending, changes.refused.len()), (vec![], 1));
    }

    #[test]
    fn a_new_start_takes_no_change_for_the_old_one() {
        let world = running(&spec(1));
        let first = write(&world, 5, "allow icmp").unwrap().incarnation;
        world.destroy(&uuid(1)).unwrap();
        let mut again = spec(1);
        again.number = 7;
        world.create(&again).unwrap();
        assert_eq!(code(write(&world, 7, "allow icmp")), "stale");
        let mut late = writes(8, "allow icmp", false);
        late.change_id.as_mut().unwrap().incarnation = first;
        assert_eq!(code(super::write(&world.site, &late)), "stale");
        assert_eq!(world.store.rule(2).unwrap(), "deny all");
    }

    #[test]
    fn a_guest_that_leaves_takes_no_numbers() {
        const MOVER: u64 = 7;
        let world = running(&spec(1));
        write(&world, 5, "allow icmp").unwrap();
        let begin = |world: &World| migration::begin(&world.site, &leaving(1), MOVER);
        let fenced = ChangeFence {
            uuid: uuid(1),
            number: 9,
        };
        let changes = begin(&world).unwrap().changes;
        assert_eq!((changes.newest, changes.applied), (5, vec![5]));
        assert_eq!(code(write(&world, 6, "deny all")), "busy");
        let refused = super::fence(&world.site, &fenced).unwrap_err();
        assert_eq!(refused.code, Code::Busy);
        migration::commit(&world.site, &of(1), MOVER).unwrap();
        migration::forget_client(&world.site, MOVER);
        let world = world.restart();
        assert_eq!(code(write(&world, 6, "deny all")), "stale");
        assert_eq!(begin(&world).unwrap_err().code, Code::Stale);
        // A person starts it here.
        let run = Run {
            uuid: uuid(1),
            rid: good(0),
            run: true,
            timeout_ms: good(SOON),
        };
        routers::run(&world.site, &run).unwrap();
        write(&world, 6, "deny all").unwrap();
    }

    #[test]
    fn a_guest_with_a_change_under_way_or_held_stays() {
        let world = running(&spec(1));
        let begin = |world: &World| migration::begin(&world.site, &leaving(1), 7);
        world.store.hold_answers(true);
        assert_eq!(
            code(write_within(BRIEF, &world, 5, "allow icmp")),
            "timeout"
        );
        let stays = begin(&world).unwrap_err();
        assert_eq!(
            stays.message,
            "the guest has not answered 1 changes; try again"
        );
        world.store.hold_answers(false);
        assert_eq!(begin(&world).unwrap().changes.applied, [5]);
        let mut held = spec(2);
        held.hold = true;
        world.create(&held).unwrap();
        let stays = migration::begin(&world.site, &leaving(2), 7);
        assert_eq!(stays.unwrap_err().code, Code::Busy);
    }

    #[test]
    fn a_held_guest_forwards_after_its_release() {
        let mut held = spec(1);
        held.hold = true;
        let world = running(&held).restart();
        assert!(world.switch.none_up());
        assert!(world.info(&uuid(1)).unwrap().held);
        links::release(&world.site, &of(1)).unwrap();
        assert!(world.switch.all_up());
        let world = world.restart();
        assert!(world.switch.all_up());
    }

    #[test]
    fn a_numbered_configuration_counts() {
        let world = running(&spec(1));
        let install = |number, config| install_within(SOON, &world, number, config);
        assert_eq!(install(5, "Idle;").unwrap().changes.applied, [5]);
        assert_eq!(install(5, "Idle;").unwrap_err().code, Code::Stale);
        assert_eq!(install(6, "Bad").unwrap_err().code, Code::BadConfig);
        let silent = install_within(BRIEF, &world, 7, "Silent");
        assert_eq!(silent.unwrap_err().code, Code::Timeout);
        assert_eq!(fence(&world, 7).pending, [7]);
        let state = "/local/domain/1/data/clickos/0/state";
        let generation = "/local/domain/1/data/clickos/0/generation";
        let generation = world.store.value(generation).unwrap();
        world.store.put(state, &format!("Running {generation}"));
        assert_eq!(fence(&world, 7).applied, [5, 7]);
    }
}
