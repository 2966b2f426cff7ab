// SPDX-License-Identifier: Apache-2.0
//! Interfaces that come and go while their guest runs (docs/adr/0069).

use std::slice;

use cosmos_proto::{Place, PlugVif};
use log::{info, warn};
use vale_proto::Kind;

use super::links;
use crate::base::error::{Code, Error, Result};
use crate::guest::record::Phase;
use crate::guest::{Guest, State};
use crate::site::Site;
use crate::spec::{Link, MAX_VIFS, Vif};

/// Gives a running guest an interface; the next configuration can use it. After an error the
/// guest has no such interface, and the switch no such port.
pub fn plug_vif(site: &Site, args: &PlugVif) -> Result<()> {
    let guest = site.table.get(&args.uuid)?;
    let _owner = guest.lock_lifecycle();
    links::check_current(site, &guest)?;
    guest.check_not_migrating()?;
    guest.check_answers()?;
    check_new(&guest, &args.vif)?;
    links::check_free(site, slice::from_ref(&args.vif), &[])?;
    // On disk first, as a port that is to be removed: a restart removes it.
    let leaving = Vif {
        link: Link::Leaving,
        ..args.vif.clone()
    };
    guest.add_vif(leaving);
    let done = keep_vifs(site, &guest).and_then(|()| join(site, &guest, &args.vif));
    if let Err(cause) = done {
        return Err(take_back(site, &guest, &args.vif, cause));
    }
    announce_vifs(site, &guest);
    info!("guest {}: port {} plugged", args.uuid, args.vif.place());
    Ok(())
}

fn join(site: &Site, guest: &Guest, vif: &Vif) -> Result<()> {
    let domain = &guest.domain;
    let fds = site.switch.add(domain.domid, vif)?;
    if let Some(rings) = site.host.plug(domain, &guest.vifs(), fds)? {
        guest.set_rings(vif.devid, rings);
    }
    links::set_link(site, guest, vif, vif.link)
        .and_then(|()| {
            guest.set_link(vif.devid, vif.link);
            keep_vifs(site, guest)
        })
        .inspect_err(|_| pull_out(site, guest, vif))
}

/// Takes an interface from a guest that got it, after which another step failed.
fn pull_out(site: &Site, guest: &Guest, vif: &Vif) {
    let mut others = guest.vifs();
    others.retain(|other| other.devid != vif.devid);
    site.host
        .unplug(&guest.domain, &others, vif)
        .unwrap_or_else(|e| warn!("guest {}: {e}", guest.domain.uuid));
}

fn take_back(site: &Site, guest: &Guest, vif: &Vif, cause: Error) -> Error {
    if let Err(left) = site.switch.remove(vif) {
        warn!("port {}: {left}; it is to be removed", vif.place());
        guest.set_link(vif.devid, Link::Leaving);
        return cause;
    }
    guest.remove_vif(vif.devid);
    keep_vifs(site, guest).unwrap_or_else(|e| warn!("guest {}: {e}", guest.domain.uuid));
    cause
}

/// Takes an interface from a guest. A configuration that uses it continues without frames.
pub fn unplug_vif(site: &Site, place: &Place) -> Result<()> {
    let guest = site.table.get(&place.uuid)?;
    let _owner = guest.lock_lifecycle();
    links::check_current(site, &guest)?;
    guest.check_not_migrating()?;
    guest.check_answers()?;
    let vif = links::find(&guest, place)?;
    links::note_link(site, &guest, &vif, Link::Leaving)?;
    site.switch.remove(&vif)?;
    guest.remove_vif(vif.devid);
    // Frames have ended: a guest that does not listen hurts itself only.
    site.host
        .unplug(&guest.domain, &guest.vifs(), &vif)
        .unwrap_or_else(|e| warn!("guest {}: {e}", place.uuid));
    keep_vifs(site, &guest)?;
    announce_vifs(site, &guest);
    info!("guest {}: port {} unplugged", place.uuid, vif.place());
    Ok(())
}

fn keep_vifs(site: &Site, guest: &Guest) -> Result<()> {
    site.disk.records.save(&guest.record(Phase::Complete))
}

/// Subscribers look at the ports of a guest after its routers' states.
fn announce_vifs(site: &Site, guest: &Guest) {
    if guest.state() == State::Running {
        site.announce(guest.domain.domid, 1);
    }
}

