// SPDX-License-Identifier: Apache-2.0
//! Elements that run on all threads: `FlowThreadSched` with `click -j N`.
use std::collections::BTreeSet;
use std::process::Command;

/// Flows of several ports through a compound on three threads.
fn config(script: &str) -> String {
    let source = |n: u16| {
        format!(
            "s{n} :: InfiniteSource(LIMIT 100, LENGTH 60) -> UDPIPEncap(10.0.0.1, {n}, 10.0.0.2, 80) -> all;\n"
        )
    };
    let sources: String = (1..21).map(source).collect();
    format!(
        "all :: Null -> work :: {{ input -> c :: Counter -> a :: Paint(1) -> output }} -> end :: Counter -> Discard;
         {sources} FlowThreadSched(work);
         Script(label more, wait 0.02s, goto more $(lt $(end.count) 2000), {script}, stop)"
    )
}

fn run(config: &str, threads: &str) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_click"));
    let ran = command
        .args(["-e", config, "-j", threads])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(ran.stdout), text(ran.stderr))
}

/// The errors of a configuration that is only built.
fn errors(config: &str, threads: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_click"));
    let built = command.args(["-q", "-e", config, "-j", threads]).output();
    String::from_utf8(built.unwrap().stderr).unwrap()
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect()
}

#[test]
fn each_thread_takes_flows_and_handlers_stand_for_all() {
    let script = "print $(work/c.count) $(work@0/c.count) $(work@1/c.count) $(work@2/c.count),
         write work/a.color 7, print $(work/a.color) $(work@0/a.color) $(work@2/a.color),
         write work@1/a.color 9, print $(work@1/a.color), write work/c.reset, print $(work/c.count)";
    let (out, errors) = run(&config(script), "3");
    assert_eq!(errors, "");
    let lines: Vec<&str> = out.lines().collect();
    let counts = numbers(lines[0]);
    assert_eq!((counts[0], counts[1..].iter().sum()), (2000, 2000));
    // whole flows: all packets of a port
    assert!(
        counts[1..].iter().all(|n| *n > 0 && n % 100 == 0),
        "{counts:?}"
    );
    assert_eq!(&lines[1..], ["7 7 7", "9", "0"]);
}

