// SPDX-License-Identifier: Apache-2.0
//! What states, servers and users may bring, and what all sessions together do at a time.
use super::begin;
use super::radius::{ARGUMENTS, GRANT, ask, decide, logged_in, requests};
use super::subscriber::{Bench, Client, SECOND_NS};

/// A session's line in a state.
fn entry(id: u16, name: &str, mru: u32, counts: &str, more: &str) -> String {
    let [high, low] = id.to_be_bytes();
    format!(
        "pppoe 1\n{id} 02-00-00-00-{high:02x}-{low:02x} {name} 10.0.{high}.{low} 99 {mru} 1000 {counts}{more}\n"
    )
}

#[test]
fn a_state_brings_no_session_that_no_login_could_make() {
    let good = "0 0 0 0 0 0";
    let more = " 77 - 0,0,0,0,0";
    for wrong in [
        entry(7, "eve", 0, good, more),
        entry(7, "eve", 127, good, more),
        entry(7, "eve", 1493, good, more),
        entry(7, "e\"ve", 1492, good, more),
        entry(7, &"e".repeat(65), 1492, good, more),
    ] {
        let mut bench = Bench::new(ARGUMENTS);
        let written = bench
            .router
            .write_handlers(&[("s.state", wrong.as_bytes())], bench.now_ns);
        assert!(written.is_err() || bench.read("s.count") == "0", "{wrong}");
    }
    // a network that no subscriber may have
    let mut bench = Bench::new(ARGUMENTS);
    bench.write("s.state", &entry(9, "eve", 1492, good, " 77 64 0,0,0,0,0"));
    let state = bench.read("s.state");
    assert!(state.ends_with(" 77 - 0,0,0,0,0\n"), "{state}");
    // counts that are full stay so
    let mut bench = Bench::new(ARGUMENTS);
    let full = [u64::MAX.to_string().as_str(); 6].join(" ");
    bench.write("s.state", &entry(9, "eve", 1492, &full, more));
    let mut eve = Client::new(9, "eve", "three");
    (eve.mac, eve.session) = ([2, 0, 0, 0, 0, 9], 9);
    bench.exchange(0, &[eve.sends([10, 0, 0, 9], 100)]);
    assert_eq!(bench.sent(1).len(), 1);
    let line = bench.read("s.sessions");
    assert!(line.contains(&format!(" {} ", u64::MAX)), "{line}");
}

#[test]
fn advertisements_of_many_sessions_are_spread() {
    let arguments = ARGUMENTS
        .replace("10.0.0.0/24", "10.0.0.0/16")
        .replace("2001:db8:9::/56", "2001:db8:9::/48");
    let mut bench = Bench::new(&format!("{arguments}, ECHO 0"));
    let mut state = String::from("pppoe 1\n");
    for id in 3..=1000u16 {
        let prefix = 0x2001_0db8_0009_0000 + u64::from(id);
        let more = format!(" 77 {prefix} 0,0,0,0,0");
        let whole = entry(id, &format!("e{id}"), 1492, "0 0 0 0 0 0", &more);
        state += whole.strip_prefix("pppoe 1\n").unwrap();
    }
    bench.write("s.state", &state);
    assert_eq!(bench.read("s.count"), "998");
    let mut all = 0;
    for _ in 0..20 {
        let sent = bench.wait(1).len();
        assert!(sent <= 64, "{sent}");
        all += sent;
    }
    assert_eq!(all, 998);
    assert!(bench.wait(100).is_empty());
}

#[test]
fn a_server_gives_nobody_the_network_of_a_user() {
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    let asked = ask(&mut bench, &mut eve);
    let network = [97, 12, 0, 64, 0x20, 1, 0x0d, 0xb8, 0, 9, 0, 2];
    decide(
        &mut bench,
        &mut eve,
        asked.answer(2, &[&GRANT[..], &network].concat()),
    );
    assert!(eve.failed);
    assert_eq!(bench.read("s.unusable"), "1");
}

