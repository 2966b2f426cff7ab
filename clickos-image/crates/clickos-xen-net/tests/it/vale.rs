// SPDX-License-Identifier: Apache-2.0
//! The vale port against the switch's side of the ring, in memory.

use std::rc::Rc;
use std::sync::Arc;

use crate::common::{DOMID, Guest, View};
use click_core::Batch;
use ring::layout::{Layout, PAGE};
use ring::{Memory, PushError, Regions, Slot, SwitchPort, directory};
use xen_net::Options;

/// Says which version the switch accepts.
fn accept(guest: &Guest, devid: u32, version: &str) {
    let path = format!("/local/domain/0/backend/vale/{DOMID}/{devid}/ring-version");
    guest.store.write(&path, version.as_bytes());
}

/// Answers the handshake as valed does and connects.
fn connect(guest: &mut Guest, slots: u32) -> SwitchPort<View> {
    connect_port(guest, 0, slots, &Arc::default())
}

fn connect_port(
    guest: &mut Guest,
    devid: u32,
    slots: u32,
    regions: &Arc<Regions<View>>,
) -> SwitchPort<View> {
    guest.set_backend("vale", devid, "2");
    guest.turn();
    let mut port = attach(guest, devid, slots);
    port.join(regions);
    guest.set_backend("vale", devid, "4");
    guest.turn();
    port
}

/// Maps the rings that a guest has made.
fn attach(guest: &Guest, devid: u32, slots: u32) -> SwitchPort<View> {
    let key = |key| guest.key_of("vale", devid, key);
    assert_eq!(key("state"), "4", "{:?}", guest.xen.said);
    let version = key("ring-version").parse().unwrap();
    let pages = Layout::of(version, slots).unwrap().size() / PAGE;
    let mut references = vec![0; pages];
    let mut next = key("ring-ref").parse().unwrap();
    for part in references.chunks_mut(directory::PER_PAGE) {
        let page = View(vec![guest.xen.page(next, false)]);
        let words = std::array::from_fn(|word| page.load(word * 4));
        next = directory::read(&words, part);
    }
    assert_eq!(
        next, 0,
        "the directory has more pages than the region needs"
    );
    let region = references.iter().map(|gref| guest.xen.page(*gref, true));
    let port = SwitchPort::attach(View(region.collect()), slots).unwrap();
    assert_eq!(port.version(), version);
    port
}

fn guest_with(slots: u32) -> Guest {
    guest_of("1", slots)
}

/// A guest whose switch accepts a version.
fn guest_of(version: &str, slots: u32) -> Guest {
    let mut guest = Guest::new(Options::default());
    add(&mut guest, 0, version, slots);
    guest
}

fn add(guest: &mut Guest, devid: u32, version: &str, slots: u32) {
    guest.add("vale", devid);
    accept(guest, devid, version);
    let path = format!("/local/domain/{DOMID}/device/vale/{devid}/slots");
    guest.store.write(&path, slots.to_string().as_bytes());
    guest.turn();
}

/// Takes the guest's next frame.
fn take(port: &mut SwitchPort<View>) -> Option<Vec<u8>> {
    let mut slot = [Slot::EMPTY];
    if port.fetch(&mut slot) == 0 {
        return None;
    }
    let mut frame = vec![0; slot[0].len()];
    port.read(slot[0], &mut frame);
    Some(frame)
}

fn exchange(guest: &Guest, port: &mut SwitchPort<View>) {
    for n in 0..1200usize {
        let frame: Vec<u8> = (0..60 + n * 7 % 1500).map(|at| (at ^ n) as u8).collect();
        guest.push(&frame).unwrap();
        guest.device().borrow_mut().publish();
        assert_eq!(take(port).as_ref(), Some(&frame));
        port.push(&frame).unwrap();
        let _ = port.publish();
        assert_eq!(guest.receive(), [frame]);
    }
    assert_eq!(port.malformed(), 0);
}

#[test]
fn frames_go_both_ways_with_any_number_of_slots() {
    for (slots, first, second) in [(64, 67, 84), (256, 259, 320), (2048, 2057, 2531)] {
        for (version, pages) in [("1", first), ("2", second)] {
            let mut guest = guest_of(version, slots);
            let mut port = connect(&mut guest, slots);
            assert!(guest.vifs.list()[0].is_usable());
            exchange(&guest, &mut port);
            assert_eq!(
                guest.xen.grants.borrow().len(),
                pages + directory::pages(pages)
            );
        }
    }
}

