// SPDX-License-Identifier: Apache-2.0
//! Command line of the switch.
#![forbid(unsafe_code)]

mod arguments;
mod chain;
mod policy;
mod show;
mod xen;

use std::process::ExitCode;

use clap::Parser;
use vale_proto::{GuestVif, PortAdd, PortId, PortInfo, PortSet, ValeClient};

use arguments::{Arguments, Attach, Command, KindChoice};

/// 0 done, 1 valed refused or cannot be reached, 2 wrong arguments (clap's).
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(output) => {
            print!("{output}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("vale-ctl: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, String> {
    let mut client = ValeClient::connect(&arguments.socket).map_err(|e| e.to_string())?;
    let format = arguments.output;
    let done = match &arguments.command {
        Command::List => return ports(&mut client, None).map(|p| show::switches(&p, format)),
        Command::Ports { switch } => {
            return ports(&mut client, switch.clone()).map(|p| show::ports(&p, format));
        }
        Command::Stats { of } => {
            return stats(&mut client, of.as_ref()).map(|p| show::stats(&p, format));
        }
        Command::Attach(attach) => {
            let add = port_add(attach);
            xen::make_device(&arguments.xenstore, &add)?;
            let added = client.port_add(&add).map(drop);
            if added.is_err() {
                xen::remove_device(&arguments.xenstore, add.guest)?;
            }
            added
        }
        Command::Detach { port } => {
            let guest = guest_of(&mut client, port)?;
            let removed = client.port_remove(&port.switch, &port.port);
            xen::remove_device(&arguments.xenstore, guest)?;
            removed
        }
        Command::Limit(arguments) => {
            return policy::limit(&mut client, arguments).map(|()| String::new());
        }
        Command::Filter(arguments) => {
            return policy::filter(&mut client, arguments).map(|()| String::new());
        }
        Command::Chain { command } => return chain::run(&mut client, command, format),
        Command::Set { port, link } => {
            let PortId { switch, port } = port.clone();
            client.port_set(&PortSet {
                switch,
                port,
                link_up: link.is_up(),
            })
        }
    };
    done.map(|()| String::new()).map_err(|e| e.to_string())
}

fn ports(
    client: &mut ValeClient,
    switch: Option<vale_proto::SwitchName>,
) -> Result<Vec<PortInfo>, String> {
    client.port_list(switch).map_err(|e| e.to_string())
}

fn stats(client: &mut ValeClient, of: Option<&PortId>) -> Result<Vec<PortInfo>, String> {
    let mut found = ports(client, of.map(|a| a.switch.clone()))?;
    if let Some(address) = of {
        found.retain(|p| p.port == address.port);
        if found.is_empty() {
            return Err(format!(
                "{}:{}: there is no such port",
                address.switch, address.port
            ));
        }
    }
    Ok(found)
}

/// The guest behind a port, if there is one.
fn guest_of(client: &mut ValeClient, of: &PortId) -> Result<Option<GuestVif>, String> {
    let ports = ports(client, Some(of.switch.clone()))?;
    let port = ports.into_iter().find(|p| p.port == of.port);
    Ok(port.and_then(|port| port.guest))
}

fn port_add(attach: &Attach) -> PortAdd {
    PortAdd {
        switch: attach.port.switch.clone(),
        port: attach.port.port.clone(),
        kind: match attach.kind {
            KindChoice::Tap => vale_proto::Kind::Tap,
            KindChoice::Veth => vale_proto::Kind::Veth,
            KindChoice::Xen => vale_proto::Kind::Xen,
        },
        ifname: attach.ifname.clone(),
        guest: attach.domid.map(|domid| GuestVif {
            domid,
            devid: attach.devid,
        }),
        segment: attach.segment,
        mac: attach.mac,
        allowed: attach.allow.clone(),
        port_security: !attach.allow.is_empty(),
        vlan: attach.vlan,
        vlan_tags: attach.vlan_tags,
        mtu: attach.mtu,
        slots: attach.slots,
        link_up: true,
    }
}
