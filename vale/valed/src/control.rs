// SPDX-License-Identifier: Apache-2.0
//! The verbs of the control socket.
mod chain;
#[cfg(test)]
mod golden;
pub mod keep;
mod mirror;
mod offload;
mod preconnected;
mod segment;
mod worker;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use control_socket::{ApiError, Done, NoArgs, Peer, Service, Signature, Typed, TypedWithFds, Verb};
use log::info;
use vale_proto::verb::{self, Version};
use vale_proto::{
    Kind, PipeName, PortAdd, PortFilter, PortGuard, PortId, PortInfo, PortLimit, PortList,
    PortPeers, PortSet, PortTrace, Ports, SwitchName, Trace, Vxlan,
};

use crate::device::host_resources::HostResources;
use crate::far_ends::Poke;
use crate::forwarder::{AddFailure, MAX_SWITCHES};
use crate::kept::Kept;
use crate::policy::filter::Filter;
use crate::policy::guard::Guard;
use crate::port;
use crate::switch::{AddError, MAX_PORTS};
use crate::texts;
use crate::workers::Handle;
use crate::xen::Xen;

/// The role of the daemon that makes and removes guests.
pub const TOOLSTACK: &str = "toolstack";

/// The service behind valed's socket.
pub struct Control {
    pub forwarder: Handle,
    /// None on a host without Xen.
    pub xen: Option<Xen>,
    pub resources: HostResources,
    /// An operator's requests.
    pub kept: Arc<Kept>,
    /// The thread that follows the far ends of ports.
    pub far_ends: Poke,
}

impl Service for Control {
    fn verbs() -> &'static [Verb<Self>] {
        VERBS
    }
}

const VERBS: &[Verb<Control>] = &[
    of::<verb::Hello>(&Typed(Control::hello)),
    Verb::of::<verb::AddPort>(&TypedWithFds(Control::add_port)),
    of::<verb::RemovePort>(&Typed(Control::remove_port)),
    of::<verb::AddPreconnected>(&Typed(Control::preconnect_add)),
    of::<verb::RemovePreconnected>(&Typed(Control::preconnect_remove)),
    of::<verb::ListPreconnected>(&Typed(Control::preconnect_list)),
    of::<verb::SetPort>(&Typed(Control::port_set)),
    of::<verb::GuardPort>(&Typed(Control::port_guard)),
    of::<verb::SetPeers>(&Typed(Control::port_peers)),
    of::<verb::ListPorts>(&Typed(Control::port_list)),
    of::<verb::LimitPort>(&Typed(Control::port_limit)),
    of::<verb::LimitSegment>(&Typed(Control::segment_limit)),
    of::<verb::ListSegments>(&Typed(Control::segment_list)),
    of::<verb::FilterPort>(&Typed(Control::port_filter)),
    of::<verb::SetOffload>(&Typed(Control::set_offload)),
    of::<verb::RemoveOffload>(&Typed(Control::offload_remove)),
    of::<verb::EnableOffload>(&Typed(Control::offload_enable)),
    of::<verb::ListOffloads>(&Typed(Control::offload_list)),
    of::<verb::TracePort>(&Typed(Control::port_trace)),
    of::<verb::MovePort>(&Typed(Control::port_move)),
    of::<verb::ListWorkers>(&Typed(Control::worker_list)),
    of::<verb::SetChain>(&Typed(Control::chain_set)),
    of::<verb::RemoveChain>(&Typed(Control::chain_remove)),
    of::<verb::ListChains>(&Typed(Control::chain_list)),
    of::<verb::SetMirror>(&Typed(Control::mirror_set)),
    of::<verb::RemoveMirror>(&Typed(Control::mirror_remove)),
    of::<verb::ListMirrors>(&Typed(Control::mirror_list)),
    of::<verb::KeepRequest>(&Typed(Control::keep)),
    of::<verb::ListKept>(&Typed(Control::kept_list)),
    // Names before 1.0.
    of::<verb::AddSilent>(&Typed(Control::preconnect_add)),
    of::<verb::RemoveSilent>(&Typed(Control::preconnect_remove)),
    of::<verb::ListSilent>(&Typed(Control::preconnect_list)),
];

