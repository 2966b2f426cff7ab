// SPDX-License-Identifier: Apache-2.0
//! New configurations of single elements while the router runs: each class where Click takes one.
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use click_core::{Environment, HandlerError, Router};

/// A class with an element's configuration, a new one and a wrong one, and what the router has around it.
struct Row {
    class: &'static str,
    old: &'static str,
    new: &'static str,
    wrong: &'static str,
    around: &'static str,
}

const fn row(
    class: &'static str,
    old: &'static str,
    new: &'static str,
    wrong: &'static str,
    around: &'static str,
) -> Row {
    Row {
        class,
        old,
        new,
        wrong,
        around,
    }
}

const PASSES: &str = "Idle -> x -> Idle";
const ALONE: &str = "x";
const TWO_INPUTS: &str = "Idle -> x -> Idle; Idle -> [1]x";
const TWO_OUTPUTS: &str = "Idle -> x -> Idle; x[1] -> Idle";
const QUEUE_AROUND: &str = "Idle -> x -> Queue -> Idle";
const QUEUE_BEFORE: &str = "Idle -> Queue -> x -> Idle";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("ARPQuerier", "10.0.0.1, 2:0:0:0:0:1", "10.0.0.2, 2:0:0:0:0:2", "10.0.0.2", TWO_INPUTS),
    row("ARPResponder", "10.0.0.1 2:0:0:0:0:1", "10.0.0.2 2:0:0:0:0:2", "10.0.0.2", PASSES),
    row("ARPTable", "CAPACITY 1", "CAPACITY 2", "CAPACITY x", ALONE),
    row("AdaptiveRED", "20, 0.1", "30, 0.1", "30, 2", QUEUE_AROUND),
    row("BandwidthRatedSplitter", "1kBps", "2kBps", "fast", TWO_OUTPUTS),
    row("BandwidthRatedUnqueue", "1kBps", "2kBps", "fast", QUEUE_BEFORE),
    row("BandwidthShaper", "1kBps", "2kBps", "fast", QUEUE_BEFORE),
    row("Classifier", "12/0800", "12/0806", "12/08x", PASSES),
    row("Clipboard", "0/4", "2/4", "4", "Idle -> x -> Idle; Idle -> [1]x[1] -> Idle"),
    row("CoDel", "5ms", "6ms", "soon", QUEUE_BEFORE),
    row("EtherEncap", "0x0800, 1:0:0:0:0:1, 2:0:0:0:0:2", "0x0806, 1:0:0:0:0:1, 2:0:0:0:0:2", "0x0800", PASSES),
    row("EtherRewrite", "2:0:0:0:0:1, 2:0:0:0:0:2", "2:0:0:0:0:3, 2:0:0:0:0:2", "2:0:0:0:0:3", PASSES),
    row("EtherVLANEncap", "0x0800, 1:0:0:0:0:1, 2:0:0:0:0:2, 5", "0x0800, 1:0:0:0:0:1, 2:0:0:0:0:2, 6", "0x0800", PASSES),
    row("FTPPortMapper", "r, r, 0", "r, r, 0", "r, q, 0", "r :: TCPRewriter(pass 0); Idle -> r -> Idle; Idle -> x -> Idle"),
    row("FrontDropQueue", "5", "6", "many", PASSES),
    row("GTPDecap", "", "", "1", PASSES),
    row("GTPEncap", "1", "2", "many", PASSES),
    row("GetEtherAddress", "0, src", "0, dst", "0, none", PASSES),
    row("HostEtherFilter", "2:0:0:0:0:1", "2:0:0:0:0:2", "nowhere", PASSES),
    row("ICMPError", "10.0.0.1, unreachable, 0", "10.0.0.2, unreachable, 1", "10.0.0.2, echo", PASSES),
    row("IP6Encap", "6, 2001:db8::1, 2001:db8::2", "17, 2001:db8::1, 2001:db8::2", "6, 2001:db8::1", PASSES),
    row("IPClassifier", "tcp", "udp", "tcpp", PASSES),
    row("IPEncap", "4, 10.0.0.1, 10.0.0.2", "17, 10.0.0.1, 10.0.0.2", "4, 10.0.0.1", PASSES),
    row("IPFilter", "allow tcp", "allow udp", "perhaps udp", PASSES),
    row("IPsecEncap", "50", "51", "many", PASSES),
    row("InfiniteSource", "LIMIT 1", "LIMIT 2", "LIMIT many", "x -> Discard"),
    row("InputSwitch", "0", "1", "left", TWO_INPUTS),
    row("MarkMACHeader", "0", "2", "far", PASSES),
    row("MixedQueue", "5", "6", "many", TWO_INPUTS),
    row("Pad", "60", "64", "long", PASSES),
    row("Paint", "1", "2", "red", PASSES),
    row("Print", "a", "b, 4", "b, many", PASSES),
    row("PullSwitch", "0", "1", "left", TWO_INPUTS),
    row("CPUQueue", "5", "6", "many", PASSES),
    row("Queue", "5", "6", "many", PASSES),
    row("QuickNoteQueue", "5", "6", "many", PASSES),
    row("RED", "5, 50, 0.02", "6, 50, 0.02", "60, 50, 0.02", QUEUE_AROUND),
    row("RandomBitErrors", "0.5", "0.25", "2", PASSES),
    row("RandomSample", "0.5", "0.25", "2", PASSES),
    row("RandomSeed", "5", "6", "five", ALONE),
    row("RandomSource", "60, LIMIT 1", "60, LIMIT 2", "60, LIMIT many", "x -> Discard"),
    row("RatedSplitter", "5", "6", "fast", TWO_OUTPUTS),
    row("RatedUnqueue", "5", "6", "fast", QUEUE_BEFORE),
    row("Resize", "1, 2", "3, 4", "more", PASSES),
    row("SetAnnoByte", "PAINT, 1", "PAINT, 2", "PAINT, 256", PASSES),
    row("SetEtherAddress", "2:0:0:0:0:1, 0", "2:0:0:0:0:2, 0", "nowhere, 0", PASSES),
    row("SetIP6DSCP", "1", "2", "64", PASSES),
    row("SetIPAddress", "10.0.0.1", "10.0.0.2", "nowhere", PASSES),
    row("SetIPDSCP", "1", "2", "64", PASSES),
    row("SetIPECN", "ect1", "ce", "5", PASSES),
    row("SetPacketType", "HOST", "BROADCAST", "GUEST", PASSES),
    row("SetVLANAnno", "5", "6", "65536", PASSES),
    row("Shaper", "5", "6", "fast", QUEUE_BEFORE),
    row("SimplePullSwitch", "0", "1", "left", TWO_INPUTS),
    row("SimpleQueue", "5", "6", "many", PASSES),
    row("StrideSched", "1, 2", "3, 4", "3", TWO_INPUTS),
    row("StrideSwitch", "1, 2", "3, 4", "3", TWO_OUTPUTS),
    row("StripEtherVLANHeader", "5", "6", "65536", PASSES),
    row("Switch", "0", "1", "left", TWO_OUTPUTS),
    row("TCPFragmenter", "MTU 500", "MTU 600", "MTU many", PASSES),
    row("Truncate", "60", "64", "short", PASSES),
    row("UDPIP6Encap", "2001:db8::1, 1, 2001:db8::2, 2", "2001:db8::1, 3, 2001:db8::2, 4", "2001:db8::1", PASSES),
    row("UDPIPEncap", "10.0.0.1, 1, 10.0.0.2, 2", "10.0.0.1, 3, 10.0.0.2, 4", "10.0.0.1", PASSES),
];

