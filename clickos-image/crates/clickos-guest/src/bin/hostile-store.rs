// SPDX-License-Identifier: Apache-2.0
//! A guest for tests of the Xen store: it breaks the rules of its ring, as its command line says.
//!
//! * `events`: it notifies the store without a request, as fast as it can.
//! * `requests`: the ring has more bytes of requests than it can hold.
//! * `answers`: the store writes a part of an answer; then the ring has more bytes of answers than it can hold.
//! * `garbage`: requests of random bytes.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
extern crate alloc;

use clickos_os::clock::deadline_ns;
use clickos_os::{command_line, random, store_ring, wait};
use xenstore::{Header, Index, Notify, Page, RING_SIZE, Request, Tx};

clickos_os::entry!(main);

/// Bytes of the ring's half; an index may not be ahead of its partner by more.
const SIZE: u32 = RING_SIZE as u32;
/// Room for an answer, which is longer.
const ROOM: u32 = 4;
/// Types of requests, and some that do not exist.
const KINDS: u32 = 32;
/// Bytes of a request of [`scribble_forever`], less than half of the ring.
const PAYLOAD: u32 = 64;
/// The bytes of such a request: they often make a path, a number or an end.
const TEXT: &[u8] = b"\0\0/@.a0123456789data\xff";
/// Time between two notifications, but for `events`.
const NAP_NS: u64 = 10_000_000;

fn main() -> ! {
    let (mut page, mut notifier) = store_ring();
    match command_line().trim() {
        "events" => loop {
            notifier.notify();
        },
        "requests" => {
            page.store(
                Index::ReqProd,
                page.load(Index::ReqCons).wrapping_add(2 * SIZE),
            );
            notify_forever(&mut notifier)
        }
        "answers" => {
            break_answers(&mut page, &mut notifier);
            notify_forever(&mut notifier)
        }
        _ => scribble_forever(&mut page, &mut notifier),
    }
}

fn notify_forever(notifier: &mut impl Notify) -> ! {
    loop {
        notifier.notify();
        wait(&[], Some(deadline_ns(NAP_NS)));
    }
}

/// Lets the store write a part of an answer, and spoils the index by which it would go on.
fn break_answers(page: &mut impl Page, notifier: &mut impl Notify) {
    let before = page.load(Index::RspProd);
    page.store(Index::RspCons, before.wrapping_add(ROOM).wrapping_sub(SIZE));
    let request = Request::directory(Tx::NONE, "/").expect("a path of the store");
    send(page, &request.encode(1));
    while page.load(Index::RspProd) == before {
        notifier.notify();
        wait(&[], Some(deadline_ns(NAP_NS)));
    }
    page.store(Index::RspCons, before.wrapping_add(2 * SIZE));
}

/// Writes to the half of requests, and moves its index.
fn send(page: &mut impl Page, bytes: &[u8]) {
    let first = page.load(Index::ReqProd);
    let mut at = first;
    for byte in bytes {
        page.write_request((at % SIZE) as usize, &[*byte]);
        at = at.wrapping_add(1);
    }
    page.store(Index::ReqProd, at);
}

/// Sends requests of random types, transactions and bytes, and takes all answers.
fn scribble_forever(page: &mut impl Page, notifier: &mut impl Notify) -> ! {
    let mut state = u64::from_le_bytes(*random::seed().first_chunk().expect("a seed is longer"));
    let mut below = |limit: u32| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32 % limit
    };
    loop {
        let header = Header {
            kind: below(KINDS),
            req_id: below(u32::MAX),
            tx_id: below(3),
            len: below(PAYLOAD),
        };
        let mut message = header.to_bytes().to_vec();
        message.extend((0..header.len).map(|_| TEXT[below(TEXT.len() as u32) as usize]));
        if page
            .load(Index::ReqProd)
            .wrapping_sub(page.load(Index::ReqCons))
            <= SIZE / 2
        {
            send(page, &message);
        }
        page.store(Index::RspCons, page.load(Index::RspProd));
        notifier.notify();
        wait(&[], Some(deadline_ns(NAP_NS / 10)));
    }
}
