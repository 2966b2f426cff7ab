// SPDX-License-Identifier: Apache-2.0
//! The switch as this daemon uses it: the guests' ports, through valed's control socket.

pub mod devices;
pub mod loops;
pub mod uplinks;

use std::path::PathBuf;
use std::time::Duration;

use control_socket::{ClientError, Signature};
use serde_json::Value;
use vale_proto::{
    Kind, OffloadChange, OffloadId, OffloadInfo, OffloadSet, PortInfo, PortSet, PreconnectAdd,
    PreconnectedVif, ValeClient,
};

use crate::base::error::{Code, Error, Result};
use crate::spec::Vif;
use loops::Loops;

/// The descriptors of a port's owner: rings and the two events.
pub use vale_proto::RingFds as PortFds;

/// Longest wait for an answer of valed, which needs milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks at valed, and the longest wait for its answer to one.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// Looks at valed for each one at the frames that it cut.
const LOOKS_AT_LOOPS: u64 = 10;
/// Attempts to connect in a second to a valed that has ended, and the time between two.
const RETRIES: u32 = 50;
const RETRY: Duration = Duration::from_millis(20);

/// A switch with ports for guests.
pub trait Switch: Send + Sync {
    /// The ports among these that exist.
    fn existing(&self, vifs: &[Vif]) -> Result<Vec<Vif>>;

    /// The ports of all guests as the switch lists them.
    fn ports(&self) -> Result<Vec<PortInfo>>;

    /// Adds a domain's port with its link down. A process guest's rings come as descriptors, a Xen
    /// guest grants its own. After an error of code `switch` the port may be there all the same.
    fn add(&self, domid: u16, vif: &Vif) -> Result<Option<PortFds>>;

    /// As [`Self::add`], for a guest that outlived the switch. The port continues with `rings` of a
    /// process guest; a Xen guest makes new ones.
    fn rejoin(&self, domid: u16, vif: &Vif, rings: Option<&PortFds>) -> Result<()>;

    /// Sets a port's link.
    fn set_link(&self, vif: &Vif, up: bool) -> Result<()>;

    /// Removes a port; one that is not there is no error, but a switch that does not answer is:
    /// it may have the port.
    fn remove(&self, vif: &Vif) -> Result<()>;

    /// Connects to a vif of a Xen guest that gets its port later; [`Self::add`] takes it over.
    fn add_preconnected(&self, domid: u16, devid: u32, slots: u32) -> Result<()>;

    /// Leaves the preconnected vifs of a domain; none is no error.
    fn remove_preconnected(&self, domid: u16) -> Result<()>;

    /// The preconnected vifs of all domains.
    fn preconnected(&self) -> Result<Vec<PreconnectedVif>>;

    /// Asks for a verb that keeps nothing here; see [`relay`].
    fn ask(&self, verb: &str, args: Value) -> Result<Value>;

    /// All tables of rules that decide packets for guests.
    fn offloads(&self) -> Result<Vec<OffloadInfo>>;

    /// Sets such a table, or replaces it.
    fn set_offload(&self, set: &OffloadSet) -> Result<OffloadChange>;

    /// Removes a table; one that is not there is no error.
    fn remove_offload(&self, id: &OffloadId) -> Result<OffloadChange>;
}

/// Passes a verb on to the switch, which has it under the same name.
pub fn relay<V: Signature>(switch: &dyn Switch, args: &V::Args) -> Result<V::Answer> {
    let broken = |e| Error::new(Code::Switch, format!("{}: {e}", V::NAME));
    let args = serde_json::to_value(args).map_err(broken)?;
    serde_json::from_value(switch.ask(V::NAME, args)?).map_err(broken)
}

/// The port or chain of a request, for errors.
fn place(args: &Value) -> Option<String> {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    let switch = text("switch")?;
    match (text("port"), text("chain")) {
        (Some(port), _) => Some(format!("{switch}:{port}")),
        (None, Some(chain)) => Some(format!("chain {switch}:{chain}")),
        (None, None) => None,
    }
}

/// valed. Every call has its own connection, so none waits for another.
pub struct Valed {
    socket: PathBuf,
    /// The switch of the guests' ports.
    kind: Kind,
}

impl Valed {
    pub fn new(socket: PathBuf, kind: Kind) -> Self {
        Self { socket, kind }
    }

