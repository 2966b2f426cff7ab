// SPDX-License-Identifier: Apache-2.0
//! netfront with a backend that writes anything into its pages and its part of the store.
#[path = "../../crates/clickos-xen-net/tests/it/common/mod.rs"]
#[allow(clippy::unwrap_used, dead_code, unsafe_code)] // The fake backend of netfront's tests.
mod fake;

use fake::Guest;
use fake::netback::Netback;
use ring::Memory;
use xen_net::Options;

/// Kind, place or length, value.
const STEP: usize = 7;

/// The guest continues, and keeps no grant and no page once its backend has closed.
pub fn netif(data: &[u8]) {
    let Some((switches, steps)) = data.split_first() else {
        return;
    };
    let options = Options {
        poll: switches & 1 != 0,
        keep_grants: switches & 2 != 0,
        fast_refill: switches & 4 != 0,
        in_place: false,
    };
    let mut guest = Guest::with("vif", options);
    let mut back = Netback::connect(&mut guest, switches & 8 != 0);
    for step in steps.chunks_exact(STEP) {
        let at = usize::from(u16::from_le_bytes([step[1], step[2]]));
        let value = u32::from_le_bytes([step[3], step[4], step[5], step[6]]);
        take(step[0], at, value, &mut guest, &mut back);
        guest.receive();
    }
    guest.turn();
    guest.set_backend("vif", 0, "6");
    guest.turn();
    assert!(guest.xen.grants.borrow().is_empty());
    assert_eq!(guest.xen.live_pages.get(), 0);
}

fn take(kind: u8, at: usize, value: u32, guest: &mut Guest, back: &mut Netback) {
    match kind % 7 {
        0 => back.rx.page.store(at % 1024 * 4, value),
        1 => back.tx.page.store(at % 1024 * 4, value),
        2 => back
            .rx
            .page
            .store(8, back.rx.page.load(8).wrapping_add(value % 4)),
        3 => drop(guest.push(&vec![kind; at % 1600])),
        4 => drop(guest.device().borrow_mut().sleep_prepare()),
        5 => guest.xen.send_event(if value & 1 == 0 {
            back.tx_port
        } else {
            back.rx_port
        }),
        _ => {
            // Its rings stay those of the first connection, which a closed guest has taken back.
            guest.set_backend("vif", 0, &(value % 8).to_string());
        }
    }
}
