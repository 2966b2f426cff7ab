// SPDX-License-Identifier: Apache-2.0
//! What an operator asked for is there again after valed was killed.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use vale_proto::{FarEnd, Keep, KeptInfo, Owner};

use crate::common::{Guest, Namespace, Valed, eventually, ok};

fn keep(valed: &Valed, verb: &str, args: Value) -> Result<Option<String>, String> {
    let request: Keep = serde_json::from_value(json!({"verb": verb, "args": args})).unwrap();
    valed.client().keep(&request).map_err(|e| e.to_string())
}

/// A port of the switch `vale0` as an operator attaches it.
fn keep_port(valed: &Valed, port: &str, extra: Value) -> Result<Option<String>, String> {
    let mut args = json!({"switch": "vale0", "port": port, "kind": "veth", "ifname": port,
        "segment": 1, "port_security": false});
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
    keep(valed, "port-add", args)
}

fn at(port: &str, extra: Value) -> Value {
    let mut args = json!({"switch": "vale0", "port": port});
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
    args
}

/// A machine whose `eth0` is the other end of an interface of valed's host.
fn machine(valed: &Valed, ifname: &str, last: u8) -> Namespace {
    let namespace = Namespace::new();
    let peer = &namespace.0;
    valed.namespace.ip(&format!(
        "link add name {ifname} type veth peer name eth0 address 02:00:00:00:00:{last:02x} netns {peer}"
    ));
    valed.namespace.ip(&format!("link set dev {ifname} up"));
    namespace.ip(&format!("addr add 10.7.0.{last}/24 dev eth0"));
    namespace.ip("link set eth0 up");
    namespace
}

fn kept(valed: &Valed) -> Vec<KeptInfo> {
    valed.client().kept_list().unwrap().kept
}

fn waiting(valed: &Valed) -> Vec<String> {
    kept(valed).into_iter().filter_map(|k| k.waits).collect()
}

fn await_all(valed: &Valed) {
    eventually("all is in force", || waiting(valed).is_empty());
}

fn state_file(valed: &Valed) -> PathBuf {
    valed.dir.path().join("state/kept.json")
}

#[test]
fn endpoints_an_uplink_a_mirror_and_rules_are_back_after_a_kill() {
    let (mut valed, other) = (Valed::start(), Valed::start());
    let peer = &other.namespace.0;
    valed.namespace.ip(&format!(
        "link add name nic type veth peer name nic netns {peer}"
    ));
    for host in [&valed, &other] {
        host.namespace.ip("link set dev nic up");
        let up = json!({"ifname": "nic", "vlan": 101});
        assert_eq!(keep_port(host, "up", up), Ok(None));
    }
    let mac = |last: u8| json!({"mac": format!("02:00:00:00:00:{last:02x}")});
    let (a, _b) = (machine(&valed, "a", 1), machine(&valed, "b", 2));
    let far = machine(&other, "far", 3);
    keep_port(&valed, "a", mac(1)).unwrap();
    keep_port(&valed, "b", mac(2)).unwrap();
    keep_port(&other, "far", mac(3)).unwrap();
    // Without a MAC address a port gets flooded frames, and here the copies.
    let monitor = machine(&valed, "mon", 9);
    keep_port(&valed, "mon", json!({"segment": 2})).unwrap();
    let mirror = json!({"switch": "vale0", "mirror": "m", "port": "a", "to_port": "mon"});
    assert_eq!(keep(&valed, "mirror-set", mirror), Ok(None));
    let rules = json!({"owner": "operator", "rules": ["drop proto 17 dport 53"]});
    assert_eq!(keep(&valed, "offload-set", at("b", rules)), Ok(None));
    let limits = json!({"limits": {"group_per_s": 500}});
    assert_eq!(keep(&valed, "port-limit", at("a", limits)), Ok(None));
    let segment = json!({"switch": "vale0", "segment": 1, "limits": {"unknown_per_s": 7}});
    assert_eq!(keep(&valed, "segment-limit", segment), Ok(None));
    let before = kept(&valed);
    assert_eq!(before.len(), 8);

    valed.kill_and_restart();
    await_all(&valed);
    assert_eq!(kept(&valed), before);
    a.assert_answers("10.7.0.2", 5);
    a.assert_answers("10.7.0.3", 5);
    far.assert_answers("10.7.0.2", 5);
    drop(monitor);
    let copies = valed.client().mirror_list(None).unwrap()[0].counters;
    assert!(copies.packets >= 20, "{copies:?}");
    let tables = valed.client().offload_list(None).unwrap();
    assert_eq!((tables.len(), tables[0].owner), (1, Owner::Operator));
    ok(
        "ip",
        &[
            "netns",
            "exec",
            &a.0,
            "bash",
            "-c",
            "echo x >/dev/udp/10.7.0.2/53",
        ],
    );
    eventually("a rule drops", || valed.counters("b").dropped_offload == 1);
    let limits = valed.info("a").limits.unwrap();
    assert_eq!(limits.group_per_s, Some(500));
    assert_eq!(valed.client().segment_list(None).unwrap().len(), 1);

    // Detached ports stay away.
    for port in ["a", "b", "up", "mon"] {
        keep(&valed, "port-remove", at(port, json!({}))).unwrap();
    }
    assert_eq!(kept(&valed), []);
    valed.kill_and_restart();
    assert!(valed.client().port_list(None).unwrap().is_empty());
}

