// SPDX-License-Identifier: Apache-2.0
//! The ports of a guest that is there: taken from the switch, and their links
//! (docs/adr/0021-ports-follow-neutron.md).
//!
//! A guest keeps its interface when its port is removed, so its configuration stays valid. A later
//! start of the same guest (restore, move) makes the interface on a placeholder port, which goes
//! before the guest forwards.

use cosmos_proto::Place;
use cosmos_proto::answer::GuestPort;
use log::{info, warn};

use crate::error::{Code, Error, Result};
use crate::guest::{Guest, State};
use crate::record::Phase;
use crate::spec::{Link, Uuid, Vif};
use crate::toolstack::Toolstack;

impl Toolstack {
    /// Takes an interface's port from the switch; one that is removed is no error.
    pub fn remove_vif(&self, place: &Place) -> Result<()> {
        self.with_vif(place, |guest, vif| {
            if vif.link == Link::Removed {
                return Ok(());
            }
            // On disk first: after an error, or a restart, the port is still to be removed, and
            // no other guest gets its name.
            self.note_link(guest, vif, Link::Leaving)?;
            self.switch_vif(guest, vif, Link::Leaving)?;
            self.note_link(guest, vif, Link::Removed)
        })
    }

    /// Sets the link of an interface.
    pub fn set_vif(&self, place: &Place, up: bool) -> Result<()> {
        let link = if up { Link::Up } else { Link::Down };
        self.with_vif(place, |guest, vif| {
            if matches!(vif.link, Link::Leaving | Link::Removed) {
                let message = format!("port {} was removed: it has no link", vif.place());
                return Err(Error::bad_request(message));
            }
            self.note_link(guest, vif, link)?;
            self.switch_vif(guest, vif, link).inspect_err(|_| {
                self.note_link(guest, vif, vif.link)
                    .unwrap_or_else(|e| warn!("port {}: {e}", vif.place()));
            })
        })
    }

    /// The interface that a request names.
    pub fn vif_of(&self, guest: &Guest, place: &Place) -> Result<Vif> {
        find(guest, place)
    }

    fn with_vif(
        &self,
        place: &Place,
        change: impl FnOnce(&Guest, &Vif) -> Result<()>,
    ) -> Result<()> {
        let guest = self.table.get(&place.uuid)?;
        let _owner = guest.own();
        // Its last owner may have removed it.
        self.check_current(&guest)?;
        // The other host knows a moving guest's ports already.
        guest.check_settled()?;
        change(&guest, &find(&guest, place)?)
    }

    pub fn check_current(&self, guest: &Guest) -> Result<()> {
        let now = self.table.get(&guest.domain.uuid)?;
        match std::ptr::eq(&*now, guest) {
            true => Ok(()),
            false => Err(another_domain(guest)),
        }
    }

    pub fn note_link(&self, guest: &Guest, vif: &Vif, link: Link) -> Result<()> {
        guest.set_link(vif.devid, link);
        let phase = match guest.state() {
            State::Running | State::Paused => Phase::Complete,
            State::Saved => Phase::Saved,
            State::Crashed => Phase::Crashed,
            // The phase on disk tells the next start what to undo.
            State::Partial | State::Pooled | State::Error => return Ok(()),
        };
        self.records.save(&guest.record(phase))
    }

    fn switch_vif(&self, guest: &Guest, vif: &Vif, link: Link) -> Result<()> {
        match guest.state() {
            // These have no ports; of a guest in error a port may be left.
            State::Saved | State::Crashed => {}
            _ => self.set_link(guest, vif, link)?,
        }
        let (uuid, place) = (&guest.domain.uuid, vif.place());
        info!("guest {uuid}: the link of port {place} is {link:?}");
        Ok(())
    }

