// SPDX-License-Identifier: Apache-2.0
//! The verbs about requests that are kept, and what other verbs change for them.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use control_socket::{ApiError, Done, OPERATOR, Peer};
use log::error;
use vale_proto::{
    Keep, KeepAnswer, KeptList, MAX_KEPT, OffloadChange, OffloadSet, PortAdd, PortId, PortName,
    SwitchName,
};

use super::{Control, NoArgs, stopped};
use crate::kept::{KeepError, Place, State};

/// Time between two tries of requests that are not in force, for example until an interface appears.
const RETRY: Duration = Duration::from_secs(1);
const OFF: &str = "valed has no state_dir in its configuration";

impl Control {
    pub(super) fn keep(&self, peer: &Peer, request: Keep) -> Result<KeepAnswer, ApiError> {
        let mut state = self.kept.lock();
        let change = state.change(&request, self.is_last(&request)?);
        let change = change.map_err(|e| ApiError::bad_request(format!("keep: {e}")))?;
        let next = self.kept.prepare(&state, &change).map_err(refused)?;
        match self.carry_out(peer, &state.as_carried_out(&request)) {
            // It waited for a thing that may never come.
            Err(e) if e.code.starts_with("no-such-") && state.forgets(&change) => {}
            done => done?,
        }
        if let Some(Err(e)) = next.map(|next| next.commit()) {
            let text = format!("{e}; the request is in force and not kept");
            return Err(ApiError::new("internal", text));
        }
        let off = self.kept.is_off().then_some(OFF);
        let not_kept = change.not_kept.or(off).map(str::to_owned);
        if off.is_none() {
            state.take(change);
        }
        if let Keep::PortAdd(add) = &request {
            self.retry(&mut state, |place| place.may_follow(&add.switch, &add.port));
            self.kept.notify();
        }
        Ok(KeepAnswer { not_kept })
    }

    pub(super) fn kept_list(&self, _: &Peer, _: NoArgs) -> Result<KeptList, ApiError> {
        Ok(self.kept.list())
    }

    /// True for the removal of a switch's last port.
    fn is_last(&self, request: &Keep) -> Result<bool, ApiError> {
        let Keep::PortRemove(id) = request else {
            return Ok(false);
        };
        let ports = self.forwarder.ports(Some(&id.switch)).ok_or_else(stopped)?;
        Ok(ports.iter().all(|port| port.port == id.port))
    }

    /// Does what the verb of the request does.
    fn carry_out(&self, peer: &Peer, request: &Keep) -> Result<(), ApiError> {
        match request.clone() {
            Keep::PortAdd(add) => self.port_add(peer, *add, Vec::new()).map(drop),
            Keep::PortRemove(id) => self.port_remove(peer, id).map(drop),
            Keep::PortSet(set) => self.port_set(peer, set).map(drop),
            Keep::PortLimit(limit) => self.port_limit(peer, limit).map(drop),
            Keep::PortFilter(filter) => self.port_filter(peer, filter).map(drop),
            Keep::SegmentLimit(limit) => self.segment_limit(peer, limit).map(drop),
            Keep::OffloadSet(set) => self.offload_set(peer, set).map(drop),
            Keep::OffloadRemove(id) => self.offload_remove(peer, id).map(drop),
            Keep::OffloadEnable(enable) => self.offload_enable(peer, enable).map(drop),
            Keep::MirrorSet(set) => self.mirror_set(peer, set).map(drop),
            Keep::MirrorRemove(id) => self.mirror_remove(peer, id).map(drop),
            Keep::ChainSet(set) => self.chain_set(peer, *set).map(drop),
            Keep::ChainRemove(id) => self.chain_remove(peer, id).map(drop),
        }
    }

    /// Tries requests that are not in force.
    fn retry(&self, state: &mut State, is_due: impl Fn(&Place) -> bool) {
        let valed = itself();
        state.retry(is_due, |request| {
            let done = self.carry_out(&valed, request);
            done.map_err(|error| error.message)
        });
    }

    /// A port, or the rules of its guest, may be what kept requests wait for.
    fn came(&self, switch: &SwitchName, port: &PortName) {
        let mut state = self.kept.lock();
        self.retry(&mut state, |place| place.may_follow(switch, port));
    }

    /// The verb `port-add`.
    pub(super) fn add_port(
        &self,
        peer: &Peer,
        add: PortAdd,
        fds: Vec<OwnedFd>,
    ) -> Result<(Done, Vec<OwnedFd>), ApiError> {
        let (switch, port) = (add.switch.clone(), add.port.clone());
        let answer = self.port_add(peer, add, fds)?;
        self.came(&switch, &port);
        Ok(answer)
    }

    /// The verb `port-remove`.
    pub(super) fn remove_port(&self, peer: &Peer, id: PortId) -> Result<Done, ApiError> {
        let mut state = self.kept.lock();
        let answer = self.port_remove(peer, id.clone())?;
        let ports = self.forwarder.ports(Some(&id.switch)).ok_or_else(stopped)?;
        if let Some(change) = state.note_removed(&id, ports.is_empty()) {
            let written = self.kept.prepare(&state, &change).map_err(refused);
            let written = written.and_then(|next| {
                let done = next.map_or(Ok(()), |next| next.commit());
                done.map_err(|e| ApiError::new("internal", e))
            });
            if let Err(e) = written {
                error!("{}:{}: removed, but still kept: {e}", id.switch, id.port);
            }
            state.take(change);
        }
        drop(state);
        self.kept.notify();
        Ok(answer)
    }

    /// The verb `offload-set`.
    pub(super) fn set_offload(
        &self,
        peer: &Peer,
        set: OffloadSet,
    ) -> Result<OffloadChange, ApiError> {
        let (switch, port) = (set.switch.clone(), set.port.clone());
        let answer = self.offload_set(peer, set)?;
        self.came(&switch, &port);
        Ok(answer)
    }
}

/// Repeats the kept requests, on a thread of its own.
///
/// # Errors
/// There is no further thread.
pub fn start(control: Arc<Control>) -> std::io::Result<()> {
    let follow = move || {
        // Without workers valed stops.
        while control.forwarder.ports(None).is_some() {
            let mut state = control.kept.wait();
            control.retry(&mut state, |_| true);
            drop(state);
            std::thread::sleep(RETRY);
        }
    };
    let thread = std::thread::Builder::new().name("kept".to_owned());
    thread.spawn(follow).map(drop)
}

/// valed as the peer that repeats an operator's requests.
fn itself() -> Peer {
    Peer {
        uid: rustix::process::geteuid().as_raw(),
        pid: rustix::process::getpid().as_raw_nonzero().get(),
        roles: vec![OPERATOR.to_owned()],
        connection: 0,
    }
}

fn refused(refusal: KeepError) -> ApiError {
    match refusal {
        KeepError::TooMany => {
            let text = format!("keep: there are {MAX_KEPT} requests already; remove some");
            ApiError::new("too-many", text)
        }
        KeepError::File(text) => ApiError::new("internal", format!("{text}; nothing was changed")),
    }
}
