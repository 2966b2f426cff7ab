// SPDX-License-Identifier: Apache-2.0
//! A pair of routers: one is active, the other has its flows and takes over. The functions are a NAT, a firewall with
//! state, a carrier-grade NAT and a load balancer.
mod cost;
mod ip6;
mod strangers;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use click_core::{Device, Entropy, Environment, MemoryDevice, Progress, Router};
use click_wire::{checksum, ipv4, tcp};

const MS: u64 = 1_000_000;
const STEP_NS: u64 = 10 * MS;
/// The silence after which a backup takes over: three intervals of 200 ms, and the skew.
const TAKEOVER_MS: u64 = 1000;
const INSIDE: [u8; 4] = [10, 0, 0, 9];
const OUTSIDE: [u8; 4] = [198, 51, 100, 7];
const HOST: [u8; 6] = [2, 0, 0, 0, 9, 9];

/// Runs a router, of which it gets the number.
type Run = Box<dyn FnMut(usize, &mut Member, u64)>;
type Memory = Rc<RefCell<MemoryDevice>>;

/// What stands between the two networks: inputs `left` and `right` have frames, `to_right` and `to_left` take packets.
const NAT: &str = "
    rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop);
    left -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> to_right;
    right -> Strip(14) -> CheckIPHeader -> [1] rw [1] -> to_left;";
const FIREWALL: &str = "
    rw :: FlowGuard(2000);
    left -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> to_right;
    right -> Strip(14) -> CheckIPHeader -> [1] rw [1] -> to_left;
    Idle -> [2] rw [2] -> Discard;";
/// Each subscriber has four ports.
const CARRIER_NAT: &str = "
    blocks :: PortBlockMapper(10.0.0.0/28, 203.0.113.1/32, BLOCK 4, LOG syslog);
    syslog :: Syslog(203.0.113.1, cgn) -> to_right;
    rw :: IPRewriter(blocks, drop);
    left -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> to_right;
    right -> Strip(14) -> CheckIPHeader -> [1] rw [1] -> to_left;";
/// The host of the right network is the one server.
const BALANCER: &str = "
    pool :: ServerPool(203.0.113.1, 198.51.100.7);
    rw :: IPRewriter(pool, drop);
    left -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> to_right;
    right -> Strip(14) -> CheckIPHeader -> kind :: IPClassifier(icmp, -);
    kind[0] -> pool -> to_right;
    kind[1] -> [1] rw [1] -> to_left;";

/// A router of a pair.
struct Member {
    router: Router,
    devices: [Memory; 2],
    text: String,
    dead: bool,
}

fn virtual_mac(side: usize) -> [u8; 6] {
    [0, 0, 0x5e, 0, 1, side as u8 + 1]
}

fn config(function: &str, own: u8, priority: u8, copies: bool) -> String {
    let peer = 5 - own;
    let key = match copies {
        true => ", KEY AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        false => "",
    };
    format!(
        "vrrp :: VRRP(1 10.0.0.{own} 2:0:0:0:0:{own} 10.0.0.{peer} 2:0:0:0:0:{peer} 10.0.0.1,
                      2 203.0.113.{own} 2:0:0:0:1:{own} - - 203.0.113.1,
                      PRIORITY {priority}, INTERVAL 0.2, PREEMPT false{key});
         elementclass FromDevice {{ $vif | FromDevice($vif) -> port :: VRRPPort(vrrp, $vif) -> output;
             port[1] -> ToDevice($vif) }}
         elementclass ToDevice {{ $vif | input -> VRRPGate(vrrp) -> ToDevice($vif) }}
         FromDevice(0) -> left :: Classifier(12/0800);
         FromDevice(1) -> right :: Classifier(12/0800);
         to_right :: EtherEncap(0x0800, 0:0:5e:0:1:2, 2:0:0:0:9:9) -> Queue -> ToDevice(1);
         to_left :: EtherEncap(0x0800, 0:0:5e:0:1:1, 2:0:0:0:9:9) -> Queue -> ToDevice(0);
         {function}"
    )
}

impl Member {
    fn new(function: &str, own: u8, copies: bool, start: u8) -> Self {
        let priority = if own == 2 { 200 } else { 100 };
        Self::of(config(function, own, priority, copies), own, start)
    }

