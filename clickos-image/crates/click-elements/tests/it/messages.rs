// SPDX-License-Identifier: Apache-2.0
//! Errors about arguments and values of handlers: the value that is wrong, what is expected, in lower case and without a
//! full stop. This test walks the registry and the configurations of the corpus.
use std::collections::{BTreeMap, BTreeSet};

use click_core::class::{Arg, ArgKind};
use click_core::{Class, HandlerError, Kind, Phase, Router};

use crate::registry::{benches, environment};

/// No argument and no handler that has a form takes this.
const NONSENSE: [&str; 3] = [
    "zz~9",
    "zz~9 zz~9 zz~9 zz~9 zz~9 zz~9 zz~9",
    "99999999999999999999",
];
/// Arguments and handlers whose values no message may show.
const SECRETS: [&str; 6] = [
    "PPPoEServer.PASSWORDS",
    "PPPoEServer.SECRET",
    "PPPoEServer.passwords",
    "VRRP.KEY",
    "WireGuard.PRIVATE_KEY",
    "WireGuard.private_key",
];
/// A key in Base64, of which no message tells if it is a secret one.
const KEY: &str = "expected 32 bytes in Base64";
/// Says nothing about its arguments.
const NEVER_BUILT: &str = "ErrorElement";

/// The errors about the arguments of an element.
fn errors(class: &Class, config: &str) -> Vec<String> {
    let config = format!("x :: {}({config})", class.name);
    let registry = click_elements::registry();
    let built = Router::build("t", &config, &registry, environment(BTreeMap::new()), 1);
    let errors = built.err().unwrap_or_default();
    let about = errors.into_iter().filter(|e| {
        let subject = e.subject.as_ref();
        subject.is_some_and(|s| s.phase != Phase::Connecting)
    });
    about.map(|e| e.message).collect()
}

/// An element of this class whose argument is `value`.
fn config(class: &Class, arg: &Arg, value: &str) -> String {
    if arg.kind != ArgKind::Rest {
        return format!("{} {value}", arg.name);
    }
    let positional = |a: &&Arg| matches!(a.kind, ArgKind::Mandatory | ArgKind::Optional);
    let before = class.args.iter().filter(positional).count();
    vec![value; before + 1].join(", ")
}

/// What is wrong with the lines of a message about a value, but for those about what is missing.
fn faults(message: &str, value: &str) -> Vec<String> {
    let lines = message
        .lines()
        .filter(|line| !line.ends_with(": required argument missing"));
    let found = lines.filter_map(|line| Some(format!("{line}: {}", fault(line, value)?)));
    found.collect()
}

fn fault(message: &str, value: &str) -> Option<&'static str> {
    let first = message.rsplit(": ").next().unwrap_or_default();
    let mut letters = first.chars();
    let is_sentence = letters.next().is_some_and(char::is_uppercase)
        && letters.next().is_some_and(char::is_lowercase);
    if is_sentence {
        return Some("begins with a capital letter");
    }
    if message.ends_with('.') && !message.ends_with("...") {
        return Some("ends with a full stop");
    }
    let word: String = value
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    let begins_with_count = first.starts_with(|c: char| c.is_ascii_digit());
    let shows = message.contains(&word) || message.contains("got ") || begins_with_count;
    (!shows && first != KEY).then_some("does not show the value")
}

#[test]
fn errors_about_arguments_show_the_value() {
    let mut found = BTreeSet::new();
    let registry = click_elements::registry();
    let classes = registry.iter().map(|(_, entry)| entry.class);
    for class in classes.filter(|class| class.name != NEVER_BUILT) {
        for arg in class.args {
            let name = format!("{}.{}", class.name, arg.name);
            if SECRETS.contains(&&*name) {
                continue;
            }
            for value in NONSENSE {
                let messages = errors(class, &config(class, arg, value));
                let lines = messages.iter().flat_map(|message| faults(message, value));
                found.extend(lines.map(|line| format!("{name} {value}: {line}")));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A key that both peers know, in each place of a peer's terms.
#[test]
fn errors_about_a_peer_show_no_preshared_key() {
    let registry = click_elements::registry();
    let class = registry.get("WireGuard").unwrap().class;
    let public = "zo060cy2M+x7cMF4FKXHbs0CloUFDTRHRboFhw5YfVk=";
    for terms in [
        "psk=hidden".to_string(),
        "psk=hidden - 10.0.0.0/8".to_string(),
        format!("{public} psk=hidden"),
        format!("{public} psk=hidden 10.0.0.0/8"),
        format!("{public} - 10.0.0.0/8 psk=hidden"),
    ] {
        let config = format!("10.9.0.1, 51820, \"{terms}\", PRIVATE_KEY {public}");
        let messages = errors(class, &config);
        assert!(!messages.is_empty(), "{terms} is accepted");
        assert!(!messages.concat().contains("hidden"), "{messages:?}");
    }
}

/// Values of another kind, or none, behind words that need one.
#[test]
fn errors_about_conditions_show_the_value() {
    let registry = click_elements::registry();
    let class = registry.get("IPClassifier").unwrap().class;
    for (condition, got) in [
        ("src host 7", "got \"7\""),
        ("dst net 1.2.3.4", "got \"1.2.3.4\""),
        ("ether host 1.2.3.4", "got \"1.2.3.4\""),
        ("ip proto 1.2.3.4", "got \"1.2.3.4\""),
        ("src port 1.2.3.4", "got \"1.2.3.4\""),
        ("tcp opt 1.2.3.4", "got \"1.2.3.4\""),
        ("ip6 and src host 1.2.3.4/8", "got \"1.2.3.4/8\""),
        ("host", "got nothing"),
        ("host $", "got \"$\""),
    ] {
        let messages = errors(class, condition);
        let rule = messages.iter().find(|m| m.contains("rule 0"));
        assert!(
            rule.is_some_and(|m| m.ends_with(got)),
            "{condition}: {messages:?}"
        );
    }
}

#[test]
fn errors_about_values_of_handlers_show_them() {
    let registry = click_elements::registry();
    let mut found = BTreeSet::new();
    for bench in benches() {
        let environment = environment(bench.files);
        let Ok(mut router) = Router::build("t", &bench.config, &registry, environment, 1) else {
            continue;
        };
        let handlers = router.handlers().into_iter();
        for handler in handlers.filter(|h| h.write && h.kind != Kind::Command) {
            let Some((element, own)) = handler.name.rsplit_once('.') else {
                continue;
            };
            let class = router.read_handler(&format!("{element}.class"), "", 1);
            let class = String::from_utf8(class.unwrap()).unwrap();
            let name = format!("{}.{own}", class.trim());
            if SECRETS.contains(&&*name) {
                continue;
            }
            for value in NONSENSE {
                let written = router.write_handlers(&[(&handler.name, value.as_bytes())], 1);
                let message = written
                    .err()
                    .map(HandlerError::into_message)
                    .unwrap_or_default();
                let lines = faults(&message, value).into_iter();
                found.extend(lines.map(|line| format!("{name} {value}: {line}")));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
