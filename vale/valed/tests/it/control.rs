// SPDX-License-Identifier: Apache-2.0
//! The control socket: verbs, roles, hostile clients, and the command line.

use std::process::{Command, Output};

use crate::common::{Guest, NOBODY, TOOLSTACK, Valed, eventually, tool};
use control_socket::Client;
use serde_json::{Value, json};
use vale_proto::ValeClient;

fn code(valed: &Valed, verb: &str, args: Value) -> (String, String) {
    let error = Client::connect(&valed.socket)
        .unwrap()
        .call(verb, args)
        .unwrap_err();
    (
        error.code().unwrap_or_default().to_owned(),
        error.to_string(),
    )
}

fn vale_ctl(valed: &Valed, uid: u32, arguments: &str) -> Output {
    // The program may lie where another uid cannot reach it, so that uid gets a copy.
    let copy = valed.dir.path().join("vale-ctl");
    if !copy.exists() {
        // `cp` does it: a child that another test forks would keep our
        // descriptor open, and the program's text busy.
        let done = Command::new("cp").arg(tool("vale-ctl")).arg(&copy).status();
        assert!(done.unwrap().success());
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            &format!("--reuid={uid}"),
            &format!("--regid={uid}"),
            "--clear-groups",
        ])
        .arg(copy);
    command
        .args(arguments.split(' '))
        .env("VALED_SOCKET", &valed.socket)
        .output()
        .unwrap()
}

#[test]
fn refusals_name_what_is_wrong() {
    let valed = Valed::start();
    let port = |extra: Value| {
        let mut args = json!({"switch": "vale0", "port": "p", "kind": "process", "segment": 1, "port_security": false});
        extra
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(k, v)| args[k] = v.clone());
        args
    };
    for (args, expected, text) in [
        (
            port(json!({"mtu": 9001})),
            "bad-request",
            "mtu: 9001 is outside 68..=9000",
        ),
        (port(json!({"segment": 0})), "bad-request", "segment: 0"),
        (
            port(json!({"kind": "veth", "ifname": "none"})),
            "no-such-interface",
            "none does not exist",
        ),
        (port(json!({"kind": "carrier"})), "bad-request", "carrier"),
        (json!({}), "bad-request", "missing field"),
        (json!([1]), "bad-request", "port-add"),
        (json!(null), "bad-request", "missing field"),
    ] {
        let (code, message) = code(&valed, "port-add", args.clone());
        assert_eq!(code, expected, "{args}: {message}");
        assert!(message.contains(text), "{args}: {message}");
    }
    assert!(
        valed.client().port_list(None).unwrap().is_empty(),
        "a refused port is there"
    );
    let _far_end = valed.add("p", json!({"mac": "02:00:00:00:00:01"}));
    assert_eq!(code(&valed, "port-add", port(json!({}))).0, "exists");
    let twin = port(json!({"port": "q", "mac": "02:00:00:00:00:01"}));
    assert_eq!(code(&valed, "port-add", twin).0, "exists");
    assert_eq!(
        code(
            &valed,
            "port-set",
            json!({"switch": "vale0", "port": "q", "link_up": true})
        )
        .0,
        "no-such-port"
    );
    let guard = |port: &str, allowed: Value| {
        let args =
            json!({"switch": "vale0", "port": port, "allowed": allowed, "port_security": true});
        code(&valed, "port-guard", args).0
    };
    assert_eq!(guard("q", json!([])), "no-such-port");
    assert_eq!(guard("p", json!([{"ip": "10.0.0.300/32"}])), "bad-request");
    assert_eq!(
        guard("p", json!(vec![json!({"ip": "10.0.0.1/32"}); 257])),
        "bad-request"
    );
    let peers = json!({"switch": "vale0", "port": "p", "peers": []});
    assert_eq!(code(&valed, "port-peers", peers).0, "bad-request");
    assert_eq!(code(&valed, "port-mirror", json!({})).0, "bad-request");
    let (switch, name) = ("vale0".parse().unwrap(), "p".parse().unwrap());
    for _ in 0..2 {
        valed.client().port_remove(&switch, &name).unwrap();
    }
    assert!(valed.client().port_list(None).unwrap().is_empty());
}

