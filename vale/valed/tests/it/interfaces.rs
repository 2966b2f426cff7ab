// SPDX-License-Identifier: Apache-2.0
//! Real interfaces of this host as ports, with the offloads they come with.

use std::collections::HashSet;
use std::os::fd::AsFd;

use crate::common::{Guest, Namespace, Valed, Wire, eventually, port_add, tcp_echo, tool};
use serde_json::json;
use vale_proto::FarEnd;

const MEGABYTES: usize = 20 << 20;

#[test]
fn two_namespaces_reach_each_other_with_offloads_on() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 7, &["10.7.0.1/24", "2001:db8::1/64"], json!({}));
    let b = valed.attach("b", 2, 7, &["10.7.0.2/24", "2001:db8::2/64"], json!({}));
    a.assert_answers("10.7.0.2", 20);
    a.assert_answers("2001:db8::2", 20);
    for address in ["10.7.0.2", "2001:db8::2"] {
        let seconds = tcp_echo(&a, &b, address, MEGABYTES);
        println!(
            "{address}: {:.0} Mb/s each way",
            MEGABYTES as f64 * 8e-6 / seconds
        );
    }
    let counters = valed.counters("a");
    let average = counters.rx_bytes / counters.rx_packets;
    assert!(
        average > 3000,
        "long frames pass whole between interfaces, average {average} bytes"
    );
    assert_eq!(
        (counters.dropped_spoof, counters.dropped_malformed),
        (0, 0),
        "{counters:?}"
    );
}

/// Two hosts with a cable that carries two networks by their VLAN. The hosts number their segments
/// differently.
#[test]
fn networks_between_hosts_keep_apart_by_their_vlan() {
    let (valed, other) = (Valed::start(), Valed::start());
    let peer = &other.namespace.0;
    valed.namespace.ip(&format!(
        "link add name nic type veth peer name nic netns {peer}"
    ));
    for (host, segments) in [(&valed, [1, 2]), (&other, [2, 1])] {
        host.namespace.ip("link set dev nic up");
        for (vlan, segment) in [101, 102].into_iter().zip(segments) {
            host.add(
                &format!("up{vlan}"),
                json!({"kind": "veth", "ifname": "nic", "vlan": vlan, "segment": segment,
                    "port_security": false}),
            );
        }
    }
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let b = other.attach("b", 2, 2, &["10.7.0.2/24"], json!({}));
    let monitor = |segment: u32| {
        let extra = json!({"segment": segment, "port_security": false});
        Guest::new(&other, &format!("m{segment}"), extra)
    };
    let mut monitors = [monitor(2), monitor(1)];
    a.assert_answers("10.7.0.2", 20);
    tcp_echo(&a, &b, "10.7.0.2", 2 << 20);
    let found = [(0, 2), (1, 1)].map(|(n, segment)| {
        let asks = |f: &Vec<u8>| f[12..14] == [8, 6] && f[38..42] == [10, 7, 0, 2];
        heard(&other, &mut monitors[n], segment).iter().any(asks)
    });
    assert_eq!(found, [true, false], "ARP in VLAN 101");
    let add = |vlan: Option<u16>| {
        let extra = json!({"kind": "veth", "ifname": "nic", "vlan": vlan, "port_security": false});
        valed.client().port_add(&port_add("again", extra))
    };
    for taken in [Some(101), None] {
        let error = add(taken).unwrap_err().to_string();
        assert!(error.contains("ifname: nic"), "{error}");
    }
    assert!(add(Some(103)).is_ok());
}

/// The frames that a monitor has of its segment: a last one of another guest ends them.
fn heard(valed: &Valed, monitor: &mut Guest, segment: usize) -> Vec<Vec<u8>> {
    let extra = json!({"segment": segment, "port_security": false});
    let mut last = [[0xff; 6], [2, 0, 0, 0, 0, 0x7f]].concat();
    last.extend([0x88, 0xb5]);
    last.resize(60, 0);
    Guest::new(valed, &format!("last{segment}"), extra).send(&last);
    let frames = std::iter::from_fn(|| monitor.receive());
    frames.take_while(|frame| *frame != last).collect()
}

/// A cable between two hosts, whose ends are both `nic`.
fn cable(valed: &Valed, other: &Valed) {
    let peer = &other.namespace.0;
    valed.namespace.ip(&format!(
        "link add name nic type veth peer name nic netns {peer}"
    ));
    for host in [valed, other] {
        host.namespace.ip("link set dev nic up");
    }
}

