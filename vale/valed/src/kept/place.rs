// SPDX-License-Identifier: Apache-2.0
//! The place of a kept request: a later request for the place replaces it.
use std::fmt;

use vale_proto::{Keep, OffloadEnable, OffloadSet, Owner, PortId, PortName, SwitchName};

use crate::texts;

/// The thing that a request sets, in the order in which valed repeats the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Port,
    Link,
    Limits,
    Filter,
    SegmentLimits,
    Chain,
    Mirror,
    Rules(Owner),
    /// A table that decides nothing.
    Disabled(Owner),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    what: What,
    switch: SwitchName,
    /// The name of the port, chain or mirror; the number of a segment.
    name: String,
}

impl Place {
    /// The place of a request. None for one that removes something.
    pub fn of(request: &Keep) -> Option<Self> {
        let place = match request {
            Keep::PortAdd(add) => Self::at(What::Port, &add.switch, &add.port),
            Keep::PortSet(set) => Self::at(What::Link, &set.switch, &set.port),
            Keep::PortLimit(limit) => Self::at(What::Limits, &limit.switch, &limit.port),
            Keep::PortFilter(filter) => Self::at(What::Filter, &filter.switch, &filter.port),
            Keep::SegmentLimit(limit) => {
                Self::at(What::SegmentLimits, &limit.switch, &limit.segment)
            }
            Keep::ChainSet(set) => Self::at(What::Chain, &set.switch, &set.chain),
            Keep::MirrorSet(set) => Self::at(What::Mirror, &set.switch, &set.mirror),
            Keep::OffloadSet(OffloadSet {
                switch,
                port,
                owner,
                ..
            }) => Self::at(What::Rules(*owner), switch, port),
            Keep::OffloadEnable(OffloadEnable {
                switch,
                port,
                owner,
                ..
            }) => Self::at(What::Disabled(*owner), switch, port),
            Keep::PortRemove(_)
            | Keep::OffloadRemove(_)
            | Keep::MirrorRemove(_)
            | Keep::ChainRemove(_) => return None,
        };
        Some(place)
    }

    pub fn at(what: What, switch: &SwitchName, name: &impl ToString) -> Self {
        Self {
            what,
            switch: switch.clone(),
            name: name.to_string(),
        }
    }

    pub fn port(id: &PortId) -> Self {
        Self::at(What::Port, &id.switch, &id.port)
    }

    pub fn is_of_switch(&self, switch: &SwitchName) -> bool {
        self.switch == *switch
    }

    pub fn is_of_port(&self, id: &PortId) -> bool {
        !self.is_for_switch() && self.switch == id.switch && self.name == id.port.as_str()
    }

    /// The kept port that a request is kept with; none for one that may be about a port of others.
    pub fn kept_port(&self) -> Option<Self> {
        let what = match self.what {
            What::Link | What::Limits | What::Filter => What::Port,
            _ => return None,
        };
        Some(Self {
            what,
            ..self.clone()
        })
    }

    /// Why a request about a port waits while the port is not there.
    pub fn without_port(&self) -> String {
        texts::no_port(&self.switch, &self.name)
    }

    pub fn is_port(&self) -> bool {
        self.what == What::Port
    }

    /// True for what a switch has and none of its ports, although it may name some.
    pub fn is_for_switch(&self) -> bool {
        matches!(self.what, What::SegmentLimits | What::Chain | What::Mirror)
    }

    /// True if the arrival of a port, or of its guest's rules, may end the wait of the request.
    pub fn may_follow(&self, switch: &SwitchName, port: &PortName) -> bool {
        self.switch == *switch && (self.is_for_switch() || self.name == port.as_str())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, switch, name } = self;
        let what = match what {
            What::Port => "port",
            What::Link => "link of port",
            What::Limits => "limits of port",
            What::Filter => "filter of port",
            What::SegmentLimits => "limits of segment",
            What::Chain => "chain",
            What::Mirror => "mirror",
            What::Rules(_) => "rules of port",
            What::Disabled(_) => "disabled rules of port",
        };
        write!(f, "{switch}: {what} {name}")
    }
}
