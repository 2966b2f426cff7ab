// SPDX-License-Identifier: Apache-2.0
//! A guest that a client moves to another host: held for it, and let go. Needs root and
//! NOXEN_PREFIX.

use control_socket::Client;
use cosmos_testbed::{GuestSpec, Testbed, eventually, uuid};
use serde_json::{Value, json};

/// The verbs with which others would change a guest.
const CHANGES: [&str; 6] = [
    "router-install",
    "router-run",
    "handler-write",
    "pause",
    "unpause",
    "save",
];

fn bed() -> Testbed {
    let bed = Testbed::start();
    let config = "c :: Counter; Idle -> c -> Discard;";
    let spec = GuestSpec::new(1, &bed.engine_sha256(), config);
    bed.call("create", spec.vif(1).args())
        .expect("it is created");
    bed
}

/// A host to which a client brings the guest, halted.
fn brought() -> (Testbed, Client) {
    let bed = Testbed::start();
    let mut mover = bed.client();
    let spec = GuestSpec::new(
        1,
        &bed.engine_sha256(),
        "c :: Counter; Idle -> c -> Discard;",
    );
    mover
        .call("migrate-receive", spec.vif(1).args())
        .expect("it is made");
    let mut halt = change("router-run");
    halt["run"] = json!(false);
    mover.call("router-run", halt).expect("it is halted");
    (bed, mover)
}

fn arrived() -> Value {
    json!({"uuid": uuid(1), "routers": [0], "timeout_ms": 50_000,
           "changes": {"incarnation": uuid(9), "newest": 7, "applied": [7]}})
}

fn of_guest() -> Value {
    json!({"uuid": uuid(1)})
}

fn timed() -> Value {
    json!({"uuid": uuid(1), "timeout_ms": 50_000})
}

/// The arguments of a change, all of which are right.
fn change(verb: &str) -> Value {
    let mut args = match verb {
        "router-install" => json!({"rid": 1, "config": "Idle;", "config_name": "n"}),
        "router-run" => json!({"rid": 0, "run": true}),
        "handler-write" => json!({"rid": 0, "writes": [["c.count", "1"]]}),
        _ => return of_guest(),
    };
    args["uuid"] = json!(uuid(1));
    args["timeout_ms"] = json!(50_000);
    args
}

/// A write with a number; returns the error's code, or what the guest accepted.
fn numbered(bed: &Testbed, number: u64, incarnation: &Value) -> String {
    let mut args = change("handler-write");
    args["change_id"] = json!({"number": number, "incarnation": incarnation});
    match bed.call("handler-write", args.clone()) {
        Ok(taken) => taken["applied"].to_string(),
        Err(_) => {
            let refused = bed.refused("handler-write", args);
            refused.split(':').next().unwrap_or_default().to_owned()
        }
    }
}

fn state(bed: &Testbed) -> Value {
    let routers = bed
        .call("router-list", of_guest())
        .expect("they are listed");
    routers["routers"][0]["state"].clone()
}

fn wait_running(bed: &Testbed) {
    eventually("it runs again", || (state(bed) == "Running").then_some(()));
}

#[test]
fn a_guest_is_held_for_one_client_until_that_one_has_gone() {
    let bed = bed();
    let mut mover = bed.client();
    let before = mover.call("migrate-begin", timed()).unwrap();
    assert_eq!(before["routers"][0]["state"], "Running");
    assert_eq!(state(&bed), "Halted");
    for verb in CHANGES {
        let error = bed.refused(verb, change(verb));
        assert!(error.starts_with("busy: "), "{verb}: {error}");
    }
    assert!(bed.refused("migrate-begin", timed()).starts_with("busy: "));
    for (verb, args) in [("migrate-commit", of_guest()), ("migrate-cancel", timed())] {
        let error = bed.refused(verb, args);
        assert!(error.contains("not being moved by this client"), "{error}");
    }
    drop(mover);
    wait_running(&bed);
    bed.call("handler-write", change("handler-write")).unwrap();
}

