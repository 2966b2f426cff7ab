// SPDX-License-Identifier: Apache-2.0
//! A subscriber's end of PPPoE against the element: whole sessions, hostile hosts, swaps and moves.
mod begins_again;
mod bounds;
mod radius;
mod six;
mod subscriber;

use proptest::prelude::*;
use subscriber::{
    AC, ALL, Bench, Client, SECOND_NS, USERS, ethernet, find_tag, ip_packet, pppoe, tag, up,
};

#[test]
fn a_subscriber_gets_its_address_and_packets_both_ways() {
    let mut bench = Bench::new(USERS);
    let amy = up(&mut bench, 1, "amy", "one");
    assert_eq!((amy.address, amy.dns), ([10, 0, 0, 2], [9, 9, 9, 9]));
    bench.exchange(
        0,
        &[amy.sends([10, 0, 0, 2], 100), amy.sends([10, 0, 0, 3], 100)],
    );
    assert_eq!(bench.sent(1), [ip_packet([10, 0, 0, 2], [8, 8, 8, 8], 100)]);
    let answer = ip_packet([8, 8, 8, 8], [10, 0, 0, 2], 50);
    let stray = ip_packet([8, 8, 8, 8], [10, 0, 0, 3], 50);
    bench.exchange(1, &[answer.clone(), stray]);
    let whole = ethernet(
        amy.mac,
        AC,
        0x8864,
        &pppoe(0, amy.session, &[&[0, 0x21], &answer[..]].concat()),
    );
    assert_eq!(bench.sent(0), [whole]);
    assert_eq!(
        (bench.read("s.spoofed"), bench.read("s.no_session")),
        ("1".into(), "1".into())
    );
    let line = format!(
        "{} amy 10.0.0.2 02-00-00-00-09-01 0 1 100 0 1 50 0\n",
        amy.session
    );
    assert_eq!(bench.read("s.sessions"), line);
}

#[test]
fn methods_are_what_the_configuration_allows() {
    for (auth, pap, good) in [
        ("ANY", true, true),
        ("ANY", false, true),
        ("PAP", true, true),
        ("CHAP", false, true),
        ("CHAP", true, false),
    ] {
        let mut bench = Bench::new(&format!("{USERS}, AUTH {auth}"));
        let mut client = Client::new(1, "amy", "one");
        client.pap = pap;
        client.dial(&mut bench);
        assert_eq!(client.is_up(), good, "{auth} {pap}");
    }
}

#[test]
fn a_host_that_proposes_an_unknown_method_is_asked_for_its_password() {
    for (auth, good) in [("ANY", true), ("CHAP", false)] {
        let mut bench = Bench::new(&format!("{USERS}, AUTH {auth}"));
        let mut client = Client::new(1, "amy", "one");
        // pppd without CHAP-MD5 proposes MS-CHAP-v2
        (client.pap, client.proposes) = (true, &[3, 5, 0xc2, 0x23, 0x81]);
        client.dial(&mut bench);
        assert_eq!(client.is_up(), good, "{auth}");
    }
}

#[test]
fn wrong_names_and_passwords_end_the_session() {
    for pap in [false, true] {
        let mut bench = Bench::new(&format!("{USERS}, AUTH ANY"));
        for (name, password) in [("amy", "two"), ("amy", ""), ("eve", "one"), ("", "\0")] {
            let mut client = Client::new(1, name, password);
            client.pap = pap;
            client.dial(&mut bench);
            assert!(
                client.is_over && client.failed && !client.is_up(),
                "{name} {password}"
            );
        }
        assert_eq!(bench.read("s.rejected"), "4");
        assert_eq!(
            (bench.read("s.count"), bench.read("s.opening")),
            ("0".into(), "0".into())
        );
        // without a password no login succeeds
        bench.write("s.passwords", "");
        let mut client = Client::new(1, "amy", "one");
        client.dial(&mut bench);
        assert!(client.failed);
    }
}

