// SPDX-License-Identifier: Apache-2.0
//! The verbs about chains.
use std::io::{self, ErrorKind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{
    ChainId, ChainList, ChainSet, Chains, Kind, MAX_CHAINS, MTU_RANGE, Path, PortAdd, PortId,
    PortName,
};

use super::{Control, add_error, no_such_switch, stopped};
use crate::chain::SetError;
use crate::frame::nsh::Link;
use crate::port::Port;
use crate::workers::Handle;

/// The time between two states of a chain that a host tells.
const EVERY: Duration = Duration::from_millis(200);

/// The port of a path and its link.
type NewPath = (Box<Port>, Arc<Link>);

impl Control {
    pub(super) fn chain_set(&self, peer: &Peer, set: ChainSet) -> Result<Done, ApiError> {
        set.check()
            .map_err(|e| ApiError::bad_request(format!("chain-set: {e}")))?;
        let name = format!("{}:{}", set.switch, set.chain);
        let (switch, hops) = (set.switch.clone(), set.hops.len());
        let judged = self.forwarder.check_claims(&set).ok_or_else(stopped)?;
        judged.map_err(|error| set_error(&set, &error))?;
        let new_path = self.new_path(&set)?;
        let add = path_port(&set);
        let done = match new_path {
            Some(path) => self.forwarder.set_path(&set, path),
            None => self.forwarder.set_chain(&set).map(Ok),
        };
        let done = done.ok_or_else(stopped)?;
        match done.map_err(|failure| add_error(&add, failure))? {
            Ok(true) => (),
            Ok(false) => return Err(no_such_switch(&switch)),
            Err(error) => return Err(set_error(&set, &error)),
        }
        info!("{name}: chain of {hops} hops set by uid {}", peer.uid);
        Ok(Done {})
    }

    /// The port of a chain's path and its link, unless the chain has them.
    fn new_path(&self, set: &ChainSet) -> Result<Option<NewPath>, ApiError> {
        let Some(path) = &set.path else {
            return Ok(None);
        };
        let Some(paths) = self.forwarder.paths_of(set).ok_or_else(stopped)? else {
            return Ok(None);
        };
        if paths.contains(&(path.number, path.local)) {
            return Ok(None);
        }
        let opened = self.resources.paths.open(path);
        let (device, link) = opened.map_err(|e| path_error(path, &e))?;
        start_ticks(&self.resources.chain_ticks, &self.forwarder);
        let port = Port::new(&path_port(set), Box::new(device));
        Ok(Some((Box::new(port), link)))
    }

    pub(super) fn chain_remove(&self, peer: &Peer, id: ChainId) -> Result<Done, ApiError> {
        let name = format!("{}:{}", id.switch, id.chain);
        let removed = self.forwarder.remove_chain(&id);
        removed.ok_or_else(stopped)?;
        info!("{name}: chain removed by uid {}", peer.uid);
        Ok(Done {})
    }

    pub(super) fn chain_list(&self, _: &Peer, list: ChainList) -> Result<Chains, ApiError> {
        let chains = self.forwarder.chains(list.switch.as_ref());
        let chains = chains.ok_or_else(stopped)?;
        Ok(Chains { chains })
    }
}

/// The port that leads to the other hosts of a chain's path, if it has one.
fn path_port(set: &ChainSet) -> PortAdd {
    let number = set.path.as_ref().map_or(0, |path| path.number);
    let id = PortId {
        switch: set.switch.clone(),
        port: PortName::of_path(number),
    };
    PortAdd {
        mtu: *MTU_RANGE.end(),
        ..PortAdd::open(id, Kind::Path, set.segment)
    }
}

fn set_error(set: &ChainSet, error: &SetError) -> ApiError {
    let ChainSet { switch, chain, .. } = set;
    match error {
        SetError::TooMany => {
            let text = format!("{switch}: there are {MAX_CHAINS} chains already");
            ApiError::new("too-many", text)
        }
        SetError::Claim(network, port) => {
            let text = format!("chain-set: nat: {network} is wider than {switch}:{port} may use");
            ApiError::bad_request(text)
        }
        SetError::NoPath => {
            let text = format!("{switch}:{chain}: the path changes at this moment; try again");
            ApiError::new("busy", text)
        }
    }
}

fn path_error(path: &Path, error: &io::Error) -> ApiError {
    let Path { number, local, .. } = path;
    let (code, text) = match error.kind() {
        ErrorKind::AlreadyExists => (
            "exists",
            format!("number: another chain at {local} has {number}"),
        ),
        ErrorKind::AddrNotAvailable => (
            "no-such-interface",
            format!("local: {local} is not an address in valed's network namespace"),
        ),
        _ => ("internal", format!("local: {local}: {error}")),
    };
    ApiError::new(code, format!("chain-set: path.{text}"))
}

/// Starts the thread that looks at all chains; a second call does nothing.
fn start_ticks(once: &OnceLock<()>, forwarder: &Handle) {
    once.get_or_init(|| {
        let forwarder = forwarder.clone();
        std::thread::spawn(move || {
            // The ports that are left over are closed here: closing takes milliseconds.
            while forwarder.tick_chains().is_some() {
                std::thread::sleep(EVERY);
            }
        });
    });
}
