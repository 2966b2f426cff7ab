// SPDX-License-Identifier: Apache-2.0
//! The verbs about vifs without a port.
use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{GuestVif, SilentAdd, SilentRemove, SilentVifs};

use super::{Control, NoArgs};
use crate::xen::Xen;

impl Control {
    pub(super) fn silent_add(&self, peer: &Peer, vif: SilentAdd) -> Result<Done, ApiError> {
        let named = |e| ApiError::bad_request(format!("silent-add: {e}"));
        vif.check().map_err(named)?;
        let SilentAdd {
            domid,
            devid,
            slots,
        } = vif;
        let guest = GuestVif {
            domid,
            devid,
            netback: false,
        };
        done(self.store("silent-add")?.add_silent(guest, slots))?;
        info!(
            "silent vif {devid} of domain {domid}: added by uid {}",
            peer.uid
        );
        Ok(Done {})
    }

    pub(super) fn silent_remove(&self, peer: &Peer, of: SilentRemove) -> Result<Done, ApiError> {
        // Without a store there is none.
        if let Some(xen) = &self.xen {
            done(xen.remove_silent(of.domid))?;
            info!(
                "silent vifs of domain {}: removed by uid {}",
                of.domid, peer.uid
            );
        }
        Ok(Done {})
    }

    pub(super) fn silent_list(&self, _: &Peer, _: NoArgs) -> Result<SilentVifs, ApiError> {
        let vifs = self.xen.as_ref().map_or(Some(Vec::new()), Xen::silent);
        vifs.map(|vifs| SilentVifs { vifs }).ok_or_else(lost)
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
