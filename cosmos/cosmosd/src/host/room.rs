// SPDX-License-Identifier: Apache-2.0
//! What a domain of Xen needs, and whether the host has it: refused before anything is built.

use super::Domain;
use crate::base::error::{Code, Error, Result};
use crate::config::MAX_DOMID;
use crate::spec::Vif;

/// Memory of Xen and libxl for a domain besides its own: tables, shadow, grant frames.
const OVERHEAD_KIB: u64 = 2048;
const PAGE_BYTES: u64 = 4096;
/// Bytes of a slot in a ring of the switch: its buffer and its descriptor (docs/rings.md).
const SLOT_BYTES: u64 = 2048 + 8;
/// Slots of netback's two rings, a grant each.
const NETBACK_GRANTS: u64 = 2 * 256;
/// A domain's grants: 64 frames of 512 entries, libxl's default.
const MAX_GRANTS: u64 = 64 * 512;
/// The event channels Linux has in dom0 (FIFO ABI), without those of its own.
const MAX_CHANNELS: u64 = (1 << 17) - 1024;
/// Event channels of a domain without devices: the store's and the console's.
const BASE_CHANNELS: u64 = 2;

/// Free resources of the host.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub free_kib: u64,
    /// Event channels of dom0 in use by guests.
    pub channels: u64,
}

impl Room {
    /// The room after a domain has gone.
    #[cfg_attr(not(any(feature = "xen", test)), expect(dead_code))]
    pub fn without(self, gone: &Domain) -> Self {
        Self {
            free_kib: self.free_kib + memory_kib(gone) + OVERHEAD_KIB,
            channels: self.channels.saturating_sub(channels(gone)),
        }
    }
}

/// Refuses a domain whose devices no guest of its size can have.
pub fn check_devices(domain: &Domain) -> Result<()> {
    let preconnected = u64::from(domain.preconnected.vifs) * ring_pages(domain.preconnected.slots);
    let pages = preconnected
        + made_vifs(domain)
            .map(|vif| ring_pages(vif.slots))
            .sum::<u64>();
    let (rings_kib, memory_kib) = (pages * PAGE_BYTES / 1024, memory_kib(domain));
    if rings_kib > memory_kib / 2 {
        let message = format!(
            "the rings of its vifs take {rings_kib} KiB, more than half of its {memory_kib} KiB; \
             give it fewer slots or more memory"
        );
        return Err(Error::new(Code::NoMemory, message));
    }
    let grants = pages + NETBACK_GRANTS * nics(domain);
    if grants > MAX_GRANTS {
        let message = format!("its vifs need {grants} grants, a domain has {MAX_GRANTS}");
        return Err(Error::new(Code::TooMany, message));
    }
    Ok(())
}

/// Refuses a domain for which the host has not enough left.
pub fn check_room(domain: &Domain, room: Room) -> Result<()> {
    let (needed_kib, free_kib) = (memory_kib(domain) + OVERHEAD_KIB, room.free_kib);
    if needed_kib > free_kib {
        let message = format!("the domain needs {needed_kib} KiB, Xen has {free_kib} KiB free");
        return Err(Error::new(Code::NoMemory, message));
    }
    let channels = room.channels + channels(domain);
    if channels > MAX_CHANNELS {
        let message = format!("{channels} event channels, dom0 has {MAX_CHANNELS} for guests");
        return Err(Error::new(Code::TooMany, message));
    }
    Ok(())
}

/// The first id of a daemon that starts now. libxl refuses the id of a domain that ended less than
/// a minute ago. An earlier daemon counted from its own start.
pub fn first_domid(now_s: u64) -> u16 {
    const EACH_SECOND: u64 = 64;
    u16::try_from(1 + now_s % (u64::from(MAX_DOMID) / EACH_SECOND) * EACH_SECOND)
        .expect("below MAX_DOMID, which is a u16")
}

