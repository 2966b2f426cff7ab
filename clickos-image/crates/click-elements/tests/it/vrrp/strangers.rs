// SPDX-License-Identifier: Apache-2.0
//! Which stations a router of a pair believes, and how long it answers one.
use super::*;

/// An advertisement of a station of side 0, with any priority.
fn advertisement(from: [u8; 4], priority: u8) -> Vec<u8> {
    advertisement_of(1, HOST, from, priority)
}

fn advertisement_of(vrid: u8, mac: [u8; 6], from: [u8; 4], priority: u8) -> Vec<u8> {
    let mut body = vec![0x31, vrid, priority, 1, 0, 20, 0, 0, 10, 0, 0, 1];
    let sum = checksum::of(&body).to_be_bytes();
    body[6..8].copy_from_slice(&sum);
    let mut header = vec![0x45, 0, 0, 32, 0, 1, 0, 0, 255, 112, 0, 0];
    header.extend(from);
    header.extend([224, 0, 0, 18]);
    let sum = checksum::of(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    [&[1, 0, 0x5e, 0, 0, 18], &mac[..], &[8, 0], &header, &body].concat()
}

/// Side 1 names no other router.
#[test]
fn without_a_peer_only_stations_with_the_virtual_address_decide() {
    let mut world = World::new(NAT);
    let from = [203, 0, 113, 99];
    let mut forge = |mac: [u8; 6]| {
        let frame = advertisement_of(2, mac, from, 254);
        let device = &world.members[0].devices[1];
        device.borrow_mut().input.push_back(frame);
        world.wait(10);
        world.states()[0].clone()
    };
    assert_eq!(forge(HOST), "active");
    assert_eq!(forge(virtual_mac(0)), "active", "of another virtual router");
    assert_eq!(forge(virtual_mac(1)), "backup");
}

#[test]
fn no_station_but_the_other_router_decides_about_a_pair() {
    let mut world = World::new(NAT);
    for (priority, from) in [(255, 9), (0, 9), (255, 1), (1, 254)] {
        for _ in 0..2 * TAKEOVER_MS / 10 {
            for member in &world.members {
                let frame = advertisement([10, 0, 0, from], priority);
                member.devices[0].borrow_mut().input.push_back(frame);
            }
            world.wait(10);
        }
        assert_eq!(world.states(), ["active", "backup"], "{priority}");
        let changes = [0, 1].map(|n| world.read(n, "vrrp.transitions"));
        assert_eq!(changes, ["1", "0"], "{priority}");
    }
}

#[test]
fn a_host_that_asks_without_end_does_not_silence_a_router() {
    let mut world = World::new(NAT);
    let mut asks = [&[0xff; 6], &HOST[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    asks.extend([&HOST[..], &INSIDE, &[0; 6], &[10, 0, 0, 2]].concat());
    for _ in 0..2 * TAKEOVER_MS / 10 {
        let device = &world.members[0].devices[0];
        device.borrow_mut().input.extend(vec![asks.clone(); 1000]);
        world.wait(10);
    }
    assert_eq!(world.states(), ["active", "backup"]);
    let now_ns = world.now_ns;
    assert_eq!(world.members[1].read("vrrp.transitions", now_ns), "0");
}
