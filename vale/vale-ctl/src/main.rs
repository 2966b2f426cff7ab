// SPDX-License-Identifier: Apache-2.0
//! Command line of the switch.
#![forbid(unsafe_code)]

mod arguments;
mod chain;
mod driver_domain;
mod kept;
mod mirror;
mod offload;
mod old_forms;
mod policy;
mod show;
mod top;
mod trace;
mod xen;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use vale_proto::{
    GuestVif, Keep, Pcap, PortAdd, PortId, PortInfo, PortMove, PortSet, ValeClient, Vxlan,
};

use arguments::{Arguments, Attach, Command, Detach, KindChoice};

/// 0 done, 1 valed refused or cannot be reached, 2 wrong arguments (clap's).
fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
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

/// The words of the command line, or those that an old form means.
fn arguments() -> Result<Arguments, String> {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<_> = words.collect();
    let Some(new) = old_forms::translated(&words) else {
        return Ok(Arguments::parse());
    };
    let new = new?;
    eprintln!("vale-ctl: note: this is now: vale-ctl {}", new.join(" "));
    let new = new.into_iter().map(Into::into);
    Ok(Arguments::parse_from(std::iter::once(program).chain(new)))
}

fn run(arguments: &Arguments) -> Result<String, String> {
    match &arguments.command {
        Command::Completion { shell } => Ok(completion(*shell)),
        Command::Man => man(),
        Command::DriverDomain => driver_domain::run(&arguments.socket, &arguments.xenstore),
        Command::Attach(attach) if attach.backend != 0 => {
            xen::attach_elsewhere(&arguments.xenstore, attach.backend, &port_add(attach))
                .map(|()| String::new())
        }
        Command::Detach(Detach {
            backend: Some(backend),
            domid: Some(domid),
            devid,
            ..
        }) => {
            let (domid, devid) = (*domid, *devid);
            let vif = Some(xen::Vif { domid, devid });
            xen::remove_device(&arguments.xenstore, *backend, vif).map(|()| String::new())
        }
        command => ask(arguments, command),
    }
}

/// Runs a command that needs valed.
fn ask(arguments: &Arguments, command: &Command) -> Result<String, String> {
    let mut client = ValeClient::connect(&arguments.socket).map_err(|e| e.to_string())?;
    let format = arguments.output;
    let done = match command {
        Command::List => return ports(&mut client, None).map(|p| show::switches(&p, format)),
        Command::Kept => return kept::list(&mut client, format),
        Command::Ports { switch } => {
            if format == show::Format::Table {
                kept::note_waiting(&mut client);
            }
            return ports(&mut client, switch.clone()).map(|p| show::ports(&p, format));
        }
        Command::Stats { of } => {
            return stats(&mut client, of.as_ref()).map(|p| show::stats(&p, format));
        }
        Command::Attach(attach) => {
            let add = port_add(attach);
            xen::make_device(&arguments.xenstore, 0, &add)?;
            let guest = add.guest;
            let added = add_port(&mut client, add);
            if added.is_err() {
                xen::remove_device(&arguments.xenstore, 0, xen::ours(guest))?;
            }
            return added.map(|()| String::new());
        }
        Command::Detach(Detach { port, .. }) => {
            let port = port.as_ref().ok_or("detach: needs a port")?;
            let guest = guest_of(&mut client, port)?;
            let removed = kept::keep(&mut client, &Keep::PortRemove(port.clone()));
            xen::remove_device(&arguments.xenstore, 0, xen::ours(guest))?;
            return removed.map(|()| String::new());
        }
        Command::Limit(arguments) => {
            return policy::limit(&mut client, arguments).map(|()| String::new());
        }
        Command::LimitSegment(arguments) => {
            return policy::limit_segment(&mut client, arguments).map(|()| String::new());
        }
        Command::Segments { switch } => {
            return policy::segments(&mut client, switch.clone(), format);
        }
        Command::Workers => {
            let workers = client.worker_list().map_err(|e| e.to_string())?;
            return Ok(show::workers(&workers, format));
        }
        Command::Top(arguments) => return top::run(&mut client, arguments, format),
        Command::Preconnected => {
            let vifs = client.preconnect_list().map_err(|e| e.to_string())?;
            return Ok(show::preconnected(&vifs, format));
        }
        Command::Move { port, worker } => {
            let PortId { switch, port } = port.clone();
            let worker = *worker;
            client.port_move(&PortMove {
                switch,
                port,
                worker,
            })
        }
        Command::Filter(arguments) => {
            return policy::filter(&mut client, arguments).map(|()| String::new());
        }
        Command::Chain { command } => return chain::run(&mut client, command, format),
        Command::Trace(arguments) => return trace::run(&mut client, arguments, format),
        Command::Completion { .. } | Command::Man | Command::DriverDomain => {
            return Ok(String::new());
        }
        Command::Offload { command } => return offload::run(&mut client, command, format),
        Command::Mirror { command } => return mirror::run(&mut client, command, format),
        Command::Set { port, link } => {
            let PortId { switch, port } = port.clone();
            let set = PortSet {
                switch,
                port,
                link_up: link.is_up(),
            };
            return kept::keep(&mut client, &Keep::PortSet(set)).map(|()| String::new());
        }
    };
    done.map(|()| String::new()).map_err(|e| e.to_string())
}