    fn of(text: String, own: u8, start: u8) -> Self {
        let device = |n| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, n, own])));
        let devices: [Memory; 2] = [device(0), device(1)];
        let dynamic = |device: &Memory| device.clone() as Rc<RefCell<dyn Device>>;
        let environment = Environment {
            devices: (0..)
                .zip(devices.iter().map(dynamic))
                .collect::<BTreeMap<_, _>>(),
            entropy: Entropy::new(&[start; 32]),
            ..Environment::new()
        };
        let registry = click_elements::registry();
        Self {
            router: Router::build("t", &text, &registry, environment, 1).unwrap(),
            devices,
            text,
            dead: false,
        }
    }

    /// Replaces the configuration by itself.
    fn swap(&mut self, now_ns: u64) {
        let registry = click_elements::registry();
        let swapped = self.router.hotswap("t", &self.text, &registry, now_ns);
        swapped.unwrap();
    }

    fn run(&mut self, now_ns: u64) {
        for _ in 0..100 {
            if let Progress::Idle { .. } = self.router.run(now_ns) {
                break;
            }
        }
    }

    fn read(&mut self, name: &str, now_ns: u64) -> String {
        let value = self.router.read_handler(name, "", now_ns);
        String::from_utf8(value.unwrap()).unwrap()
    }
}

/// Two routers between two networks, and the hosts there.
struct World {
    function: &'static str,
    members: [Member; 2],
    /// No frame passes between the routers.
    split: bool,
    /// The host of the right network answers no pings.
    is_deaf: bool,
    now_ns: u64,
    /// The virtual routers of both networks.
    virtual_macs: [[u8; 6]; 2],
    /// What arrived at the hosts of both networks.
    heard: [Vec<Vec<u8>>; 2],
    run: Run,
}

impl World {
    fn new(function: &'static str) -> Self {
        Self::with(function, true)
    }

    /// Two routers that copy their flows to each other, or do not.
    fn with(function: &'static str, copies: bool) -> Self {
        let members = [(2, 1), (3, 2)];
        Self::of(
            function,
            members.map(|(own, start)| Member::new(function, own, copies, start)),
        )
    }

    fn of(function: &'static str, members: [Member; 2]) -> Self {
        let mut world = Self {
            function,
            members,
            split: false,
            is_deaf: false,
            now_ns: 1000 * MS,
            virtual_macs: [virtual_mac(0), virtual_mac(1)],
            heard: [Vec::new(), Vec::new()],
            run: Box::new(|_, router, now_ns| router.run(now_ns)),
        };
        world.wait(2000);
        world
    }

    /// Lets time pass; frames go to all others on their network.
    fn wait(&mut self, ms: u64) {
        for _ in 0..ms * MS / STEP_NS {
            self.now_ns += STEP_NS;
            for n in 0..2 {
                if self.members[n].dead {
                    continue;
                }
                (self.run)(n, &mut self.members[n], self.now_ns);
                for side in 0..2 {
                    let sent: Vec<_> = self.members[n].devices[side]
                        .borrow_mut()
                        .output
                        .drain(..)
                        .collect();
                    for frame in sent {
                        self.deliver(n, side, frame);
                    }
                }
            }
        }
    }

    fn deliver(&mut self, from: usize, side: usize, frame: Vec<u8>) {
        let other = &self.members[1 - from];
        if !self.split && !other.dead {
            let device = &other.devices[side];
            device.borrow_mut().input.push_back(frame.clone());
        }
        if let Some(answer) = answer_to_ping(&frame).filter(|_| side == 1 && !self.is_deaf) {
            for member in &self.members {
                let device = &member.devices[side];
                device.borrow_mut().input.push_back(answer.clone());
            }
        }
        self.heard[side].push(frame);
    }

