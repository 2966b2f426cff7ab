// SPDX-License-Identifier: Apache-2.0
//! The ports of a driver domain: what `xl devd` is for other devices. Domain 0 describes each port in the
//! driver domain's own directory of the store, where no guest can write.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use vale_proto::{ClientError, Kind, PortAdd, PortInfo, ValeClient};
use xenstore::{Client, Error, Tx};

use crate::xen::{self, Vif};

/// Relative to the directory of the domain.
const BACKENDS: &str = "backend/vale";
/// Time between two looks without an event: valed may have been restarted.
const LOOK: Duration = Duration::from_secs(2);
/// Time until the next try after valed or the store could not be reached.
const RETRY: Duration = Duration::from_secs(1);

/// Makes valed's ports of Xen guests those that domain 0 describes, until the process ends.
pub fn run(socket: &Path, store: &Path) -> Result<String, String> {
    let mut ports = Ports::default();
    loop {
        if let Err(text) = serve(&mut ports, socket, store) {
            eprintln!("vale-ctl: {text}");
        }
        std::thread::sleep(RETRY);
    }
}

/// Carries out domain 0's requests until a connection fails.
fn serve(ports: &mut Ports, socket: &Path, store: &Path) -> Result<(), String> {
    let mut store = Client::connect(store).map_err(text)?;
    store.watch(BACKENDS, BACKENDS).map_err(text)?;
    loop {
        let mut valed = ValeClient::connect(socket).map_err(|e| e.to_string())?;
        ports.update(&mut store, &mut valed)?;
        wait(&mut store).map_err(text)?;
    }
}

/// Waits for an event, and takes all that are there.
fn wait(store: &mut Client) -> Result<(), Error> {
    let end = Instant::now() + LOOK;
    let mut left = LOOK;
    loop {
        match store.wait_event(left) {
            Ok(None) => return Ok(()),
            Ok(Some(_)) | Err(Error::EventsLost) => left = Duration::ZERO,
            Err(error) => return Err(error),
        }
        if Instant::now() > end {
            return Ok(());
        }
    }
}

/// What domain 0 asks for a vif.
enum PortRequest {
    Port(Box<PortAdd>),
    /// A description that is wrong; the text says why.
    Wrong(String),
    /// The port has to go, and its directory too.
    End,
}

/// Ports that the loop has added, and refusals. The ports of an earlier process are made again: their
/// descriptions are not known.
#[derive(Default)]
struct Ports {
    added: BTreeMap<Vif, PortAdd>,
    /// Descriptions that valed refused. They get no second chance before they change.
    refused: BTreeMap<Vif, PortAdd>,
}

impl Ports {
    fn update(&mut self, store: &mut Client, valed: &mut ValeClient) -> Result<(), String> {
        let requests = read(store).map_err(text)?;
        let found = valed.port_list(None).map_err(|e| e.to_string())?;
        let there = self.remove(&requests, &found, valed)?;
        self.refused.retain(|vif, _| requests.contains_key(vif));
        for (vif, request) in requests {
            let done = match request {
                PortRequest::Port(_) if there.contains(&vif) => Ok(()),
                PortRequest::Port(add) => self.add(vif, *add, store, valed),
                PortRequest::Wrong(why) => report(store, vif, &why),
                PortRequest::End => store.rm(Tx::NONE, &directory(vif)).map_err(text),
            };
            // Domain 0 may remove the directory meanwhile. The other ports go on.
            if let Err(text) = done {
                eprintln!("vale-ctl: {text}");
            }
        }
        Ok(())
    }

