// SPDX-License-Identifier: Apache-2.0
//! What a request changes in the kept ones.
use vale_proto::{
    Keep, Kind, Limits, OffloadEnable, OffloadId, OffloadSet, Owner, PortAdd, PortId, PortName,
    SwitchName,
};

use super::State;
use super::place::{Place, What};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub(super) set: Option<(Place, Keep)>,
    pub(super) forget: Vec<Place>,
    /// Why the request is carried out only.
    pub not_kept: Option<&'static str>,
}

const OF_ANOTHER: &str = "the port is not one of kept ports; its owner sets this again";

impl Change {
    pub fn forget(forget: Vec<Place>) -> Self {
        Self {
            forget,
            ..Self::default()
        }
    }

    fn set(request: &Keep) -> Self {
        let place = Place::of(request);
        Self {
            set: place.map(|place| (place, request.clone())),
            ..Self::default()
        }
    }

    /// The request is not kept, and what it replaces is not either.
    fn none(request: &Keep, why: &'static str) -> Self {
        Self {
            not_kept: Some(why),
            ..Self::forget(Place::of(request).into_iter().collect())
        }
    }
}

impl State {
    /// Returns the change that a request makes. With `is_last` it removes the switch together with its last port.
    ///
    /// # Errors
    /// No operator makes such a request.
    pub fn change(&self, request: &Keep, is_last: bool) -> Result<Change, String> {
        Ok(match request {
            Keep::PortAdd(add) => return added(request, add),
            Keep::PortRemove(id) => self.removed(id, is_last),
            Keep::PortSet(set) => self.of_kept_port(request, &set.switch, &set.port, false),
            Keep::PortLimit(limit) => {
                let is_default = limit.limits == Limits::default();
                self.of_kept_port(request, &limit.switch, &limit.port, is_default)
            }
            Keep::PortFilter(filter) => {
                let is_default = filter.rules.is_none();
                self.of_kept_port(request, &filter.switch, &filter.port, is_default)
            }
            Keep::SegmentLimit(limit) if limit.limits == Limits::default() => {
                Change::forget(Place::of(request).into_iter().collect())
            }
            Keep::OffloadSet(OffloadSet {
                owner: Owner::Guest,
                ..
            }) => return Err("offload-set: owner: only the guest has rules of its own".to_owned()),
            Keep::OffloadEnable(OffloadEnable { enabled: true, .. }) => {
                Change::forget(Place::of(request).into_iter().collect())
            }
            Keep::MirrorSet(set) if set.to_file.is_some() => {
                Change::none(request, "a mirror fills its file once")
            }
            Keep::ChainSet(set) if is_uuid(set.chain.as_str()) => {
                Change::none(request, "the agent has the chains that a UUID names")
            }
            Keep::OffloadSet(set) => Change::set(&Keep::OffloadSet(OffloadSet {
                replaces: None,
                ..set.clone()
            })),
            Keep::SegmentLimit(_)
            | Keep::OffloadEnable(_)
            | Keep::MirrorSet(_)
            | Keep::ChainSet(_) => Change::set(request),
            Keep::OffloadRemove(id) => Change::forget(tables(id)),
            Keep::MirrorRemove(id) => {
                Change::forget(vec![Place::at(What::Mirror, &id.switch, &id.mirror)])
            }
            Keep::ChainRemove(id) => {
                Change::forget(vec![Place::at(What::Chain, &id.switch, &id.chain)])
            }
        })
    }

    /// A request about a port is kept with the port.
    fn of_kept_port(
        &self,
        request: &Keep,
        switch: &SwitchName,
        port: &PortName,
        is_default: bool,
    ) -> Change {
        match (self.has(&Place::at(What::Port, switch, port)), is_default) {
            (false, _) => Change::none(request, OF_ANOTHER),
            (true, true) => Change::forget(Place::of(request).into_iter().collect()),
            (true, false) => Change::set(request),
        }
    }

    /// All that the port has ends with it.
    fn removed(&self, id: &PortId, is_last: bool) -> Change {
        Change::forget(self.places(|place| {
            let of_switch = place.is_for_switch() && place.is_of_switch(&id.switch);
            place.is_of_port(id) || is_last && of_switch
        }))
    }
}

fn added(request: &Keep, add: &PortAdd) -> Result<Change, String> {
    match add.kind {
        Kind::Process => {
            Err("port-add: kind: the toolstack alone has rings of a process".to_owned())
        }
        Kind::Xen => Ok(Change::none(request, "the port ends with its domain")),
        Kind::Pcap => Ok(Change::none(
            request,
            "the port plays and fills its files once",
        )),
        Kind::Tap | Kind::Veth | Kind::Vxlan | Kind::Pipe | Kind::Path => Ok(Change::set(request)),
    }
}

/// True for 36 digits and hyphens in the form of a UUID.
fn is_uuid(name: &str) -> bool {
    let groups = name.split('-').map(str::len);
    groups.eq([8, 4, 4, 4, 12])
}

fn tables(id: &OffloadId) -> Vec<Place> {
    let kinds = [What::Rules(id.owner), What::Disabled(id.owner)];
    kinds
        .map(|what| Place::at(what, &id.switch, &id.port))
        .to_vec()
}