/// Event channels that dom0 has to a domain: one for a vif of the switch, two of netback.
pub fn channels(domain: &Domain) -> u64 {
    let vifs = u64::from(domain.preconnected.vifs) + made_vifs(domain).count() as u64;
    BASE_CHANNELS + vifs + 2 * nics(domain)
}

fn nics(domain: &Domain) -> u64 {
    let nics = domain.nics.iter();
    let made = nics.filter(|nic| !domain.preconnected.has_nic(nic.devid));
    u64::from(domain.preconnected.nics) + made.count() as u64
}

/// The vifs that were not preconnected before.
fn made_vifs(domain: &Domain) -> impl Iterator<Item = &Vif> {
    let vifs = domain.vifs.iter();
    vifs.filter(move |vif| !domain.preconnected.has_vif(vif.devid))
}

fn memory_kib(domain: &Domain) -> u64 {
    u64::from(domain.memory_mib) * 1024
}

/// Two rings of version 1, which a guest makes where version 2 does not fit, each with a page for its indices.
fn ring_pages(slots: u32) -> u64 {
    2 * ((u64::from(slots) * SLOT_BYTES).div_ceil(PAGE_BYTES) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{domain, nic};

    const PLENTY: Room = Room {
        free_kib: 1 << 20,
        channels: 0,
    };

    #[test]
    fn an_ordinary_guest_fits() {
        let mut domain = domain(1);
        domain.vifs.iter_mut().for_each(|vif| vif.slots = 256);
        domain.nics = vec![nic(2)];
        check_devices(&domain).unwrap();
        check_room(&domain, PLENTY).unwrap();
        assert_eq!(channels(&domain), 6);
        domain.preconnected.vifs = 1; // One of its vifs.
        check_devices(&domain).unwrap();
        assert_eq!(channels(&domain), 6);
        domain.preconnected.vifs = 4; // More than its vifs.
        assert_eq!(channels(&domain), 8);
        assert_eq!(check_devices(&domain).unwrap_err().code, Code::NoMemory);
    }

    #[test]
    fn a_domain_fits_in_the_place_of_one_of_its_size() {
        let mut domain = domain(1);
        let full = Room {
            free_kib: 0,
            channels: MAX_CHANNELS,
        };
        check_room(&domain, full).unwrap_err();
        let without = full.without(&domain);
        check_room(&domain, without).unwrap();
        domain.memory_mib += 1;
        let error = check_room(&domain, without).unwrap_err();
        assert_eq!(error.code, Code::NoMemory);
    }

    #[test]
    fn daemons_begin_at_different_domain_ids() {
        assert_eq!((first_domid(0), first_domid(1)), (1, 65));
        assert!((0..2000).all(|now_s| first_domid(now_s) <= MAX_DOMID - 64));
        assert!((1..60).all(|later_s| first_domid(500 + later_s) != first_domid(500)));
    }

    #[test]
    fn rings_that_fill_a_guest_are_refused() {
        let mut domain = domain(1);
        domain.vifs[0].slots = 2048;
        let error = check_devices(&domain).unwrap_err();
        assert_eq!(error.code, Code::NoMemory);
        assert!(
            error.message.contains("fewer slots or more memory"),
            "{error}"
        );
        domain.memory_mib = 32;
        check_devices(&domain).unwrap();
    }

    #[test]
    fn what_a_host_has_not_is_refused_with_numbers() {
        let mut domain = domain(1);
        let room = Room {
            free_kib: 10 * 1024 - 1,
            ..PLENTY
        };
        let error = check_room(&domain, room).unwrap_err();
        assert_eq!(
            error.message,
            "the domain needs 10240 KiB, Xen has 10239 KiB free"
        );
        let room = Room {
            channels: MAX_CHANNELS - 3,
            ..PLENTY
        };
        assert_eq!(check_room(&domain, room).unwrap_err().code, Code::TooMany);
        domain.memory_mib = 1 << 16;
        domain.nics = (0..65).map(nic).collect();
        assert_eq!(check_devices(&domain).unwrap_err().code, Code::TooMany);
    }
}
