// SPDX-License-Identifier: Apache-2.0
//! Two guests that have one address, of which one is active (RFC 9568).
use super::uplinks::{request, uplink};
use super::*;

const VIRTUAL: Mac = Mac([0, 0, 0x5e, 0, 1, 9]);

/// A guest with port security.
fn secured(bench: &mut Bench, n: u8, allowed: Value) -> Guest {
    let values = json!({"mac": mac(n), "port_security": true, "allowed": allowed});
    bench.try_add(&format!("r{n}"), values).unwrap()
}

/// A guest that may send as the virtual router.
fn router(bench: &mut Bench, n: u8) -> Guest {
    let allowed = json!([{"ip": format!("10.0.0.{n}/32")}, {"mac": VIRTUAL, "ip": "0.0.0.0/0"}]);
    secured(bench, n, allowed)
}

/// An advertisement, as far as the switch reads it.
fn advertisement() -> Vec<u8> {
    let mut frame = request(VIRTUAL);
    frame[28..32].copy_from_slice(&[10, 0, 0, 1]);
    frame
}

#[test]
fn frames_to_a_virtual_router_go_to_the_guest_that_was_heard_last() {
    let mut bench = Bench::new();
    let mut routers = [router(&mut bench, 1), router(&mut bench, 2)];
    let mut client = bench.guest(3, 1);
    for active in [0, 1, 0] {
        routers[active].send(&advertisement());
        bench.round();
        assert_eq!(client.received().len(), 1, "the announcement");
        routers
            .iter_mut()
            .for_each(|router| drop(router.received()));
        client.send(&frame(VIRTUAL, mac(3), 60));
        bench.round();
        let got = routers.each_mut().map(|router| router.received().len());
        assert_eq!(got[active], 1);
        assert_eq!(got[1 - active], 0);
    }
    let looped: u64 = routers.iter().map(|r| bench.counters(r).dropped_loop).sum();
    assert_eq!(looped, 0);
}

#[test]
fn it_moves_to_another_host_and_back() {
    let mut bench = Bench::new();
    let mut up = uplink(&mut bench, "up", json!({}));
    let mut here = router(&mut bench, 1);
    let mut client = bench.guest(3, 1);
    for is_here in [true, false, true] {
        let sender = if is_here { &mut here } else { &mut up };
        sender.send(&advertisement());
        bench.round();
        up.received();
        here.received();
        assert_eq!(client.received().len(), 1);
        client.send(&frame(VIRTUAL, mac(3), 60));
        bench.round();
        let got = (here.received().len(), up.received().len());
        assert_eq!(got, if is_here { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn no_guest_gets_the_frames_of_another_station() {
    let mut bench = Bench::new();
    let mut up = uplink(&mut bench, "up", json!({}));
    let pairs = json!([{"mac": mac(50), "ip": "0.0.0.0/0"}]);
    let mut guest = secured(&mut bench, 1, pairs);
    let mut client = bench.guest(3, 1);
    up.send(&request(mac(50)));
    bench.round();
    guest.send(&frame(mac(3), mac(50), 60));
    bench.round();
    guest.received();
    up.received();
    client.send(&frame(mac(50), mac(3), 60));
    bench.round();
    assert_eq!((guest.received().len(), up.received().len()), (0, 1));
}

#[test]
fn a_guest_that_may_not_have_the_address_any_more_gets_nothing() {
    let mut bench = Bench::new();
    let mut router = router(&mut bench, 1);
    let mut client = bench.guest(3, 1);
    router.send(&advertisement());
    bench.round();
    let own = json!({"mac": mac(1), "port_security": true,
        "allowed": [{"ip": "10.0.0.1/32"}]});
    let mut guard = crate::policy::guard::Guard::new(&add("unused", own));
    assert!(bench.switch.set_guard(&router.name, &mut guard));
    client.send(&frame(VIRTUAL, mac(3), 60));
    bench.round();
    assert_eq!(router.received().len(), 0);
}