#[test]
fn an_interface_has_one_port() {
    let valed = Valed::start();
    let _a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let again = json!({"switch": "vale1", "port": "x", "kind": "veth", "ifname": "a", "segment": 1, "port_security": false});
    let (code, message) = code(&valed, "port-add", again);
    assert_eq!(code, "exists", "{message}");
    let ports = valed.client().port_list(None).unwrap();
    assert_eq!(
        ports.len(),
        1,
        "the switch that was made for it is gone too"
    );
}

#[test]
fn only_those_with_a_role_are_served() {
    let valed = Valed::start();
    for arguments in ["list", "stats", "chain list", "offload show", "mirror list"] {
        let refused = vale_ctl(&valed, NOBODY, arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments}");
        assert!(refused.stdout.is_empty(), "{arguments}");
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(
            text.contains("uid 65534 has no role") && text.contains("forbidden"),
            "{arguments}: {text}"
        );
    }
    let served = vale_ctl(&valed, TOOLSTACK, "list -o json");
    assert_eq!(
        (served.status.code(), &served.stdout[..]),
        (Some(0), &b"[]\n"[..])
    );
}

#[test]
fn the_command_line_attaches_shows_and_detaches() {
    let valed = Valed::start();
    valed
        .namespace
        .ip("link add name veth0 type veth peer name veth1");
    valed.namespace.ip("link set dev veth0 up");
    let run = |arguments: &str| {
        let output = vale_ctl(&valed, TOOLSTACK, arguments);
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let attach = "attach vale3:nic --kind veth --ifname veth0 --segment 9 --mac 02:00:00:00:00:01 --allow 10.0.0.1/32";
    assert_eq!(run(attach), (0, String::new(), String::new()));
    let (status, _, text) = run(attach);
    assert!(status == 1 && text.contains("exists"), "{text}");
    assert_eq!(run("set vale3:nic --link down").0, 0);
    let (_, table, _) = run("ports vale3");
    assert!(
        table.contains("vale3:nic  veth  9        02:00:00:00:00:01  down"),
        "{table}"
    );
    let (_, stats, _) = run("stats vale3:nic -o json");
    assert_eq!(
        serde_json::from_str::<Value>(&stats).unwrap()[0]["link_up"],
        false
    );
    assert_eq!(run("stats vale3:other").0, 1);
    assert_eq!(
        run("attach vale3:nic --kind veth --ifname veth0 --segment 0").0,
        2
    );
    assert_eq!(run("detach vale3:nic").0, 0);
    assert_eq!(run("detach vale3:nic").0, 0);
    assert_eq!(run("list").1, "SWITCH  PORTS\n");
}

#[test]
fn pipes_and_files_are_attached_and_refusals_leave_nothing() {
    let valed = Valed::start();
    let refused = |arguments: &str, text: &str| {
        let output = vale_ctl(&valed, TOOLSTACK, arguments);
        let found = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && found.contains(text), "{found}");
    };
    let done = |arguments: &str| {
        let output = vale_ctl(&valed, TOOLSTACK, arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    done("attach vale0:a --kind pipe --pipe x --segment 1");
    let around = "attach vale0:b --kind pipe --pipe x --segment 1";
    refused(around, "pipe: x would close a loop");
    done("attach vale1:b --kind pipe --pipe x --segment 9");
    refused(
        "attach vale2:c --kind pipe --pipe x --segment 1",
        "pipe: x has two ports",
    );
    let file = valed.dir.path().join("out.pcap");
    refused(
        "attach vale0:a --kind pcap --segment 1 --write out",
        "the port exists already",
    );
    assert!(!file.exists(), "a refused port leaves no file");
    refused(
        "attach vale0:t --kind pcap --segment 1 --read none",
        "pcap.read: none.pcap: No such",
    );
    done("attach vale0:t --kind pcap --segment 1 --write out");
    refused(
        "attach vale0:u --kind pcap --segment 1 --write out",
        "pcap.write: out.pcap",
    );
    // The pipe carries the played frame to the other switch, whose port t2 writes it.
    done("attach vale1:t2 --kind pcap --segment 9 --write far");
    std::fs::write(valed.dir.path().join("in.pcap"), one_broadcast()).unwrap();
    done("attach vale0:in --kind pcap --segment 1 --read in --rate 100 --repeat");
    let far = valed.dir.path().join("far.pcap");
    eventually("the other switch writes the frame", || {
        std::fs::read(&far).is_ok_and(|bytes| bytes.len() >= 24 + 16 + 60)
    });
    assert!(valed.counters("in").rx_packets > 0);
    assert!(done("ports vale0").contains("vale0:a   pipe"));
    for port in ["vale0:a", "vale0:t", "vale0:in", "vale1:b", "vale1:t2"] {
        done(&format!("detach {port}"));
    }
    assert_eq!(done("list"), "SWITCH  PORTS\n");
}

/// A capture with one frame of 60 bytes.
fn one_broadcast() -> Vec<u8> {
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 2048, 1, 0, 0, 60, 60];
    let mut file: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.extend([0xff; 6]);
    file.extend([2, 0, 0, 0, 0, 7, 0x88, 0xb5]);
    file.resize(file.len() + 46, 0);
    file
}

#[test]
fn a_chain_is_set_shown_and_removed() {
    let valed = Valed::start();
    let ctl = |uid, arguments: &str| {
        let output = vale_ctl(&valed, uid, arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout) + &text(output.stderr),
        )
    };
    let set = "chain set vale0:web --segment 1 --match from=a,protocol=udp --hop b:c,transparent";
    assert!(ctl(0, set).1.contains("vale0: no such switch"));
    let port = json!({"switch": "vale0", "port": "a", "kind": "process", "segment": 1,
        "port_security": false});
    let mut client = Client::connect(&valed.socket).unwrap();
    client.call("port-add", port).unwrap();
    assert_eq!(ctl(TOOLSTACK, set), (Some(0), String::new()));
    let (_, list) = ctl(TOOLSTACK, "chain list");
    assert!(list.contains("vale0:web") && list.contains("b:c"), "{list}");
    let (_, list) = ctl(TOOLSTACK, "chain list -o json");
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["live_pairs"], json!([0]));
    assert_eq!(
        list[0]["classifiers"],
        json!([{"source_port": "a", "protocol": 17}])
    );
    for arguments in [set, "chain remove vale0:web"] {
        assert!(
            ctl(NOBODY, arguments).1.contains("forbidden"),
            "{arguments}"
        );
    }
    for (wrong, text) in [
        (
            "chain set vale0:web --segment 1 --match from=a --hop b:c*17",
            "hops[0]: weight: 17",
        ),
        (
            "chain set vale0:web --segment 1 --match source-ports=1 --hop b:c",
            "classifiers[0]",
        ),
    ] {
        let (code, output) = ctl(0, wrong);
        assert!(code == Some(1) && output.contains(text), "{output}");
    }
    assert_eq!(ctl(0, "chain remove vale0:web"), (Some(0), String::new()));
    assert_eq!(ctl(0, "chain remove vale0:web").0, Some(0));
    assert_eq!(ctl(TOOLSTACK, "chain list").1.lines().count(), 1);
}

