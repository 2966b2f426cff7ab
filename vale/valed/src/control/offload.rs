// SPDX-License-Identifier: Apache-2.0
//! The verbs about offload rules.
use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{
    OffloadChange, OffloadEnable, OffloadId, OffloadList, OffloadSet, Offloads, Owner, PortId,
};

use super::{Control, no_such_port, stopped};
use crate::policy::offload_rules::OffloadTable;
use crate::workers::TableRefusal;

impl Control {
    pub(super) fn offload_set(
        &self,
        peer: &Peer,
        set: OffloadSet,
    ) -> Result<OffloadChange, ApiError> {
        let table = OffloadTable::new(set.version, &set.rules);
        let (OffloadSet { switch, port, .. }, rules) = (&set, set.rules.len());
        // A guest may change its table ten times a second.
        if set.owner == Owner::Operator {
            info!(
                "{switch}:{port}: {rules} rules decide, set by uid {}",
                peer.uid
            );
        }
        let (switch, port) = (set.switch, set.port);
        self.change(
            PortId { switch, port },
            set.owner,
            Some(table),
            set.replaces,
        )
    }

    pub(super) fn offload_remove(
        &self,
        _: &Peer,
        id: OffloadId,
    ) -> Result<OffloadChange, ApiError> {
        let (switch, port) = (id.switch, id.port);
        match self.change(PortId { switch, port }, id.owner, None, None) {
            Err(e) if e.code == "no-such-port" => Ok(OffloadChange::default()),
            done => done,
        }
    }

    fn change(
        &self,
        id: PortId,
        owner: Owner,
        table: Option<OffloadTable>,
        replaces: Option<u64>,
    ) -> Result<OffloadChange, ApiError> {
        let changed = self.forwarder.set_table(&id, owner, table, replaces);
        let changed = changed.ok_or_else(stopped)?;
        changed.map_err(|refusal| match refusal {
            TableRefusal::NoSuchPort => no_such_port(&id),
            TableRefusal::Changed(epoch) => {
                let PortId { switch, port } = &id;
                let text = format!("{switch}:{port}: the table has epoch {epoch}; list it again");
                ApiError::new("changed", text)
            }
        })
    }

    pub(super) fn offload_enable(
        &self,
        peer: &Peer,
        enable: OffloadEnable,
    ) -> Result<Done, ApiError> {
        let OffloadEnable {
            switch,
            port,
            owner,
            enabled,
        } = enable;
        let id = PortId { switch, port };
        let found = self.forwarder.enable_offload_table(&id, owner, enabled);
        let PortId { switch, port } = &id;
        if !found.ok_or_else(stopped)? {
            let text = format!("{switch}:{port}: no offload rules of this owner; set them first");
            return Err(ApiError::new("no-such-offload", text));
        }
        info!(
            "{switch}:{port}: rules enabled: {enabled}, by uid {}",
            peer.uid
        );
        Ok(Done {})
    }

    pub(super) fn offload_list(&self, _: &Peer, list: OffloadList) -> Result<Offloads, ApiError> {
        let offloads = self.forwarder.tables(list.switch.as_ref());
        let offloads = offloads.ok_or_else(stopped)?;
        Ok(Offloads { offloads })
    }
}
