// SPDX-License-Identifier: Apache-2.0
//! Tests from outside, in one program: each program is linked on its own.
#![cfg(test)]
mod attack;
mod balancer;
mod carried;
mod catalog;
mod devices;
mod filter_differential;
mod filter_ip6;
mod filter_offload;
mod firewall;
mod flow_guard;
mod garbage;
mod garbage_flows;
mod garbage_ip6;
mod graph;
mod how_to;
mod inspect;
mod live;
mod merge;
mod messages;
mod parameters;
mod pppoe;
mod registry;
mod relay;
mod schedulers;
mod shapes;
mod system_names;
mod task_batching;
mod vrrp;