    /// A host sends a datagram to the virtual router; returns what the host of the other side gets.
    fn send(&mut self, side: usize, packet: &[u8]) -> Vec<Vec<u8>> {
        let frame = [&self.virtual_macs[side][..], &HOST, &[8, 0], packet].concat();
        self.heard[1 - side].clear();
        for member in &self.members {
            let device = &member.devices[side];
            device.borrow_mut().input.push_back(frame.clone());
        }
        self.wait(10);
        let heard = self.heard[1 - side].iter();
        let protocols = [ipv4::UDP, ipv4::TCP];
        let datagrams = heard.filter(|frame| frame[..6] == HOST && protocols.contains(&frame[23]));
        datagrams.map(|frame| frame[14..].to_vec()).collect()
    }

    fn read(&mut self, member: usize, name: &str) -> String {
        self.members[member].read(name, self.now_ns)
    }

    fn states(&mut self) -> [String; 2] {
        [0, 1].map(|n| self.read(n, "vrrp.state"))
    }

    /// The active router dies, and the other one takes over.
    fn take_over(&mut self) {
        self.wait(200);
        self.members[0].dead = true;
        self.wait(TAKEOVER_MS);
        assert_eq!(self.states()[1], "active");
    }

    /// Opens a flow; returns its public port.
    fn open(&mut self, sport: u16) -> u16 {
        let sent = self.send(0, &datagram(INSIDE, sport, OUTSIDE, 53));
        assert_eq!(sent.len(), 1, "one router forwards");
        u16::from_be_bytes([sent[0][20], sent[0][21]])
    }

    /// How many routers translate an answer.
    fn answers(&mut self, port: u16, sport: u16) -> usize {
        let back = self.send(1, &datagram(OUTSIDE, 53, [203, 0, 113, 1], port));
        let is_good = |p: &&Vec<u8>| p[16..20] == INSIDE && p[22..24] == sport.to_be_bytes();
        back.iter().filter(is_good).count()
    }
}

/// A frame with a packet that a host sends to the virtual router.
fn frame_to(side: usize, packet: &[u8]) -> Vec<u8> {
    [&virtual_mac(side)[..], &HOST, &[8, 0], packet].concat()
}

/// What a host answers to a ping.
fn answer_to_ping(frame: &[u8]) -> Option<Vec<u8>> {
    let is_ping = frame[..6] == HOST && frame[23] == ipv4::ICMP && frame[34] == 8;
    is_ping.then(|| {
        let mut answer = frame.to_vec();
        answer[..6].copy_from_slice(&virtual_mac(1));
        answer[6..12].copy_from_slice(&HOST);
        let (source, destination) = answer[26..34].split_at_mut(4);
        source.swap_with_slice(destination);
        answer[34..38].copy_from_slice(&[0; 4]);
        let sum = checksum::of(&answer[34..]).to_be_bytes();
        answer[36..38].copy_from_slice(&sum);
        answer
    })
}

/// A packet with a header of IPv4.
fn packet(source: [u8; 4], destination: [u8; 4], protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    ipv4::Repr {
        tos: 0,
        id: 1,
        fragment: 0,
        ttl: 64,
        protocol,
        source: source.into(),
        destination: destination.into(),
        payload_len: body.len() as u16,
    }
    .emit(&mut bytes);
    bytes.extend(body);
    bytes
}

/// A datagram without a checksum of its own.
fn datagram(source: [u8; 4], sport: u16, destination: [u8; 4], dport: u16) -> Vec<u8> {
    let mut body = [sport, dport].map(u16::to_be_bytes).concat();
    body.extend([0, 8, 0, 0]);
    packet(source, destination, ipv4::UDP, &body)
}

const SYN: u8 = 2;
const ACK: u8 = 16;
/// The windows that both ends of a connection offer, without a scale.
const WINDOW: u16 = 8_000;

/// A TCP connection between the hosts: the next number of the inside host, and of the outside one.
struct Connection {
    port: u16,
    next: [u32; 2],
}

impl Connection {
    fn new(port: u16) -> Self {
        let next = [1_000 * u32::from(port), 4_000_000_000 + u32::from(port)];
        Self { port, next }
    }

