// SPDX-License-Identifier: Apache-2.0
//! Rules that the switch applies on behalf of a port's guest (docs/adr/0083-offloaded-rules.md).
use std::time::{SystemTime, UNIX_EPOCH};

use clickos_offload::{Action, Rule, Targets, View, first};
use vale_proto::{OffloadInfo, OffloadRule, Owner, PortName, RuleHits, SwitchName};

use crate::frame::HEAD;
use crate::frame::tx_frame::TxFrame;

const _: () = assert!(HEAD >= clickos_offload::HEAD);

/// The table of one owner.
pub struct OffloadTable {
    version: u64,
    epoch: u64,
    enabled: bool,
    rules: Vec<Rule>,
    hits: Vec<u64>,
}

impl OffloadTable {
    pub fn new(version: u64, rules: &[OffloadRule]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            version,
            epoch: now.map_or(0, |now| now.as_nanos() as u64),
            enabled: true,
            rules: rules.iter().map(|rule| rule.0).collect(),
            hits: vec![0; rules.len()],
        }
    }

    pub fn info(&self, switch: &SwitchName, port: &PortName, owner: Owner) -> OffloadInfo {
        let rules = self
            .rules
            .iter()
            .zip(&self.hits)
            .map(|(rule, hits)| RuleHits {
                rule: OffloadRule(*rule),
                hits: *hits,
            });
        OffloadInfo {
            switch: switch.clone(),
            port: port.clone(),
            owner,
            version: self.version,
            epoch: self.epoch,
            enabled: self.enabled,
            rules: rules.collect(),
        }
    }
}

/// A packet that a rule sends to another station.
#[derive(Clone, Copy)]
pub struct RedirectTarget {
    pub view: View,
    rule: (usize, usize),
}

/// The verdict on a packet.
pub enum OffloadVerdict {
    Guest,
    Drop,
    /// The rule counts it after the packet has changed.
    Redirect(RedirectTarget),
}

/// The tables of a port, in the order of their verdicts.
#[derive(Default)]
pub struct OffloadTables {
    tables: [Option<OffloadTable>; 2],
}

impl OffloadTables {
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(Option::is_none)
    }

    pub fn table(&mut self, owner: Owner) -> &mut Option<OffloadTable> {
        &mut self.tables[owner as usize]
    }

    /// Exchanges the table of an owner for `new`, which gets the old one. A table stays disabled.
    pub fn exchange(&mut self, owner: Owner, new: &mut Option<OffloadTable>) {
        let place = self.table(owner);
        if let (Some(old), Some(new)) = (&place, &mut *new) {
            new.enabled = old.enabled;
        }
        std::mem::swap(place, new);
    }

    /// The epoch of an owner's table, or 0.
    pub fn epoch(&self, owner: Owner) -> u64 {
        let table = &self.tables[owner as usize];
        table.as_ref().map_or(0, |table| table.epoch)
    }

    /// False if the owner has no table.
    pub fn enable(&mut self, owner: Owner, enabled: bool) -> bool {
        let table = self.table(owner).as_mut();
        table.map(|table| table.enabled = enabled).is_some()
    }

    pub fn infos(&self, switch: &SwitchName, port: &PortName) -> Vec<OffloadInfo> {
        let owned = [Owner::Operator, Owner::Guest]
            .into_iter()
            .zip(&self.tables);
        let infos = owned.filter_map(|(owner, t)| Some(t.as_ref()?.info(switch, port, owner)));
        infos.collect()
    }

    /// The first table with a rule for the packet, and the number of the rule.
    fn find(&self, view: &View) -> Option<(&OffloadTable, usize, usize)> {
        let mut tables = self.tables.iter().enumerate();
        tables.find_map(|(n, table)| {
            let table = table.as_ref().filter(|table| table.enabled)?;
            Some((table, n, first(&table.rules, view)?))
        })
    }

    /// Decides a packet to the guest, and counts it.
    pub fn decide(&mut self, out: &TxFrame<'_>) -> OffloadVerdict {
        let view = View::of(out.head, out.len());
        let found = view.and_then(|view| Some((view, self.find(&view)?)));
        let Some((view, (table, n, rule))) = found else {
            return OffloadVerdict::Guest;
        };
        let (verdict, at) = match table.rules[rule].action {
            Action::Pass => (OffloadVerdict::Guest, (n, rule)),
            Action::Drop => (OffloadVerdict::Drop, (n, rule)),
            Action::Redirect(_) => {
                let rule = (n, rule);
                return OffloadVerdict::Redirect(RedirectTarget { view, rule });
            }
        };
        self.count(at, out);
        verdict
    }

    /// The stations among which a rule chooses.
    pub fn targets(&self, found: &RedirectTarget) -> Option<&Targets> {
        let (table, rule) = found.rule;
        match &self.tables[table].as_ref()?.rules.get(rule)?.action {
            Action::Redirect(targets) => Some(targets),
            _ => None,
        }
    }

    /// Counts a redirected packet.
    pub fn count_redirected(&mut self, target: &RedirectTarget, out: &TxFrame<'_>) {
        self.count(target.rule, out);
    }

    fn count(&mut self, (table, rule): (usize, usize), out: &TxFrame<'_>) {
        if let Some(table) = &mut self.tables[table] {
            table.hits[rule] += out.count() as u64;
        }
    }

    /// The rule that decides a packet, which it does not count.
    pub fn explain(&self, view: &View) -> Option<Rule> {
        self.find(view).map(|(table, _, rule)| table.rules[rule])
    }
}
