// SPDX-License-Identifier: Apache-2.0
//! netfront against a netback in memory.

use crate::common::netback::Netback;
use crate::common::{DOMID, Guest};
use proptest::prelude::*;
use ring::{Memory, PushError};
use xen_net::{Counters, Options};

fn all_options() -> impl Iterator<Item = Options> {
    (0..8).map(|bits| Options {
        poll: bits & 1 != 0,
        keep_grants: bits & 2 != 0,
        fast_refill: bits & 4 != 0,
        in_place: true,
    })
}

fn connected(options: Options) -> (Guest, Netback) {
    let mut guest = Guest::with("vif", options);
    let back = Netback::connect(&mut guest, true);
    (guest, back)
}

fn frame(n: usize) -> Vec<u8> {
    (0..60 + n % 1440).map(|at| (at + n) as u8).collect()
}

#[test]
fn it_connects_with_split_and_with_single_event_channels() {
    for split in [true, false] {
        let mut guest = Guest::with("vif", Options::default());
        assert!(
            !guest.turn(),
            "a device that waits for its backend is not settled"
        );
        let back = Netback::connect(&mut guest, split);
        assert_eq!(back.tx_port != back.rx_port, split);
        assert_eq!(guest.key("vif", "request-rx-copy"), "1");
        assert!(guest.turn() && guest.vifs.list()[0].is_usable());
        assert!(guest.device().borrow().is_up());
        assert_eq!(guest.device().borrow().mac(), [0, 0x16, 0x3e, 1, 2, 3]);
    }
}

#[test]
fn a_backend_that_does_not_come_is_given_up_after_ten_seconds() {
    let mut guest = Guest::with("vif", Options::default());
    guest.now_ns = 9_000_000_000;
    assert!(!guest.turn());
    guest.now_ns = 10_000_000_001;
    assert!(guest.turn() && !guest.vifs.list()[0].is_usable());
}

#[test]
fn frames_arrive_unchanged_and_in_order_with_every_combination_of_switches() {
    for options in all_options() {
        let (guest, mut back) = connected(options);
        let (mut sent, mut given) = (0, 0);
        let (mut taken, mut received) = (0, 0);
        for burst in 0..150 {
            for _ in 0..burst % 70 {
                sent += usize::from(guest.push(&frame(sent)).is_ok());
                given += usize::from(back.give(&frame(given), 0));
            }
            for got in guest.receive() {
                assert_eq!(got, frame(received), "{options:?}");
                received += 1;
            }
            for got in back.take_all(0) {
                assert_eq!(got, frame(taken), "{options:?}");
                taken += 1;
            }
        }
        received += guest.receive().len();
        assert_eq!((sent, given), (taken, received), "{options:?}");
        assert!(sent > 2000 && given > 2000, "{options:?}: {sent}, {given}");
        check_counters(guest.device().borrow().counters(), (sent, received));
    }
}

/// Only good frames passed; attempts to send failed for frames without room.
fn check_counters(counters: Counters, frames: (usize, usize)) {
    let bytes = |frames| (0..frames).map(|n| frame(n).len() as u64).sum::<u64>();
    let tx = (counters.tx_packets, counters.tx_bytes);
    let rx = (counters.rx_packets, counters.rx_bytes);
    assert_eq!(tx, (frames.0 as u64, bytes(frames.0)));
    assert_eq!(rx, (frames.1 as u64, bytes(frames.1)));
    let passed = [tx.0, tx.1, rx.0, rx.1, counters.tx_full];
    let costs = counters.costs;
    let costs = [
        costs.events_sent,
        costs.events_taken,
        costs.grants_made,
        costs.grants_ended,
    ];
    let all: u64 = counters.list().iter().map(|(_, value)| value).sum();
    let good: u64 = passed.iter().chain(&costs).sum();
    assert_eq!(all, good);
}

