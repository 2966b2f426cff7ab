// SPDX-License-Identifier: Apache-2.0
//! Guests with several VCPUs.
use crate::common::guest::Guest;
use crate::common::{Host, eventually};

/// Work for all threads, between two vifs, both ways.
const WORK: &str = "
    work :: { input -> there :: Counter -> q :: Paint(1) -> output; input[1] -> back :: Counter -> [1] output };
    FromDevice(0) -> work -> Queue(200) -> ToDevice(1);
    FromDevice(1) -> [1] work; work[1] -> Null -> Queue(200) -> ToDevice(0);
    FlowThreadSched(work);
";

fn start(host: &mut Host, domid: u16, vcpus: u8) -> Guest {
    Guest::start_on(host, domid, 2, vcpus)
}

/// A UDP packet from a port of 10.0.0.1 to port 80 of 10.0.0.2, or an answer.
fn frame(port: u16, answer: bool) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0];
    let (hosts, ports) = match answer {
        false => ([1, 2], [port, 80]),
        true => ([2, 1], [80, port]),
    };
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
    frame.extend(ports.iter().flat_map(|port: &u16| port.to_be_bytes()));
    frame.extend([0, 26, 0, 0]);
    frame.extend([7; 18]);
    frame
}

/// Sends one frame for each of these flows, and takes as many.
fn pass(guest: &mut Guest, flows: std::ops::Range<u16>, answer: bool) {
    let (from, to) = if answer { (1, 0) } else { (0, 1) };
    flows
        .clone()
        .for_each(|port| guest.ports[from].send(&frame(port, answer)));
    let mut expected: Vec<_> = flows.clone().map(|port| frame(port, answer)).collect();
    let mut got: Vec<_> = flows
        .map(|_| guest.ports[to].receive().expect("a frame"))
        .collect();
    expected.sort();
    got.sort();
    assert_eq!(got, expected);
}

fn count(guest: &mut Guest, host: &mut Host, name: &str) -> u64 {
    guest.read(host, 0, name).trim().parse().unwrap()
}

#[test]
fn both_threads_forward_whole_flows_and_handlers_stand_for_both() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 2);
    assert_eq!(
        guest.install(&mut host, 0, WORK),
        ("Running".into(), String::new())
    );
    pass(&mut guest, 1..41, false);
    pass(&mut guest, 1..41, true);
    let of = |guest: &mut Guest, host: &mut Host, name: &str| {
        [0, 1].map(|thread| count(guest, host, &format!("work@{thread}/{name}.count")))
    };
    let (there, back) = (
        of(&mut guest, &mut host, "there"),
        of(&mut guest, &mut host, "back"),
    );
    assert!(there[0] > 0 && there[1] > 0, "{there:?}");
    assert_eq!(there, back, "both directions of a flow have one thread");
    assert_eq!(count(&mut guest, &mut host, "work/there.count"), 40);
    let written = guest.write(
        &mut host,
        0,
        &[("work/q.color", "5"), ("work/there.reset", "")],
    );
    assert_eq!(written.0, 200, "{written:?}");
    for name in ["work/q.color", "work@0/q.color", "work@1/q.color"] {
        assert_eq!(guest.read(&mut host, 0, name).trim(), "5", "{name}");
    }
    assert_eq!(of(&mut guest, &mut host, "there"), [0, 0]);
    let refused = guest.write(
        &mut host,
        0,
        &[("work/there.reset", ""), ("work/q.color", "x")],
    );
    assert_ne!(refused.0, 200);
    let (code, list) = guest.request(&mut host, 0, b"handlers");
    let list = String::from_utf8(list).unwrap();
    assert_eq!(code, 200);
    assert!(
        list.contains("work/there.count r") && !list.contains("work@"),
        "{list}"
    );
}

#[test]
fn a_configuration_is_replaced_on_all_threads_and_keeps_its_state() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 3);
    for round in 1..5 {
        let text = format!("{WORK} Idle -> x{round} :: Counter -> Discard;");
        assert_eq!(guest.install(&mut host, 0, &text).0, "Running");
        pass(&mut guest, 1..41, false);
        assert_eq!(count(&mut guest, &mut host, "work/there.count"), 40 * round);
        // one that does not start changes nothing
        let bad = format!("{WORK} Idle -> IPFilter(allow nonsense) -> Discard;");
        assert_eq!(guest.install(&mut host, 0, &bad).0, "Error");
        let (_, error) = guest.install(
            &mut host,
            0,
            "FlowThreadSched(work); Idle -> work :: FromDevice(0) -> Discard;",
        );
        assert!(!error.is_empty());
        pass(&mut guest, 1..41, true);
        assert_eq!(count(&mut guest, &mut host, "work/back.count"), 40 * round);
    }
    // and back to one thread
    let wire = "FromDevice(0) -> Queue -> ToDevice(1); FromDevice(1) -> Queue -> ToDevice(0);";
    assert_eq!(guest.install(&mut host, 0, wire).0, "Running");
    pass(&mut guest, 1..41, false);
    assert_eq!(guest.install(&mut host, 0, "").0, "Halted");
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    pass(&mut guest, 1..41, false);
    assert_eq!(count(&mut guest, &mut host, "work/there.count"), 40);
}

#[test]
fn devices_and_names_across_threads_are_refused() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 2);
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    for (config, words) in [
        (
            "d :: { FromDevice(0) -> Discard } FlowThreadSched(d);",
            "runs on thread 0 only",
        ),
        (
            "f :: FromDevice(0) -> Discard; StaticThreadSched(f 1);",
            "runs on thread 0 only",
        ),
    ] {
        let (state, error) = guest.install(&mut host, 0, config);
        assert_eq!(state, "Error");
        assert!(error.contains(words), "{error}");
    }
    pass(&mut guest, 1..41, false);
}