const BY_XDP: &str = "xdp, driver mode, copy";

/// The addresses leave with partial checksums, which the AF_XDP sockets complete.
#[test]
fn an_af_xdp_socket_carries_frames_between_hosts() {
    const SOME: usize = 2 << 20;
    let (valed, other) = (Valed::start(), Valed::start());
    cable(&valed, &other);
    for host in [&valed, &other] {
        let up = json!({"kind": "veth", "ifname": "nic", "xdp": true, "port_security": false});
        host.add("up", up);
        assert_eq!(host.info("up").mode.as_deref(), Some(BY_XDP));
    }
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24", "2001:db8::1/64"], json!({}));
    let b = other.attach("b", 2, 1, &["10.7.0.2/24", "2001:db8::2/64"], json!({}));
    for address in ["10.7.0.2", "2001:db8::2"] {
        a.assert_answers(address, 20);
        tcp_echo(&a, &b, address, SOME);
    }
    let up = valed.counters("up");
    assert!(up.rx_bytes > SOME as u64 && up.tx_bytes > SOME as u64);
    assert_eq!(
        (up.dropped_malformed, up.dropped_link_down),
        (0, 0),
        "{up:?}"
    );
}

/// Measures frames per second from a guest of one host to a guest of the other. Packet sockets and
/// AF_XDP sockets take turns.
#[test]
#[ignore = "a measurement, which needs a quiet machine and --release"]
fn rate_of_uplinks() {
    for (len, xdp) in [60, 1500].into_iter().flat_map(|len| {
        [false, true]
            .repeat(3)
            .into_iter()
            .map(move |xdp| (len, xdp))
    }) {
        let (valed, other) = (Valed::start(), Valed::start());
        cable(&valed, &other);
        for host in [&valed, &other] {
            let up = json!({"kind": "veth", "ifname": "nic", "xdp": xdp, "port_security": false});
            host.add("up", up);
        }
        let pkt_gen = |host: &Valed, arguments: &str| {
            let mut command = std::process::Command::new(tool("pkt-gen"));
            command.env("VALED_SOCKET", &host.socket);
            command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null());
            command.args(arguments.split(' ')).spawn().unwrap()
        };
        let mut sink = pkt_gen(
            &other,
            "-f rx -i vale0:sink --mac 02:00:00:00:00:02 --idle 20",
        );
        eventually("sink", || {
            let ports = other.client().port_list(None).unwrap();
            ports.iter().any(|p| p.port.as_str() == "sink")
        });
        let source = format!("-f tx -i vale0:gen -D 02:00:00:00:00:02 -l {len} -n 1000000000");
        let mut source = pkt_gen(&valed, &source);
        std::thread::sleep(std::time::Duration::from_secs(1));
        let (before, begin) = (other.counters("sink").tx_packets, std::time::Instant::now());
        std::thread::sleep(std::time::Duration::from_secs(2));
        let frames = other.counters("sink").tx_packets - before;
        let rate = frames as f64 / begin.elapsed().as_secs_f64();
        let mode = other.info("up").mode;
        println!(
            "{len} bytes, {}: {rate:.0} frames/s",
            mode.as_deref().unwrap_or("packet socket")
        );
        for child in [&mut source, &mut sink] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// One host has the untagged frames of the cable, the other one has a VLAN. The kernel keeps the tag
/// apart from a frame of a packet socket.
#[test]
fn a_flat_uplink_leads_to_no_vlan() {
    for xdp in [false, true] {
        let (flat, tagged) = (Valed::start(), Valed::start());
        cable(&flat, &tagged);
        let up = |vlan: Option<u16>| {
            json!({"kind": "veth", "ifname": "nic", "vlan": vlan, "xdp": xdp,
                "segment": 1, "port_security": false})
        };
        flat.add("up", up(None));
        tagged.add("up", up(Some(101)));
        let open = |last: u8| {
            let mac = format!("02:00:00:00:00:0{last}");
            json!({"segment": 1, "mac": mac, "port_security": false})
        };
        let mut inside = Guest::new(&flat, "g", open(1));
        let mut outside = Guest::new(&tagged, "g", open(2));
        let mut frame = [[0xff; 6], [2, 0, 0, 0, 0, 2]].concat();
        frame.extend([0x88, 0xb5]);
        frame.resize(60, 0);
        outside.send(&frame);
        eventually("the flat uplink refuses a frame of the VLAN", || {
            flat.counters("up").dropped_type == 1
        });
        frame[11] = 1;
        frame.splice(12..12, [0x81, 0, 0, 101]);
        inside.send(&frame);
        eventually("it sends none either", || {
            flat.counters("up").dropped_type == 2
        });
        assert_eq!(flat.counters("up").tx_packets, 0);
        assert_eq!(tagged.counters("g").tx_packets, 0, "xdp {xdp}");
    }
}

/// The program leaves frames of other VLANs to the kernel, so a packet socket takes the second VLAN:
/// an interface has one program.
#[test]
fn an_af_xdp_socket_takes_one_vlan_and_leaves_the_others() {
    let (valed, other) = (Valed::start(), Valed::start());
    cable(&valed, &other);
    for host in [&valed, &other] {
        for (vlan, segment) in [(101, 1), (102, 2)] {
            let up = json!({"kind": "veth", "ifname": "nic", "vlan": vlan, "segment": segment,
                "xdp": true, "port_security": false});
            host.add(&format!("up{vlan}"), up);
        }
        assert_eq!(host.info("up101").mode.as_deref(), Some(BY_XDP));
        let second = host.info("up102").mode.unwrap();
        assert!(second.starts_with("packet socket, xdp: "), "{second}");
    }
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let b = other.attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
    let c = valed.attach("c", 3, 2, &["10.7.0.1/24"], json!({}));
    let d = other.attach("d", 4, 2, &["10.7.0.2/24"], json!({}));
    for (from, to) in [(&a, &b), (&c, &d)] {
        from.assert_answers("10.7.0.2", 20);
        tcp_echo(from, to, "10.7.0.2", 2 << 20);
    }
    for port in ["up101", "up102"] {
        let counters = valed.counters(port);
        assert!(counters.rx_packets > 100, "{port}: {counters:?}");
        assert_eq!(counters.dropped_malformed, 0, "{port}");
    }
}

/// The switch shows why the kernel refused, and continues with a packet socket.
#[test]
fn a_packet_socket_takes_over_where_af_xdp_is_refused() {
    let valed = Valed::start();
    valed.namespace.ip("link add name many numrxqueues 2 numtxqueues 2 type veth peer name far numrxqueues 2 numtxqueues 2");
    valed.add(
        "up",
        json!({"kind": "veth", "ifname": "many", "xdp": true, "port_security": false}),
    );
    let mode = valed.info("up").mode.unwrap();
    assert_eq!(mode, "packet socket, xdp: 2 receive queues, not 1");
    let wrong = json!({"kind": "tap", "ifname": "tap7", "xdp": true, "port_security": false});
    let error = valed
        .client()
        .port_add(&port_add("tap", wrong))
        .unwrap_err();
    assert!(error.to_string().contains("xdp: only a port"), "{error}");
}

/// Two hosts with a cable that carries VLAN 101 and VXLAN 101, which are two networks.
#[test]
fn a_vlan_and_a_vxlan_of_one_number_exchange_nothing() {
    let (valed, other) = (Valed::start(), Valed::start());
    let peer = &other.namespace.0;
    valed.namespace.ip(&format!(
        "link add name nic mtu 1600 type veth peer name nic mtu 1600 netns {peer}"
    ));
    let hosts = [
        (&valed, "192.0.2.1", "192.0.2.2"),
        (&other, "192.0.2.2", "192.0.2.1"),
    ];
    for (host, local, remote) in hosts {
        host.namespace.ip(&format!("addr add {local}/24 dev nic"));
        host.namespace.ip("link set dev nic up");
        let vxlan = json!({"vni": 101, "local": local, "peers": [remote]});
        let up = json!({"kind": "vxlan", "vxlan": vxlan, "segment": 1, "port_security": false});
        host.add("vxlan101", up.clone());
        let twin = host.client().port_add(&port_add("twin", up)).unwrap_err();
        assert!(twin.to_string().contains("vxlan.vni: 101"), "{twin}");
        let vlan = json!({"kind": "veth", "ifname": "nic", "vlan": 101, "segment": 2,
            "port_security": false});
        host.add("vlan101", vlan);
    }
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let b = other.attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
    let c = valed.attach("c", 3, 2, &["10.7.0.1/24"], json!({}));
    let d = other.attach("d", 4, 2, &["10.7.0.2/24"], json!({}));
    let monitor = |segment: u32| {
        let extra = json!({"segment": segment, "port_security": false});
        Guest::new(&other, &format!("m{segment}"), extra)
    };
    let mut monitors = [monitor(1), monitor(2)];
    a.assert_answers("10.7.0.2", 20);
    c.assert_answers("10.7.0.2", 20);
    tcp_echo(&a, &b, "10.7.0.2", 2 << 20);
    tcp_echo(&c, &d, "10.7.0.2", 2 << 20);
    let [one, two] = [1, 2].map(|segment| {
        let heard = heard(&other, &mut monitors[segment - 1], segment);
        let asked = heard
            .iter()
            .filter(|f| f[12..14] == [8, 6] && f[..6] == [0xff; 6]);
        asked.map(|f| f[6..12].to_vec()).collect::<HashSet<_>>()
    });
    assert!(
        !one.is_empty() && !two.is_empty() && one.is_disjoint(&two),
        "{one:?} {two:?}"
    );
    let wrong = json!({"kind": "vxlan", "port_security": false,
        "vxlan": {"vni": 1, "local": "192.0.2.9", "peers": []}});
    let error = valed.client().port_add(&port_add("x", wrong)).unwrap_err();
    assert!(
        error.to_string().contains("192.0.2.9 is not an address"),
        "{error}"
    );
}

/// The same through a guest, whose rings know no offloads: the switch completes and segments.
#[test]
fn two_namespaces_reach_each_other_through_a_guest() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24", "2001:db8::1/64"], json!({}));
    let b = valed.attach("b", 2, 2, &["10.7.0.2/24", "2001:db8::2/64"], json!({}));
    let port = |name: &str, segment: u32| {
        Guest::new(
            &valed,
            name,
            json!({"segment": segment, "port_security": false, "slots": 1024}),
        )
    };
    let wire = Wire::new([port("left", 1), port("right", 2)]);
    a.assert_answers("10.7.0.2", 20);
    a.assert_answers("2001:db8::2", 20);
    for address in ["10.7.0.2", "2001:db8::2"] {
        let seconds = tcp_echo(&a, &b, address, MEGABYTES);
        println!(
            "{address}: {:.0} Mb/s each way",
            MEGABYTES as f64 * 8e-6 / seconds
        );
    }
    let (a_port, left) = (valed.counters("a"), valed.counters("left"));
    assert!(
        left.tx_packets > 2 * a_port.rx_packets,
        "nothing was segmented: {a_port:?} {left:?}"
    );
    drop(wire);
}

