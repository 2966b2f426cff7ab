// SPDX-License-Identifier: Apache-2.0
//! Vifs that guests of the pool have from the start, connected and preconnected until they get an address
//! (docs/adr/0098-guest-pool.md).

use crate::base::error::Result;
use crate::host::{Domain, nics};
use crate::preconnected::MTU;
use crate::site::Site;
use crate::spec::Vif;
use crate::store::Change;

/// Lets the switch connect to the preconnected vifs of a guest for the pool.
pub fn add_preconnected(site: &Site, domain: &Domain) -> Result<()> {
    let (domid, preconnected) = (domain.domid, domain.preconnected);
    let mut devids = 0..preconnected.vifs;
    devids.try_for_each(|devid| {
        site.switch
            .add_preconnected(domid, devid, preconnected.slots)
    })
}

/// Keeps the preconnected vifs of netback from the guest that is about to run.
pub fn hide_nics(site: &Site, domain: &Domain) -> Result<()> {
    match domain.preconnected.nics {
        0 => Ok(()),
        _ => site.store.apply(&nics::hide(domain)),
    }
}

/// Takes the preconnected vifs that no port got from a taken guest, which gets their memory back.
pub fn remove_surplus(site: &Site, domain: &Domain) -> Result<()> {
    let used = domain.vifs.iter();
    let used = used
        .filter(|vif| domain.preconnected.has_vif(vif.devid))
        .count();
    match used < domain.preconnected.vifs as usize {
        true => remove_preconnected(site, domain),
        false => Ok(()),
    }
}

/// Takes all preconnected vifs from a guest; none is no error.
pub fn remove_preconnected(site: &Site, domain: &Domain) -> Result<()> {
    match domain.preconnected.vifs {
        0 => Ok(()),
        _ => site.switch.remove_preconnected(domain.domid),
    }
}

/// The changes to the store by which a paused guest finds the addresses of its preconnected vifs. The MTU
/// comes first: the guest looks at both when the address comes.
pub fn addresses(domain: &Domain) -> Vec<Change> {
    let vifs = domain.vifs.iter();
    let preconnected = vifs.filter(|vif| domain.preconnected.has_vif(vif.devid));
    let of_switch = preconnected.flat_map(|vif| address(domain.domid, vif));
    of_switch.chain(nics::addresses(domain)).collect()
}

fn address(domid: u16, vif: &Vif) -> impl Iterator<Item = Change> {
    let folder = format!("/local/domain/{domid}/device/vale/{}", vif.devid);
    let mtu = (vif.mtu != MTU).then(|| Change::write(format!("{folder}/mtu"), vif.mtu.to_string()));
    let mac = Change::write(format!("{folder}/mac"), vif.mac.to_string());
    mtu.into_iter().chain([mac])
}

#[cfg(test)]
mod tests {
    use crate::base::error::Code;
    use crate::lifecycle::{destroy, rejoin, save};
    use crate::preconnected::Preconnected;
    use crate::spec::Spec;
    use crate::testing::{World, good, nic, of, pool_entry, spec, uuid};

    fn preconnected(vifs: u32) -> Preconnected {
        Preconnected {
            vifs,
            ..Preconnected::default()
        }
    }

    /// A world whose pool has two guests with `vifs` preconnected vifs each.
    fn filled(vifs: u32) -> World {
        let world = World::with_pool(vec![pool_entry(2, preconnected(vifs))]);
        while world.maker.fill_pool_by_one().unwrap() {}
        world
    }

    /// A guest with two vifs that preconnected ones can become.
    fn usual(n: u16) -> Spec {
        let mut spec = spec(n);
        spec.vifs.iter_mut().for_each(|vif| vif.slots = 256);
        spec
    }

    fn mac(world: &World, domid: u16, devid: u32) -> Option<String> {
        let path = format!("/local/domain/{domid}/device/vale/{devid}/mac");
        world.store.value(&path)
    }