#[test]
fn a_halted_guest_forwards_nothing_on_any_thread_and_an_idle_one_sleeps() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 2);
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    pass(&mut guest, 1..41, false);
    let idle = "a :: RatedSource(RATE 1000) -> Queue -> u :: Unqueue -> c :: Counter -> Discard; StaticThreadSched(u 1);";
    assert_eq!(
        guest.request_router(&mut host, 0, idle, "Halted").0,
        "Halted"
    );
    let before = count(&mut guest, &mut host, "c.count");
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(count(&mut guest, &mut host, "c.count"), before);
    assert_eq!(guest.install(&mut host, 0, idle).0, "Running");
    eventually("thread 1 counts", || {
        count(&mut guest, &mut host, "c.count") > before
    });
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    assert!(guest.wakeups_per_second() < 5.0);
}

#[test]
fn a_guest_that_runs_on_several_threads_is_confined_on_each() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 8);
    assert_eq!(guest.install(&mut host, 0, WORK).0, "Running");
    let tasks = std::fs::read_dir(format!("/proc/{}/task", guest.child.id())).unwrap();
    let mut count = 0;
    for task in tasks {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let has = |line: &str| {
            status
                .lines()
                .any(|found| found.split_whitespace().eq(line.split_whitespace()))
        };
        assert!(has("Seccomp: 2") && has("NoNewPrivs: 1"), "{status}");
        assert!(
            has("CapEff: 0000000000000000") && has("CapBnd: 0000000000000000"),
            "{status}"
        );
        count += 1;
    }
    assert_eq!(count, 8);
    pass(&mut guest, 1..201, false);
}

#[test]
fn writes_of_several_threads_are_all_made_or_none() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 3);
    let config = "Idle -> a :: Paint(1) -> Discard; i :: InfiniteSource(LIMIT 0) -> b :: Paint(1) -> Discard;
        j :: InfiniteSource(LIMIT 0) -> c :: Paint(1) -> k :: Counter -> Discard; StaticThreadSched(i 1, j 2);";
    assert_eq!(guest.install(&mut host, 0, config).0, "Running");
    let colors = |guest: &mut Guest, host: &mut Host| {
        ["a", "b", "c"].map(|name| count(guest, host, &format!("{name}.color")))
    };
    let good = [
        ("c.color", "4"),
        ("a.color", "2"),
        ("b.color", "3"),
        ("k.reset", ""),
    ];
    let written = guest.write(&mut host, 0, &good);
    assert_eq!(written, (200, "3 command\n".into()));
    assert_eq!(colors(&mut guest, &mut host), [2, 3, 4]);
    for bad in ["a", "b", "c"] {
        let values = ["b", "c", "a"].map(|name| {
            let value = if name == bad { "x" } else { "9" };
            (format!("{name}.color"), value)
        });
        let values: Vec<_> = values.iter().map(|(name, v)| (&**name, *v)).collect();
        let (code, error) = guest.write(&mut host, 0, &values);
        assert!(
            error.starts_with(&format!("{bad}.color: ")),
            "{code} {error}"
        );
        assert_eq!(colors(&mut guest, &mut host), [2, 3, 4], "{bad}");
    }
    // what they were about takes writes again
    assert_eq!(guest.write(&mut host, 0, &[("b.color", "7")]).0, 200);
    assert_eq!(colors(&mut guest, &mut host), [2, 7, 4]);
}

/// The copy on thread 1 gets no queue, so it does not start.
#[test]
fn a_configuration_that_does_not_start_on_a_later_thread_changes_none() {
    let mut host = Host::new();
    let mut guest = start(&mut host, 5, 3);
    let config = "Idle -> outer :: Queue -> Idle; FlowThreadSched(work);
        work :: { Idle -> r :: RED(1, 2, 0.1, QUEUES q) -> q :: Queue -> Idle; c :: Idle -> p :: Paint(1) -> Discard }";
    let installed = guest.install(&mut host, 0, config);
    assert_eq!(installed, ("Running".into(), String::new()));
    let configs = |guest: &mut Guest, host: &mut Host| {
        [0, 1, 2].map(|thread| guest.read(host, 0, &format!("work@{thread}/r.config")))
    };
    let before = configs(&mut guest, &mut host);
    let writes = [
        ("work/p.color", "7"),
        ("work@0/r.config", "5, 6, 0.1, QUEUES q"),
        ("work@1/r.config", "5, 6, 0.1, QUEUES p"),
    ];
    let (code, error) = guest.write(&mut host, 0, &writes);
    assert_eq!(code, 520, "{error}");
    assert!(error.starts_with("work@1/r.config: QUEUES: "), "{error}");
    assert_eq!(configs(&mut guest, &mut host), before);
    assert_eq!(count(&mut guest, &mut host, "work@0/p.color"), 1);
    let outside = guest.write(
        &mut host,
        0,
        &[("work/r.config", "5, 6, 0.1, QUEUES outer")],
    );
    let fault = "work/r.config: names outer, which the copies of \"work\" would share";
    assert_eq!(outside, (520, fault.into()));
    assert_eq!(configs(&mut guest, &mut host), before);
    let good = guest.write(&mut host, 0, &[("work/r.config", "3, 4, 0.1, QUEUES q")]);
    assert_eq!(good.0, 200, "{}", good.1);
    let after = configs(&mut guest, &mut host);
    assert!(
        after.iter().all(|config| config.starts_with("3, 4")),
        "{after:?}"
    );
}
