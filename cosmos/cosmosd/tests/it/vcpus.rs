// SPDX-License-Identifier: Apache-2.0
//! Guests with several VCPUs, on the real store, switch and engine. Needs root and NOXEN_PREFIX.

use cosmos_testbed::{GuestSpec, PATIENCE, TestPort, Testbed, uuid};
use serde_json::{Value, json};

const WORK: &str = "\
work :: { input -> there :: Counter -> output };
FromDevice(0) -> work -> Queue -> ToDevice(1);
FromDevice(1) -> Discard;
FlowThreadSched(work);
";

fn spec(bed: &Testbed, vcpus: u64) -> Value {
    let guest = GuestSpec::new(1, &bed.engine_sha256(), WORK).vif(1).vif(2);
    let mut args = guest.args();
    args["vcpus"] = json!(vcpus);
    args
}

/// A UDP packet from this port, in a frame of the first port of the switch.
fn frame(port: u16) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend([&port.to_be_bytes()[..], &[0, 80, 0, 26, 0, 0], &[7; 18]].concat());
    frame
}

fn read(bed: &Testbed, name: &str) -> u64 {
    let args = json!({"uuid": uuid(1), "rid": 0, "name": name});
    let value = bed.call("handler-read", args).unwrap();
    value["value"].as_str().unwrap().trim().parse().unwrap()
}

fn threads(bed: &Testbed) -> Value {
    bed.call("info", json!({"uuid": uuid(1)})).unwrap()["vcpus"].clone()
}

#[test]
fn a_guest_forwards_on_both_of_its_vcpus_also_after_a_restart_of_cosmosd() {
    let mut bed = Testbed::start();
    let mut vale = bed.vale();
    let mut a = TestPort::add(&mut vale, 1, 1);
    let mut b = TestPort::add(&mut vale, 2, 2);
    bed.call("create", spec(&bed, 2)).unwrap();
    for port in 1..41 {
        a.send_frame(&frame(port));
    }
    for _ in 1..41 {
        assert!(b.receive(PATIENCE).is_some());
    }
    let counts = [0, 1].map(|thread| read(&bed, &format!("work@{thread}/there.count")));
    assert_eq!(counts.iter().sum::<u64>(), 40);
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    bed.restart_cosmosd();
    assert_eq!(threads(&bed), json!(2));
    assert_eq!(read(&bed, "work/there.count"), 40);
    let host = bed.call("host", json!({})).unwrap();
    assert_eq!(
        (&host["max_vcpus"], &host["vcpus_used"]),
        (&json!(8), &json!(2))
    );
    // a live change keeps what was counted
    let install = json!({"uuid": uuid(1), "rid": 0, "config": format!("{WORK}Idle -> Discard;"),
                         "config_name": "test.click"});
    bed.call("router-install", install).unwrap();
    a.send_frame(&frame(1));
    assert_eq!(b.receive(PATIENCE).as_deref(), Some(&frame(1)[14..]));
    assert_eq!(read(&bed, "work/there.count"), 41);
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
}

#[test]
fn the_number_of_vcpus_is_bounded_and_changes_with_a_restart_of_the_guest() {
    let bed = Testbed::start();
    for (vcpus, words) in [(0, "expected 1 to 8, got 0"), (9, "expected 1 to 8, got 9")] {
        let error = bed.refused("create", spec(&bed, vcpus));
        assert!(
            error.starts_with("bad-request: ") && error.contains(words),
            "{error}"
        );
    }
    bed.call("create", spec(&bed, 1)).unwrap();
    assert_eq!(threads(&bed), json!(1));
    let mut again = spec(&bed, 3);
    again["replace"] = json!(true);
    bed.call("create", again).unwrap();
    assert_eq!(threads(&bed), json!(3));
}

#[test]
fn a_processor_binds_all_threads_of_a_guest() {
    let bed = Testbed::start();
    bed.call("create", spec(&bed, 2)).unwrap();
    let cpu = json!({"pin": 0, "weight": 256, "cap_percent": 150});
    bed.call("cpu", json!({"uuid": uuid(1), "cpu": cpu}))
        .unwrap();
    let info = bed.call("info", json!({"uuid": uuid(1)})).unwrap();
    let pid = bed.guest_pid(info["domid"].as_u64().unwrap()).unwrap();
    let mut threads = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        threads += 1;
    }
    assert_eq!(threads, 2);
}

#[test]
fn a_guest_that_moves_here_has_the_vcpus_it_had() {
    let bed = Testbed::start();
    let mut mover = bed.client();
    let mut args = spec(&bed, 2);
    args["config"] = json!("Idle -> Discard;");
    mover.call("migrate-receive", args).unwrap();
    let halt = json!({"uuid": uuid(1), "rid": 0, "run": false, "timeout_ms": 50_000});
    mover.call("router-run", halt).unwrap();
    let install = json!({"uuid": uuid(1), "rid": 0, "config": WORK, "config_name": "test.click",
                         "halted": true, "timeout_ms": 50_000});
    mover.call("router-install", install).unwrap();
    let arrive = json!({"uuid": uuid(1), "routers": [0], "timeout_ms": 50_000,
                        "changes": {"incarnation": uuid(9), "newest": 7, "applied": [7]}});
    mover.call("migrate-finish", arrive).unwrap();
    assert_eq!(threads(&bed), json!(2));
    assert_eq!(read(&bed, "work@1/there.count"), 0);
}
