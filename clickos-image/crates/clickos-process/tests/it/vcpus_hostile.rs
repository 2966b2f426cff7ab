// SPDX-License-Identifier: Apache-2.0
//! Configurations, packets and writes that ask several threads for more memory or work than the guest has.
use crate::common::guest::{Guest, until_memory_is_steady};
use crate::common::hostile::{crossed_rules, each_byte, groups};
use crate::common::{Host, eventually};
use clickos_protocol::Command as Handler;

const VCPUS: u8 = 4;

const MEMORY: &str = "leaves less than 1024 KiB of the memory, the limit";

/// Forwards from vif 0 to vif 1 on all threads.
const WORK: &str = "FromDevice(0) -> work :: Counter -> out :: Queue(200) -> ToDevice(1);
    FromDevice(1) -> back :: Discard; FlowThreadSched(work);\n";

/// A guest of 8 MiB for each thread.
fn start(host: &mut Host) -> Guest {
    Guest::start_on(host, 5, 2, VCPUS)
}

/// A UDP packet of a flow.
fn frame(flow: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0];
    frame.extend([
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0, 80, 0, 26, 0, 0]);
    frame.extend([7; 18]);
    frame
}

fn assert_forwards(host: &Host, guest: &mut Guest, what: &str) {
    for flow in 1..9 {
        guest.ports[0].send(&frame(flow));
        let got = guest.ports[1].receive();
        assert_eq!(got, Some(frame(flow)), "{what}: {}", guest.console(host));
    }
    guest.assert_alive();
}

fn count(guest: &mut Guest, host: &mut Host, name: &str) -> u64 {
    guest.read(host, 0, name).trim().parse().unwrap()
}

/// Installs a configuration next to one that forwards; returns the error, if it does not start.
fn install(host: &mut Host, guest: &mut Guest, what: &str, config: &str) -> Option<String> {
    let (word, error) = guest.install(host, 0, config);
    let refused = (word == "Error").then_some(error);
    if refused.is_none() {
        assert_eq!(
            guest.install(host, 0, WORK),
            ("Running".into(), String::new()),
            "after {what}"
        );
    }
    assert_forwards(host, guest, what);
    refused
}

fn numbered(count: usize, part: impl Fn(usize) -> String) -> String {
    (1..=count).map(part).collect()
}

#[test]
fn queues_between_threads_that_do_not_fit_are_refused() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    let queue = |n| {
        format!(
            "Idle -> Queue(65536) -> u{n} :: Unqueue -> d{n} :: Discard; StaticThreadSched(u{n} 1);"
        )
    };
    for count in [5, 20, 100] {
        let config = numbered(count, queue);
        let refused = install(&mut host, &mut guest, "queues", &config);
        match refused {
            None => assert!(count < 20, "{count} queues"),
            Some(error) => assert!(error.contains(MEMORY), "{count}: {error}"),
        }
    }
    let ports = (0..200).map(|n| format!("s[{n}] -> d;"));
    let config = format!(
        "Idle -> s :: Switch -> d :: Discard; {} FlowThreadSched(s);",
        ports.collect::<String>()
    );
    install(&mut host, &mut guest, "many outputs", &config);
}

#[test]
fn configurations_that_are_hostile_to_one_thread_are_so_to_several() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    for case in groups().into_iter().flatten() {
        install(&mut host, &mut guest, case.name, &case.text);
    }
}

#[test]
fn elements_that_take_much_on_each_thread_are_refused() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    let copied = |class: &str, config: &str| {
        format!("Idle -> e :: {class}({config}) -> Discard; FlowThreadSched(e);")
    };
    let routes = numbered(6000, |n| format!("10.{}.{}.0/24 0,", n / 250, n % 250));
    for round in 0..3 {
        for (class, config) in [
            ("IPFilter", crossed_rules()),
            ("RadixIPLookup", routes.clone()),
            ("StringMatcher", each_byte(4000)),
            ("StringMatcher", each_byte(2000)),
        ] {
            let what = format!("round {round}: {class}");
            install(&mut host, &mut guest, &what, &copied(class, &config));
        }
    }
}

/// Packets that a guest of 8 MiB may have, as a thread of this one.
const PACKETS: u64 = 819;

