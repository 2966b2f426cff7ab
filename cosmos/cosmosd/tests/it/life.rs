// SPDX-License-Identifier: Apache-2.0
//! A guest's life on the real store, switch and engine. Needs root and NOXEN_PREFIX.

use std::time::Duration;

use cosmos_testbed::cgroup::{group_of, read};
use cosmos_testbed::{GuestSpec, PATIENCE, TestPort, Testbed, eventually, uuid};
use serde_json::json;

/// Between segments 1 and 2, both ways, with counters.
const WIRE: &str = "\
FromDevice(0) -> there :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> back :: Counter -> Queue -> ToDevice(0);
";
/// A filter with a rule to change.
const FIREWALL: &str = "\
FromDevice(0) -> Strip(14) -> fw :: IPFilter(allow all) -> Unstrip(14) -> Queue -> ToDevice(1);
FromDevice(1) -> Discard;
Idle -> flows :: IPRewriter(drop) -> Discard;
";
fn wire(bed: &Testbed, n: u16) -> GuestSpec {
    GuestSpec::new(n, &bed.engine_sha256(), WIRE).vif(1).vif(2)
}

#[test]
fn traffic_passes_a_wire_and_nothing_is_left_of_it() {
    let bed = Testbed::start();
    let mut vale = bed.vale();
    let (mut a, mut b) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 2),
    );
    a.send(b"nobody listens yet");
    a.await_switch(&mut vale);
    assert_eq!(b.receive(Duration::ZERO), None);

    let created = bed.call("create", wire(&bed, 1).args()).unwrap();
    assert_eq!(created["domid"], json!(1));
    assert_eq!(created["steps_ms"][0][0], json!("turn"));
    a.send(b"there");
    assert_eq!(b.receive(PATIENCE).as_deref(), Some(&b"there"[..]));
    b.send(b"back");
    assert_eq!(a.receive(PATIENCE).as_deref(), Some(&b"back"[..]));
    let count = bed.call(
        "handler-read",
        json!({"uuid": uuid(1), "rid": 0, "name": "there.count"}),
    );
    assert_eq!(count.unwrap()["value"].as_str().unwrap().trim(), "1");
    let info = bed.call("info", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(
        (&info["state"], &info["vifs"][1]["port"]),
        (&json!("running"), &json!("g1-1"))
    );

    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    for port in ["t1", "t2"] {
        vale.port_remove(&"vale0".parse().unwrap(), &port.parse().unwrap())
            .unwrap();
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
}

#[test]
fn a_paused_guest_forwards_nothing_until_it_goes_on() {
    let bed = Testbed::start();
    let mut vale = bed.vale();
    let (mut a, mut b) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 2),
    );
    bed.call("create", wire(&bed, 1).args()).unwrap();
    bed.call("pause", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(
        bed.call("info", json!({"uuid": uuid(1)})).unwrap()["state"],
        "paused"
    );
    let read = json!({"uuid": uuid(1), "rid": 0, "name": "there.count"});
    let error = bed.refused("handler-read", read);
    assert!(
        error.starts_with("dead-guest: ") && error.contains("is paused"),
        "{error}"
    );
    a.send(b"x");
    a.await_switch(&mut vale);
    assert_eq!(b.receive(Duration::ZERO), None);
    bed.call("unpause", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(b.receive(PATIENCE).as_deref(), Some(&b"x"[..]));
}

#[test]
fn what_the_guest_refuses_is_told_verbatim_and_leaves_nothing() {
    let bed = Testbed::start();
    let mut bad = wire(&bed, 1);
    bad.config = "FromDevice(0) -> Discard;\nx :: NoSuchClass;\n".into();
    let error = bed.refused("create", bad.args());
    assert!(error.starts_with("bad-config: test.click:2:"), "{error}");
    assert!(error.contains("NoSuchClass"), "{error}");
    assert_eq!(bed.remains(), Vec::<String>::new());

    let error = bed.refused("create", wire(&bed, 1).write("there.nonsense", "1").args());
    assert!(error.starts_with("no-such-handler: "), "{error}");
    assert_eq!(bed.remains(), Vec::<String>::new());

    let mut wrong = wire(&bed, 1);
    wrong.image_sha256 = "0".repeat(64);
    let error = bed.refused("create", wrong.args());
    assert!(
        error.starts_with("bad-image: ") && error.contains(&bed.engine_sha256()),
        "{error}"
    );
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn handlers_are_written_together_or_not_at_all() {
    let bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), FIREWALL)
        .vif(1)
        .vif(2);
    bed.call(
        "create",
        spec.write("fw.config", "allow icmp, deny all").args(),
    )
    .unwrap();
    let rules = || {
        let read = json!({"uuid": uuid(1), "rid": 0, "name": "fw.config"});
        bed.call("handler-read", read).unwrap()["value"]
            .as_str()
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(rules(), "allow icmp, deny all");
    let write = |writes: serde_json::Value| json!({"uuid": uuid(1), "rid": 0, "writes": writes, "timeout_ms": 50_000});
    let half = write(json!([
        ["fw.config", "deny all"],
        ["fw.config", "allow nonsense"]
    ]));
    let error = bed.refused("handler-write", half);
    assert!(error.starts_with("handler-error: "), "{error}");
    assert_eq!(rules(), "allow icmp, deny all");
    bed.call("handler-write", write(json!([["fw.config", "deny all"]])))
        .unwrap();
    assert_eq!(rules(), "deny all");

    let refused = |name: &str| {
        let read = json!({"uuid": uuid(1), "rid": 0, "name": name});
        bed.refused("handler-read", read)
    };
    assert!(refused("nobody.config").starts_with("no-such-element: "));
    assert!(refused("fw.nonsense").starts_with("no-such-handler: "));
    let part =
        |param: &str| json!({"uuid": uuid(1), "rid": 0, "name": "flows.state", "param": param});
    let none = bed.call("handler-read", part("0")).unwrap();
    assert_eq!(none["value"], "", "the part of a table without flows");
    assert!(
        bed.refused("handler-read", part("x"))
            .starts_with("handler-error: ")
    );
    let error = bed.refused("handler-read", part(&"1".repeat(256)));
    assert!(
        error.contains("handler-read: param: expected at most 255"),
        "{error}"
    );
    let list = bed
        .call("handler-list", json!({"uuid": uuid(1), "rid": 0}))
        .unwrap();
    let handlers = list["handlers"].as_array().unwrap();
    assert!(
        handlers.contains(&json!({"name": "fw.config", "read": true, "write": true})),
        "{list}"
    );
}

#[test]
fn a_router_that_does_not_start_leaves_the_old_one_running() {
    let bed = Testbed::start();
    let mut vale = bed.vale();
    let (mut a, mut b) = (
        TestPort::add(&mut vale, 1, 1),
        TestPort::add(&mut vale, 2, 2),
    );
    bed.call("create", wire(&bed, 1).args()).unwrap();
    let install = |config: &str| {
        json!({
            "uuid": uuid(1), "rid": 0, "config": config, "config_name": "new.click",
            "timeout_ms": 50_000,
        })
    };
    let error = bed.refused("router-install", install("FromDevice(0) -> NoSuchClass;"));
    assert!(error.starts_with("bad-config: new.click:1:"), "{error}");
    a.send(b"still");
    assert_eq!(b.receive(PATIENCE).as_deref(), Some(&b"still"[..]));
    // Longer than one value of the store.
    let long = format!(
        "{}// {}\n",
        WIRE.replace("there", "thither"),
        "x".repeat(20_000)
    );
    let answer = bed.call("router-install", install(&long)).unwrap();
    assert_eq!(answer, json!({"generation": 3}));
    let read = json!({"uuid": uuid(1), "rid": 0, "name": "thither.count"});
    bed.call("handler-read", read).unwrap();
    a.send(b"new");
    assert_eq!(b.receive(PATIENCE).as_deref(), Some(&b"new"[..]));
    assert_eq!(
        bed.call("info", json!({"uuid": uuid(1)})).unwrap()["config_name"],
        "new.click"
    );
}

#[test]
fn a_guest_is_confined_and_its_processor_time_counted() {
    let bed = Testbed::start();
    bed.call("create", wire(&bed, 1).args()).unwrap();
    let pid = bed.guest_pid(1).expect("it runs with its own uid");
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let console = limits
        .lines()
        .find(|line| line.starts_with("Max file size"))
        .unwrap();
    assert!(console.contains("1048576"), "{console}");
    let spent = || {
        let info = bed.call("info", json!({"uuid": uuid(1)})).unwrap();
        info["cpu_time_ns"].as_u64().filter(|ns| *ns > 0)
    };
    let mut vale = bed.vale();
    let mut a = TestPort::add(&mut vale, 1, 1);
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], b"work"].concat();
    eventually("processor time is counted", || {
        while a.try_send_frame(&frame) {}
        spent()
    });
    let console = bed
        .call("console", json!({"uuid": uuid(1), "max_bytes": 1000}))
        .unwrap();
    assert!(console["text"].is_string());
}

