// SPDX-License-Identifier: Apache-2.0
//! Each fuzz target for a fixed number of inputs.
mod inputs;
use inputs::{Random, input, runs};

/// Frames for devices: each follows a number that says how long it is, and for which device.
fn frames(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.next().to_le_bytes()[..2].to_vec();
    for _ in 0..random.below(6) {
        let frame = input(random);
        let choice = frame.len() * 4 + random.below(4);
        bytes.extend(u16::try_from(choice).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend(frame);
    }
    bytes
}

/// Nothing but chance.
fn noise(random: &mut Random) -> Vec<u8> {
    let length = random.below(400);
    (0..length)
        .map(|_| random.next().to_le_bytes()[0])
        .collect()
}

fn run(target: fn(&[u8]), inputs: fn(&mut Random) -> Vec<u8>, usual: usize, target_number: u64) {
    let mut random = Random::of(target_number);
    for number in 0..runs(usual) {
        let bytes = inputs(&mut random);
        let done = std::panic::catch_unwind(|| target(&bytes));
        assert!(
            done.is_ok(),
            "input {number}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

#[test]
fn language() {
    run(click_fuzz::language, input, 4_000, 1);
}

#[test]
fn arguments() {
    run(click_fuzz::arguments, input, 4_000, 2);
}

#[test]
fn expressions() {
    run(click_fuzz::expressions, input, 4_000, 3);
}

#[test]
fn packets() {
    run(click_fuzz::packets, frames, 4_000, 4);
}

#[test]
fn handlers() {
    run(click_fuzz::handlers, input, 1_000, 5);
}

#[test]
fn control() {
    run(click_fuzz::control, input, 4_000, 6);
}

#[test]
fn protocol() {
    run(click_fuzz::protocol, input, 4_000, 7);
}

#[test]
fn messages() {
    run(click_fuzz::messages, input, 4_000, 8);
}

#[test]
fn requests() {
    run(click_fuzz::requests, noise, 2_500, 12);
}

#[test]
fn rings() {
    run(click_fuzz::rings, input, 4_000, 9);
}

#[test]
fn netif() {
    run(click_fuzz::netif, noise, 1_000, 11);
}

#[test]
fn files() {
    run(click_fuzz::files, input, 4_000, 10);
}