    fn emptied(world: &World) {
        for guest in world.site.table.pooled() {
            destroy::evict(&world.site, &guest).unwrap();
        }
        assert_eq!(world.remains(), Vec::<String>::new());
    }

    #[test]
    fn ports_take_over_preconnected_vifs() {
        let world = filled(2);
        assert_eq!(
            world.switch.preconnected_vifs(),
            [(1, 0), (1, 1), (2, 0), (2, 1)]
        );
        assert_eq!(world.switch.ports(), Vec::<String>::new());
        world.faults.take();
        let mut asked = usual(1);
        asked.vifs[1].mtu = 1400;
        let domid = world.create(&asked).unwrap().domid;
        assert!(domid <= 2);
        assert_eq!(mac(&world, domid, 0).unwrap(), "02:00:00:00:01:00");
        let mtu = format!("/local/domain/{domid}/device/vale/1/mtu");
        assert_eq!(world.store.value(&mtu).unwrap(), "1400");
        assert_eq!(world.switch.preconnected_vifs().len(), 2);
        assert!(world.switch.all_up());
        let calls = world.faults.take();
        assert!(
            !calls.contains(&"switch.remove_preconnected".to_owned()),
            "{calls:?}"
        );
        world.destroy(&uuid(1)).unwrap();
        emptied(&world);
    }

    #[test]
    fn other_counts_of_vifs_are_made_up_for() {
        for (vifs, left) in [(1, 1), (3, 3)] {
            let world = filled(vifs);
            let domid = world.create(&usual(1)).unwrap().domid;
            assert!(domid <= 2);
            assert_eq!(world.switch.ports(), ["vale0:g1-0", "vale0:g1-1"]);
            assert_eq!(mac(&world, domid, 0).unwrap(), "02:00:00:00:01:00");
            // The host makes the second vif if it was not preconnected.
            assert_eq!(mac(&world, domid, 1).is_some(), vifs > 1);
            assert_eq!(
                world.switch.preconnected_vifs().len(),
                left,
                "of the other one"
            );
            world.destroy(&uuid(1)).unwrap();
            emptied(&world);
        }
    }

    #[test]
    fn the_guest_that_is_nearest_is_taken() {
        let world = World::with_pool(
            (0..3)
                .map(|vifs| pool_entry(1, preconnected(vifs)))
                .collect(),
        );
        while world.maker.fill_pool_by_one().unwrap() {}
        let preconnected_of = |n| {
            world
                .site
                .table
                .get(&uuid(n))
                .unwrap()
                .domain
                .preconnected
                .vifs
        };
        let mut asked = usual(1);
        asked.vifs.clear();
        world.create(&asked).unwrap();
        assert_eq!(preconnected_of(1), 0);
        world.create(&usual(2)).unwrap();
        assert_eq!(preconnected_of(2), 2);
        asked = usual(3);
        asked.vifs.pop();
        world.create(&asked).unwrap();
        assert_eq!(preconnected_of(3), 1);
    }

    #[test]
    fn a_vif_of_netback_with_the_number_of_a_preconnected_one_needs_a_new_guest() {
        let world = filled(1);
        let mut asked = usual(1);
        asked.vifs.clear();
        asked.nics = vec![nic(0)];
        assert_eq!(world.create(&asked).unwrap().domid, 3);
    }

    #[test]
    fn a_step_that_fails_leaves_nothing() {
        for step in [
            "host.claim",
            "host.start",
            "store.spec",
            "switch.add vale0:g1-1",
            "switch.remove_preconnected",
        ] {
            let world = filled(3);
            world.faults.fail(step);
            let error = world.create(&usual(1)).err().unwrap();
            assert!(error.message.contains("injected"), "{step}: {error}");
            world.faults.mend();
            if step == "switch.remove_preconnected" {
                // So did its undoing.
                assert_eq!(world.info(&uuid(1)).unwrap().state, "error");
                world.destroy(&uuid(1)).unwrap();
            }
            assert_eq!(world.site.table.pooled().len(), 1, "{step}");
            emptied(&world);
        }
    }