#[test]
fn a_tap_is_made_and_goes_with_its_port() {
    let mut valed = Valed::start();
    let mut guest = Guest::new(
        &valed,
        "guest",
        json!({"mac": "02:00:00:00:00:01", "port_security": false}),
    );
    valed.add(
        "tap",
        json!({"kind": "tap", "ifname": "tap7", "port_security": false}),
    );
    valed
        .namespace
        .ip("link set tap7 address 02:00:00:00:00:02 up");
    valed.namespace.ip("addr add 10.7.0.2/24 dev tap7");
    // ARP for the tap's address, as a guest asks.
    let mut ask = [
        &[0xff; 6][..],
        &[2, 0, 0, 0, 0, 1],
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
    ]
    .concat();
    ask.extend([2, 0, 0, 0, 0, 1, 10, 7, 0, 1, 0, 0, 0, 0, 0, 0, 10, 7, 0, 2]);
    ask.resize(60, 0);
    guest.send(&ask);
    let is_answer = |f: &[u8]| f[12..14] == [8, 6] && f[20..28] == [0, 2, 2, 0, 0, 0, 0, 2];
    assert!(
        (0..20)
            .map_while(|_| guest.receive())
            .any(|f| is_answer(&f)),
        "no ARP answer from the tap"
    );
    valed
        .client()
        .port_remove(&"vale0".parse().unwrap(), &"tap".parse().unwrap())
        .unwrap();
    eventually("tap7 goes", || {
        !valed.namespace.exec("ip link show tap7").status.success()
    });
    assert_eq!(valed.stop(), Some(0));
}