#[test]
fn a_guest_that_has_arrived_elsewhere_stays_halted() {
    let bed = bed();
    let mut mover = bed.client();
    mover.call("migrate-begin", timed()).unwrap();
    mover.call("migrate-commit", of_guest()).unwrap();
    drop(mover);
    eventually("nobody moves it any more", || {
        bed.call("handler-write", change("handler-write")).ok()
    });
    assert_eq!(state(&bed), "Halted");
    let incarnation = bed.call("info", of_guest()).unwrap()["incarnation"].clone();
    assert_eq!(numbered(&bed, 8, &incarnation), "stale");
    bed.call("router-run", change("router-run")).unwrap();
    assert_eq!(state(&bed), "Running");
    assert_eq!(numbered(&bed, 8, &incarnation), "[8]");
}

#[test]
fn a_move_that_is_given_up_leaves_the_guest_as_it_was() {
    let bed = bed();
    let mut mover = bed.client();
    mover.call("migrate-begin", timed()).unwrap();
    mover.call("migrate-cancel", timed()).unwrap();
    assert_eq!(state(&bed), "Running");
    // Given up after it was committed, too.
    mover.call("migrate-begin", timed()).unwrap();
    mover.call("migrate-commit", of_guest()).unwrap();
    mover.call("migrate-cancel", timed()).unwrap();
    assert_eq!(state(&bed), "Running");
    mover.call("migrate-begin", timed()).unwrap();
    mover.call("destroy", of_guest()).unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn a_killed_cosmosd_lets_run_again_what_it_had_halted_for_a_move() {
    for (is_committed, wanted) in [(false, "Running"), (true, "Halted")] {
        let mut bed = bed();
        let mut mover = bed.client();
        mover.call("migrate-begin", timed()).unwrap();
        if is_committed {
            mover.call("migrate-commit", of_guest()).unwrap();
        }
        bed.cosmosd.kill();
        bed.restart_cosmosd();
        eventually("it is let go", || {
            bed.call("handler-write", change("handler-write")).ok()
        });
        assert_eq!(state(&bed), wanted);
    }
}

#[test]
fn a_guest_on_its_way_goes_with_the_client_that_brings_it() {
    let (bed, mover) = brought();
    assert_eq!(bed.call("info", of_guest()).unwrap()["state"], "arriving");
    for (verb, args) in [
        ("pause", of_guest()),
        ("save", of_guest()),
        ("migrate-begin", timed()),
    ] {
        let error = bed.refused(verb, args);
        assert!(error.starts_with("busy: "), "{verb}: {error}");
    }
    let error = bed.refused("migrate-finish", arrived());
    assert!(error.contains("by this client"), "{error}");
    drop(mover);
    eventually("it is gone", || bed.remains().is_empty().then_some(()));
}

#[test]
fn a_guest_that_has_arrived_stays_and_runs() {
    let (mut bed, mut mover) = brought();
    let mut bad = arrived();
    bad["routers"] = json!([0, 64]);
    assert!(mover.call("migrate-finish", bad).is_err());
    assert_eq!(numbered(&bed, 8, &json!(null)), "busy");
    mover.call("migrate-finish", arrived()).unwrap();
    assert_eq!(bed.call("info", of_guest()).unwrap()["state"], "running");
    drop(mover);
    bed.cosmosd.kill();
    bed.restart_cosmosd();
    assert_eq!(state(&bed), "Running");
    assert_eq!(numbered(&bed, 7, &json!(uuid(9))), "stale");
    assert_eq!(numbered(&bed, 8, &json!(uuid(9))), "[7,8]");
    bed.call("pause", of_guest()).unwrap();
}

#[test]
fn a_killed_cosmosd_undoes_what_was_on_its_way() {
    let (mut bed, _mover) = brought();
    bed.cosmosd.kill();
    bed.restart_cosmosd();
    eventually("it is gone", || bed.remains().is_empty().then_some(()));
}