    /// The guest's ports with the counters of the switch, without removed ones.
    pub fn ports(&self, uuid: &Uuid) -> Result<Vec<GuestPort>> {
        let guest = self.table.get(uuid)?;
        let infos = self.switch.ports()?;
        let of = |vif: Vif| {
            let mut infos = infos.iter();
            let info = infos.find(|i| i.switch == vif.switch && i.port == vif.port)?;
            Some(GuestPort {
                devid: vif.devid,
                mac: vif.mac,
                port_id: vif.port_id,
                link_up: info.link_up,
                closed: info
                    .filter
                    .is_some_and(|f| f.ingress_rules + f.egress_rules == 0),
                counters: info.counters,
            })
        };
        let plugged = guest.vifs().into_iter().filter(Vif::is_plugged);
        Ok(plugged.filter_map(of).collect())
    }

    /// Brings the ports of a guest that was just made, or found again, to what is wanted.
    pub fn set_links(&self, guest: &Guest) -> Result<()> {
        let vifs = guest.vifs();
        let mut vifs = vifs.iter().map(|vif| vif.in_switch(&guest.domain.uuid));
        vifs.try_for_each(|vif| self.set_link(guest, &vif, vif.link))
    }

    pub fn set_link(&self, guest: &Guest, vif: &Vif, link: Link) -> Result<()> {
        match link {
            Link::Up => self.switch.set_link(vif, !guest.ledger.book().held),
            Link::Down => self.switch.set_link(vif, false),
            Link::Leaving | Link::Removed => self.switch.remove(vif),
        }
    }
}

fn find(guest: &Guest, place: &Place) -> Result<Vif> {
    if place.domid.is_some_and(|domid| domid != guest.domain.domid) {
        return Err(another_domain(guest));
    }
    let mut vifs = guest.vifs().into_iter();
    vifs.find(|vif| vif.devid == place.devid).ok_or_else(|| {
        let message = format!(
            "devid {}: guest {} has no such port",
            place.devid, place.uuid
        );
        Error::bad_request(message)
    })
}