#[test]
fn packets_between_threads_count_for_the_limit() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    let flood = "i :: InfiniteSource(LENGTH 1500) -> q :: Queue(60000) -> u :: Unqueue(ACTIVE false) -> d :: Discard;
        StaticThreadSched(i 2, u 3);";
    until_memory_is_steady(|round| {
        let (word, error) = guest.install(&mut host, 0, &format!("{WORK}{flood}"));
        assert_eq!((&*word, &*error), ("Running", ""), "{round}");
        let mut length = 0;
        eventually("as many as the thread may have", || {
            length = count(&mut guest, &mut host, "q.length");
            length >= PACKETS - 64
        });
        assert_forwards(&host, &mut guest, "a full queue");
        assert_eq!(guest.write(&mut host, 0, &[("u.active", "true")]).0, 200);
        eventually("all pass", || {
            count(&mut guest, &mut host, "d.count") > 100_000
        });
        assert_eq!(guest.write(&mut host, 0, &[("u.active", "false")]).0, 200);
        eventually("the queue is full again", || {
            length = count(&mut guest, &mut host, "q.length");
            length >= PACKETS - 64
        });
        // what the thread that pulls has taken besides
        assert!(length <= 2 * PACKETS, "{length} packets");
        assert_forwards(&host, &mut guest, "a full queue again");
        let (word, error) = guest.install(&mut host, 0, WORK);
        assert_eq!((&*word, &*error), ("Running", ""), "{round}");
        guest.mapped_kib()
    });
}

/// Packets wait in a queue between threads while the configuration changes around it.
#[test]
fn a_new_configuration_loses_no_packet_of_a_queue() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    let around = |more: &str| {
        format!(
            "FromDevice(0) -> q :: Queue(1000) -> u :: Unqueue(ACTIVE false) -> out :: Queue(1000) -> ToDevice(1);
             FromDevice(1) -> Discard; {more}"
        )
    };
    let on = |thread| around(&format!("StaticThreadSched(u {thread});"));
    let copied = around("Idle -> e :: Counter -> Discard; FlowThreadSched(e);");
    for (before, after) in [
        (on(1), on(1)),
        (on(1), format!("{} Idle -> x :: Counter -> Discard;", on(1))),
        (on(1), on(2)),
        (on(1), on(0)),
        (on(0), on(1)),
        (on(3), copied),
    ] {
        assert_eq!(guest.install(&mut host, 0, "").0, "Halted");
        assert_eq!(guest.install(&mut host, 0, &before).0, "Running");
        (0..100).for_each(|flow| guest.ports[0].send(&frame(flow)));
        eventually("all wait", || {
            count(&mut guest, &mut host, "q.length") == 100
        });
        assert_eq!(guest.install(&mut host, 0, &after).0, "Running");
        // the threads pass them on after the change
        eventually(&format!("{before}\n{after}"), || {
            count(&mut guest, &mut host, "q.length") == 100
        });
        assert_eq!(guest.write(&mut host, 0, &[("u.active", "true")]).0, 200);
        for flow in 0..100 {
            assert_eq!(
                guest.ports[1].receive(),
                Some(frame(flow)),
                "{before}\n{after}"
            );
        }
    }
}

/// Bytes of a handler's value in a guest of 8 MiB, as of a thread of this one.
const VALUE: usize = 128 << 10;

#[test]
fn the_state_of_all_copies_is_a_value_that_they_take() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    let config = "FromDevice(0) -> work :: { input -> Strip(14) -> MarkIPHeader
             -> rw :: IPRewriter(keep 0 1) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> output; rw[1] -> Discard }
         -> Queue(200) -> ToDevice(1); FromDevice(1) -> Discard; FlowThreadSched(work);";
    assert_eq!(guest.install(&mut host, 0, config).0, "Running");
    const FLOWS: u16 = 6000;
    for first in (1..FLOWS).step_by(25) {
        (first..first + 25).for_each(|flow| guest.ports[0].send(&frame(flow)));
        (0..25).for_each(|_| assert!(guest.ports[1].receive().is_some()));
    }
    let mut read = |name: &str, param: &str| {
        let request = Handler::Read { name, param }.encode();
        let (code, text) = guest.request(&mut host, 0, &request);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(code, 200, "{text}");
        text
    };
    let state = read("work/rw.state", "");
    let head = state.lines().next().unwrap().to_string();
    assert!(
        (VALUE / 2..=VALUE).contains(&state.len()),
        "{}",
        state.len()
    );
    let mut flows = std::collections::BTreeSet::new();
    for part in 0.. {
        let text = read("work/rw.state", &part.to_string());
        assert!(text.len() <= VALUE, "part {part}: {}", text.len());
        let Some((first, lines)) = text.split_once('\n') else {
            break;
        };
        assert_eq!(first, head);
        let port = |line: &str| line.split(' ').nth(8).unwrap().parse::<u16>().unwrap();
        flows.extend(lines.lines().map(port));
    }
    assert!(flows.into_iter().eq(1..=FLOWS), "each flow is in one part");
    assert_eq!(read("work/rw.changes", "all"), "");
    for _ in 0..3 {
        let changes = read("work/rw.changes", "20000");
        assert!(
            (16_000..=20_000).contains(&changes.len()),
            "{}",
            changes.len()
        );
        assert_eq!(changes.matches(&head).count(), 1);
    }
    let written = guest.write(&mut host, 0, &[("work/rw.state", &state)]);
    assert_eq!(written.0, 200, "{}", written.1);
}