#[test]
fn a_rate_holds_in_both_directions_and_follows_the_user() {
    let mut bench = Bench::new(USERS);
    let bob = up(&mut bench, 1, "bob", "two");
    let (from, to) = ([10, 0, 0, 3], ip_packet([8, 8, 8, 8], [10, 0, 0, 3], 1000));
    let mut passed = [0; 2];
    for _ in 0..200 {
        bench.now_ns += SECOND_NS / 100;
        bench.exchange(0, &vec![bob.sends(from, 1000); 5]);
        passed[0] += bench.sent(1).len();
        bench.exchange(1, &vec![to.clone(); 5]);
        passed[1] += bench.sent(0).len();
    }
    // 100 kB/s for two seconds, and 16 kB at once
    assert!(passed.iter().all(|n| (205..=220).contains(n)), "{passed:?}");
    let fields: Vec<String> = bench
        .read("s.sessions")
        .split(' ')
        .map(String::from)
        .collect();
    assert_eq!(
        fields[5..8],
        [
            format!("{}", passed[0]),
            format!("{}000", passed[0]),
            format!("{}", 1000 - passed[0])
        ]
    );
    bench.write("s.add_user", "bob 10.0.0.3");
    bench.exchange(0, &vec![bob.sends(from, 1000); 500]);
    assert_eq!(bench.sent(1).len(), 500);
}

#[test]
fn a_newer_session_of_a_user_replaces_the_older_one() {
    let mut bench = Bench::new(USERS);
    let old = up(&mut bench, 1, "amy", "one");
    let new = up(&mut bench, 2, "amy", "one");
    assert_ne!(old.session, new.session);
    assert!(bench.read("s.ended").ends_with(" replaced\n"));
    bench.exchange(
        0,
        &[old.sends([10, 0, 0, 2], 100), new.sends([10, 0, 0, 2], 99)],
    );
    let packets = bench.sent(1);
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [99]);
}

#[test]
fn hosts_without_a_cookie_of_theirs_leave_nothing() {
    let mut bench = Bench::new(USERS);
    let (one, two) = (Client::new(1, "amy", "one"), Client::new(2, "amy", "one"));
    let offer = bench.exchange(0, &[one.padi()]).remove(0);
    let cookie = find_tag(&offer[20..], 0x0104).unwrap().to_vec();
    for wrong in [
        two.padr(&cookie),
        one.padr(b""),
        one.padr(&cookie[1..]),
        one.padr(&[0; 16]),
    ] {
        assert!(bench.exchange(0, &[wrong]).is_empty());
    }
    assert_eq!(bench.read("s.opening"), "0");
    // a cookie is good for a minute or two, not for three
    bench.wait(180);
    assert!(bench.exchange(0, &[one.padr(&cookie)]).is_empty());
    assert_eq!(bench.read("s.refused"), "5");
}

#[test]
fn a_lost_confirmation_is_repeated_and_makes_no_second_session() {
    let mut bench = Bench::new(USERS);
    let one = Client::new(1, "amy", "one");
    let offer = bench.exchange(0, &[one.padi()]).remove(0);
    let padr = one.padr(find_tag(&offer[20..], 0x0104).unwrap());
    let first = bench.exchange(0, std::slice::from_ref(&padr));
    assert_eq!(bench.exchange(0, &[padr]), first[..1]);
    assert_eq!(bench.read("s.opening"), "1");
}

#[test]
fn floods_are_bounded_in_answers_and_sessions() {
    let mut bench = Bench::new(&format!("{USERS}, SESSIONS 8"));
    let amy = up(&mut bench, 1, "amy", "one");
    bench.now_ns += SECOND_NS;
    let padi = |n: u16| {
        let mut client = Client::new(0, "", "");
        client.mac[3..5].copy_from_slice(&n.to_be_bytes());
        client
    };
    let hosts: Vec<Client> = (1000..2000).map(padi).collect();
    let offers = bench.exchange(0, &hosts.iter().map(Client::padi).collect::<Vec<_>>());
    assert_eq!(offers.len(), 256);
    let request = |offer: &Vec<u8>| {
        let host = hosts.iter().find(|h| h.mac == offer[..6]).unwrap();
        host.padr(find_tag(&offer[20..], 0x0104).unwrap())
    };
    let requests: Vec<_> = offers.iter().map(request).collect();
    bench.exchange(0, &requests);
    assert_eq!(bench.read("s.opening"), "7");
    assert_eq!(
        bench.read("s.limited"),
        (1000 - 256 + 256 - 128).to_string()
    );
    // who logged in stays, and another one still gets in
    bench.now_ns += SECOND_NS;
    up(&mut bench, 2, "bob", "two");
    bench.exchange(0, &[amy.sends([10, 0, 0, 2], 60)]);
    assert_eq!(bench.sent(1).len(), 1);
    bench.wait(31);
    assert_eq!(
        (bench.read("s.count"), bench.read("s.opening")),
        ("2".into(), "0".into())
    );
}

