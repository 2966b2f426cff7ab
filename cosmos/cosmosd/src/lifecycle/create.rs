// SPDX-License-Identifier: Apache-2.0
//! Creating a guest: listed steps, undone in reverse order when one fails.

use std::sync::Arc;
use std::time::Instant;

use cosmos_proto::answer::Created;
use log::{error, info};

use super::{Maker, beside, destroy, links, preconnected, relink, replace};
use crate::base::error::{Code, Error, Result};
use crate::base::steps::Steps;
use crate::base::text::escape;
use crate::control::{self, RouterSpec};
use crate::guest::record::Phase;
use crate::guest::{CreatedParts, Guest, Shape, in_switch};
use crate::host::{Domain, nics};
use crate::site::Site;
use crate::spec::{Spec, check_spec};
use crate::state::ledger::LedgerState;
use crate::store::Change;
use crate::switch::PortFds;

/// Bytes of the console of a guest that died at its start, for the error message.
const LAST_WORDS: usize = 400;

impl Maker {
    /// Creates a guest. At return its router runs, every write is applied and its ports are up;
    /// after an error no part remains.
    pub fn create(&self, spec: &Spec) -> Result<Created> {
        self.make(spec, |_| {})
    }

    /// Creates a guest of which something is noted before it is on disk.
    pub fn make(&self, spec: &Spec, note: impl FnOnce(&Guest)) -> Result<Created> {
        check_spec(spec)?;
        check_vcpus(&self.site, spec)?;
        let deadline = Instant::now() + spec.timeout_ms.duration();
        let _creating = self.pool.note_creation();
        let (guest, pooled) = replace::admit_or_replace(&self.site, spec)?;
        self.make_admitted(spec, (&guest, pooled.as_deref()), deadline, note)
    }

    /// Makes a guest that is in the table, perhaps of one of the pool.
    fn make_admitted(
        &self,
        spec: &Spec,
        (guest, pooled): (&Arc<Guest>, Option<&Guest>),
        deadline: Instant,
        note: impl FnOnce(&Guest),
    ) -> Result<Created> {
        let _owner = guest.lock_lifecycle();
        check_admitted(&self.site, guest, pooled)?;
        note(guest);
        let (mut made, mut steps) = (CreatedParts::default(), Steps::begin());
        let result = open_ledger(&self.site, guest, spec)
            .and_then(|()| self.build(guest, pooled, &mut made, deadline, &mut steps))
            .and_then(|told| start(&self.site, guest, spec, told, deadline, &mut steps))
            .and_then(|()| bring_up(&self.site, guest, spec, deadline, &mut steps));
        match result {
            Ok(()) => {
                relink::publish(&self.site, guest);
                if spec.kernel.is_none() && spec.vcpus.get() == 1 {
                    self.pool.note_shape(Shape::for_spec(spec));
                }
                let (domid, ms) = (guest.domain.domid, steps.total_ms());
                let kind = pooled.map_or("new", |_| "pooled");
                info!(
                    "guest {} created as {kind} domain {domid} in {ms:.1} ms",
                    spec.uuid
                );
                let incarnation = guest.ledger.state().incarnation.clone();
                Ok(Created {
                    domid,
                    incarnation,
                    steps_ms: steps.answer(),
                })
            }
            Err(cause) => Err(abandon(&self.site, guest, &made, cause)),
        }
    }

    /// Makes the domain of a guest, or gives it one of the pool; returns what the store is to be
    /// told before it runs.
    fn build(
        &self,
        guest: &Arc<Guest>,
        pooled: Option<&Guest>,
        made: &mut CreatedParts,
        deadline: Instant,
        steps: &mut Steps,
    ) -> Result<Vec<Change>> {
        match pooled {
            Some(pooled) => claim(&self.site, guest, pooled, made, steps),
            None => {
                self.site.host.check(&guest.domain)?;
                check_unused(&self.site, &guest.domain)?;
                self.spawn(guest, made, deadline, steps)
                    .map(|()| Vec::new())
            }
        }
    }

