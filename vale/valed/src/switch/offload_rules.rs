// SPDX-License-Identifier: Apache-2.0
//! The offload rules of ports, and the packets that they redirect.
use clickos_offload::redirect;
use vale_proto::{Mac, OffloadInfo, Owner, PortName};

use super::{Switch, Verdict};
use crate::device::Buffers;
use crate::frame::key::FilterKey;
use crate::frame::tx_frame::TxFrame;
use crate::policy::offload_rules::{OffloadTable, OffloadTables, RedirectTarget};
use crate::port::{Delivery, Port};

impl Switch {
    /// Exchanges the table of an owner at a port for `new`, which gets the old one. False if there is no
    /// such port.
    pub fn swap_offload_table(
        &mut self,
        name: &PortName,
        owner: Owner,
        new: &mut Option<OffloadTable>,
    ) -> bool {
        let Some(port) = self.port_mut(name) else {
            return false;
        };
        let mut tables = port.offload_tables.take().unwrap_or_default();
        tables.exchange(owner, new);
        port.offload_tables = Some(tables).filter(|tables| !tables.is_empty());
        true
    }

    /// Enables or disables a table. False if the owner has no table.
    pub fn enable_offload_table(&mut self, name: &PortName, owner: Owner, enabled: bool) -> bool {
        let port = self.port_mut(name);
        let tables = port.and_then(|port| port.offload_tables.as_deref_mut());
        tables.is_some_and(|tables| tables.enable(owner, enabled))
    }

    /// The tables of this worker's ports.
    pub fn tables(&self) -> impl Iterator<Item = OffloadInfo> {
        let of = |port: &Port, tables: &OffloadTables| tables.infos(&self.name, &port.face.name);
        let ports = self.ports();
        let ports = ports.filter_map(|port| Some((port, port.offload_tables.as_deref()?)));
        ports.flat_map(move |(port, tables)| of(port, tables))
    }

    /// Sends a packet to the port at `index` on to another station, as if the guest sent it. The guest
    /// gets it if the switch cannot do that.
    #[cold]
    pub(super) fn redirect(
        &mut self,
        index: usize,
        found: &RedirectTarget,
        out: &mut TxFrame<'_>,
        buffers: &mut Buffers,
    ) -> Delivery {
        if self.rewrite(index, found, out).is_none() {
            let port = self.ports[index].as_mut();
            return port.map_or(Delivery::Ended, |port| port.deliver_admitted(out, buffers));
        }
        let mut seen = FilterKey::default();
        let verdict = self.verdict(index, None, out.head, &mut seen);
        let sent = verdict.and_then(|Verdict { ethernet, step, .. }| {
            let mut out = TxFrame {
                head: out.head,
                seen: &seen,
                from: index,
                redirected: true,
                label: None,
                payload: ethernet.payload,
                ..*out
            };
            self.enter(index, &ethernet, step, &mut out, buffers)
        });
        if let Err(dropped) = sent {
            self.drop_frame(index, dropped);
        }
        Delivery::Ended
    }

    /// Changes the headers of a packet that the switch can send on, and counts it.
    fn rewrite(
        &mut self,
        index: usize,
        found: &RedirectTarget,
        out: &mut TxFrame<'_>,
    ) -> Option<()> {
        let port = self.ports[index].as_deref()?;
        let mac = port
            .face
            .mac
            .filter(|mac| mac.0 == found.view.ether_destination)?;
        // The checksums that a network card would complete do not follow a changed address.
        let completes = out.offload.gso.is_some() || out.offload.checksum.is_some();
        (!completes).then_some(())?;
        let is_live = |station: Mac| {
            let owner = self.lookup.find(port.face.segment, station);
            let to = owner.or_else(|| self.station(port.face.segment, station, out.now));
            let to = to.filter(|to| *to != index);
            to.is_some_and(|to| {
                self.ports[to]
                    .as_deref()
                    .is_some_and(|port| port.face.is_live())
            })
        };
        let targets = *port.offload_tables.as_deref()?.targets(found)?;
        let mut targets = targets.for_flow(found.view.flow());
        let target = *targets.find(|target| is_live(Mac(target.mac)))?;
        redirect(out.head, &found.view, &target, mac.0).then_some(())?;
        let tables = self.ports[index].as_mut()?.offload_tables.as_deref_mut()?;
        tables.count_redirected(found, out);
        Some(())
    }
}
