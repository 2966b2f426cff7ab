// SPDX-License-Identifier: Apache-2.0
//! Vifs that are connected before they have a port (docs/adr/0098-guest-pool.md).
use log::info;
use vale_proto::{GuestVif, PortId, PreconnectedVif};
use xenstore::Error;

use super::backend::Backend;
use super::phase::Phase;
use super::vif::{Vif, port_name};

impl Backend {
    /// Connects to a vif that has no port yet; one that valed follows already stays as it is.
    pub(super) fn add_preconnected(&mut self, guest: GuestVif, slots: u32) -> Result<(), Error> {
        if self.vifs.iter().any(|vif| vif.guest == guest) {
            return Ok(());
        }
        // No name of a port has a space.
        let token = format!("preconnected {}/{}", guest.domid, guest.devid);
        self.follow(Vif::new(None, token, self.domain, guest, slots))
    }

    /// Gives a port to a preconnected vif. False if no such vif suits: the port then gets a vif of
    /// its own.
    pub(super) fn take_over(
        &mut self,
        port: &PortId,
        guest: GuestVif,
        slots: u32,
    ) -> Result<bool, Error> {
        let mut vifs = self.vifs.iter();
        let Some(index) = vifs.position(|vif| vif.is_preconnected() && vif.guest == guest) else {
            return Ok(false);
        };
        if !suits(&self.vifs[index], slots) {
            return self.leave_preconnected(index).map(|()| false);
        }
        if let Some(mut rings) = self.vifs[index].rehome(port.clone()) {
            rings.discard();
            let GuestVif { domid, devid, .. } = guest;
            let name = port_name(port);
            info!("{name}: takes the preconnected vif {devid} of domain {domid} over");
            // Without its port, the vif goes by the command that follows the port's removal.
            self.plug(index, Some(rings));
        }
        Ok(true)
    }

    /// Leaves the preconnected vifs of a domain.
    pub(super) fn remove_preconnected(&mut self, domid: u16) -> Result<(), Error> {
        let is_meant = |vif: &Vif| vif.is_preconnected() && vif.guest.domid == domid;
        while let Some(index) = self.vifs.iter().position(is_meant) {
            self.leave_preconnected(index)?;
        }
        Ok(())
    }

    fn leave_preconnected(&mut self, index: usize) -> Result<(), Error> {
        self.plug(index, None);
        self.leave(index)
    }

    /// Forgets the preconnected vifs of domains that are gone; a port stays until it is removed.
    pub(super) fn forget_dead(&mut self) {
        self.vifs
            .retain(|vif| !vif.is_preconnected() || vif.phase != Phase::Gone);
    }

    pub(super) fn list_preconnected(&self) -> Vec<PreconnectedVif> {
        let preconnected = self.vifs.iter().filter(|vif| vif.is_preconnected());
        let info = |vif: &Vif| PreconnectedVif {
            domid: vif.guest.domid,
            devid: vif.guest.devid,
            connected: vif.rings.is_some(),
        };
        preconnected.map(info).collect()
    }
}

/// True if a port can have the rings of a preconnected vif, those that the guest has yet to make included.
fn suits(vif: &Vif, slots: u32) -> bool {
    vif.slots == slots && !vif.phase.is_final() && vif.phase != Phase::Waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preconnected(phase: Phase) -> Vif {
        let guest = GuestVif {
            domid: 7,
            devid: 0,
            netback: false,
        };
        let mut vif = Vif::new(None, "preconnected 7/0".into(), 0, guest, 256);
        vif.phase = phase;
        vif
    }

    #[test]
    fn a_port_takes_over_what_is_as_it_asks() {
        for phase in [Phase::New, Phase::InitWait, Phase::Connected] {
            assert!(suits(&preconnected(phase), 256));
            assert!(!suits(&preconnected(phase), 512));
        }
        for phase in [Phase::Refused, Phase::Waiting, Phase::Gone] {
            assert!(!suits(&preconnected(phase), 256), "{phase:?}");
        }
    }

    #[test]
    fn a_vif_gets_a_port_and_keeps_the_token_of_its_watch() {
        let mut vif = preconnected(Phase::Connected);
        assert!(vif.is_preconnected());
        assert!(vif.rehome("vale0:a".parse().unwrap()).is_none());
        assert!(!vif.is_preconnected());
        assert_eq!(
            (vif.name().as_str(), vif.token.as_str()),
            ("vale0:a", "preconnected 7/0")
        );
    }
}