#[test]
fn rules_of_a_guest_wait_for_its_port_and_come_with_it() {
    let mut valed = Valed::start();
    let port = json!({"mac": "02:00:00:00:00:01", "port_security": false});
    let guest = Guest::new(&valed, "g", port.clone());
    let rules = json!({"owner": "operator", "rules": ["drop"]});
    keep(&valed, "offload-set", at("g", rules)).unwrap();
    let why = keep(&valed, "port-set", at("g", json!({"link_up": true}))).unwrap();
    assert!(
        why.unwrap().contains("owner"),
        "the toolstack sets the link"
    );
    valed.kill_and_restart();
    eventually("the reason", || {
        waiting(&valed) == ["vale0:g: no such port"]
    });
    let add = crate::common::port_add("g", port);
    valed.client().port_resume(&add, &guest.fds()).unwrap();
    assert_eq!(waiting(&valed), [""; 0], "before the port's first frame");
    assert_eq!(valed.client().offload_list(None).unwrap().len(), 1);
    // The guest is made again, for example by a hard reboot.
    let (switch, name) = (add.switch.clone(), add.port.clone());
    valed.client().port_remove(&switch, &name).unwrap();
    assert_eq!(waiting(&valed), ["vale0:g: no such port"]);
    let _guest = Guest::new(&valed, "g", json!({"port_security": false}));
    assert_eq!(waiting(&valed), [""; 0]);
    assert_eq!(valed.client().offload_list(None).unwrap().len(), 1);
}

/// `vale-ctl offload add` and `remove` replace the table that they have read.
#[test]
fn rules_that_were_added_and_removed_one_by_one_are_back_after_a_kill() {
    let mut valed = Valed::start();
    let port = json!({"mac": "02:00:00:00:00:01", "port_security": false});
    let guest = Guest::new(&valed, "g", port.clone());
    let table = |valed: &Valed| {
        let tables = valed.client().offload_list(None).unwrap();
        assert!(tables.len() <= 1);
        let table = tables.into_iter().next();
        let rules = |t: &vale_proto::OffloadInfo| {
            let rules = t.rules.iter().map(|rule| String::from(rule.rule));
            rules.collect::<Vec<_>>()
        };
        table.map(|t| (rules(&t), t.epoch)).unwrap_or_default()
    };
    let change = |valed: &Valed, rules: &[&str]| {
        let (_, epoch) = table(valed);
        let set = json!({"owner": "operator", "replaces": epoch, "rules": rules});
        assert_eq!(keep(valed, "offload-set", at("g", set)), Ok(None));
        assert_eq!(table(valed).0, rules);
    };
    change(&valed, &["drop"]);
    change(&valed, &["pass proto 17", "drop"]);
    change(&valed, &["pass proto 17", "pass proto 6", "drop"]);
    change(&valed, &["pass proto 6", "drop"]);
    for _ in 0..2 {
        valed.kill_and_restart();
        let add = crate::common::port_add("g", port.clone());
        valed.client().port_resume(&add, &guest.fds()).unwrap();
        assert_eq!(table(&valed).0, ["pass proto 6", "drop"]);
    }
    change(&valed, &["drop"]);
}

#[test]
fn a_vanished_interface_stops_nothing_and_comes_back() {
    let mut valed = Valed::start();
    let (a, _b) = (machine(&valed, "a", 1), machine(&valed, "b", 2));
    keep_port(&valed, "a", json!({})).unwrap();
    keep_port(&valed, "b", json!({})).unwrap();
    keep(
        &valed,
        "port-limit",
        at("b", json!({"limits": {"group_per_s": 9}})),
    )
    .unwrap();
    valed.kill();
    valed.namespace.ip("link delete dev b");
    valed.restart();
    eventually("the reasons", || {
        waiting(&valed)
            == [
                "ifname: b does not exist in valed's network namespace",
                "vale0:b: no such port",
            ]
    });
    assert_eq!(valed.info("a").port.as_str(), "a");
    let _again = machine(&valed, "b", 2);
    await_all(&valed);
    a.assert_answers("10.7.0.2", 5);
    assert_eq!(valed.info("b").limits.unwrap().group_per_s, Some(9));
}

