// SPDX-License-Identifier: Apache-2.0
//! The handler `graph`: what passes each connection is counted while a reader watches, and no longer.
use click_core::{Environment, Progress, Router};
use click_elements::registry;

const SECOND_NS: u64 = 1_000_000_000;

/// Source, filter, tee, full queue: 1,000 packets of 100 bytes, of which the strainer drops half.
const CONFIG: &str = "
    src :: InfiniteSource(LENGTH 100, LIMIT 1000, BURST 8, ACTIVE false)
        -> half :: RoundRobinSwitch -> tee :: Tee;
    half[1] -> gone :: Discard;
    tee[0] -> q :: Queue(50) -> out :: Counter -> idle :: Idle;
    tee[1] -> done :: Discard;
    src2 :: InfiniteSource(LENGTH 60, LIMIT 20, ACTIVE false)
        -> q2 :: Queue(100) -> un :: Unqueue -> check :: CheckIPHeader -> Discard;
";

fn router() -> Router {
    Router::build("graph.click", CONFIG, &registry(), Environment::new(), 1).unwrap()
}

fn graph(router: &mut Router, now_ns: u64) -> String {
    let text = router.read_handler("graph", "", now_ns).unwrap();
    String::from_utf8(text).unwrap()
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let mut lines = text.lines();
    let found = lines.find(|l| l.starts_with(start));
    found.unwrap_or_else(|| panic!("no line {start:?} in\n{text}"))
}

fn run(router: &mut Router, now_ns: u64) {
    router
        .write_handlers(&[("src.active", b"true"), ("src2.active", b"true")], now_ns)
        .unwrap();
    while router.run(now_ns) == Progress::Worked {}
}

#[test]
fn a_watched_router_counts_each_connection() {
    let mut router = router();
    assert_eq!(line(&graph(&mut router, 5), "watched_ns"), "watched_ns 0");
    run(&mut router, SECOND_NS + 5);
    let text = graph(&mut router, SECOND_NS + 5);
    for expected in [
        "watched_ns 1000000000",
        "element tee Tee 0",
        "element q Queue 450",
        "element gone Discard 0",
        "element check CheckIPHeader 20",
        "connection src 0 half 0 push 1000 100000",
        "connection half 0 tee 0 push 500 50000",
        "connection half 1 gone 0 push 500 50000",
        "connection tee 0 q 0 push 500 50000",
        "connection tee 1 done 0 push 500 50000",
        "connection q 0 out 0 pull 0 0",
        "connection q2 0 un 0 pull 20 1200",
        "connection un 0 check 0 push 20 1200",
    ] {
        assert_eq!(line(&text, expected), expected, "{text}");
    }
}

#[test]
fn an_unwatched_router_counts_nothing() {
    let mut router = router();
    graph(&mut router, 5);
    let later = 5 + 10 * SECOND_NS;
    run(&mut router, later + 1);
    let text = graph(&mut router, later + 1);
    assert_eq!(line(&text, "watched_ns"), "watched_ns 0");
    let idle = "connection src 0 half 0 push 0 0";
    assert_eq!(line(&text, idle), idle);
}

#[test]
fn each_read_prolongs_the_watch() {
    let mut router = router();
    let times = [5, 9, 18, 27].map(|s| s * SECOND_NS);
    times.iter().for_each(|now| drop(graph(&mut router, *now)));
    let text = graph(&mut router, 30 * SECOND_NS);
    assert_eq!(line(&text, "watched_ns"), "watched_ns 25000000000");
}