#[test]
fn what_the_improvements_save_is_counted() {
    let costs = |options| {
        let (guest, mut back) = connected(options);
        for n in 0..100 {
            guest.push(&frame(n)).unwrap();
            back.give(&frame(n), 0);
            guest.receive();
            back.take_all(0);
        }
        guest.receive();
        let counters = guest.device().borrow().counters();
        assert_eq!((counters.tx_packets, counters.rx_packets), (100, 100));
        counters.costs
    };
    let (on, mut off) = (costs(Options::default()), Options::default());
    assert_eq!((on.grants_made, on.grants_ended), (386, 0));
    off.keep_grants = false;
    let off = costs(off);
    assert_eq!(off.grants_ended, 200);
    assert_eq!(off.grants_made, 2 + 256 + 200);
    assert!(on.events_sent > 0 && on.events_taken <= 200);
}

#[test]
fn grants_are_kept_for_life_or_made_for_each_frame() {
    for (keep_grants, fewest, most) in [(true, 386, 386), (false, 2, 258)] {
        let options = Options {
            keep_grants,
            ..Options::default()
        };
        let (guest, mut back) = connected(options);
        for n in 0..600 {
            guest.push(&frame(n)).unwrap();
            back.give(&frame(n), 0);
            assert_eq!(guest.receive().len(), 1);
            assert_eq!(back.take_all(0).len(), 1);
            let grants = guest.xen.grants.borrow().len();
            assert!((fewest..=most + 1).contains(&grants), "{grants}");
        }
    }
}

/// A guest that went to sleep is woken by the next frame, however many came before.
#[test]
fn no_frame_is_slept_through() {
    for options in all_options() {
        let (guest, mut back) = connected(options);
        for n in 0..1000 {
            for _ in 0..n % 5 {
                assert!(back.give(&frame(n), 0));
            }
            assert_eq!(guest.receive().len(), n % 5, "{options:?}");
            assert!(!guest.device().borrow_mut().sleep_prepare() || guest.is_woken());
            assert!(back.give(&frame(n), 0));
            assert!(guest.is_woken(), "{options:?}: frame {n} woke nobody");
            guest.device().borrow_mut().wake_done();
            assert_eq!(guest.receive().len(), 1, "{options:?}");
        }
    }
}

/// Those of a guest without a router, or with one that looks at another vif.
#[test]
fn frames_that_nobody_takes_keep_nobody_awake() {
    for options in all_options() {
        let (guest, mut back) = connected(options);
        let sleep = || !guest.device().borrow_mut().sleep_prepare();
        while !sleep() {}
        for n in 0..5 {
            assert!(back.give(&frame(n), 0));
            assert!(guest.is_woken(), "{options:?}: frame {n} woke nobody");
            assert!(!sleep(), "{options:?}: frame {n} is new");
            assert!(
                sleep() && !guest.is_woken(),
                "{options:?}: frame {n} is not"
            );
        }
        assert_eq!(guest.receive().len(), 5, "{options:?}");
    }
}

#[test]
fn a_busy_guest_that_polls_is_not_disturbed() {
    let (guest, mut back) = connected(Options::default());
    guest.receive();
    assert!(back.give(&frame(1), 0)); // the ring's first event
    assert_eq!(guest.receive().len(), 1);
    let mut ports = Vec::new();
    guest.device().borrow().ports(&mut ports);
    guest
        .xen
        .channels
        .borrow_mut()
        .values_mut()
        .for_each(|pending| *pending = false);
    for n in 0..500 {
        assert!(back.give(&frame(n), 0));
        assert_eq!(guest.receive().len(), 1);
    }
    assert!(!guest.is_woken());
}

#[test]
fn a_full_ring_holds_the_sender_and_wakes_it_once_there_is_room() {
    let (guest, mut back) = connected(Options::default());
    for n in 0..256 {
        guest.push(&frame(n)).unwrap();
    }
    assert_eq!(guest.push(&frame(0)), Err(PushError::Full));
    guest.device().borrow_mut().publish();
    assert!(!guest.device().borrow_mut().sleep_prepare());
    assert_eq!(back.take_all(0).len(), 256);
    assert!(guest.is_woken());
    guest.push(&frame(0)).unwrap();
}