#[test]
fn an_interface_that_comes_again_while_valed_runs_is_attached_again() {
    let valed = Valed::start();
    let (a, b) = (machine(&valed, "a", 1), machine(&valed, "b", 2));
    keep_port(&valed, "a", json!({})).unwrap();
    keep_port(&valed, "b", json!({})).unwrap();
    let rules = json!({"owner": "operator", "rules": ["drop proto 17"]});
    keep(&valed, "offload-set", at("b", rules)).unwrap();
    a.assert_answers("10.7.0.2", 5);
    valed.namespace.ip("link delete dev b");
    drop(b);
    let far_end = || valed.info("b").far_end;
    eventually("the interface is gone", || far_end() == FarEnd::Gone);
    assert_eq!(kept(&valed).len(), 3);
    let _again = machine(&valed, "b", 2);
    eventually("the interface is back", || far_end() == FarEnd::Up);
    await_all(&valed);
    a.assert_answers("10.7.0.2", 5);
    assert_eq!(valed.client().offload_list(None).unwrap().len(), 1);
}

#[test]
fn a_corrupted_file_is_put_aside_and_told_until_it_is_removed() {
    let mut valed = Valed::start();
    let _a = machine(&valed, "a", 1);
    keep_port(&valed, "a", json!({})).unwrap();
    let good = fs::read(state_file(&valed)).unwrap();
    for bad in [&good[..good.len() / 2], b"\x00\xff", b""] {
        valed.kill();
        fs::write(state_file(&valed), bad).unwrap();
        valed.restart();
        let list = valed.client().kept_list().unwrap();
        assert!(list.kept.is_empty());
        let fault = list.fault.unwrap();
        assert!(fault.contains("kept.json.unusable"), "{fault}");
    }
    // valed keeps again, and the fault remains until someone has read it.
    keep_port(&valed, "a", json!({})).unwrap();
    valed.kill_and_restart();
    await_all(&valed);
    assert!(valed.client().kept_list().unwrap().fault.is_some());
    fs::remove_file(valed.dir.path().join("state/kept.json.unusable")).unwrap();
    assert_eq!(valed.client().kept_list().unwrap().fault, None);
    assert_eq!(kept(&valed).len(), 1);
}

#[test]
fn on_a_full_disk_a_request_changes_nothing() {
    let valed = Valed::start();
    let state = valed.dir.path().join("state");
    let disk = state.to_str().unwrap();
    // valed's mount namespace is this one: `ip netns exec` makes /sys again, and mounts propagate to it.
    let _a = machine(&valed, "a", 1);
    keep_port(&valed, "a", json!({})).unwrap();
    let before = fs::read(state_file(&valed)).unwrap();
    let pid = valed.pid().to_string();
    let inside = |command: &str| {
        ok("nsenter", &["-t", &pid, "-m", "sh", "-c", command]);
    };
    inside(&format!(
        "cp {disk}/kept.json /dev/shm/{pid} && mount -t tmpfs -o size=64k none {disk} && \
         cp /dev/shm/{pid} {disk}/kept.json && rm /dev/shm/{pid} && \
         ! dd if=/dev/zero of={disk}/full bs=1k status=none 2>/dev/null"
    ));
    let _b = machine(&valed, "b", 2);
    let refused = keep_port(&valed, "b", json!({})).unwrap_err();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert!(refused.contains("nothing was changed"), "{refused}");
    let refused = keep(&valed, "port-remove", at("a", json!({}))).unwrap_err();
    assert!(refused.contains("No space left on device"), "{refused}");
    let ports = valed.client().port_list(None).unwrap();
    assert_eq!((ports.len(), ports[0].port.as_str()), (1, "a"));
    assert_eq!(kept(&valed).len(), 1);
    // A request that changes no kept one needs no room.
    assert_eq!(
        keep(&valed, "port-remove", at("other", json!({}))),
        Ok(None)
    );
    inside(&format!("rm {disk}/full"));
    assert_eq!(keep_port(&valed, "b", json!({})), Ok(None));
    inside(&format!("umount {disk}"));
    assert_eq!(fs::read(state_file(&valed)).unwrap(), before);
}

#[test]
fn what_waits_for_a_switch_that_is_gone_is_forgotten() {
    let valed = Valed::start();
    let _a = machine(&valed, "a", 1);
    keep_port(&valed, "a", json!({})).unwrap();
    let segment = |limits| json!({"switch": "vale0", "segment": 1, "limits": limits});
    let set = segment(json!({"unknown_per_s": 7}));
    assert_eq!(keep(&valed, "segment-limit", set), Ok(None));
    // The toolstack removes the last port, and the switch with it.
    let (switch, port) = ("vale0".parse().unwrap(), "a".parse().unwrap());
    valed.client().port_remove(&switch, &port).unwrap();
    assert_eq!(
        waiting(&valed),
        ["vale0: no such switch; its first port creates it"]
    );
    let clear = || keep(&valed, "segment-limit", segment(json!({})));
    assert_eq!(clear(), Ok(None));
    assert_eq!(kept(&valed), Vec::new());
    assert!(clear().unwrap_err().contains("no such switch"));
}