/// Frames of 9,000 bytes between an interface, a tap and a guest with rings.
#[test]
fn frames_of_9000_bytes_pass_between_interface_tap_and_guest() {
    let valed = Valed::start();
    let long = json!({"mtu": 9000});
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], long.clone());
    a.ip("link set eth0 mtu 9000");
    valed.namespace.ip("link set dev a mtu 9000");
    let tap = json!({"kind": "tap", "ifname": "tap7", "port_security": false, "mtu": 9000,
        "mac": "02:00:00:00:00:02"});
    valed.add("tap", tap);
    valed
        .namespace
        .ip("link set dev tap7 address 02:00:00:00:00:02 mtu 9000 up");
    valed.namespace.ip("addr add 10.7.0.2/24 dev tap7");
    let ping = "ping -c 5 -i 0.2 -W 5 -M do -s 8972 10.7.0.2";
    eventually("a ping of 9,000 bytes", || a.exec(ping).status.success());
    // A guest with the same MTU sends and receives them, one with the usual MTU gets none.
    let port = |name: &str, last: u8, mtu: u16| {
        let mac = format!("02:00:00:00:00:{last:02x}");
        let extra =
            json!({"mac": mac, "segment": 2, "port_security": false, "mtu": mtu, "slots": 64});
        Guest::new(&valed, name, extra)
    };
    let (mut b, mut c, _d) = (port("b", 3, 9000), port("c", 4, 9000), port("d", 5, 1500));
    for n in 0..100u8 {
        let mut frame = vec![2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3, 0x88, 0xb5];
        frame.resize(9014 - usize::from(n), n);
        b.send(&frame);
        assert_eq!(c.receive().unwrap(), frame);
        frame[5] = 5;
        b.send(&frame);
    }
    eventually("the frames for the usual MTU", || {
        valed.counters("d").dropped_too_long == 100
    });
    assert_eq!(valed.counters("d").tx_packets, 0);
}

