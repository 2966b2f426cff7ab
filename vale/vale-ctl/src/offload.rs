// SPDX-License-Identifier: Apache-2.0
//! The commands about rules that decide packets for guests.
use clap::{Args, Subcommand, ValueEnum};
use vale_proto::{
    Keep, OffloadEnable, OffloadId, OffloadInfo, OffloadRule, OffloadSet, Owner, PortId,
    SwitchName, ValeClient,
};

use crate::kept;
use crate::show::{self, Format};

#[derive(Subcommand)]
pub enum OffloadCommand {
    /// Shows the rules of one switch, or of all, with the packets that each one decided.
    Show { switch: Option<SwitchName> },
    /// Sets the operator's rules of a port; they replace earlier ones.
    Register(RegisterArguments),
    /// Lets rules decide.
    Enable(TableArguments),
    /// The guest alone decides; the rules remain.
    Disable(TableArguments),
    /// Removes rules; those that do not exist are fine.
    Cancel(TableArguments),
}

#[derive(Args)]
pub struct RegisterArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// `ACTION [FIELD VALUE]...`: `drop`, `pass` (to the guest) or `redirect MAC [to ADDRESS]`. Fields:
    /// src, dst, proto, tos, sport, dport, ether-src, ether-dst, ether-type, `ip` and `ip6`. A rule with
    /// `ip6` or an IPv6 address is for IPv6. Can be repeated; the first rule that matches decides.
    #[arg(long = "rule")]
    pub rules: Vec<OffloadRule>,
    /// The decision on all other packets.
    #[arg(long, value_enum, default_value_t = Default::Pass)]
    pub default: Default,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Default {
    Pass,
    Drop,
}

#[derive(Args)]
pub struct TableArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// The author of the rules.
    #[arg(long, value_enum, default_value_t = OwnerChoice::Operator)]
    pub owner: OwnerChoice,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum OwnerChoice {
    Operator,
    Guest,
}

impl From<OwnerChoice> for Owner {
    fn from(choice: OwnerChoice) -> Self {
        match choice {
            OwnerChoice::Operator => Self::Operator,
            OwnerChoice::Guest => Self::Guest,
        }
    }
}

/// Runs a command and returns its output.
pub fn run(
    client: &mut ValeClient,
    command: &OffloadCommand,
    format: Format,
) -> Result<String, String> {
    let request = match command {
        OffloadCommand::Show { switch } => {
            let found = client.offload_list(switch.clone());
            return found.map(|f| show(&f, format)).map_err(|e| e.to_string());
        }
        OffloadCommand::Register(of) => Keep::OffloadSet(offload_set(of)),
        OffloadCommand::Enable(of) => Keep::OffloadEnable(enable(of, true)),
        OffloadCommand::Disable(of) => Keep::OffloadEnable(enable(of, false)),
        OffloadCommand::Cancel(of) => Keep::OffloadRemove(id(of)),
    };
    kept::keep(client, &request).map(|()| String::new())
}

fn offload_set(of: &RegisterArguments) -> OffloadSet {
    let PortId { switch, port } = of.port.clone();
    let mut rules = of.rules.clone();
    if of.default == Default::Drop {
        let drop = clickos_offload::Rule::new(clickos_offload::Action::Drop);
        rules.push(OffloadRule(drop));
    }
    OffloadSet {
        switch,
        port,
        owner: Owner::Operator,
        version: 0,
        rules,
    }
}

fn id(of: &TableArguments) -> OffloadId {
    let PortId { switch, port } = of.port.clone();
    OffloadId {
        switch,
        port,
        owner: of.owner.into(),
    }
}

fn enable(of: &TableArguments, enabled: bool) -> OffloadEnable {
    let OffloadId {
        switch,
        port,
        owner,
    } = id(of);
    OffloadEnable {
        switch,
        port,
        owner,
        enabled,
    }
}

/// A line for each rule.
fn show(found: &[OffloadInfo], format: Format) -> String {
    if format == Format::Json {
        return show::json_text(&found);
    }
    let rows = found.iter().flat_map(|table| {
        let owner = match table.owner {
            Owner::Operator => "operator",
            Owner::Guest => "guest",
        };
        let state = if table.enabled { "on" } else { "off" };
        table.rules.iter().enumerate().map(move |(n, rule)| {
            vec![
                format!("{}:{}", table.switch, table.port),
                owner.to_owned(),
                state.to_owned(),
                n.to_string(),
                rule.hits.to_string(),
                String::from(rule.rule),
            ]
        })
    });
    let columns = ["PORT", "OWNER", "STATE", "RULE", "HITS", "DECISION"];
    show::table(&columns, rows)
}
