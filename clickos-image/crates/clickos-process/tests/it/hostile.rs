// SPDX-License-Identifier: Apache-2.0
//! Configurations that ask for more work or memory than a guest has: the guest refuses them, and the
//! router that runs continues. Each case names what its error has to say, in a guest and in
//! `click --check --guest`.

use crate::common::Host;
use crate::common::guest::Guest;
use crate::common::hostile::{Case, groups};
use click_core::{Environment, Router};
use clickos_control::limits;
use std::panic::{AssertUnwindSafe, catch_unwind};

const WIRE: &str = "FromDevice(0) -> c :: Counter -> Queue(200) -> ToDevice(1);\n\
                    FromDevice(1) -> Queue(200) -> ToDevice(0);\n";
/// The limits of `click --check --guest`: a guest from 64 MiB up.
const CHECKED: u64 = 64 << 20;

/// Installs a case next to a router that forwards; gives what is wrong.
fn install(host: &mut Host, guest: &mut Guest, case: &Case) -> Option<String> {
    let (word, error) = guest.install(host, 0, &case.text);
    if word == "Error" {
        guest.ports[0].send(&[7; 60]);
        if guest.ports[1].receive().is_none() {
            return Some(format!("{}: the old router does not forward", case.name));
        }
    } else if guest.install(host, 0, WIRE).0 != "Running" {
        return Some(format!("{}: its router cannot be replaced", case.name));
    }
    case.wrong(case.in_guest, &error)
}

/// One guest takes the cases of a group one after the other: none leaves less for the next.
fn all_of(host: &mut Host, domid: u16, group: &[Case]) -> Vec<String> {
    let mut guest = Guest::start(host, domid, 2);
    assert_eq!(guest.install(host, 0, WIRE).0, "Running");
    let wrong = group.iter().filter_map(|case| {
        let done = AssertUnwindSafe(|| install(host, &mut guest, case));
        let found = catch_unwind(done);
        let ended = guest.child.try_wait().unwrap();
        assert_eq!(ended, None, "{}: {}", case.name, guest.console(host));
        found.unwrap_or_else(|_| Some(format!("{}: no answer", case.name)))
    });
    wrong.collect()
}

/// Faults of all groups; each group has a thread.
fn wrong(in_group: impl Fn(&[Case]) -> Vec<String> + Sync) -> Vec<String> {
    let in_group = &in_group;
    std::thread::scope(|scope| {
        let start = |group: Vec<Case>| scope.spawn(move || in_group(&group));
        let threads: Vec<_> = groups().into_iter().map(start).collect();
        let found = threads.into_iter().map(|thread| thread.join().unwrap());
        found.collect::<Vec<_>>().concat()
    })
}

#[test]
fn a_guest_survives_every_hostile_configuration() {
    let found = wrong(|group| all_of(&mut Host::new(), 5, group));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_check_refuses_them_too() {
    let check = |case: &Case| {
        let environment = Environment {
            limits: limits(CHECKED),
            ..Environment::new()
        };
        let registry = click_elements::registry();
        let built = Router::build("test.click", &case.text, &registry, environment, 0);
        let error = built.err().map(|errors| errors[0].to_string());
        case.wrong(case.in_check, &error.unwrap_or_default())
    };
    let found = wrong(|group| group.iter().filter_map(check).collect());
    assert_eq!(found, Vec::<String>::new());
}
