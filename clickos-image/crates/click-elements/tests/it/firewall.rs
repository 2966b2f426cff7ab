// SPDX-License-Identifier: Apache-2.0
//! The firewall's configuration between two devices: ARP, forwarding, filtering, a live rule change, hot swap.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;

use click_core::{Device, Environment, HandlerError, MemoryDevice, Progress, Router};
use click_elements::registry;
use click_wire::{arp, ether, icmp, ipv4, udp};

const FIREWALL: &str = "
    define($inside 10.0.1.1, $outside 10.0.2.1);
    elementclass Side { $vif, $ip |
        FromDevice($vif) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
        c[0] -> ARPResponder($ip vif$vif) -> q :: Queue(1000) -> out :: Counter -> ToDevice($vif);
        arp :: ARPQuerier($ip/24, vif$vif);
        c[1] -> [1] arp;
        c[2] -> in :: Counter -> Strip(14) -> CheckIPHeader -> [0] output;
        c[3] -> Discard;
        input -> arp -> q;
    }
    in :: Side(0, $inside);
    out :: Side(1, $outside);
    in -> fw :: IPFilter(allow icmp, allow udp && dst port 53, deny all) -> ttl :: DecIPTTL -> out;
    ttl[1] -> ICMPError($inside, timeexceeded) -> in;
    out -> DecIPTTL -> in;
";

const CLIENT: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 1, 9], Ipv4Addr::new(10, 0, 1, 9));
const SERVER: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 2, 9], Ipv4Addr::new(10, 0, 2, 9));

struct Bench {
    router: Router,
    devices: [Rc<RefCell<MemoryDevice>>; 2],
    now: u64,
}

impl Bench {
    fn new(config: &str) -> Self {
        let devices =
            [0u8, 1].map(|n| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, n, 1]))));
        let dynamic = |d: &Rc<RefCell<MemoryDevice>>| -> Rc<RefCell<dyn Device>> { d.clone() };
        let environment = Environment {
            devices: BTreeMap::from([(0, dynamic(&devices[0])), (1, dynamic(&devices[1]))]),
            implicit: vec!["ClickOSControl".to_string()],
            ..Environment::new()
        };
        let router =
            Router::build("fw.click", config, &registry(), environment, 1).unwrap_or_else(|e| {
                panic!(
                    "{}",
                    e.iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join("\n")
                )
            });
        Self {
            router,
            devices,
            now: 1,
        }
    }

    fn run(&mut self) {
        for _ in 0..1000 {
            self.now += 1000;
            if self.router.run(self.now) != Progress::Worked {
                return;
            }
        }
        panic!("the router does not come to rest");
    }

    /// Sends a frame into a device and returns what comes out of both.
    fn send(&mut self, device: usize, frame: Vec<u8>) -> [Vec<Vec<u8>>; 2] {
        self.devices[device].borrow_mut().input.push_back(frame);
        self.run();
        [0, 1].map(|n| std::mem::take(&mut self.devices[n].borrow_mut().output))
    }

    fn read(&mut self, name: &str) -> String {
        String::from_utf8(self.router.read_handler(name, "", self.now).unwrap()).unwrap()
    }

    fn answer_arp(&mut self, device: usize, host: ([u8; 6], Ipv4Addr)) {
        let own = self.devices[device].borrow().mac;
        let mut frame = vec![0; 42];
        let reply = arp::Repr {
            operation: arp::REPLY,
            sender_mac: host.0,
            sender_ip: host.1,
            target_mac: own,
            target_ip: Ipv4Addr::UNSPECIFIED,
        };
        reply.emit_frame(host.0, own, &mut frame);
        let out = self.send(device, frame);
        assert!(out[1 - device].is_empty());
    }
}

