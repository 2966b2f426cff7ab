// SPDX-License-Identifier: Apache-2.0
//! The verbs of valed. A row has the meaning, the name, the roles besides the operator, the size
//! and the types of arguments and answer.
use control_socket::{Done, NoArgs, verbs};
use serde::{Deserialize, Serialize};

use crate::*;

/// Answer of `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    pub version: String,
}

verbs! {
    /// Names the version.
    Hello "hello" [any]: NoArgs => Version;
    /// Adds a port; the first one makes its switch. For kind `process` three descriptors come with the
    /// answer. A request with those of an earlier valed keeps its rings (adr/0050).
    AddPort "port-add" [toolstack]: PortAdd => Done;
    /// Removes a port, and with the last one its switch; idempotent.
    RemovePort "port-remove" [toolstack]: PortId => Done;
    /// Connects to the device `vale/<devid>` of a Xen guest. A `port-add` with the same guest and
    /// slots takes its rings over (adr/0098); idempotent.
    AddPreconnected "preconnect-add" [toolstack]: PreconnectAdd => Done;
    /// Leaves the preconnected vifs of a domain; idempotent.
    RemovePreconnected "preconnect-remove" [toolstack]: PreconnectRemove => Done;
    /// Lists the vifs of `preconnect-add` without a port.
    ListPreconnected "preconnect-list" [toolstack] listing: NoArgs => PreconnectedVifs;
    /// Sets the link of a port.
    SetPort "port-set" [toolstack]: PortSet => Done;
    /// Replaces what a port may send; the same changes nothing.
    GuardPort "port-guard" [toolstack] large: PortGuard => Done;
    /// Replaces the peers of a port of kind `vxlan`.
    SetPeers "port-peers" [toolstack]: PortPeers => Done;
    /// Lists the ports of a switch, or all.
    ListPorts "port-list" [toolstack] listing: PortList => Ports;
    /// Replaces all limits of a port; the same change nothing.
    LimitPort "port-limit" [toolstack]: PortLimit => Done;
    /// Replaces the limits that all ports of a segment share; the switch must exist.
    LimitSegment "segment-limit" [toolstack]: SegmentLimit => Done;
    /// Lists the segments with limits.
    ListSegments "segment-list" [toolstack] listing: SegmentList => Segments;
    /// Replaces all rules of a port and forgets its connections. Without `rules` the port has no
    /// filter.
    FilterPort "port-filter" [toolstack] large: PortFilter => Done;
    /// Replaces an owner's rules that decide packets for a guest.
    SetOffload "offload-set" [toolstack]: OffloadSet => OffloadChange;
    /// Removes an owner's rules; idempotent.
    RemoveOffload "offload-remove" [toolstack]: OffloadId => OffloadChange;
    /// Lets rules decide, or not. A disabled table decides nothing, and the one that replaces it
    /// neither. `no-such-offload`: the port has no rules.
    EnableOffload "offload-enable" [toolstack]: OffloadEnable => Done;
    /// Lists the rules that decide packets for guests.
    ListOffloads "offload-list" [toolstack] listing: OffloadList => Offloads;
    /// Shows the way of a frame that would come from a port.
    TracePort "port-trace" [toolstack]: PortTrace => Trace;
    /// Gives a port to another worker, without a lost frame. `busy`: held frames waited a second
    /// for the full port.
    MovePort "port-move" [toolstack]: PortMove => Done;
    /// Lists the workers with their ports.
    ListWorkers "worker-list" [toolstack] listing: NoArgs => Workers;
    /// Makes a chain, or replaces it as a whole.
    SetChain "chain-set" [toolstack]: ChainSet => Done;
    /// Removes a chain; idempotent.
    RemoveChain "chain-remove" [toolstack]: ChainId => Done;
    /// Lists the chains of a switch, or all.
    ListChains "chain-list" [toolstack] listing: ChainList => Chains;
    /// Makes a mirror, or replaces it.
    SetMirror "mirror-set" [operator]: MirrorSet => Done;
    /// Removes a mirror; idempotent.
    RemoveMirror "mirror-remove" [operator]: MirrorId => Done;
    /// Lists the mirrors of a switch, or all.
    ListMirrors "mirror-list" [toolstack] listing: MirrorList => Mirrors;
    /// Carries out a request and repeats it at the next start of valed.
    KeepRequest "keep" [operator] large: Keep => KeepAnswer;
    /// Lists the kept requests.
    ListKept "kept-list" [toolstack] listing: NoArgs => KeptList;
    /// As `preconnect-add`: its name before 1.0, for one more release.
    AddSilent "silent-add" [toolstack]: PreconnectAdd => Done;
    /// As `preconnect-remove`: its name before 1.0, for one more release.
    RemoveSilent "silent-remove" [toolstack]: PreconnectRemove => Done;
    /// As `preconnect-list`: its name before 1.0, for one more release.
    ListSilent "silent-list" [toolstack] listing: NoArgs => PreconnectedVifs;
}
