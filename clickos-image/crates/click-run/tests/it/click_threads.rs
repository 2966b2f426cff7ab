// SPDX-License-Identifier: Apache-2.0
//! What Click's own tests of threads find out: StaticThreadSched-01 and -02, affinity-01, BlockThread-01.
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::threads::{PATIENCE, Running, click, run};

/// StaticThreadSched-01.
#[test]
fn an_element_runs_where_it_is_bound() {
    let config =
        "a :: RatedSource -> Discard; b :: RatedSource -> Discard; c :: RatedSource -> Discard;
        d :: RatedSource -> Discard; StaticThreadSched(a 1, b 0, c 1, c 0); StaticThreadSched(d 1);
        Script(print $(a.home_thread) $(b.home_thread) $(c.home_thread) $(d.home_thread), stop)";
    assert_eq!(click(config, &["-j", "2"]), "1 0 0 1\n");
    let one = run(config, &[]);
    assert_eq!(String::from_utf8(one.stdout).unwrap(), "0 0 0 0\n");
    let warnings = String::from_utf8(one.stderr).unwrap();
    assert_eq!(warnings.matches("no thread 1").count(), 3);
}

/// StaticThreadSched-02.
#[test]
fn bindings_of_an_inner_compound_count() {
    let config = "StaticThreadSched(sub0 1);
        sub0, sub1 :: { src :: RatedSource -> q :: Queue -> d :: Discard; StaticThreadSched(d 0) };
        Script(wait 1s, print $(sub0/src.home_thread) $(sub0/d.home_thread) $(sub1/src.home_thread), stop)";
    for more in [&["-j", "2"][..], &["--simtime", "-j", "2"]] {
        assert_eq!(click(config, more), "1 0 0\n");
    }
    let warning = "s: warning: no thread 2\n";
    let ran = run(
        "d :: Idle -> Discard; s :: StaticThreadSched(d 2)",
        &["-q", "-j", "2"],
    );
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), warning);
}

/// The processors that each thread may use, by its name.
fn processors(click: &Running) -> BTreeMap<String, String> {
    let field = |text: &str, name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_default().trim().to_string()
    };
    let tasks = fs::read_dir(format!("/proc/{}/task", click.0.id())).unwrap();
    let status = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    status
        .map(|text| (field(&text, "Name:"), field(&text, "Cpus_allowed_list:")))
        .collect()
}

/// affinity-01.
#[test]
fn each_thread_has_a_processor_of_its_own() {
    let config = "i :: InfiniteSource -> Discard; StaticThreadSched(i 1)";
    let two = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let several = two.trim() != "0";
    for (option, first, second) in [("-a", "0", "1"), ("--affinity=1", "1", "2")] {
        if !several || (second == "2" && two.trim() == "0-1") {
            continue;
        }
        let click = Running::start(config, &["-j", "2", option]);
        let end = Instant::now() + PATIENCE;
        let expected = [("click", first), ("click-1", second)];
        let expected = expected.map(|(name, list)| (name.to_string(), list.to_string()));
        while processors(&click) != BTreeMap::from(expected.clone()) {
            assert!(Instant::now() < end, "{:?}", processors(&click));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// BlockThread-01.
#[test]
fn a_task_that_stops_on_one_thread_stops_none_on_another() {
    let config = "i :: InfiniteSource -> c :: Counter -> Discard; j :: InfiniteSource -> d :: Counter -> Discard;
        StaticThreadSched(i 1, j 0);
        Script(label a, wait 0.02s, goto a $(eq $(c.count) 0), write i.active false, set x $(c.count), set y $(d.count),
            label b, wait 0.02s, goto b $(not $(gt $(d.count) $y)), wait 0.1s, print $(eq $(c.count) $x),
            write i.active true, label c, wait 0.02s, goto c $(not $(gt $(c.count) $x)), print \"ran\", stop)";
    assert_eq!(click(config, &["-j", "2"]), "true\nran\n");
}
