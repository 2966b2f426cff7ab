// SPDX-License-Identifier: Apache-2.0
//! The process guest from outside: real store, real rings, the confined process between them.

use crate::common::guest::{FIRST_UID, Guest, Port, console, end_of, signal_of, wait_for_its_read};
use crate::common::{Domain, Host, eventually};
use std::io::Write;
use std::process::Command;
use xenstore::Tx;

const WIRE: &str = "FromDevice(0) -> c :: Counter -> q :: Queue(200) -> ToDevice(1);\n\
                    FromDevice(1) -> Queue(200) -> ToDevice(0);\n";
/// A change of the argument line.
type Edit = fn(&mut serde_json::Value);

fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![number; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5]);
    frame
}

pub fn wire(host: &mut Host, domid: u16) -> Guest {
    let mut guest = Guest::start(host, domid, 2);
    let answer = guest.install(host, 0, WIRE);
    assert_eq!(
        answer,
        ("Running".into(), String::new()),
        "{}",
        guest.console(host)
    );
    guest
}

pub fn pass(guest: &mut Guest, number: u8) {
    guest.ports[0].send(&frame(number));
    let got = guest.ports[1].receive();
    guest.assert_alive();
    assert_eq!(got.as_deref(), Some(&frame(number)[..]));
}

#[test]
fn a_wire_passes_frames_and_its_handlers_answer() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    assert!(
        host.text(&guest.node("version"))
            .unwrap()
            .ends_with("protocol 1")
    );
    (0..100).for_each(|number| pass(&mut guest, number));
    let big = vec![7; 1514];
    guest.ports[1].send(&big);
    assert_eq!(guest.ports[0].receive(), Some(big));
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "100");
    assert_eq!(
        guest.write(&mut host, 0, &[("c.reset", "")]),
        (200, "0 command\n".into())
    );
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "0");
    let (code, list) = guest.request(&mut host, 0, b"handlers");
    assert_eq!(code, 200);
    let list = String::from_utf8(list).unwrap();
    assert!(list.lines().any(|line| line == "c.rate r"), "{list}");
    assert!(list.lines().any(|line| line == "c.reset w"), "{list}");
}

#[test]
fn refusals_have_the_codes_of_the_protocol() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    for (request, code) in [
        (&b"read nobody.count"[..], 510),
        (b"read c.nothing", 511),
        (b"read c.reset", 530),
        (b"write c.rate 1", 530),
        (b"frobnicate", 500),
        (b"writes 2\nc.reset 0\n\n", 500),
        (b"read \xff", 500),
    ] {
        let (got, text) = guest.request(&mut host, 0, request);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(got, code, "{}: {text}", request.escape_ascii());
        assert!(!text.is_empty());
    }
    let (code, text) = guest.request(&mut host, 9, b"read c.count");
    assert_eq!((code, &text[..]), (540, &b"router 9 is not installed"[..]));
    let writes = [("q.capacity", "100"), ("nobody.reset", "")];
    assert_eq!(guest.write(&mut host, 0, &writes).0, 510);
    assert_eq!(guest.read(&mut host, 0, "q.capacity").trim(), "200");
    pass(&mut guest, 1);
}

#[test]
fn a_bad_configuration_is_refused_with_its_place_and_changes_nothing() {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 2);
    let (word, error) = guest.install(
        &mut host,
        0,
        "FromDevice(0)\n  -> NoSuchElement -> Discard;\n",
    );
    assert_eq!(word, "Error");
    let place = "test.click:2:6: ";
    let named = |line: &str| line.starts_with(place) && line.contains("NoSuchElement");
    assert!(error.lines().any(named), "{error}");
    assert_eq!(guest.request(&mut host, 0, b"handlers").0, 540);

    assert_eq!(guest.install(&mut host, 0, WIRE).0, "Running");
    pass(&mut guest, 1);
    let (word, error) = guest.install(&mut host, 0, "this is -> not ( Click");
    assert_eq!(word, "Error");
    assert!(error.starts_with("test.click:1:"), "{error}");
    pass(&mut guest, 2);
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "2");
    for forbidden in [
        "ToDump(/etc/x)",
        "KernelTun(1.2.3.4/8)",
        "ControlSocket(TCP, 1)",
    ] {
        let (word, error) = guest.install(&mut host, 0, &format!("Idle -> {forbidden};"));
        assert_eq!(word, "Error");
        assert!(
            error.contains(forbidden.split('(').next().unwrap()),
            "{error}"
        );
    }
    pass(&mut guest, 3);
}

