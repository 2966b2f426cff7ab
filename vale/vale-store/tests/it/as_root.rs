// SPDX-License-Identifier: Apache-2.0
//! Requests of the switch pass; all others are refused, and change nothing.
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use cosmos_testbed::Testbed;
use vale_store::account::{MAX_TRANSACTIONS, WATCH_BYTES};
use vale_store::door;
use vale_store::outbox::MAX;
use xenstore::{Client, Code, Error, Header, Kind, Request, Tx};

const STATE: &str = "/local/domain/7/device/vale/1/state";
const BACKEND: &str = "/local/domain/0/backend/vale/7/1";

/// Opens a door; gives its socket's path.
fn open(bed: &Testbed) -> std::path::PathBuf {
    let (socket, store) = (bed.path("door.sock"), bed.path("xenstore/socket"));
    let listener = UnixListener::bind(&socket).expect("a folder of its own");
    std::thread::spawn(move || door::serve(&listener, &store));
    socket
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.expect_err("the door passes nothing else on");
    assert!(error.is(Code::Access), "{error}");
}

#[test]
fn the_switch_follows_its_ports_and_sees_nothing_else() {
    let bed = Testbed::start();
    let (mut dom0, mut switch) = (bed.store(), Client::connect(&open(&bed)).unwrap());
    dom0.write(Tx::NONE, STATE, b"1").unwrap();
    assert_eq!(switch.read(Tx::NONE, STATE).unwrap(), b"1");

    switch.watch(STATE, "one").unwrap();
    let next = |switch: &mut Client| switch.wait_event(Duration::from_secs(30)).unwrap().unwrap();
    assert_eq!(next(&mut switch).token, "one");
    dom0.write(Tx::NONE, STATE, b"4").unwrap();
    assert_eq!(next(&mut switch).path, STATE);

    // A port that the toolstack has not made, and one that it has.
    let state = format!("{BACKEND}/state");
    refused(switch.write(Tx::NONE, &state, b"2"));
    assert_eq!(dom0.read_opt(Tx::NONE, BACKEND).unwrap(), None);
    dom0.write(Tx::NONE, &format!("{BACKEND}/frontend"), b"x")
        .unwrap();
    let written = switch.transaction(|tx| {
        tx.read_opt(&format!("{BACKEND}/frontend"))?;
        tx.write(&state, b"2")
    });
    written.unwrap();
    assert_eq!(dom0.read(Tx::NONE, &state).unwrap(), b"2");

    let secret = "/local/domain/7/data/secret";
    dom0.write(Tx::NONE, secret, b"x").unwrap();
    refused(switch.read(Tx::NONE, secret));
    refused(switch.write(Tx::NONE, STATE, b"6"));
    refused(switch.rm(Tx::NONE, BACKEND));
    refused(switch.directory(Tx::NONE, "/local/domain"));
    refused(switch.watch("/local", "all"));
    refused(switch.call(&Request::release(7)));
    assert_eq!(dom0.read(Tx::NONE, STATE).unwrap(), b"4");
    // The connection continues.
    assert_eq!(switch.read(Tx::NONE, STATE).unwrap(), b"4");
}

/// The header of a request to read a node, with that many bytes behind it.
fn read_of(len: u32) -> Header {
    Header {
        kind: Kind::Read as u32,
        req_id: 1,
        tx_id: 0,
        len,
    }
}

#[test]
fn a_message_beyond_the_bound_ends_its_connection_alone() {
    let bed = Testbed::start();
    let socket = open(&bed);
    let mut other = Client::connect(&socket).unwrap();
    let mut hostile = UnixStream::connect(&socket).unwrap();
    let header = read_of(u32::MAX);
    hostile.write_all(&header.to_bytes()).unwrap();
    assert_eq!(hostile.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(other.read_opt(Tx::NONE, STATE).unwrap(), None);
}

#[test]
fn connections_have_a_bound_and_free_their_place() {
    let bed = Testbed::start();
    let socket = open(&bed);
    let asks = |client: &mut Client| client.read_opt(Tx::NONE, STATE);
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(&socket).unwrap()).collect();
    clients
        .iter_mut()
        .for_each(|client| assert!(asks(client).is_ok()));
    assert!(Client::connect(&socket).is_ok_and(|mut client| asks(&mut client).is_err()));
    clients.clear();
    cosmos_testbed::eventually("a place is free", || {
        let mut client = Client::connect(&socket).ok()?;
        asks(&mut client).ok()
    });
}

#[test]
fn open_transactions_and_long_watches_are_refused() {
    let bed = Testbed::start();
    let mut switch = Client::connect(&open(&bed)).unwrap();
    let start = Request::transaction_start();
    let begun: Vec<_> = (0..MAX_TRANSACTIONS)
        .map(|_| Tx::from_reply(&switch.call(&start).unwrap()).unwrap())
        .collect();
    let refused = switch.call(&start).expect_err("one more than may be open");
    assert!(refused.is(Code::NoSpace), "{refused}");
    for tx in begun {
        switch.call(&Request::transaction_end(tx, false)).unwrap();
    }
    switch.call(&start).unwrap();

    let token = "x".repeat(WATCH_BYTES as usize);
    let refused = switch.watch(STATE, &token).expect_err("a long token");
    assert!(refused.is(Code::TooBig), "{refused}");
    switch.watch(STATE, "short").unwrap();
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection_alone() {
    let bed = Testbed::start();
    let socket = open(&bed);
    let mut other = Client::connect(&socket).unwrap();
    let mut hostile = UnixStream::connect(&socket).unwrap();
    let request = [&read_of(6).to_bytes()[..], b"domid\0"].concat();
    // What the socket holds comes on top of what the door holds.
    let sent = (0..100 * MAX).take_while(|_| hostile.write_all(&request).is_ok());
    assert!(sent.count() < 100 * MAX);
    assert_eq!(other.read_opt(Tx::NONE, STATE).unwrap(), None);
}
