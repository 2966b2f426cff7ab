// SPDX-License-Identifier: Apache-2.0
//! The forms of netmap's vale-ctl: they become commands, or the answer names the command.
use std::ffi::OsString;

/// The words of a command for those of an old form; None for other words.
///
/// # Errors
/// There is no such thing here; the text names what there is.
pub fn translated(words: &[OsString]) -> Option<Result<Vec<String>, String>> {
    let texts: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (option, value) = match texts.as_slice() {
        [option] => (*option, None),
        [option, value] => (*option, Some(*value)),
        _ => return None,
    };
    let words = |line: String| Ok(line.split(' ').map(str::to_owned).collect());
    Some(match (option, value) {
        ("-l", None) => words("ports".to_owned()),
        ("-l" | "-g", Some(of)) => match of.split_once(':') {
            None | Some((_, "")) => words(format!("ports {}", of.trim_end_matches(':'))),
            Some(_) => words(format!("stats {of}")),
        },
        ("-a", Some(port)) => {
            let interface = port.split_once(':').map_or(port, |(_, name)| name);
            words(format!(
                "attach {port} --kind veth --ifname {interface} --segment 1"
            ))
        }
        ("-d", Some(port)) => words(format!("detach {port}")),
        ("-h", Some(port)) => Err(format!(
            "-h: valed has no rings of the host; attach one end of a veth pair: vale-ctl attach {port} --kind veth"
        )),
        ("-n" | "-r", Some(name)) => Err(format!(
            "{option}: interfaces are made and removed by ip: ip link {} {name}",
            if option == "-n" { "add" } else { "del" }
        )),
        ("-p" | "-P", Some(_)) => Err(format!(
            "{option}: the workers of valed poll by themselves: vale-ctl workers, vale-ctl move"
        )),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::Arguments;

    fn translate(line: &str) -> Option<Result<String, String>> {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        translated(&words).map(|words| words.map(|words| words.join(" ")))
    }

    #[test]
    fn old_forms_become_commands() {
        for (old, new) in [
            ("-l", "ports"),
            ("-g vale0:", "ports vale0"),
            ("-g vale0:eth0.5", "stats vale0:eth0.5"),
            (
                "-a vale0:eth1",
                "attach vale0:eth1 --kind veth --ifname eth1 --segment 1",
            ),
            ("-d vale0:eth1", "detach vale0:eth1"),
        ] {
            let words = translate(old).unwrap().unwrap();
            assert_eq!(words, new);
            let all = std::iter::once("vale-ctl").chain(words.split(' '));
            Arguments::try_parse_from(all).map(drop).unwrap();
        }
    }

    #[test]
    fn what_is_not_here_has_another_name() {
        for (old, word) in [
            ("-h vale0:eth0", "veth"),
            ("-n v1", "ip link add v1"),
            ("-r v1", "ip link del v1"),
            ("-P vale0:eth0", "workers"),
        ] {
            assert!(translate(old).unwrap().unwrap_err().contains(word), "{old}");
        }
        for other in ["-h", "ports", "ports vale0", "-V"] {
            assert!(translate(other).is_none(), "{other}");
        }
    }
}