    /// A segment of a side that begins `beyond` its next number.
    fn segment(&self, side: usize, flags: u8, beyond: u32, text: usize) -> Vec<u8> {
        let (hosts, ports) = ([INSIDE, OUTSIDE], [self.port, 80]);
        let mut body = vec![0; tcp::HEADER + text];
        tcp::Repr {
            source: ports[side],
            destination: ports[1 - side],
            sequence: self.next[side].wrapping_add(beyond),
            acknowledgement: self.next[1 - side] * u32::from(flags & ACK != 0),
            flags,
            window: WINDOW,
        }
        .emit(&mut body, hosts[side].into(), hosts[1 - side].into());
        packet(hosts[side], hosts[1 - side], ipv4::TCP, &body)
    }

    /// A side sends a segment; true if the other one gets it.
    fn send(&mut self, world: &mut World, side: usize, flags: u8, text: usize) -> bool {
        let segment = self.segment(side, flags, 0, text);
        let numbers = text as u32 + u32::from(flags & SYN != 0);
        self.next[side] = self.next[side].wrapping_add(numbers);
        world.send(side, &segment).len() == 1
    }

    fn open(world: &mut World, port: u16) -> Self {
        let mut connection = Self::new(port);
        let steps = [(0, SYN), (1, SYN | ACK), (0, ACK)];
        let passed = steps.map(|(side, flags)| connection.send(world, side, flags, 0));
        assert_eq!(passed, [true; 3]);
        connection
    }

    /// Both sides send text.
    fn talks(&mut self, world: &mut World) -> bool {
        let [there, back] = [0, 1].map(|side| self.send(world, side, ACK, 1_000));
        there && back
    }
}

#[test]
fn the_higher_priority_is_active_and_the_other_has_its_flows() {
    let mut world = World::new(NAT);
    assert_eq!(world.states(), ["active", "backup"]);
    let ports: Vec<u16> = (0..1000).map(|n| world.open(2000 + n)).collect();
    world.take_over();
    let lost = (2000..)
        .zip(ports)
        .filter(|(sport, port)| world.answers(*port, *sport) != 1);
    assert_eq!(lost.count(), 0);
}

#[test]
fn a_new_active_router_announces_its_addresses() {
    let mut world = World::new(NAT);
    world.members[0].dead = true;
    world.heard = [Vec::new(), Vec::new()];
    world.wait(TAKEOVER_MS);
    for (side, ip) in [(0, [10, 0, 0, 1]), (1, [203, 0, 113, 1])] {
        let is_announcement = |frame: &&Vec<u8>| {
            frame[..6] == [0xff; 6] && frame[6..12] == virtual_mac(side) && frame[28..32] == ip
        };
        let announced = world.heard[side].iter().filter(is_announcement).count();
        assert!(announced >= 1, "side {side}");
    }
}

#[test]
fn one_that_comes_back_stays_backup_and_gets_all_flows() {
    let mut world = World::new(NAT);
    let port = world.open(7);
    world.wait(200);
    world.members[0].dead = true;
    world.wait(TAKEOVER_MS);
    world.members[0] = Member::new(world.function, 2, true, 9);
    world.wait(2000);
    assert_eq!(world.states(), ["backup", "active"]);
    let (now_ns, flows) = (world.now_ns, "rw.size");
    assert_eq!(world.members[0].read(flows, now_ns), "1");
    world.members[1].dead = true;
    world.wait(TAKEOVER_MS);
    assert_eq!(world.states()[0], "active");
    assert_eq!(world.answers(port, 7), 1);
}

/// True if a router says that the other one has all flows, and both mean the same connection.
fn is_copied(world: &mut World) -> bool {
    let [own, other] = [0, 1].map(|n| world.read(n, "vrrp.copies"));
    let value = |text: &str, key| -> Vec<String> {
        let mut lines = text.lines().map(str::split_ascii_whitespace);
        let found = lines.find_map(|mut words| words.next().filter(|w| *w == key).map(|_| words));
        found.unwrap().map(String::from).collect()
    };
    let numbers = value(&other, "connection").into_iter().rev();
    value(&own, "connected") == ["true"]
        && value(&own, "waiting") == ["0"]
        && value(&own, "connection") == numbers.collect::<Vec<_>>()
}