const PLUG: &str = r#"{"plug":{"devid":1,"mac":"02:00:00:00:00:01","mtu":1500}}"#;

#[test]
fn a_vif_comes_and_goes_while_the_guest_runs() {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 1);
    let echo = "FromDevice(0) -> c :: Counter -> Queue -> ToDevice(0);";
    assert_eq!(guest.install(&mut host, 0, echo).0, "Running");
    assert_ne!(guest.install(&mut host, 0, WIRE).0, "Running");
    let port = Port::new();
    let numbers = guest.plug(PLUG, &port.descriptors());
    assert_eq!(numbers["fds"].as_array().unwrap().len(), 3, "{numbers}");
    guest.ports.push(port);
    assert_eq!(guest.install(&mut host, 0, WIRE).0, "Running");
    (0..100).for_each(|number| pass(&mut guest, number));
    let gone = guest.plug(r#"{"unplug":{"devid":1}}"#, &[]);
    assert_eq!(gone, serde_json::json!({"fds": []}));
    let (state, error) = guest.install(&mut host, 0, WIRE);
    assert_ne!(state, "Running");
    assert!(error.contains("1"), "{error}");
    assert_eq!(guest.install(&mut host, 0, echo).0, "Running");
    guest.assert_alive();
}

#[test]
fn a_bad_message_about_vifs_changes_nothing() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    let port = Port::new();
    let [memfd, kick, reader, writer] = port.descriptors();
    for (message, fds) in [
        ("", &[][..]),
        ("[", &[]),
        (r#"{"plug":{}}"#, &[]),
        (PLUG, &[]),
        (PLUG, &[memfd, kick, reader]),
        (PLUG, &[kick, memfd, reader, writer]),
        (PLUG, &[memfd, kick, reader, writer, writer]),
        (&PLUG.replace("02:", "2:"), &[memfd, kick, reader, writer]),
        (&"x".repeat(5000), &[]),
    ] {
        if !message.is_empty() {
            let answer = guest.plug(message, fds);
            assert!(answer["error"].is_string(), "{message}: {answer}");
        }
        pass(&mut guest, 7);
    }
}

#[test]
fn a_swap_keeps_queues_and_loses_no_frame() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    (0..10).for_each(|number| pass(&mut guest, number));
    for step in 0..5 {
        let text = format!("// step {step}\n{WIRE}");
        guest.ports[0].send(&frame(100 + step));
        assert_eq!(guest.install(&mut host, 0, &text).0, "Running");
        assert_eq!(guest.ports[1].receive(), Some(frame(100 + step)));
    }
    pass(&mut guest, 200);
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "16");
}

#[test]
fn several_routers_halting_and_removing() {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 2);
    assert_eq!(guest.install(&mut host, 0, WIRE).0, "Running");
    assert_eq!(
        guest.install(&mut host, 63, "a :: Idle -> d :: Discard;").0,
        "Running"
    );
    assert_eq!(guest.read(&mut host, 63, "d.class").trim(), "Discard");
    pass(&mut guest, 1);
    assert_eq!(
        guest.request_router(&mut host, 0, WIRE, "Halted").0,
        "Halted"
    );
    guest.ports[0].send(&frame(2));
    // A guest that answers has looked at its rings.
    for _ in 0..2 {
        assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "1");
    }
    assert_eq!(guest.ports[1].received(), None);
    assert_eq!(
        guest.request_router(&mut host, 0, WIRE, "Running").0,
        "Running"
    );
    assert_eq!(guest.ports[1].receive(), Some(frame(2)));
    assert_eq!(guest.install(&mut host, 0, "").0, "Halted");
    assert_eq!(guest.request(&mut host, 0, b"read c.count").0, 540);
    assert_eq!(guest.read(&mut host, 63, "d.class").trim(), "Discard");
}