fn another_domain(guest: &Guest) -> Error {
    let (uuid, domid) = (&guest.domain.uuid, guest.domain.domid);
    Error::new(
        Code::NoSuchGuest,
        format!("guest {uuid} is domain {domid} now"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, spec, uuid, vif};

    fn place(n: u16, devid: u32) -> Place {
        let (uuid, domid) = (uuid(n), None);
        Place { uuid, devid, domid }
    }

    fn running() -> World {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world
    }

    /// The links of guest 1.
    fn links(world: &World) -> Vec<String> {
        let info = world.toolstack.info(&uuid(1)).unwrap();
        let vifs = info.vifs.iter();
        vifs.map(|vif| format!("{:?}", vif.link).to_lowercase())
            .collect()
    }

    fn destroyed(world: &World) {
        world.toolstack.destroy(&uuid(1)).unwrap();
        world.toolstack.destroy(&uuid(2)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn the_switch_tells_what_it_counted() {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        let ports = world.toolstack.ports(&uuid(1)).unwrap();
        let found: Vec<_> = ports.iter().map(|p| (p.devid, p.link_up)).collect();
        assert_eq!(found, [(0, true), (1, true)]);
        assert_eq!(ports[0].counters.rx_packets, 7);
        let place = Place {
            uuid: uuid(1),
            devid: 0,
            domid: None,
        };
        world.toolstack.remove_vif(&place).unwrap();
        let ports = world.toolstack.ports(&uuid(1)).unwrap();
        assert_eq!(ports.len(), 1);
    }

    #[test]
    fn a_removed_port_stays_away_and_the_guest_runs_on() {
        let world = running();
        for _ in 0..2 {
            world.toolstack.remove_vif(&place(1, 0)).unwrap();
            assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        }
        let world = world.restart();
        assert_eq!(world.toolstack.info(&uuid(1)).unwrap().state, "running");
        assert_eq!(links(&world), ["removed", "up"]);
        world.toolstack.save(&uuid(1)).unwrap();
        let world = world.restart();
        world.toolstack.restore(&uuid(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        destroyed(&world);
    }

    #[test]
    fn the_name_of_a_removed_port_is_free_for_others() {
        let world = running();
        world.toolstack.remove_vif(&place(1, 0)).unwrap();
        let mut other = spec(2);
        other.vifs[0].port = vif(1, 0).port;
        world.toolstack.create(&other).unwrap();
        world.toolstack.save(&uuid(1)).unwrap();
        world.toolstack.restore(&uuid(1)).unwrap();
        let world = world.restart();
        world.toolstack.destroy(&uuid(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g2-1"]);
        destroyed(&world);
    }

    #[test]
    fn a_guest_that_moves_here_has_no_port_for_a_removed_one() {
        let world = World::new();
        let mut moved = spec(1);
        moved.vifs[0].link = Link::Removed;
        moved.vifs[1].link = Link::Down;
        world.toolstack.receive(&moved, 7).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        assert!(!world.switch.all_up());
        let calls = world.faults.take();
        assert!(calls.contains(&"switch.add vale0:x0000000001-0".to_owned()));
        assert!(!calls.contains(&"switch.add vale0:g1-0".to_owned()));
        destroyed(&world);
    }

    #[test]
    fn a_placeholder_has_no_address() {
        let mut vif = vif(1, 0);
        vif.link = Link::Removed;
        let add = vif
            .in_switch(&uuid(1))
            .port_add(vale_proto::Kind::Process, 1);
        assert_eq!((add.mac, add.allowed.len(), add.link_up), (None, 0, false));
        add.check().unwrap();
    }

    #[test]
    fn a_failed_removal_is_tried_again_even_by_the_next_cosmosd() {
        for is_restarted in [false, true] {
            let mut world = running();
            world.faults.fail("switch.remove vale0:g1-0");
            world.toolstack.remove_vif(&place(1, 0)).unwrap_err();
            assert_eq!(links(&world), ["leaving", "up"]);
            assert!(world.toolstack.set_vif(&place(1, 0), true).is_err());
            world.faults.mend();
            if is_restarted {
                world = world.restart();
                assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
            }
            world.toolstack.remove_vif(&place(1, 0)).unwrap();
            assert_eq!(links(&world), ["removed", "up"]);
            destroyed(&world);
        }
    }

    #[test]
    fn a_link_goes_down_and_stays_down() {
        let world = running();
        world.toolstack.set_vif(&place(1, 1), false).unwrap();
        assert!(!world.switch.all_up());
        let world = world.restart();
        assert_eq!(links(&world), ["up", "down"]);
        world.toolstack.save(&uuid(1)).unwrap();
        world.toolstack.restore(&uuid(1)).unwrap();
        assert!(!world.switch.all_up());
        world.faults.fail("switch.set_link vale0:g1-1");
        world.toolstack.set_vif(&place(1, 1), true).unwrap_err();
        assert_eq!(links(&world), ["up", "down"]);
        world.faults.mend();
        world.toolstack.set_vif(&place(1, 1), true).unwrap();
        assert!(world.switch.all_up());
        destroyed(&world);
    }

    #[test]
    fn a_guest_without_ports_is_changed_for_its_next_start() {
        let world = running();
        world.toolstack.save(&uuid(1)).unwrap();
        world.toolstack.remove_vif(&place(1, 0)).unwrap();
        world.toolstack.set_vif(&place(1, 1), false).unwrap();
        world.toolstack.restore(&uuid(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        assert!(!world.switch.all_up());
        destroyed(&world);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let world = running();
        let gone = world.toolstack.remove_vif(&place(3, 0)).unwrap_err();
        assert_eq!(gone.code, Code::NoSuchGuest);
        let devid = world.toolstack.remove_vif(&place(1, 2)).unwrap_err();
        assert!(devid.message.starts_with("devid 2: guest"), "{devid}");
        let mut earlier = place(1, 0);
        earlier.domid = Some(9);
        let another = world.toolstack.remove_vif(&earlier).unwrap_err();
        assert_eq!(another.code, Code::NoSuchGuest);
        assert!(another.message.ends_with("is domain 1 now"), "{another}");
        assert_eq!(links(&world), ["up", "up"]);
    }

    #[test]
    fn a_moving_guest_keeps_its_ports() {
        let world = World::new();
        world.toolstack.receive(&spec(1), 7).unwrap();
        let busy = world.toolstack.remove_vif(&place(1, 0)).unwrap_err();
        assert_eq!(busy.code, Code::Busy);
    }
}