#[test]
fn a_guest_has_a_share_of_processors_and_bounded_memory() {
    let mut bed = Testbed::start();
    let domid = bed.call("create", wire(&bed, 1).args()).unwrap()["domid"].as_u64();
    let pid = bed.guest_pid(domid.unwrap()).unwrap();
    let (cpu, memory) = (group_of(pid, "cpu"), group_of(pid, "memory"));
    assert!(cpu.ends_with(uuid(1)), "{}", cpu.display());
    let weight = || read(&cpu, &["cpu.weight", "cpu.shares"]);
    assert!(["100", "1024"].contains(&&*weight()), "{}", weight());
    let bytes: u64 = read(&memory, &["memory.max", "memory.limit_in_bytes"])
        .parse()
        .unwrap();
    assert!((16 << 20..32 << 20).contains(&bytes), "{bytes}");

    let share = json!({"pin": 0, "weight": 512, "cap_percent": 25});
    bed.call("cpu", json!({"uuid": uuid(1), "cpu": share}))
        .unwrap();
    assert!(["200", "2048"].contains(&&*weight()), "{}", weight());
    let cap = read(&cpu, &["cpu.max", "cpu.cfs_quota_us"]);
    assert!(["2500 10000", "2500"].contains(&&*cap), "{cap}");
    let pin = json!({"pin": 4000, "weight": 512, "cap_percent": 0});
    let error = bed.refused("cpu", json!({"uuid": uuid(1), "cpu": pin}));
    assert!(
        error.starts_with("bad-request: cpu: pin: expected 0 to"),
        "{error}"
    );

    bed.cosmosd.kill();
    bed.restart_cosmosd();
    assert!(cpu.is_dir(), "a guest that runs keeps its group");
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}
