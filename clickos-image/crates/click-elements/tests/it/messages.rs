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
/// A handler that sets a secret, and has another name than the argument.
const RADIUS_SECRET: &str = "PPPoEServer.radius_secret";
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
            if arg.is_secret {
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

/// A key that both peers know, in each place of a peer's terms, and behind words that are misspelt.
#[test]
fn errors_about_a_peer_show_no_preshared_key() {
    let public = "zo060cy2M+x7cMF4FKXHbs0CloUFDTRHRboFhw5YfVk=";
    let secret = "hidden0cy2M+x7cMF4FKXHbs0CloUFDTRHRboFhw5YfV=";
    let key = format!("{public}, PRIVATE_KEY {public}");
    for terms in [
        format!("psk={secret}"),
        format!("psk={secret} - 10.0.0.0/8"),
        format!("{public} psk={secret}"),
        format!("{public} psk={secret} 10.0.0.0/8"),
        format!("{public} {secret} 10.0.0.0/8"),
        format!("{public} - 10.0.0.0/8 psk={secret}"),
        format!("{public} - 10.0.0.0/8 PSK={secret}"),
        format!("{public} - 10.0.0.0/8 psk {secret}"),
    ] {
        hides("WireGuard", &format!("10.9.0.1, 51820, \"{terms}\", {key}"));
    }
}

fn hides(class: &str, config: &str) {
    let registry = click_elements::registry();
    let class = registry.get(class).unwrap().class;
    let messages = errors(class, config);
    assert!(!messages.is_empty(), "{config} is accepted");
    assert!(!messages.concat().contains("hidden"), "{messages:?}");
}

/// Secrets in the places of other arguments, as without quotes, under misspelt names, or where words lack.
#[test]
fn errors_show_no_secret_in_a_wrong_place() {
    let terms = "02:00:00:00:00:01, 10.0.0.1";
    for rest in [
        "PASSWORDS amy one, bob hidden",
        "PASSWORDS hidden$ amy",
        "PASSWORD \"amy hidden\"",
        "passwords \"amy hidden\", bob",
        "amy 10.0.0.2 9, PASSWORDS \"amy one\", hidden",
        "SECRET one, hidden",
        "SECRET one, hidden two",
        "SECRETS hidden",
    ] {
        hides("PPPoEServer", &format!("{terms}, {rest}"));
    }
    hides("VRRP", "KEYS hidden");
    hides("VRRP", "KEY hidden");
    hides("VRRP", "KEY one, PRIORITY hidden7cMF4FKXHbs0");
    hides("PPPoEServer", "10.0.0.1, hidden7cMF4FKXHbs0");
    hides("WireGuard", "hidden7cMF4FKXHbs0, 51820");
    hides("WireGuard", "10.9.0.1, hidden7cMF4FKXHbs0");
    for route in [
        "10.0.0.0/8 0123456789hidden authenticationke 300 64",
        "10.0.0.0/8 1 0123456789hidden authenticationke 300 64 9",
        "10.0.0.0/8 1 7 authenticationke 300 0123456789hidden 64",
        "10.0.0.0/8 0123456789hidden 1",
        "10.0.0.0/8 1 0123456789hidden",
        "0123456789hidden 1",
    ] {
        hides("RadixIPsecLookup", route);
    }
}

/// No handler reads back what is a secret; a configuration shows what its author wrote.
#[test]
fn a_secret_that_a_handler_sets_is_not_in_the_configuration() {
    let registry = click_elements::registry();
    let key = "zo060cy2M+x7cMF4FKXHbs0CloUFDTRHRboFhw5YfVk=";
    let config = "w :: WireGuard(10.9.0.1, 51820, KEEPALIVE 9); p :: PPPoEServer(2:0:0:0:0:1, 10.0.0.1, ECHO 9);
         Idle -> w -> Discard; Idle -> [1] w; w [1] -> Discard; Idle -> p -> Discard; Idle -> [1] p; p [1] -> Discard;";
    let environment = environment(BTreeMap::new());
    let mut router = Router::build("t", config, &registry, environment, 1).unwrap();
    let writes = [
        ("w.private_key", key),
        ("p.passwords", "amy hidden"),
        ("p.radius_secret", "hidden"),
    ];
    for (handler, value) in writes {
        router
            .write_handlers(&[(handler, value.as_bytes())], 1)
            .unwrap();
    }
    for handler in ["w.config", "p.config", "flatconfig", "config"] {
        let text = router.read_handler(handler, "", 1).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("ECHO 9") || text.contains("KEEPALIVE 9"),
            "{text}"
        );
        assert!(!text.contains(key) && !text.contains("hidden"), "{text}");
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

/// The writable handlers of the corpus that are no commands, each with the class of its element.
fn each_handler(mut visit: impl FnMut(&mut Router, &str, &str)) {
    let registry = click_elements::registry();
    for bench in benches() {
        let environment = environment(bench.files);
        let Ok(mut router) = Router::build("t", &bench.config, &registry, environment, 1) else {
            continue;
        };
        let handlers = router.handlers().into_iter();
        for handler in handlers.filter(|h| h.write && h.kind != Kind::Command) {
            let Some((element, _)) = handler.name.rsplit_once('.') else {
                continue;
            };
            let class = router.read_handler(&format!("{element}.class"), "", 1);
            let class = String::from_utf8(class.unwrap()).unwrap();
            visit(&mut router, &handler.name, class.trim());
        }
    }
}

/// The error of a write, if it is refused.
fn refusal(router: &mut Router, handler: &str, value: &str) -> String {
    let written = router.write_handlers(&[(handler, value.as_bytes())], 1);
    let refused = written.err().map(HandlerError::into_message);
    refused.unwrap_or_default()
}

#[test]
fn errors_about_values_of_handlers_show_them() {
    let registry = click_elements::registry();
    let mut found = BTreeSet::new();
    each_handler(|router, handler, class| {
        let (_, own) = handler.rsplit_once('.').unwrap();
        let name = format!("{class}.{own}");
        let args = registry.get(class).map_or(&[][..], |e| e.class.args);
        let mut secrets = args.iter().filter(|arg| arg.is_secret);
        if secrets.any(|arg| arg.name.eq_ignore_ascii_case(own)) || name == RADIUS_SECRET {
            return;
        }
        for value in NONSENSE {
            let message = refusal(router, handler, value);
            let lines = faults(&message, value).into_iter();
            found.extend(lines.map(|line| format!("{name} {value}: {line}")));
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

/// Whatever a value is, a terminal that shows the error obeys no part of it, and a log does not grow by it.
#[test]
fn errors_are_short_and_of_characters_that_are_seen() {
    let values = [
        format!("\x1b[2J\u{202e}{}", "\x01".repeat(3000)),
        format!("x{}", " \x1b]0;x\x07".repeat(300)),
        "\u{2028}y,".repeat(600),
    ];
    let is_seen = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    let check = |name: &str, message: &str| {
        assert!(message.len() < 2100, "{name}: {} bytes", message.len());
        let seen = message
            .chars()
            .all(|c| is_seen(c) && !matches!(c, '\u{202e}' | '\u{2028}'));
        assert!(seen, "{name}: {message:?}");
    };
    let registry = click_elements::registry();
    let classes = registry.iter().map(|(_, entry)| entry.class);
    for class in classes.filter(|class| class.name != NEVER_BUILT) {
        for (arg, value) in class
            .args
            .iter()
            .flat_map(|arg| values.iter().map(move |v| (arg, v)))
        {
            let messages = errors(class, &config(class, arg, value));
            messages
                .iter()
                .for_each(|message| check(class.name, message));
        }
    }
    each_handler(|router, handler, class| {
        for value in &values {
            check(
                &format!("{class}: {handler}"),
                &refusal(router, handler, value),
            );
        }
    });
    for file in ["\x1b[2J", "\\x1b[2J", "\\n", "\u{202e}"] {
        let config = format!("# 7 \"a{file}b\"\nx :: Missing;");
        let built = Router::build("t", &config, &registry, environment(BTreeMap::new()), 1);
        for error in built.err().unwrap() {
            check("a line directive", &error.to_string());
            assert!(error.place.file == "t" && error.place.line == 7, "{error}");
        }
    }
    let environment = environment(BTreeMap::new());
    let mut router = Router::build("t", "Idle -> Discard;", &registry, environment, 1).unwrap();
    for value in &values {
        let error = router
            .read_handler(&format!("{value}.count"), "", 1)
            .unwrap_err();
        check("the name of a handler", &error.to_string());
    }
}