#[test]
fn the_other_has_all_flows_of_a_long_table_when_one_says_so() {
    // it is known to be gone after three seconds
    for silence_ms in [1000, 4000] {
        let mut world = World::new(NAT);
        assert!(is_copied(&mut world));
        world.members[1].dead = true;
        let flows = 4000;
        for sport in 1000..1000 + flows {
            let frame = frame_to(0, &datagram(INSIDE, sport, OUTSIDE, 53));
            world.members[0].devices[0]
                .borrow_mut()
                .input
                .push_back(frame);
        }
        world.wait(silence_ms);
        assert_eq!(world.read(0, "rw.size"), flows.to_string());
        world.members[1] = Member::new(world.function, 3, true, 9);
        let mut steps = 0;
        while !is_copied(&mut world) {
            world.wait(10);
            steps += 1;
            assert!(steps < 1000, "{}", world.read(0, "vrrp.copies"));
        }
        assert_eq!(world.read(1, "rw.size"), flows.to_string());
    }
}

#[test]
fn one_that_began_again_is_known_before_its_silence_is() {
    let mut world = World::new(NAT);
    for sport in 10..20 {
        world.open(sport);
    }
    world.wait(200);
    assert!(is_copied(&mut world));
    world.members[1] = Member::new(world.function, 3, true, 9);
    while !is_copied(&mut world) {
        world.wait(10);
    }
    assert_eq!(world.read(1, "rw.size"), "10");
}

#[test]
fn after_a_split_one_gives_way_at_once_and_none_answers_twice() {
    let mut world = World::new(NAT);
    let port = world.open(7);
    world.wait(200);
    world.split = true;
    world.wait(2 * TAKEOVER_MS);
    assert_eq!(world.states(), ["active", "active"]);
    world.split = false;
    world.wait(1000);
    assert_eq!(world.states(), ["active", "backup"]);
    assert_eq!(world.answers(port, 7), 1);
}

#[test]
fn an_idle_flow_with_packets_is_kept_at_the_other() {
    let mut world = World::new(NAT);
    let port = world.open(7);
    // UDP flows end after five minutes.
    for _ in 0..40 {
        world.wait(10_000);
        assert_eq!(world.answers(port, 7), 1);
    }
    let now_ns = world.now_ns;
    assert_eq!(world.members[1].read("rw.size", now_ns), "1");
}

#[test]
fn a_firewall_keeps_its_connections_and_their_windows() {
    let mut world = World::new(FIREWALL);
    let ports = 2000..3000;
    let open = |port| Connection::open(&mut world, port);
    let mut connections: Vec<_> = ports.map(open).collect();
    // Some go on for a while after they were copied.
    for connection in connections.iter_mut().take(100) {
        assert!(connection.talks(&mut world));
    }
    world.take_over();
    assert_eq!(world.read(1, "rw.table_size"), "1000");
    let goes_on = connections.iter_mut().map(|c| c.talks(&mut world));
    let lost = goes_on.filter(|goes_on| !goes_on).count();
    bounds::hold("max_takeover_lost_connections", lost as f64);
    for connection in &connections {
        for side in [0, 1] {
            let beyond = connection.segment(side, ACK, 100_000, 10);
            assert_eq!(world.send(side, &beyond), Vec::<Vec<u8>>::new());
        }
    }
    let other = Connection::new(9).segment(1, ACK, 0, 10);
    assert_eq!(world.send(1, &other), Vec::<Vec<u8>>::new(), "no flow");
    assert_eq!(
        world.read(1, "rw.drops"),
        "1\tno flow\n2000\tbeyond the window\n0\ttable full\n0\tunreadable\n"
    );
}

#[test]
fn a_long_transfer_goes_on_although_its_copy_is_late() {
    let mut world = World::new(FIREWALL);
    let mut connection = Connection::open(&mut world, 7);
    world.wait(200);
    for _ in 0..200 {
        assert!(connection.send(&mut world, 1, ACK, 1_400));
        assert!(connection.send(&mut world, 0, ACK, 0));
    }
    let state = world.read(0, "rw.state");
    assert_ne!(world.read(1, "rw.state"), state, "the copy is older");
    world.take_over();
    assert!(connection.send(&mut world, 1, ACK, 1_400));
    assert!(connection.talks(&mut world));
}

