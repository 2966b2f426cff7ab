// SPDX-License-Identifier: Apache-2.0
//! Guests and daemons that die, at any moment. Needs root and NOXEN_PREFIX.

use std::path::Path;
use std::time::{Duration, Instant};

use cosmos_testbed::{GuestSpec, PATIENCE, TestPort, Testbed, eventually, kill, uuid};
use rustix::process::Signal;
use serde_json::{Value, json};

const WIRE: &str = "\
FromDevice(0) -> there :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> Discard;
";

/// How often a creation is cut short, from its begin to half its time after its end.
const MOMENTS: u32 = 24;

/// Forwards nothing, but has two ports.
fn idle(bed: &Testbed, n: u16) -> Value {
    let config = "there :: Counter; Idle -> there -> Discard;";
    GuestSpec::new(n, &bed.engine_sha256(), config)
        .vif(1)
        .vif(2)
        .args()
}

fn wire(bed: &Testbed, n: u16) -> Value {
    GuestSpec::new(n, &bed.engine_sha256(), WIRE)
        .vif(1)
        .vif(2)
        .args()
}

fn info(bed: &Testbed, n: u16) -> Value {
    bed.call("info", json!({"uuid": uuid(n)}))
        .expect("the guest is listed")
}

fn crashed(bed: &Testbed, n: u16) -> Option<Value> {
    Some(info(bed, n)).filter(|info| info["state"] == "crashed")
}

#[test]
fn subscribers_hear_of_a_guest_that_all_verbs_find() {
    let bed = Testbed::start();
    let mut events = bed.client().events().unwrap();
    for n in 1..=10 {
        bed.call("create", idle(&bed, n)).unwrap();
        let state = loop {
            let event = events.next_event().unwrap();
            if event.data["uuid"] == uuid(n) {
                break event.data["state"].clone();
            }
        };
        assert_eq!(state, "Running");
        assert_eq!(info(&bed, n)["state"], "running");
    }
}

#[test]
fn a_killed_guest_is_noticed_and_releases_everything() {
    let bed = Testbed::start();
    let mut events = bed.client().events().unwrap();
    bed.call("create", idle(&bed, 1)).unwrap();
    let pid = bed.guest_pid(1).unwrap();
    kill(pid, Signal::KILL);
    let died = loop {
        let event = events.next_event().unwrap();
        if event.event == "died" {
            break event.data;
        }
    };
    assert_eq!(died["uuid"], uuid(1));
    assert!(
        died["reason"]
            .as_str()
            .unwrap()
            .contains("signal 9 (SIGKILL)"),
        "{died}"
    );
    assert_eq!(info(&bed, 1)["state"], "crashed");
    eventually("its ports are gone", || {
        bed.vale().port_list(None).unwrap().is_empty().then_some(())
    });
    let read = json!({"uuid": uuid(1), "rid": 0, "name": "there.count"});
    assert!(
        bed.refused("handler-read", read)
            .starts_with("dead-guest: ")
    );
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
    assert!(
        !Path::new(&format!("/proc/{pid}")).exists(),
        "it was not reaped"
    );
    bed.call("create", idle(&bed, 1)).unwrap();
}

#[test]
fn guests_survive_cosmosd() {
    let mut bed = Testbed::start();
    let mut vale = bed.vale();
    let (mut a, mut b) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 2),
    );
    bed.call("create", wire(&bed, 1)).unwrap();
    bed.call(
        "create",
        GuestSpec::new(2, &bed.engine_sha256(), "Idle -> Discard;").args(),
    )
    .unwrap();
    bed.call("pause", json!({"uuid": uuid(2)})).unwrap();
    let pid = bed.guest_pid(1).unwrap();
    for end in ["killed", "stopped"] {
        if end == "killed" {
            bed.cosmosd.kill()
        } else {
            bed.cosmosd.stop()
        }
        a.send(end.as_bytes());
        assert_eq!(b.receive(PATIENCE).as_deref(), Some(end.as_bytes()));
        bed.restart_cosmosd();
        assert_eq!(bed.guest_pid(1), Some(pid));
        assert_eq!(info(&bed, 1)["state"], "running");
        assert_eq!(info(&bed, 2)["state"], "paused");
    }
    let read = json!({"uuid": uuid(1), "rid": 0, "name": "there.count"});
    assert_eq!(
        bed.call("handler-read", read).unwrap()["value"]
            .as_str()
            .unwrap()
            .trim(),
        "2"
    );
    kill(pid, Signal::KILL);
    let reason = eventually("its death is noticed", || crashed(&bed, 1))["reason"].clone();
    assert!(
        reason.as_str().unwrap().contains("status unknown"),
        "{reason}"
    );

    bed.cosmosd.kill();
    kill(bed.guest_pid(2).unwrap(), Signal::KILL);
    bed.restart_cosmosd();
    let reason = eventually("its death is found", || crashed(&bed, 2))["reason"].clone();
    assert!(
        reason
            .as_str()
            .unwrap()
            .contains("while cosmosd was not running"),
        "{reason}"
    );
    for n in 1..=2 {
        bed.call("destroy", json!({"uuid": uuid(n)})).unwrap();
    }
    for port in ["t1", "t2"] {
        vale.port_remove(&"vale0".parse().unwrap(), &port.parse().unwrap())
            .unwrap();
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
}