/// Sources on all threads whose packets cross threads twice.
fn load(sources: usize) -> String {
    numbered(sources, |n| {
        let (from, over) = (n % 4, (n + 1) % 4);
        format!(
            "i{n} :: InfiniteSource(LENGTH {}) -> p{n} :: Queue({}) -> u{n} :: Unqueue -> r{n} :: Queue(20) -> d{n} :: Discard;
             StaticThreadSched(i{n} {from}, u{n} {over});",
            60 + 400 * (n % 4),
            5 * n
        )
    })
}

#[test]
fn configurations_change_while_packets_cross_threads() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    let rewriter = "Idle -> work2 :: { input -> MarkIPHeader -> rw :: IPRewriter(keep 0 1) -> output; rw[1] -> Discard }
        -> Discard; FlowThreadSched(work2);";
    let flows = "x :: InfiniteSource(LENGTH 60) -> UDPIPEncap(10.0.0.1, 5, 10.0.0.2, 6) -> IPEncap(4, 1.1.1.1, 2.2.2.2)
        -> copied :: Counter -> Discard; FlowThreadSched(copied);";
    let configs = [
        load(4),
        load(12),
        load(1) + rewriter,
        load(3) + flows,
        flows.to_string(),
        String::new(),
    ];
    until_memory_is_steady(|round| {
        for (n, config) in configs.iter().enumerate() {
            let what = format!("round {round}, configuration {n}");
            let (word, error) = guest.install(&mut host, 0, &format!("{WORK}{config}"));
            assert_eq!((&*word, &*error), ("Running", ""), "{what}");
            assert_forwards(&host, &mut guest, &what);
            if config.contains("d1 ::") {
                eventually(&what, || count(&mut guest, &mut host, "d1.count") > 0);
            }
            match round % 3 {
                0 => {}
                1 => assert_eq!(
                    guest
                        .request_router(&mut host, 0, &format!("{WORK}{config}"), "Halted")
                        .0,
                    "Halted"
                ),
                _ => assert_eq!(guest.install(&mut host, 0, "").0, "Halted"),
            }
        }
        guest.mapped_kib()
    });
}

/// Each thread takes all memory that there is, and asks for more all the time, while all make texts and messages.
#[test]
fn threads_that_are_short_of_memory_refuse_and_go_on() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    let on_each: String = (0..4)
        .map(|t| {
            format!(
                "i{t} :: InfiniteSource(LENGTH 30000) -> q{t} :: Queue(4000) -> u{t} :: Unqueue(ACTIVE false) -> Discard;
                 c{t} :: InfiniteSource(LENGTH 20000) -> d{t} :: Counter -> Discard; j{t} :: InfiniteSource(LENGTH 60) -> r{t} :: Queue -> Discard;
                 s{t} :: Script(TYPE ACTIVE, label again, set x \"$(d0.count) $(d1.count) $(d2.count) $(d3.count) $(list)\", wait 0.0001s, goto again);
                 StaticThreadSched(i{t} {t}, u{t} {t}, c{t} {t}, j{t} {t}, s{t} {t});"
            )
        })
        .collect();
    for round in 0..2 {
        let (word, error) = guest.install(&mut host, 0, &format!("{WORK}{on_each}"));
        assert!(
            word == "Running" || (round > 0 && error.contains(MEMORY)),
            "{round}: {error}"
        );
        for n in 0..40 {
            guest.ports[0].send(&frame(n));
            guest.assert_alive();
            let (code, text) = guest.request(&mut host, 0, b"handlers");
            let text = String::from_utf8(text).unwrap();
            assert!([200, 590].contains(&code), "{code} {text}");
            let writes = [("q1.reset", ""), ("q2.capacity", "3000"), ("u3.burst", "4")];
            let (code, text) = guest.write(&mut host, 0, &writes);
            assert!([200, 520].contains(&code), "{code} {text}");
        }
        let mut drain = || while guest.ports[1].received().is_some() {};
        drain();
        let names: Vec<_> = (0..4)
            .flat_map(|t| {
                [
                    (format!("i{t}.active"), "false"),
                    (format!("q{t}.reset"), ""),
                ]
            })
            .collect();
        let all: Vec<_> = names
            .iter()
            .map(|(name, value)| (&**name, *value))
            .collect();
        eventually("memory for some writes", || {
            guest.write(&mut host, 0, &all).0 == 200
        });
        // free memory is in pieces then, as in a guest of one thread
        let (word, error) = guest.install(&mut host, 0, WORK);
        assert!(
            word == "Running" || error.contains(MEMORY),
            "{round}: {error}"
        );
        assert_forwards(&host, &mut guest, "after the flood");
    }
}