#[test]
fn records_that_wait_are_bounded_in_bytes() {
    let mut bench = Bench::new(&ARGUMENTS.replace("10.0.0.0/24", "10.0.0.0/16"));
    let class = [&[25, 255][..], &[b'x'; 253]].concat();
    let grant = [&GRANT[..], &class, &class, &class].concat();
    // no server confirms a record
    let mut waiting = Vec::new();
    for n in 0..400u32 {
        logged_in(&mut bench, (n % 200) as u8, &grant);
        let line = bench.read("s.radius");
        let number = line.split(" waiting ").nth(1).unwrap();
        let number: usize = number.split(' ').next().unwrap().parse().unwrap();
        waiting.push(number);
        bench.now_ns += super::subscriber::SECOND_NS / 50;
        requests(&mut bench);
    }
    let most = waiting.into_iter().max().unwrap();
    assert!((100..=160).contains(&most), "{most}");
}

/// A host that asks for offers leaves those of others alone, in the catalog's function.
#[test]
fn no_host_takes_the_offers_of_others() {
    let all = crate::catalog::functions();
    let (_, config) = all.iter().find(|(n, _)| n == "bras").unwrap();
    let mut bench = Bench::of(config);
    let one = Client::new(1, "amy", "one");
    let two = Client::new(2, "bob", "two");
    let mut frames = vec![one.padi(); 400];
    frames.push(two.padi());
    let offers = bench.exchange(0, &frames);
    let to = |client: &Client| offers.iter().filter(|f| f[..6] == client.mac).count();
    assert_eq!((to(&one), to(&two)), (32, 1));
}

/// 64 hosts with four sessions each end no login that a server decides, nor a session before its login.
#[test]
fn a_flood_of_sessions_ends_its_own() {
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    let asked = ask(&mut bench, &mut eve);
    let slow = [2, 0, 0, 0, 9, 77];
    begin(&mut bench, slow, 1);
    for host in 0..70 {
        (0..4).for_each(|attempt| begin(&mut bench, [2, 0, 0, 0, 8, host], attempt));
        if host % 30 == 29 {
            bench.now_ns += SECOND_NS;
        }
    }
    assert_eq!(bench.read("s.opening"), "256");
    decide(&mut bench, &mut eve, asked.answer(2, &GRANT));
    assert!(eve.is_up());
    assert!(bench.read("s.refused") == "0");
    let mut host = Client::new(77, "", "");
    host.session = 2;
    bench.exchange(0, &[host.control(0xc021, 9, 1, &[0; 4])]);
    assert_eq!(bench.read("s.refused"), "0", "its session is still there");
}

/// Logins that no server decides leave room for users that need none, and do not end each other.
#[test]
fn logins_that_wait_leave_places_to_others() {
    let mut bench = Bench::new(ARGUMENTS);
    let mut eve = Client::new(1, "eve", "three");
    let asked = ask(&mut bench, &mut eve);
    for n in 0..300u16 {
        let mut host = Client::new(0, "mallory", "four");
        host.mac[3..5].copy_from_slice(&(n + 1000).to_be_bytes());
        host.dial(&mut bench);
        if n % 100 == 99 {
            bench.now_ns += SECOND_NS;
        }
    }
    let mut amy = Client::new(2, "amy", "one");
    amy.dial(&mut bench);
    assert!(amy.is_up());
    decide(&mut bench, &mut eve, asked.answer(2, &GRANT));
    assert!(eve.is_up());
}

/// Half of the sessions without a login are for those that wait for no server.
#[test]
fn logins_that_wait_have_half_of_the_places() {
    let mut bench = Bench::new(ARGUMENTS);
    let begin = |bench: &mut Bench, n: u16, login: bool| {
        let mut host = Client::new(0, "mallory", "four");
        host.mac[3..5].copy_from_slice(&n.to_be_bytes());
        if login {
            host.dial(bench);
        } else {
            let mut sends = vec![host.padi()];
            for _ in 0..2 {
                let frames = bench.exchange(0, &sends);
                sends = frames.iter().flat_map(|f| host.answer(f)).collect();
            }
        }
        if n % 100 == 99 {
            bench.now_ns += SECOND_NS;
        }
        host
    };
    (0..300).for_each(|n| _ = begin(&mut bench, n, true));
    let others: Vec<Client> = (300..428).map(|n| begin(&mut bench, n, false)).collect();
    assert_eq!(bench.read("s.opening"), "256");
    let refused = bench.read("s.refused");
    for host in &others {
        bench.exchange(0, &[host.control(0xc021, 9, 1, &[0; 4])]);
    }
    assert_eq!(bench.read("s.refused"), refused, "all are there");
}