#[test]
fn a_switch_that_is_started_anew_gets_fresh_rings() {
    for version in ["1", "2"] {
        let mut guest = guest_of(version, 256);
        for _ in 0..3 {
            let mut port = connect(&mut guest, 256);
            exchange(&guest, &mut port);
            guest.set_backend("vale", 0, "5");
            guest.turn();
            assert_eq!(guest.key("vale", "state"), "6");
            assert_eq!(guest.push(&[0; 60]), Err(PushError::Full));
            assert!(guest.xen.grants.borrow().is_empty());
            drop(port);
            guest.set_backend("vale", 0, "6");
            guest.turn();
            assert_eq!(guest.key("vale", "state"), "1");
        }
        assert_eq!(guest.xen.live_pages.get(), 0);
    }
}

/// A packet goes from a port's region by another port, and later, when that region is gone.
#[test]
fn packets_lie_in_the_region_as_long_as_they_live() {
    let mut guest = guest_of("2", 64);
    let regions = Arc::default();
    let mut from = connect_port(&mut guest, 0, 64, &regions);
    add(&mut guest, 1, "2", 64);
    let mut to = connect_port(&mut guest, 1, 64, &regions);
    let frames: Vec<Vec<u8>> = (0..20).map(|n| vec![n; 1000]).collect();
    frames.iter().for_each(|frame| from.push(frame).unwrap());
    let _ = from.publish();
    let (mut waiting, mut later) = (Batch::new(), Batch::new());
    for batch in [&mut waiting, &mut later] {
        let pool = &mut guest.pool.borrow_mut();
        assert_eq!(guest.device().borrow_mut().receive(10, pool, batch), 10);
        assert_eq!(pool.in_use(), 0, "a packet is a copy");
    }
    let out = Rc::clone(&guest.vifs.list()[1].device);
    assert_eq!(out.borrow_mut().transmit(&mut waiting), 10);
    out.borrow_mut().publish();
    for frame in &frames[..10] {
        assert_eq!(take(&mut to).as_ref(), Some(frame));
    }
    let _ = to.publish();
    guest.set_backend("vale", 0, "6");
    guest.turn();
    drop(from);
    let live = guest.xen.live_pages.get();
    assert_eq!(out.borrow_mut().transmit(&mut later), 10);
    out.borrow_mut().publish();
    assert!(
        guest.xen.live_pages.get() < live,
        "the old region is not needed"
    );
    for frame in &frames[10..] {
        assert_eq!(take(&mut to).as_ref(), Some(frame));
    }
    assert_eq!(to.malformed(), 0);
}

#[test]
fn the_version_is_one_that_both_sides_have() {
    let version = |accepted: Option<&str>, in_place, pages| {
        let mut guest = Guest::new(Options {
            in_place,
            ..Options::default()
        });
        guest.xen.page_limit.set(pages);
        guest.add("vale", 0);
        if let Some(accepted) = accepted {
            accept(&guest, 0, accepted);
        }
        guest.turn();
        let mut port = connect(&mut guest, 256);
        exchange(&guest, &mut port);
        port.version()
    };
    for (accepted, expected) in [
        (None, 1),
        (Some(""), 1),
        (Some("0"), 1),
        (Some("-2"), 1),
        (Some("2"), 2),
        (Some("3"), 2),
        (Some("99999999999"), 1),
    ] {
        assert_eq!(version(accepted, true, 0), expected, "{accepted:?}");
    }
    assert_eq!(version(Some("2"), false, 0), 1);
    // 19 pages of words, 43 blocks of 8, a directory page.
    assert_eq!(version(Some("2"), true, 364), 2);
    assert_eq!(version(Some("2"), true, 362), 1, "too few pages");
}

/// valed refuses rings by closing at once, without a step in between.
#[test]
fn a_guest_offers_itself_again_to_a_switch_that_closed_at_once() {
    let mut guest = guest_with(256);
    let _refused = connect(&mut guest, 256);
    guest.set_backend("vale", 0, "6");
    guest.turn();
    assert_eq!(guest.key("vale", "state"), "1");
    let mut port = connect(&mut guest, 256);
    exchange(&guest, &mut port);
}