/// Begins one of several sessions of a host, which says no more.
fn begin(bench: &mut Bench, mac: [u8; 6], attempt: u8) {
    let mut host = Client::new(0, "", "");
    host.mac = mac;
    let offers = bench.exchange(0, &[host.padi()]);
    let offer = offers.iter().find(|f| f[15] == 0x07).unwrap();
    let cookie = find_tag(&offer[20..], 0x0104).unwrap();
    let tags = [
        tag(0x0101, b""),
        tag(0x0103, &[attempt]),
        tag(0x0104, cookie),
    ];
    let request = pppoe(0x19, 0, &tags.concat());
    bench.exchange(0, &[ethernet(AC, mac, 0x8863, &request)]);
}

#[test]
fn one_host_has_four_sessions() {
    let mut bench = Bench::new(USERS);
    let mac = Client::new(1, "amy", "one").mac;
    for attempt in 0..6 {
        begin(&mut bench, mac, attempt);
        bench.now_ns += SECOND_NS;
    }
    assert_eq!(bench.read("s.opening"), "4");
    assert_eq!(bench.read("s.count"), "0");
}

#[test]
fn a_silent_subscriber_is_asked_three_times_and_dropped() {
    let mut bench = Bench::new(&format!("{USERS}, ECHO 10"));
    let mut amy = up(&mut bench, 1, "amy", "one");
    let echoes = |frames: &[Vec<u8>]| {
        frames
            .iter()
            .filter(|f| f[20..].starts_with(&[0xc0, 0x21, 9]))
            .count()
    };
    let asked = bench.wait(25);
    assert_eq!(echoes(&asked), 2);
    let answers: Vec<_> = asked.iter().flat_map(|frame| amy.answer(frame)).collect();
    bench.exchange(0, &answers);
    let asked = bench.wait(45);
    assert_eq!(echoes(&asked), 3);
    assert!(bench.read("s.ended").ends_with(" dead\n"));
    asked.iter().for_each(|frame| drop(amy.answer(frame)));
    assert!(amy.is_over);
}

#[test]
fn operators_end_sessions_and_change_users() {
    let mut bench = Bench::new(USERS);
    let mut amy = up(&mut bench, 1, "amy", "one");
    bench.write("s.disconnect", "amy");
    bench
        .exchange(0, &[])
        .iter()
        .for_each(|frame| drop(amy.answer(frame)));
    assert!(amy.is_over);
    let mut bob = up(&mut bench, 2, "bob", "two");
    bench.write("s.remove_user", "bob");
    bench
        .exchange(0, &[])
        .iter()
        .for_each(|frame| drop(bob.answer(frame)));
    assert!(bob.is_over);
    up(&mut bench, 1, "amy", "one");
    bench.write("s.users", "amy 10.0.0.9");
    assert_eq!(bench.read("s.count"), "0");
    let reasons: Vec<_> = bench
        .read("s.ended")
        .lines()
        .map(|l| l.rsplit(' ').next().unwrap().to_string())
        .collect();
    assert_eq!(reasons, ["disconnected", "removed", "removed"]);
    for secret in ["one", "two"] {
        for handler in ["s.users", "s.sessions", "s.ended", "s.state"] {
            assert!(!bench.read(handler).contains(secret));
        }
    }
}