/// The state of an interface, of a process and of a pipe.
#[test]
fn ports_follow_their_far_ends() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _b = valed.attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
    let far_end = |port: &str| valed.info(port).far_end;
    let becomes = |port: &str, state| {
        eventually(&format!("{port} is {state}"), || far_end(port) == state);
    };
    becomes("b", FarEnd::Up);
    a.assert_answers("10.7.0.2", 3);
    valed.namespace.ip("link set dev b down");
    becomes("b", FarEnd::Down);
    valed.namespace.ip("link set dev b up");
    becomes("b", FarEnd::Up);
    valed.namespace.ip("link del dev b");
    becomes("b", FarEnd::Gone);
    a.assert_silence("10.7.0.2", 2);
    assert!(!valed.info("b").is_up() && valed.info("b").link_up);
    let again = Namespace::new();
    valed.namespace.ip(&format!(
        "link add name b type veth peer name eth0 address 02:00:00:00:00:02 netns {}",
        again.0
    ));
    valed.namespace.ip("link set dev b up");
    again.ip("addr add 10.7.0.2/24 dev eth0");
    again.ip("link set eth0 up");
    becomes("b", FarEnd::Up);
    a.assert_answers("10.7.0.2", 3);
    let guest = Guest::new(&valed, "guest", json!({"port_security": false}));
    becomes("guest", FarEnd::Up);
    drop(guest);
    becomes("guest", FarEnd::Gone);
    let pipe = |port: &str, segment: u32| {
        let extra =
            json!({"kind": "pipe", "pipe": "x", "segment": segment, "port_security": false});
        valed.add(port, extra);
    };
    pipe("left", 1);
    becomes("left", FarEnd::Down);
    pipe("right", 2);
    becomes("left", FarEnd::Up);
    becomes("right", FarEnd::Up);
}

/// The kernel takes the tag out of a frame before a packet socket sees it; valed puts it back.
#[test]
fn a_tagged_frame_keeps_its_tag() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({"port_security": false}));
    let mut guest = Guest::new(
        &valed,
        "guest",
        json!({"mac": "02:00:00:00:00:02", "port_security": false}),
    );
    let mut frame = vec![
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0x60, 5, 0x88, 0xb5,
    ];
    frame.resize(64, 0x77);
    let sent = frame.clone();
    let sending = a.thread(move || {
        let socket = vale_netdev::open_packet_socket("eth0").unwrap();
        let mut batch = vale_netdev::SendBatch::default();
        assert!(batch.push(&[0; vale_netdev::VNET_HEADER], &sent));
        batch.send(socket.as_fd(), |(result, _)| result.unwrap());
    });
    sending.join().unwrap();
    let is_it = |f: &Vec<u8>| f[..6] == frame[..6];
    let received = (0..20).map_while(|_| guest.receive()).find(is_it);
    assert_eq!(received.unwrap(), frame);
}