/// The entry of a verb: the compiler holds its function to the verb's types.
const fn of<V: Signature>(
    call: &'static Typed<Control, V::Args, V::Answer, ApiError>,
) -> Verb<Control> {
    Verb::of::<V>(call)
}

impl Control {
    fn hello(&self, _: &Peer, _: NoArgs) -> Result<Version, ApiError> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Version { version })
    }

    fn port_add(
        &self,
        peer: &Peer,
        add: PortAdd,
        fds: Vec<OwnedFd>,
    ) -> Result<(Done, Vec<OwnedFd>), ApiError> {
        add.check()
            .map_err(|e| ApiError::bad_request(format!("port-add: {e}")))?;
        if add.kind == Kind::Xen && self.xen.is_none() {
            let text = "port-add: kind: valed has no xenstore in its configuration";
            return Err(ApiError::bad_request(text));
        }
        let opened = match add.kind == Kind::Process && !fds.is_empty() {
            true => port::resume(&add, fds, &self.resources).map(|port| (port, Vec::new())),
            false => port::open(&add, &self.resources),
        };
        let (port, fds) = opened.map_err(|e| open_error(&add, &e))?;
        let added = self.forwarder.add(&add.switch, Box::new(port));
        let added = added.ok_or_else(stopped)?;
        if let Err(failure) = added {
            self.resources.discard_file(&add);
            return Err(add_error(&add, failure));
        }
        self.follow(&add)?;
        self.far_ends.look();
        let PortAdd {
            switch,
            port,
            kind,
            segment,
            ..
        } = &add;
        info!(
            "{switch}:{port}: added by uid {}, {kind:?} in segment {segment}",
            peer.uid
        );
        Ok((Done {}, fds))
    }

    /// Lets the Xen thread follow the frontend of a port.
    fn follow(&self, add: &PortAdd) -> Result<(), ApiError> {
        let (Some(xen), Some(guest)) = (&self.xen, add.guest) else {
            return Ok(());
        };
        let port = PortId {
            switch: add.switch.clone(),
            port: add.port.clone(),
        };
        if xen.add(port.clone(), guest, add.slots) {
            return Ok(());
        }
        self.forwarder.remove(&port);
        Err(ApiError::new("internal", "the Xen store is lost"))
    }

    fn port_remove(&self, peer: &Peer, id: PortId) -> Result<Done, ApiError> {
        self.forwarder.remove(&id).ok_or_else(stopped)?;
        info!("{}:{}: removed by uid {}", id.switch, id.port, peer.uid);
        if let Some(xen) = &self.xen {
            xen.remove(id);
        }
        self.far_ends.look();
        Ok(Done {})
    }

    fn port_set(&self, _: &Peer, set: PortSet) -> Result<Done, ApiError> {
        let PortSet {
            switch,
            port,
            link_up,
        } = set;
        let id = PortId { switch, port };
        done_at(&id, self.forwarder.set_link(&id, link_up))
    }

    fn port_peers(&self, peer: &Peer, peers: PortPeers) -> Result<Done, ApiError> {
        let id = peers.id();
        let vxlan = self.vxlan_of(&id)?;
        let checked = Vxlan {
            peers: peers.peers.clone(),
            ..vxlan
        };
        let named = |e| ApiError::bad_request(format!("port-peers: {e}"));
        checked.check().map_err(named)?;
        let (count, PortId { switch, port }) = (peers.peers.len(), &id);
        info!("{switch}:{port}: {count} peers set by uid {}", peer.uid);
        done_at(&id, self.forwarder.set_peers(peers))
    }

    fn port_guard(&self, _: &Peer, set: PortGuard) -> Result<Done, ApiError> {
        let id = PortId {
            switch: set.switch.clone(),
            port: set.port.clone(),
        };
        let mac = self.info_of(&id)?.mac;
        let named = |e| ApiError::bad_request(format!("port-guard: {e}"));
        set.check(mac).map_err(named)?;
        let guard = Guard::of(set.port_security, mac, &set.allowed).serving_dhcp(set.dhcp_server);
        done_at(&id, self.forwarder.set_guard(&id, &guard))
    }

    fn info_of(&self, id: &PortId) -> Result<PortInfo, ApiError> {
        let ports = self.forwarder.ports(Some(&id.switch));
        let ports = ports.ok_or_else(stopped)?;
        let port = ports.into_iter().find(|p| p.port == id.port);
        port.ok_or_else(|| no_such_port(id))
    }

    /// The network of a port of kind `vxlan`.
    fn vxlan_of(&self, id: &PortId) -> Result<Vxlan, ApiError> {
        let port = self.info_of(id)?;
        port.uplink.and_then(|uplink| uplink.vxlan).ok_or_else(|| {
            let PortId { switch, port } = id;
            let text = format!("port: {switch}:{port} is not a port of kind vxlan");
            ApiError::bad_request(format!("port-peers: {text}"))
        })
    }

    fn port_limit(&self, _: &Peer, limit: PortLimit) -> Result<Done, ApiError> {
        let named = |e| ApiError::bad_request(format!("port-limit: {e}"));
        limit.limits.check().map_err(named)?;
        let found = self.forwarder.set_limits(&limit);
        let PortLimit { switch, port, .. } = limit;
        done_at(&PortId { switch, port }, found)
    }

    fn port_filter(&self, _: &Peer, filter: PortFilter) -> Result<Done, ApiError> {
        let named = |e| ApiError::bad_request(format!("port-filter: {e}"));
        filter.check().map_err(named)?;
        let PortFilter {
            switch,
            port,
            rules,
        } = filter;
        let id = PortId { switch, port };
        let filter = rules.map(|rules| Box::new(Filter::new(&rules)));
        done_at(&id, self.forwarder.set_filter(&id, filter))
    }

    fn port_trace(&self, _: &Peer, trace: PortTrace) -> Result<Trace, ApiError> {
        let named = |e| ApiError::bad_request(format!("port-trace: {e}"));
        let frame = trace.bytes().map_err(named)?;
        let PortTrace { switch, port, .. } = trace;
        let id = PortId { switch, port };
        let found = self.forwarder.trace(&id, frame);
        found.ok_or_else(stopped)?.ok_or_else(|| no_such_port(&id))
    }

    fn port_list(&self, _: &Peer, list: PortList) -> Result<Ports, ApiError> {
        let ports = self.forwarder.ports(list.switch.as_ref());
        let ports = ports.ok_or_else(stopped)?;
        Ok(Ports { ports })
    }
}

