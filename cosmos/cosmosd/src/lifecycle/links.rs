// SPDX-License-Identifier: Apache-2.0
//! The ports of a guest that is there: taken from the switch, and their links
//! (docs/adr/0021-ports-follow-neutron.md).
//!
//! A guest keeps its interface when its port is removed, so its configuration stays valid. A later
//! start of the same guest (restore, move) makes the interface on a placeholder port, which goes
//! before the guest forwards.

use cosmos_proto::{OfGuest, Place, VifLink};
use log::{info, warn};

use crate::base::error::{Code, Error, Result};
use crate::guest::record::Phase;
use crate::guest::{Guest, State};
use crate::site::Site;
use crate::spec::{Link, Vif};

/// Takes an interface's port from the switch; one that is removed is no error.
pub fn remove_vif(site: &Site, place: &Place) -> Result<()> {
    with_vif(site, place, |guest, vif| {
        if vif.link == Link::Removed {
            return Ok(());
        }
        // On disk first: after an error, or a restart, the port is still to be removed, and
        // no other guest gets its name.
        note_link(site, guest, vif, Link::Leaving)?;
        switch_vif(site, guest, vif, Link::Leaving)?;
        note_link(site, guest, vif, Link::Removed)
    })
}

/// Sets the link of an interface.
pub fn set_vif(site: &Site, args: &VifLink) -> Result<()> {
    let link = if args.link_up { Link::Up } else { Link::Down };
    with_vif(site, &args.place(), |guest, vif| {
        if matches!(vif.link, Link::Leaving | Link::Removed) {
            let message = format!("port {} was removed: it has no link", vif.place());
            return Err(Error::bad_request(message));
        }
        note_link(site, guest, vif, link)?;
        switch_vif(site, guest, vif, link).inspect_err(|_| {
            note_link(site, guest, vif, vif.link)
                .unwrap_or_else(|e| warn!("port {}: {e}", vif.place()));
        })
    })
}

fn with_vif(
    site: &Site,
    place: &Place,
    change: impl FnOnce(&Guest, &Vif) -> Result<()>,
) -> Result<()> {
    let guest = site.table.get(&place.uuid)?;
    let _owner = guest.lock_lifecycle();
    // Its last owner may have removed it.
    check_current(site, &guest)?;
    // The other host knows a moving guest's ports already.
    guest.check_not_migrating()?;
    change(&guest, &find(&guest, place)?)
}

pub fn note_link(site: &Site, guest: &Guest, vif: &Vif, link: Link) -> Result<()> {
    guest.set_link(vif.devid, link);
    let phase = match guest.state() {
        State::Running | State::Paused => Phase::Complete,
        State::Saved => Phase::Saved,
        State::Crashed => Phase::Crashed,
        // The phase on disk tells the next start what to undo.
        State::Partial | State::Pooled | State::Error => return Ok(()),
    };
    site.disk.records.save(&guest.record(phase))
}

fn switch_vif(site: &Site, guest: &Guest, vif: &Vif, link: Link) -> Result<()> {
    match guest.state() {
        // These have no ports; of a guest in error a port may be left.
        State::Saved | State::Crashed => {}
        _ => set_link(site, guest, vif, link)?,
    }
    let (uuid, place) = (&guest.domain.uuid, vif.place());
    info!("guest {uuid}: the link of port {place} is {link:?}");
    Ok(())
}

/// Refuses ports that exist and do not belong to `own`: somebody else would lose them when the guest is
/// undone.
pub fn check_free(site: &Site, wanted: &[Vif], own: &[Vif]) -> Result<()> {
    let is_other = |vif: &&Vif| !own.iter().any(|own| own.place() == vif.place());
    match site.switch.existing(wanted)?.iter().find(is_other) {
        None => Ok(()),
        Some(vif) => {
            let message = format!("port {} is there already on the switch", vif.place());
            Err(Error::new(Code::Exists, message))
        }
    }
}

/// Brings the ports of a guest that was just made, or found again, to what is wanted.
pub fn set_links(site: &Site, guest: &Guest) -> Result<()> {
    let vifs = guest.vifs();
    let mut vifs = vifs.iter().map(|vif| vif.in_switch(&guest.domain.uuid));
    vifs.try_for_each(|vif| set_link(site, guest, &vif, vif.link))
}

pub fn set_link(site: &Site, guest: &Guest, vif: &Vif, link: Link) -> Result<()> {
    match link {
        Link::Up => site.switch.set_link(vif, !guest.ledger.state().held),
        Link::Down => site.switch.set_link(vif, false),
        Link::Leaving | Link::Removed => site.switch.remove(vif),
    }
}

