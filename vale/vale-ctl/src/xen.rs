// SPDX-License-Identifier: Apache-2.0
//! The device of a Xen guest in the store, as a toolstack makes it (docs/rings.md).
use std::path::Path;

use vale_proto::{GuestVif, PortAdd};
use xenstore::{Access, Client, Error, Perm, Transaction};

/// Makes the directories of both ends in one transaction, so that neither sees half a device.
pub fn make_device(store: &Path, add: &PortAdd) -> Result<(), String> {
    let (Some(guest), Some(mac)) = (ours(add.guest), add.mac) else {
        return Ok(());
    };
    let frontend = [
        ("backend", backend(guest)),
        ("backend-id", "0".into()),
        ("mac", mac.to_string()),
        ("mtu", add.mtu.to_string()),
        ("slots", add.slots.to_string()),
        ("state", "1".into()),
    ];
    let backend_keys = [
        ("frontend", frontend_of(guest)),
        ("frontend-id", guest.domid.to_string()),
        ("online", "1".into()),
        ("state", "1".into()),
    ];
    let make = |tx: &mut Transaction<'_>| {
        // The guest lists its devices; only dom0 adds one.
        directory(tx, &devices(guest.domid), 0, guest.domid)?;
        fill(tx, &frontend_of(guest), guest.domid, 0, &frontend)?;
        fill(tx, &backend(guest), 0, guest.domid, &backend_keys)
    };
    connect(store)?.transaction(make).map_err(|e| e.to_string())
}

/// Removes the device; one that is not there is fine.
pub fn remove_device(store: &Path, guest: Option<GuestVif>) -> Result<(), String> {
    let Some(guest) = ours(guest) else {
        return Ok(());
    };
    let mut client = connect(store)?;
    let remove = |tx: &mut Transaction<'_>| {
        tx.rm(&frontend_of(guest))?;
        tx.rm(&backend(guest))
    };
    client.transaction(remove).map_err(|e| e.to_string())
}

/// The vif, unless libxl has made its nodes.
fn ours(guest: Option<GuestVif>) -> Option<GuestVif> {
    guest.filter(|guest| !guest.netback)
}

fn connect(store: &Path) -> Result<Client, String> {
    Client::connect(store).map_err(|e| e.to_string())
}

fn devices(domid: u16) -> String {
    format!("/local/domain/{domid}/device/vale")
}

fn frontend_of(guest: GuestVif) -> String {
    format!("{}/{}", devices(guest.domid), guest.devid)
}

fn backend(guest: GuestVif) -> String {
    let GuestVif { domid, devid, .. } = guest;
    format!("/local/domain/0/backend/vale/{domid}/{devid}")
}

/// Makes a directory of `owner` that `reader` can read. Later children inherit the permissions.
fn directory(tx: &mut Transaction<'_>, path: &str, owner: u16, reader: u16) -> Result<(), Error> {
    tx.write(path, b"")?;
    let perms = [
        Perm::new(Access::None, owner),
        Perm::new(Access::Read, reader),
    ];
    tx.set_perms(path, &perms)
}

fn fill(
    tx: &mut Transaction<'_>,
    path: &str,
    owner: u16,
    reader: u16,
    keys: &[(&str, String)],
) -> Result<(), Error> {
    directory(tx, path, owner, reader)?;
    for (key, value) in keys {
        tx.write(&format!("{path}/{key}"), value.as_bytes())?;
    }
    Ok(())
}