/// A store may answer later requests before it sends the first event of a watch.
#[test]
fn devices_from_before_the_start_are_awaited() {
    let mut guest = Guest::new(Options::default());
    guest.add("vale", 0);
    guest.store.hold_events(true);
    assert!(!guest.turn(), "nothing was looked at yet");
    guest.store.hold_events(false);
    assert!(!guest.turn(), "the device is not up");
    connect(&mut guest, 256);
    assert!(guest.turn());
}

/// A toolstack may remove a port before the guest met it; the guest serves its routers then.
#[test]
fn a_device_that_goes_before_it_is_up_is_not_awaited() {
    for state in ["5", "6", ""] {
        let mut guest = guest_with(256);
        assert!(!guest.turn(), "{state:?}");
        guest.set_backend("vale", 0, state);
        assert!(guest.turn(), "{state:?}");
        connect(&mut guest, 256);
        assert!(guest.vifs.list()[0].is_usable(), "{state:?}");
    }
}

/// With an MTU above 1,900 a guest makes rings of version 1, and offers frames of several slots.
#[test]
fn frames_of_9000_bytes_go_both_ways() {
    for accepts in [true, false] {
        let mut guest = Guest::new(Options::default());
        guest.add("vale", 0);
        accept(&guest, 0, "2");
        set_key(&mut guest, 0, "mtu", "9000");
        guest.turn();
        guest.set_backend("vale", 0, "2");
        guest.turn();
        assert_eq!(guest.key_of("vale", 0, "ring-version"), "1");
        let mut port = attach(&guest, 0, 256);
        if accepts {
            port.negotiate();
        }
        guest.set_backend("vale", 0, "4");
        guest.turn();
        let frame: Vec<u8> = (0..9014).map(|at| at as u8).collect();
        let sent = guest.push(&frame);
        guest.device().borrow_mut().publish();
        match accepts {
            true => {
                sent.unwrap();
                assert_eq!(take(&mut port).as_ref(), Some(&frame));
                port.push(&frame).unwrap();
                let _ = port.publish();
                assert_eq!(guest.receive(), [frame]);
            }
            false => {
                assert_eq!(take(&mut port), None, "an older switch");
                assert!(port.push(&frame).is_err());
            }
        }
        assert_eq!(port.malformed(), 0);
    }
}

/// The nodes of a device without an address.
fn add_preconnected(guest: &mut Guest, devid: u32) {
    guest.add("vale", devid);
    let mac = format!("/local/domain/{DOMID}/device/vale/{devid}/mac");
    guest.store.remove(&mac);
    accept(guest, devid, "2");
    guest.turn();
}

fn set_key(guest: &mut Guest, devid: u32, key: &str, value: &str) {
    let path = format!("/local/domain/{DOMID}/device/vale/{devid}/{key}");
    guest.store.write(&path, value.as_bytes());
}

#[test]
fn a_preconnected_device_connects_and_is_of_use_once_it_has_an_address() {
    let mut guest = Guest::new(Options::default());
    add_preconnected(&mut guest, 0);
    let mut port = connect(&mut guest, 256);
    assert!(guest.turn(), "{:?}", guest.xen.said);
    assert!(!guest.vifs.list()[0].is_usable());
    let rings = guest.number("vale", "ring-ref");
    set_key(&mut guest, 0, "mtu", "1400");
    set_key(&mut guest, 0, "mac", "02:00:00:00:00:07");
    assert!(guest.turn());
    assert!(guest.vifs.list()[0].is_usable());
    let device = guest.device();
    assert_eq!(device.borrow().mac(), [2, 0, 0, 0, 0, 7]);
    assert_eq!(device.borrow().mtu(), 1400);
    assert_eq!(guest.number("vale", "ring-ref"), rings, "no new handshake");
    assert_eq!(guest.vifs.list().len(), 1);
    exchange(&guest, &mut port);
    assert_eq!(*guest.xen.said.borrow(), Vec::<String>::new());
}