#[test]
fn a_sleeping_backend_is_notified_and_a_busy_one_is_not() {
    let (guest, mut back) = connected(Options::default());
    back.tx.sleep();
    for expected in [1, 0, 0] {
        let before = guest.xen.notified.get();
        guest.push(&frame(1)).unwrap();
        guest.device().borrow_mut().publish();
        assert_eq!(guest.xen.notified.get() - before, expected);
        assert_eq!(back.take_all(0).len(), 1);
    }
}

#[test]
fn a_blank_checksum_is_filled_in_before_the_guest_sees_it() {
    let (guest, mut back) = connected(Options::default());
    let mut datagram = vec![2; 12];
    datagram.extend([
        8, 0, 0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    datagram.extend([0, 53, 0, 54, 0, 9, 0xde, 0xad, b'x']);
    assert!(back.give(&datagram, 0b11)); // data_validated, csum_blank
    let got = &guest.receive()[0];
    let sum = click_wire::checksum::pseudo([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 9);
    assert_eq!(
        click_wire::checksum::finish(click_wire::checksum::add(sum, &got[34..])),
        0
    );
    assert!(back.give(&frame(5), 0b10)); // no such packet
    assert!(guest.receive().is_empty());
    assert_eq!(guest.device().borrow().counters().malformed, 1);
}

#[test]
fn frames_that_make_no_sense_are_counted_and_passed_over() {
    let (guest, mut back) = connected(Options::default());
    let good = frame(0);
    assert!(back.give_at(&good, 4000, 0, 200)); // beyond the page
    assert!(back.give_at(&good, 0, 0, 0));
    assert!(back.give_at(&good, 0, 0, -1));
    assert!(back.give_at(&good, 0, 0, 2049)); // longer than a buffer of the router
    assert!(back.give(&good, 1 << 2)); // a frame of three slots
    assert!(back.give(&good, 1 << 2));
    assert!(back.give(&good, 0));
    assert!(back.give(&good, 0));
    assert_eq!(guest.receive(), [good]);
    let counters = guest.device().borrow().counters();
    assert_eq!(
        (counters.malformed, counters.rx_errors, counters.too_long),
        (2, 1, 2)
    );
    assert_eq!(counters.faults, 0);
}

#[test]
fn frames_the_backend_refuses_are_counted() {
    let (guest, mut back) = connected(Options::default());
    guest.push(&frame(0)).unwrap();
    guest.device().borrow_mut().publish();
    back.take_all(-1);
    guest.device().borrow_mut().publish();
    assert_eq!(guest.device().borrow().counters().tx_errors, 1);
    let short = guest.push(&[0; 13]);
    assert_eq!(short, Err(PushError::BadLength(13)));
}

/// What a hostile backend can do to the rings closes the vif with an error, once on the console.
#[test]
fn a_broken_ring_closes_the_vif() {
    type Break = fn(&mut Netback);
    let ways: [(Break, &str); 6] = [
        (
            |back| back.rx.page.store(8, 1000),
            "rx ring: 1000 responses to 256 requests",
        ),
        (
            |back| back.tx.page.store(8, 1),
            "tx ring: 1 responses to 0 requests",
        ),
        (
            |back| {
                back.rx.respond(&[0xff, 0xff, 0, 0, 0, 0, 60, 0]);
                back.flush()
            },
            "request 65535",
        ),
        (
            |back| {
                for _ in 0..2 {
                    back.rx.respond(&[3, 0, 0, 0, 0, 0, 60, 0])
                }
                back.flush()
            },
            "request 3",
        ),
        (
            |back| {
                back.give(&[0; 60], 1 << 3);
            },
            "flags 0x8",
        ),
        (
            |back| {
                back.give(&[0; 60], 1 << 4);
            },
            "flags 0x10",
        ),
    ];
    // With fast refill a buffer is on offer again before its second answer is looked at.
    let options = Options {
        fast_refill: false,
        ..Options::default()
    };
    for (break_it, text) in ways {
        let (mut guest, mut back) = connected(options);
        break_it(&mut back);
        guest.receive();
        assert!(!guest.device().borrow().is_up(), "{text}");
        guest.turn();
        assert_eq!(guest.key("vif", "state"), "6");
        let error = guest.store.text("/local/domain/7/error/device/vif/0/error");
        assert!(
            error.clone().unwrap_or_default().contains(text),
            "{error:?}"
        );
        assert_eq!(guest.xen.said.borrow().len(), 1);
        assert_eq!(guest.device().borrow().counters().faults, 1);
        assert!(guest.xen.grants.borrow().is_empty() && guest.xen.channels.borrow().is_empty());
        assert_eq!(guest.xen.live_pages.get(), 0);
        // A backend that starts again is taken again.
        guest.set_backend("vif", 0, "6");
        guest.turn();
        Netback::connect(&mut guest, true);
        assert!(guest.device().borrow().is_up());
    }
}

#[test]
fn a_backend_goes_and_comes_back() {
    let (mut guest, _) = connected(Options::default());
    for _ in 0..3 {
        guest.set_backend("vif", 0, "5");
        guest.turn();
        assert_eq!(guest.key("vif", "state"), "6");
        assert_eq!(guest.push(&frame(0)), Err(PushError::Full));
        guest.set_backend("vif", 0, "6");
        guest.turn();
        assert_eq!(guest.key("vif", "state"), "1", "it offers itself again");
        let mut back = Netback::connect(&mut guest, true);
        assert!(back.give(&frame(1), 0));
        assert_eq!(guest.receive().len(), 1);
        assert_eq!(guest.xen.grants.borrow().len(), 386);
    }
    // xenstored tells of each removed node, the simulator of the named one
    guest.store.remove("/local/domain/0/backend/vif/7/0/state");
    guest.store.remove("/local/domain/7/device/vif/0");
    guest.turn();
    assert!(guest.xen.grants.borrow().is_empty());
    guest.add("vif", 0);
    guest.turn();
    let mut back = Netback::connect(&mut guest, true);
    assert!(back.give(&frame(1), 0));
    assert_eq!(guest.receive().len(), 1);
}

#[test]
fn a_backend_that_moves_away_and_back_is_met_again() {
    let (mut guest, _) = connected(Options::default());
    let path = "/local/domain/7/device/vif/0/backend";
    let home = guest.store.text(path).unwrap_or_default();
    for place in ["/local/domain/0/backend/vif/7/9", &home] {
        guest.store.write(path, place.as_bytes());
        guest.turn();
    }
    guest.set_backend("vif", 0, "6");
    guest.turn();
    let mut back = Netback::connect(&mut guest, true);
    assert!(back.give(&frame(1), 0));
    assert_eq!(guest.receive().len(), 1);
    assert!(guest.xen.said.borrow().is_empty());
}

#[test]
fn pages_the_backend_holds_are_not_used_for_anything_else() {
    let (mut guest, _) = connected(Options::default());
    let ring = guest.number("vif", "tx-ring-ref");
    guest.xen.held.borrow_mut().push(ring);
    guest.set_backend("vif", 0, "5");
    guest.turn();
    assert_eq!(guest.xen.live_pages.get(), 1, "the ring's page stays");
    guest.xen.held.borrow_mut().clear();
    guest.set_backend("vif", 0, "6");
    guest.turn();
    assert_eq!(guest.xen.live_pages.get(), 0);
}

#[test]
fn a_backend_that_never_lets_go_gets_no_more_pages() {
    let (mut guest, _) = connected(Options::default());
    for _ in 0..40 {
        let held: Vec<u32> = guest.xen.grants.borrow().keys().copied().collect();
        *guest.xen.held.borrow_mut() = held;
        for state in ["5", "6", "2", "4"] {
            guest.set_backend("vif", 0, state);
            guest.turn();
        }
    }
    let pages = guest.xen.live_pages.get();
    assert!(pages <= 6 * 386, "{pages} pages");
    assert!(guest.xen.said.borrow()[0].contains("the backend holds"));
    drop(guest.vifs);
    assert_eq!(
        guest.xen.live_pages.get(),
        pages,
        "held pages were given back"
    );
}

#[test]
fn a_restored_guest_connects_anew() {
    let (mut guest, _) = connected(Options::default());
    guest.xen.grants.borrow_mut().clear();
    guest.xen.channels.borrow_mut().clear();
    guest.add("vif", 0);
    guest.vifs.resume();
    guest.mux.borrow_mut().reconnect(guest.store.domain(DOMID));
    guest.turn();
    let mut back = Netback::connect(&mut guest, true);
    assert!(back.give(&frame(1), 0));
    assert_eq!(guest.receive().len(), 1);
    assert_eq!(guest.xen.live_pages.get(), 386, "the old pages were lost");
}

#[test]
fn without_memory_the_vif_closes_and_says_so() {
    let mut guest = Guest::with("vif", Options::default());
    guest.xen.page_limit.set(300);
    guest.set_backend("vif", 0, "2");
    assert!(guest.turn());
    assert_eq!(guest.key("vif", "state"), "6");
    assert!(guest.xen.said.borrow()[0].contains("no memory"));
    assert_eq!(guest.xen.live_pages.get(), 0);
}

proptest! {
    /// Whatever the backend writes into its pages and whenever, the guest neither panics nor
    /// hangs nor keeps a grant after it has closed.
    #[test]
    fn garbage_in_the_rings(
        options in (0..8usize),
        steps in proptest::collection::vec((0..6u8, any::<u16>(), any::<u32>()), 1..60),
    ) {
        let (mut guest, back) = connected(all_options().nth(options).unwrap());
        for (kind, at, value) in steps {
            match kind {
                0 => back.rx.page.store(usize::from(at) % 1024 * 4, value),
                1 => back.tx.page.store(usize::from(at) % 1024 * 4, value),
                2 => { back.rx.page.store(8, back.rx.page.load(8).wrapping_add(value % 4)); }
                3 => { let _ = guest.push(&frame(usize::from(at))); }
                4 => { let _ = guest.device().borrow_mut().sleep_prepare(); }
                _ => { guest.xen.send_event(if value & 1 == 0 { back.tx_port } else { back.rx_port }); }
            }
            guest.receive();
        }
        guest.turn();
        guest.set_backend("vif", 0, "6");
        guest.turn();
        prop_assert!(guest.xen.grants.borrow().is_empty());
        prop_assert_eq!(guest.xen.live_pages.get(), 0);
    }

    /// Whatever stands in the store, the guest continues; what is no description is said once.
    #[test]
    fn garbage_in_the_store(
        writes in proptest::collection::vec((0..9usize, "[0-9a-f:/é-]{0,20}", 0..7u8), 1..40),
    ) {
        let mut guest = Guest::with("vif", Options::default());
        let keys = ["backend", "backend-id", "mac", "mtu", "slots", "state", "backend", "x", "y"];
        for (key, value, state) in writes {
            guest.store.write(&format!("/local/domain/7/device/vif/0/{}", keys[key]), value.as_bytes());
            guest.store.write(&format!("/local/domain/7/device/vale/{}/mac", key), value.as_bytes());
            guest.set_backend("vif", 0, &state.to_string());
            guest.turn();
        }
        prop_assert!(guest.xen.said.borrow().len() < 40);
    }
}
