// SPDX-License-Identifier: Apache-2.0
//! Moves guests between hosts: away from this one, and to it.

mod source;
mod target;

use log::{info, warn};

use crate::guest::Guest;
use crate::site::Site;

pub use source::{begin, cancel, commit};
pub use target::{finish, receive};

/// A client has gone: what it was moving away continues here, unless it has arrived there, and
/// what it was bringing is undone.
pub fn forget_client(site: &Site, connection: u64) {
    for guest in site.table.all() {
        if guest.migrate_source.halted_by(connection).is_ok() {
            end_departure(site, &guest, connection);
        }
        if guest.migrate_target.is_by(connection) {
            target::abort_incoming(site, &guest);
        }
    }
}

fn end_departure(site: &Site, guest: &Guest, connection: u64) {
    let uuid = &guest.domain.uuid;
    if guest.migrate_source.is_committed() {
        info!("guest {uuid} stays halted: it runs elsewhere, or has to be started here");
        return guest.migrate_source.end();
    }
    match source::resume(site, guest, connection, source::RESUME) {
        Ok(()) => info!("guest {uuid}: migration client disconnected, routers resumed"),
        Err(e) => warn!(
            "guest {uuid}: migration client disconnected, and its routers did not resume: {e}; start them"
        ),
    }
}
