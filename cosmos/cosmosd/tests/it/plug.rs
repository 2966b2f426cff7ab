// SPDX-License-Identifier: Apache-2.0
//! Interfaces that come and go while their guest runs (docs/adr/0069), on the real store, switch
//! and engine. Needs root and NOXEN_PREFIX.

use std::time::Duration;

use cosmos_testbed::{GuestSpec, TestPort, Testbed, eventually, uuid};
use serde_json::{Value, json};

const ECHO: &str = "FromDevice(0) -> c :: Counter -> Queue -> ToDevice(0);";
const WIRE: &str = "\
FromDevice(0) -> there :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> back :: Counter -> Queue -> ToDevice(0);
";
const A_WHILE: Duration = Duration::from_millis(200);

/// The arguments of `vif-plug` for the interface 1 of a guest.
fn second(spec: &GuestSpec) -> Value {
    let args = spec.clone().vif(2).args();
    json!({"uuid": uuid(1), "vif": args["vifs"][1]})
}

fn install(bed: &Testbed, config: &str) -> Result<Value, String> {
    let args = json!({
        "uuid": uuid(1), "rid": 0, "config": config, "config_name": "x.click",
        "timeout_ms": 50_000,
    });
    bed.call("router-install", args)
        .map_err(|e| format!("{e:?}"))
}

/// Sends a frame until it arrives; a switch that was restarted takes a moment.
fn passes(a: &mut TestPort, b: &mut TestPort) {
    eventually("a frame passes the guest", || {
        a.send(b"there");
        let got = b.receive(A_WHILE)?;
        (got == b"there").then_some(())
    });
}

#[test]
fn a_running_guest_gets_an_interface_and_loses_it() {
    let mut bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), ECHO).vif(1);
    bed.call("create", spec.args()).unwrap();
    assert!(install(&bed, WIRE).is_err());
    for round in 0..3 {
        bed.call("vif-plug", second(&spec)).unwrap();
        assert!(
            bed.refused("vif-plug", second(&spec))
                .starts_with("exists: ")
        );
        let mut vale = bed.vale();
        let mut a = TestPort::add(&mut vale, 1, 1);
        let mut b = TestPort::add(&mut vale, 2, 2);
        install(&bed, WIRE).unwrap();
        passes(&mut a, &mut b);
        if round == 1 {
            bed.cosmosd.kill();
            bed.restart_cosmosd();
            passes(&mut a, &mut b);
        }
        let place = json!({"uuid": uuid(1), "devid": 1});
        bed.call("vif-unplug", place.clone()).unwrap();
        assert!(bed.refused("vif-unplug", place).contains("devid 1"));
        a.send(b"lost");
        a.await_switch(&mut vale);
        // A guest that answers has looked at its rings.
        assert!(install(&bed, WIRE).is_err());
        // one that was sent again may have come late
        let mut received = std::iter::from_fn(|| b.receive(Duration::ZERO));
        assert!(!received.any(|frame| frame == b"lost"));
        install(&bed, ECHO).unwrap();
        for port in ["t1", "t2"] {
            vale.port_remove(&"vale0".parse().unwrap(), &port.parse().unwrap())
                .unwrap();
        }
    }
    bed.call("destroy", json!({"uuid": uuid(1)})).unwrap();
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[test]
fn an_interface_that_came_later_outlives_valed() {
    let mut bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), ECHO).vif(1);
    bed.call("create", spec.args()).unwrap();
    bed.call("vif-plug", second(&spec)).unwrap();
    install(&bed, WIRE).unwrap();
    bed.valed.kill();
    bed.restart_vale();
    eventually("both ports are back", || {
        let ports = bed.vale().port_list(None).ok()?;
        (ports.len() == 2).then_some(())
    });
    let mut vale = bed.vale();
    let mut a = TestPort::add(&mut vale, 1, 1);
    let mut b = TestPort::add(&mut vale, 2, 2);
    passes(&mut a, &mut b);
}

#[test]
fn all_sixteen_interfaces_come_and_go_without_a_leak() {
    let bed = Testbed::start();
    let spec = GuestSpec::new(1, &bed.engine_sha256(), ECHO).vif(1);
    let domid = bed.call("create", spec.args()).unwrap()["domid"].as_u64();
    let pid = bed.guest_pid(domid.unwrap()).unwrap();
    let proc = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let room_kib = || {
        let status = proc("status");
        let line = status.lines().find(|l| l.starts_with("VmSize"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap()
    };
    let descriptors = || {
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count()
    };
    let before = (room_kib(), descriptors());
    let all = (1..16).fold(spec.clone(), |spec, _| spec.vif(2)).args();
    for _ in 0..2 {
        for devid in 1..16 {
            let args = json!({"uuid": uuid(1), "vif": all["vifs"][devid]});
            bed.call("vif-plug", args).unwrap();
        }
        let mut more = all["vifs"][15].clone();
        more["devid"] = json!(16);
        more["port"] = json!("more");
        let args = json!({"uuid": uuid(1), "vif": more});
        assert!(bed.refused("vif-plug", args).starts_with("too-many: "));
        install(&bed, &ECHO.replace("(0);", "(15);")).unwrap();
        install(&bed, ECHO).unwrap();
        for devid in 1..16 {
            let place = json!({"uuid": uuid(1), "devid": devid});
            bed.call("vif-unplug", place).unwrap();
        }
        eventually("the guest has what it had before", || {
            // The heap may grow by less than the rings of one interface.
            let is_free = room_kib() < before.0 + 1024;
            (is_free && descriptors() == before.1).then_some(())
        });
    }
}
