// SPDX-License-Identifier: Apache-2.0
//! A task batches its runs only where the result is the same.
use std::cell::RefCell;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use click_core::handler::read;
use click_core::{Batch, Class, Context, Element, Entry, Environment, Limits, Registry, Router};
use proptest::prelude::*;

/// Tells how large the batches were that it got.
static SIZES: Class = Class {
    name: "Sizes",
    ports: "1/0",
    processing: "h/h",
    handlers: &[read("largest", |sizes: &mut Sizes, _| {
        Ok(sizes.largest.to_string())
    })],
    build: |_| Some(Box::new(Sizes { largest: 0 })),
    ..Class::DEFAULT
};

struct Sizes {
    largest: usize,
}

impl Element for Sizes {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.largest = self.largest.max(batch.len());
        ctx.recycle(batch);
    }

    fn is_plain(&self) -> bool {
        true
    }
}

fn registry() -> Registry {
    let sizes = Entry {
        class: &SIZES,
        group: "test",
        source: "",
    };
    let entries = click_elements::entries().iter().copied().chain([sizes]);
    Registry::new(&entries.collect::<Vec<_>>(), &[])
}

/// A router, and the lines of its console.
fn built(config: &str, limits: Limits) -> (Router, Rc<RefCell<Vec<String>>>) {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let console = {
        let lines = lines.clone();
        Rc::new(move |line: &str| lines.borrow_mut().push(line.to_string()))
    };
    let environment = Environment {
        limits,
        console,
        entropy: click_core::Entropy::new(&[7; 32]),
        ..Environment::new()
    };
    let router = Router::build("t", config, &registry(), environment, 1);
    (router.unwrap_or_else(|e| panic!("{config}: {e:?}")), lines)
}

fn value(router: &mut Router, name: &str, now_ns: u64) -> String {
    String::from_utf8(router.read_handler(name, "", now_ns).unwrap()).unwrap()
}

/// Everything that can be read after each of a few slices, and the console.
fn told(config: &str, limits: Limits) -> Vec<String> {
    let (mut router, lines) = built(config, limits);
    let mut all = Vec::new();
    for now_ns in (0..6).map(|slice| 1 + slice * 1_000_000) {
        router.run(now_ns);
        let names: Vec<String> = router
            .handlers()
            .into_iter()
            .filter(|h| h.read && h.name.contains('.'))
            .map(|h| h.name)
            .collect();
        for name in names.iter().filter(|name| !name.ends_with("largest")) {
            let value = router.read_handler(name, "", now_ns);
            let value = value.map(|value| String::from_utf8_lossy(&value).into_owned());
            all.push(format!("{now_ns} {name}: {value:?}"));
        }
    }
    all.extend(lines.take());
    all
}

/// The largest batch that comes to the element `z` within a slice.
fn largest(config: &str) -> String {
    let (mut router, _) = built(config, Limits::default());
    router.run(1);
    value(&mut router, "z.largest", 1)
}