    #[test]
    fn a_guest_for_the_pool_that_fails_leaves_nothing() {
        for step in ["switch.add_preconnected", "host.spawn", "host.pause"] {
            let world = World::with_pool(filled(2).maker.pool.entries.clone());
            world.faults.fail(step);
            world.maker.fill_pool_by_one().unwrap_err();
            assert_eq!(world.remains(), Vec::<String>::new(), "{step}");
        }
    }

    #[test]
    fn a_half_taken_guest_is_undone_after_a_restart() {
        let world = filled(2);
        let (guest, taken) = world.site.table.take(&usual(1), 0, None).unwrap().unwrap();
        let partial = guest.record(crate::guest::record::Phase::Partial);
        assert_eq!(partial.preconnected.vifs, 2);
        world.site.disk.records.save(&partial).unwrap();
        let domid = taken.domain.domid;
        drop((guest, taken));
        let world = world.restart();
        assert!(
            world
                .switch
                .preconnected_vifs()
                .iter()
                .all(|vif| vif.0 != domid)
        );
        assert_eq!(world.site.table.pooled().len(), 1);
        emptied(&world);
    }

    #[test]
    fn a_pool_whose_vifs_the_switch_has_lost_is_made_anew() {
        let world = filled(1);
        rejoin::rejoin(&world.site);
        assert_eq!(world.site.table.pooled().len(), 2);
        world.switch.clear();
        rejoin::rejoin(&world.site);
        assert!(world.site.table.pooled().is_empty());
        assert_eq!(world.remains(), Vec::<String>::new());
        while world.maker.fill_pool_by_one().unwrap() {}
        assert_eq!(world.switch.preconnected_vifs().len(), 2);
    }

    #[test]
    fn a_restored_guest_has_no_preconnected_vifs() {
        let world = filled(2);
        world.create(&usual(1)).unwrap();
        save::save(&world.site, &of(1)).unwrap();
        save::restore(&world.site, &of(1)).unwrap();
        assert_eq!(
            world
                .site
                .table
                .get(&uuid(1))
                .unwrap()
                .domain
                .preconnected
                .vifs,
            0
        );
    }

    #[test]
    fn too_large_a_guest_makes_the_pool_give_way() {
        let world = filled(1);
        let mut large = usual(1);
        large.memory_mib = good(60);
        world.create(&large).unwrap();
        assert!(world.switch.preconnected_vifs().is_empty());
        assert_eq!(
            world.maker.fill_pool_by_one().unwrap_err().code,
            Code::NoMemory
        );
    }

    #[test]
    fn vifs_of_netback_get_their_bridge_and_address() {
        let nics = Preconnected {
            nics: 1,
            ..Preconnected::default()
        };
        let world = World::with_pool(vec![pool_entry(1, nics)]);
        assert!(world.maker.fill_pool_by_one().unwrap());
        let status = "/local/domain/0/backend/vif/1/0/hotplug-status";
        assert_eq!(world.store.value(status).unwrap(), "connected");
        // Another guest is made for other vifs.
        assert_eq!(world.create(&usual(1)).unwrap().domid, 2);
        let mut asked = usual(2);
        asked.vifs.clear();
        asked.nics = vec![nic(0)];
        assert_eq!(world.create(&asked).unwrap().domid, 1);
        let value = |path: &str| world.store.value(path).unwrap();
        assert_eq!(value("/local/domain/0/backend/vif/1/0/bridge"), "br0");
        assert_eq!(
            value("/local/domain/1/device/vif/0/mac"),
            "02:00:00:00:ff:00"
        );
        assert_eq!(value("/local/domain/1/name"), asked.uuid.as_str());
    }
}
