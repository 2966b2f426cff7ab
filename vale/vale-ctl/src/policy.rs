// SPDX-License-Identifier: Apache-2.0
//! The commands that limit and filter a port.
use clap::Args;
use vale_proto::{Limits, PortFilter, PortId, PortLimit, Rates, Rule, ValeClient};

#[derive(Args)]
pub struct LimitArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// Packets per second from the port.
    #[arg(long)]
    pub rx_packets: Option<u64>,
    /// Bits per second from the port.
    #[arg(long)]
    pub rx_bits: Option<u64>,
    /// Packets per second to the port.
    #[arg(long)]
    pub tx_packets: Option<u64>,
    /// Bits per second to the port.
    #[arg(long)]
    pub tx_bits: Option<u64>,
    /// Broadcast and multicast frames per second from the port.
    #[arg(long)]
    pub group: Option<u64>,
    /// Frames per second from the port to unknown addresses.
    #[arg(long)]
    pub unknown: Option<u64>,
}

#[derive(Args)]
pub struct FilterArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// DIRECTION[,ipv4|ipv6][,tcp|udp|icmp|icmpv6][,PORT[-PORT]][,CIDR], with the direction `ingress`
    /// to the guest or `egress`; can be repeated.
    #[arg(long = "rule", required_unless_present_any = ["off", "block"])]
    pub rules: Vec<Rule>,
    /// Permits nothing but ARP, neighbor discovery and DHCP.
    #[arg(long, conflicts_with_all = ["rules", "off"])]
    pub block: bool,
    /// Removes the filter.
    #[arg(long, conflicts_with = "rules")]
    pub off: bool,
}

/// Replaces all limits of a port.
pub fn limit(client: &mut ValeClient, limit: &LimitArguments) -> Result<(), String> {
    let PortId { switch, port } = limit.port.clone();
    let rates = |packets_per_s, bits_per_s| Rates {
        packets_per_s,
        bits_per_s,
    };
    let limits = Limits {
        rx: rates(limit.rx_packets, limit.rx_bits),
        tx: rates(limit.tx_packets, limit.tx_bits),
        group_per_s: limit.group,
        unknown_per_s: limit.unknown,
    };
    let limit = PortLimit {
        switch,
        port,
        limits,
    };
    client.port_limit(&limit).map_err(|e| e.to_string())
}

/// Replaces all rules of a port.
pub fn filter(client: &mut ValeClient, filter: &FilterArguments) -> Result<(), String> {
    let PortId { switch, port } = filter.port.clone();
    let rules = (!filter.off).then(|| filter.rules.clone());
    let filter = PortFilter {
        switch,
        port,
        rules,
    };
    client.port_filter(&filter).map_err(|e| e.to_string())
}
