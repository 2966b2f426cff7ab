// SPDX-License-Identifier: Apache-2.0
//! The vale port against the switch's side of the ring, in memory.
#![cfg(test)]
mod common;

use common::{Guest, View};
use ring::layout::{Layout, PAGE};
use ring::{Memory, PushError, SwitchPort, directory};
use xen_net::Options;

/// Answers the handshake as valed does and connects.
fn connect(guest: &mut Guest, slots: u32) -> SwitchPort<View> {
    guest.set_backend("vale", 0, "2");
    guest.turn();
    assert_eq!(guest.key("vale", "state"), "4", "{:?}", guest.xen.said);
    let pages = Layout::new(slots).unwrap().size() / PAGE;
    let mut references = vec![0; pages];
    let mut next = guest.number("vale", "ring-ref");
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
    guest.set_backend("vale", 0, "4");
    guest.turn();
    port
}

fn guest_with(slots: u32) -> Guest {
    let mut guest = Guest::new(Options::default());
    guest.add("vale", 0);
    let path = "/local/domain/7/device/vale/0/slots";
    guest.store.write(path, slots.to_string().as_bytes());
    guest.turn();
    guest
}

fn exchange(guest: &Guest, port: &mut SwitchPort<View>) {
    let mut buffer = [0; ring::BUFFER_SIZE];
    for n in 0..1200usize {
        let frame: Vec<u8> = (0..60 + n * 7 % 1500).map(|at| (at ^ n) as u8).collect();
        guest.device().borrow_mut().push(&frame).unwrap();
        guest.device().borrow_mut().publish();
        assert_eq!(port.pop(&mut buffer), Some(frame.len()));
        assert_eq!(buffer[..frame.len()], frame);
        port.push(&buffer[..frame.len()]).unwrap();
        let _ = port.publish();
        assert_eq!(guest.receive(), [frame]);
    }
    assert_eq!(port.malformed(), 0);
}

#[test]
fn frames_go_both_ways_with_any_number_of_slots() {
    for (slots, pages) in [(64, 67), (256, 259), (1024, 1029), (2048, 2057)] {
        let mut guest = guest_with(slots);
        let mut port = connect(&mut guest, slots);
        assert!(guest.vifs.list()[0].is_usable());
        exchange(&guest, &mut port);
        assert_eq!(
            guest.xen.grants.borrow().len(),
            pages + directory::pages(pages)
        );
    }
}

#[test]
fn a_switch_that_is_started_anew_gets_fresh_rings() {
    let mut guest = guest_with(256);
    for _ in 0..3 {
        let mut port = connect(&mut guest, 256);
        exchange(&guest, &mut port);
        guest.set_backend("vale", 0, "5");
        guest.turn();
        assert_eq!(guest.key("vale", "state"), "6");
        let pushed = guest.device().borrow_mut().push(&[0; 60]);
        assert_eq!(pushed, Err(PushError::Full));
        assert!(guest.xen.grants.borrow().is_empty());
        guest.set_backend("vale", 0, "6");
        guest.turn();
        assert_eq!(guest.key("vale", "state"), "1");
    }
    assert_eq!(guest.xen.live_pages.get(), 0);
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

#[test]
fn a_sleeping_guest_is_woken_and_a_sleeping_switch_is_kicked() {
    let mut guest = guest_with(64);
    let mut port = connect(&mut guest, 64);
    assert!(!port.sleep_prepare());
    guest.device().borrow_mut().push(&[7; 60]).unwrap();
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
    let mut guest = guest_with(256);
    let _old = connect(&mut guest, 256);
    guest.xen.grants.borrow_mut().clear();
    guest.xen.channels.borrow_mut().clear();
    guest.add("vale", 0);
    guest.vifs.resume();
    guest.turn();
    let mut port = connect(&mut guest, 256);
    exchange(&guest, &mut port);
    assert_eq!(guest.xen.live_pages.get(), 260);
}
