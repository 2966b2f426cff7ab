// SPDX-License-Identifier: Apache-2.0
//! The command that shows the way of one packet through the switch.
use std::net::IpAddr;

use clap::Args;
use etherparse::PacketBuilder;
use vale_proto::{Mac, PortId, PortTrace, Stage, Trace, ValeClient};

use crate::show::{self, Format};

#[derive(Args)]
pub struct TraceArguments {
    /// The port that the packet would come from.
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// The whole frame as hexadecimal digits, in place of the other options.
    #[arg(long, conflicts_with_all = ["src_mac", "dst_mac", "src", "dst"])]
    pub hex: Option<String>,
    #[arg(long, required_unless_present = "hex")]
    pub src_mac: Option<Mac>,
    #[arg(long, required_unless_present = "hex")]
    pub dst_mac: Option<Mac>,
    /// Source address, IPv4 or IPv6.
    #[arg(long, required_unless_present = "hex")]
    pub src: Option<IpAddr>,
    #[arg(long, required_unless_present = "hex")]
    pub dst: Option<IpAddr>,
    /// tcp, udp or icmp (an echo request).
    #[arg(long, value_enum, default_value_t = Protocol::Udp)]
    pub proto: Protocol,
    #[arg(long, default_value_t = 40_000)]
    pub sport: u16,
    #[arg(long, default_value_t = 80)]
    pub dport: u16,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Protocol {
    Tcp,
    Udp,
    Icmp,
}

/// Asks for the way of the packet and returns the output.
pub fn run(
    client: &mut ValeClient,
    arguments: &TraceArguments,
    format: Format,
) -> Result<String, String> {
    let PortId { switch, port } = arguments.port.clone();
    let frame = match &arguments.hex {
        Some(hex) => hex.clone(),
        None => PortTrace::digits(&build(arguments)?),
    };
    let trace = PortTrace {
        switch,
        port,
        frame,
    };
    let trace = client.port_trace(&trace).map_err(|e| e.to_string())?;
    Ok(match format {
        Format::Json => show::json_text(&trace),
        Format::Table => show(&trace),
    })
}

fn build(of: &TraceArguments) -> Result<Vec<u8>, String> {
    let (Some(src_mac), Some(dst_mac)) = (of.src_mac, of.dst_mac) else {
        return Err("--src-mac: is missing".to_owned());
    };
    let link = PacketBuilder::ethernet2(src_mac.0, dst_mac.0);
    let (ip, is_v4) = match (of.src, of.dst) {
        (Some(IpAddr::V4(src)), Some(IpAddr::V4(dst))) => {
            (link.ipv4(src.octets(), dst.octets(), 64), true)
        }
        (Some(IpAddr::V6(src)), Some(IpAddr::V6(dst))) => {
            (link.ipv6(src.octets(), dst.octets(), 64), false)
        }
        _ => return Err("--dst: is of another family than --src".to_owned()),
    };
    let mut frame = Vec::new();
    let written = match (of.proto, is_v4) {
        (Protocol::Tcp, _) => ip
            .tcp(of.sport, of.dport, 1, 65_535)
            .syn()
            .write(&mut frame, &[]),
        (Protocol::Udp, _) => ip.udp(of.sport, of.dport).write(&mut frame, &[]),
        (Protocol::Icmp, true) => ip.icmpv4_echo_request(1, 1).write(&mut frame, &[]),
        (Protocol::Icmp, false) => ip.icmpv6_echo_request(1, 1).write(&mut frame, &[]),
    };
    written.map_err(|e| format!("packet: {e}"))?;
    Ok(frame)
}

fn show(trace: &Trace) -> String {
    let rows = trace.stages.iter().map(|stage| {
        vec![
            format!("{:?}", stage.stage).to_lowercase(),
            stage.port.to_string(),
            if stage.passes { "pass" } else { "drop" }.to_owned(),
            detail(stage),
        ]
    });
    let outputs: Vec<_> = trace.outputs.iter().map(|port| port.as_str()).collect();
    let outputs = match outputs.is_empty() {
        true => "no port".to_owned(),
        false => outputs.join(", "),
    };
    show::table(&["STAGE", "PORT", "VERDICT", "DETAIL"], rows) + &format!("gets it: {outputs}\n")
}

fn detail(stage: &Stage) -> String {
    let mut parts = vec![stage.detail.clone()];
    if let Some((number, rule)) = &stage.rule {
        parts.push(format!("rule {number}: {}", serde_json::json!(rule)));
    }
    parts.extend(stage.counter.clone());
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        trace: TraceArguments,
    }

    fn frame(options: &str) -> Result<Vec<u8>, String> {
        let line =
            format!("x vale0:a --src-mac 02:00:00:00:00:01 --dst-mac 02:00:00:00:00:02 {options}");
        let line = Line::try_parse_from(line.split(' ')).map_err(|e| e.to_string())?;
        build(&line.trace)
    }

    #[test]
    fn a_packet_is_built_from_options() {
        let tcp = frame("--src 10.0.0.1 --dst 10.0.0.2 --proto tcp --sport 1 --dport 22").unwrap();
        assert_eq!(
            (tcp.len(), tcp[23], &tcp[34..38]),
            (54, 6, &[0, 1, 0, 22][..])
        );
        let icmp = frame("--src 2001:db8::1 --dst 2001:db8::2 --proto icmp").unwrap();
        assert_eq!((icmp[20], icmp[54]), (58, 128));
        for wrong in [
            "--src 10.0.0.1 --dst 2001:db8::2",
            "--src 10.0.0.1",
            "--hex 00 --src 10.0.0.1 --dst 10.0.0.2",
        ] {
            assert!(frame(wrong).is_err(), "{wrong}");
        }
    }
}