fn udp_frame(to_mac: [u8; 6], ttl: u8, port: u16) -> Vec<u8> {
    let mut frame = vec![0; ether::HEADER + ipv4::HEADER + udp::HEADER + 4];
    ether::Repr {
        destination: to_mac,
        source: CLIENT.0,
        ethertype: ether::IPV4,
    }
    .emit(&mut frame);
    let ip = ipv4::Repr {
        tos: 0,
        id: 7,
        fragment: 0,
        ttl,
        protocol: ipv4::UDP,
        source: CLIENT.1,
        destination: SERVER.1,
        payload_len: 12,
    };
    udp::Repr {
        source: 4000,
        destination: port,
    }
    .emit(&mut frame[34..], CLIENT.1, SERVER.1);
    ip.emit(&mut frame[14..]);
    frame
}

const INSIDE: [u8; 6] = [2, 0, 0, 0, 0, 1];

#[test]
fn forwards_filters_and_changes_rules_live() {
    let mut bench = Bench::new(FIREWALL);
    // the first packet waits for the server's address
    let out = bench.send(0, udp_frame(INSIDE, 9, 53));
    assert!(out[0].is_empty());
    let query = arp::Repr::parse(&out[1][0][14..]).unwrap();
    assert_eq!(
        (out[1].len(), query.operation, query.target_ip),
        (1, arp::REQUEST, SERVER.1)
    );
    let mut reply = vec![0; 42];
    let from_server = arp::Repr {
        operation: arp::REPLY,
        sender_mac: SERVER.0,
        sender_ip: SERVER.1,
        ..query
    };
    from_server.emit_frame(SERVER.0, [2, 0, 0, 0, 1, 1], &mut reply);
    let out = bench.send(1, reply);
    let frame = &out[1][0];
    assert_eq!(ether::Repr::parse(frame).unwrap().destination, SERVER.0);
    let ip = ipv4::View::new_checked(&frame[14..]).unwrap();
    assert_eq!(
        (ip.ttl(), ip.checksum_is_right(), frame.len()),
        (8, true, 46)
    );
    // port 80 is denied until the rules change
    assert_eq!(
        bench.send(0, udp_frame(INSIDE, 9, 80)),
        [vec![], vec![]] as [Vec<Vec<u8>>; 2]
    );
    let now = bench.now;
    let rules = b"allow udp dst port 80, deny all";
    bench
        .router
        .write_handlers(&[("fw.config", rules)], now)
        .unwrap();
    assert_eq!(bench.read("fw.config"), "allow udp dst port 80, deny all");
    assert_eq!(bench.send(0, udp_frame(INSIDE, 9, 80))[1].len(), 1);
    assert_eq!(bench.send(0, udp_frame(INSIDE, 9, 53))[1].len(), 0);
    assert_eq!(
        bench.read("fw.hits"),
        "1\tallow udp dst port 80\n2\tdeny all\n"
    );
    assert_eq!(bench.read("in/in.count"), "4");
}

#[test]
fn writes_are_all_or_nothing() {
    let mut bench = Bench::new(FIREWALL);
    let before = bench.read("fw.config");
    let writes: &[(&str, &[u8])] = &[
        ("fw.config", b"allow all"),
        ("in/q.capacity", b"5"),
        ("fw.config", b"allow nonsense"),
    ];
    let error = bench.router.write_handlers(writes, 9).unwrap_err();
    assert_eq!((error.code(), error.name()), (520, "fw.config"));
    assert_eq!(
        error.to_string(),
        "fw.config: rule 0: unknown word \"nonsense\""
    );
    assert_eq!(
        (bench.read("fw.config"), bench.read("in/q.capacity")),
        (before, "1000".to_string())
    );
    let code = |name: &str| {
        bench
            .router
            .write_handlers(&[(name, b"1")], 9)
            .unwrap_err()
            .code()
    };
    let codes: Vec<u16> = ["nobody.config", "fw.nothing", "in/in.rate"]
        .into_iter()
        .map(code)
        .collect();
    assert_eq!(codes, [510, 511, 530]);
    assert!(matches!(
        bench.router.read_handler("in/in.reset", "", 9),
        Err(HandlerError::NotPermitted { .. })
    ));
}

