// SPDX-License-Identifier: Apache-2.0
//! What every worker knows of a port, and the stages that need no more.
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use vale_proto::{Counters, FarEnd, GuestVif, Kind, Mac, PortAdd, PortName, Uplink};

use crate::device::Device;
use crate::frame::drop_reason::DropReason;
use crate::frame::headers::{ETHERNET, Ethernet};
use crate::policy::guard::Guard;

/// A packet that a hop of a chain sends.
#[derive(Clone, Copy)]
pub struct Relayed {
    /// Its source MAC address is that of the station whose packets the chain gave to the hop.
    pub is_station: bool,
}

/// What every worker knows of a port.
#[derive(Clone)]
pub struct Face {
    pub name: PortName,
    /// Tells the port from later ones of its name or place.
    pub id: u64,
    /// The far end is on its way to another worker: frames to the port wait at their source.
    pub is_moving: bool,
    /// The name of its interface, and the VLAN of a port that has only one of them.
    pub interface: Option<(String, Option<u16>)>,
    pub(super) kind: Kind,
    pub(super) guest: Option<GuestVif>,
    pub segment: u32,
    pub mac: Option<Mac>,
    /// The switch learns the stations behind the port.
    pub learns: bool,
    /// An uplink of untagged frames: a tag would lead to another network.
    pub(super) is_untagged: bool,
    /// Stations may be behind the port: it gets frames to unknown addresses of its segment.
    pub is_open: bool,
    pub(super) mtu: usize,
    pub link_up: bool,
    pub far_end: FarEnd,
    pub guard: Guard,
    /// The worker of the port has a filter for it.
    pub is_filtered: bool,
    /// Frames from the port wait for a full receiver.
    pub has_backpressure: bool,
    /// Frames of a port with backpressure, at other workers.
    pub remote_in_flight: Arc<AtomicUsize>,
    /// The number of the port's owner.
    pub owner: Option<u64>,
}

impl Face {
    pub fn new(add: &PortAdd, device: &dyn Device) -> Self {
        Self {
            name: add.port.clone(),
            id: 0,
            is_moving: false,
            interface: device
                .interface()
                .map(|(name, vlan)| (name.to_owned(), vlan)),
            kind: add.kind,
            guest: add.guest,
            segment: add.segment,
            mac: add.mac,
            learns: matches!(add.kind, Kind::Veth | Kind::Tap | Kind::Vxlan | Kind::Pipe)
                && add.mac.is_none(),
            is_untagged: Uplink::of(add).is_some() && !add.vlan_tags,
            is_open: add.mac.is_none() || !add.port_security,
            mtu: add.mtu.into(),
            link_up: add.link_up,
            far_end: device.far_end(),
            guard: Guard::new(add),
            is_filtered: add.filtered,
            has_backpressure: add.backpressure,
            remote_in_flight: Arc::default(),
            owner: add.owner,
        }
    }

    /// True for a port that leads to the other hosts of a chain's path.
    pub fn is_path(&self) -> bool {
        self.kind == Kind::Path
    }

    /// True if frames can leave by the port.
    pub fn is_live(&self) -> bool {
        self.link_up && self.far_end == FarEnd::Up
    }

    /// Notes the state of the far end. False if it is known.
    pub fn note_far_end(&mut self, state: FarEnd) -> bool {
        std::mem::replace(&mut self.far_end, state) != state
    }

    /// Judges a frame from the far end, which a hop of a chain may have `relayed`. Returns the number of
    /// bytes at its start on which the verdict rests.
    pub fn judge(
        &self,
        ethernet: &Ethernet,
        bytes: &[u8],
        relayed: Option<Relayed>,
    ) -> Result<usize, Counter> {
        if !self.link_up {
            return Err(|c| &mut c.dropped_link_down);
        }
        if ethernet.is_link_control() {
            return Err(|c| &mut c.dropped_link_control);
        }
        self.takes_tags(ethernet.payload)?;
        let judged = match relayed {
            Some(Relayed { is_station }) => self.guard.judge_relayed(ethernet, bytes, is_station),
            None => self.guard.judge(ethernet, bytes),
        };
        judged.map_err(counter_of)
    }

    /// False without a link, and for a far end that is gone.
    pub(super) fn takes_any(&self) -> bool {
        self.link_up & (self.far_end != FarEnd::Gone)
    }

    /// True if the port takes all frames up to a length.
    pub fn takes_all(&self, longest: usize) -> bool {
        self.takes_any() && !self.is_untagged && longest <= self.mtu + ETHERNET
    }

    /// The link and the MTU. The length of the IP packet is in bytes.
    pub fn takes(&self, packet: usize) -> Result<(), Counter> {
        if !self.takes_any() {
            return Err(|c| &mut c.dropped_link_down);
        }
        if packet > self.mtu {
            return Err(|c| &mut c.dropped_too_long);
        }
        Ok(())
    }

    /// The tags of a frame from or to the port, whose payload is at this offset.
    pub fn takes_tags(&self, payload: usize) -> Result<(), Counter> {
        match self.is_untagged && payload != ETHERNET {
            true => Err(|c| &mut c.dropped_type),
            false => Ok(()),
        }
    }

    /// True for the address of a virtual router that port security allows the guest next to its own. It is
    /// where it was seen last: it moves between the ports of the guests that may have it.
    pub fn has_virtual_router(&self, station: Mac) -> bool {
        station.is_virtual_router() && self.mac != Some(station) && self.guard.allows(station)
    }

    /// Gives the port the addresses of a guard, which gets the port's. False if both are the same.
    pub fn set_guard(&mut self, guard: &mut Guard) -> bool {
        let differs = self.guard.exchange(guard);
        if differs {
            self.is_open = self.mac.is_none() || !self.guard.is_secure();
        }
        differs
    }
}

/// The counter of a drop.
pub type Counter = fn(&mut Counters) -> &mut u64;
pub const MALFORMED: Counter = |c| &mut c.dropped_malformed;

fn counter_of(refusal: DropReason) -> Counter {
    match refusal {
        DropReason::Malformed => MALFORMED,
        DropReason::Type => |c| &mut c.dropped_type,
        DropReason::Spoof => |c| &mut c.dropped_spoof,
        DropReason::Rogue => |c| &mut c.dropped_rogue,
        DropReason::Hidden => |c| &mut c.dropped_hidden,
    }
}