/// Kills cosmosd at moments all over a creation: afterwards the guest is complete or gone.
#[test]
fn a_creation_cut_short_leaves_nothing() {
    let mut bed = Testbed::start();
    let args = idle(&bed, 1);
    let begun = Instant::now();
    bed.call("create", args.clone()).unwrap();
    let whole = begun.elapsed();
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    let (mut complete, mut undone) = (0, 0);
    for moment in 0..MOMENTS {
        let (mut client, request) = (bed.client(), args.clone());
        let client = std::thread::spawn(move || client.call("create", request));
        // The last creation is whole, also on a machine that has become slow.
        if moment + 1 < MOMENTS {
            std::thread::sleep(whole * moment * 3 / (2 * MOMENTS));
            bed.cosmosd.kill();
        }
        let answered = client.join().unwrap().is_ok();
        bed.restart_cosmosd();
        let list = bed.call("list", json!({})).unwrap();
        match list["guests"].as_array().unwrap().as_slice() {
            [] => {
                assert!(!answered, "an answered guest is gone");
                undone += 1;
            }
            [guest] => {
                assert_eq!(guest["state"], "running", "{guest}");
                bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
                complete += 1;
            }
            more => panic!("{more:?}"),
        }
        eventually("nothing is left", || bed.remains().is_empty().then_some(()));
    }
    assert!(
        undone > 0 && complete > 0,
        "{undone} undone, {complete} complete"
    );
}

/// The same for the other end of life.
#[test]
fn a_destruction_cut_short_is_completed() {
    let mut bed = Testbed::start();
    for moment in 0..12 {
        bed.call("create", idle(&bed, 1)).unwrap();
        let mut client = bed.client();
        let client = std::thread::spawn(move || client.call("destroy", json!({"uuid": uuid(1)})));
        std::thread::sleep(Duration::from_micros(500 * moment));
        bed.cosmosd.kill();
        let _ = client.join().unwrap();
        bed.restart_cosmosd();
        bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
        eventually("nothing is left", || bed.remains().is_empty().then_some(()));
    }
}

#[test]
fn ports_are_removed_when_a_switch_that_was_away_answers_again() {
    let bed = Testbed::start();
    bed.call("create", idle(&bed, 1)).unwrap();
    let (socket, away) = (bed.path("valed.sock"), bed.path("away.sock"));
    std::fs::rename(&socket, &away).unwrap();
    let error = bed.refused("destroy", json!({"uuid": uuid(1)}));
    assert!(error.starts_with("switch: "), "{error}");
    assert_eq!(info(&bed, 1)["state"], "error");
    assert_eq!(bed.guest_processes(), Vec::<i32>::new());
    std::fs::rename(&away, &socket).unwrap();
    assert_eq!(bed.vale().port_list(None).unwrap().len(), 2);
    eventually("the ports go", || bed.remains().is_empty().then_some(()));
}

#[test]
fn a_removed_port_forwards_nothing_and_is_free_for_others() {
    let mut bed = Testbed::start();
    let mut vale = bed.vale();
    let (mut a, mut b) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 2),
    );
    bed.call("create", wire(&bed, 1)).unwrap();
    a.send(b"before");
    assert_eq!(b.receive(PATIENCE).as_deref(), Some(&b"before"[..]));
    bed.call("vif-remove", json!({"uuid": uuid(1), "devid": 0}))
        .unwrap();
    bed.cosmosd.kill();
    bed.restart_cosmosd();
    assert_eq!(info(&bed, 1)["state"], "running");
    // Another guest gets the name, the segment and the MAC of the port.
    let mut other = wire(&bed, 2);
    let first = info(&bed, 1)["vifs"][0].clone();
    for key in ["port", "mac", "segment"] {
        other["vifs"][0][key] = first[key].clone();
    }
    bed.call("create", other).unwrap();
    let count = |n: u16| {
        let read = json!({"uuid": uuid(n), "rid": 0, "name": "there.count"});
        bed.call("handler-read", read).unwrap()["value"].clone()
    };
    // The sender's MAC came from the first guest: it belongs to that port for a second.
    eventually("the other guest forwards", || {
        a.send(b"after");
        b.receive(Duration::from_millis(50))
    });
    assert_eq!(count(1), json!("1"));
    assert_ne!(count(2), json!("0"));
    for n in 1..=2 {
        bed.call("destroy", json!({"uuid": uuid(n)})).unwrap();
    }
    let left = vale.port_list(None).unwrap();
    assert_eq!(left.len(), 2, "only the test's own ports are left");
}