fn router(config: &str) -> Router {
    let registry = click_elements::registry();
    let built = Router::build("t", config, &registry, Environment::new(), 1);
    built.unwrap_or_else(|e| panic!("{config}: {e:?}"))
}

fn read(router: &mut Router, handler: &str) -> String {
    String::from_utf8(router.read_handler(handler, "", 1).unwrap()).unwrap()
}

fn write(router: &mut Router, handler: &str, value: &str) -> Result<(), HandlerError> {
    router.write_handlers(&[(handler, value.as_bytes())], 1)
}

#[test]
fn each_class_takes_a_new_configuration_whole_or_not_at_all() {
    for Row {
        class,
        old,
        new,
        wrong,
        around,
    } in ROWS
    {
        let config =
            |own| format!("x :: {class}({own}); p :: Paint(1); {around}; Idle -> p -> Idle");
        let mut router = router(&config(old));
        write(&mut router, "x.config", new).unwrap_or_else(|e| panic!("{class}: {e}"));
        assert_eq!(read(&mut router, "x.config"), *new, "{class}");
        assert!(write(&mut router, "x.config", wrong).is_err(), "{class}");
        assert_eq!(read(&mut router, "x.config"), *new, "{class}");
        // the other write of the list is good, and not done
        let writes: [(&str, &[u8]); 2] = [("p.config", b"7"), ("x.config", wrong.as_bytes())];
        assert!(router.write_handlers(&writes, 1).is_err(), "{class}");
        assert_eq!(read(&mut router, "p.color"), "1", "{class}");
        // its handlers show the values that a new router would show
        let mut fresh = self::router(&config(new));
        for handler in handlers(&fresh) {
            if let Ok(value) = fresh.read_handler(&handler, "", 1) {
                let value = String::from_utf8_lossy(&value).into_owned();
                assert_eq!(read(&mut router, &handler), value, "{class}: {handler}");
            }
        }
        while router.run(1) == click_core::Progress::Worked {}
    }
}