fn check_new(guest: &Guest, vif: &Vif) -> Result<()> {
    let place = format!("vif: devid {}", vif.devid);
    let (vifs, devid) = (guest.vifs(), vif.devid);
    if vifs
        .iter()
        .any(|old| old.devid == devid && old.is_plugged())
    {
        let message = format!("{place}: guest {} has it", guest.domain.uuid);
        return Err(Error::new(Code::Exists, message));
    }
    let others = vifs.iter().filter(|old| old.devid != devid).count();
    if devid as usize >= MAX_VIFS || others + guest.domain.nics.len() >= MAX_VIFS {
        let message = format!("{place}: a guest has at most {MAX_VIFS} interfaces, from 0 on");
        return Err(Error::new(Code::TooMany, message));
    }
    if !matches!(vif.link, Link::Up | Link::Down) {
        return Err(Error::bad_request(format!("{place}: link: up or down")));
    }
    vif.port_add(Kind::Process, 0)
        .check()
        .map_err(|e| Error::bad_request(format!("{place}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::pause;
    use crate::testing::{World, of, spec, uuid, vif};

    fn args(devid: u32) -> PlugVif {
        PlugVif {
            uuid: uuid(1),
            vif: vif(1, devid),
        }
    }

    fn place(devid: u32) -> Place {
        Place {
            uuid: uuid(1),
            devid,
            domid: None,
        }
    }

    fn devids(world: &World) -> Vec<u32> {
        let info = world.info(&uuid(1)).unwrap();
        info.vifs.iter().map(|vif| vif.devid).collect()
    }

    #[test]
    fn interfaces_come_and_go_and_outlive_the_daemon() {
        let world = World::running();
        plug_vif(&world.site, &args(2)).unwrap();
        assert_eq!(devids(&world), [0, 1, 2]);
        assert!(world.switch.all_up());
        unplug_vif(&world.site, &place(0)).unwrap();
        let world = world.restart();
        assert_eq!(devids(&world), [1, 2]);
        assert_eq!(world.switch.ports(), ["vale0:g1-1", "vale0:g1-2"]);
        let guest = world.site.table.get(&uuid(1)).unwrap();
        assert_eq!(guest.rings(1), crate::host::usual_rings(1));
        assert_eq!(guest.rings(2), [40, 41, 42]);
        plug_vif(&world.site, &args(0)).unwrap();
        assert_eq!(devids(&world), [1, 2, 0]);
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn an_interface_of_a_held_guest_waits_for_its_release() {
        let world = World::new();
        let held = crate::spec::Spec {
            hold: true,
            ..spec(1)
        };
        world.create(&held).unwrap();
        plug_vif(&world.site, &args(2)).unwrap();
        assert!(world.switch.none_up());
        links::release(&world.site, &of(1)).unwrap();
        assert_eq!(world.switch.ports().len(), 3);
        assert!(world.switch.all_up());
    }

    #[test]
    fn every_step_that_fails_leaves_the_guest_as_it_was() {
        for step in [
            "switch.existing",
            "switch.add vale0:g1-2",
            "host.plug 1",
            "switch.set_link vale0:g1-2",
        ] {
            let world = World::running();
            world.faults.fail(step);
            world.faults.take();
            plug_vif(&world.site, &args(2)).unwrap_err();
            let calls = world.faults.take();
            let has = |call: &str| calls.iter().any(|made| made == call);
            let had_it = has("host.plug 1") && step != "host.plug 1";
            assert_eq!(has("host.unplug 1 2"), had_it, "{step}");
            assert_eq!(devids(&world), [0, 1], "{step}");
            assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"], "{step}");
            world.faults.mend();
            plug_vif(&world.site, &args(2)).unwrap();
        }
    }

    #[test]
    fn a_daemon_that_dies_in_between_leaves_no_port() {
        let world = World::running();
        world.faults.fail("host.plug 1");
        world.faults.fail("switch.remove vale0:g1-2");
        plug_vif(&world.site, &args(2)).unwrap_err();
        world.faults.mend();
        let world = world.restart();
        assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"]);
        unplug_vif(&world.site, &place(2)).unwrap();
        assert_eq!(devids(&world), [0, 1]);
    }

    #[test]
    fn a_guest_that_does_not_listen_loses_its_port_all_the_same() {
        let world = World::running();
        world.faults.fail("host.unplug 1 1");
        unplug_vif(&world.site, &place(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-0"]);
    }

    #[test]
    fn wrong_requests_are_named() {
        let world = World::running();
        let refused = |args: &PlugVif| plug_vif(&world.site, args).unwrap_err();
        assert_eq!(refused(&args(1)).code, Code::Exists);
        assert_eq!(refused(&args(16)).code, Code::TooMany);
        let mut other = args(2);
        other.vif.port = vif(1, 0).port;
        assert_eq!(refused(&other).code, Code::Exists);
        other = args(2);
        other.vif.segment = 0;
        assert!(refused(&other).message.starts_with("vif: devid 2: segment"));
        other = args(2);
        other.vif.link = Link::Removed;
        assert!(refused(&other).message.contains("up or down"));
        pause::pause(&world.site, &of(1)).unwrap();
        assert_eq!(refused(&args(2)).code, Code::DeadGuest);
        let error = unplug_vif(&world.site, &place(7)).unwrap_err();
        assert_eq!(error.code, Code::DeadGuest);
    }
}
