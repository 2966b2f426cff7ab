// SPDX-License-Identifier: Apache-2.0
//! The properties by which a guest of the pool suits a request.

use crate::host::Domain;
use crate::preconnected::Preconnected;
use crate::spec::{Spec, Vif};

/// The properties of a guest of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    pub image_sha256: String,
    pub memory_mib: u32,
    pub preconnected: Preconnected,
}

/// How much a creation has to add to a guest of the pool; the least is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Distance {
    /// Vifs to be made.
    missing: usize,
    /// Preconnected vifs that no port gets.
    surplus: usize,
}

impl Shape {
    pub fn of_domain(domain: &Domain) -> Self {
        Self {
            image_sha256: domain.image_sha256.clone(),
            memory_mib: domain.memory_mib,
            preconnected: domain.preconnected,
        }
    }

    /// The shape of a guest of the pool that lacks nothing of the requested one, or else no vif.
    pub fn for_spec(spec: &Spec) -> Self {
        let bare_preconnected = Preconnected::default();
        let preconnected = Preconnected {
            vifs: spec.vifs.len() as u32,
            slots: spec
                .vifs
                .first()
                .map_or(bare_preconnected.slots, |vif| vif.slots),
            nics: spec.nics.len() as u32,
        };
        let bare = Self {
            image_sha256: spec.image_sha256.clone(),
            memory_mib: spec.memory_mib.get(),
            preconnected: bare_preconnected,
        };
        let full = Self {
            preconnected,
            ..bare.clone()
        };
        let lacks_nothing = Some(Distance {
            missing: 0,
            surplus: 0,
        });
        match full.distance(spec) == lacks_nothing {
            true => full,
            false => bare,
        }
    }

    /// None if no guest of this shape can become the requested one.
    pub fn distance(&self, spec: &Spec) -> Option<Distance> {
        if spec.kernel.is_some() || spec.vcpus.get() > 1 {
            return None; // It waits for no configuration, or has one VCPU.
        }
        let is_like =
            self.image_sha256 == spec.image_sha256 && self.memory_mib == spec.memory_mib.get();
        if !is_like || self.is_at_odds(spec) {
            return None;
        }
        let preconnected = &self.preconnected;
        let used = spec
            .vifs
            .iter()
            .filter(|vif| preconnected.has_vif(vif.devid));
        let used_nics = spec
            .nics
            .iter()
            .filter(|nic| preconnected.has_nic(nic.devid));
        let (used, used_nics) = (used.count(), used_nics.count());
        let missing = spec.vifs.len() + spec.nics.len() - used - used_nics;
        let surplus = preconnected.vifs as usize - used;
        // A guest keeps its vifs of netback. It may lack the memory for rings to spare next to new
        // ones.
        let is_possible = used_nics == preconnected.nics as usize && (missing == 0 || surplus == 0);
        is_possible.then_some(Distance { missing, surplus })
    }

    /// True if a preconnected vif has the number of another device: a guest has one device of a number. A preconnected
    /// vif has rings for frames of one slot.
    fn is_at_odds(&self, spec: &Spec) -> bool {
        let preconnected = &self.preconnected;
        let is_other = |vif: &Vif| {
            let differs = vif.slots != preconnected.slots || vif.mtu > vale_proto::SHORT_MTU;
            preconnected.has_nic(vif.devid) || preconnected.has_vif(vif.devid) && differs
        };
        let is_vif = |devid| preconnected.has_vif(devid);
        spec.vifs.iter().any(is_other) || spec.nics.iter().any(|nic| is_vif(nic.devid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{good, linux, nic, spec, vif};

    /// The vifs to be made and those to spare, of a guest with preconnected vifs of switch and netback.
    fn distance(vifs: u32, nics: u32, spec: &Spec) -> Option<(usize, usize)> {
        let shape = Shape {
            image_sha256: spec.image_sha256.clone(),
            memory_mib: 8,
            preconnected: Preconnected {
                vifs,
                slots: 64,
                nics,
            },
        };
        let found = shape.distance(spec);
        found.map(|found| (found.missing, found.surplus))
    }

    /// A guest with vifs of these devids.
    fn asked(devids: &[u32]) -> Spec {
        let mut asked = spec(1);
        asked.vifs = devids.iter().map(|devid| vif(1, *devid)).collect();
        asked
    }

    #[test]
    fn a_spec_has_a_shape_that_lacks_nothing_or_no_vif() {
        let preconnected = |spec: &Spec| {
            let Preconnected { vifs, nics, .. } = Shape::for_spec(spec).preconnected;
            (vifs, nics)
        };
        assert_eq!(preconnected(&asked(&[])), (0, 0));
        assert_eq!(preconnected(&asked(&[0, 1])), (2, 0));
        assert_eq!(preconnected(&asked(&[1, 2])), (0, 0), "0 is missing");
        let mut other = asked(&[0, 1]);
        other.vifs[1].slots = 512;
        assert_eq!(preconnected(&other), (0, 0));
        other = asked(&[0]);
        other.vifs[0].mtu = 9000;
        assert_eq!(preconnected(&other), (0, 0));
        other = asked(&[0]);
        other.nics = vec![nic(1)];
        assert_eq!(preconnected(&other), (1, 1));
    }

    #[test]
    fn vifs_are_used_where_they_are() {
        assert_eq!(distance(0, 0, &asked(&[])), Some((0, 0)));
        assert_eq!(distance(2, 0, &asked(&[0])), Some((0, 1)));
        assert_eq!(distance(1, 0, &asked(&[0, 1])), Some((1, 0)));
        assert_eq!(distance(2, 0, &asked(&[1, 5])), None);
        assert_eq!(distance(3, 0, &asked(&[2])), Some((0, 2)));
    }

    #[test]
    fn what_no_preconnected_vif_can_become_needs_another_guest() {
        let mut other = asked(&[0, 1]);
        other.vifs[1].slots = 512;
        assert_eq!(distance(1, 0, &other), Some((1, 0)));
        assert_eq!(distance(2, 0, &other), None);
        other = asked(&[0, 1]);
        other.vifs[1].mtu = 9000;
        assert_eq!(distance(1, 0, &other), Some((1, 0)));
        assert_eq!(distance(2, 0, &other), None);
        other = asked(&[1]);
        other.nics = vec![nic(0)];
        assert_eq!(distance(0, 0, &other), Some((2, 0)));
        assert_eq!(distance(1, 0, &other), None);
        other = asked(&[]);
        other.memory_mib = good(9);
        assert_eq!(distance(0, 0, &other), None);
        other.memory_mib = good(8);
        assert_eq!(distance(0, 0, &other), Some((0, 0)));
        other.vcpus = good(2);
        assert_eq!(distance(0, 0, &other), None);
        assert_eq!(distance(2, 0, &linux(1)), None);
    }

    #[test]
    fn vifs_of_netback_are_used_up_or_not_taken() {
        let mut both = asked(&[0]);
        both.nics = vec![nic(1)];
        assert_eq!(distance(1, 1, &both), Some((0, 0)));
        assert_eq!(distance(0, 0, &both), Some((2, 0)));
        assert_eq!(distance(1, 2, &both), None);
        assert_eq!(distance(0, 1, &both), None, "0 is a vif of the switch");
        both.vifs.clear();
        assert_eq!(distance(1, 1, &both), Some((0, 1)));
    }
}
