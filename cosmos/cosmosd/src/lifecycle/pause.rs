// SPDX-License-Identifier: Apache-2.0
//! A guest's share of the processors: some, or none while it is paused.

use cosmos_proto::{OfGuest, Share};

use super::beside::turn_to;
use crate::base::error::Result;
use crate::guest::State;
use crate::site::Site;
use crate::spec::Uuid;

pub fn pause(site: &Site, of: &OfGuest) -> Result<()> {
    switch_state(site, &of.uuid, State::Running, State::Paused, |domid| {
        site.host.pause(domid)
    })
}

pub fn unpause(site: &Site, of: &OfGuest) -> Result<()> {
    switch_state(site, &of.uuid, State::Paused, State::Running, |domid| {
        site.host.unpause(domid)
    })
}

/// Goes from one state to another; being there already is fine.
fn switch_state(
    site: &Site,
    uuid: &Uuid,
    from: State,
    to: State,
    act: impl FnOnce(u16) -> Result<()>,
) -> Result<()> {
    let guest = site.table.get(uuid)?;
    guest.check_not_migrating()?;
    let _owner = guest.lock_lifecycle();
    match guest.state() {
        state if state == to => Ok(()),
        state if state == from => {
            guest.signals.check()?;
            act(guest.domain.domid)?;
            turn_to(site, &guest, to);
            Ok(())
        }
        _ => guest.check_answers(),
    }
}

pub fn set_cpu(site: &Site, args: &Share) -> Result<()> {
    let guest = site.table.get(&args.uuid)?;
    let _owner = guest.lock_lifecycle();
    match guest.state() {
        State::Running | State::Paused => site.host.set_cpu(&guest.domain, &args.cpu),
        _ => guest.check_answers(),
    }
}
