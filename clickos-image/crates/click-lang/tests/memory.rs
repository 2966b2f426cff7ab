// SPDX-License-Identifier: Apache-2.0
//! A guest of 8 MiB flattens a configuration of 1 MiB. The tests count the bytes in use at the peak
//! for each byte of text. They are a program of their own: its allocator counts what any test takes.
use bounds::memory::{Counting, peak_of};
use click_lang::{Classes, Errors, Limits, Memory, Scope, Sources, flatten};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Any;

impl Classes for Any {
    fn knows(&self, name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase())
    }
    fn unavailable(&self, _name: &str) -> Option<&str> {
        None
    }
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Bytes in use at the peak of flattening, and errors.
fn flattened(text: String, limits: &Limits) -> (usize, usize) {
    let sources = Sources::new("t", text);
    let mut errors = Errors::default();
    let (used, _) = peak_of(|| flatten(&sources, &Any, &Scope::default(), limits, &mut errors));
    (used, errors.into_sorted(&sources).len())
}

/// Bytes in use at the peak of flattening what is right, and bytes of text.
fn peak(text: String) -> (usize, usize) {
    let len = text.len();
    let limits = Limits {
        config_bytes: 4 << 20,
        elements: 10_000,
        ..Limits::default()
    };
    let (used, errors) = flattened(text, &limits);
    assert_eq!(errors, 0);
    (used, len)
}

/// The limits of a guest of 8 MiB, which has 6 MiB for everything.
const SMALL: Limits = Limits {
    config_bytes: 370 << 10,
    elements: 375,
    connections: 1500,
    ports: 1024,
    steps: 1 << 24,
    memory: Memory::UNBOUNDED,
};

/// Texts that are worth nothing must not take what a small guest has.
fn check_hostile() {
    for part in [
        "a,b,",
        "Idle->",
        "Idle;",
        "(",
        "{Idle;}",
        "(a;b;",
        "a=>b->",
        "a[1]->[1]",
        "a,b[1,2],",
        "elementclass A{",
        "elementclass A{a;}",
        "define($a b);",
        "[0]",
        "a(",
        "a::B;",
        "{a|",
    ] {
        for before in ["", "elementclass A {"] {
            let count = (SMALL.config_bytes - before.len()) / part.len();
            let (used, errors) = flattened(before.to_string() + &part.repeat(count), &SMALL);
            println!("{before}{part}...: {used} bytes, {errors} errors");
            bounds::hold("max_refused_text_memory_bytes", used as f64);
        }
    }
}

fn rule(n: usize) -> String {
    let (a, b) = (n / 250, n % 250);
    format!("allow src net 10.{a}.{b}.0/24 && dst host 192.168.{a}.{b} && tcp dst port {n},\n")
}

/// One test: tests at the same time would count each other's memory.
#[test]
fn a_few_bytes_for_each_byte_of_text() {
    let rules: String = (1..=10_000).map(rule).collect();
    let (used, len) = peak(format!(
        "Idle -> f :: IPFilter({rules} deny all) -> Discard"
    ));
    println!("10,000 rules: {used} bytes for {len}");
    assert!(len > 700_000, "{len} bytes");
    let ratio = used as f64 / len as f64;
    bounds::hold("max_rules_memory_bytes_per_byte", ratio);

    let element = |n: usize| {
        let before = n - 1;
        format!("counter{n} :: Counter(COUNT_CALL {n});\ncounter{before} -> counter{n};\n")
    };
    let graph: String = (1..5000).map(element).collect();
    let (used, len) = peak(format!("counter0 :: Idle;\n{graph}"));
    println!("5,000 elements: {used} bytes for {len}");
    let ratio = used as f64 / len as f64;
    bounds::hold("max_elements_memory_bytes_per_byte", ratio);

    check_hostile();
}