#[test]
fn a_large_configuration_and_a_large_answer() {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 2);
    let comment = format!("/* {} */\n", "x".repeat(60_000));
    assert_eq!(
        guest.install(&mut host, 0, &format!("{comment}{WIRE}")).0,
        "Running"
    );
    pass(&mut guest, 1);
    let config = guest.read(&mut host, 0, "config");
    assert!(config.contains("Counter"), "{} bytes", config.len());
    let too_big = format!("/* {} */\n{WIRE}", "x".repeat(2 << 20));
    let (word, error) = guest.install(&mut host, 0, &too_big);
    assert_eq!(word, "Error");
    assert!(error.contains("longer than the limit of"), "{error}");
    pass(&mut guest, 2);
}

#[test]
fn hostile_configurations_end_as_errors() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    let full = |text: &str| text.repeat(65_000 / text.len());
    let nested = |step: &dyn Fn(usize) -> String| (1..40).map(step).collect::<String>();
    let classes = nested(&|n| {
        let inner = n - 1;
        format!("elementclass A{n} {{ a::A{inner}; b::A{inner}; c::A{inner}; d::A{inner} }};")
    });
    let defines = nested(&|n| format!("define($a{n} $a{0}$a{0}$a{0}$a{0});", n - 1));
    for config in [
        full("Idle;"),
        full("{Idle;}"),
        full("Idle->"),
        full("a,b,"),
        full("("),
        full("elementclass A{"),
        format!("elementclass A0 {{ Idle -> Discard; }}; {classes} A39;"),
        format!(
            "define($a0 {}); {defines} Idle -> Print($a39) -> Discard;",
            "x".repeat(99)
        ),
    ] {
        let (word, error) = guest.install(&mut host, 0, &config);
        let what = format!("{}... {word} {error}", &config[..20]);
        assert!(word == "Error" && error.starts_with("test.click"), "{what}");
        pass(&mut guest, 1);
    }
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "8");
}

#[test]
fn people_write_and_read_by_hand() {
    let mut host = Host::new();
    let mut guest = Guest::start(&mut host, 5, 2);
    let write = |host: &mut Host, path: &str, value: &str| {
        host.client.write(Tx::NONE, path, value.as_bytes()).unwrap();
    };
    write(&mut host, &guest.node("3/config/0"), WIRE);
    write(&mut host, &guest.node("3/status"), "Running");
    let state = guest.node("3/state");
    host.wait("state", |c| {
        c.read_opt(Tx::NONE, &state)
            .unwrap()
            .filter(|s| s == b"Running 0")
    });
    pass(&mut guest, 1);
    write(&mut host, &guest.node("3/control/read/c/count"), "1");
    let shown = guest.node("3/elements/c/count");
    let count = host.wait("count", |c| c.read_opt(Tx::NONE, &shown).unwrap());
    assert_eq!(String::from_utf8(count).unwrap().trim(), "1");
    write(&mut host, &guest.node("3/elements/c/reset"), "");
    write(&mut host, &guest.node("3/elements/c/nothing"), "5");
    let error = guest.node("3/error");
    let text = host.wait("error", |c| {
        c.read_opt(Tx::NONE, &error)
            .unwrap()
            .filter(|e| !e.is_empty())
    });
    assert!(text.starts_with(b"c.nothing: "), "{}", text.escape_ascii());
    assert_eq!(guest.read(&mut host, 3, "c.count").trim(), "0");
}