/// The answer of a verb that changes a port: `found` is false if there is none.
fn done_at(port: &PortId, found: Option<bool>) -> Result<Done, ApiError> {
    match found {
        Some(true) => Ok(Done {}),
        Some(false) => Err(no_such_port(port)),
        None => Err(stopped()),
    }
}

fn no_such_port(port: &PortId) -> ApiError {
    ApiError::new("no-such-port", texts::no_port(&port.switch, &port.port))
}

fn no_such_switch(switch: &SwitchName) -> ApiError {
    ApiError::new("no-such-switch", texts::no_switch(switch))
}

fn stopped() -> ApiError {
    ApiError::new("internal", "valed is stopping")
}

fn open_error(add: &PortAdd, error: &io::Error) -> ApiError {
    if let Some(vxlan) = &add.vxlan {
        return vxlan_error(vxlan, error);
    }
    if let Some(pipe) = &add.pipe {
        return pipe_error(pipe, add, error);
    }
    if add.pcap.is_some() {
        return pcap_error(error);
    }
    let (name, ifname) = (&add.port, add.ifname.as_deref().unwrap_or_default());
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::NODEV) => {
            let message = format!("ifname: {ifname} does not exist in valed's network namespace");
            ApiError::new("no-such-interface", message)
        }
        None if add.kind == Kind::Process => {
            ApiError::bad_request(format!("port {name}: rings: {error}"))
        }
        _ => ApiError::new("internal", format!("port {name}: {ifname}: {error}")),
    }
}

fn vxlan_error(of: &Vxlan, error: &io::Error) -> ApiError {
    let Vxlan { vni, local, .. } = of;
    let (code, text) = match error.kind() {
        io::ErrorKind::AlreadyExists => ("exists", format!("vni: {vni} at {local} has a port")),
        io::ErrorKind::AddrNotAvailable => (
            "no-such-interface",
            format!("local: {local} is not an address in valed's network namespace"),
        ),
        _ => ("internal", format!("local: {local}: {error}")),
    };
    ApiError::new(code, format!("vxlan.{text}"))
}