    /// Makes a domain.
    pub fn spawn(
        &self,
        guest: &Arc<Guest>,
        made: &mut CreatedParts,
        deadline: Instant,
        steps: &mut Steps,
    ) -> Result<()> {
        let (site, domain) = (&*self.site, &guest.domain);
        let _turn = self.build_queue.enter(deadline)?;
        guest.signals.check()?;
        steps.end("turn");
        site.disk.records.save(&guest.record(Phase::Partial))?;
        site.watch(guest);
        steps.end("record");
        made.prepared = true; // It has several parts: undone as far as they are there.
        site.host.prepare(domain)?;
        let fds = add_ports(site, domain, made)?;
        preconnected::add_preconnected(site, domain)?;
        steps.end("switch port");
        made.spawned = true; // So has this.
        let instance = site.host.spawn(domain, fds, steps)?;
        preconnected::hide_nics(site, domain)?;
        // On disk before the guest runs: a cosmosd that is killed here finds it again.
        guest.set_instance(instance);
        site.disk.records.save(&guest.record(Phase::Partial))?;
        if domain.kernel.is_none() {
            control::give_seed(&*site.store, domain.domid)?;
        }
        steps.end("record");
        Ok(())
    }
}

fn check_vcpus(site: &Site, spec: &Spec) -> Result<()> {
    let (asked, most) = (spec.vcpus.get(), site.host.max_vcpus());
    if asked <= most {
        return Ok(());
    }
    let message = format!("vcpus: a guest of this host kind has at most {most}, got {asked}");
    Err(Error::new(Code::Unsupported, message))
}

/// Another request may have ended the guest, all that is its, before its maker owned it.
fn check_admitted(site: &Site, guest: &Arc<Guest>, pooled: Option<&Guest>) -> Result<()> {
    if site.table.is_current(guest) {
        return Ok(());
    }
    if let Some(pooled) = pooled {
        site.disk.records.remove(&pooled.domain.uuid)?;
    }
    guest.signals.check()?;
    let message = format!("guest {} was ended before it was made", guest.domain.uuid);
    Err(Error::new(Code::DeadGuest, message))
}

fn open_ledger(site: &Site, guest: &Guest, spec: &Spec) -> Result<()> {
    let mut ledger = guest.ledger.state();
    *ledger = LedgerState::of(spec)?;
    site.disk.ledgers.save(&spec.uuid, &ledger)
}

/// Turns a paused domain of the pool into this guest's.
fn claim(
    site: &Site,
    guest: &Arc<Guest>,
    pooled: &Guest,
    made: &mut CreatedParts,
    steps: &mut Steps,
) -> Result<Vec<Change>> {
    let domain = &guest.domain;
    (made.prepared, made.spawned) = (true, true);
    // In this order: a cosmosd that is killed in between finds it as this guest's.
    site.disk.records.save(&guest.record(Phase::Partial))?;
    site.disk.records.remove(&pooled.domain.uuid)?;
    site.watch(guest);
    pooled.signals.check()?;
    steps.end("record");
    check_unused(site, domain)?;
    add_ports(site, domain, made)?;
    preconnected::remove_surplus(site, domain)?;
    steps.end("switch port");
    let names = site.host.names(domain, domain.uuid.as_str());
    let mut told = preconnected::addresses(domain);
    match domain.nics.is_empty() {
        true => told.extend(names),
        // Hotplug scripts look for policies by the name.
        false => site.store.apply(&names)?,
    }
    site.host.claim(domain)?;
    nics::rehome(domain, site.host.vif_script(), &*site.store)?;
    steps.end("devices");
    Ok(told)
}

pub fn add_ports(site: &Site, domain: &Domain, made: &mut CreatedParts) -> Result<Vec<PortFds>> {
    let mut fds = Vec::new();
    for vif in in_switch(&domain.uuid, &domain.vifs) {
        let added = site.switch.add(domain.domid, &vif);
        let may_exist = |e: &Error| e.code == Code::Switch;
        if added.as_ref().err().is_none_or(may_exist) {
            made.ports.push(vif);
        }
        fds.extend(added?);
    }
    Ok(fds)
}

