// SPDX-License-Identifier: Apache-2.0
//! Interfaces that come and go while their guest runs (docs/adr/0069).

use cosmos_proto::{Place, PlugVif};
use log::{info, warn};
use vale_proto::Kind;

use crate::error::{Code, Error, Result};
use crate::guest::{Guest, State};
use crate::record::Phase;
use crate::spec::{Link, MAX_VIFS, Vif};
use crate::toolstack::{Toolstack, announce_states};

impl Toolstack {
    /// Gives a running guest an interface; the next configuration can use it. After an error the
    /// guest has no such interface, and the switch no such port.
    pub fn plug_vif(&self, args: &PlugVif) -> Result<()> {
        let guest = self.table.get(&args.uuid)?;
        let _owner = guest.own();
        self.check_current(&guest)?;
        guest.check_settled()?;
        guest.check_answers()?;
        check_new(&guest, &args.vif)?;
        self.check_name(&args.vif)?;
        // On disk first, as a port that is to be removed: a restart removes it.
        let leaving = Vif {
            link: Link::Leaving,
            ..args.vif.clone()
        };
        guest.add_vif(leaving);
        let done = self
            .keep_vifs(&guest)
            .and_then(|()| self.join(&guest, &args.vif));
        if let Err(cause) = done {
            return Err(self.take_back(&guest, &args.vif, cause));
        }
        self.announce_vifs(&guest);
        info!("guest {}: port {} came", args.uuid, args.vif.place());
        Ok(())
    }

    fn join(&self, guest: &Guest, vif: &Vif) -> Result<()> {
        let domain = &guest.domain;
        let fds = self.switch.add(domain.domid, vif)?;
        if let Some(rings) = self.host.plug(domain, &guest.vifs(), fds)? {
            guest.set_rings(vif.devid, rings);
        }
        self.set_link(guest, vif, vif.link)
            .and_then(|()| {
                guest.set_link(vif.devid, vif.link);
                self.keep_vifs(guest)
            })
            .inspect_err(|_| self.pull_out(guest, vif))
    }

    /// Takes an interface from a guest that got it, after which another step failed.
    fn pull_out(&self, guest: &Guest, vif: &Vif) {
        let mut others = guest.vifs();
        others.retain(|other| other.devid != vif.devid);
        self.host
            .unplug(&guest.domain, &others, vif)
            .unwrap_or_else(|e| warn!("guest {}: {e}", guest.domain.uuid));
    }

    fn take_back(&self, guest: &Guest, vif: &Vif, cause: Error) -> Error {
        if let Err(left) = self.switch.remove(vif) {
            warn!("port {}: {left}; it is to be removed", vif.place());
            guest.set_link(vif.devid, Link::Leaving);
            return cause;
        }
        guest.remove_vif(vif.devid);
        self.keep_vifs(guest)
            .unwrap_or_else(|e| warn!("guest {}: {e}", guest.domain.uuid));
        cause
    }

    /// Takes an interface from a guest. A configuration that uses it goes on without frames.
    pub fn unplug_vif(&self, place: &Place) -> Result<()> {
        let guest = self.table.get(&place.uuid)?;
        let _owner = guest.own();
        self.check_current(&guest)?;
        guest.check_settled()?;
        guest.check_answers()?;
        let vif = self.vif_of(&guest, place)?;
        self.note_link(&guest, &vif, Link::Leaving)?;
        self.switch.remove(&vif)?;
        guest.remove_vif(vif.devid);
        // Frames have ended: a guest that does not listen hurts itself only.
        self.host
            .unplug(&guest.domain, &guest.vifs(), &vif)
            .unwrap_or_else(|e| warn!("guest {}: {e}", place.uuid));
        self.keep_vifs(&guest)?;
        self.announce_vifs(&guest);
        info!("guest {}: port {} went", place.uuid, vif.place());
        Ok(())
    }

    fn keep_vifs(&self, guest: &Guest) -> Result<()> {
        self.records.save(&guest.record(Phase::Complete))
    }

