// SPDX-License-Identifier: Apache-2.0
//! The device of a Xen guest in the store, as a toolstack makes it (docs/rings.md).
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use vale_proto::{GuestVif, Kind, PortAdd, PortId};
use xenstore::{Access, Client, Error, Perm, Request, Transaction, Tx};

/// How long a driver domain may take to add a port; libxl waits as long.
const ANSWER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// Characters of a driver domain's error that are shown.
const ERROR_CHARS: usize = 300;

/// Keys in the backend's directory that describe the port to a driver domain.
pub const DESCRIPTION: [&str; 7] = ["switch", "port", "segment", "mac", "mtu", "slots", "allow"];
/// Key in the backend's directory that says why there is no port.
pub const ERROR: &str = "hotplug-error";

/// A device of the class `vale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vif {
    pub domid: u16,
    pub devid: u32,
}

/// Makes the directories of both ends in one transaction, so that neither sees half a device.
///
/// `backend` is the domain of the switch. A driver domain gets the description of the port, too.
pub fn make_device(store: &Path, backend: u16, add: &PortAdd) -> Result<(), String> {
    let (Some(vif), Some(mac)) = (ours(add.guest), add.mac) else {
        return Ok(());
    };
    let frontend = [
        ("backend", backend_of(backend, vif)),
        ("backend-id", backend.to_string()),
        ("mac", mac.to_string()),
        ("mtu", add.mtu.to_string()),
        ("slots", add.slots.to_string()),
        ("state", "1".into()),
    ];
    let mut backend_keys = vec![
        ("frontend", frontend_of(vif)),
        ("frontend-id", vif.domid.to_string()),
        ("online", "1".into()),
        ("state", "1".into()),
    ];
    if backend != 0 {
        backend_keys.extend(DESCRIPTION.into_iter().zip(describe(add)));
    }
    let make = |tx: &mut Transaction<'_>| {
        // The guest lists its devices; only dom0 adds one.
        directory(tx, &devices(vif.domid), 0, vif.domid)?;
        fill(tx, &frontend_of(vif), vif.domid, backend, &frontend)?;
        fill(
            tx,
            &backend_of(backend, vif),
            backend,
            vif.domid,
            &backend_keys,
        )
    };
    connect(store)?.transaction(make).map_err(|e| e.to_string())
}

/// Makes the device of a guest whose switch runs in a driver domain, and waits until that domain has added
/// the port. Without a port there is no device.
pub fn attach_elsewhere(store: &Path, backend: u16, add: &PortAdd) -> Result<(), String> {
    let vif = ours(add.guest).ok_or("--backend: needs --domid and --mac")?;
    let mut client = connect(store)?;
    let lives = client.call(&Request::is_introduced(backend));
    if !lives.map_err(|e| e.to_string())?.starts_with(b"T") {
        return Err(format!("--backend: there is no domain {backend}"));
    }
    // A description that changes in place could be missed.
    remove_device(store, backend, Some(vif))?;
    make_device(store, backend, add)?;
    let added = await_port(&mut client, &backend_of(backend, vif));
    if added.is_err() {
        remove_device(store, backend, Some(vif))?;
    }
    added
}