#[test]
fn either_end_may_terminate() {
    let mut bench = Bench::new(USERS);
    let amy = up(&mut bench, 1, "amy", "one");
    let answers = bench.exchange(0, &[amy.control(0xc021, 5, 77, b"bye")]);
    assert_eq!(answers[0][20..26], [0xc0, 0x21, 6, 77, 0, 4]);
    assert_eq!(answers[1][15], 0xa7);
    let amy = up(&mut bench, 1, "amy", "one");
    bench.exchange(
        0,
        &[ethernet(
            AC,
            amy.mac,
            0x8863,
            &pppoe(0xa7, amy.session, &[]),
        )],
    );
    assert_eq!(bench.read("s.count"), "0");
    // a packet of a session that is over is answered by its end
    let answers = bench.exchange(0, &[amy.sends([10, 0, 0, 2], 60)]);
    assert_eq!(
        answers,
        [ethernet(
            amy.mac,
            AC,
            0x8863,
            &pppoe(0xa7, amy.session, &[])
        )]
    );
}

#[test]
fn another_host_cannot_use_or_end_a_session() {
    let mut bench = Bench::new(USERS);
    let amy = up(&mut bench, 1, "amy", "one");
    let mut thief = Client::new(2, "", "");
    thief.session = amy.session;
    bench.exchange(
        0,
        &[
            thief.sends([10, 0, 0, 2], 60),
            thief.control(0xc021, 5, 1, &[]),
            ethernet(AC, thief.mac, 0x8863, &pppoe(0xa7, amy.session, &[])),
            ethernet(ALL, amy.mac, 0x8863, &pppoe(0xa7, amy.session, &[])),
        ],
    );
    assert!(bench.sent(1).is_empty());
    assert_eq!(bench.read("s.count"), "1");
}

#[test]
fn a_session_negotiates_its_link_anew() {
    let mut bench = Bench::new(USERS);
    let mut amy = up(&mut bench, 1, "amy", "one");
    bench.exchange(0, &[amy.sends([10, 0, 0, 2], 60)]);
    (amy.link, amy.network) = ([false; 2], [false; 2]);
    let mut sends = vec![amy.control(0xc021, 1, 10, &[5, 6, 1, 2, 3, 4])];
    let mut first = true;
    while !sends.is_empty() {
        let answers = bench.exchange(0, &sends);
        if std::mem::take(&mut first) {
            assert_eq!(
                bench.read("s.count"),
                "0",
                "nothing passes before the login"
            );
        }
        sends = answers.iter().flat_map(|frame| amy.answer(frame)).collect();
    }
    assert!(amy.is_up());
    assert!(
        bench
            .read("s.ended")
            .ends_with(" 1 60 0 0 0 0 renegotiated\n")
    );
}

#[test]
fn unknown_protocols_codes_and_options_are_rejected() {
    let mut bench = Bench::new(USERS);
    let amy = up(&mut bench, 1, "amy", "one");
    let ipv6cp = amy.control(0x8057, 1, 1, &[]);
    let answers = bench.exchange(0, &[ipv6cp]);
    assert_eq!(answers[0][20..23], [0xc0, 0x21, 8]);
    assert_eq!(answers[0][26..], [0x80, 0x57, 1, 1, 0, 4]);
    let answers = bench.exchange(0, &[amy.control(0xc021, 99, 7, b"x")]);
    assert_eq!(answers[0][20..23], [0xc0, 0x21, 7]);
    assert_eq!(answers[0][26..], [99, 7, 0, 5, b'x']);
    let answers = bench.exchange(
        0,
        &[amy.control(0x8021, 1, 7, &[2, 6, 0, 0x2d, 15, 1, 3, 6, 10, 0, 0, 2])],
    );
    let reject = answers.iter().find(|f| f[22] == 4).unwrap();
    assert_eq!(reject[26..], [2, 6, 0, 0x2d, 15, 1]);
    let echo = bench.exchange(0, &[amy.control(0xc021, 9, 7, &[1, 2, 3, 4, 9])]);
    assert_eq!((echo[0][22], echo[0][30]), (10, 9));
}