    /// Subscribers look at the ports of a guest after its routers' states.
    fn announce_vifs(&self, guest: &Guest) {
        if guest.state() == State::Running {
            let domid = guest.domain.domid;
            announce_states(&self.table, &*self.store, &self.events, domid, 1);
        }
    }

    fn check_name(&self, vif: &Vif) -> Result<()> {
        match self.switch.existing(std::slice::from_ref(vif))?.first() {
            None => Ok(()),
            Some(vif) => {
                let message = format!("port {} is there already on the switch", vif.place());
                Err(Error::new(Code::Exists, message))
            }
        }
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
    use crate::testing::{World, spec, uuid, vif};

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

    fn running() -> World {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world
    }

    fn devids(world: &World) -> Vec<u32> {
        let info = world.toolstack.info(&uuid(1)).unwrap();
        info.vifs.iter().map(|vif| vif.devid).collect()
    }

    #[test]
    fn interfaces_come_and_go_and_outlive_the_daemon() {
        let world = running();
        world.toolstack.plug_vif(&args(2)).unwrap();
        assert_eq!(devids(&world), [0, 1, 2]);
        assert!(world.switch.all_up());
        world.toolstack.unplug_vif(&place(0)).unwrap();
        let world = world.restart();
        assert_eq!(devids(&world), [1, 2]);
        assert_eq!(world.switch.ports(), ["vale0:g1-1", "vale0:g1-2"]);
        let guest = world.toolstack.table.get(&uuid(1)).unwrap();
        assert_eq!(guest.rings(1), crate::host::usual_rings(1));
        assert_eq!(guest.rings(2), [40, 41, 42]);
        world.toolstack.plug_vif(&args(0)).unwrap();
        assert_eq!(devids(&world), [1, 2, 0]);
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn an_interface_of_a_held_guest_waits_for_its_release() {
        let world = World::new();
        let held = crate::spec::Spec {
            hold: true,
            ..spec(1)
        };
        world.toolstack.create(&held).unwrap();
        world.toolstack.plug_vif(&args(2)).unwrap();
        assert!(world.switch.none_up());
        world.toolstack.connect(&uuid(1)).unwrap();
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
            let world = running();
            world.faults.fail(step);
            world.faults.take();
            world.toolstack.plug_vif(&args(2)).unwrap_err();
            let calls = world.faults.take();
            let has = |call: &str| calls.iter().any(|made| made == call);
            let had_it = has("host.plug 1") && step != "host.plug 1";
            assert_eq!(has("host.unplug 1 2"), had_it, "{step}");
            assert_eq!(devids(&world), [0, 1], "{step}");
            assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"], "{step}");
            world.faults.mend();
            world.toolstack.plug_vif(&args(2)).unwrap();
        }
    }

    #[test]
    fn a_daemon_that_dies_in_between_leaves_no_port() {
        let world = running();
        world.faults.fail("host.plug 1");
        world.faults.fail("switch.remove vale0:g1-2");
        world.toolstack.plug_vif(&args(2)).unwrap_err();
        world.faults.mend();
        let world = world.restart();
        assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"]);
        world.toolstack.unplug_vif(&place(2)).unwrap();
        assert_eq!(devids(&world), [0, 1]);
    }

    #[test]
    fn a_guest_that_does_not_listen_loses_its_port_all_the_same() {
        let world = running();
        world.faults.fail("host.unplug 1 1");
        world.toolstack.unplug_vif(&place(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-0"]);
    }

    #[test]
    fn wrong_requests_are_named() {
        let world = running();
        let refused = |args: &PlugVif| world.toolstack.plug_vif(args).unwrap_err();
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
        world.toolstack.pause(&uuid(1)).unwrap();
        assert_eq!(refused(&args(2)).code, Code::DeadGuest);
        let error = world.toolstack.unplug_vif(&place(7)).unwrap_err();
        assert_eq!(error.code, Code::DeadGuest);
    }
}
