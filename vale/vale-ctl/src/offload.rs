// SPDX-License-Identifier: Apache-2.0
//! The commands about rules that decide packets for guests.
use clap::{Args, Subcommand, ValueEnum};
use clickos_offload::MAX_RULES;
use vale_proto::{
    ClientError, Keep, OffloadEnable, OffloadId, OffloadInfo, OffloadRule, OffloadSet, Owner,
    PortId, SwitchName, ValeClient,
};

use crate::kept;
use crate::show::{self, Format};

/// Times that a change begins again.
const TRIES: u32 = 10;

#[derive(Subcommand)]
pub enum OffloadCommand {
    /// Shows the rules of one switch, or of all, with the packets that each one decided.
    Show { switch: Option<SwitchName> },
    /// Sets the operator's rules of a port; they replace earlier ones.
    Register(RegisterArguments),
    /// Adds one rule to the operator's rules of a port.
    Add(AddArguments),
    /// Removes one of the operator's rules of a port.
    Remove(RemoveArguments),
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

#[derive(Args)]
pub struct AddArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// The rule, as of `register --rule`.
    pub rule: OffloadRule,
    /// The number that `show` gives the rule; after the last one by default.
    #[arg(long, value_name = "NUMBER")]
    pub at: Option<usize>,
}

#[derive(Args)]
pub struct RemoveArguments {
    #[arg(value_name = "SWITCH:PORT")]
    pub port: PortId,
    /// The rule, as `show` writes it.
    #[arg(required_unless_present = "at")]
    pub rule: Option<OffloadRule>,
    /// The number of the rule in `show`; with the rule too, both have to agree.
    #[arg(long, value_name = "NUMBER")]
    pub at: Option<usize>,
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
        OffloadCommand::Add(of) => {
            return change(client, &of.port, |rules| add(rules, of)).map(|()| String::new());
        }
        OffloadCommand::Remove(of) => {
            return change(client, &of.port, |rules| remove(rules, of)).map(|()| String::new());
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
        replaces: None,
        rules,
    }
}

/// Changes the operator's rules of a port. A peer that changes them meanwhile makes it begin again.
fn change(
    client: &mut ValeClient,
    port: &PortId,
    edit: impl Fn(&mut Vec<OffloadRule>) -> Result<(), String>,
) -> Result<(), String> {
    let mut tries = 0;
    loop {
        let found = client.offload_list(Some(port.switch.clone()));
        let found = found.map_err(|e| e.to_string())?;
        let is_it = |t: &&OffloadInfo| t.port == port.port && t.owner == Owner::Operator;
        let table = found.iter().find(is_it);
        let rules = table.iter().flat_map(|t| &t.rules);
        let mut rules: Vec<_> = rules.map(|rule| rule.rule).collect();
        edit(&mut rules).map_err(|e| format!("{}:{}: {e}", port.switch, port.port))?;
        let set = OffloadSet {
            switch: port.switch.clone(),
            port: port.port.clone(),
            owner: Owner::Operator,
            version: 0,
            replaces: Some(table.map_or(0, |table| table.epoch)),
            rules,
        };
        tries += 1;
        match client.keep(&Keep::OffloadSet(set)) {
            Err(ClientError::Api(e)) if e.code == "changed" && tries < TRIES => {}
            done => return done.map(kept::note).map_err(|e| e.to_string()),
        }
    }
}

fn add(rules: &mut Vec<OffloadRule>, of: &AddArguments) -> Result<(), String> {
    let (at, count) = (of.at.unwrap_or(rules.len()), rules.len());
    if at > count {
        return Err(format!("rule {at}: is outside 0..={count}"));
    }
    if count == MAX_RULES {
        return Err(format!("there are {MAX_RULES} rules already"));
    }
    rules.insert(at, of.rule);
    Ok(())
}

fn remove(rules: &mut Vec<OffloadRule>, of: &RemoveArguments) -> Result<(), String> {
    let at = of
        .at
        .or(rules.iter().position(|rule| Some(*rule) == of.rule));
    let found = at.and_then(|at| rules.get(at)).copied();
    match (at, found) {
        (Some(at), Some(found)) if of.rule.is_none_or(|rule| rule == found) => {
            rules.remove(at);
            Ok(())
        }
        (_, Some(found)) => Err(format!(
            "the rule of this number is {}",
            String::from(found)
        )),
        _ => Err("no such rule".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<OffloadRule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn removal(rule: Option<&str>, at: Option<usize>) -> RemoveArguments {
        RemoveArguments {
            port: "vale0:fw".parse().unwrap(),
            rule: rule.map(|text| text.parse().unwrap()),
            at,
        }
    }

    #[test]
    fn a_rule_comes_to_its_place_and_leaves_it() {
        let mut table = rules(&["drop proto 6", "pass"]);
        let add = |table: &mut Vec<_>, at| {
            let rule = "drop proto 17".parse().unwrap();
            let port = "vale0:fw".parse().unwrap();
            super::add(table, &AddArguments { port, rule, at })
        };
        add(&mut table, Some(1)).unwrap();
        add(&mut table, None).unwrap();
        let both = ["drop proto 6", "drop proto 17", "pass", "drop proto 17"];
        assert_eq!(table, rules(&both));
        assert!(add(&mut table, Some(5)).unwrap_err().contains("0..=4"));
        remove(&mut table, &removal(Some("drop proto 17"), None)).unwrap();
        assert_eq!(table, rules(&["drop proto 6", "pass", "drop proto 17"]));
        let wrong = removal(Some("pass"), Some(0));
        assert!(remove(&mut table, &wrong).unwrap_err().contains("proto 6"));
        remove(&mut table, &removal(None, Some(0))).unwrap();
        remove(&mut table, &removal(Some("pass"), Some(0))).unwrap();
        assert_eq!(table, rules(&["drop proto 17"]));
        let none = removal(Some("pass"), None);
        assert!(remove(&mut table, &none).unwrap_err().contains("no such"));
    }

    #[test]
    fn a_table_takes_no_more_rules_than_valed() {
        let mut table = vec!["pass".parse().unwrap(); MAX_RULES];
        let (port, rule) = ("vale0:fw".parse().unwrap(), "pass".parse().unwrap());
        let of = AddArguments {
            port,
            rule,
            at: None,
        };
        assert!(super::add(&mut table, &of).unwrap_err().contains("64"));
    }
}
