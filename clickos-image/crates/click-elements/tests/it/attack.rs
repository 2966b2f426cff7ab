// SPDX-License-Identifier: Apache-2.0
//! What a hostile client, server or package does to the balancer of IPv6.
use super::balancer::{CLIENT, CONFIG, OWN, Place, SERVERS, address, fragment, sum, tcp, udp};
use super::catalog::functions;

#[test]
fn a_state_with_many_servers_mixes_none() {
    let mut place = Place::new();
    place.build(
        "pool :: ServerPool(10.0.2.1, SRC6 2001:db8:2::1);
         FromDevice(0) -> CheckIP6Header -> b :: IP6Balancer(2001:db8:1::1, pool, CAPACITY 4000) -> ToDevice(0);
         FromDevice(1) -> CheckIP6Header -> [1] b [1] -> ToDevice(1); b[2] -> ToDevice(2); Idle -> pool;",
    );
    let flows = (1..=1025).map(|n| format!("17 7::1 {n} {OWN} 80 out 0 8::{n:x}"));
    let flows: Vec<_> = flows.collect();
    place.write("b.state", &format!("balancer 1\n{}\n", flows.join("\n")));
    let wrong: Vec<_> = place
        .read("b.table")
        .lines()
        .filter(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let port: u16 = words[2].parse().unwrap();
            words.last() != Some(&format!("8::{port:x}").as_str())
        })
        .map(String::from)
        .collect();
    assert!(
        wrong.is_empty(),
        "{} flows, such as {:?}",
        wrong.len(),
        wrong.first()
    );
}

#[test]
fn a_full_table_counts_no_flows() {
    let mut place = Place::new();
    for port in 1000..1300 {
        place.passes(0, tcp([CLIENT, OWN], [port, 80], 2, [1, 0]));
    }
    assert_eq!(place.read("b.table_size"), "100");
    let status = place.read("pool.status");
    let got = status.lines().map(|line| -> u64 {
        let count = line.rsplit(' ').next().unwrap();
        count.parse().unwrap()
    });
    assert_eq!(got.sum::<u64>(), 100, "{status}");
}

#[test]
fn a_client_with_a_mapped_address_takes_no_flow_of_ipv4() {
    let mut place = Place::new();
    for port in 1000..1010 {
        let question = udp(["::ffff:192.0.2.1", OWN], [port, 80]);
        assert_eq!(place.passes(0, question), None);
    }
    let status = place.read("pool.status");
    assert!(status.lines().all(|line| line.ends_with(" 0")), "{status}");
}

#[test]
fn servers_are_hosts() {
    let mut place = Place::new();
    for bad in ["::", "ff02::1", "::ffff:10.0.0.1", "0.0.0.0", "224.0.0.1"] {
        let write = [("pool.servers", bad.as_bytes())];
        let error = place.router.write_handlers(&write, 1).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("expected the address of a host"), "{text}");
    }
    assert_eq!(place.read("pool.servers").split(", ").count(), 3);
}

#[test]
fn checksums_behind_other_headers_are_right() {
    const HOPS: u8 = 0;
    for (kind, header) in [
        (HOPS, [17u8, 0, 1, 4, 0, 0, 0, 0]),
        (44, [17, 0, 0, 1, 0, 0, 0, 7]),
    ] {
        let mut place = Place::new();
        let datagram = udp([CLIENT, OWN], [5000, 80]);
        let mut whole = datagram[..40].to_vec();
        whole[6] = kind;
        whole[5] += 8;
        whole.extend(header);
        whole.extend(&datagram[40..]);
        let got = place.passes(0, whole).expect("it passes");
        assert_ne!(got[24..40], address(OWN));
        let mut plain = got[..40].to_vec();
        plain.extend(&got[48..]);
        assert_eq!(sum(&plain, 17, &plain[40..]), 0, "{kind}");
    }
}

#[test]
fn a_pool_without_an_address_probes_no_server_of_ipv6() {
    let mut place = Place::new();
    place.build(
        "pool :: ServerPool(10.0.2.1, 2001:db8:2::8, SRC6 2001:db8:2::1) -> ToDevice(0); Idle -> pool;",
    );
    place.run_at(2_000_000_000);
    place.swap(
        "pool :: ServerPool(10.0.2.1) -> ToDevice(0); Idle -> pool;",
        2_000_000_000,
    );
    place.devices[0].borrow_mut().output.clear();
    place.run_at(4_000_000_000);
    let sent: Vec<_> = place.devices[0].borrow_mut().output.drain(..).collect();
    let from_nobody = sent
        .iter()
        .filter(|p| p[0] >> 4 == 6 && p[8..24] == [0; 16]);
    assert_eq!(
        from_nobody.count(),
        0,
        "servers {}",
        place.read("pool.servers")
    );
}

