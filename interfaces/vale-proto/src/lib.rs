// SPDX-License-Identifier: Apache-2.0
//! The requests and answers of valed's control socket.
//!
//! A value of these types cannot be wrong: the parser checks names, addresses and ranges, for the
//! daemon and its clients alike. The verbs stand in `docs/interfaces.md`, "valed".
#![forbid(unsafe_code)]

mod chain;
mod client;
mod counters;
mod device;
mod filter;
mod keep;
mod limit;
mod mac;
mod mirror;
mod name;
mod offload;
mod path;
mod pcap;
mod port;
mod preconnected;
mod trace;
mod uplink;
pub mod verb;
mod vxlan;
mod worker;

pub use chain::{
    ChainCounters, ChainId, ChainInfo, ChainList, ChainSet, Chains, Classifier, Hop, MAX_CHAINS,
    MAX_HOPS, MAX_PAIRS, OnFailure, Pair, PortRange,
};
pub use client::{RingFds, ValeClient};
pub use control_socket::ClientError;
pub use counters::Counters;
pub use device::{HostDevice, is_device_port};
pub use filter::{Direction, Family, MAX_RULES, PortFilter, Rule, has_ports, numbers};
pub use ipnet::IpNet;
pub use keep::{KEPT_VERSION, Keep, KeepAnswer, KeptFile, KeptInfo, KeptList, MAX_KEPT};
pub use limit::{
    Limits, MAX_DSCP, MAX_RATE, PortLimit, Rates, SegmentLimit, SegmentList, Segments,
};
pub use mac::Mac;
pub use mirror::{
    MAX_MIRRORS, MIRROR_RATE, MirrorCounters, MirrorId, MirrorInfo, MirrorList, MirrorSet, Mirrors,
    Side,
};
pub use name::{ChainName, FileName, MirrorName, PipeName, PortName, SwitchName};
pub use offload::{
    OffloadChange, OffloadEnable, OffloadId, OffloadInfo, OffloadList, OffloadRule, OffloadSet,
    Offloads, Owner, RuleHits,
};
pub use path::{HostState, MAX_HOSTS, MAX_PATH, Path};
pub use pcap::{MAX_PLAY_RATE, Pcap};
pub use port::{
    Allowed, FarEnd, FilterInfo, GuestVif, Kind, PortAdd, PortGuard, PortId, PortInfo, PortList,
    PortSet, Ports, allowed,
};
pub use preconnected::{PreconnectAdd, PreconnectRemove, PreconnectedVif, PreconnectedVifs};
pub use trace::{PortTrace, Stage, StageKind, TRACE_RANGE, Trace};
pub use uplink::{PortPeers, SegmentUplink, Uplink};
pub use vxlan::{MAX_PEERS, MAX_VNI, Vxlan};
pub use worker::{PortMove, WorkerInfo, Workers};

pub use control_socket::VALED_SOCKET as DEFAULT_SOCKET;

/// Names valed's socket for programs without `--socket`.
pub const SOCKET_VARIABLE: &str = "VALED_SOCKET";
/// Largest segment number.
pub const MAX_SEGMENT: u32 = u32::MAX;
/// Largest VLAN number (802.1Q).
pub const MAX_VLAN: u16 = 4094;
/// Smallest and largest MTU of a port, in bytes of IP packet.
pub const MTU_RANGE: std::ops::RangeInclusive<u16> = 68..=9000;
/// Largest MTU whose frames take one slot of a ring each. With a larger one a guest copies its frames.
pub const SHORT_MTU: u16 = 1900;
/// Entries in a port's list of allowed addresses.
pub const MAX_ALLOWED: usize = 256;
