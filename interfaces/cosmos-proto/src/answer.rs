// SPDX-License-Identifier: Apache-2.0
//! The answers of the verbs. A reader ignores fields it does not know, so that it also
//! understands a newer cosmosd.

use serde::{Deserialize, Serialize};
use vale_proto::{Counters, Mac, PortName, SegmentUplink, SwitchName};

use crate::guest::{Nic, Uuid, Vif};
use crate::request::{History, Passing};

/// The daemon, and its caller's roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    pub version: String,
    pub host_kind: String,
    pub roles: Vec<String>,
}

/// The host's kind, its room and its use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    pub host_kind: String,
    /// Memory that guests may use together.
    pub memory_mib: u64,
    pub memory_used_mib: u64,
    pub cpus: usize,
    /// VCPUs that a guest may have at most.
    #[serde(default = "one")]
    pub max_vcpus: u8,
    /// VCPUs of all guests.
    #[serde(default)]
    pub vcpus_used: u64,
    pub guests: usize,
    /// Booted guests that wait for their configuration.
    pub pooled: usize,
    pub max_guests: usize,
    pub uptime_s: u64,
    pub version: String,
    /// The installed image; null where there is none.
    pub engine_sha256: Option<String>,
    /// The daemons that do not answer, so that guests are cut off or cannot be changed.
    pub faults: Vec<Fault>,
}

/// Of a cosmosd that does not know of VCPUs.
fn one() -> u8 {
    1
}

/// A need of guests that the host lacks, as `host` and the event `host` list it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// `valed` or `xenstored`.
    pub part: String,
    pub reason: String,
}

/// The steps of a command and their milliseconds, in order.
pub type StepsMs = Vec<(String, f64)>;

/// A new guest. Its router runs, and every write is applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created {
    pub domid: u16,
    /// The UUID of this start of the guest.
    pub incarnation: Uuid,
    pub steps_ms: StepsMs,
}

/// A guest that `restore` brought back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    pub steps_ms: StepsMs,
}

/// A guest that `save` wrote to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saved {
    /// Size of the file.
    pub bytes: u64,
}

/// A guest; `list` leaves out its vifs' allowed addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guest {
    pub uuid: Uuid,
    pub name: String,
    pub domid: u16,
    /// See `docs/interfaces.md`, "cosmosd".
    pub state: String,
    /// Why the guest is in this state, where something failed.
    pub reason: String,
    pub memory_mib: u32,
    #[serde(default = "one")]
    pub vcpus: u8,
    /// Seconds since 1970.
    pub created_s: u64,
    pub cpu_time_ns: u64,
    pub image_sha256: String,
    pub vifs: Vec<Vif>,
    pub nics: Vec<Nic>,
    pub config_name: String,
    /// The UUID of this start of the guest.
    pub incarnation: Uuid,
    /// The newest number of a change.
    pub number: u64,
    /// True if the ports stay down until `release`.
    pub held: bool,
}

/// A domain that cosmosd did not make and that looks like a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stranger {
    pub domid: u16,
    /// The guest that it looks like.
    pub uuid: Uuid,
    /// As its maker named it.
    pub name: String,
}

/// All of them on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strangers {
    pub strangers: Vec<Stranger>,
}

/// The uplinks that `uplink-set` made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uplinks {
    pub uplinks: Vec<SegmentUplink>,
}

/// A port that `device-set` made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    pub switch: SwitchName,
    pub port: PortName,
    pub segment: u32,
    pub mac: Mac,
}

/// The ports that `device-set` made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Devices {
    pub devices: Vec<Device>,
}

/// All guests of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Guests {
    pub guests: Vec<Guest>,
}

/// The guests that have a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    pub uuids: Vec<Uuid>,
}

/// The end of a console's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Log {
    pub text: String,
}

/// An image of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    pub sha256: String,
    /// In bytes.
    pub size: u64,
    /// Seconds since 1970 of its last use.
    pub used_s: u64,
}

/// The images of the cache, the last used one first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Images {
    pub images: Vec<Image>,
}

/// A piece of an image that cosmosd took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Taken {
    /// True if the host has the whole image.
    pub complete: bool,
}

/// A configuration that the guest took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Installed {
    pub generation: u64,
    #[serde(flatten)]
    pub changes: Applied,
}

/// The numbered changes that a guest accepted in this start.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Applied {
    /// The newest numbers, the last one last; empty without a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<u64>,
    /// The UUID of this start of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// Writes of these changes that are no values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passing: Vec<Passing>,
}

/// A numbered change that a guest refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    pub number: u64,
    pub code: String,
    pub message: String,
}

/// The numbered changes of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// The UUID of this start of the guest.
    pub incarnation: Uuid,
    /// The guest takes no change with this number or a lower one any more.
    pub newest: u64,
    /// The newest that the guest accepted.
    pub applied: Vec<u64>,
    /// The newest that the guest refused.
    pub refused: Vec<Refusal>,
    /// Those that the guest has not answered.
    pub pending: Vec<u64>,
    /// Writes of the accepted changes that are no values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passing: Vec<Passing>,
}

/// A guest that was halted for a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Halted {
    /// As they were before.
    pub routers: Vec<Router>,
    pub changes: History,
}

/// An installed router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Router {
    pub rid: u8,
    /// `Running`, `Halted`, or `Error`: the guest refused the last configuration, and an earlier
    /// one runs.
    pub state: String,
    pub config_name: String,
}

impl Router {
    pub fn is_halted(&self) -> bool {
        self.state == "Halted"
    }
}

/// The routers of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Routers {
    pub routers: Vec<Router>,
}

/// A handler and its uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handler {
    pub name: String,
    pub read: bool,
    pub write: bool,
}

/// The handlers of a router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handlers {
    pub handlers: Vec<Handler>,
}

/// The value of a read handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandlerValue {
    pub value: String,
}

/// The answers of several read handlers, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandlerValues {
    pub values: Vec<ReadOutcome>,
}

/// A handler's value, or why it has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReadOutcome {
    Value(String),
    Error(ReadError),
}

/// Why a handler has no value: a code of a refused request, and a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadError {
    pub code: String,
    pub message: String,
}

/// The switch ports of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestPorts {
    pub ports: Vec<GuestPort>,
}

/// An interface of a guest, with the counters of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestPort {
    pub devid: u32,
    pub mac: Mac,
    /// The UUID of its Neutron port, if it has one.
    pub port_id: Option<Uuid>,
    pub link_up: bool,
    /// True if the port has a filter without rules, which drops all frames.
    pub closed: bool,
    pub counters: Counters,
}
