// SPDX-License-Identifier: Apache-2.0
//! The arguments of the verbs. No field is ignored, and no list is read beyond its limit, so that
//! a request costs about as much memory as its line.

use serde::{Deserialize, Deserializer, Serialize};
use vale_proto::SwitchName;

use crate::guest::{Cpu, Sha256Text, Uuid, Vif, Write, writes};
use crate::value::{ConfigName, ConfigText, HandlerName, Param, Rid, TimeoutMs};

/// Verdicts of changes that a guest's ledger keeps, the newest.
pub const VERDICTS: usize = 16;
/// Handlers of one `handlers-read`.
pub const MAX_READS: usize = 64;
/// Bytes of all values of one `handlers-read`: any value that `handler-read` returns fits alone.
pub const MAX_READ_BYTES: usize = clickos_protocol::ANSWER_MAX;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OfGuest {
    pub uuid: Uuid,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Console {
    pub uuid: Uuid,
    pub max_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Install {
    pub uuid: Uuid,
    #[serde(default)]
    pub rid: Rid,
    pub config: ConfigText,
    pub config_name: ConfigName,
    #[serde(default)]
    pub halted: bool,
    /// Orders the change among others of the guest, if it has a number.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        // Its name before 0.3.
        alias = "stamp"
    )]
    pub change_id: Option<ChangeId>,
    #[serde(default)]
    pub timeout_ms: TimeoutMs,
}

/// A change of a guest (docs/adr/0071).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeId {
    /// Above the numbers of all earlier changes.
    pub number: u64,
    /// Refuses the change if the guest started again since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
}

/// A number that all later changes of a guest are above.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeFence {
    pub uuid: Uuid,
    pub number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub uuid: Uuid,
    #[serde(default)]
    pub rid: Rid,
    pub run: bool,
    #[serde(default)]
    pub timeout_ms: TimeoutMs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MigrateBegin {
    pub uuid: Uuid,
    #[serde(default)]
    pub timeout_ms: TimeoutMs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MigrateFinish {
    pub uuid: Uuid,
    /// Those that are to run.
    #[serde(deserialize_with = "rids")]
    pub routers: Vec<u8>,
    /// As `migrate-begin` gave it on the other host.
    pub changes: History,
    #[serde(default)]
    pub timeout_ms: TimeoutMs,
}

/// The numbered changes of a guest that moves (docs/adr/0071).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Continues on the other host.
    pub incarnation: Uuid,
    /// The guest takes no change with this number or a lower one any more.
    pub newest: u64,
    /// The newest that the guest accepted.
    #[serde(deserialize_with = "applied")]
    pub applied: Vec<u64>,
    /// The writes of these changes that are no values.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "passing"
    )]
    pub passing: Vec<Passing>,
}

/// The writes of a numbered change that a start of the guest must not repeat. The lists have
/// places among the writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Passing {
    pub number: u64,
    /// Writes that did something once.
    #[serde(deserialize_with = "commands")]
    pub commands: Vec<u16>,
    /// Writes that changed a part of a table.
    #[serde(deserialize_with = "edits")]
    pub edits: Vec<u16>,
}

/// A segment of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OfSegment {
    pub switch: SwitchName,
    pub segment: u32,
}

/// An interface of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub uuid: Uuid,
    pub devid: u32,
    /// Refuses if the guest is another domain by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domid: Option<u16>,
}

/// An interface for a running guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlugVif {
    pub uuid: Uuid,
    pub vif: Vif,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VifLink {
    pub uuid: Uuid,
    pub devid: u32,
    /// Refuses if the guest is another domain by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domid: Option<u16>,
    pub link_up: bool,
}

impl VifLink {
    pub fn place(&self) -> Place {
        Place {
            uuid: self.uuid.clone(),
            devid: self.devid,
            domid: self.domid,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub uuid: Uuid,
    pub cpu: Cpu,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OfRouter {
    pub uuid: Uuid,
    #[serde(default)]
    pub rid: Rid,
    /// A cosmosd of before 0.3 takes none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: TimeoutMs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Read {
    pub uuid: Uuid,
    #[serde(default)]
    pub rid: Rid,
    pub name: HandlerName,
    /// For a handler that takes a parameter.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub param: Param,
    /// A cosmosd of before 0.3 takes none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: TimeoutMs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reads {
    pub uuid: Uuid,
    #[serde(default)]
    pub rid: Rid,
    #[serde(deserialize_with = "names")]
    pub names: Vec<HandlerName>,
    /// A parameter for each of the names, or none at all; it is empty for a handler without one.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "params"
    )]
    pub params: Vec<Param>,
    /// A cosmosd of before 0.3 takes none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: TimeoutMs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Writes {
    pub uuid: Uuid,
    #[serde(default)]
    pub rid: Rid,
    #[serde(deserialize_with = "writes")]
    pub writes: Vec<Write>,
    /// Orders the change among others of the guest, if it has a number.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        // Its name before 0.3.
        alias = "stamp"
    )]
    pub change_id: Option<ChangeId>,
    /// The values have secrets: no error or ledger has the guest's words about them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_secrets: bool,
    #[serde(default)]
    pub timeout_ms: TimeoutMs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ImageAdd {
    pub sha256: Sha256Text,
    pub size: u64,
    pub offset: u64,
    /// In base64.
    pub data: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OfImage {
    pub sha256: Sha256Text,
}

fn is_default(timeout: &TimeoutMs) -> bool {
    *timeout == TimeoutMs::default()
}

fn is_empty(param: &Param) -> bool {
    param.is_empty()
}

fn applied<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u64>, D::Error> {
    control_socket::at_most(input, VERDICTS)
}

fn names<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<HandlerName>, D::Error> {
    control_socket::at_most(input, MAX_READS)
}

fn params<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Param>, D::Error> {
    control_socket::at_most(input, MAX_READS)
}

fn passing<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Passing>, D::Error> {
    control_socket::at_most(input, VERDICTS)
}

fn commands<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u16>, D::Error> {
    control_socket::at_most(input, clickos_protocol::WRITES_MAX)
}

fn edits<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u16>, D::Error> {
    control_socket::at_most(input, clickos_protocol::WRITES_MAX)
}

fn rids<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
    control_socket::at_most(input, clickos_protocol::ROUTERS.into())
}
