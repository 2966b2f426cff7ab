// SPDX-License-Identifier: Apache-2.0
//! Names of services and protocols that the system or PortInfo has.
use std::rc::Rc;

use click_core::{Environment, Host, ReadFile, Router, WriteFile};

/// A system with some names; `ip` is one, as in the usual file of protocols.
struct System;

impl Host for System {
    fn print(&self, _: &str) -> bool {
        true
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        Err(format!("{path}: no such file"))
    }

    fn create_file(&self, path: &str, _: bool) -> Result<Box<dyn WriteFile>, String> {
        Err(format!("{path}: no such folder"))
    }

    fn service(&self, name: &str, protocol: &str) -> Option<u16> {
        match (name, protocol) {
            ("sip", _) => Some(5060),
            ("shell", "tcp") => Some(514),
            ("syslog", "udp") => Some(514),
            ("twice", "tcp") => Some(1),
            ("twice", "udp") => Some(2),
            ("www", _) => Some(8080),
            _ => None,
        }
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        match name {
            "ip" => Some(0),
            "ospf" => Some(89),
            "tcp" => Some(99),
            _ => None,
        }
    }
}

fn built(config: &str, host: Option<Rc<dyn Host>>) -> Result<Router, String> {
    let environment = Environment {
        host,
        ..Environment::new()
    };
    let registry = click_elements::registry();
    let router = Router::build("t", config, &registry, environment, 1);
    router.map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn read(config: &str, handler: &str) -> Result<String, String> {
    let mut router = built(config, Some(Rc::new(System)))?;
    let value = router.read_handler(handler, "", 1).unwrap();
    Ok(String::from_utf8(value).unwrap().trim().to_string())
}

/// The pattern of one rule as the element understands it.
fn rule(pattern: &str) -> Result<String, String> {
    let config =
        format!("PortInfo(mine 77, sip 78/tcp); Idle -> f :: IPFilter(allow {pattern}) -> Discard");
    let rules = read(&config, "f.rules")?;
    Ok(rules.rsplit('\t').next().unwrap().to_string())
}

#[test]
fn patterns_know_the_names_of_the_system() {
    for (pattern, expected) in [
        ("ip proto ospf", "ip proto == 89"),
        ("ospf", "ip proto == 89"),
        ("ip proto tcp", "ip proto == 6"),
        ("src tcp port shell", "src tcp port == 514"),
        ("src udp port syslog", "src udp port == 514"),
        ("dst syslog", "dst tcpudp port == 514"),
        ("dst port www", "dst tcpudp port == 80"),
        ("dst udp port sip", "dst udp port == 5060"),
        ("dst tcp port sip", "dst tcp port == 78"),
        ("dst port mine", "dst tcpudp port == 77"),
    ] {
        assert_eq!(rule(pattern).as_deref(), Ok(expected), "{pattern}");
    }
    for pattern in [
        "src port twice",
        "src port nothing",
        "ip proto sip",
        "src udp port shell",
    ] {
        assert!(rule(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn arguments_know_them_and_a_guest_does_not() {
    let encap = "Idle -> e :: UDPIPEncap(1.0.0.1, syslog, 1.0.0.2, sip) -> IPEncap(ospf, 1.0.0.1, 1.0.0.2) -> Discard";
    assert_eq!(read(encap, "e.sport").as_deref(), Ok("514"));
    assert_eq!(read(encap, "e.dport").as_deref(), Ok("5060"));
    let error = built(encap, None).err().unwrap();
    for expected in [
        "a UDP port, got \"syslog\"",
        "got \"sip\"",
        "an IP protocol, got \"ospf\"",
    ] {
        assert!(error.contains(expected), "{error}");
    }
}
