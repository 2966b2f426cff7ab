// SPDX-License-Identifier: Apache-2.0
//! Subscribers that negotiate again and again: it earns them no time, no bytes and no requests to servers.
use super::radius::{ARGUMENTS, GRANT, ask, logged_in, requests};
use super::subscriber::{Bench, Client, SECOND_NS, USERS, up};

/// Negotiates IPv4 on the open link once more.
fn again(bench: &mut Bench, client: &mut Client) {
    client.network = [false; 2];
    exchange(bench, client, vec![client.ask()]);
}

/// Negotiates the link once more, and all that follows.
fn anew(bench: &mut Bench, client: &mut Client) {
    (client.link, client.network) = ([false; 2], [false; 2]);
    let request = client.control(0xc021, 1, 9, &[1, 4, 5, 0xd4, 5, 6, 1, 2, 3, 4]);
    exchange(bench, client, vec![request]);
}

fn exchange(bench: &mut Bench, client: &mut Client, mut sends: Vec<Vec<u8>>) {
    while !sends.is_empty() {
        let frames = bench.exchange(0, &sends);
        sends = frames
            .iter()
            .flat_map(|frame| client.answer(frame))
            .collect();
    }
}

#[test]
fn a_rate_holds_over_negotiations() {
    for begins in [again, anew] {
        let mut bench = Bench::new(USERS);
        let mut bob = up(&mut bench, 1, "bob", "two");
        let mut passed = 0;
        for _ in 0..4 {
            bench.exchange(0, &vec![bob.sends([10, 0, 0, 3], 1000); 100]);
            passed += bench.sent(1).len();
            begins(&mut bench, &mut bob);
            assert!(bob.is_up());
        }
        assert_eq!(passed, 16);
    }
}

#[test]
fn a_session_timeout_holds_over_negotiations() {
    let mut bench = Bench::new(ARGUMENTS);
    let grant = [&GRANT[..], &[27, 6, 0, 0, 0, 10]].concat();
    let (mut eve, _) = logged_in(&mut bench, 1, &grant);
    for _ in 0..3 {
        bench.wait(3);
        again(&mut bench, &mut eve);
        assert!(eve.is_up());
    }
    bench.wait(2);
    let ended = bench.read("s.ended");
    assert!(ended.ends_with(" session-timeout\n"), "{ended}");
    // nor does a session go on that begins again within each second
    let mut bench = Bench::new(ARGUMENTS);
    let (mut eve, _) = logged_in(&mut bench, 1, &grant);
    for _ in 0..25 {
        bench.now_ns += SECOND_NS / 2;
        again(&mut bench, &mut eve);
    }
    assert!(eve.is_over);
}

#[test]
fn a_session_begins_again_some_times_only() {
    let mut bench = Bench::new(ARGUMENTS);
    let (mut eve, _) = logged_in(&mut bench, 1, &GRANT);
    let (mut rounds, mut records) = (0, 0);
    while !eve.is_over && rounds < 100 {
        again(&mut bench, &mut eve);
        let sent = requests(&mut bench);
        for request in &sent {
            bench.exchange(2, &[request.answer(5, &[])]);
        }
        (rounds, records) = (rounds + 1, records + sent.len());
    }
    assert!(eve.is_over && records < 30, "{rounds} {records}");
    // one that does so now and then continues
    let mut bench = Bench::new(ARGUMENTS);
    let mut amy = up(&mut bench, 1, "amy", "one");
    let echo = amy.control(0xc021, 9, 1, &[9, 9, 9, 9]);
    for _ in 0..30 {
        again(&mut bench, &mut amy);
        for _ in 0..60 {
            bench.exchange(0, std::slice::from_ref(&echo));
            bench.wait(1);
        }
    }
    assert!(amy.is_up());
}

#[test]
fn a_link_that_begins_again_does_not_flood_servers() {
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    ask(&mut bench, &mut eve);
    let mut asked = 0;
    for _ in 0..100 {
        anew(&mut bench, &mut eve);
        asked += requests(&mut bench).len();
    }
    assert!(asked < 20, "{asked}");
}

#[test]
fn a_login_that_a_server_decides_is_the_only_one() {
    for right in [true, false] {
        let mut bench = Bench::new(&ARGUMENTS.replace("AUTH ANY", "AUTH PAP"));
        let mut eve = Client::new(1, "eve", "three");
        eve.pap = true;
        let asked = ask(&mut bench, &mut eve);
        let password: &[u8] = if right { b"\x03one" } else { b"\x03two" };
        let other = eve.control(0xc023, 1, 78, &[b"\x03amy", password].concat());
        exchange(&mut bench, &mut eve, vec![other]);
        assert!(!eve.is_up() && !eve.failed, "{right}");
        super::radius::decide(&mut bench, &mut eve, asked.answer(2, &GRANT));
        assert!(eve.is_up());
        let line = bench.read("s.sessions");
        assert!(line.contains(" eve 10.0.0.9 "), "{line}");
    }
}