/// The guard of the hop's port decides, also after a change.
#[test]
fn a_chain_claims_no_addresses_of_others() {
    let valed = Valed::start();
    let own = json!({"mac": "02:00:00:00:00:01", "port_security": true,
        "allowed": [{"ip": "10.0.0.5/32"}]});
    let _far_end = valed.add("out", own);
    let chain = |nat: &str| {
        json!({"switch": "vale0", "chain": "web", "segment": 1, "nat": [nat],
            "classifiers": [{}], "hops": [{"pairs": [{"ingress": "in", "egress": "out"}]}]})
    };
    let set = |nat: &str| {
        let mut client = Client::connect(&valed.socket).unwrap();
        client.call("chain-set", chain(nat)).map(|_| ())
    };
    let refused = |nat: &str| {
        let expected = format!("chain-set: nat: {nat} is wider than vale0:out may use");
        let (code, message) = code(&valed, "chain-set", chain(nat));
        assert_eq!(code, "bad-request");
        assert!(message.contains(&expected), "{message}");
    };
    let wide = ["0.0.0.0/0", "10.0.0.4/31", "10.0.0.6/32", "::/0"];
    wide.into_iter().for_each(refused);
    // A refusal comes before the chain's path opens a port.
    let mut over_hosts = chain("10.0.0.4/31");
    over_hosts["path"] = json!({"number": 9, "local": "127.0.0.1",
        "hosts": ["127.0.0.1", "127.0.0.2"]});
    over_hosts["classifiers"] = json!([{"source_port": "out", "host": "127.0.0.1",
        "senders": ["10.0.0.5/32"]}]);
    over_hosts["hops"][0]["pairs"][0]["host"] = "127.0.0.1".into();
    let (_, message) = code(&valed, "chain-set", over_hosts);
    assert!(message.contains("10.0.0.4/31 is wider"), "{message}");
    let ports = valed.client().port_list(None).unwrap();
    assert_eq!(ports.len(), 1, "the path has no port");
    set("10.0.0.5/32").unwrap();
    let guard = json!({"switch": "vale0", "port": "out", "port_security": true,
        "allowed": [{"ip": "10.0.0.6/31"}]});
    let mut client = Client::connect(&valed.socket).unwrap();
    client.call("port-guard", guard).unwrap();
    refused("10.0.0.5/32");
    set("10.0.0.6/32").unwrap();
}

