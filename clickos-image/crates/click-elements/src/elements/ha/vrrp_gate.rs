// SPDX-License-Identifier: Apache-2.0
//! Sends nothing while the router of a pair is not the active one.
//!
//! # Synopsis
//! `VRRPGate(VRRP)`: VRRP is the element with the router's state.
//! # Ports
//! 1/1, agnostic. Packets go on while the router is active, and are dropped otherwise.
//! # Handlers
//! * `drops` (read): packets that were dropped.
//! # Example
//! `... -> Queue -> VRRPGate(vrrp) -> ToDevice(0);`
use crate::prelude::*;
use crate::vrrp::group::Shared;
use crate::vrrp::router::group_of;

pub static ELEMENT: Class = Class {
    name: "VRRPGate",
    ports: "1/1",
    processing: "a/a",
    args: &[mandatory("VRRP")],
    handlers: &[read("drops", |me: &mut VRRPGate, _| text(me.drops))],
    build: |a| {
        Some(Box::new(VRRPGate {
            vrrp: a.need("VRRP")?,
            group: None,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct VRRPGate {
    vrrp: String,
    group: Option<Shared>,
    drops: u64,
}

impl VRRPGate {
    /// The batch, or nothing.
    fn pass(&mut self, ctx: &mut Context<'_>, batch: Batch) -> Batch {
        let is_active = self
            .group
            .as_ref()
            .is_some_and(|group| group.borrow().is_active());
        if is_active || batch.is_empty() {
            return batch;
        }
        self.drops += batch.len() as u64;
        ctx.recycle(batch);
        ctx.batch()
    }
}

impl Element for VRRPGate {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        let group = group_of(ctx, &self.vrrp).map_err(|text| format!("VRRP: {text}"))?;
        self.group = Some(group);
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let batch = self.pass(ctx, batch);
        ctx.push(0, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let batch = ctx.pull(0, max);
        self.pass(ctx, batch)
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}