pub fn find(guest: &Guest, place: &Place) -> Result<Vif> {
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

/// Fails if the guest is another domain by now.
pub fn check_current(site: &Site, guest: &Guest) -> Result<()> {
    let now = site.table.get(&guest.domain.uuid)?;
    match std::ptr::eq(&*now, guest) {
        true => Ok(()),
        false => Err(another_domain(guest)),
    }
}

/// Lets the ports of a held guest come up.
pub fn release(site: &Site, of: &OfGuest) -> Result<()> {
    let guest = site.table.get(&of.uuid)?;
    let _owner = guest.lock_lifecycle();
    site.change_ledger(&guest, |ledger| {
        ledger.held = false;
        Ok(())
    })?;
    match guest.state() {
        State::Running | State::Paused => set_links(site, &guest),
        _ => guest.check_answers(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::{migration, save};
    use crate::report;
    use crate::testing::{World, of, spec, uuid, vif};

    fn place(n: u16, devid: u32) -> Place {
        let (uuid, domid) = (uuid(n), None);
        Place { uuid, devid, domid }
    }

    fn link(n: u16, devid: u32, link_up: bool) -> VifLink {
        VifLink {
            uuid: uuid(n),
            devid,
            domid: None,
            link_up,
        }
    }

    /// The links of guest 1.
    fn links(world: &World) -> Vec<String> {
        let info = world.info(&uuid(1)).unwrap();
        let vifs = info.vifs.iter();
        vifs.map(|vif| format!("{:?}", vif.link).to_lowercase())
            .collect()
    }

    fn destroyed(world: &World) {
        world.destroy(&uuid(1)).unwrap();
        world.destroy(&uuid(2)).unwrap();
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn the_switch_tells_what_it_counted() {
        let world = World::new();
        world.create(&spec(1)).unwrap();
        let ports = report::ports(&world.site, &of(1)).unwrap().ports;
        let found: Vec<_> = ports.iter().map(|p| (p.devid, p.link_up)).collect();
        assert_eq!(found, [(0, true), (1, true)]);
        assert_eq!(ports[0].counters.rx_packets, 7);
        let place = Place {
            uuid: uuid(1),
            devid: 0,
            domid: None,
        };
        remove_vif(&world.site, &place).unwrap();
        let ports = report::ports(&world.site, &of(1)).unwrap().ports;
        assert_eq!(ports.len(), 1);
    }

    #[test]
    fn a_removed_port_stays_away_and_the_guest_runs_on() {
        let world = World::running();
        for _ in 0..2 {
            remove_vif(&world.site, &place(1, 0)).unwrap();
            assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        }
        let world = world.restart();
        assert_eq!(world.info(&uuid(1)).unwrap().state, "running");
        assert_eq!(links(&world), ["removed", "up"]);
        save::save(&world.site, &of(1)).unwrap();
        let world = world.restart();
        save::restore(&world.site, &of(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        destroyed(&world);
    }

    #[test]
    fn the_name_of_a_removed_port_is_free_for_others() {
        let world = World::running();
        remove_vif(&world.site, &place(1, 0)).unwrap();
        let mut other = spec(2);
        other.vifs[0].port = vif(1, 0).port;
        world.create(&other).unwrap();
        save::save(&world.site, &of(1)).unwrap();
        save::restore(&world.site, &of(1)).unwrap();
        let world = world.restart();
        world.destroy(&uuid(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g2-1"]);
        destroyed(&world);
    }

    #[test]
    fn a_guest_that_moves_here_has_no_port_for_a_removed_one() {
        let world = World::new();
        let mut moved = spec(1);
        moved.vifs[0].link = Link::Removed;
        moved.vifs[1].link = Link::Down;
        migration::receive(&world.maker, &moved, 7).unwrap();
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
            let mut world = World::running();
            world.faults.fail("switch.remove vale0:g1-0");
            remove_vif(&world.site, &place(1, 0)).unwrap_err();
            assert_eq!(links(&world), ["leaving", "up"]);
            assert!(set_vif(&world.site, &link(1, 0, true)).is_err());
            world.faults.mend();
            if is_restarted {
                world = world.restart();
                assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
            }
            remove_vif(&world.site, &place(1, 0)).unwrap();
            assert_eq!(links(&world), ["removed", "up"]);
            destroyed(&world);
        }
    }

    #[test]
    fn a_link_goes_down_and_stays_down() {
        let world = World::running();
        set_vif(&world.site, &link(1, 1, false)).unwrap();
        assert!(!world.switch.all_up());
        let world = world.restart();
        assert_eq!(links(&world), ["up", "down"]);
        save::save(&world.site, &of(1)).unwrap();
        save::restore(&world.site, &of(1)).unwrap();
        assert!(!world.switch.all_up());
        world.faults.fail("switch.set_link vale0:g1-1");
        set_vif(&world.site, &link(1, 1, true)).unwrap_err();
        assert_eq!(links(&world), ["up", "down"]);
        world.faults.mend();
        set_vif(&world.site, &link(1, 1, true)).unwrap();
        assert!(world.switch.all_up());
        destroyed(&world);
    }

    #[test]
    fn a_guest_without_ports_is_changed_for_its_next_start() {
        let world = World::running();
        save::save(&world.site, &of(1)).unwrap();
        remove_vif(&world.site, &place(1, 0)).unwrap();
        set_vif(&world.site, &link(1, 1, false)).unwrap();
        save::restore(&world.site, &of(1)).unwrap();
        assert_eq!(world.switch.ports(), ["vale0:g1-1"]);
        assert!(!world.switch.all_up());
        destroyed(&world);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let world = World::running();
        let gone = remove_vif(&world.site, &place(3, 0)).unwrap_err();
        assert_eq!(gone.code, Code::NoSuchGuest);
        let devid = remove_vif(&world.site, &place(1, 2)).unwrap_err();
        assert!(devid.message.starts_with("devid 2: guest"), "{devid}");
        let mut earlier = place(1, 0);
        earlier.domid = Some(9);
        let another = remove_vif(&world.site, &earlier).unwrap_err();
        assert_eq!(another.code, Code::NoSuchGuest);
        assert!(another.message.ends_with("is domain 1 now"), "{another}");
        assert_eq!(links(&world), ["up", "up"]);
    }

    #[test]
    fn a_moving_guest_keeps_its_ports() {
        let world = World::new();
        migration::receive(&world.maker, &spec(1), 7).unwrap();
        let busy = remove_vif(&world.site, &place(1, 0)).unwrap_err();
        assert_eq!(busy.code, Code::Busy);
    }
}
