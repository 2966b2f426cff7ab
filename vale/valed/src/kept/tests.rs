// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;

fn request(verb: &str, args: Value) -> Keep {
    serde_json::from_value(json!({"verb": verb, "args": args})).unwrap()
}

fn port(name: &str, extra: Value) -> Keep {
    let mut args = json!({"switch": "vale0", "port": name, "kind": "tap", "ifname": name,
        "segment": 1, "port_security": false});
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
    request("port-add", args)
}

fn at(name: &str, extra: Value) -> Value {
    let mut args = json!({"switch": "vale0", "port": name});
    for (key, value) in extra.as_object().unwrap() {
        args[key] = value.clone();
    }
    args
}

/// Takes a request as valed does; why it was not kept.
fn take(state: &mut State, request: &Keep, is_last: bool) -> Option<&'static str> {
    let change = state.change(request, is_last).unwrap();
    let not_kept = change.not_kept;
    state.take(change);
    not_kept
}

fn shown(state: &State) -> Vec<String> {
    state.records.keys().map(ToString::to_string).collect()
}

#[test]
fn a_request_replaces_the_last_one_and_its_opposite_ends_it() {
    let mut state = State::default();
    let limits = |limits: Value| request("port-limit", at("a", json!({"limits": limits})));
    let filter = |rules: Value| request("port-filter", at("a", json!({"rules": rules})));
    let enable = |on| {
        let args = at("g", json!({"owner": "guest", "enabled": on}));
        request("offload-enable", args)
    };
    let segment = |limits| {
        let args = json!({"switch": "vale0", "segment": 7, "limits": limits});
        request("segment-limit", args)
    };
    let rules = at("g", json!({"owner": "operator", "rules": ["drop"]}));
    let mirror = json!({"switch": "vale0", "mirror": "m", "segment": 1, "to_port": "a"});
    let chain = json!({"switch": "vale0", "chain": "c", "segment": 1,
        "classifiers": [{"source_port": "a"}], "hops": [{"pairs": [{"ingress": "b", "egress": "b"}]}]});
    let all = [
        port("a", json!({})),
        request("port-set", at("a", json!({"link_up": false}))),
        limits(json!({"group_per_s": 5})),
        filter(json!([])),
        segment(json!({"group_per_s": 5})),
        request("chain-set", chain),
        request("mirror-set", mirror.clone()),
        request("offload-set", rules),
        enable(false),
    ];
    for request in &all {
        assert_eq!(take(&mut state, request, false), None, "{request:?}");
    }
    assert_eq!(shown(&state).len(), all.len());
    take(&mut state, &limits(json!({"group_per_s": 6})), false);
    assert_eq!(shown(&state).len(), all.len());
    for request in [
        limits(json!({})),
        filter(Value::Null),
        enable(true),
        segment(json!({})),
        request("offload-remove", at("g", json!({"owner": "operator"}))),
        request("chain-remove", json!({"switch": "vale0", "chain": "c"})),
    ] {
        let before = state.records.len();
        assert_eq!(take(&mut state, &request, false), None, "{request:?}");
        assert_eq!(state.records.len(), before - 1, "{request:?}");
    }
    assert_eq!(
        shown(&state),
        ["vale0: port a", "vale0: link of port a", "vale0: mirror m"]
    );
    take(
        &mut state,
        &request("port-remove", at("a", json!({}))),
        false,
    );
    assert_eq!(shown(&state), ["vale0: mirror m"]);
    take(
        &mut state,
        &request("port-remove", at("b", json!({}))),
        true,
    );
    assert!(shown(&state).is_empty(), "the switch is gone");
}

