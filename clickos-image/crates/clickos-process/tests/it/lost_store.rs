// SPDX-License-Identifier: Apache-2.0
//! A guest whose store writes garbage, dies, or begins again empty.

use super::guest::{assert_rests, pass, wire};
use crate::common::guest::Port;
use crate::common::{Host, eventually};
use std::io::Write;
use std::os::fd::AsFd;
use xenstore::Tx;

#[test]
fn a_hostile_store_page_ends_control_but_not_forwarding() {
    use std::os::unix::fs::FileExt;
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    let ring = std::fs::File::options()
        .write(true)
        .open(host.path("dom5.ring"))
        .unwrap();
    ring.write_all_at(&0x7fff_ffff_u32.to_ne_bytes(), 2048 + 12)
        .unwrap(); // rsp_prod
    let mut event = std::fs::File::options()
        .write(true)
        .open(host.path("dom5.event"))
        .unwrap();
    event.write_all(&[1]).unwrap();
    (0..50).for_each(|number| pass(&mut guest, number));
    eventually("the guest tells that the store is lost", || {
        guest.console(&host).contains("control: the store is lost")
    });
    pass(&mut guest, 50);
}

#[test]
fn the_store_may_die_and_packets_go_on() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    host.kill_store();
    (0..50).for_each(|number| pass(&mut guest, number));
    assert_rests(&guest);
}

#[test]
fn a_guest_goes_on_with_a_store_that_began_anew() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    for round in 1..=3 {
        pass(&mut guest, round);
        host.restart_store();
        guest.relink(&mut host);
        pass(&mut guest, round);
        assert_eq!(
            guest.read(&mut host, 0, "c.count").trim(),
            (2 * round).to_string()
        );
        assert!(
            host.text(&guest.node("0/state"))
                .unwrap()
                .starts_with("Running")
        );
    }
    let (word, _) = guest.install(&mut host, 0, "a :: Nonesuch;");
    assert_eq!(word, "Error");
    let told = ["0/state", "0/error"].map(|name| guest.node(name));
    let refused = told.each_ref().map(|path| host.text(path));
    host.restart_store();
    guest.relink(&mut host);
    let again = told.each_ref().map(|path| host.text(path));
    assert_eq!(again, refused);
    assert_rests(&guest);
}

/// The store dies before its requester takes the answer.
#[test]
fn a_short_answer_is_told_again_to_a_store_that_lost_it() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    pass(&mut guest, 1);
    let (_, response) = guest.ask(&mut host, 0, b"write c.reset ");
    let piece = format!("{response}/0");
    host.wait("an answer", |client| {
        client.read_opt(Tx::NONE, &piece).unwrap()
    });
    host.restart_store();
    guest.relink(&mut host);
    assert_eq!(host.text(&piece).unwrap(), ".200 0 command\n");
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "0");
}

#[test]
fn a_bad_link_changes_nothing() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    guest.send(r#"{"store":{}}"#, &[]);
    eventually("the guest tells of it", || {
        guest.console(&host).contains("0 descriptors, expected 3")
    });
    pass(&mut guest, 1);
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "1");
}

/// Each link takes the room of a vif to come, until the guest continues with it.
#[test]
fn bad_links_leave_room_and_the_good_one_after_them_counts() {
    let mut host = Host::new();
    let mut guest = wire(&mut host, 5);
    let null = std::fs::File::open("/dev/null").unwrap();
    let rings = Port::new();
    let [null, port] = [null.as_fd(), rings.memfd.as_fd()];
    let before = guest.mapped_kib();
    for fds in [&[null, null, null][..], &[port, null, null, null], &[null]] {
        for _ in 0..20 {
            guest.send(r#"{"store":{}}"#, fds);
        }
    }
    // Its answer comes after all of them.
    let answer = guest.plug(r#"{"store":{"ring":1}}"#, &[null, null, null]);
    assert!(answer["error"].is_string(), "{answer}");
    pass(&mut guest, 1);
    // Less than the room of one vif.
    assert!(guest.mapped_kib().abs_diff(before) < 1024);
    host.restart_store();
    guest.relink(&mut host);
    pass(&mut guest, 1);
    assert_eq!(guest.read(&mut host, 0, "c.count").trim(), "2");
}