/// Lets a domain run, with its configuration, which is there before: its first look finds it. A
/// kernel that is not Click's has none.
fn start(
    site: &Site,
    guest: &Guest,
    spec: &Spec,
    told: Vec<Change>,
    deadline: Instant,
    steps: &mut Steps,
) -> Result<()> {
    if spec.kernel.is_some() {
        site.host.start(guest.domain.domid)?;
        steps.end("start");
        return Ok(());
    }
    let router = RouterSpec {
        config: &spec.config,
        config_name: &spec.config_name,
        halted: false,
    };
    let proposal = control::propose_first(site.router_of(guest, 0, deadline), told, &router)?;
    steps.end("configuration");
    site.host.start(guest.domain.domid)?;
    steps.end("start");
    proposal.wait_response()?;
    steps.end("configuration");
    Ok(())
}

/// From a router that runs to a guest that forwards.
fn bring_up(
    site: &Site,
    guest: &Guest,
    spec: &Spec,
    deadline: Instant,
    steps: &mut Steps,
) -> Result<()> {
    control::write(site.router_of(guest, 0, deadline), &spec.writes)
        .map_err(|error| error.of_write(spec.has_secrets))?;
    steps.end("configuration");
    links::set_links(site, guest)?;
    steps.end("switch port");
    guest.signals.check()?;
    site.disk.records.save(&guest.record(Phase::Complete))?;
    steps.end("record");
    Ok(())
}

/// Refuses to make a domain that another one, or a port, is in the way of.
pub fn check_unused(site: &Site, domain: &Domain) -> Result<()> {
    beside::check_strangers(site, domain)?;
    links::check_free(site, &in_switch(&domain.uuid, &domain.vifs), &[])
}

/// Undoes what was made; returns the answer for the client.
pub fn abandon(site: &Site, guest: &Guest, made: &CreatedParts, cause: Error) -> Error {
    let uuid = &guest.domain.uuid;
    let cause = with_last_words(site, guest, made, cause);
    let words = escape(cause.message.as_bytes()).replace('\n', "; ");
    info!("guest {uuid} not created: {words}");
    match destroy::remove(site, guest, made) {
        Ok(()) => cause,
        Err(left) => {
            error!("guest {uuid}: undoing its creation failed: {left}; cosmosd tries again");
            let message = format!("{}; undoing it failed: {}", cause.message, left.message);
            Error::new(cause.code, message)
        }
    }
}

