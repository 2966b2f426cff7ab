// SPDX-License-Identifier: Apache-2.0
//! Decides frames by rules, and lets the switch decide them before they arrive.
//!
//! # Synopsis
//! `ClickOSOffload(DEVID [, RULE, ..., keyword ACTIVE])`: the rules are for frames of the device DEVID. The first RULE that
//! matches decides. A RULE is `ACTION [FIELD VALUE]...`. ACTION is `drop`, `pass`, or `redirect MAC [to ADDRESS]`, which
//! sends an IP packet from the device's address to another station. The fields are `src`, `dst` (address, CIDR or
//! range), `proto`, `tos`, `sport`, `dport` (`N` or `N-M`), `ip`, `ip6`, `ether-src`, `ether-dst` and `ether-type`. A
//! rule with `ip6` or an IPv6 address is for IPv6, others with such fields are for IPv4. With IPv6 `proto` is the
//! protocol after the extension headers, and `tos` is the traffic class. At most 64 rules and 1,900 bytes. With ACTIVE
//! (default true) the toolstack gives the rules to the device's switch port. The element decides the frames that
//! arrive in any case. The last element that names a device counts.
//! # Ports
//! 1/1-2, agnostic. Output 0 gets frames that pass, output 1 (push) redirected ones; they are dropped if it is not connected.
//! # Handlers
//! * `rules` (read, write): the rules, separated by commas; the switch follows within milliseconds.
//! * `active` (read, write): ACTIVE. `state` (read): `off`, `asked`, `active`, `refused` or `replaced` by another element.
//! * `error` (read): the reason of a refusal.
//! * `hits` (read): for each rule the packets that it decided, and the rule. `switch_hits` (read): the part of the switch,
//!   at most a second old.
//! # Example
//! `FromDevice(0) -> ClickOSOffload(0, drop proto 17 dport 53) -> ToDevice(1);`
use alloc::rc::Rc;
use click_core::offload::{Hits, OffloadClaim, Outcome, Rules};
use click_core::text::split_args;
use clickos_offload::{Action, MAX_RULES, MAX_TEXT, Rule, first, redirect};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ClickOSOffload",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("DEVID"), rest("RULE"), keyword("ACTIVE")],
    handlers: &[
        read_write(
            "rules",
            |me: &mut ClickOsOffload, _| text(me.table.text()),
            |me, _, value| me.relist(value),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                me.ask(ctx);
            }),
        ),
        read("state", |me, _| text(me.state().0)),
        read("error", |me, _| text(me.state().1)),
        read("hits", |me, _| text(me.table.hits(true))),
        read("switch_hits", |me, _| text(me.table.hits(false))),
    ],
    build: |a| {
        let (device, active) = (a.need::<DeviceId>("DEVID"), a.or("ACTIVE", true));
        let rules = a.rest().to_vec();
        let table = Table::new(&rules, None);
        let table = table.map_err(|message| a.error("RULE", message)).ok();
        let device = device?;
        let mac = a
            .environment()
            .devices
            .get(&device.0)
            .map(|d| d.borrow().mac());
        Some(Box::new(ClickOsOffload {
            device: device.0,
            mac: mac.unwrap_or_default(),
            active: active?,
            table: table?,
            claim: None,
        }))
    },
    ..Class::DEFAULT
};

struct ClickOsOffload {
    device: u32,
    mac: [u8; 6],
    active: bool,
    table: Table,
    claim: Option<OffloadClaim>,
}

/// The rules with their counters.
#[derive(Default)]
struct Table {
    rules: Vec<Rule>,
    /// The hits of this element.
    own: Vec<u64>,
    switch: Rules,
}

