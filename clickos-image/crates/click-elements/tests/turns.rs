// SPDX-License-Identifier: Apache-2.0
//! A task takes several turns at once only where nobody can tell.
#![allow(clippy::unwrap_used, reason = "a test")]
use std::cell::RefCell;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use click_core::class::read;
use click_core::{
    Batch, Class, Context, Element, Entry, Environment, HandlerError, Limits, Registry, Router,
    View,
};

/// Tells how large the batches were that it got.
static SIZES: Class = Class {
    name: "Sizes",
    ports: "1/0",
    processing: "h/h",
    handlers: &[read("largest")],
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

    fn read(&self, _view: &View<'_>, _: &str, _: &str) -> Result<String, HandlerError> {
        Ok(self.largest.to_string())
    }
}

fn registry() -> Registry {
    let sizes = Entry {
        class: &SIZES,
        group: "test",
        docs: "",
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
        seed: 7,
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
const UNSEEN: [&str; 9] = [
    "InfiniteSource -> Strip(1) -> Counter -> z :: Sizes",
    "InfiniteSource(LIMIT 150, STOP true) -> Paint(2) -> z :: Sizes",
    "s :: InfiniteSource(LIMIT 100, BURST 3, END_CALL s.reset) -> MarkIPHeader -> z :: Sizes",
    "InfiniteSource -> l :: CheckLength(80); l[0] -> Null -> n :: Null -> z :: Sizes; l[1] -> Strip(2) -> n",
    "InfiniteSource(LIMIT 100, BURST 100) -> q :: Queue -> Unqueue(LIMIT 90) -> Strip(1) -> z :: Sizes",
    "InfiniteSource(LIMIT 100, BURST 100) -> Queue -> u :: Unqueue -> Unstrip(1) -> z :: Sizes",
    "RandomSource(10, LIMIT 90, END_CALL c.reset) -> c :: Counter -> z :: Sizes",
    "InfiniteSource(LENGTH 2000) -> Unstrip(500) -> EtherEncap(1, 2:2:2:2:2:2, 3:3:3:3:3:3) -> z :: Sizes",
    "InfiniteSource -> l :: CheckLength(80); l[1] -> Truncate(5) -> Discard; l[0] -> z :: Sizes",
];

/// Here they could be seen, or are in vain as packets part at once.
const SEEN: [&str; 14] = [
    "InfiniteSource -> r :: RoundRobinSwitch; r[0] -> Null -> n :: Null -> z :: Sizes; r[1] -> Strip(2) -> n",
    "InfiniteSource(LIMIT 99) -> Queue(5) -> Unqueue -> q :: Queue(5) -> Unqueue -> z :: Sizes",
    "InfiniteSource(LIMIT 99, BURST 99) -> Queue -> Discard; Idle -> z :: Sizes",
    "InfiniteSource -> Print(a) -> Print(b) -> z :: Sizes",
    "s :: InfiniteSource -> Counter(COUNT_CALL 10 s.active false) -> z :: Sizes",
    "InfiniteSource -> Counter(BYTE_COUNT_CALL 1000 stop) -> z :: Sizes",
    "InfiniteSource -> Queue(5) -> Unqueue -> z :: Sizes",
    "InfiniteSource -> t :: Tee; t[0] -> Queue(5) -> Unqueue -> z :: Sizes; t[1] -> Discard",
    "InfiniteSource -> z :: Sizes; InfiniteSource -> z",
    "InfiniteSource -> n :: Null -> r :: RoundRobinSwitch; r[0] -> n; r[1] -> z :: Sizes",
    "InfiniteSource -> RandomSample(0.5) -> z :: Sizes",
    "InfiniteSource -> CheckIPHeader(VERBOSE true) -> Print(b) -> z :: Sizes",
    "InfiniteSource -> CheckIPHeader(VERBOSE true) -> z :: Sizes",
    "InfiniteSource -> s :: Script(TYPE PACKET, return 0) -> z :: Sizes",
];

#[test]
fn nobody_can_tell() {
    for config in UNSEEN.iter().chain(&SEEN) {
        for packet_buffers in [3, 20, 4096] {
            let limits = |batch| Limits {
                batch,
                packet_buffers,
                ..Limits::default()
            };
            assert_eq!(
                told(config, limits(32)),
                told(config, limits(1)),
                "{config}"
            );
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
        assert!(["0", "1"].contains(&largest(config).as_str()), "{config}");
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
        let (_, way) = text.split_once("fn way(").unwrap();
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