    /// Calls `report` with `None` each time valed answers a new connection, and with the reason when
    /// it stops to answer. Reports to `loops` now and then what the switch cut.
    pub fn watch(&self, report: impl Fn(Option<String>), mut loops: Loops) -> ! {
        loop {
            if let Err(e) = self.watch_once(&report, &mut loops) {
                report(Some(e.message));
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Ends without an error when valed closes the connection: the next valed may start already.
    fn watch_once(&self, report: &impl Fn(Option<String>), loops: &mut Loops) -> Result<()> {
        let mut client = self.connect_soon()?;
        client.set_timeout(LOOK_TIMEOUT);
        client.chain_list(None).map_err(failed("valed"))?;
        report(None);
        let mut looks = 0;
        while !client.closes_within(LOOK) {
            let chains = client.chain_list(None).map_err(failed("valed"))?;
            looks += 1;
            if looks % LOOKS_AT_LOOPS == 0 {
                // Without an answer the next look fails, too.
                let ports = client.port_list(None).unwrap_or_default();
                loops.look(&chains, &ports);
            }
        }
        Ok(())
    }

    /// Connects to a valed that may be about to start: guests are silent until then.
    fn connect_soon(&self) -> Result<ValeClient> {
        for _ in 0..RETRIES {
            if let Ok(client) = self.connect() {
                return Ok(client);
            }
            std::thread::sleep(RETRY);
        }
        self.connect()
    }

    fn connect(&self) -> Result<ValeClient> {
        let client = ValeClient::connect(&self.socket);
        let mut client = client.map_err(|e| Error::new(Code::Switch, e.to_string()))?;
        client.set_timeout(TIMEOUT);
        Ok(client)
    }
}

fn failed(place: &str) -> impl Fn(ClientError) -> Error {
    move |e| {
        let code = match e.code() {
            Some("exists") => Code::Exists,
            Some("bad-request") => Code::BadRequest,
            _ => Code::Switch,
        };
        Error::new(code, format!("{place}: {e}"))
    }
}

impl Switch for Valed {
    fn existing(&self, vifs: &[Vif]) -> Result<Vec<Vif>> {
        if vifs.is_empty() {
            return Ok(Vec::new());
        }
        let ports = self.ports()?;
        let exists = |vif: &&Vif| {
            ports
                .iter()
                .any(|p| p.switch == vif.switch && p.port == vif.port)
        };
        Ok(vifs.iter().filter(exists).cloned().collect())
    }

    fn ports(&self) -> Result<Vec<PortInfo>> {
        let ports = self.connect()?.port_list(None);
        ports.map_err(failed("port-list"))
    }

    fn add(&self, domid: u16, vif: &Vif) -> Result<Option<PortFds>> {
        let place = vif.place();
        match self.connect()?.port_add(&vif.port_add(self.kind, domid)) {
            Ok(fds) if fds.is_some() == (self.kind == Kind::Process) => Ok(fds),
            Err(e) => Err(failed(&place)(e)),
            Ok(_) => {
                let message = format!("{place}: valed sent other rings than asked for");
                Err(Error::new(Code::Switch, message))
            }
        }
    }

    fn rejoin(&self, domid: u16, vif: &Vif, rings: Option<&PortFds>) -> Result<()> {
        let Some(rings) = rings else {
            return self.add(domid, vif).map(drop);
        };
        self.connect()?
            .port_resume(&vif.port_add(self.kind, domid), rings)
            .map_err(failed(&vif.place()))
    }

    fn set_link(&self, vif: &Vif, up: bool) -> Result<()> {
        let set = PortSet {
            switch: vif.switch.clone(),
            port: vif.port.clone(),
            link_up: up,
        };
        self.connect()?.port_set(&set).map_err(failed(&vif.place()))
    }

    fn remove(&self, vif: &Vif) -> Result<()> {
        self.connect()?
            .port_remove(&vif.switch, &vif.port)
            .map_err(failed(&vif.place()))
    }

    fn add_preconnected(&self, domid: u16, devid: u32, slots: u32) -> Result<()> {
        let vif = PreconnectAdd {
            domid,
            devid,
            slots,
        };
        let name = format!("preconnected vif {devid} of domain {domid}");
        self.connect()?.preconnect_add(&vif).map_err(failed(&name))
    }

    fn remove_preconnected(&self, domid: u16) -> Result<()> {
        let name = format!("preconnected vifs of domain {domid}");
        self.connect()?
            .preconnect_remove(domid)
            .map_err(failed(&name))
    }

    fn preconnected(&self) -> Result<Vec<PreconnectedVif>> {
        let vifs = self.connect()?.preconnect_list();
        vifs.map_err(failed("preconnect-list"))
    }

    fn ask(&self, verb: &str, args: Value) -> Result<Value> {
        let place = place(&args).unwrap_or_else(|| verb.to_owned());
        self.connect()?.call(verb, args).map_err(failed(&place))
    }

    fn offloads(&self) -> Result<Vec<OffloadInfo>> {
        let offloads = self.connect()?.offload_list(None);
        offloads.map_err(failed("offload-list"))
    }

    fn set_offload(&self, set: &OffloadSet) -> Result<OffloadChange> {
        let name = format!("{}:{}", set.switch, set.port);
        self.connect()?.offload_set(set).map_err(failed(&name))
    }

    fn remove_offload(&self, id: &OffloadId) -> Result<OffloadChange> {
        let name = format!("{}:{}", id.switch, id.port);
        self.connect()?.offload_remove(id).map_err(failed(&name))
    }
}

#[cfg(test)]
pub mod sim {
    //! A switch in memory, for unit tests.
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::File;
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use vale_proto::{Owner, PortAdd, PortPeers, RuleHits};

    use super::*;
    use crate::base::faults::FaultInjector;

    pub struct SimSwitch {
        faults: Arc<FaultInjector>,
        ports: Mutex<BTreeMap<String, bool>>,
        preconnected: Mutex<BTreeSet<(u16, u32)>>,
        uplinks: Mutex<BTreeMap<String, PortAdd>>,
        chains: Mutex<BTreeMap<String, Value>>,
        offloads: Mutex<BTreeMap<String, OffloadInfo>>,
        last_epoch: Mutex<u64>,
    }

    impl SimSwitch {
        pub fn new(faults: Arc<FaultInjector>) -> Self {
            Self {
                faults,
                ports: Mutex::default(),
                preconnected: Mutex::default(),
                uplinks: Mutex::default(),
                chains: Mutex::default(),
                offloads: Mutex::default(),
                last_epoch: Mutex::default(),
            }
        }

        pub fn ports(&self) -> Vec<String> {
            self.ports.lock().unwrap().keys().cloned().collect()
        }

        pub fn all_up(&self) -> bool {
            self.ports.lock().unwrap().values().all(|up| *up)
        }

        pub fn none_up(&self) -> bool {
            !self.ports.lock().unwrap().values().any(|up| *up)
        }

        pub fn put(&self, port: &str) {
            self.ports.lock().unwrap().insert(port.into(), true);
        }

        /// Packets that each rule at a port decides.
        pub fn hit(&self, place: &str, packets: u64) {
            let mut offloads = self.offloads.lock().unwrap();
            let rules = &mut offloads.get_mut(place).unwrap().rules;
            rules.iter_mut().for_each(|rule| rule.hits += packets);
        }

        /// A new valed has no tables.
        pub fn clear_offloads(&self) {
            self.offloads.lock().unwrap().clear();
        }

        /// A table that no guest wants.
        pub fn put_offload(&self, place: &str) {
            let (switch, port) = place.split_once(':').unwrap();
            let info = OffloadInfo {
                switch: switch.parse().unwrap(),
                port: port.parse().unwrap(),
                owner: Owner::Guest,
                version: 1,
                epoch: 0,
                enabled: true,
                rules: Vec::new(),
            };
            self.offloads.lock().unwrap().insert(place.into(), info);
        }

        pub fn clear(&self) {
            self.ports.lock().unwrap().clear();
            self.preconnected.lock().unwrap().clear();
        }

        /// Domain and devid of each preconnected vif.
        pub fn preconnected_vifs(&self) -> Vec<(u16, u32)> {
            self.preconnected.lock().unwrap().iter().copied().collect()
        }
    }

    fn chain_info(mut chain: Value) -> Value {
        chain["counters"] = json!({"packets": 0, "bytes": 0, "dropped": 0});
        chain["hop_counters"] = json!([]);
        chain["live_pairs"] = json!([]);
        chain
    }

    impl Switch for Arc<SimSwitch> {
        fn existing(&self, vifs: &[Vif]) -> Result<Vec<Vif>> {
            self.faults.call("switch.existing")?;
            let ports = self.ports.lock().unwrap();
            Ok(vifs
                .iter()
                .filter(|v| ports.contains_key(&v.place()))
                .cloned()
                .collect())
        }

        fn ports(&self) -> Result<Vec<PortInfo>> {
            self.faults.call("switch.ports")?;
            let ports = self.ports.lock().unwrap();
            let info = |(place, link_up): (&String, &bool)| {
                let (switch, port) = place.split_once(':').unwrap();
                serde_json::from_value(serde_json::json!({
                    "switch": switch, "port": port, "kind": "process", "segment": 1,
                    "mac": null, "link_up": link_up, "counters": {"rx_packets": 7},
                }))
                .unwrap()
            };
            let uplink = |add: &PortAdd| PortInfo {
                port: add.port.clone(),
                kind: add.kind,
                mac: add.mac,
                segment: add.segment,
                uplink: vale_proto::Uplink::of(add),
                ..info((&format!("{}:{}", add.switch, add.port), &true))
            };
            let uplinks = self.uplinks.lock().unwrap();
            Ok(ports
                .iter()
                .map(info)
                .chain(uplinks.values().map(uplink))
                .collect())
        }

        fn add(&self, domid: u16, vif: &Vif) -> Result<Option<PortFds>> {
            self.faults.call(&format!("switch.add {}", vif.place()))?;
            self.preconnected
                .lock()
                .unwrap()
                .remove(&(domid, vif.devid));
            self.ports.lock().unwrap().insert(vif.place(), false);
            let fd = || File::open("/dev/null").unwrap().into();
            Ok(Some(PortFds {
                memfd: fd(),
                kick: fd(),
                wake: fd(),
            }))
        }

        fn rejoin(&self, domid: u16, vif: &Vif, _rings: Option<&PortFds>) -> Result<()> {
            self.add(domid, vif).map(drop)
        }

        fn set_link(&self, vif: &Vif, up: bool) -> Result<()> {
            self.faults
                .call(&format!("switch.set_link {}", vif.place()))?;
            self.ports.lock().unwrap().insert(vif.place(), up);
            Ok(())
        }

        fn remove(&self, vif: &Vif) -> Result<()> {
            self.faults
                .call(&format!("switch.remove {}", vif.place()))?;
            self.ports.lock().unwrap().remove(&vif.place());
            Ok(())
        }

        fn add_preconnected(&self, domid: u16, devid: u32, _slots: u32) -> Result<()> {
            self.faults.call("switch.add_preconnected")?;
            self.preconnected.lock().unwrap().insert((domid, devid));
            Ok(())
        }

        fn remove_preconnected(&self, domid: u16) -> Result<()> {
            self.faults.call("switch.remove_preconnected")?;
            let mut preconnected = self.preconnected.lock().unwrap();
            preconnected.retain(|vif| vif.0 != domid);
            Ok(())
        }

        fn preconnected(&self) -> Result<Vec<PreconnectedVif>> {
            self.faults.call("switch.preconnected")?;
            let vifs = self.preconnected_vifs().into_iter();
            let vif = |(domid, devid)| PreconnectedVif {
                domid,
                devid,
                connected: true,
            };
            Ok(vifs.map(vif).collect())
        }

        fn ask(&self, verb: &str, args: Value) -> Result<Value> {
            let name = place(&args).unwrap_or_default();
            self.faults.call(&format!("switch.{verb} {name}"))?;
            let mut uplinks = self.uplinks.lock().unwrap();
            let mut chains = self.chains.lock().unwrap();
            match verb {
                "port-add" => drop(uplinks.insert(name, serde_json::from_value(args).unwrap())),
                "port-remove" => drop(uplinks.remove(&name)),
                "port-peers" => {
                    let peers: PortPeers = serde_json::from_value(args).unwrap();
                    let vxlan = uplinks.get_mut(&name).and_then(|u| u.vxlan.as_mut());
                    vxlan.unwrap().peers = peers.peers;
                }
                "chain-set" => drop(chains.insert(name, args)),
                "chain-remove" => drop(chains.remove(&name)),
                "chain-list" => {
                    let chains = chains.values().cloned().map(chain_info);
                    return Ok(json!({"chains": chains.collect::<Vec<_>>()}));
                }
                _ => (),
            }
            Ok(json!({}))
        }

        fn offloads(&self) -> Result<Vec<OffloadInfo>> {
            self.faults.call("switch.offloads")?;
            Ok(self.offloads.lock().unwrap().values().cloned().collect())
        }

        fn set_offload(&self, set: &OffloadSet) -> Result<OffloadChange> {
            let place = format!("{}:{}", set.switch, set.port);
            self.faults.call(&format!("switch.set_offload {place}"))?;
            let mut last = self.last_epoch.lock().unwrap();
            *last += 1;
            let rules = set.rules.iter().map(|rule| RuleHits {
                rule: *rule,
                hits: 0,
            });
            let now = OffloadInfo {
                switch: set.switch.clone(),
                port: set.port.clone(),
                owner: set.owner,
                version: set.version,
                epoch: *last,
                enabled: true,
                rules: rules.collect(),
            };
            let mut offloads = self.offloads.lock().unwrap();
            Ok(OffloadChange {
                before: offloads.insert(place, now.clone()),
                now: Some(now),
            })
        }

        fn remove_offload(&self, id: &OffloadId) -> Result<OffloadChange> {
            let place = format!("{}:{}", id.switch, id.port);
            self.faults
                .call(&format!("switch.remove_offload {place}"))?;
            Ok(OffloadChange {
                before: self.offloads.lock().unwrap().remove(&place),
                now: None,
            })
        }
    }
}
