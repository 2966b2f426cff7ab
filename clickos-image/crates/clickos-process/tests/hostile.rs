// SPDX-License-Identifier: Apache-2.0
//! Configurations that ask for more work or memory than a guest has: the guest refuses them, and the
//! router that runs goes on.
#![allow(clippy::unwrap_used)] // A test.

mod common;

use common::Host;
use common::guest::Guest;
use std::time::Duration;

const WIRE: &str = "FromDevice(0) -> c :: Counter -> Queue(200) -> ToDevice(1);\n\
                    FromDevice(1) -> Queue(200) -> ToDevice(0);\n";
const WAIT: Duration = Duration::from_secs(10);

/// Bytes of text that a guest of 8 MiB takes.
const TEXT: usize = 500 << 10;

fn repeated(part: &str) -> String {
    part.repeat(TEXT / part.len())
}

/// `count` levels, each of which uses the one below `fan` times.
fn nested(count: usize, fan: usize, open: &str, name: &str, close: &str) -> String {
    let below = |n: usize| match n {
        0 => String::new(),
        n => format!("{name}{};", n - 1).repeat(fan),
    };
    let level = |n| {
        format!(
            "{}{}{close}\n",
            open.replace('#', &format!("{n}")),
            below(n)
        )
    };
    (0..count).map(level).collect()
}

fn defines() -> String {
    let text = nested(11, 12, "define($v# ", "$v", ");").replace("; )", ")");
    format!(
        "{}a :: Counter($v10);",
        text.replace(";$", "$").replace(";);", ");")
    )
}

/// The name of each configuration, and its text.
fn hostile() -> Vec<(&'static str, String)> {
    let many = |class: &str, part: &str| format!("Idle -> {class}({}) -> Discard;", repeated(part));
    let doubled: String = (1..11)
        .map(|n| format!("define($d{n} $d{0}$d{0}$d{0}$d{0});", n - 1))
        .collect();
    vec![
        ("nested defines", defines()),
        ("nested classes", nested(39, 2, "elementclass C# {", "C", "}") + "C38;"),
        ("doubled text", format!("define($d0 {});{doubled} Idle -> Print($d10) -> Discard;", "x".repeat(1000))),
        ("long define", format!("define($a {}); Idle -> Print($a) -> Discard;", repeated("x"))),
        ("rules", many("IPFilter", "a,")),
        ("good rules", many("IPFilter", "allow tcp,")),
        ("conjunctions", many("IPFilter", "allow tcp && (src port 1 or dst port 2) &&")),
        ("parentheses", many("IPClassifier", "(")),
        ("nots", many("IPClassifier", "not ")),
        ("classifier", many("Classifier", "0/1,")),
        ("long pattern", many("Classifier", "0/01 ")),
        ("far pattern", "Idle -> Classifier(4000000000/01) -> Discard;".into()),
        ("routes", many("RadixIPLookup", "1.2.3.4/32 0,")),
        ("strings", many("StringMatcher", "abcdefgh ")),
        ("script", format!("s :: Script({});", repeated("set x 1,"))),
        ("script expression", format!("s :: Script(return {});", repeated("$("))),
        ("script loop", "s :: Script(TYPE ACTIVE, label a, goto a);".into()),
        ("script growth", "s :: Script(set x xxxxxxxxxxxxxxxx, label a, set x $x$x$x$x$x$x$x$x, goto a);".into()),
        ("queue", "Idle -> Queue(4000000000) -> Discard;".into()),
        ("queues", "Idle -> Queue(60000) -> Discard;".repeat(300)),
        ("fast flows", "FastUDPFlows(1, 10, 60, 0:0:0:0:0:1, 1.1.1.1, 0:0:0:0:0:2, 2.2.2.2, 4000000000, 10) -> Discard;".into()),
        ("source", "InfiniteSource(LENGTH 4000000000) -> Discard;".into()),
        ("data", format!("InfiniteSource(DATA {}) -> Discard;", repeated("\\<00>"))),
        ("aggregate", "Idle -> AggregateIP(ip src) -> AggregateCounter -> Discard;".into()),
        ("addresses", format!("AddressInfo({});", repeated("a b,"))),
        ("ports", "Idle -> [4000000000] Discard".into()),
        ("port lists", format!("a[{}0] -> b", repeated("0-1023,"))),
        ("terms", repeated("a[0-1023],")),
        ("groups", repeated("();")),
        ("elements", repeated("Idle;")),
        ("deep", repeated("{")),
        ("classes", repeated("elementclass A{}")),
        ("names", format!("{} :: {{ {} }}", "n".repeat(200_000), "Idle;".repeat(2000))),
        ("mirror", "Idle -> Strip(1) -> RoundRobinSwitch -> Discard".into()),
        ("alignment", "Idle -> Align(4000000000, 0) -> Discard".into()),
        ("pad", "Idle -> Pad(4000000000) -> Discard".into()),
        ("delay", "Idle -> DelayShaper(1e300) -> Discard".into()),
        ("numbers", format!("Idle -> Queue({}) -> Discard", repeated("9"))),
    ]
}

/// Installs a configuration beside a router that forwards; the router must go on forwarding.
fn survives(what: &str, text: &str) {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 2);
    assert_eq!(guest.install(&mut host, 0, WIRE).0, "Running");
    let (word, error) = guest.install(&mut host, 0, text);
    let shown: String = error.chars().take(150).collect();
    println!("{what}: {word}: {shown}");
    if word == "Error" {
        guest.ports[0].send(&[7; 60]);
        let passed = guest.ports[1].receive(WAIT);
        assert!(passed.is_some(), "{what}: {}", guest.console(&host));
        assert!(error.starts_with("test.click:"), "{what}: {error}");
    }
    assert_eq!(guest.install(&mut host, 0, WIRE).0, "Running", "{what}");
    guest.assert_alive();
}

#[test]
fn the_guest_survives_every_hostile_configuration() {
    let died = |(what, text): &(&str, String)| {
        let survived = std::panic::catch_unwind(|| survives(what, text));
        survived.is_err().then(|| (*what).to_string())
    };
    let died: Vec<_> = hostile().iter().filter_map(died).collect();
    assert_eq!(died, Vec::<String>::new());
}