/// Three vifs, the packets of each of which leave by another one, all on two threads.
const TRIANGLE: &str = "
    work :: { input -> a :: Counter -> output; input[1] -> b :: Counter -> [1] output; input[2] -> c :: Counter -> [2] output };
    FromDevice(0) -> work -> q0 :: Queue -> ToDevice(1); FromDevice(1) -> [1] work; work[1] -> q1 :: Queue -> ToDevice(2);
    FromDevice(2) -> [2] work; work[2] -> q2 :: Queue -> ToDevice(0); FlowThreadSched(work);";

/// While the other ends of all vifs rest, the packets of both threads lie in queues to the other one.
#[test]
fn threads_whose_packets_are_all_on_their_way_to_each_other_take_them() {
    let mut host = Host::new();
    let mut guest = Guest::start_on(&mut host, 5, 3, 2);
    assert_eq!(guest.install(&mut host, 0, TRIANGLE).0, "Running");
    // a flow of thread 1
    let flow = (1..).find(|flow| {
        guest.ports[0].send(&frame(*flow));
        assert!(guest.ports[1].receive().is_some());
        count(&mut guest, &mut host, "work@1/a.count") > 0
    });
    let frame = frame(flow.unwrap());
    for _ in 0..4000 {
        for port in &mut guest.ports {
            port.send(&frame);
        }
    }
    // what leaves makes room for frames that come, at first
    let mut sent = 0;
    while sent < 100_000 {
        for port in &mut guest.ports {
            if port.switch.has_room_for(frame.len()) {
                port.send(&frame);
                sent += 1;
            }
            while port.received().is_some() {}
        }
    }
    eventually("all queues are empty", || {
        for port in &mut guest.ports {
            while port.received().is_some() {}
        }
        let stored =
            ["q0", "q1", "q2"].map(|q| count(&mut guest, &mut host, &format!("{q}.length")));
        stored == [0; 3]
    });
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        while guest.ports[to].received().is_some() {}
        guest.ports[from].send(&frame);
        assert!(guest.ports[to].receive().is_some(), "vif {from}");
    }
}

#[test]
fn queues_and_texts_for_all_threads_fit_together_or_are_refused() {
    let mut host = Host::new();
    let mut guest = Guest::start_on(&mut host, 5, 2, 8);
    let member = |name: &str, text: &str| format!("{name:<16}{:32}{:<10}`\n{text}", "", text.len());
    let file = member("file/", &"x".repeat(500 << 10));
    let mut refused = 0;
    // pieces of 256 KiB
    for pieces in (200..236).step_by(2) {
        let queue = |n| {
            let capacity = if n <= pieces / 8 { 65536 } else { 8192 };
            format!(
                "Idle -> Queue({capacity}) -> u{n} :: Unqueue -> Discard; StaticThreadSched(u{n} {});\n",
                1 + n % 7
            )
        };
        let config = member(
            "config/",
            &format!("{:<10000}", numbered(pieces / 8 + pieces % 8, queue)),
        );
        let config = format!("!<arch>\n{file}{config}");
        let (word, error) = guest.install(&mut host, 0, &config);
        if word == "Error" {
            assert!(error.contains(MEMORY), "{pieces}: {error}");
            refused += 1;
        }
        assert_eq!(guest.install(&mut host, 0, "").0, "Halted");
        guest.assert_alive();
    }
    assert!(refused > 0);
}

/// What found a queue full goes to the queue that follows, also on the thread that pushed.
#[test]
fn a_new_configuration_loses_no_packet_that_waits_for_room() {
    let mut host = Host::new();
    let mut guest = start(&mut host);
    let with = |capacity, binding: &str| {
        format!(
            "FromDevice(0) -> Discard; i :: InfiniteSource(LIMIT 150, BURST 32) -> q :: Queue({capacity})
             -> u :: Unqueue(ACTIVE false) -> d :: Counter -> Discard; StaticThreadSched({binding});
             j :: Idle -> q; k :: InfiniteSource(LIMIT 0) -> q;"
        )
    };
    for after in ["u 0", "u 0, k 2", "u 2"] {
        assert_eq!(guest.install(&mut host, 0, "").0, "Halted");
        let before = with(100, "u 1");
        assert_eq!(guest.install(&mut host, 0, &before).0, "Running");
        eventually("the queue is full", || {
            count(&mut guest, &mut host, "q.length") == 100
        });
        assert_eq!(guest.install(&mut host, 0, &with(1000, after)).0, "Running");
        // the four batches from before, the last of which found little room, and all of the new source
        eventually(after, || {
            count(&mut guest, &mut host, "q.length") == 4 * 32 + 150
        });
    }
}