/// The handlers of `x` that show no more than its configuration: what moves on its own is left out.
fn handlers(router: &Router) -> Vec<String> {
    let moving = ["calls", "scheduled", "reads", "writes", "stats"];
    let all = router.handlers().into_iter().filter(|h| h.read);
    let of_x = all.filter_map(|h| h.name.strip_prefix("x.").map(str::to_string));
    let fixed = of_x.filter(|name| !moving.contains(&name.as_str()));
    fixed.map(|name| format!("x.{name}")).collect()
}

#[test]
fn the_classes_are_those_of_click() {
    let ours: BTreeSet<&str> = click_elements::registry()
        .iter()
        .filter(|(name, entry)| *name == entry.class.name && takes_config(entry.class))
        .map(|(name, _)| name)
        .collect();
    let rows: BTreeSet<&str> = ROWS.iter().map(|row| row.class).collect();
    // GTPDecap, GTPEncap and these two are FastClick's
    let further = BTreeSet::from(["RegexClassifier", "StringMatcher"]);
    let missing: Vec<_> = rows.difference(&ours).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let untested: Vec<_> = ours
        .difference(&rows)
        .filter(|c| !further.contains(*c))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
}

fn takes_config(class: &click_core::Class) -> bool {
    let own = class.handlers.iter().any(|h| h.name == "config" && h.write);
    own || class.live
}

#[test]
fn state_is_kept_as_in_click() {
    let mut router = router(
        "s :: InfiniteSource(LIMIT 6, STOP false) -> q :: Queue(10) -> Idle;
         t :: InfiniteSource(LIMIT 6, STOP false) -> f :: FrontDropQueue(4) -> Idle;
         a :: InfiniteSource(LIMIT 3, STOP false) -> e :: IPEncap(4, 10.0.0.1, 10.0.0.2)
           -> r :: RandomSample(0) -> Discard",
    );
    while router.run(1) == click_core::Progress::Worked {}
    assert_eq!(read(&mut router, "r.drops"), "3");
    write(&mut router, "r.config", "0.5").unwrap();
    assert_eq!(read(&mut router, "r.drops"), "3");
    write(&mut router, "q.config", "4").unwrap();
    let queue = |router: &mut Router, name: &str| {
        ["length", "capacity", "highwater_length", "drops"]
            .map(|handler| read(router, &format!("{name}.{handler}")))
    };
    assert_eq!(queue(&mut router, "q"), ["4", "4", "6", "0"]);
    assert_eq!(queue(&mut router, "f"), ["4", "4", "4", "2"]);
    write(&mut router, "f.config", "3").unwrap();
    assert_eq!(queue(&mut router, "f"), ["3", "3", "4", "2"]);
    // a source counts from 0 again, and the queue has no room for all
    assert_eq!(read(&mut router, "s.count"), "6");
    write(&mut router, "s.config", "LIMIT 2").unwrap();
    while router.run(1) == click_core::Progress::Worked {}
    assert_eq!(read(&mut router, "s.count"), "0", "the queue is full");
    write(&mut router, "q.config", "5").unwrap();
    while router.run(1) == click_core::Progress::Worked {}
    assert_eq!(read(&mut router, "s.count"), "1");
    assert_eq!(queue(&mut router, "q"), ["5", "5", "6", "0"]);
}