/// Here several turns are taken.
const UNSEEN: [&str; 19] = [
    "InfiniteSource -> Strip(1) -> Counter -> z :: Sizes",
    "InfiniteSource(LIMIT 150, STOP true) -> Paint(2) -> z :: Sizes",
    "s :: InfiniteSource(LIMIT 100, BURST 3, END_CALL s.reset) -> MarkIPHeader -> z :: Sizes",
    "InfiniteSource -> l :: CheckLength(80); l[0] -> Null -> n :: Null -> z :: Sizes; l[1] -> Strip(2) -> n",
    "InfiniteSource(LIMIT 100, BURST 100) -> q :: Queue -> Unqueue(LIMIT 90) -> Strip(1) -> z :: Sizes",
    "InfiniteSource(LIMIT 100, BURST 100) -> Queue -> u :: Unqueue -> Unstrip(1) -> z :: Sizes",
    "RandomSource(10, LIMIT 90, END_CALL c.reset) -> c :: Counter -> z :: Sizes",
    "InfiniteSource(LENGTH 2000) -> Unstrip(500) -> EtherEncap(1, 2:2:2:2:2:2, 3:3:3:3:3:3) -> z :: Sizes",
    "InfiniteSource -> l :: CheckLength(80); l[1] -> Truncate(5) -> Discard; l[0] -> z :: Sizes",
    "InfiniteSource(LIMIT 99) -> Queue(5) -> Unqueue -> q :: Queue(5) -> Unqueue -> z :: Sizes",
    "InfiniteSource -> Queue(5) -> Unqueue -> z :: Sizes",
    "InfiniteSource -> q :: Queue -> u :: Unqueue(LIMIT 150) -> z :: Sizes",
    "InfiniteSource(LIMIT 70, STOP true) -> Strip(1) -> FrontDropQueue -> Unqueue -> z :: Sizes",
    "InfiniteSource -> q :: QuickNoteQueue -> Unqueue -> z :: Sizes; InfiniteSource -> Queue -> Discard",
    "InfiniteSource -> Queue(20) -> Unqueue -> z :: Sizes; InfiniteSource -> Queue -> Unqueue -> Discard",
    "s :: InfiniteSource -> Queue(9) -> Unqueue -> Queue(7) -> Unqueue -> Queue -> Unqueue -> z :: Sizes",
    "InfiniteSource -> Queue -> Unqueue -> t :: Tee(3); t[0] -> Queue -> d :: Discard; t[1] -> Discard; t[2] -> Strip(1) -> Queue -> Unqueue -> z :: Sizes",
    "InfiniteSource -> t :: Tee; t[0] -> Queue(5) -> Unqueue -> z :: Sizes; t[1] -> Discard",
    "RandomSource(10) -> c :: Counter -> Queue -> Unqueue -> z :: Sizes; Idle -> Queue -> Unqueue -> z",
];

/// Here the batches would show, or bring nothing because packets part at once.
const SEEN: [&str; 19] = [
    "InfiniteSource -> r :: RoundRobinSwitch; r[0] -> Null -> n :: Null -> z :: Sizes; r[1] -> Strip(2) -> n",
    "InfiniteSource(LIMIT 99, BURST 99) -> Queue -> Discard; Idle -> z :: Sizes",
    "InfiniteSource -> Print(a) -> Print(b) -> z :: Sizes",
    "s :: InfiniteSource -> Counter(COUNT_CALL 10 s.active false) -> z :: Sizes",
    "InfiniteSource -> Counter(BYTE_COUNT_CALL 1000 stop) -> z :: Sizes",
    "InfiniteSource -> z :: Sizes; InfiniteSource -> z",
    "InfiniteSource -> Queue -> Unqueue(BURST 3) -> z :: Sizes",
    "InfiniteSource -> l :: CheckLength(69); l[0] -> q :: Queue -> Unqueue -> z :: Sizes; l[1] -> p :: Queue -> Discard; InfiniteSource(LENGTH 70) -> p",
    "InfiniteSource -> q :: Queue; InfiniteSource -> q -> Unqueue -> z :: Sizes",
    "InfiniteSource -> q :: Queue -> Unqueue -> z :: Sizes; q -> Unqueue -> Discard",
    "InfiniteSource -> Queue -> Unqueue -> z :: Sizes; InfiniteSource(STOP true, LIMIT 20) -> Discard",
    "InfiniteSource -> Queue -> Unqueue -> z :: Sizes; InfiniteSource -> Print(a) -> Discard",
    "InfiniteSource -> Queue -> RatedUnqueue(1000) -> z :: Sizes",
    "InfiniteSource -> [0] m :: MixedQueue -> Unqueue -> z :: Sizes; Idle -> [1] m",
    "InfiniteSource -> n :: Null -> r :: RoundRobinSwitch; r[0] -> n; r[1] -> z :: Sizes",
    "InfiniteSource -> RandomSample(0.5) -> z :: Sizes",
    "InfiniteSource -> CheckIPHeader(VERBOSE true) -> Print(b) -> z :: Sizes",
    "InfiniteSource -> CheckIPHeader(VERBOSE true) -> z :: Sizes",
    "InfiniteSource -> s :: Script(TYPE PACKET, return 0) -> z :: Sizes",
];

