// SPDX-License-Identifier: Apache-2.0
//! Uplinks without a VLAN: their stations and their tags.
use super::*;

const TAGS: [[u8; 2]; 3] = [[0x81, 0], [0x88, 0xa8], [0x91, 0]];

/// An uplink of segment 1 with a ring in place of its interface.
pub fn uplink(bench: &mut Bench, name: &str, extra: Value) -> Guest {
    let mut values = json!({"kind": "veth", "ifname": "eth0", "port_security": false});
    for (key, value) in extra.as_object().unwrap() {
        values[key] = value.clone();
    }
    let add = add(name, values);
    let (rings, fds) = RingPort::create(add.slots, None).unwrap();
    let port = port::Port::new(&add, Box::new(rings));
    let name = port.face.name.clone();
    bench.switch.add(&mut Some(Box::new(port))).unwrap();
    Guest {
        name,
        ring: GuestPort::map(&fds[0]).unwrap(),
        fds: fds.into(),
    }
}

/// An ARP request of a station.
pub fn request(source: Mac) -> Vec<u8> {
    let mut request = frame(BROADCAST, source, 60);
    request[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    request[22..28].copy_from_slice(&source.0);
    request
}

fn tagged(frame: &[u8], tag: [u8; 2]) -> Vec<u8> {
    [&frame[..12], &tag, &[0, 5], &frame[12..]].concat()
}

fn looped(bench: &Bench, wires: &[(Guest, Guest)]) -> u64 {
    let ports = wires.iter().flat_map(|(left, right)| [left, right]);
    ports.map(|port| bench.counters(port).dropped_loop).sum()
}

/// Two guests pass frames between ports of one segment, or of two.
#[test]
fn one_request_of_a_station_behind_a_flat_uplink_makes_no_storm() {
    for segment in [1, 2] {
        for source in [mac(50), mac(1)] {
            let mut bench = Bench::new();
            let mut uplink = uplink(&mut bench, "up", json!({}));
            let mut wires =
                [11, 21].map(|n| (bench.open_guest(n, 1), bench.open_guest(n + 1, segment)));
            let mut end = bench.guest(2, segment);
            uplink.send(&request(source));
            bench.rounds(&mut wires, 20);
            assert_eq!(end.received().len(), 1, "segment {segment}");
            let before = looped(&bench, &wires);
            assert!(before > 0);
            bench.rounds(&mut wires, 5);
            assert_eq!(looped(&bench, &wires), before, "no frame circulates");
            assert!(uplink.received().is_empty(), "no frame goes back");
        }
    }
}

/// A station that no port has and no uplink leads to: a guest without port security invents it, or an
/// allowed address pair permits it.
#[test]
fn one_request_of_an_unknown_station_makes_no_storm() {
    let pairs = json!({"mac": mac(1), "port_security": true,
        "allowed": [{"mac": mac(50), "ip": "0.0.0.0/0"}]});
    for sender in [json!({"mac": mac(1)}), json!({}), pairs] {
        for segment in [1, 2] {
            let mut bench = Bench::new();
            let mut from = bench.try_add("from", sender.clone()).unwrap();
            let mut wires =
                [11, 21].map(|n| (bench.open_guest(n, 1), bench.open_guest(n + 1, segment)));
            from.send(&request(mac(50)));
            bench.rounds(&mut wires, 20);
            let before = looped(&bench, &wires);
            assert!(before > 0);
            bench.rounds(&mut wires, 5);
            assert_eq!(looped(&bench, &wires), before, "{sender} {segment}");
        }
    }
}

#[test]
fn an_address_moves_between_ports_that_may_use_it() {
    let mut bench = Bench::new();
    let shared = |last: u8| {
        json!({"mac": mac(last), "port_security": true,
            "allowed": [{"mac": mac(50), "ip": "10.0.0.50/32"}]})
    };
    let mut routers = [1, 2].map(|n| bench.try_add(&format!("r{n}"), shared(n)).unwrap());
    let mut end = bench.guest(3, 1);
    let mut request = request(mac(50));
    request[28..32].copy_from_slice(&[10, 0, 0, 50]);
    for router in &mut routers {
        router.send(&request);
        bench.round();
        assert_eq!(end.received().len(), 1);
    }
    // One behind open ports moves after a moment.
    let mut open = [4, 5].map(|n| bench.open_guest(n, 1));
    for (now, port, arrives) in [(0, 0, 1), (1, 1, 0), (1_000_000_001, 1, 1)] {
        bench.scratch.now = now;
        open[port].send(&frame(mac(3), mac(60), 60));
        bench.round();
        assert_eq!(end.received().len(), arrives, "{now}");
    }
}

#[test]
fn a_station_behind_a_flat_uplink_is_found_there() {
    let mut bench = Bench::new();
    let mut up = uplink(&mut bench, "up", json!({}));
    let mut other = uplink(&mut bench, "other", json!({"ifname": "eth1"}));
    let mut guest = bench.guest(1, 1);
    up.send(&frame(mac(1), mac(50), 60));
    bench.round();
    guest.send(&frame(mac(50), mac(1), 60));
    bench.round();
    assert_eq!((up.received().len(), other.received().len()), (1, 0));
}

#[test]
fn a_flat_uplink_carries_no_tags() {
    for (extra, passes) in [
        (json!({}), false),
        (json!({"vlan": 7}), false),
        (json!({"vlan_tags": true}), true),
    ] {
        for tag in TAGS {
            let mut bench = Bench::new();
            let mut uplink = uplink(&mut bench, "up", extra.clone());
            let mut guest = bench.open_guest(1, 1);
            let expected = usize::from(passes);
            let inward = [frame(mac(1), mac(50), 60), request(mac(50))];
            for plain in &inward {
                uplink.send(&tagged(plain, tag));
                uplink.send(&tagged(&tagged(plain, tag), tag));
            }
            bench.round();
            assert_eq!(guest.received().len(), 4 * expected, "{extra} {tag:x?}");
            let outward = [frame(mac(50), mac(1), 60), request(mac(1))];
            for plain in &outward {
                guest.send(&tagged(plain, tag));
                guest.send(&tagged(&tagged(plain, tag), tag));
            }
            bench.round();
            assert_eq!(uplink.received().len(), 4 * expected, "{extra} {tag:x?}");
            let dropped = bench.counters(&uplink).dropped_type;
            assert_eq!(dropped, if passes { 0 } else { 8 });
            // Frames without a tag pass.
            uplink.send(&inward[0]);
            guest.send(&outward[0]);
            bench.round();
            assert_eq!(
                (guest.received(), uplink.received()),
                (vec![inward[0].clone()], vec![outward[0].clone()])
            );
        }
    }
}

#[test]
fn a_mirror_to_a_flat_uplink_carries_no_tags() {
    let mut bench = Bench::new();
    let mut uplink = uplink(&mut bench, "up", json!({}));
    let mut guests = [1, 2].map(|n| bench.open_guest(n, 1));
    let set = json!({"switch": "vale0", "mirror": "m", "port": guests[0].name, "to_port": "up"});
    let set: vale_proto::MirrorSet = serde_json::from_value(set).unwrap();
    let budget = crate::mirror::budget(&set);
    bench.switch.set_mirror(set, None, budget).unwrap();
    let plain = frame(mac(2), mac(1), 60);
    guests[0].send(&plain);
    guests[0].send(&tagged(&plain, TAGS[0]));
    bench.round();
    assert_eq!(uplink.received(), [plain]);
    assert_eq!(guests[1].received().len(), 2);
}