#[test]
fn arp_requests_are_answered() {
    let mut bench = Bench::new(FIREWALL);
    let request = arp::Repr {
        operation: arp::REQUEST,
        sender_mac: CLIENT.0,
        sender_ip: CLIENT.1,
        target_mac: [0; 6],
        target_ip: Ipv4Addr::new(10, 0, 1, 1),
    };
    let mut frame = vec![0; 60];
    request.emit_frame(CLIENT.0, ether::BROADCAST, &mut frame);
    let out = bench.send(0, frame);
    let reply = arp::Repr::parse(&out[0][0][14..]).unwrap();
    assert_eq!(
        (out[0].len(), reply.operation, reply.sender_mac),
        (1, arp::REPLY, INSIDE)
    );
    assert_eq!(
        ether::Repr::parse(&out[0][0]).unwrap().destination,
        CLIENT.0
    );
}

#[test]
fn expired_packets_are_reported() {
    let mut bench = Bench::new(FIREWALL);
    bench.answer_arp(0, CLIENT);
    let out = bench.send(0, udp_frame(INSIDE, 1, 53));
    let ip = ipv4::View::new_checked(&out[0][0][14..]).unwrap();
    assert_eq!(
        (ip.source(), ip.destination()),
        (Ipv4Addr::new(10, 0, 1, 1), CLIENT.1)
    );
    assert_eq!(icmp::Repr::parse(ip.payload()).unwrap().kind, 11);
}

#[test]
fn hot_swap_keeps_counts_and_a_wrong_configuration_keeps_the_router() {
    let mut bench = Bench::new(FIREWALL);
    bench.answer_arp(1, SERVER);
    bench.send(0, udp_frame(INSIDE, 9, 53));
    let errors = bench
        .router
        .hotswap("new.click", "in :: Conter;", &registry(), 5)
        .unwrap_err();
    assert!(
        errors[0]
            .to_string()
            .starts_with("new.click:1:7: unknown element class 'Conter'"),
        "{}",
        errors[0]
    );
    assert_eq!(bench.send(0, udp_frame(INSIDE, 9, 53))[1].len(), 1);
    bench
        .router
        .hotswap("new.click", FIREWALL, &registry(), 5)
        .unwrap();
    assert_eq!(
        bench.send(0, udp_frame(INSIDE, 9, 53))[1].len(),
        1,
        "the ARP entry moved over"
    );
    assert_eq!(bench.read("in/in.count"), "3");
    assert_eq!(bench.router.packets_in_use(), 0);
}

#[test]
fn a_full_device_is_tried_again() {
    let mut bench = Bench::new("FromDevice(0) -> Queue -> ToDevice(1);");
    bench.devices[1].borrow_mut().room = 1;
    for n in 0..3 {
        bench.devices[0].borrow_mut().input.push_back(vec![n; 60]);
    }
    bench.run();
    assert_eq!(bench.devices[1].borrow().output.len(), 1);
    bench.devices[1].borrow_mut().room = 9;
    bench.run();
    let device = bench.devices[1].borrow();
    assert_eq!(
        device.output.iter().map(|f| f[0]).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(device.flushes <= 2, "{} notifications", device.flushes);
}

#[test]
fn the_mirror_and_the_list_of_handlers() {
    let mut bench = Bench::new("FromDevice(0) -> c :: Counter -> EtherMirror -> ToDevice(0);");
    let out = bench.send(0, udp_frame(INSIDE, 9, 53));
    assert_eq!(
        ether::Repr::parse(&out[0][0]).unwrap().destination,
        CLIENT.0
    );
    let handlers = bench.router.handlers();
    let find = |name: &str| {
        handlers
            .iter()
            .find(|h| h.name == name)
            .map(|h| (h.read, h.write))
    };
    assert_eq!(find("c.rate"), Some((true, false)));
    assert_eq!(find("c.count"), Some((true, true)));
    assert_eq!(find("c.reset"), Some((false, true)));
    assert_eq!(find("list"), Some((true, false)));
    // Its handlers answer, but no list names what the tenant did not write.
    for listing in ["list", "flatconfig", "config"] {
        assert!(!bench.read(listing).contains("ClickOSControl"), "{listing}");
    }
    let mut handlers = bench.router.handlers().into_iter();
    assert!(!handlers.any(|h| h.name.starts_with("ClickOSControl")));
    assert_eq!(bench.read("ClickOSControl@5.reads"), "4");
}