/// The results are the same with and without batches.
fn compare(config: &str, packet_buffers: usize) {
    let limits = |batch| Limits {
        batch,
        packet_buffers,
        ..Limits::default()
    };
    let (joined, single) = (told(config, limits(32)), told(config, limits(1)));
    let other = joined.iter().zip(&single).find(|(a, b)| a != b);
    assert_eq!(other, None, "{config}");
    assert_eq!(joined.len(), single.len(), "{config}");
}

#[test]
fn nobody_can_tell() {
    for config in UNSEEN.iter().chain(&SEEN) {
        for packet_buffers in [3, 20, 4096] {
            compare(config, packet_buffers);
        }
    }
}

#[test]
fn turns_are_taken_where_they_are_unseen() {
    for config in UNSEEN {
        assert!(largest(config).parse::<usize>().unwrap() > 1, "{config}");
    }
    assert_eq!(largest(UNSEEN[0]), "32");
    for config in SEEN {
        let largest = largest(config);
        assert!(
            ["0", "1"].contains(&largest.as_str()),
            "{config}: {largest}"
        );
    }
}

#[test]
fn handlers_change_what_can_be_seen() {
    let config = "s :: InfiniteSource -> c :: Counter -> z :: Sizes";
    let (mut router, _) = built(config, Limits::default());
    router.run(1);
    let call: [(&str, &[u8]); 1] = [("c.count_call", b"100 s.active false")];
    router.write_handlers(&call, 1).unwrap();
    router.run(1);
    assert_eq!(value(&mut router, "c.count", 1), "100");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    all.collect()
}

/// Elements between a source and its end.
fn stage() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => (1usize..40).prop_map(|room| format!("Queue({room}) -> Unqueue")),
        1 => (1usize..99).prop_map(|limit| format!("Queue -> Unqueue(LIMIT {limit})")),
        1 => Just("QuickNoteQueue -> Unqueue".to_string()),
        1 => Just("FrontDropQueue(9) -> Unqueue".to_string()),
        1 => Just("SimpleQueue(3) -> Unqueue".to_string()),
        1 => Just("Counter".to_string()),
        1 => Just("CheckLength(70)".to_string()),
    ]
}

/// A source, what follows, and where it ends: alone, or where others do.
fn chain() -> impl Strategy<Value = String> {
    let source = prop_oneof![
        3 => Just("InfiniteSource".to_string()),
        1 => (1usize..150).prop_map(|limit| format!("InfiniteSource(LIMIT {limit}, STOP true)")),
        1 => (1usize..150).prop_map(|limit| format!("InfiniteSource(LIMIT {limit}, LENGTH 71)")),
        1 => (2usize..4).prop_map(|burst| format!("InfiniteSource(BURST {burst})")),
    ];
    let ends = [
        "Discard",
        "Queue -> Discard",
        "Queue(7) -> Discard",
        "c",
        "q",
    ];
    let stages = prop::collection::vec(stage(), 0..3);
    (source, stages, prop::sample::select(ends.to_vec())).prop_map(|(source, stages, end)| {
        let all: Vec<_> = [source].into_iter().chain(stages).collect();
        format!("{} -> {end};", all.join(" -> "))
    })
}

proptest! {
    #[test]
    fn nobody_can_tell_whatever_the_chains(chains in prop::collection::vec(chain(), 1..4)) {
        let shared = "c :: Counter -> Discard; q :: Queue(50) -> Unqueue -> Counter -> Discard; Idle -> c; Idle -> q;";
        let config = format!("{shared} {}", chains.join(" "));
        compare(&config, 4096);
    }
}

/// `way` of an element that says that it is plain asks the context for nothing but numbers that stand still.
#[test]
fn plain_elements_are_plain() {
    let mut plain = 0;
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/elements")) {
        let text = read_to_string(&path).unwrap();
        if !text.contains("in_place!(plain)") {
            continue;
        }
        plain += 1;
        let (_, way) = text.split_once("fn output_port(").unwrap();
        let (way, _) = way.split_once("\n    }\n").unwrap();
        let (arguments, body) = way.split_once('{').unwrap();
        let asks = body.replace("ctx.outputs()", "");
        assert!(
            arguments.contains("_ctx:") || !asks.contains("ctx"),
            "{path:?}"
        );
    }
    assert!(plain > 50, "{plain}");
}
