// SPDX-License-Identifier: Apache-2.0
//! What routes, rules and patterns take of a guest's memory, their text included. The test is a program of its own: its
//! allocator counts what any test takes.
use bounds::memory::{Counting, in_use};
use click_core::{Environment, Router};
use click_elements::registry;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// KiB that a router with this element has in use.
fn used_kib(element: &str) -> f64 {
    let text = format!("Idle -> {element} -> Discard;");
    let before = in_use();
    let router = Router::build("m.click", &text, &registry(), Environment::new(), 1);
    assert!(router.is_ok());
    (in_use() - before) as f64 / 1024.0
}

/// Numbers of a generator that any run repeats.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn address(&mut self) -> String {
        let bytes = [(); 4].map(|()| self.below(254) + 1);
        bytes.map(|b| b.to_string()).join(".")
    }

    fn word(&mut self) -> String {
        let letters = [(); 16].map(|()| char::from(b'a' + self.below(26) as u8));
        letters.iter().collect()
    }

    /// A rule with a whole five-tuple.
    fn rule(&mut self) -> String {
        let (source, destination) = (self.address(), self.address());
        let port = self.below(65_535) + 1;
        format!(
            "allow tcp && src host {source} && dst host {destination} && src port > 1023 && dst port {port}"
        )
    }
}

fn list(count: usize, one: impl FnMut(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(", ")
}

/// One test: tests at the same time would count each other's memory.
#[test]
fn routes_rules_and_patterns_take_few_bytes() {
    let mut draw = Draw(1);
    let routes = list(1000, |_| format!("{}/24 0", draw.address()));
    let routes = used_kib(&format!("RadixIPLookup({routes})"));
    let rules = list(1000, |_| draw.rule());
    let rules = used_kib(&format!("IPFilter({rules}, deny all)"));
    let many = list(10_000, |_| draw.rule());
    let many = used_kib(&format!("IPFilter({many}, deny all)"));
    let words = list(400, |_| draw.word());
    let patterns = used_kib(&format!("StringMatcher({words})"));
    println!(
        "{routes:.0} KiB of routes, {rules:.0} and {many:.0} of rules, {patterns:.0} of patterns"
    );
    bounds::hold("max_thousand_routes_kib", routes);
    bounds::hold("max_thousand_rules_kib", rules);
    bounds::hold("max_ten_thousand_rules_kib", many);
    bounds::hold("max_patterns_kib", patterns);
}
