// SPDX-License-Identifier: Apache-2.0
//! The verbs about vifs without a port.
use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{GuestVif, PreconnectAdd, PreconnectRemove, PreconnectedVifs};

use super::{Control, NoArgs};
use crate::xen::Xen;

impl Control {
    pub(super) fn preconnect_add(&self, peer: &Peer, vif: PreconnectAdd) -> Result<Done, ApiError> {
        let named = |e| ApiError::bad_request(format!("preconnect-add: {e}"));
        vif.check().map_err(named)?;
        let PreconnectAdd {
            domid,
            devid,
            slots,
        } = vif;
        let guest = GuestVif {
            domid,
            devid,
            netback: false,
        };
        done(self.store("preconnect-add")?.add_preconnected(guest, slots))?;
        info!(
            "preconnected vif {devid} of domain {domid}: added by uid {}",
            peer.uid
        );
        Ok(Done {})
    }

    pub(super) fn preconnect_remove(
        &self,
        peer: &Peer,
        of: PreconnectRemove,
    ) -> Result<Done, ApiError> {
        // Without a store there is none.
        if let Some(xen) = &self.xen {
            done(xen.remove_preconnected(of.domid))?;
            info!(
                "preconnected vifs of domain {}: removed by uid {}",
                of.domid, peer.uid
            );
        }
        Ok(Done {})
    }

    pub(super) fn preconnect_list(
        &self,
        _: &Peer,
        _: NoArgs,
    ) -> Result<PreconnectedVifs, ApiError> {
        let vifs = self
            .xen
            .as_ref()
            .map_or(Some(Vec::new()), Xen::preconnected);
        vifs.map(|vifs| PreconnectedVifs { vifs }).ok_or_else(lost)
    }

    fn store(&self, verb: &str) -> Result<&Xen, ApiError> {
        self.xen.as_ref().ok_or_else(|| {
            let text = format!("{verb}: valed has no xenstore in its configuration");
            ApiError::bad_request(text)
        })
    }
}

fn done(is_sent: bool) -> Result<(), ApiError> {
    is_sent.then_some(()).ok_or_else(lost)
}

fn lost() -> ApiError {
    ApiError::new("internal", "the Xen store is lost")
}
