// SPDX-License-Identifier: Apache-2.0
//! Elements: their arguments, their handlers.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use click_core::class::Class;
use click_core::{Device, Environment, Limits, MemoryDevice, Registry, Router};

/// The address of the first device.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Small limits, so that inputs reach them.
pub fn limits() -> Limits {
    Limits {
        packet_buffers: 256,
        table_entries: 256,
        ..Limits::default()
    }
}

/// A guest's classes: none of them reaches this machine.
pub fn registry() -> Registry {
    click_elements::registry()
}

fn environment() -> Environment {
    let device: Rc<RefCell<dyn Device>> = Rc::new(RefCell::new(MemoryDevice::new(MAC)));
    Environment {
        devices: BTreeMap::from([(0, device)]),
        limits: limits(),
        ..Environment::new()
    }
}

/// The bytes after a number that chooses one of `count`.
pub fn choose(data: &[u8], count: usize) -> Option<(usize, &[u8])> {
    let (number, rest) = data.split_first_chunk::<2>()?;
    Some((
        usize::from(u16::from_le_bytes(*number)) % count.max(1),
        rest,
    ))
}

/// A class of the registry, chosen by the first bytes.
pub fn class(data: &[u8]) -> Option<(&'static Class, &[u8])> {
    let registry = registry();
    let classes: Vec<_> = registry.iter().collect();
    let (index, rest) = choose(data, classes.len())?;
    Some((classes[index].1.class, rest))
}

/// Lets a router run for a while.
pub fn run(router: &mut Router, from_ns: u64) {
    for slice in 0..64 {
        router.run(from_ns + slice * 1_000_000);
    }
}

/// Any class with any configuration string.
pub fn arguments(data: &[u8]) {
    let Some((class, rest)) = class(data) else {
        return;
    };
    build(class.name, &String::from_utf8_lossy(rest));
}

/// Tries to make an element.
fn build(class: &str, config: &str) {
    let text = format!("e :: {class}({config});");
    let _ = Router::build("fuzz", &text, &registry(), environment(), 1);
}

/// Classes whose arguments are languages of their own, and what they begin with.
const LANGUAGES: [(&str, &str); 14] = [
    ("IPFilter", "allow "),
    ("IPFilter", "1 "),
    ("IPClassifier", ""),
    ("Classifier", ""),
    ("Script", "TYPE PASSIVE, return "),
    ("Script", ""),
    ("IPRewriter", "pattern "),
    ("IPRewriterPatterns", "p "),
    ("RadixIPLookup", ""),
    ("RadixIPsecLookup", ""),
    ("AddressInfo", "a "),
    ("AnnotationInfo", "a "),
    ("StringMatcher", ""),
    ("ScheduleInfo", "e "),
];

/// The languages of arguments: filters, patterns, routes, scripts, addresses.
pub fn expressions(data: &[u8]) {
    if let Some((index, rest)) = choose(data, LANGUAGES.len()) {
        let (class, start) = LANGUAGES[index];
        build(class, &format!("{start}{}", String::from_utf8_lossy(rest)));
    }
}

/// Any handler of a router, read and written with anything.
pub fn handlers(data: &[u8]) {
    let Ok(mut router) = Router::build("fuzz", ROUTER, &registry(), environment(), 1) else {
        panic!("the configuration is right");
    };
    let handlers = router.handlers();
    let mut rest = data;
    while let Some((index, bytes)) = choose(rest, handlers.len()) {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let (value, behind) = bytes.split_at(end);
        let name = &handlers[index].name;
        let _ = router.write_handlers(&[(name, value)], 1);
        let _ = router.read_handler(name, &String::from_utf8_lossy(value), 1);
        rest = behind.get(1..).unwrap_or_default();
    }
    run(&mut router, 1);
}

/// Elements with many handlers.
const ROUTER: &str = "
FromDevice(0) -> c :: Counter -> q :: Queue(10) -> s :: Shaper(10) -> u :: Unqueue
    -> f :: IPFilter(allow udp, deny all) -> r :: RadixIPLookup(0/0 0) -> sw :: Switch(0) -> Discard;
i :: InfiniteSource(DATA x, LIMIT 5) -> p :: Paint(1) -> d :: Discard;
sc :: Script(TYPE PASSIVE, set x $1, return $(add $x 1));
a :: ARPQuerier(10.0.0.1, 1:2:3:4:5:6); Idle -> a -> Discard; Idle -> [1] a;
cl :: IPClassifier(tcp, -); Idle -> cl; cl [0] -> Discard; cl [1] -> Discard;
";