#[test]
fn an_interface_that_disappears_costs_only_its_port() {
    disappears(json!({}));
}

#[test]
fn an_interface_of_an_af_xdp_socket_that_disappears_costs_only_its_port() {
    disappears(json!({"xdp": true}));
}

fn disappears(extra: serde_json::Value) {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _b = valed.attach("b", 2, 1, &["10.7.0.2/24"], extra);
    let _c = valed.attach("c", 3, 1, &["10.7.0.3/24"], json!({}));
    a.assert_answers("10.7.0.2", 3);
    valed.namespace.ip("link del dev b");
    a.assert_silence("10.7.0.2", 3);
    eventually("it is gone", || valed.info("b").far_end == FarEnd::Gone);
    a.assert_answers("10.7.0.3", 20);
    bounds::hold(
        "max_idle_switch_wakeups_per_half_second",
        valed.wakeups_per_half_second(),
    );
    valed
        .client()
        .port_remove(&"vale0".parse().unwrap(), &"b".parse().unwrap())
        .unwrap();
}

#[test]
fn an_idle_switch_uses_no_processor_time() {
    let valed = Valed::start();
    let a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let _guest = Guest::new(
        &valed,
        "guest",
        json!({"mac": "02:00:00:00:00:02", "port_security": false}),
    );
    a.assert_silence("10.7.0.9", 1);
    bounds::hold(
        "max_idle_switch_wakeups_per_half_second",
        valed.wakeups_per_half_second(),
    );
}

/// Closing a tap or a packet socket waits for the kernel's readers: 13 to 23 ms. The forwarding
/// threads, which alone wait in epoll, close and unmap nothing, whatever ends a port.
#[test]
fn the_forwarding_threads_close_no_port() {
    const TRACED: &str = "trace=openat,close,munmap,epoll_wait,epoll_pwait";
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap();
    let mut valed = Valed::start_under(&["strace", "-f", "-e", TRACED, "-o", path]);
    let remove = |port: &str| {
        let (switch, port) = ("vale0".parse().unwrap(), port.parse().unwrap());
        valed.client().port_remove(&switch, &port).unwrap();
    };
    let mac = json!({"mac": "02:00:00:00:00:05", "port_security": false});
    let _a = valed.attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
    let guest = Guest::new(&valed, "guest", mac.clone());
    let tap = |name: &str| json!({"kind": "tap", "ifname": name, "port_security": false});
    valed.add("tap", tap("tap7"));
    for (port, extra) in [("guest", mac.clone()), ("twin", mac), ("tap", tap("tap8"))] {
        let refused = valed.client().port_add(&port_add(port, extra));
        assert!(refused.is_err(), "{port}");
    }
    drop(guest);
    ["a", "guest", "tap"].iter().for_each(|port| remove(port));
    let text = std::fs::read_to_string(log.path()).unwrap();
    let lines: Vec<_> = text.lines().filter_map(|l| l.split_once(' ')).collect();
    let waits = |(_, call): &&(&str, &str)| call.contains("epoll");
    let forwarding: Vec<_> = lines.iter().filter(waits).map(|(pid, _)| *pid).collect();
    let closing = |call: &str| call.contains("close(") || call.contains("munmap(");
    // A thread's first malloc, before its first wait, unmaps a part of its new heap. The first free
    // of much memory makes glibc read a file of /proc.
    let (mut begun, mut files) = (HashSet::new(), HashSet::new());
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for line in &lines {
        let (pid, call) = *line;
        let opened = call.rsplit_once(" = ").filter(|_| call.contains("openat"));
        if let Some((_, fd)) = opened {
            files.insert((pid, fd));
        }
        let closed = call.trim_start().strip_prefix("close(").unwrap_or_default();
        let fd = closed.split(|c: char| !c.is_ascii_digit()).next();
        if files.remove(&(pid, fd.unwrap_or_default())) {
            continue;
        }
        match closing(call) {
            true if begun.contains(pid) => own.push(line),
            true if !forwarding.contains(&pid) && !begun.is_empty() => others.push(line),
            _ => {}
        }
        if waits(&line) {
            begun.insert(pid);
        }
    }
    assert!(own.is_empty(), "{own:?}");
    let ports = 6;
    assert!(others.len() >= ports, "{others:?}");
    assert_eq!(valed.stop(), Some(0));
}