/// Adds a port. valed does not keep the port of a domain, which ends with it.
fn add_port(client: &mut ValeClient, add: PortAdd) -> Result<(), String> {
    match add.guest {
        Some(_) => client.port_add(&add).map(drop).map_err(|e| e.to_string()),
        None => kept::keep(client, &Keep::PortAdd(Box::new(add))),
    }
}

fn completion(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "vale-ctl", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The man page of the program and all its commands, one after another.
fn man() -> Result<String, String> {
    let mut page = Vec::new();
    let mut command = Arguments::command();
    command.build();
    render(&command, &mut page).map_err(|e| format!("man: {e}"))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    clap_mangen::Man::new(command.clone()).render(page)?;
    let commands = command.get_subcommands().filter(|c| c.get_name() != "help");
    commands.into_iter().try_for_each(|c| render(c, page))
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
            return Err(format!("{}:{}: no such port", address.switch, address.port));
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

fn vxlan(attach: &Attach) -> Option<Vxlan> {
    Some(Vxlan {
        vni: attach.vni?,
        local: attach.local?,
        peers: attach.peers.clone(),
    })
}

fn pcap(attach: &Attach) -> Option<Pcap> {
    let pcap = Pcap {
        read: attach.read.clone(),
        packets_per_s: attach.rate,
        repeat: attach.repeat,
        write: attach.write.clone(),
    };
    (pcap != Pcap::default()).then_some(pcap)
}

fn port_add(attach: &Attach) -> PortAdd {
    PortAdd {
        switch: attach.port.switch.clone(),
        port: attach.port.port.clone(),
        kind: match attach.kind {
            KindChoice::Tap => vale_proto::Kind::Tap,
            KindChoice::Veth => vale_proto::Kind::Veth,
            KindChoice::Xen => vale_proto::Kind::Xen,
            KindChoice::Vxlan => vale_proto::Kind::Vxlan,
            KindChoice::Pipe => vale_proto::Kind::Pipe,
            KindChoice::Pcap => vale_proto::Kind::Pcap,
        },
        ifname: attach.ifname.clone(),
        guest: attach.domid.map(|domid| GuestVif {
            domid,
            devid: attach.devid,
            netback: attach.netback,
        }),
        segment: attach.segment,
        mac: attach.mac,
        allowed: attach.allow.clone(),
        port_security: !attach.allow.is_empty(),
        dhcp_server: false,
        vlan: attach.vlan,
        vxlan: vxlan(attach),
        pipe: attach.pipe.clone(),
        pcap: pcap(attach),
        vlan_tags: attach.vlan_tags,
        filtered: false,
        backpressure: attach.backpressure,
        xdp: attach.xdp,
        mtu: attach.mtu,
        slots: attach.slots,
        link_up: true,
        in_place_domid: None,
        owner: attach.owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completion_and_the_man_page_name_all_commands() {
        let (script, page) = (completion(Shell::Bash), man().unwrap());
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            assert!(script.contains(name), "{name}");
            assert!(page.contains(&name.replace('-', "\\-")), "{name}");
        }
        assert!(
            page.contains("\\-\\-to\\-port"),
            "options of a nested command"
        );
    }
}
