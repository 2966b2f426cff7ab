// SPDX-License-Identifier: Apache-2.0
//! Long inputs, one at a time: the allocator counts the bytes of each, so this is a program of its own.
use std::panic::catch_unwind;

mod inputs;
use inputs::{Random, runs};

/// Three short inputs: a start, a part to repeat, and an end.
fn long(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.next().to_le_bytes()[..4].to_vec();
    for part in [random.below(8), 1 + random.below(4), random.below(8)] {
        bytes.extend(inputs::words(random, part).iter().filter(|b| **b != 0));
        bytes.push(0);
    }
    bytes
}

fn run(target: fn(&[u8]), skip: usize, usual: usize, target_number: u64) {
    let mut random = Random::of(target_number);
    for number in 0..runs(usual) {
        let bytes = long(&mut random);
        let done = catch_unwind(|| target(&bytes[skip..]));
        let shown = String::from_utf8_lossy(&bytes);
        assert!(done.is_ok(), "input {number}: {shown:?}");
    }
}

/// Texts that once took too much.
const KNOWN: &[&str] = &[
    "\0\n# 1\n\0",
    "{\0||\0}",
    "define(\0$a b,\0)",
    "require(\0a,\0)",
    "define($a \0x\0); Idle($a$a$a$a$a$a$a$a)",
    "\0elementclass A{}\0",
    "\0a[0-1023],\0b",
    "\0Idle[1023];\0",
    "\0A(\0",
    "elementclass A{$a|Idle($a)} \0A(1);\0",
];

/// One test: tests at the same time would count each other's memory.
#[test]
fn an_installation_keeps_its_budget() {
    for text in KNOWN {
        click_fuzz::installation(text.as_bytes());
    }
    run(click_fuzz::installation, 4, 200, 13);
    run(click_fuzz::elements, 0, 1500, 14);
}
