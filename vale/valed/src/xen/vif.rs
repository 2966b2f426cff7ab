// SPDX-License-Identifier: Apache-2.0
//! A guest's vif: its port, its nodes in the store and its progress.
use vale_proto::{GuestVif, PortId};

use super::phase::Phase;
use crate::device::Device;
use control_socket::EventLimit;

/// Changes of a frontend's state that valed follows in a minute. A start or an end takes two.
pub(super) const CHANGES: u32 = 80;
/// Log lines about one vif in a minute.
const LOG_LINES_PER_MINUTE: u32 = 10;

/// A guest's vif.
pub(super) struct Vif {
    /// Its port; a preconnected vif has none yet.
    pub port: Option<PortId>,
    /// The token of its watch.
    pub token: String,
    /// The domain in which valed runs.
    pub backend: u16,
    pub guest: GuestVif,
    pub slots: u32,
    pub phase: Phase,
    /// The guest has shown its state once. Before, its domain may not exist yet.
    pub seen: bool,
    /// The rings of a preconnected vif; the worker of a port has those of other vifs.
    pub rings: Option<Box<dyn Device>>,
    /// The store reports changes of the frontend's state.
    pub watched: bool,
    pub changes: EventLimit,
    pub lines: EventLimit,
}

impl Vif {
    pub fn new(
        port: Option<PortId>,
        token: String,
        backend: u16,
        guest: GuestVif,
        slots: u32,
    ) -> Self {
        Self {
            port,
            token,
            backend,
            guest,
            slots,
            phase: Phase::New,
            seen: false,
            rings: None,
            watched: false,
            changes: EventLimit::new(CHANGES),
            lines: EventLimit::new(LOG_LINES_PER_MINUTE),
        }
    }

    pub fn is_preconnected(&self) -> bool {
        self.port.is_none()
    }

    /// True if the end of its domain matters.
    pub fn may_die(&self) -> bool {
        self.seen && self.phase != Phase::Gone
    }

    /// Gives a preconnected vif its port, and its rings to the caller. No count of its time before stays.
    pub fn rehome(&mut self, port: PortId) -> Option<Box<dyn Device>> {
        self.port = Some(port);
        (self.changes, self.lines) = (
            EventLimit::new(CHANGES),
            EventLimit::new(LOG_LINES_PER_MINUTE),
        );
        self.rings.take()
    }

    /// A key of the guest, or of netback in its place.
    pub fn frontend(&self, key: &str) -> String {
        let GuestVif { domid, devid, .. } = self.guest;
        match self.guest.netback {
            true => self.backend(&format!("netback/{key}")),
            false => format!("/local/domain/{domid}/device/vale/{devid}/{key}"),
        }
    }

    /// A key in the directory of the backend.
    pub fn backend(&self, key: &str) -> String {
        let GuestVif { domid, devid, .. } = self.guest;
        let class = if self.guest.netback { "vif" } else { "vale" };
        let own = self.backend;
        format!("/local/domain/{own}/backend/{class}/{domid}/{devid}/{key}")
    }

    /// A key that valed writes. The keys of a vif's backend are netback's, but for a directory.
    pub fn own(&self, key: &str) -> String {
        match self.guest.netback {
            true => self.backend(&format!("valed/{key}")),
            false => self.backend(key),
        }
    }

    /// Its name in the log.
    pub fn name(&self) -> String {
        self.port.as_ref().map_or("preconnected".into(), port_name)
    }
}

/// `vale0:port`.
pub(super) fn port_name(port: &PortId) -> String {
    format!("{}:{}", port.switch, port.port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vif(backend: u16, netback: bool) -> Vif {
        let port: PortId = "vale0:a".parse().unwrap();
        let guest = GuestVif {
            domid: 7,
            devid: 1,
            netback,
        };
        Vif::new(Some(port.clone()), port_name(&port), backend, guest, 64)
    }

    /// The toolstack adds a port before it makes the domain. Meanwhile another one may end.
    #[test]
    fn a_domain_that_is_to_come_is_not_gone() {
        let mut vif = vif(0, false);
        assert!(!vif.may_die());
        vif.seen = true;
        assert!(vif.may_die());
        vif.phase = Phase::Gone;
        assert!(!vif.may_die());
    }

    #[test]
    fn the_guest_writes_no_key_that_netback_hands_over() {
        let guest = "/local/domain/7/device/vale/1/state";
        let (vale, backend) = (vif(0, false), "/local/domain/0/backend/vale/7/1/state");
        assert_eq!(
            (vale.frontend("state"), vale.own("state")),
            (guest.into(), backend.into())
        );
        let (vif, backend) = (vif(0, true), "/local/domain/0/backend/vif/7/1");
        assert_eq!(vif.frontend("state"), format!("{backend}/netback/state"));
        assert_eq!(vif.own("state"), format!("{backend}/valed/state"));
        assert_eq!(vif.backend("frontend"), format!("{backend}/frontend"));
    }

    #[test]
    fn a_driver_domain_has_the_backends_of_its_own_directory() {
        let backend = "/local/domain/5/backend/vale/7/1/state";
        assert_eq!(vif(5, false).own("state"), backend);
    }
}