/// Waits until the backend leaves state 1. The driver domain owns the keys, so the text is not trusted.
fn await_port(client: &mut Client, backend: &str) -> Result<(), String> {
    let end = Instant::now() + ANSWER;
    let mut read = |key: &str| {
        let value = client.read_opt(Tx::NONE, &format!("{backend}/{key}"));
        value.map_err(|e| e.to_string())
    };
    loop {
        if let Some(text) = read(ERROR)? {
            let text = String::from_utf8_lossy(&text);
            let shown: String = text.chars().take(ERROR_CHARS).collect();
            return Err(format!("the driver domain: {}", shown.escape_default()));
        }
        if read("state")?.is_some_and(|state| state != b"1") {
            return Ok(());
        }
        if Instant::now() > end {
            let seconds = ANSWER.as_secs();
            return Err(format!("the driver domain adds no port within {seconds} s"));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Removes the device; one that is not there is fine.
pub fn remove_device(store: &Path, backend: u16, vif: Option<Vif>) -> Result<(), String> {
    let Some(vif) = vif else {
        return Ok(());
    };
    let mut client = connect(store)?;
    let remove = |tx: &mut Transaction<'_>| {
        tx.rm(&frontend_of(vif))?;
        tx.rm(&backend_of(backend, vif))
    };
    client.transaction(remove).map_err(|e| e.to_string())
}

/// The vif, unless libxl has made its nodes.
pub fn ours(guest: Option<GuestVif>) -> Option<Vif> {
    let GuestVif { domid, devid, .. } = guest.filter(|guest| !guest.netback)?;
    Some(Vif { domid, devid })
}

/// Values of the keys of [`DESCRIPTION`].
fn describe(add: &PortAdd) -> [String; 7] {
    let allowed = add.allowed.iter().map(ToString::to_string);
    [
        add.switch.to_string(),
        add.port.to_string(),
        add.segment.to_string(),
        add.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        add.mtu.to_string(),
        add.slots.to_string(),
        allowed.collect::<Vec<_>>().join(";"),
    ]
}

/// The port that values of the keys of [`DESCRIPTION`] describe. Only `allow` may be missing.
pub fn described(vif: Vif, values: &[Option<String>]) -> Result<PortAdd, String> {
    let keys: Vec<_> = DESCRIPTION.iter().zip(values).collect();
    let text = |wanted: &str| {
        let found = keys.iter().find(|(key, _)| **key == wanted);
        found.and_then(|(_, value)| value.as_deref())
    };
    let allow = text("allow").unwrap_or_default();
    let allowed: Vec<_> = allow.split(';').filter(|a| !a.is_empty()).collect();
    let id = PortId {
        switch: parse("switch", text("switch"))?,
        port: parse("port", text("port"))?,
    };
    let segment = parse("segment", text("segment"))?;
    Ok(PortAdd {
        guest: Some(GuestVif {
            domid: vif.domid,
            devid: vif.devid,
            netback: false,
        }),
        mac: Some(parse("mac", text("mac"))?),
        port_security: !allowed.is_empty(),
        allowed: allowed
            .into_iter()
            .map(|one| parse("allow", Some(one)))
            .collect::<Result<_, _>>()?,
        mtu: parse("mtu", text("mtu"))?,
        slots: parse("slots", text("slots"))?,
        ..PortAdd::open(id, Kind::Xen, segment)
    })
}

fn parse<T: FromStr>(key: &str, text: Option<&str>) -> Result<T, String> {
    let text = text.ok_or_else(|| format!("{key}: is missing"))?;
    let wrong = |_| format!("{key}: {:.40} is not usable", text.escape_default());
    text.parse().map_err(wrong)
}

fn connect(store: &Path) -> Result<Client, String> {
    Client::connect(store).map_err(|e| e.to_string())
}

fn devices(domid: u16) -> String {
    format!("/local/domain/{domid}/device/vale")
}

fn frontend_of(vif: Vif) -> String {
    format!("{}/{}", devices(vif.domid), vif.devid)
}

fn backend_of(backend: u16, vif: Vif) -> String {
    let Vif { domid, devid } = vif;
    format!("/local/domain/{backend}/backend/vale/{domid}/{devid}")
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

#[cfg(test)]
mod tests {
    use super::*;

    const VIF: Vif = Vif { domid: 7, devid: 1 };

    fn values(texts: [&str; 7]) -> Vec<Option<String>> {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    }

    const GOOD: [&str; 7] = [
        "vale0",
        "dom7-1",
        "5",
        "00:16:3e:00:00:07",
        "1500",
        "256",
        "10.0.0.7/32;00:16:3e:00:00:08=10.0.0.8/32",
    ];

    #[test]
    fn a_described_port_is_the_port_that_was_described() {
        let add = described(VIF, &values(GOOD)).unwrap();
        assert_eq!(describe(&add), GOOD.map(str::to_owned));
        assert_eq!((add.allowed.len(), add.port_security), (2, true));
        assert_eq!(ours(add.guest), Some(VIF));
        let mut open = values(GOOD);
        open[6] = None; // libxl writes no empty list
        assert!(!described(VIF, &open).unwrap().port_security);
    }

    #[test]
    fn a_wrong_or_missing_key_is_named() {
        for (at, key) in DESCRIPTION.iter().enumerate() {
            let mut wrong = GOOD;
            wrong[at] = "\u{1b}";
            let error = described(VIF, &values(wrong)).unwrap_err();
            assert!(error.starts_with(&format!("{key}: ")), "{error}");
            assert!(error.is_ascii(), "{error:?}");
            let mut missing = values(GOOD);
            missing[at] = None;
            assert_eq!(described(VIF, &missing).is_err(), *key != "allow");
        }
    }
}