#[test]
fn the_process_is_confined() {
    let mut host = Host::new();
    let guest = wire(&mut host, 5);
    let status = guest.proc("status");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once(':')
            .unwrap()
            .1
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let uid = (FIRST_UID + 5).to_string();
    assert_eq!(field("Uid"), [&uid[..]; 4].join(" "));
    assert_eq!(field("Gid"), [&uid[..]; 4].join(" "));
    assert_eq!(field("Groups"), "");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&field(set), 16).unwrap(), 0, "{set}");
    }
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!(field("Seccomp"), "2");
    assert_eq!(field("Threads"), "1");
    for namespace in ["net", "mnt", "ipc", "uts", "cgroup"] {
        let of = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/{namespace}")).unwrap();
        assert_ne!(of(&guest.child.id().to_string()), of("self"), "{namespace}");
    }
    assert_eq!(
        std::fs::read_dir(format!("/proc/{}/root", guest.child.id()))
            .unwrap()
            .count(),
        0
    );
    let mounts = guest.proc("mounts");
    assert_eq!(mounts.lines().count(), 1, "{mounts}");
    assert!(mounts.contains("tmpfs ro,"), "{mounts}");
    let interfaces = guest.proc("net/dev");
    assert_eq!(interfaces.lines().skip(2).count(), 1, "{interfaces}");
}

#[test]
fn the_process_holds_only_what_it_was_given() {
    let mut host = Host::new();
    let guest = wire(&mut host, 5);
    let mut targets: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", guest.child.id()))
        .unwrap()
        .map(|fd| {
            std::fs::read_link(fd.unwrap().path())
                .unwrap()
                .display()
                .to_string()
        })
        .map(|path| {
            let last = path.rsplit('/').next().unwrap();
            let inode = last.split(':').next_back().unwrap();
            match last.split_once(":[") {
                Some((kind @ ("pipe" | "socket"), _)) => kind,
                _ => inode,
            }
            .to_string()
        })
        .collect();
    targets.sort();
    let (event, pipe, rings) = ("[eventfd]", "pipe", "vale-ring (deleted)");
    // Each vif has its rings, both ends of the pipe, and the event; vifs come by the socket.
    let mut wanted = [
        "socket",
        "socket",
        "null",
        "console5",
        "console5",
        "to-store",
        "dom5.event",
        event,
        event,
        pipe,
        pipe,
        pipe,
        pipe,
        rings,
        rings,
    ];
    wanted.sort();
    assert_eq!(targets, wanted);
    let limits = guest.proc("limits");
    for (name, value) in [
        ("Max processes", "0"),
        ("Max core file size", "0"),
        ("Max file size", "1048576"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(
            line[name.len()..].split_whitespace().next(),
            Some(value),
            "{line}"
        );
    }
    assert!(
        !limits.contains("Max address space         unlimited"),
        "{limits}"
    );
}

/// Checks that the guest sleeps while it has nothing to do.
pub fn assert_rests(guest: &Guest) {
    bounds::hold(
        "max_idle_guest_wakeups_per_second",
        guest.wakeups_per_second(),
    );
}

#[test]
fn an_idle_guest_costs_nothing() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    pass(&mut guest, 1);
    assert_rests(&guest);
    // Frames that no element reads must not keep it awake either.
    assert_eq!(
        guest.request_router(&mut host, 0, WIRE, "Halted").0,
        "Halted"
    );
    guest.ports[0].send(&frame(2));
    assert_rests(&guest);
}

#[test]
fn hostile_rings_do_not_end_the_guest() {
    use std::os::unix::fs::FileExt;
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    pass(&mut guest, 1);
    let mut noise = 7_u64;
    for _ in 0..200 {
        for port in &guest.ports {
            let file = std::fs::File::from(port.memfd.try_clone().unwrap());
            let mut page = [0; 4096];
            page.iter_mut().for_each(|byte| {
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695);
                *byte = (noise >> 33) as u8;
            });
            (0..4).for_each(|at| file.write_all_at(&page, 4096 * at).unwrap());
            port.wake();
        }
    }
    guest.assert_alive();
    // Still under control, and a fresh domain is not disturbed.
    assert_eq!(guest.read(&mut host, 0, "c.class").trim(), "Counter");
    let mut other = wire(&mut host, 6);
    pass(&mut other, 1);
}