#[test]
fn a_mirror_is_the_operators_alone() {
    let valed = Valed::start();
    let ctl = |uid, arguments: &str| {
        let output = vale_ctl(&valed, uid, arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout) + &text(output.stderr),
        )
    };
    let set = "mirror set vale0:m --segment 1 --to-file out";
    let file = valed.dir.path().join("out.pcap");
    assert!(ctl(0, set).1.contains("vale0: no such switch"));
    assert!(!file.exists(), "a refused mirror leaves no file");
    let _far_end = valed.add("p", json!({"port_security": false}));
    for uid in [TOOLSTACK, NOBODY] {
        for arguments in [set, "mirror remove vale0:m"] {
            assert!(ctl(uid, arguments).1.contains("forbidden"), "{arguments}");
        }
    }
    let (status, note) = ctl(0, set);
    assert_eq!(status, Some(0));
    assert!(note.contains("not kept") && note.contains("fills its file once"));
    assert!(file.exists());
    let again = "mirror set vale0:n --segment 1 --to-file out";
    assert!(ctl(0, again).1.contains("exists"));
    assert!(ctl(TOOLSTACK, "mirror list").1.contains("out.pcap"));
    let (_, list) = ctl(TOOLSTACK, "mirror list vale0 -o json");
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["counters"]["packets"], json!(0));
    let wrong = "mirror set vale0:m --port p --to-port p";
    assert!(
        ctl(0, wrong)
            .1
            .contains("to_port: a port cannot get its own")
    );
    assert_eq!(ctl(0, "mirror remove vale0:m"), (Some(0), String::new()));
    assert_eq!(ctl(0, "mirror list").1.lines().count(), 1);
}