fn pipe_error(pipe: &PipeName, add: &PortAdd, error: &io::Error) -> ApiError {
    let PortAdd {
        switch, segment, ..
    } = add;
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            ApiError::new("exists", format!("pipe: {pipe} has two ports already"))
        }
        _ => ApiError::bad_request(format!(
            "pipe: {pipe} would close a loop; pipes already lead to segment {segment} of {switch}"
        )),
    }
}

fn pcap_error(error: &io::Error) -> ApiError {
    let code = match error.kind() {
        io::ErrorKind::AlreadyExists => "exists",
        _ => "bad-request",
    };
    ApiError::new(code, format!("pcap.{error}"))
}

fn add_error(add: &PortAdd, failure: AddFailure) -> ApiError {
    let PortAdd {
        switch,
        port,
        segment,
        ..
    } = add;
    let (code, text) = match failure {
        AddFailure::InterfaceTaken(ifname) => (
            "exists",
            format!("ifname: {ifname} belongs to another port"),
        ),
        AddFailure::TooManySwitches => (
            "too-many",
            format!("there are {MAX_SWITCHES} switches already"),
        ),
        AddFailure::Switch(AddError::Full) => (
            "too-many",
            format!("the switch has {MAX_PORTS} ports already"),
        ),
        AddFailure::Switch(AddError::NameTaken) => ("exists", "the port exists already".to_owned()),
        AddFailure::Switch(AddError::MacTaken(mac)) => (
            "exists",
            format!("mac: another port in segment {segment} has {mac}"),
        ),
        AddFailure::Watch(e) => ("internal", e.to_string()),
    };
    ApiError::new(code, format!("{switch}:{port}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn peer(roles: &[&str]) -> Peer {
        Peer {
            uid: 65_534,
            pid: 1,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            connection: 1,
        }
    }

    /// The code of a call without arguments that `peer` may not make.
    fn refusal(peer: &Peer, verb: &str) -> Option<String> {
        refused(peer, verb, &json!({})).map(|error| error.code)
    }

    fn refused(peer: &Peer, verb: &str, args: &Value) -> Option<ApiError> {
        let line = json!({"v": 1, "id": 1, "verb": verb, "args": args}).to_string();
        let (_, work) = control_socket::prepare::<Control>(peer, line.as_bytes());
        work.err()
    }

    #[test]
    fn the_table_has_every_verb_of_the_contract() {
        let mut bound: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
        let mut named = verb::NAMES.to_vec();
        bound.sort_unstable();
        named.sort_unstable();
        assert_eq!(bound, named);
    }

    #[test]
    fn every_verb_refuses_what_it_does_not_know() {
        let operator = peer(&[control_socket::OPERATOR]);
        for name in verb::NAMES {
            for args in [json!({"nonsense": 1}), json!([]), json!(7)] {
                let error = refused(&operator, name, &args);
                let error = error.unwrap_or_else(|| panic!("{name} {args}"));
                assert_eq!(error.code, "bad-request", "{name} {args}");
                assert!(error.message.starts_with(&format!("{name}: ")), "{error}");
            }
        }
    }

    #[test]
    fn only_the_toolstack_and_the_operator_see_ports_chains_and_rules() {
        let (nobody, other) = (peer(&[]), peer(&["other"]));
        for verb in Control::verbs() {
            let name = verb.name;
            let is_hello = name == "hello";
            assert_eq!(
                refusal(&nobody, name).as_deref(),
                Some("forbidden"),
                "{name}"
            );
            let of_other = refusal(&other, name);
            assert_eq!(of_other.as_deref() != Some("forbidden"), is_hello, "{name}");
            let operator = refusal(&peer(&[control_socket::OPERATOR]), name);
            assert_ne!(operator.as_deref(), Some("forbidden"), "{name}");
            if name.ends_with("-list") {
                assert_eq!(refusal(&peer(&[TOOLSTACK]), name), None, "{name}");
            }
        }
    }
}