/// As the toolstack attaches and detaches devices of a running guest.
#[test]
fn devices_come_and_go_while_the_guest_runs() {
    let mut guest = guest_with(256);
    let _first = connect(&mut guest, 256);
    assert!(guest.turn());
    for mac in ["02:00:00:00:00:07", "02:00:00:00:00:08"] {
        guest.add("vale", 1);
        accept(&guest, 1, "2");
        set_key(&mut guest, 1, "mac", mac);
        guest.turn();
        let _port = connect_port(&mut guest, 1, 256, &Arc::default());
        assert!(guest.turn(), "{:?}", guest.xen.said);
        let usable = |guest: &Guest| guest.vifs.list().iter().filter(|v| v.is_usable()).count();
        assert_eq!(usable(&guest), 2);
        let shown = guest.vifs.list()[1].device.borrow().mac();
        assert_eq!(shown.map(|b| format!("{b:02x}")).join(":"), mac);
        assert!(guest.vifs.list()[1].device.borrow().is_up());
        guest.set_backend("vale", 1, "");
        guest
            .store
            .remove(&format!("/local/domain/{DOMID}/device/vale/1"));
        assert!(guest.turn());
        assert_eq!(usable(&guest), 1);
        assert!(!guest.vifs.list()[1].device.borrow().is_up());
    }
    assert_eq!(guest.vifs.list().len(), 2);
    assert_eq!(*guest.xen.said.borrow(), Vec::<String>::new());
}

/// Only a preconnected device gets an address: a router has asked an ordinary one for it.
#[test]
fn an_address_comes_once_and_a_wrong_one_not_at_all() {
    let mut guest = Guest::new(Options::default());
    add_preconnected(&mut guest, 0);
    let _port = connect(&mut guest, 256);
    for (mac, expected) in [
        ("01:00:00:00:00:01", [0; 6]),
        ("00:00:00:00:00:00", [0; 6]),
        ("02:00:00:00:00:01", [2, 0, 0, 0, 0, 1]),
        ("02:00:00:00:00:02", [2, 0, 0, 0, 0, 1]),
    ] {
        set_key(&mut guest, 0, "mac", mac);
        assert!(guest.turn());
        assert_eq!(guest.device().borrow().mac(), expected, "{mac}");
    }
    // A vif of netback with its number is another device.
    add_preconnected(&mut guest, 1);
    guest.add("vif", 1);
    guest.turn();
    assert_eq!(guest.vifs.list()[1].device.borrow().mac(), [0; 6]);
}

#[test]
fn a_preconnected_device_that_the_switch_lets_go_gives_its_memory_back() {
    let mut guest = Guest::new(Options::default());
    add_preconnected(&mut guest, 0);
    drop(connect(&mut guest, 256));
    guest.set_backend("vale", 0, "6");
    assert!(guest.turn());
    assert_eq!(guest.xen.live_pages.get(), 0);
    assert!(!guest.vifs.list()[0].is_usable());
}

#[test]
fn a_sleeping_guest_is_woken_and_a_sleeping_switch_is_kicked() {
    let mut guest = guest_with(64);
    let mut port = connect(&mut guest, 64);
    assert!(!port.sleep_prepare());
    guest.push(&[7; 60]).unwrap();
    guest.device().borrow_mut().publish();
    assert_eq!(guest.xen.notified.get(), 1);
    assert!(!guest.device().borrow_mut().sleep_prepare());
    port.push(&[8; 60]).unwrap();
    assert!(port.publish());
}

#[test]
fn what_the_toolstack_says_wrong_is_told_once_and_refused() {
    let mut guest = guest_with(100);
    assert!(guest.turn() && guest.vifs.list().is_empty());
    guest.add("vale", 0);
    guest.turn();
    let said = guest.xen.said.borrow().clone();
    assert_eq!(said, ["device/vale/0/slots: 100 is not usable"]);
}

#[test]
fn a_restored_guest_offers_fresh_rings() {
    for (version, pages) in [("1", 259 + 1), ("2", 19 + 43 * 8 + 1)] {
        let mut guest = guest_of(version, 256);
        let old = connect(&mut guest, 256);
        guest.xen.grants.borrow_mut().clear();
        guest.xen.channels.borrow_mut().clear();
        guest.add("vale", 0);
        guest.vifs.resume();
        drop(old);
        guest.turn();
        let mut port = connect(&mut guest, 256);
        exchange(&guest, &mut port);
        assert_eq!(guest.xen.live_pages.get(), pages);
    }
}
