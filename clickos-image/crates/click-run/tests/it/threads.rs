// SPDX-License-Identifier: Apache-2.0
//! A router on several threads: `click -j N`.
use std::fs;
use std::io::{BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for anything, on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(50);

fn command(config: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_click"));
    command.args(["-e", config]).args(args);
    command
}

pub fn run(config: &str, args: &[&str]) -> Output {
    command(config, args).output().unwrap()
}

pub fn click(config: &str, args: &[&str]) -> String {
    let ran = run(config, args);
    let errors = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{errors}");
    assert_eq!(errors, "");
    String::from_utf8(ran.stdout).unwrap()
}

fn refused(config: &str, args: &[&str]) -> String {
    let ran = run(config, args);
    assert_eq!(ran.status.code(), Some(1));
    String::from_utf8(ran.stderr).unwrap()
}

/// A running `click`; ends with the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(config: &str, args: &[&str]) -> Self {
        let mut command = command(config, args);
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// The names of its threads, and the clock ticks that each has used.
    fn threads(&self) -> Vec<(String, u64)> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let thread = |task: std::io::Result<fs::DirEntry>| {
            let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let ticks = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
            Some((name.to_string(), ticks))
        };
        let mut all: Vec<_> = tasks.filter_map(thread).collect();
        all.sort();
        all
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_island_uses_the_processor_time_of_its_thread() {
    let config = "i :: InfiniteSource -> d :: Discard; StaticThreadSched(i 2)";
    let click = Running::start(config, &["-j", "3"]);
    let end = Instant::now() + PATIENCE;
    loop {
        let threads = click.threads();
        if let [(first, idle), (other, busy)] = threads.as_slice() {
            // a thread has the name of the program at first
            if *busy > 40 {
                assert_eq!((first.as_str(), other.as_str()), ("click", "click-2"));
                assert!(*idle < *busy / 4, "{idle} of {busy} ticks");
                return;
            }
        }
        assert!(Instant::now() < end, "{threads:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn threads_without_work_sleep() {
    let config = "i :: RatedSource(RATE 2) -> q :: Queue -> u :: Unqueue -> d :: Discard;
        j :: InfiniteSource(LIMIT 9) -> r :: Queue(4) -> Idle; StaticThreadSched(i 1, j 1)";
    let click = Running::start(config, &["-j", "2"]);
    std::thread::sleep(Duration::from_secs(2));
    let ticks: u64 = click.threads().iter().map(|(_, ticks)| ticks).sum();
    assert!(ticks < 30, "{ticks} of 400 ticks");
}

#[test]
fn a_million_packets_cross_a_ring_in_order() {
    const COUNT: u64 = 1_000_000;
    let config = format!(
        "i :: InfiniteSource(LIMIT {COUNT}, LENGTH 60) -> NumberPacket(OFFSET 0) -> Queue(100)
         -> u :: Unqueue -> ToDump(-, SNAPLEN 8) -> Counter(COUNT_CALL {COUNT} stop) -> Discard;
         StaticThreadSched(i 1, u 2)"
    );
    let mut click = Running::start(&config, &["-j", "3"]);
    let mut dump = BufReader::new(click.0.stdout.take().unwrap());
    dump.read_exact(&mut [0; 24]).unwrap();
    for expected in 0..COUNT {
        let mut record = [0; 24];
        dump.read_exact(&mut record).unwrap();
        let number = u64::from_le_bytes(record[16..].try_into().unwrap());
        assert_eq!(number, expected);
    }
    assert_eq!(dump.read(&mut [0]).unwrap(), 0);
    assert!(click.0.wait().unwrap().success());
}

#[test]
fn several_threads_push_to_one_queue() {
    let source = |n| format!("i{n} :: InfiniteSource(LIMIT 50000) -> c{n} :: Counter -> q;\n");
    let script =
        "label more, wait 0.05s, goto more $(lt $(add $(c0.count) $(c1.count) $(c2.count)) 150000),
        goto more $(ne $(q.length) 0), print $(add $(c.count) $(q.drops)), stop";
    let config = format!(
        "q :: ThreadSafeQueue(50) -> u :: Unqueue -> c :: Counter -> Discard;
         {}{}{}StaticThreadSched(i0 0, i1 1, i2 2); Script({script})",
        source(0),
        source(1),
        source(2)
    );
    // two that find room for one packet at the same time both push
    let ran = run(&config, &["-j", "3"]);
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "150000\n");
}

#[test]
fn the_handlers_of_a_queue_count_for_both_sides() {
    let script = "label a, wait 0.02s, goto a $(lt $(i.count) 1000), print $(q.length) $(q.highwater_length) $(q.drops) $(q.capacity) $(i.count),
         write q.reset_counts, print $(q.drops) $(q.highwater_length), write q.reset, print $(q.length),
         write q.capacity 7, write i.reset,
         label b, wait 0.02s, goto b $(lt $(q.drops) 993), print $(q.length) $(q.drops) $(q.config),
         write u.active true, label c, wait 0.02s, goto c $(lt $(d.count) 7), print $(q.length) $(d.count) $(q.class), stop";
    for threads in ["i 1, u 0", "i 0, u 1"] {
        let config = format!(
            "i :: InfiniteSource(LIMIT 1000) -> q :: SimpleQueue(100) -> u :: Unqueue(ACTIVE false) -> d :: Discard;
             StaticThreadSched({threads}); Script({script})"
        );
        let ran = run(&config, &["-j", "2"]);
        assert_eq!(
            String::from_utf8(ran.stdout).unwrap(),
            "100 100 900 100 1000\n0 100\n0\n7 993 7\n0 7 SimpleQueue\n"
        );
        let errors = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(errors.matches("q :: SimpleQueue: overflow").count(), 2);
    }
}

/// A queue between threads takes the live configurations that it takes on one thread.
#[test]
fn a_queue_takes_a_new_configuration_on_any_number_of_threads() {
    for class in click_core::threads::QUEUES {
        let shown = "print $(q.capacity) \"$(q.config)\"";
        let config = format!(
            "i :: Idle -> q :: {class}(100) -> u :: Unqueue -> Discard; j :: InfiniteSource(LIMIT 1) -> n :: Null -> q;
             StaticThreadSched(j 1); Script({shown}, write q.config 7, {shown}, write q.config CAPACITY 9, {shown},
             write q.config, {shown}, write q.config x, {shown}, write q.config SIZE 5, stop)"
        );
        let [one, two] = ["1", "2"].map(|threads| run(&config, &["-j", threads]));
        let [one_out, two_out] = [&one, &two].map(|ran| String::from_utf8_lossy(&ran.stdout));
        assert_eq!(one_out, two_out, "{class}");
        assert!(
            one_out.starts_with("100 100\n7 7\n9 CAPACITY 9\n1000 \n"),
            "{one_out}"
        );
        for ran in [&one, &two] {
            let errors = String::from_utf8_lossy(&ran.stderr);
            for fault in [
                "CAPACITY: expected a number, got \"x\"",
                "unknown argument SIZE",
            ] {
                assert!(errors.contains(fault), "{errors}");
            }
        }
    }
}

#[test]
fn a_full_queue_holds_up_the_other_thread() {
    let config = "i :: InfiniteSource(LIMIT 1000) -> q :: Queue(10) -> u :: Unqueue(ACTIVE false) -> d :: Discard;
        StaticThreadSched(i 1); Script(label a, wait 0.02s, goto a $(lt $(i.count) 10), wait 0.1s, print $(i.count),
            write u.active true, label b, wait 0.02s, goto b $(lt $(d.count) 1000), print $(i.count) $(d.count) $(q.drops), stop)";
    assert_eq!(click(config, &["-j", "2"]), "10\n1000 1000 0\n");
}

#[test]
fn a_queue_that_is_made_larger_wakes_those_that_push() {
    let config = "i :: InfiniteSource -> q :: Queue(10) -> u :: Unqueue(ACTIVE false) -> Discard;
        j :: InfiniteSource(LIMIT 1) -> q; StaticThreadSched(i 0, u 0, j 1);
        Script(label a, wait 0.02s, goto a $(lt $(q.length) 10), wait 0.1s, print $(q.length), write q.capacity 100,
            label b, wait 0.02s, goto b $(lt $(q.length) 100), print $(q.length), stop)";
    // the packet of the other thread may find no room
    let ran = run(config, &["-j", "2"]);
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "10\n100\n");
}

/// One fills the queue of its own thread as soon as there is room, whether it heeds the queue or not.
#[test]
fn a_source_that_fills_a_queue_leaves_room_to_one_that_waits_on_another_thread() {
    for (fills, capacity) in [("", 1000), ("Queue(50) -> Unqueue(32) ->", 1000), ("", 64)] {
        let config = format!(
            "q :: Queue({capacity}) -> Unqueue -> sorted :: PaintSwitch -> near :: Counter -> Discard;
             sorted[1] -> far :: Counter(COUNT_CALL 5000 stop) -> Discard;
             InfiniteSource -> {fills} Paint(0) -> q; b :: InfiniteSource -> Paint(1) -> q;
             StaticThreadSched(b 1); DriverManager(pause, print $(near.count))"
        );
        let ran = run(&config, &["-j", "2"]);
        let text = String::from_utf8(ran.stdout).unwrap();
        let near: u64 = text.trim().parse().unwrap();
        // it had a thousand times as many
        assert!(near < 50 * 5000, "{config}: {near}");
    }
}

/// A source that fills a queue of such a circle leaves no room for what comes back, so that nothing moves any more.
#[test]
fn a_circle_whose_threads_wait_for_each_other_is_refused() {
    let config = |mover: &str| {
        format!(
            "i :: InfiniteSource -> q :: Queue(1000) -> u :: Unqueue2 -> r :: Queue(100) -> v :: {mover} -> c :: Counter(COUNT_CALL 20000 stop) -> q;
             StaticThreadSched(v 1)"
        )
    };
    let errors = refused(&config("Unqueue2"), &["-q", "-j", "2"]);
    assert!(errors.contains("'r :: Queue'"), "{errors}");
    assert!(errors.contains("is in a circle of queues"), "{errors}");
    // on one thread, and with an element that moves packets also to a full queue, they go round
    for (mover, threads) in [("Unqueue2", "1"), ("Unqueue", "2")] {
        assert!(run(&config(mover), &["-j", threads]).status.success());
    }
}

/// Which packets come back to a queue says nothing: some element has to rest while the queue is full.
#[test]
fn only_circles_whose_elements_rest_are_refused() {
    let circle = |first: &str, second: &str| {
        format!(
            "q :: Queue(100); r :: Queue(100); Idle -> q; q -> {first} -> r; r -> {second} -> q; StaticThreadSched(v 1)"
        )
    };
    let one = "u :: Unqueue2";
    let refused_ones = [
        circle(one, "v :: Unqueue2"),
        circle(one, "Null -> v :: Unqueue2 -> Counter"),
        circle(
            "{ input -> Unqueue2 -> output }",
            "{ input -> Null -> output } -> v :: Unqueue2",
        ),
        circle(
            "[0] s :: RoundRobinSched -> u :: Unqueue2; Idle -> [1] s; u",
            "v :: Unqueue2",
        ),
        circle(
            "p :: PullTee -> u :: Unqueue2; p [1] -> Discard; u",
            "v :: Unqueue2",
        ),
        // either is full at last
        circle(
            "u :: Unqueue2 -> t :: Tee; t [1] -> Queue(9) -> Unqueue2 -> r; t [0]",
            "v :: Unqueue2",
        ),
    ];
    for config in &refused_ones {
        let errors = refused(config, &["-q", "-j", "2"]);
        assert!(
            errors.contains("is in a circle of queues"),
            "{config}: {errors}"
        );
    }
    for config in [
        circle(one, "v :: Unqueue"),
        circle(one, "v :: TimedUnqueue(1ms)"),
        circle(one, "v :: Burster(1ms)"),
        circle(one, "v :: RatedUnqueue(1000)"),
        circle(one, "v :: Unqueue2 -> SimpleQueue(9) -> Unqueue2"),
        circle(one, "v :: Unqueue2 -> FrontDropQueue(9) -> Unqueue2"),
        circle(one, "v :: Unqueue2 -> t :: Tee; t [1] -> Discard; t [0]"),
        // none of its own packets come back to it by u
        "q :: Queue(100) -> c :: CheckLength(9) -> u :: Unqueue2 -> Queue -> Discard; c [1] -> q; Idle -> v :: Null -> q;
         i :: InfiniteSource(LIMIT 1) -> v; StaticThreadSched(i 1)".to_string(),
    ] {
        let ran = run(&config, &["-q", "-j", "2"]);
        assert!(ran.status.success(), "{config}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// A source that heeds what a queue tells loses nothing, though another thread may take its place.
#[test]
fn sources_that_share_a_queue_over_threads_lose_nothing() {
    for capacity in [1, 2, 64, 1000] {
        let config = format!(
            "q :: Queue({capacity}) -> u :: Unqueue -> c :: Counter(COUNT_CALL 20000 stop) -> Discard;
             InfiniteSource -> q; b :: InfiniteSource -> q; StaticThreadSched(b 1);
             DriverManager(pause, print $(q.drops))"
        );
        let ran = run(&config, &["-j", "2"]);
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), "0\n", "{capacity}");
    }
}

#[test]
fn shares_of_time_count_on_each_thread() {
    let config = "i :: InfiniteSource -> Discard; j :: InfiniteSource -> Discard;
        sub :: { k :: InfiniteSource -> Discard };
        ScheduleInfo(i 2, j 0.5, sub 4); StaticThreadSched(i 1, j 0, sub 1);
        Script(print $(i.tickets) $(j.tickets) $(sub/k.tickets), stop)";
    assert_eq!(click(config, &["-j", "2"]), "2048 512 4096\n");
}

#[test]
fn an_element_names_any_handler_of_a_script_on_another_thread() {
    let config = "i :: InfiniteSource(LIMIT 9) -> c :: Counter(COUNT_CALL 5 s.end) -> d :: Discard;
        s :: Script(TYPE PROXY, print $0, write stop); StaticThreadSched(i 1)";
    assert_eq!(click(config, &["-j", "2"]), "end\n");
}

#[test]
fn a_thread_that_cannot_start_holds_up_no_other() {
    let config = "i :: FromDevice(none0) -> c :: Counter -> Discard; StaticThreadSched(i 1);
        Script(init n $(c.count), init n $(c.count))";
    let begun = Instant::now();
    let errors = refused(config, &["-j", "2"]);
    assert!(errors.contains("none0: No such device"), "{errors}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{errors}");
}

#[test]
fn packets_keep_what_was_stripped_and_their_annotations() {
    let config = "i :: InfiniteSource(DATA \\<0102030405060708090a0b0c0800 4500>, LIMIT 1) -> Paint(7)
        -> SetIPAddress(1.2.3.4) -> Strip(14) -> Queue -> u :: Unqueue -> Unstrip(14) -> c :: CheckPaint(7)
        -> Print(x, 20) -> Discard; c[1] -> Print(other) -> Discard; StaticThreadSched(i 1)";
    let script = "; Script(label a, wait 0.02s, goto a $(lt $(u.count) 1), stop)";
    let ran = run(&format!("{config}{script}"), &["-j", "2"]);
    let errors = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(errors, "x:   16 | 01020304 05060708 090a0b0c 08004500\n");
}

#[test]
fn parts_without_a_binding_are_spread_over_the_threads() {
    let config = "a :: InfiniteSource(LIMIT 9) -> Queue -> ua :: Unqueue -> Counter -> Queue -> dc :: Discard;
        b :: InfiniteSource(LIMIT 9) -> Discard; BalancedThreadSched; StaticThreadSched(b 1);
        Script(label a, wait 0.02s, goto a $(lt $(dc.count) 9), print $(a.home_thread) $(ua.home_thread) $(dc.home_thread) $(b.home_thread) $(dc.count), stop)";
    assert_eq!(click(config, &["-j", "3"]), "0 2 0 1 9\n");
    let one = run(config, &[]);
    assert_eq!(String::from_utf8(one.stdout).unwrap(), "0 0 0 0 9\n");
}

#[test]
fn elements_for_each_processor_know_their_thread() {
    let config = "q :: CPUQueue(12) -> u :: Unqueue(ACTIVE false) -> d :: Discard; j :: InfiniteSource(LIMIT 9) -> q;
        i :: InfiniteSource(LIMIT 9) -> s :: CPUSwitch; s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> q;
        StaticThreadSched(i 1, j 2);
        Script(label a, wait 0.02s, goto a $(lt $(add $(q.length) $(q.drops)) 18),
        print $(a.count) $(b.count) $(q.length) $(q.drops) $(q.class), write u.active true,
        label b, wait 0.02s, goto b $(lt $(d.count) 12), print $(d.count), stop)";
    let ran = run(config, &["-j", "3"]);
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap(),
        "0 9 12 6 CPUQueue\n12\n"
    );
}

#[test]
fn threads_that_call_each_other_do_not_block() {
    let caller = |name: &str, peer: &str| {
        format!(
            "{name} :: Script(set n 0, label again, set x $({peer}.count), write {peer}.reset_counts,
               set n $(add $n 1), goto again $(lt $n 500), print \"done\", write ready.run);\n"
        )
    };
    let config = format!(
        "a :: InfiniteSource -> ca :: Counter -> Discard; b :: InfiniteSource -> cb :: Counter -> Discard;
         {}{}ready :: Script(TYPE PASSIVE, init n 0, set n $(add $n 1), goto end $(lt $n 2), write stop, label end);
         StaticThreadSched(a 0, sa 0, b 1, sb 1)",
        caller("sa", "cb"),
        caller("sb", "ca"),
    );
    assert_eq!(click(&config, &["-j", "2"]), "done\ndone\n");
}

#[test]
fn an_element_of_any_thread_stops_the_router() {
    let config =
        "i :: InfiniteSource(LIMIT 1000, STOP true) -> d :: Discard; StaticThreadSched(i 1)";
    assert_eq!(click(config, &["-j", "2", "-h", "d.count"]), "1000\n");
    let manager = "; DriverManager(wait, print \"first\", wait 0.1s, print $(d.count), stop)";
    assert_eq!(
        click(&format!("{config}{manager}"), &["-j", "2"]),
        "first\n1000\n"
    );
}

#[test]
fn a_signal_ends_all_threads() {
    let config =
        "i :: InfiniteSource -> d :: Discard; StaticThreadSched(i 1); Script(print \"up\")";
    let mut click = Running::start(config, &["-j", "2", "-h", "i.active"]);
    let mut out = click.0.stdout.take().unwrap();
    let mut up = [0; 3];
    out.read_exact(&mut up).unwrap();
    let pid = click.0.id().to_string();
    let sent = Command::new("kill").args(["-s", "TERM", &pid]).status();
    assert!(sent.unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "true\n");
    assert!(click.0.wait().unwrap().success());
}

#[test]
fn what_cannot_run_on_several_threads_is_refused() {
    let cases = [
        (
            "i :: InfiniteSource -> t :: Tee -> Discard; j :: InfiniteSource -> t; StaticThreadSched(i 1, j 0)",
            "config:1:45: While initializing 'j :: InfiniteSource':\n  bound to thread 0, but i on thread 1 is reached or named \
             without a queue between them; put a Queue between them or bind both to one thread\n",
        ),
        (
            "d :: DriverManager(stop); StaticThreadSched(d 1)",
            "config:1: While initializing 'd :: DriverManager':\n  runs on thread 0 only, not on thread 1\n",
        ),
        (
            "s :: Script(TYPE DRIVER, wait, stop); StaticThreadSched(s 1)",
            "config:1: While initializing 's :: Script':\n  runs on thread 0 only, not on thread 1\n",
        ),
        (
            "i :: InfiniteSource -> q :: Queue(65537) -> Discard; StaticThreadSched(i 1)",
            "config:1:24: While initializing 'q :: Queue':\n  CAPACITY: expected at most 65536 between threads, got 65537\n",
        ),
        (
            "FromDevice(none0) -> Queue -> d :: Discard; i :: FromDevice(none1) -> Discard; StaticThreadSched(i 1)",
            "config:1: While initializing 'FromDevice@1 :: FromDevice':\n  none0: No such device (os error 19)\n\
             config:1:45: While initializing 'i :: FromDevice':\n  none1: No such device (os error 19)\n",
        ),
        (
            "s :: Script(TYPE SIGNAL USR1, stop); StaticThreadSched(s 1)",
            "config:1: While initializing 's :: Script':\n  signals belong to thread 0, the element runs on thread 1\n",
        ),
    ];
    for (config, errors) in cases {
        let expected = format!("{errors}Router could not be initialized!\n");
        assert_eq!(refused(config, &["-j", "2"]), expected);
    }
    let config = "i :: InfiniteSource -> Discard; StaticThreadSched(i 1); Script(write hotconfig x, write timewarp 2, stop)";
    let ran = run(config, &["-R", "-j", "2"]);
    let errors = String::from_utf8(ran.stderr).unwrap();
    let why = "not possible while the router runs on several threads (-j)";
    assert!(errors.matches(why).count() >= 1, "{errors}");
    let errors = String::from_utf8(run("", &["-j", "65"]).stderr).unwrap();
    assert!(errors.contains("65 is not in 1..=64"), "{errors}");
}