#[test]
fn what_starting_an_element_changed_is_undone_with_the_list() {
    let mut router = router(
        "s :: RandomSeed(5); i :: InfiniteSource(LIMIT 1, STOP false) -> Discard;
         Idle -> [0]p :: PullSwitch(0); q :: Queue -> [1]p -> u :: Unqueue -> c :: Counter -> Discard;
         j :: InfiniteSource(LIMIT 3, ACTIVE false, STOP false) -> q; d :: Script(TYPE PASSIVE)",
    );
    while router.run(1) == click_core::Progress::Worked {}
    let draw = |router: &mut Router| {
        String::from_utf8(router.read_handler("d.random", "", 1).unwrap()).unwrap()
    };
    write(&mut router, "s.config", "7").unwrap();
    let expected = [draw(&mut router), draw(&mut router)];
    write(&mut router, "s.config", "7").unwrap();
    assert_eq!(draw(&mut router), expected[0]);
    let writes: [(&str, &[u8]); 3] = [
        ("s.config", b"8"),
        ("p.config", b"1"),
        ("i.config", b"END_CALL nothing.there 5"),
    ];
    let error = router.write_handlers(&writes, 1).unwrap_err().to_string();
    assert!(
        error.contains("i.config") && error.contains("nothing.there"),
        "{error}"
    );
    assert_eq!(draw(&mut router), expected[1]);
    assert_eq!(read(&mut router, "s.seed"), "7");
    assert_eq!(read(&mut router, "p.switch"), "0");
    // the switch still tells those that pull when it has packets
    write(&mut router, "j.active", "true").unwrap();
    write(&mut router, "p.config", "1").unwrap();
    while router.run(1) == click_core::Progress::Worked {}
    assert_eq!(read(&mut router, "c.count"), "3");
}

#[test]
fn queriers_keep_the_table_that_they_share() {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&lines);
    let environment = Environment {
        console: Rc::new(move |line| kept.borrow_mut().push(line.to_string())),
        ..Environment::new()
    };
    let config = "t :: ARPTable; Idle -> q :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1, TABLE t) -> Idle;
        Idle -> [1]q; Idle -> own :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1) -> Idle; Idle -> [1]own";
    let registry = click_elements::registry();
    let mut router = Router::build("t", config, &registry, environment, 1).unwrap();
    write(&mut router, "t.insert", "10.0.0.9 2:0:0:0:0:9").unwrap();
    write(&mut router, "t.config", "TIMEOUT 5").unwrap();
    write(&mut router, "q.config", "10.0.0.2, 2:0:0:0:0:2, TABLE t").unwrap();
    assert!(read(&mut router, "q.table").contains("10.0.0.9"));
    write(&mut router, "t.insert", "10.0.0.8 2:0:0:0:0:8").unwrap();
    assert!(read(&mut router, "q.table").contains("10.0.0.8"));
    // as Click: an own table is kept unless the addresses change
    write(&mut router, "own.insert", "10.0.0.7 2:0:0:0:0:7").unwrap();
    write(
        &mut router,
        "own.config",
        "10.0.0.1, 2:0:0:0:0:1, TIMEOUT 9",
    )
    .unwrap();
    assert!(read(&mut router, "own.table").contains("10.0.0.7"));
    write(&mut router, "own.config", "10.0.0.2, 2:0:0:0:0:1").unwrap();
    assert_eq!(read(&mut router, "own.table"), "");
    assert!(lines.borrow().is_empty());
}