    /// Removes the ports that are not, or no longer, as domain 0 describes them; gives the others.
    fn remove(
        &mut self,
        requests: &BTreeMap<Vif, PortRequest>,
        found: &[PortInfo],
        valed: &mut ValeClient,
    ) -> Result<Vec<Vif>, String> {
        let mut kept = Vec::new();
        for (vif, port) in found.iter().filter_map(|p| Some((vif_of(p)?, p))) {
            let known = self.added.get(&vif);
            match requests.get(&vif) {
                Some(PortRequest::Port(add)) if known == Some(&**add) && is_same(add, port) => {
                    kept.push(vif)
                }
                _ => {
                    let removed = valed.port_remove(&port.switch, &port.port);
                    removed.map_err(|e| e.to_string())?;
                    eprintln!("vale-ctl: {}:{}: removed", port.switch, port.port);
                }
            }
        }
        self.added.retain(|vif, _| kept.contains(vif));
        Ok(kept)
    }

    fn add(
        &mut self,
        vif: Vif,
        add: PortAdd,
        store: &mut Client,
        valed: &mut ValeClient,
    ) -> Result<(), String> {
        if self.refused.get(&vif) == Some(&add) {
            return Ok(());
        }
        let name = format!("{}:{}", add.switch, add.port);
        let Vif { domid, devid } = vif;
        match valed.port_add(&add) {
            Ok(_) => {
                eprintln!("vale-ctl: {name}: added for vif {devid} of domain {domid}");
                self.added.insert(vif, add);
                Ok(())
            }
            Err(error @ ClientError::Api(_)) => {
                eprintln!("vale-ctl: {name}: {error}");
                self.refused.insert(vif, add);
                report(store, vif, &error.to_string())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The vif of a port that a guest's `vale` device has.
fn vif_of(port: &PortInfo) -> Option<Vif> {
    let guest = port.guest.filter(|guest| !guest.netback)?;
    (port.kind == Kind::Xen).then_some(Vif {
        domid: guest.domid,
        devid: guest.devid,
    })
}

fn is_same(add: &PortAdd, port: &PortInfo) -> bool {
    (&add.switch, &add.port) == (&port.switch, &port.port)
}

fn directory(vif: Vif) -> String {
    format!("{BACKENDS}/{}/{}", vif.domid, vif.devid)
}

/// Reads all descriptions.
fn read(store: &mut Client) -> Result<BTreeMap<Vif, PortRequest>, Error> {
    let mut requests = BTreeMap::new();
    for domid in numbers(store, BACKENDS)? {
        for devid in numbers(store, &format!("{BACKENDS}/{domid}"))? {
            let vif = Vif { domid, devid };
            if let Some(request) = request(store, vif)? {
                requests.insert(vif, request);
            }
        }
    }
    Ok(requests)
}

/// The names of a node's children that are numbers.
fn numbers<T: std::str::FromStr>(store: &mut Client, path: &str) -> Result<Vec<T>, Error> {
    let names = store.directory_opt(Tx::NONE, path)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// None if the directory is not described, or half removed.
fn request(store: &mut Client, vif: Vif) -> Result<Option<PortRequest>, Error> {
    let paths: Vec<_> = ["online", "frontend"]
        .iter()
        .chain(&xen::DESCRIPTION)
        .map(|key| format!("{}/{key}", directory(vif)))
        .collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    let values = store.read_all(Tx::NONE, &paths)?.into_iter();
    let mut texts = values.map(|v| v.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    let (online, frontend) = (texts.next().flatten(), texts.next().flatten());
    Ok(match (online.as_deref(), frontend) {
        (_, None) => None,
        (Some("0"), _) => Some(PortRequest::End),
        _ => Some(match xen::described(vif, &texts.collect::<Vec<_>>()) {
            Ok(add) => PortRequest::Port(Box::new(add)),
            Err(text) => PortRequest::Wrong(text),
        }),
    })
}

/// Tells domain 0 why there is no port. The same text is written once.
fn report(store: &mut Client, vif: Vif, why: &str) -> Result<(), String> {
    let path = format!("{}/{}", directory(vif), xen::ERROR);
    let told = store.read_opt(Tx::NONE, &path).map_err(text)?;
    if told.as_deref() == Some(why.as_bytes()) {
        return Ok(());
    }
    store.write(Tx::NONE, &path, why.as_bytes()).map_err(text)
}

fn text(error: Error) -> String {
    error.to_string()
}