#[test]
fn what_has_another_owner_is_not_kept() {
    let mut state = State::default();
    let of_guest = request("port-limit", at("g", json!({"limits": {"group_per_s": 5}})));
    let why = take(&mut state, &of_guest, false);
    assert!(why.unwrap().contains("owner"));
    let guest = json!({"domid": 7, "devid": 0});
    let mac = "02:00:00:00:00:01";
    let xen = json!({"kind": "xen", "ifname": null, "guest": guest, "mac": mac});
    assert!(take(&mut state, &port("x", xen), false).is_some());
    let pcap = json!({"kind": "pcap", "ifname": null, "pcap": {"write": "out"}});
    assert!(take(&mut state, &port("x", pcap), false).is_some());
    let chain = json!({"switch": "vale0", "chain": "6a9c1f0e-3c1b-4a55-9d0e-1f2a3b4c5d6e",
        "segment": 1, "classifiers": [{}], "hops": []});
    assert!(take(&mut state, &request("chain-set", chain), false).is_some());
    take(&mut state, &port("x", json!({})), false);
    let file = json!({"switch": "vale0", "mirror": "m", "segment": 1, "to_file": "f"});
    assert!(take(&mut state, &request("mirror-set", file), false).is_some());
    assert_eq!(shown(&state), ["vale0: port x"]);
    for wrong in [
        port("p", json!({"kind": "process", "ifname": null})),
        request(
            "offload-set",
            at("g", json!({"owner": "guest", "rules": []})),
        ),
    ] {
        assert!(state.change(&wrong, false).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_request_that_fails_waits_and_tells_why() {
    let mut state = State::default();
    state.fill(vec![
        request(
            "offload-set",
            at("a", json!({"owner": "operator", "rules": []})),
        ),
        port("a", json!({})),
    ]);
    assert_eq!(state.waiting(), 2);
    let order = std::cell::RefCell::new(Vec::new());
    state.retry(
        |_| true,
        |request| {
            let place = Place::of(request).unwrap().to_string();
            order.borrow_mut().push(place);
            Err("no interface".to_owned())
        },
    );
    assert_eq!(
        *order.borrow(),
        ["vale0: port a", "vale0: rules of port a"],
        "the port first"
    );
    assert_eq!(state.waiting(), 2);
    state.retry(|_| true, |_| Ok(()));
    assert_eq!(state.waiting(), 0);
    let (switch, name) = ("vale0".parse().unwrap(), "a".parse().unwrap());
    let id = PortId { switch, port: name };
    let change = state.note_removed(&id, true).unwrap();
    state.take(change);
    assert_eq!(shown(&state), ["vale0: rules of port a"]);
    assert_eq!(state.waiting(), 1, "until the guest's port is there again");
}

/// The requests about a kept port, of which another peer has one of its name.
#[test]
fn nothing_of_a_kept_port_comes_to_a_port_of_others() {
    let limits = request("port-limit", at("a", json!({"limits": {"group_per_s": 5}})));
    let filter = request("port-filter", at("a", json!({"rules": []})));
    let down = request("port-set", at("a", json!({"link_up": false})));
    let all = [port("a", json!({})), limits, filter, down];
    let mut state = State::default();
    state.fill(all.to_vec());
    // The port of the kernel's interface is not there yet; the toolstack's is.
    let applied = std::cell::RefCell::new(Vec::new());
    let exists = |request: &Keep| {
        applied.borrow_mut().push(Place::of(request).unwrap());
        match request {
            Keep::PortAdd(_) => Err("exists".to_owned()),
            _ => Ok(()),
        }
    };
    let name = "a".parse().unwrap();
    let switch = "vale0".parse().unwrap();
    state.retry(|place| place.may_follow(&switch, &name), exists);
    assert!(applied.borrow().iter().all(Place::is_port));
    assert_eq!(state.waiting(), 4);
    state.retry(|_| true, |_| Ok(()));
    assert_eq!(state.waiting(), 0);
    // The toolstack removes the port, and makes one of this name.
    let id = PortId { switch, port: name };
    let change = state.note_removed(&id, false).unwrap();
    state.take(change);
    assert_eq!(shown(&state), Vec::<String>::new());
}

#[test]
fn a_port_that_is_repeated_is_never_more_open_than_it_was() {
    let mut state = State::default();
    let all = [
        port("a", json!({})),
        port("b", json!({})),
        request("port-set", at("a", json!({"link_up": false}))),
        request("port-set", at("b", json!({"link_up": true}))),
        request("port-filter", at("a", json!({"rules": []}))),
    ];
    state.fill(all.to_vec());
    let added = std::cell::RefCell::new(Vec::new());
    state.retry(
        |_| true,
        |request| {
            if let Keep::PortAdd(add) = request {
                let as_added = (add.port.to_string(), add.filtered, add.link_up);
                added.borrow_mut().push(as_added);
            }
            Ok(())
        },
    );
    let expected = [("a", true, false), ("b", false, true)];
    let expected = expected.map(|(name, filtered, up)| (name.to_owned(), filtered, up));
    assert_eq!(added.take(), expected);
    assert_eq!(
        state.after(&Change::default()),
        all,
        "kept as they were sent"
    );
}

#[test]
fn without_room_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(Some(folder.path().to_owned()));
    let mut state = kept.lock();
    for n in 0..MAX_KEPT {
        take(&mut state, &port(&format!("p{n}"), json!({})), false);
    }
    let more = state.change(&port("one-more", json!({})), false).unwrap();
    let refused = kept.prepare(&state, &more);
    assert!(matches!(refused, Err(KeepError::TooMany)));
    let again = state
        .change(&port("p1", json!({"segment": 2})), false)
        .unwrap();
    assert!(matches!(kept.prepare(&state, &again), Ok(Some(_))));
}