#[test]
fn limits_and_filters_are_set_by_the_toolstack_alone() {
    let valed = Valed::start();
    let ctl = |uid, arguments: &str| {
        let output = vale_ctl(&valed, uid, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let limit = "limit vale0:a --rx-packets 1000 --group 1";
    let filter = "filter vale0:a --rule egress --rule ingress,tcp,22,10.0.0.0/8";
    assert!(ctl(0, limit).1.contains("vale0:a: no such port"));
    let port = json!({"switch": "vale0", "port": "a", "kind": "process", "segment": 1,
        "port_security": false});
    let mut client = Client::connect(&valed.socket).unwrap();
    client.call("port-add", port).unwrap();
    for arguments in [
        limit,
        "limit-segment vale0 1 --group 100 --rx-packets 5000",
        filter,
        "filter vale0:a --block",
        "filter vale0:a --off",
        "trace vale0:a --hex 02000000000202000000000188b5",
    ] {
        assert_eq!(ctl(TOOLSTACK, arguments), (Some(0), String::new()));
        let (code, text) = ctl(NOBODY, arguments);
        assert!(code == Some(1) && text.contains("forbidden"), "{text}");
    }
    let (code, text) = ctl(0, "limit vale0:a --tx-bits 0");
    assert!(
        code == Some(1) && text.contains("tx.bits_per_s: 0"),
        "{text}"
    );
    let shown = vale_ctl(&valed, TOOLSTACK, "segments vale0 -o json").stdout;
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown[0]["limits"]["group_per_s"], 100);
    for (wrong, text) in [
        ("limit-segment vale0 1 --unknown 0", "unknown_per_s: 0"),
        ("limit-segment vale1 1 --unknown 1", "vale1: no such switch"),
    ] {
        let (code, found) = ctl(0, wrong);
        assert!(code == Some(1) && found.contains(text), "{found}");
    }
    assert_eq!(ctl(0, "limit-segment vale0 1"), (Some(0), String::new()));
    let shown = vale_ctl(&valed, TOOLSTACK, "segments").stdout;
    assert_eq!(shown, b"SWITCH  SEGMENT  LIMITS\n");
    assert_eq!(ctl(0, "filter vale0:a --rule ingress,http").0, Some(2));
    // A thousand rules are a long request.
    let rule = json!({"direction": "ingress", "family": "ipv4", "protocol": 6,
        "ports": {"first": 1, "last": 2}, "remote": "10.0.0.0/8"});
    let mut call = |count| {
        let rules = vec![rule.clone(); count];
        client.call(
            "port-filter",
            json!({"switch": "vale0", "port": "a", "rules": rules}),
        )
    };
    assert!(call(1024).is_ok());
    assert!(call(1025).unwrap_err().to_string().contains("1024"));
}

/// Two workers, as all tests of this package start: ports move, and wrong numbers and names do not.
#[test]
fn ports_move_between_the_workers_that_are_there() {
    let valed = Valed::start();
    let mut client = valed.client();
    let _one = Guest::new(&valed, "one", json!({"mac": "02:00:00:00:00:01"}));
    let _two = Guest::new(&valed, "two", json!({"mac": "02:00:00:00:00:02"}));
    let place = |client: &mut ValeClient, port: &str| {
        let workers = client.worker_list().unwrap();
        let has = |w: &vale_proto::WorkerInfo| w.ports.iter().any(|p| p.port.as_str() == port);
        workers.iter().position(has).unwrap()
    };
    assert_ne!(place(&mut client, "one"), place(&mut client, "two"));
    for worker in [1, 0, 0, 1] {
        let to = json!({"switch": "vale0", "port": "one", "worker": worker});
        client
            .port_move(&serde_json::from_value(to).unwrap())
            .unwrap();
        assert_eq!(place(&mut client, "one"), worker);
    }
    for (port, worker, error) in [
        (
            "one",
            2,
            "port-move: worker: 2 is outside 0..=1 (bad-request)",
        ),
        ("none", 1, "vale0:none: no such port (no-such-port)"),
    ] {
        let to = json!({"switch": "vale0", "port": port, "worker": worker});
        let refused = client.port_move(&serde_json::from_value(to).unwrap());
        assert_eq!(refused.unwrap_err().to_string(), error);
    }
}

/// On a host without Xen.
#[test]
fn preconnected_vifs_are_those_of_xen_guests() {
    let valed = Valed::start();
    let mut client = valed.client();
    for (args, text) in [
        (
            json!({"domid": 7, "devid": 0}),
            "no xenstore in its configuration",
        ),
        (
            json!({"domid": 0, "devid": 0}),
            "domid: 0 is not a guest domain",
        ),
        (
            json!({"domid": 7, "devid": 0, "slots": 65}),
            "slots: 65 is not",
        ),
        (json!({"domid": 7}), "missing field"),
        (json!({"domid": 7, "devid": 0, "netback": true}), "netback"),
    ] {
        // The second name is of before 1.0.
        for verb in ["preconnect-add", "silent-add"] {
            let (code, message) = code(&valed, verb, args.clone());
            assert_eq!(code, "bad-request", "{args}: {message}");
            assert!(message.contains(text), "{args}: {message}");
        }
    }
    client.preconnect_remove(7).unwrap();
    assert_eq!(client.preconnect_list().unwrap(), []);
    let removed = client.call("silent-remove", json!({"domid": 7}));
    assert_eq!(removed.unwrap(), json!({}));
    let listed = client.call("silent-list", json!({}));
    assert_eq!(listed.unwrap(), json!({"vifs": []}));
    assert_eq!(vale_ctl(&valed, 0, "preconnected -o json").stdout, b"[]\n");
}

#[test]
fn rules_that_decide_for_a_guest_are_set_shown_and_removed() {
    let valed = Valed::start();
    let _far_end = valed.add("p", json!({"mac": "02:00:00:00:00:01"}));
    let table = |port: &str, rules: Value| json!({"switch": "vale0", "port": port, "owner": "guest", "version": 7, "rules": rules});
    for (args, expected, text) in [
        (table("q", json!([])), "no-such-port", "vale0:q"),
        (
            table("p", json!(["drop dport 80"])),
            "bad-request",
            "need proto",
        ),
        (
            table("p", json!(["x".repeat(9_000)])),
            "bad-request",
            "pass, drop or redirect",
        ),
        (table("p", json!(vec!["drop"; 65])), "bad-request", "rules"),
        (table("p", json!("drop")), "bad-request", "offload-set"),
    ] {
        let (code, message) = code(&valed, "offload-set", args);
        assert_eq!(code, expected, "{message}");
        assert!(message.contains(text) && message.len() < 300, "{message}");
    }
    let enable = json!({"switch": "vale0", "port": "p", "owner": "guest", "enabled": false});
    assert_eq!(
        code(&valed, "offload-enable", enable.clone()).0,
        "no-such-offload"
    );
    let mut client = valed.client();
    let set = serde_json::from_value(table("p", json!(["drop proto 6", "pass"]))).unwrap();
    let first = client.offload_set(&set).unwrap();
    assert!(first.before.is_none());
    let second = client.offload_set(&set).unwrap();
    let (before, now) = (second.before.unwrap(), second.now.unwrap());
    assert_eq!(Some(&before), first.now.as_ref());
    assert!(now.epoch > before.epoch && now.enabled);
    client
        .offload_enable(&serde_json::from_value(enable).unwrap())
        .unwrap();
    let shown = client.offload_list(None).unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (shown[0].version, shown[0].enabled, shown[0].rules.len()),
        (7, false, 2)
    );
    let id = json!({"switch": "vale0", "port": "p", "owner": "guest"});
    let id = serde_json::from_value(id).unwrap();
    assert!(client.offload_remove(&id).unwrap().before.is_some());
    assert!(client.offload_remove(&id).unwrap().before.is_none());
    assert!(client.offload_list(None).unwrap().is_empty());
}
