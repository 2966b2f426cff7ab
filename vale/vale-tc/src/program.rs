// SPDX-License-Identifier: Apache-2.0
//! Compiles a policy: one program for frames from the guest, one for frames to it.
use vale_proto::{Direction, Family};

use crate::asm::Program;
use crate::counter::{Drop, first_offload};
use crate::emit::Emitter;
use crate::filter::Filter;
use crate::guard::{self, Guard};
use crate::offload;
use crate::packet::{self, Unsound};
use crate::policy::Policy;

/// The programs of a vif.
pub struct Programs {
    pub from_guest: Program,
    pub to_guest: Program,
}

impl Programs {
    /// # Errors
    /// The policy needs a program that is too long.
    pub fn of(policy: &Policy) -> Result<Self, String> {
        Ok(Self {
            from_guest: from_guest(policy)?,
            to_guest: to_guest(policy)?,
        })
    }
}

fn from_guest(policy: &Policy) -> Result<Program, String> {
    let mut e = Emitter::new();
    let guard = policy.port_security.then(|| Guard::new(policy));
    let filter = policy
        .rules
        .as_ref()
        .map(|r| Filter::new(Direction::Egress, r));
    e.ethernet();
    guard::link(&mut e);
    if let Some(guard) = &guard {
        guard.source(&mut e);
    }
    if guard.is_some() || filter.is_some() {
        let reason = if guard.is_some() {
            Drop::Type
        } else {
            Drop::Filter
        };
        let (v4, arp, v6) = (e.asm.label(), e.asm.label(), e.asm.label());
        guard::by_kind(&mut e, v4, arp, v6, reason);
        e.asm.place(arp);
        match &guard {
            Some(guard) => guard.arp(&mut e),
            None => e.asm.jump(e.pass()),
        }
        for (label, family) in [(v4, Family::Ipv4), (v6, Family::Ipv6)] {
            e.asm.place(label);
            read(&mut e, family, guard.as_ref());
            if let Some(filter) = &filter {
                filter.packet(&mut e, family);
            }
            e.asm.jump(e.pass());
        }
    } else {
        e.asm.jump(e.pass());
    }
    e.finish()
}

/// Reads a packet; the guard judges it, if there is one.
fn read(e: &mut Emitter, family: Family, guard: Option<&Guard>) {
    match (guard, family) {
        (Some(guard), Family::Ipv4) => guard.ipv4(e),
        (Some(guard), Family::Ipv6) => guard.ipv6(e),
        (None, Family::Ipv4) => packet::ipv4(e, no_packet(e)),
        (None, Family::Ipv6) => packet::ipv6(e, no_packet(e)),
    }
}

/// A filter permits no packet that it cannot read.
fn no_packet(e: &Emitter) -> Unsound {
    let dropped = e.dropped(Drop::Filter);
    Unsound {
        malformed: dropped,
        rogue: dropped,
        hidden: dropped,
    }
}

fn to_guest(policy: &Policy) -> Result<Program, String> {
    let mut e = Emitter::new();
    e.ethernet();
    let decide = e.asm.label();
    if let Some(rules) = &policy.rules {
        let filter = Filter::new(Direction::Ingress, rules);
        let (v4, v6) = (e.asm.label(), e.asm.label());
        guard::by_kind(&mut e, v4, decide, v6, Drop::Filter);
        for (label, family) in [(v4, Family::Ipv4), (v6, Family::Ipv6)] {
            e.asm.place(label);
            read(&mut e, family, None);
            filter.packet(&mut e, family);
            e.asm.jump(decide);
        }
    }
    e.asm.place(decide);
    if policy.offload.rules().next().is_some() {
        offload::decide(&mut e, policy.offload.rules(), first_offload(policy));
    } else {
        e.asm.jump(e.pass());
    }
    e.finish()
}
