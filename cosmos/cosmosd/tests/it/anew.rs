// SPDX-License-Identifier: Apache-2.0
//! A Xen store that is killed and begins again below running guests. Needs root and NOXEN_PREFIX.

use cosmos_testbed::{GuestSpec, Testbed, eventually, kill, uuid};
use rustix::process::Signal;
use serde_json::{Value, json};

const GUESTS: u16 = 3;
/// Time for an answer that a stopped guest does not give.
const BRIEF_MS: u64 = 300;
const CONFIG: &str = "fw :: IPFilter(allow all); Idle -> fw -> Discard;";

fn info(bed: &Testbed, n: u16) -> Value {
    let info = bed.call("info", json!({"uuid": uuid(n)}));
    info.expect("the guest is listed")
}

fn wait_for_state(bed: &Testbed, n: u16, state: &str) {
    eventually(&format!("guest {n} is {state}"), || {
        (info(bed, n)["state"] == state).then_some(())
    });
}

fn read(bed: &Testbed, n: u16) -> String {
    let args = json!({"uuid": uuid(n), "rid": 0, "name": "fw.config"});
    let answer = bed.call("handler-read", args).expect("the guest answers");
    answer["value"].as_str().expect("text").trim().to_owned()
}

fn write_args(n: u16, rule: &str) -> Value {
    json!({"uuid": uuid(n), "rid": 0, "timeout_ms": 50_000, "writes": [["fw.config", rule]]})
}

fn guests() -> Testbed {
    let bed = Testbed::start();
    for n in 1..=GUESTS {
        let spec = GuestSpec::new(n, &bed.engine_sha256(), CONFIG);
        bed.call("create", spec.vif(1).args()).expect("a guest");
    }
    bed
}

fn destroy(bed: &Testbed) {
    for n in 1..=GUESTS {
        bed.call("destroy", json!({"uuid": uuid(n)})).unwrap();
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn guests_answer_and_take_writes_again_after_each_new_store() {
    let mut bed = guests();
    let processes = bed.guest_processes();
    for round in 1..=2 {
        let rule = |n: u16| format!("allow dst host 10.0.{round}.{n}");
        for n in 1..=GUESTS {
            bed.call("handler-write", write_args(n, &rule(n))).unwrap();
        }
        let before = bed.call("router-list", json!({"uuid": uuid(1)})).unwrap();
        let mut events = bed.client().events().unwrap();
        bed.kill_store();
        for n in 1..=GUESTS {
            wait_for_state(&bed, n, "unreachable");
            let error = bed.refused("handler-write", write_args(n, "deny all"));
            assert!(error.starts_with("dead-guest: guest "), "{error}");
            assert!(error.contains("is unreachable: xenstored"), "{error}");
        }
        bed.restart_store();
        for n in 1..=GUESTS {
            wait_for_state(&bed, n, "running");
            // Acknowledged before, so it is what runs.
            assert_eq!(read(&bed, n), rule(n));
            let routers = bed.call("router-list", json!({"uuid": uuid(n)})).unwrap();
            assert_eq!(routers, before);
        }
        let mut told = Vec::new();
        while told.len() < 2 * usize::from(GUESTS) {
            let event = events.next_event().unwrap();
            if event.event == "guest" {
                told.push((event.data["state"].clone(), event.data["uuid"].clone()));
            }
        }
        for state in ["unreachable", "running"] {
            let of = told.iter().filter(|(told, _)| *told == state);
            assert_eq!(of.count(), usize::from(GUESTS), "{told:?}");
        }
    }
    let config = json!({
        "uuid": uuid(1), "rid": 0, "config": "c :: Counter; Idle -> c -> Discard;",
        "config_name": "new.click", "timeout_ms": 50_000,
    });
    bed.call("router-install", config).unwrap();
    assert_eq!(bed.guest_processes(), processes);
    destroy(&bed);
}

#[test]
fn guests_outlive_a_store_and_a_toolstack_that_are_killed_at_once() {
    let mut bed = guests();
    bed.cosmosd.kill();
    bed.restart_store();
    bed.restart_cosmosd();
    for n in 1..=GUESTS {
        wait_for_state(&bed, n, "running");
        bed.call("handler-write", write_args(n, "deny all"))
            .unwrap();
        assert_eq!(read(&bed, n), "deny all");
    }
    // While there is no store, a new toolstack knows of the guests all the same.
    bed.kill_store();
    bed.restart_cosmosd();
    for n in 1..=GUESTS {
        wait_for_state(&bed, n, "unreachable");
    }
    bed.restart_store();
    for n in 1..=GUESTS {
        wait_for_state(&bed, n, "running");
        assert_eq!(read(&bed, n), "deny all");
    }
    destroy(&bed);
}

/// One guest is stopped, so the change does not come to it before the store is gone.
#[test]
fn a_change_under_way_ends_with_a_verdict_and_a_stopped_guest_holds_up_no_other() {
    let mut bed = guests();
    let domid = info(&bed, 1)["domid"].as_u64().unwrap();
    let pid = bed.guest_pid(domid).unwrap();
    kill(pid, Signal::STOP);
    let mut late = write_args(1, "deny all");
    late["change_id"] = json!({"number": 5});
    late["timeout_ms"] = BRIEF_MS.into();
    bed.refused("handler-write", late);
    let fence = |bed: &Testbed| {
        let args = json!({"uuid": uuid(1), "number": 5});
        bed.call("change-fence", args).unwrap()
    };
    assert_eq!(fence(&bed)["pending"], json!([5]));
    wait_for_state(&bed, 1, "paused");
    bed.restart_store();
    for n in 2..=GUESTS {
        wait_for_state(&bed, n, "running");
        assert_eq!(read(&bed, n), "allow all");
    }
    kill(pid, Signal::CONT);
    wait_for_state(&bed, 1, "running");
    let verdict = fence(&bed);
    assert_eq!(verdict["pending"], json!([]), "{verdict}");
    assert_eq!(verdict["refused"][0]["number"], 5, "{verdict}");
    assert_eq!(read(&bed, 1), "allow all");
    destroy(&bed);
}

#[test]
fn guests_are_made_and_destroyed_while_a_store_begins_anew() {
    let mut bed = guests();
    bed.restart_store();
    let spec = GuestSpec::new(GUESTS + 1, &bed.engine_sha256(), CONFIG);
    bed.call("create", spec.vif(1).args()).unwrap();
    for n in [1, GUESTS + 1] {
        bed.call("destroy", json!({"uuid": uuid(n)})).unwrap();
    }
    destroy(&bed);
}