/// A SYN of IPv4 to the balancer of the catalog, in a frame.
fn syn4(source: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![
        0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, source[0], source[1], source[2], source[3], 10,
        9, 1, 1,
    ];
    let sum = click_wire::checksum::of(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend([
        0xc0, 7, 0x1f, 0x90, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0x10, 0, 0, 0, 0, 0,
    ]);
    let sum = click_wire::checksum::pseudo(source.into(), [10, 9, 1, 1].into(), 6, 20);
    let sum = click_wire::checksum::finish(click_wire::checksum::add(sum, &packet[20..]));
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    [&[2, 0, 0, 9, 1, 1, 2, 0, 0, 0, 0, 9, 8, 0][..], &packet].concat()
}

/// The same of IPv6.
fn frame6(source: &str) -> Vec<u8> {
    let question = tcp([source, "2001:db8:1::1"], [0xc007, 8080], 2, [1, 0]);
    [
        &[2, 0, 0, 9, 1, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd][..],
        &question,
    ]
    .concat()
}

#[test]
fn no_client_has_the_address_of_the_probes() {
    let all = functions();
    let (_, config) = all.iter().find(|(n, _)| n == "load-balancer").unwrap();
    for (is_spoofed, ip4, ip6) in [
        (false, [10, 8, 0, 5], CLIENT),
        (true, [10, 9, 2, 1], "2001:db8:2::1"),
    ] {
        let mut place = Place::new();
        place.build(config);
        place.write("pool.servers", "10.9.2.8, 2001:db8:2::8");
        place.write("pool.merge", "servers 1\n10.9.2.8\n2001:db8:2::8");
        for frame in [frame6(ip6), syn4(ip4)] {
            place.devices[0].borrow_mut().input.push_back(frame);
        }
        place.run_at(2);
        let flows = [place.read("flows6.table_size"), place.read("flows.size")];
        let expected = if is_spoofed { "0" } else { "1" };
        assert_eq!(flows, [expected; 2], "{ip6}");
    }
}

#[test]
fn no_function_of_the_catalog_takes_packets_from_its_own_addresses() {
    const OWN4: [[u8; 4]; 2] = [[10, 9, 1, 1], [10, 9, 2, 1]];
    let own6 = ["2001:db8:1::1", "2001:db8:2::1"];
    let mut checks = 0;
    for (name, config) in functions() {
        for (device, side) in [(0, "left"), (1, "right")] {
            let has = |element: &str| config.contains(&format!("{side}{element} :: From"));
            if !has("") {
                continue;
            }
            let mut place = Place::new();
            place.build(&config);
            // the left side of a tunnel has no address
            let own4 = &OWN4[usize::from(name == "tunnel-gateway")..];
            let mut frames: Vec<_> = own4.iter().map(|own| syn4(*own)).collect();
            frames.push(syn4([10, 8, 0, 5]));
            // subscribers of the BRAS have no router of IPv6 but on their links
            let own6 = &own6[usize::from(name == "bras")..];
            if has("6") {
                frames.extend(own6.iter().map(|own| frame6(own)));
                frames.push(frame6(CLIENT));
            }
            place.devices[device].borrow_mut().input.extend(frames);
            place.run_at(2);
            let drops = place.read(&format!("{side}/check.drops"));
            assert_eq!(drops, own4.len().to_string(), "{name} {side}");
            if has("6") {
                let drops = place.read(&format!("{side}6/check.drops"));
                assert_eq!(drops, own6.len().to_string(), "{name} {side}6");
            }
            checks += 1;
        }
    }
    assert!(checks >= 20, "{checks}");
}

#[test]
fn later_fragments_go_to_their_server_after_a_hot_swap() {
    const SECOND: u64 = 1_000_000_000;
    let mut place = Place::new();
    let sent = |place: &mut Place, packet: Vec<u8>, seconds: u64| {
        place.devices[0].borrow_mut().input.push_back(packet);
        place.run_at(seconds * SECOND);
        let got = place.devices[0].borrow_mut().output.pop();
        got.map(|packet| packet[24..40].to_vec())
    };
    let to = |n: usize| Some(address(SERVERS[n]).to_vec());
    let first = [&[0x13, 0x89, 0, 80, 0, 24, 9, 9][..], &[7; 8]].concat();
    let first = fragment([CLIENT, OWN], 0, true, &first);
    // the flows of ports 5000 and 5002 have the first server, that of 5001 the second one
    place.write("pool.draining", SERVERS[1]);
    assert_eq!(sent(&mut place, udp([CLIENT, OWN], [5000, 80]), 1), to(0));
    place.write("pool.draining", SERVERS[0]);
    assert_eq!(sent(&mut place, first.clone(), 200), to(1));
    place.write("pool.draining", SERVERS[1]);
    assert_eq!(sent(&mut place, udp([CLIENT, OWN], [5002, 80]), 201), to(0));
    assert_eq!(sent(&mut place, first, 290), to(1));
    place.run_at(302 * SECOND);
    assert_eq!(place.read("b.table_size"), "2", "that of 5000 is over");
    place.swap(CONFIG, 303 * SECOND);
    let later = fragment([CLIENT, OWN], 2, false, &[7; 8]);
    assert_eq!(sent(&mut place, later, 304), to(1));
}