impl Table {
    /// Reads rules. Those that `old` has keep their counters.
    fn new(texts: &[String], old: Option<&Self>) -> Result<Self, String> {
        let count = texts.len();
        if count > MAX_RULES {
            return Err(format!("{count} rules, the limit is {MAX_RULES}"));
        }
        let mut table = Self::default();
        for (n, rule) in texts.iter().enumerate() {
            let rule: Rule = rule.parse().map_err(|e| format!("rule {n}: {e}"))?;
            let text = rule.to_string();
            let (own, hits) = old.and_then(|old| old.counters(&text)).unwrap_or_default();
            table.rules.push(rule);
            table.own.push(own);
            table.switch.0.push((text, hits));
        }
        let bytes: usize = table.switch.0.iter().map(|(text, _)| text.len() + 1).sum();
        match bytes > MAX_TEXT {
            true => Err(format!("{bytes} bytes of rules, the limit is {MAX_TEXT}")),
            false => Ok(table),
        }
    }

    /// The rules, separated by commas.
    fn text(&self) -> String {
        let texts: Vec<_> = self
            .switch
            .0
            .iter()
            .map(|(text, _)| text.as_str())
            .collect();
        texts.join(", ")
    }

    fn counters(&self, rule: &str) -> Option<(u64, Hits)> {
        let mut counters = self.switch.0.iter().zip(&self.own);
        counters.find_map(|((text, hits), own)| (text == rule).then(|| (*own, Rc::clone(hits))))
    }

    /// A line for each rule.
    fn hits(&self, with_own: bool) -> String {
        let rows = self.switch.0.iter().zip(&self.own);
        let lines = rows.map(|((text, hits), own)| {
            let sum = hits.get() + if with_own { *own } else { 0 };
            format!("{sum}\t{text}\n")
        });
        lines.collect()
    }
}

impl ClickOsOffload {
    /// The word for the state, and the reason of a refusal.
    fn state(&self) -> (&'static str, String) {
        let Some(claim) = &self.claim else {
            return ("off", String::new());
        };
        let word = match claim.outcome() {
            None => "replaced",
            Some(Outcome::Pending) => "asked",
            Some(Outcome::Active) => "active",
            Some(Outcome::Refused(reason)) => return ("refused", reason),
        };
        (word, String::new())
    }

    /// Asks for the rules as they are now, or for none.
    fn ask(&mut self, ctx: &Context<'_>) {
        // The new claim begins before the old one ends: the switch never is without rules in between.
        let registry = &ctx.arg_context().environment.offload;
        let new = self
            .active
            .then(|| OffloadClaim::new(registry, self.device, self.table.switch.clone()));
        self.claim = new;
    }

    fn relist(&self, value: &str) -> Result<Change, HandlerError> {
        let table = Table::new(&split_args(value), Some(&self.table));
        let table = table.map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.table = table;
            me.ask(ctx);
        }))
    }

    /// The output of a frame, which may change.
    fn decide(&mut self, packet: &mut Packet) -> usize {
        let frame = packet.data();
        let Some(view) = clickos_offload::View::of(frame, frame.len()) else {
            return 0;
        };
        let Some(rule) = first(&self.table.rules, &view) else {
            return 0;
        };
        let output = match self.table.rules[rule].action {
            Action::Pass => 0,
            Action::Drop => DROPPED,
            Action::Redirect(targets) => {
                let target = targets.for_flow(view.flow()).next();
                let sent = target.map(|to| redirect(packet.data_mut(), &view, to, self.mac));
                match sent {
                    Some(true) => 1,
                    _ => return 0,
                }
            }
        };
        self.table.own[rule] += 1;
        output
    }
}

impl InPlace for ClickOsOffload {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.decide(packet)
    }
}

impl Element for ClickOsOffload {
    in_place!(plain);

    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.ask(ctx);
        Ok(())
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        let texts: Vec<_> = self
            .table
            .switch
            .0
            .iter()
            .map(|(text, _)| text.clone())
            .collect();
        if let Ok(table) = Table::new(&texts, Some(&old.table)) {
            self.table = table;
            self.ask(ctx);
        }
    }
}
