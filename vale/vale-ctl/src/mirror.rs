// SPDX-License-Identifier: Apache-2.0
//! The commands about mirrors.
use clap::{Args, Subcommand, ValueEnum};
use vale_proto::{
    Keep, MIRROR_RATE, MirrorId, MirrorInfo, MirrorName, MirrorSet, PortName, Side, SwitchName,
    ValeClient,
};

use crate::kept;
use crate::show::{self, Format};

#[derive(Subcommand)]
pub enum MirrorCommand {
    /// Shows the mirrors of one switch, or of all, with copies and drops.
    List { switch: Option<SwitchName> },
    /// Copies the frames of a port or a segment to a port or a file. Only the operator may.
    Set(SetArguments),
    /// Removes a mirror; one that does not exist is fine.
    Remove {
        #[arg(value_name = "SWITCH:MIRROR", value_parser = mirror_id)]
        mirror: MirrorId,
    },
}

#[derive(Args)]
pub struct SetArguments {
    #[arg(value_name = "SWITCH:MIRROR", value_parser = mirror_id)]
    pub mirror: MirrorId,
    /// Copies the frames of this port.
    #[arg(long, required_unless_present = "segment", conflicts_with = "segment")]
    pub port: Option<PortName>,
    /// Frames that the port sends into the switch (rx), gets from it (tx), or both.
    #[arg(long, value_enum, requires = "port")]
    pub side: Option<SideChoice>,
    /// Copies each frame that a port of this segment sends.
    #[arg(long)]
    pub segment: Option<u32>,
    /// The port that gets the copies.
    #[arg(long, required_unless_present = "to_file", conflicts_with = "to_file")]
    pub to_port: Option<PortName>,
    /// The file, without `.pcap`, in valed's `capture_dir`.
    #[arg(long)]
    pub to_file: Option<MirrorName>,
    /// Most copies per second.
    #[arg(long, default_value_t = MIRROR_RATE)]
    pub packets: u64,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum SideChoice {
    Rx,
    Tx,
    Both,
}

/// Runs a command and returns its output.
pub fn run(
    client: &mut ValeClient,
    command: &MirrorCommand,
    format: Format,
) -> Result<String, String> {
    let request = match command {
        MirrorCommand::List { switch } => {
            let mirrors = client.mirror_list(switch.clone());
            return mirrors.map(|m| show(&m, format)).map_err(|e| e.to_string());
        }
        MirrorCommand::Set(set) => Keep::MirrorSet(mirror_set(set)),
        MirrorCommand::Remove { mirror } => Keep::MirrorRemove(mirror.clone()),
    };
    kept::keep(client, &request).map(|()| String::new())
}

fn mirror_set(arguments: &SetArguments) -> MirrorSet {
    MirrorSet {
        switch: arguments.mirror.switch.clone(),
        mirror: arguments.mirror.mirror.clone(),
        port: arguments.port.clone(),
        side: arguments.side.map(|side| match side {
            SideChoice::Rx => Side::Rx,
            SideChoice::Tx => Side::Tx,
            SideChoice::Both => Side::Both,
        }),
        segment: arguments.segment,
        to_port: arguments.to_port.clone(),
        to_file: arguments.to_file.clone(),
        packets_per_s: Some(arguments.packets),
    }
}

/// `SWITCH:MIRROR`.
fn mirror_id(text: &str) -> Result<MirrorId, String> {
    let (switch, mirror) = text
        .split_once(':')
        .ok_or_else(|| format!("{text:.60?}: expected SWITCH:MIRROR"))?;
    Ok(MirrorId {
        switch: switch.parse()?,
        mirror: mirror.parse()?,
    })
}

fn show(mirrors: &[MirrorInfo], format: Format) -> String {
    if format == Format::Json {
        return show::json_text(&mirrors);
    }
    let rows = mirrors.iter().map(|m| {
        let counters = m.counters;
        vec![
            format!("{}:{}", m.set.switch, m.set.mirror),
            source(&m.set),
            target(&m.set),
            m.set.packets_per_s.unwrap_or(MIRROR_RATE).to_string(),
            counters.packets.to_string(),
            counters.over_rate.to_string(),
            counters.dropped.to_string(),
        ]
    });
    let head = ["MIRROR", "OF", "TO", "RATE", "COPIES", "OVER", "DROPPED"];
    show::table(&head, rows)
}

fn source(set: &MirrorSet) -> String {
    let side = match set.side.unwrap_or_default() {
        Side::Rx => "rx",
        Side::Tx => "tx",
        Side::Both => "both",
    };
    match (&set.port, set.segment) {
        (Some(port), _) => format!("{port} ({side})"),
        (None, segment) => format!("segment {}", segment.unwrap_or_default()),
    }
}

fn target(set: &MirrorSet) -> String {
    match (&set.to_port, &set.to_file) {
        (Some(port), _) => port.to_string(),
        (None, file) => format!("{}.pcap", file.as_ref().map_or("", |f| f.as_str())),
    }
}