/// A part of the bytes for each copy would be shorter than the line of a flow, and the flow be in none.
#[test]
fn changed_flows_of_all_copies_fit_into_what_is_asked_for() {
    let nat = "rw :: IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 0)";
    let script = "set t $(work/rw.changes all), label again, set t $(work/rw.changes 150),
         goto done $(eq \"$t\" \"\"), print $t, goto again, label done";
    let config = config(script).replace("a :: Paint(1)", nat);
    let (out, errors) = run(&config, "3");
    assert_eq!(errors, "");
    let flows: BTreeSet<&str> = out
        .lines()
        .filter_map(|line| line.split("10.0.0.1 ").nth(1)?.split(' ').next())
        .collect();
    assert_eq!(flows.len(), 20, "{out}");
}

#[test]
fn with_one_thread_nothing_changes() {
    let script = "print $(work/c.count) $(work@0/c.count) $(list)";
    let (out, errors) = run(&config(script), "1");
    assert_eq!(errors, "");
    assert!(out.starts_with("2000 2000 "), "{out}");
    assert!(!out.contains('@') || !out.contains("work@"), "{out}");
}

/// What cannot have copies, and why.
const REFUSED: [(&str, &str); 17] = [
    (
        "Idle -> c :: Counter -> Discard; FlowThreadSched(x);",
        "no element \"x\"",
    ),
    (
        "Idle -> c :: Counter -> Discard; FlowThreadSched(c, c);",
        "\"c\" is named twice",
    ),
    (
        "Idle -> f :: { input -> c :: Counter -> output } -> Discard; FlowThreadSched(f, f/c);",
        "\"f/c\" is named twice",
    ),
    (
        "Idle -> c :: Counter -> Discard; c@7 :: Idle -> Discard; FlowThreadSched(c);",
        "c@7 is the name of a copy",
    ),
    (
        "f :: { input -> q :: Queue -> Unqueue -> output; StaticThreadSched(q 0) } Idle -> f -> Discard; FlowThreadSched(f);",
        "\"f\" contains f/StaticThreadSched@3 :: StaticThreadSched, which binds threads itself",
    ),
    (
        "Idle -> f :: { input -> c :: Counter -> output } -> Discard; Idle -> RED(1, 2, 0.1, QUEUES f/c) -> Discard; FlowThreadSched(f);",
        "names f/c, which runs on several threads",
    ),
    (
        "Idle -> f :: { input -> q :: Queue -> Unqueue -> output } -> Discard; Idle -> RED(1, 2, 0.1, QUEUES f/q) -> Discard; FlowThreadSched(f);",
        "names f/q, which runs on several threads",
    ),
    (
        "Idle -> f :: { input -> RED(1, 2, 0.1, QUEUES q) -> output } -> q :: Queue -> Discard; FlowThreadSched(f);",
        "names q, which the copies of \"f\" would share",
    ),
    (
        "Idle -> f :: { input -> RED(1, 2, 0.1, QUEUES f/q) -> q :: Queue -> Unqueue -> output } -> Discard; FlowThreadSched(f);",
        "names f/q, which the copies of \"f\" would share",
    ),
    (
        "Idle -> c :: Counter -> Discard; FlowThreadSched(c); StaticThreadSched(c 0);",
        "binds c, which runs on all threads",
    ),
    (
        "Idle -> q :: Queue -> c :: Counter -> Unqueue -> Discard; FlowThreadSched(c);",
        "c pulls packets into \"c\" from q; put an Unqueue between them",
    ),
    (
        "Idle -> f :: { input -> q :: Queue -> output } -> u :: Unqueue -> Discard; FlowThreadSched(f);",
        "u pulls packets out of \"f\" from f/q; end \"f\" with an Unqueue",
    ),
    (
        "f :: { FromDevice(lo) -> Discard } FlowThreadSched(f);",
        "\"f\" contains f/FromDevice@1 :: FromDevice, which runs on thread 0 only",
    ),
    (
        "Idle -> t :: ToDump(/dev/null) -> Discard; FlowThreadSched(t);",
        "\"t\" contains t :: ToDump, which runs on thread 0 only",
    ),
    (
        "Idle -> f :: { input -> output; Script(TYPE signal USR1, stop) } -> Discard; FlowThreadSched(f);",
        ":: Script, which runs on thread 0 only",
    ),
    (
        "Idle -> f :: { input -> output; DriverManager(stop) } -> Discard; FlowThreadSched(f);",
        ":: DriverManager, which runs on thread 0 only",
    ),
    (
        "Idle -> t :: IPsecDES -> Discard; FlowThreadSched(t);",
        "\"t\" contains t :: IPsecDES, which shares tables with others of its kind",
    ),
];

/// Also with one thread: the same configuration has to serve all flavors.
#[test]
fn what_cannot_have_copies_is_refused_on_any_number_of_threads() {
    for (config, words) in REFUSED {
        let errors = errors(config, "1");
        assert!(errors.contains(words), "{config}: {errors}");
        assert!(errors.contains(" :: "), "no element in {errors}");
        for threads in ["2", "5"] {
            assert_eq!(self::errors(config, threads), errors, "{config}");
        }
    }
}

/// A live configuration is judged as that of a new router, on any number of threads.
#[test]
fn a_live_configuration_names_nothing_on_other_threads() {
    let config = "Idle -> f :: { input -> q :: Queue -> c :: CoDel -> Unqueue -> output } -> out :: Queue -> o :: CoDel -> Discard;
         FlowThreadSched(f);
         Script(write f/c.config QUEUES q, print $(f/c.queues), write f/c.config QUEUES out, print $(f/c.queues),
             write o.config QUEUES f/q, print $(o.queues), stop)";
    for threads in ["1", "2", "3"] {
        let (out, errors) = run(config, threads);
        let queues: Vec<&str> = out.split_whitespace().collect();
        assert!(!queues.is_empty() && !out.contains("@out"), "{out}");
        assert!(
            queues.iter().all(|q| q.ends_with("/q") || *q == "out"),
            "{out}"
        );
        for fault in [
            "names out, which the copies of \"f\" would share",
            "names f/q, which runs on several threads",
        ] {
            assert_eq!(errors.matches(fault).count(), 1, "on {threads}: {errors}");
        }
    }
    let writes = "write f@1/c.config QUEUES q, write f@1/c.config QUEUES f/q, stop)";
    let config = config
        .replace("write f/c.config QUEUES q, ", "")
        .replace("stop)", writes);
    let (_, errors) = run(&config, "2");
    let fault = "names f/q, which the copies of \"f\" would share";
    assert_eq!(errors.matches(fault).count(), 1, "{errors}");
    assert!(!errors.contains("names f@1/q"), "{errors}");
}

/// Words of conditions are no names.
#[test]
fn conditions_lead_to_no_other_thread() {
    let config = "Idle -> f :: IPClassifier(tcp, -) -> tcp :: Counter -> Discard; f[1] -> Discard;
         FlowThreadSched(f);";
    for threads in ["1", "2"] {
        assert_eq!(errors(config, threads), "", "on {threads}");
    }
}

/// Queues that cannot join threads themselves.
#[test]
fn any_queue_may_be_behind_copies() {
    for queue in [
        "Null -> q :: Queue",
        "q :: Queue(100000)",
        "q :: Queue(CAPACITY 100000)",
        "q :: Queue(9); q[1] -> Discard; q",
    ] {
        let config =
            format!("Idle -> c :: Counter -> {queue} -> Unqueue -> Discard; FlowThreadSched(c);");
        for threads in ["1", "2"] {
            assert_eq!(errors(&config, threads), "", "{queue} on {threads}");
        }
    }
}

#[test]
fn copies_share_the_queue_behind_them() {
    for class in click_core::threads::QUEUES {
        let config = format!(
            "Idle -> c :: Counter -> q :: {class} -> Unqueue -> Discard; FlowThreadSched(c);
             Script(print $(list), stop)"
        );
        let (out, errors) = run(&config, "2");
        assert_eq!(errors, "", "{class}");
        assert!(
            out.contains("c@1") && !out.contains("@out"),
            "{class}: {out}"
        );
    }
}

/// Each call changes the copies on all threads, and all threads make such calls concurrently.
#[test]
fn writes_of_all_copies_from_all_threads_do_not_block() {
    let caller = |thread: usize| {
        format!(
            "s{thread} :: Script(set n 0, label again, write work/a.color {thread}, write work/c.reset,
               set n $(add $n 1), goto again $(lt $n 300), write ready.run);
             i{thread} :: InfiniteSource -> c{thread} :: Counter -> Discard;
             StaticThreadSched(s{thread} {thread}, i{thread} {thread});\n"
        )
    };
    let config = format!(
        "Idle -> work :: {{ input -> a :: Paint(9) -> c :: Counter -> output }} -> Discard; FlowThreadSched(work);
         {}{}{}
         ready :: Script(TYPE PASSIVE, init n 0, set n $(add $n 1), goto end $(lt $n 3),
           print $(eq $(work@0/a.color) $(work@1/a.color)) $(eq $(work@0/a.color) $(work@2/a.color)), write stop, label end)",
        caller(0),
        caller(1),
        caller(2)
    );
    let (out, errors) = run(&config, "3");
    assert_eq!((&*out, &*errors), ("true true\n", ""));
}

#[test]
fn a_router_stops_while_packets_cross_threads() {
    let load = |n: usize| {
        let (from, over) = (n % 4, (n + 1) % 4);
        format!(
            "i{n} :: InfiniteSource(LENGTH 1500) -> Queue({}) -> u{n} :: Unqueue -> Queue -> d{n} :: Discard;
             StaticThreadSched(i{n} {from}, u{n} {over});\n",
            1 + 7 * n
        )
    };
    let loads: String = (0..12).map(load).collect();
    let flows = "InfiniteSource(LENGTH 60) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 6) -> f :: Null
         -> Counter(COUNT_CALL 20000 stop) -> Discard; FlowThreadSched(f);";
    for _ in 0..10 {
        let (out, errors) = run(&format!("{loads}{flows}"), "4");
        assert_eq!(out, "");
        assert!(
            errors.lines().all(|line| line.ends_with("overflow")),
            "{errors}"
        );
    }
}
