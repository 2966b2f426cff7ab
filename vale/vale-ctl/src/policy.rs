// SPDX-License-Identifier: Apache-2.0
//! The commands that limit and filter ports, and limit segments.
use clap::Args;
use vale_proto::{
    Keep, Limits, PortFilter, PortId, PortLimit, Rates, Rule, SegmentLimit, SwitchName, ValeClient,
};

use crate::kept;
use crate::show::{self, Format};

#[derive(Args)]
pub struct LimitArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    #[command(flatten)]
    pub limits: LimitOptions,
}

#[derive(Args)]
pub struct SegmentArguments {
    pub switch: SwitchName,
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub segment: u32,
    #[command(flatten)]
    pub limits: LimitOptions,
}

/// The rates of a port, or of all ports of a segment together.
#[derive(Args)]
pub struct LimitOptions {
    /// Packets per second into the switch.
    #[arg(long)]
    pub rx_packets: Option<u64>,
    /// Bits per second into the switch.
    #[arg(long)]
    pub rx_bits: Option<u64>,
    /// Packets per second out of the switch.
    #[arg(long)]
    pub tx_packets: Option<u64>,
    /// Bits per second out of the switch.
    #[arg(long)]
    pub tx_bits: Option<u64>,
    /// Packets that may enter the switch at one time after a silence.
    #[arg(long, requires = "rx_packets")]
    pub rx_burst_packets: Option<u64>,
    /// Bits that may enter the switch at one time after a silence.
    #[arg(long, requires = "rx_bits")]
    pub rx_burst_bits: Option<u64>,
    /// Packets that may leave the switch at one time after a silence.
    #[arg(long, requires = "tx_packets")]
    pub tx_burst_packets: Option<u64>,
    /// Bits that may leave the switch at one time after a silence.
    #[arg(long, requires = "tx_bits")]
    pub tx_burst_bits: Option<u64>,
    /// Broadcast and multicast frames per second into the switch.
    #[arg(long)]
    pub group: Option<u64>,
    /// Frames per second to unknown addresses.
    #[arg(long)]
    pub unknown: Option<u64>,
    /// The DSCP that IP packets from the port get, 0 to 63.
    #[arg(long)]
    pub dscp: Option<u8>,
}

#[derive(Args)]
pub struct FilterArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// DIRECTION[,ipv4|ipv6][,PROTOCOL][,PORT[-PORT]][,code=N][,CIDR][,stateless], with the direction
    /// `ingress` to the guest or `egress`; can be repeated. PROTOCOL is tcp, udp, dccp, sctp, udplite,
    /// icmp or icmpv6, whose PORT is a type of message.
    #[arg(long = "rule", required_unless_present_any = ["off", "block"])]
    pub rules: Vec<Rule>,
    /// Permits nothing but ARP, neighbor discovery and DHCP.
    #[arg(long, conflicts_with_all = ["rules", "off"])]
    pub block: bool,
    /// Removes the filter.
    #[arg(long, conflicts_with = "rules")]
    pub off: bool,
}

impl LimitOptions {
    fn limits(&self) -> Limits {
        Limits {
            rx: Rates {
                packets_per_s: self.rx_packets,
                bits_per_s: self.rx_bits,
                burst_packets: self.rx_burst_packets,
                burst_bits: self.rx_burst_bits,
            },
            tx: Rates {
                packets_per_s: self.tx_packets,
                bits_per_s: self.tx_bits,
                burst_packets: self.tx_burst_packets,
                burst_bits: self.tx_burst_bits,
            },
            group_per_s: self.group,
            unknown_per_s: self.unknown,
            dscp: self.dscp,
        }
    }
}

/// Replaces all limits of a port.
pub fn limit(client: &mut ValeClient, limit: &LimitArguments) -> Result<(), String> {
    let PortId { switch, port } = limit.port.clone();
    let limit = PortLimit {
        switch,
        port,
        limits: limit.limits.limits(),
    };
    kept::keep(client, &Keep::PortLimit(limit))
}

/// Replaces all limits of a segment.
pub fn limit_segment(client: &mut ValeClient, limit: &SegmentArguments) -> Result<(), String> {
    let limit = SegmentLimit {
        switch: limit.switch.clone(),
        segment: limit.segment,
        limits: limit.limits.limits(),
    };
    kept::keep(client, &Keep::SegmentLimit(limit))
}

/// The segments with limits.
pub fn segments(
    client: &mut ValeClient,
    switch: Option<SwitchName>,
    format: Format,
) -> Result<String, String> {
    let found = client.segment_list(switch).map_err(|e| e.to_string())?;
    if format == Format::Json {
        return Ok(show::json_text(&found));
    }
    let rows = found.iter().map(|s| {
        let limits = serde_json::json!(s.limits).to_string();
        vec![s.switch.to_string(), s.segment.to_string(), limits]
    });
    Ok(show::table(&["SWITCH", "SEGMENT", "LIMITS"], rows))
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
    kept::keep(client, &Keep::PortFilter(filter))
}