#[test]
fn flows_are_copied_after_a_hot_swap_as_well() {
    for function in [NAT, FIREWALL] {
        let mut world = World::new(function);
        let before = world.open(7);
        world.wait(200);
        let now_ns = world.now_ns;
        world.members[0].swap(now_ns);
        let after = world.open(8);
        world.take_over();
        for (port, sport) in [(before, 7), (after, 8)] {
            let back = match function {
                NAT => world.answers(port, sport),
                _ => world.send(1, &datagram(OUTSIDE, 53, INSIDE, sport)).len(),
            };
            assert_eq!(back, 1, "{function}: {sport}");
        }
    }
}

#[test]
fn a_carrier_nat_gives_no_port_twice() {
    let mut world = World::new(CARRIER_NAT);
    let ports: Vec<u16> = (0..4).map(|n| world.open(10 + n)).collect();
    world.take_over();
    let fifth = datagram(INSIDE, 20, [198, 51, 100, 8], 53);
    assert_eq!(world.send(0, &fifth), Vec::<Vec<u8>>::new());
    for (port, sport) in ports.iter().zip(10..) {
        assert_eq!(world.answers(*port, sport), 1);
    }
    assert_eq!(world.read(1, "rw.mapping_failures"), "1");
}

#[test]
fn a_carrier_nat_logs_the_blocks_that_it_takes_over() {
    let mut world = World::new(CARRIER_NAT);
    for member in &mut world.members {
        let target = [("syslog.target", &b"198.51.100.9"[..])];
        member.router.write_handlers(&target, world.now_ns).unwrap();
    }
    world.open(10);
    world.wait(11_000);
    assert_eq!([0, 1].map(|n| world.read(n, "syslog.sent")), ["1", "0"]);
    world.take_over();
    let other = datagram([10, 0, 0, 8], 10, OUTSIDE, 53);
    assert_eq!(world.send(0, &other).len(), 1);
    world.wait(11_000);
    assert_eq!(world.read(1, "syslog.sent"), "2");
}

#[test]
fn a_balancer_knows_its_servers_at_once() {
    let mut world = World::new(BALANCER);
    let status = |flows| format!("198.51.100.7 up {flows}\n");
    assert_eq!(
        [0, 1].map(|n| world.read(n, "pool.status")),
        [status(0), status(0)]
    );
    world.open(7);
    world.take_over();
    assert_eq!(world.read(1, "pool.status"), status(0));
    world.is_deaf = true;
    world.open(8);
    assert_eq!(world.read(1, "pool.status"), status(1));
}

#[test]
fn a_balancer_of_ipv6_copies_its_flows() {
    let mut world = World::new(
        "pool :: ServerPool(203.0.113.1, 2001:db8::8, 2001:db8::9, SRC6 2001:db8::1); Idle -> pool;
         b :: IP6Balancer(2001:db8:1::1, pool);
         left -> Strip(14) -> CheckIP6Header -> b -> Discard;
         right -> Strip(14) -> CheckIP6Header -> [1] b [1] -> Discard;
         Idle -> to_left; Idle -> to_right;",
    );
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    for address in ["2001:db8:7::1", "2001:db8:1::1"] {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        packet.extend(address.octets());
    }
    packet.extend([0x13, 0x88, 0, 80, 0, 8, 1, 1]);
    // the type of the frame does not matter to this function
    let device = &world.members[0].devices[0];
    device.borrow_mut().input.push_back(frame_to(0, &packet));
    world.wait(1_000);
    let flows = [0, 1].map(|n| {
        let table = world.read(n, "b.table");
        let words: Vec<_> = table.split_whitespace().map(String::from).collect();
        let (age, server) = (words[6].parse::<u64>(), &words[7]);
        assert!(age.is_ok() && server.starts_with("2001:db8::"), "{table}");
        [&words[..6], &words[7..]].concat()
    });
    assert_eq!(flows[0], flows[1]);
}

#[test]
fn a_server_that_fails_is_down_at_both() {
    let mut world = World::new(BALANCER);
    world.is_deaf = true;
    world.wait(6_000);
    for n in [0, 1] {
        assert_eq!(world.read(n, "pool.status"), "198.51.100.7 down 0\n");
    }
}