#[test]
fn a_guest_sleeps_when_the_switch_has_died() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    pass(&mut guest, 1);
    guest.ports.clear();
    assert_rests(&guest);
    assert_eq!(guest.read(&mut host, 0, "c.class").trim(), "Counter");
}

#[test]
fn a_guest_cannot_see_another_ones_keys() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    let mut spy = Domain::new(&mut host, 6);
    for what in ["", "/version", "/0/state", "/0/generation"] {
        let path = format!("/local/domain/5/data/clickos{what}");
        assert!(host.text(&path).is_some(), "{path}");
        assert!(spy.read(&path).is_err(), "{path}");
        assert!(spy.write(&path, b"x").is_err(), "{path}");
    }
    spy.call(&xenstore::Request::watch("/local/domain/5/data", "spy").unwrap())
        .unwrap();
    spy.events();
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "0");
    assert_eq!(spy.events(), Vec::<String>::new());
}

#[test]
fn pausing_keeps_everything() {
    use rustix::process::{Pid, Signal, kill_process};
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    pass(&mut guest, 1);
    let pid = Pid::from_child(&guest.child);
    kill_process(pid, Signal::STOP).unwrap();
    eventually("the guest stops", || {
        guest.proc("status").contains("\nState:\tT")
    });
    guest.ports[0].send(&frame(2));
    assert_eq!(guest.ports[1].received(), None);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(guest.ports[1].receive(), Some(frame(2)));
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "2");
}

#[test]
fn a_bad_start_is_refused_with_its_reason() {
    let mut host = Host::new();
    host.make_domain(5);
    let ports = [Port::new()];
    let cases: [(&str, Edit); 7] = [
        ("uid: 0", |line| line["uid"] = 0.into()),
        ("not a MAC address", |line| {
            line["vifs"][0]["mac"] = "x".into()
        }),
        ("named twice", |line| line["store"]["ring"] = 5.into()),
        ("reserved", |line| line["root"] = 1.into()),
        ("kick: ", |line| line["vifs"][0]["kick"] = 99.into()),
        ("vif 0: ", |line| {
            line["vifs"][0]["memfd"] = line["vifs"][0]["kick"].clone()
        }),
        ("unknown field", |line| line["extra"] = 1.into()),
    ];
    for (wanted, change) in cases {
        std::fs::remove_file(host.path("console5")).unwrap_or_default();
        let (mut child, mut argument, mut line) = Guest::spawn(&host, 5, &ports, change);
        if wanted == "vif 0: " {
            line["vifs"][0]["kick"] = 10.into();
        }
        argument.write_all(format!("{line}\n").as_bytes()).unwrap();
        let status = end_of(&mut child);
        let text = console(&host, 5);
        assert_eq!(status.code(), Some(1), "{wanted}: {text}");
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn a_toolstack_that_dies_before_the_start_leaves_no_guest() {
    let mut host = Host::new();
    host.make_domain(5);
    let (mut child, argument, _) = Guest::spawn(&host, 5, &[], |_| {});
    wait_for_its_read(child.id());
    drop(argument);
    let status = end_of(&mut child);
    assert_eq!((status.code(), signal_of(status)), (Some(1), None));
    assert!(console(&host, 5).contains("without an argument line"));
}

#[test]
fn the_command_line() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_clickos-process"))
            .args(arguments)
            .output()
            .unwrap()
    };
    let version = run(&["--version"]);
    assert!(version.status.success());
    assert!(
        String::from_utf8(version.stdout)
            .unwrap()
            .starts_with(concat!("clickos-process ", env!("CARGO_PKG_VERSION")))
    );
    for wrong in [&["--help"][..], &["a"], &["--version", "x"]] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .starts_with("usage: "),
            "{wrong:?}"
        );
    }
}