#[test]
fn a_small_mru_counts() {
    let mut bench = Bench::new(USERS);
    let amy = up(&mut bench, 1, "amy", "one");
    for (length, fits) in [(1492, true), (1493, false)] {
        bench.exchange(1, &[ip_packet([8, 8, 8, 8], [10, 0, 0, 2], length)]);
        assert_eq!(bench.sent(0).len(), usize::from(fits));
    }
    assert_eq!(bench.read("s.too_long"), "1");
    // an MRU below the least gets a better one proposed
    let answers = bench.exchange(0, &[amy.control(0xc021, 1, 10, &[1, 4, 0, 100])]);
    let nak = answers
        .iter()
        .find(|f| f[20..23] == [0xc0, 0x21, 3])
        .unwrap();
    assert_eq!(nak[26..], [1, 4, 5, 0xd4]);
}

#[test]
fn a_guest_takes_sessions_along() {
    let mut bench = Bench::new(USERS);
    let amy = up(&mut bench, 1, "amy", "one");
    bench.exchange(0, &[amy.sends([10, 0, 0, 2], 60)]);
    bench.wait(3);
    let state = bench.read("s.state");
    let mut other = Bench::new(USERS);
    other.write("s.state", &state);
    assert_eq!(other.read("s.sessions"), bench.read("s.sessions"));
    assert_eq!(other.read("s.state"), state);
    other.exchange(0, &[amy.sends([10, 0, 0, 2], 60)]);
    assert_eq!(other.sent(1).len(), 1);
    // sessions of users that are not there are none
    let mut third = Bench::new("bob 10.0.0.3");
    third.write("s.state", &state);
    assert_eq!(third.read("s.count"), "0");
    for wrong in [
        "",
        "pppoe 2\n",
        "pppoe 1\n1 02-00-00-00-09-01 amy 10.0.0.2 1 1492 0 1 2 3\n",
        "pppoe 1\nx\n",
    ] {
        let writes = [("s.state", wrong.as_bytes())];
        let refused = other
            .router
            .write_handlers(&writes, other.now_ns)
            .unwrap_err();
        assert!(refused.to_string().contains("line "), "{refused}");
    }
    assert_eq!(other.read("s.count"), "1");
}

/// A frame of a stranger that looks like one of the protocol.
fn stranger() -> impl Strategy<Value = Vec<u8>> {
    let discovery = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..40));
    let protocols = prop::sample::select(vec![
        0xc021u16, 0xc023, 0xc223, 0x8021, 0x0021, 0x8057, 0x0057,
    ]);
    let session = (
        1u16..4,
        protocols,
        0u8..14,
        any::<u8>(),
        prop::collection::vec(any::<u8>(), 0..40),
    );
    prop_oneof![
        discovery.prop_map(|(code, tags)| ethernet(
            AC,
            [2, 0, 0, 0, 9, 1],
            0x8863,
            &pppoe(code, 0, &tags)
        )),
        session.prop_map(|(session, protocol, code, id, data)| {
            let mut client = Client::new(1, "", "");
            client.session = session;
            client.control(protocol, code, id, &data)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// No packet of a subscriber's session makes more than two answers but for what begins again, and none a panic.
    #[test]
    fn strangers_get_little(frames in prop::collection::vec((stranger(), 0usize..60), 0..30), up_first: bool) {
        let mut bench = Bench::new(USERS);
        if up_first {
            up(&mut bench, 1, "amy", "one");
        } else {
            let one = Client::new(1, "amy", "one");
            let offer = bench.exchange(0, &[one.padi()]).remove(0);
            bench.exchange(0, &[one.padr(find_tag(&offer[20..], 0x0104).unwrap())]);
        }
        for (mut frame, cut) in frames {
            frame.truncate(frame.len().saturating_sub(cut.saturating_sub(40)));
            let answers = bench.exchange(0, &[frame]);
            prop_assert!(answers.len() <= 3, "{answers:?}");
            prop_assert!(answers.iter().all(|f| f.len() <= 1514));
        }
        bench.wait(2);
        prop_assert_eq!(bench.router.packets_in_use(), 0);
    }
}