/// Adds the last words of a guest that died at its start; the undoing removes them.
fn with_last_words(site: &Site, guest: &Guest, made: &CreatedParts, cause: Error) -> Error {
    if !made.spawned || cause.code != Code::DeadGuest {
        return cause;
    }
    let panic = control::panic_message(&*site.store, guest.domain.domid);
    let console = || site.host.console(&guest.domain, LAST_WORDS).ok();
    let words = panic
        .or_else(|| console().map(|tail| escape(&tail)))
        .unwrap_or_default();
    match words.trim() {
        "" => cause,
        words => Error::new(cause.code, format!("{}: {words}", cause.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::testing::{World, good, linux, spec, uuid};

    const STEPS: [&str; 11] = [
        "host.check",
        "switch.existing",
        "host.prepare",
        "switch.add vale0:g1-0",
        "switch.add vale0:g1-1",
        "host.spawn",
        "store.spec",
        "host.start",
        "store.request",
        "switch.set_link vale0:g1-0",
        "switch.set_link vale0:g1-1",
    ];

    #[test]
    fn a_created_guest_forwards_with_its_writes() {
        let world = World::new();
        assert_eq!(world.create(&spec(1)).unwrap().domid, 1);
        assert!(world.switch.all_up());
        assert_eq!(world.store.rule(1).unwrap(), "deny all");
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "running");
        assert_eq!(info.vifs[1].port.as_str(), "g1-1");
        let calls: Vec<_> = world.faults.take();
        let position = |step: &&str| calls.iter().position(|c| c == step).unwrap();
        let steps = STEPS.iter().map(position);
        assert!(steps.is_sorted(), "{calls:?}");
    }

    #[test]
    fn more_vcpus_than_a_guest_of_the_host_may_have_are_refused_before_anything_is_made() {
        let world = World::new();
        let mut many = spec(1);
        many.vcpus = good(2);
        let error = world.create(&many).unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        let words = "vcpus: a guest of this host kind has at most 1, got 2";
        assert_eq!(error.message, words);
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_kernel_that_is_not_clicks_runs_without_a_router() {
        let world = World::new();
        while world.maker.fill_pool_by_one().unwrap() {}
        world.faults.take();
        let domid = world.create(&linux(1)).unwrap().domid;
        let calls = world.faults.take();
        assert!(calls.contains(&"host.spawn".to_owned()), "{calls:?}");
        assert!(world.switch.all_up());
        let root = format!("/local/domain/{domid}/data/clickos");
        let given =
            |key: &String| key.starts_with(&format!("{root}/")) && !key.ends_with("version");
        assert!(!world.store.keys().iter().any(given));
        // It announces nothing.
        world.store.commit(&[Change::remove(root)]).unwrap();
        let world = world.restart();
        assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
        let error = world.read(&uuid(1)).unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert!(error.message.contains("no handlers"), "{error}");
        world.destroy(&uuid(1)).unwrap();
        assert!(
            !world
                .remains()
                .iter()
                .any(|left| left.contains(uuid(1).as_str()))
        );
    }

    #[test]
    fn subscribers_hear_of_a_guest_without_routers() {
        let world = World::new();
        let events = world.site.events.subscribe();
        world.create(&linux(1)).unwrap();
        let event = events.wait(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(event.data["state"], "Running");
    }

    #[test]
    fn no_guest_is_kept_booted_for_a_kernel_that_is_not_clicks() {
        let world = World::with_demand(Vec::new(), 64);
        world.create(&linux(1)).unwrap();
        assert!(!world.maker.fill_pool_by_one().unwrap());
    }

    #[test]
    fn a_guest_that_ends_before_its_maker_owns_it_takes_nothing_from_a_later_one() {
        for is_pooled in [false, true] {
            let world = World::new();
            while is_pooled && world.maker.fill_pool_by_one().unwrap() {}
            let later = Instant::now() + std::time::Duration::from_secs(60);
            let make = |(guest, pooled): &(Arc<Guest>, Option<Arc<Guest>>)| {
                let guests = (guest, pooled.as_deref());
                world.maker.make_admitted(&spec(1), guests, later, |_| {})
            };
            let first = replace::admit_or_replace(&world.site, &spec(1)).unwrap();
            assert_eq!(first.1.is_some(), is_pooled);
            world.destroy(&uuid(1)).unwrap();
            let second = replace::admit_or_replace(&world.site, &spec(1)).unwrap();
            assert_eq!(make(&first).err().unwrap().code, Code::DeadGuest);
            make(&second).unwrap();
            assert_eq!(make(&first).err().unwrap().code, Code::DeadGuest);
            assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
            world.destroy(&uuid(1)).unwrap();
            assert_eq!(world.remains(), Vec::<String>::new());
        }
    }

    #[test]
    fn every_step_that_fails_undoes_all_earlier_ones() {
        for step in STEPS {
            let world = World::new();
            world.faults.fail(step);
            let error = world.create(&spec(1)).err().unwrap();
            assert!(error.message.contains("injected"), "{step}: {error}");
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
            world.faults.mend();
            world.create(&spec(1)).unwrap();
        }
    }

    #[test]
    fn undoing_goes_backwards() {
        let world = World::new();
        world.faults.fail("switch.set_link vale0:g1-1");
        world.create(&spec(1)).err().unwrap();
        let calls = world.faults.take();
        let failed = calls
            .iter()
            .position(|c| c == "switch.set_link vale0:g1-1")
            .unwrap();
        let undone: Vec<_> = calls[failed + 1..]
            .iter()
            .filter(|c| *c != "store.commit")
            .collect();
        assert_eq!(
            undone,
            [
                "host.stop",
                "switch.remove vale0:g1-1",
                "switch.remove vale0:g1-0",
                "host.forget",
                "host.remove_console"
            ]
        );
    }

    #[test]
    fn what_the_guest_refuses_leaves_nothing() {
        type Change = fn(&mut Spec);
        let cases: [(Code, &str, Change); 6] = [
            (
                Code::BadConfig,
                "wire.click:1:1: no element class \"Bad\"",
                |s| {
                    s.config = good("Bad");
                },
            ),
            (Code::Timeout, "no answer in time", |s| {
                s.config = good("Silent");
                s.timeout_ms = good(200);
            }),
            (Code::HandlerError, "fw.config: bad rule", |s| {
                s.writes[0].1 = "bad".into()
            }),
            (Code::HandlerError, "writes: the guest refused them;", |s| {
                s.writes[0].1 = "bad".into();
                s.has_secrets = true;
            }),
            (Code::BadImage, "00 is not the engine", |s| {
                s.image_sha256 = "00".into()
            }),
            (Code::NoMemory, "65 MiB asked, 0 of 64 MiB", |s| {
                s.memory_mib = good(65)
            }),
        ];
        for (code, words, change) in cases {
            let world = World::new();
            let mut bad = spec(1);
            change(&mut bad);
            let error = world.create(&bad).err().unwrap();
            assert_eq!(error.code, code);
            assert!(error.message.contains(words), "{error}");
            assert_eq!(world.remains(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_port_of_somebody_else_is_not_touched() {
        let world = World::new();
        world.switch.put("vale0:g1-1");
        let error = world.create(&spec(1)).err().unwrap();
        assert_eq!(error.code, Code::Exists);
        assert_eq!(world.remains(), ["vale0:g1-1"]);
    }

    #[test]
    fn what_cannot_be_undone_stays_listed_until_it_can() {
        let world = World::new();
        world.faults.fail("host.start");
        world.faults.fail("host.stop");
        let error = world.create(&spec(1)).err().unwrap();
        assert!(
            error.message.contains("undoing it failed: host.stop"),
            "{error}"
        );
        let info = world.info(&uuid(1)).unwrap();
        assert_eq!(info.state, "error");
        assert_eq!(world.create(&spec(1)).err().unwrap().code, Code::Exists);
        world.faults.mend();
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn a_death_at_the_start_is_noticed_at_once_with_the_last_words() {
        let world = World::new();
        world.watch_deaths();
        let mut silent = spec(1);
        silent.config = good("Silent");
        std::thread::scope(|scope| {
            let created = scope.spawn(|| world.create(&silent));
            while world.host.found(1).is_none() {
                std::thread::yield_now();
            }
            world.host.kill(1, true);
            let error = created.join().unwrap().err().unwrap();
            assert_eq!(error.code, Code::DeadGuest);
            assert!(error.message.contains("signal 9"), "{error}");
            assert!(error.message.contains("\\x1b[31mdone"), "{error}");
        });
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn destroying_a_guest_gives_its_creation_up() {
        let world = World::new();
        let mut silent = spec(1);
        silent.config = good("Silent");
        std::thread::scope(|scope| {
            let created = scope.spawn(|| world.create(&silent));
            while world.host.found(1).is_none() {
                std::thread::yield_now();
            }
            world.destroy(&uuid(1)).unwrap();
            let error = created.join().unwrap().err().unwrap();
            assert!(error.message.contains("being destroyed"), "{error}");
        });
        assert_eq!(world.remains(), Vec::<String>::new());
    }
}
