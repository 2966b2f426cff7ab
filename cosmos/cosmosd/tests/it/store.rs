// SPDX-License-Identifier: Apache-2.0
//! The store is full, or gone; or the switch is. Needs root and NOXEN_PREFIX.

use cosmos_testbed::{GuestSpec, Testbed, eventually, uuid};
use serde_json::{Value, json};
use xenstore::{Access, Perm, Tx};

/// More than the nodes that xenstored grants a guest, which are 1,000.
const NODES: u32 = 1_100;

fn idle(bed: &Testbed, n: u16) -> Value {
    let config = "c :: Counter; Idle -> c -> Discard;";
    let spec = GuestSpec::new(n, &bed.engine_sha256(), config);
    spec.vif(1).args()
}

fn of_guest(n: u16) -> Value {
    json!({"uuid": uuid(n)})
}

fn read_count() -> Value {
    json!({"uuid": uuid(1), "rid": 0, "name": "c.count"})
}

#[test]
fn a_store_that_is_gone_is_told_and_nothing_is_left_when_it_is_back() {
    let mut bed = Testbed::start();
    bed.call("create", idle(&bed, 1)).unwrap();
    bed.kill_store();
    faults(&bed, &["xenstored"]);
    for (verb, args, code) in [
        ("handler-read", read_count(), "dead-guest: "),
        ("create", idle(&bed, 2), "store: "),
        ("destroy", of_guest(1), "store: "),
    ] {
        let error = bed.refused(verb, args);
        assert!(error.starts_with(code), "{verb}: {error}");
        assert!(error.contains("/xenstore/socket"), "{verb}: {error}");
    }
    // The daemon reports the half-made guest, and no process runs.
    for n in 1..=2 {
        let info = bed.call("info", of_guest(n)).unwrap();
        assert_eq!(info["state"], "error", "{info}");
    }
    assert_eq!(bed.guest_processes(), Vec::<i32>::new());

    bed.restart_store();
    for n in 1..=2 {
        bed.call("destroy", of_guest(n)).unwrap();
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
    bed.call("create", idle(&bed, 1)).unwrap();
    bed.call("handler-read", read_count()).unwrap();
}

/// Waits until the verb `host` lists exactly these parts as faults.
pub fn faults(bed: &Testbed, parts: &[&str]) {
    eventually("the faults of the host", || {
        let host = bed.call("host", json!({})).expect("host answers");
        let faults = host["faults"].as_array().expect("a list").clone();
        (faults.iter().map(|f| &f["part"]).eq(parts)).then_some(())
    });
}

#[test]
fn the_host_names_the_daemons_that_are_gone() {
    let mut bed = Testbed::start();
    let mut events = bed.client().events().unwrap();
    bed.valed.kill();
    faults(&bed, &["valed"]);
    let event = events.next_event().unwrap();
    assert_eq!(event.event, "host");
    assert_eq!(event.data["faults"][0]["part"], "valed");
    bed.kill_store();
    faults(&bed, &["valed", "xenstored"]);
    bed.restart_store();
    bed.restart_vale();
    faults(&bed, &[]);
}

/// Guest 1 sends a frame each 10 ms; guest 2 counts them.
pub fn sender_and_counter(bed: &Testbed) {
    for (n, config) in [
        (
            1,
            "RatedSource(\\<ffffffffffff 020000010100 88b5>, RATE 100) -> ToDevice(0); Idle -> Discard;",
        ),
        (2, "FromDevice(0) -> c :: Counter -> Discard;"),
    ] {
        let spec = GuestSpec::new(n, &bed.engine_sha256(), config);
        bed.call("create", spec.vif(1).args()).expect("a guest");
    }
}

/// Waits until guest 2 has got ten more frames.
pub fn frames_arrive(bed: &Testbed) {
    let args = json!({"uuid": uuid(2), "rid": 0, "name": "c.count"});
    let count = || -> u64 {
        let read = bed.call("handler-read", args.clone()).expect("a count");
        let count = read["value"].as_str().expect("text").trim().parse();
        count.expect("a number")
    };
    let before = count();
    eventually("frames arrive", || (count() > before + 10).then_some(()));
}

#[test]
fn guests_outlive_a_killed_switch_and_a_killed_toolstack() {
    let mut bed = Testbed::start();
    sender_and_counter(&bed);
    frames_arrive(&bed);
    let processes = bed.guest_processes();
    for _ in 0..3 {
        bed.valed.kill();
        bed.restart_vale();
        frames_arrive(&bed);
    }
    bed.valed.kill();
    bed.restart_cosmosd();
    bed.restart_vale();
    frames_arrive(&bed);
    assert_eq!(bed.guest_processes(), processes);
    for n in 1..=2 {
        bed.call("destroy", of_guest(n)).unwrap();
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn a_guest_whose_quota_is_used_up_is_told_of_and_goes_on() {
    let bed = Testbed::start();
    let domid = bed.call("create", idle(&bed, 1)).unwrap()["domid"].clone();
    let domid = u16::try_from(domid.as_u64().unwrap()).unwrap();
    let folder = format!("/local/domain/{domid}/data/full");
    let mut store = bed.store();
    for n in 0..NODES {
        let path = format!("{folder}/{}/{n}", n / 100);
        store.write(Tx::NONE, &path, b"").unwrap();
        let owner = [Perm::new(Access::None, domid)];
        store.set_perms(Tx::NONE, &path, &owner).unwrap();
    }
    let error = bed.refused("handler-read", read_count());
    assert!(
        error.starts_with("store: the guest's quota in the Xen store is used up"),
        "{error}"
    );
    assert!(
        error.contains(&format!("below /local/domain/{domid}/data")),
        "{error}"
    );
    // Others do not suffer.
    bed.call("create", idle(&bed, 2)).unwrap();
    store.rm(Tx::NONE, &folder).unwrap();
    eventually("it answers again", || {
        bed.call("handler-read", read_count()).ok()
    });
    for n in 1..=2 {
        bed.call("destroy", of_guest(n)).unwrap();
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
}
