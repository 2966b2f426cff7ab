// SPDX-License-Identifier: Apache-2.0
//! How other elements find flows of a rewriter.
use alloc::rc::Rc;
use core::cell::RefCell;

use click_wire::ipv4;

use super::kind::Kind;
use super::rewriter::Rewriter;
use crate::flows::{At, FlowId, FlowTable};

/// A rewriter's flows, as other elements look them up.
#[derive(Clone)]
pub struct FlowLookup {
    pub kind: Kind,
    first_map: u16,
    pub flows: Rc<RefCell<FlowTable>>,
}

impl FlowLookup {
    /// The flow of a packet of `protocol` with this key.
    pub fn find(&self, table: &FlowTable, protocol: u8, id: &FlowId) -> Option<At> {
        let id = match (self.kind, protocol) {
            (Kind::Ip, ipv4::TCP | ipv4::UDP) | (Kind::Ping, ipv4::ICMP) => *id,
            (Kind::Ip | Kind::Ping, _) => return None,
            (Kind::Address | Kind::Pair, _) => FlowId {
                sport: 0,
                dport: 0,
                ..*id
            },
            (Kind::Tcp | Kind::Udp, _) => *id,
        };
        let map = self.kind.map(self.first_map, protocol);
        let hash = table.hash(&self.kind.opening(id), map);
        let at = self.kind.find(table, hash, &id, map)?;
        let own = table.flow(at).protocol;
        (own == 0 || own == protocol).then_some(at)
    }
}

impl Rewriter {
    /// The look-up of our flows for other elements.
    pub fn flow_lookup(&self) -> FlowLookup {
        FlowLookup {
            kind: self.kind,
            first_map: self.first_map,
            flows: Rc::clone(&self.flows),
        }
    }
}
