// SPDX-License-Identifier: Apache-2.0
//! Chains whose hops lie on two hosts: two valeds in namespaces with a cable between them.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Guest, Namespace, PATIENCE, Valed, Wire, eventually, ok, tcp_echo, tool};
use serde_json::{Value, json};

const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
/// Hops of the longest chain.
const MAX_HOPS: usize = 9;

/// Two hosts that share a segment by VXLAN. The client is on the first one, the server on the
/// second, or also on the first; hop n is on host n % 2.
struct Hosts {
    hosts: [Valed; 2],
    client: Namespace,
    server: Namespace,
    _hops: Vec<Wire>,
}

impl Hosts {
    fn new(hops: usize, server: usize) -> Self {
        let hosts = [Valed::start(), Valed::start()];
        let peer = &hosts[1].namespace.0;
        hosts[0].namespace.ip(&format!(
            "link add name nic mtu 1600 type veth peer name nic mtu 1600 netns {peer}"
        ));
        for (n, host) in hosts.iter().enumerate() {
            let [local, remote] = [ADDRESSES[n], ADDRESSES[1 - n]];
            host.namespace.ip(&format!("addr add {local}/24 dev nic"));
            host.namespace.ip("link set dev nic up");
            let vxlan = json!({"vni": 7, "local": local, "peers": [remote]});
            let up = json!({"kind": "vxlan", "vxlan": vxlan, "port_security": false});
            host.add("up", up);
        }
        let client = hosts[0].attach("a", 1, 1, &["10.7.0.1/24"], json!({}));
        let server = hosts[server].attach("b", 2, 1, &["10.7.0.2/24"], json!({}));
        let hops = (0..hops).map(|n| {
            let side = |side: &str, last: usize| {
                let mac = format!("02:00:00:00:00:{last:02x}");
                let extra = json!({"mac": mac, "port_security": false});
                Guest::new(&hosts[n % 2], &format!("h{n}-{side}"), extra)
            };
            Wire::new([side("in", 16 + 2 * n), side("out", 17 + 2 * n)])
        });
        let hops = hops.collect();
        Self {
            client,
            server,
            _hops: hops,
            hosts,
        }
    }

    /// Sets the chain on one host. Each hop has a name, a weight and a suffix.
    fn set(&self, host: usize, hops: &[String]) {
        self.set_with(host, hops, "");
    }

    fn set_with(&self, host: usize, hops: &[String], option: &str) {
        let (local, all) = (ADDRESSES[host], ADDRESSES.join(","));
        let from = format!("from=a,protocol=1,host={},sender=10.7.0.1/32", ADDRESSES[0]);
        let [tcp, udp] = [6, 17].map(|n| from.replace("protocol=1", &format!("protocol={n}")));
        let mut words = format!(
            "chain set vale0:web --segment 1 --match {from} --match {tcp} --match {udp} --path 7 --local {local} \
             --hosts {all} {option}"
        );
        hops.iter()
            .for_each(|hop| words += &format!(" --hop {hop}"));
        let socket = self.hosts[host].socket.to_str().unwrap();
        let mut arguments = vec!["--socket", socket];
        arguments.extend(words.split_whitespace());
        ok(tool("vale-ctl").to_str().unwrap(), &arguments);
    }

    /// Sets the chain on both hosts and waits until it is in force.
    fn chain(&self, hops: &[String]) {
        self.set(0, hops);
        self.set(1, hops);
        eventually("both hosts have the chain", || {
            [0, 1]
                .iter()
                .all(|host| self.is_in_force(*host, hops.len()))
        });
    }

    /// Removes the chain on both hosts.
    fn remove(&self) {
        let hosts = self.hosts.iter();
        hosts.for_each(|host| host.client().chain_remove(&chain()).unwrap());
    }

    fn is_in_force(&self, host: usize, hops: usize) -> bool {
        let chain = self.info(host);
        self.is_changed(host)
            && chain["hops"].as_array().unwrap().len() == hops
            && chain["hosts"][0]["is_ready"] == true
    }

    /// True if no definition waits.
    fn is_changed(&self, host: usize) -> bool {
        self.info(host)["is_changing"].is_null()
    }

    fn info(&self, host: usize) -> Value {
        let chains = self.hosts[host].client().chain_list(None).unwrap();
        serde_json::to_value(&chains[0]).unwrap()
    }

    /// The counters of all ports and chains.
    fn drops(&self) -> String {
        let of = |host: usize| {
            let ports = self.hosts[host].client().port_list(None).unwrap();
            let ports = ports
                .iter()
                .map(|p| format!("{}: {:?}\n", p.port, p.counters));
            let chains = self.hosts[host].client().chain_list(None).unwrap();
            format!("{}{chains:?}\n", ports.collect::<String>())
        };
        of(0) + &of(1)
    }

    /// The packets that entered the chain, all at the first host.
    fn entered(&self) -> u64 {
        self.info(0)["counters"]["packets"].as_u64().unwrap()
    }

    fn hop_packets(&self, hop: usize) -> u64 {
        let counters = &self.info(hop % 2)["hop_counters"][hop];
        counters["packets"].as_u64().unwrap()
    }
}

/// Flows of the echo.
const FLOWS: usize = 40;

/// A client that sends a datagram each 2 ms, its flows by turns, and a server that sends them back.
struct Echo {
    stops: [Arc<AtomicBool>; 2],
    answers: Arc<AtomicUsize>,
    client: JoinHandle<Vec<bool>>,
    server: JoinHandle<()>,
}

impl Echo {
    fn start(hosts: &Hosts) -> Self {
        let stops = [Arc::<AtomicBool>::default(), Arc::default()];
        let [client, server] = stops.clone();
        let answers = Arc::<AtomicUsize>::default();
        let answered_so_far = Arc::clone(&answers);
        let is_over = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let (bound, is_bound) = mpsc::channel();
        let server = hosts.server.thread(move || {
            let socket = UdpSocket::bind("10.7.0.2:7").unwrap();
            bound.send(()).unwrap();
            let timeout = Some(Duration::from_millis(50));
            socket.set_read_timeout(timeout).unwrap();
            let mut number = [0; 4];
            while !is_over(&server) {
                if let Ok((_, from)) = socket.recv_from(&mut number) {
                    socket.send_to(&number, from).unwrap();
                }
            }
        });
        // what came before would be answered by ICMP
        is_bound.recv().unwrap();
        let client = hosts.client.thread(move || {
            let flows = (0..FLOWS).map(|n| {
                let socket = UdpSocket::bind(format!("10.7.0.1:{}", 7000 + n)).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket
            });
            let (flows, mut answered) = (flows.collect::<Vec<_>>(), Vec::new());
            let (mut missing, mut last) = (0, Instant::now());
            while !is_over(&client) || missing > 0 && last.elapsed() < PATIENCE {
                if !is_over(&client) {
                    let new = (answered.len() as u32).to_be_bytes();
                    let flow = &flows[answered.len() % FLOWS];
                    flow.send_to(&new, "10.7.0.2:7").unwrap();
                    answered.push(false);
                    (missing, last) = (missing + 1, Instant::now());
                }
                std::thread::sleep(Duration::from_millis(2));
                let mut number = [0; 4];
                for flow in &flows {
                    while flow.recv(&mut number).is_ok() {
                        let place = &mut answered[u32::from_be_bytes(number) as usize];
                        missing -= u32::from(!*place);
                        answered_so_far.fetch_add(usize::from(!*place), Ordering::Relaxed);
                        *place = true;
                    }
                }
            }
            answered
        });
        Self {
            stops,
            answers,
            client,
            server,
        }
    }

    /// Waits for further answers; there is one each 2 ms on an idle machine.
    fn go_on(&self, answers: usize) {
        let wanted = self.answers.load(Ordering::Relaxed) + answers;
        eventually("the echo goes on", || {
            self.answers.load(Ordering::Relaxed) >= wanted
        });
    }

    /// Stops it, and expects all answers. Returns the number of datagrams.
    fn expect_all(self, hosts: &Hosts) -> usize {
        let [client, server] = self.stops;
        client.store(true, Ordering::Relaxed);
        let answered = self.client.join().unwrap();
        server.store(true, Ordering::Relaxed);
        self.server.join().unwrap();
        let lost = (0..answered.len()).filter(|n| !answered[*n]);
        let lost = lost.collect::<Vec<_>>();
        let counters = hosts.drops();
        assert!(
            lost.is_empty(),
            "{lost:?} of {}\n{counters}",
            answered.len()
        );
        answered.len()
    }
}

fn chain() -> vale_proto::ChainId {
    vale_proto::ChainId {
        switch: "vale0".parse().unwrap(),
        chain: "web".parse().unwrap(),
    }
}

fn wire(n: usize) -> String {
    wire_at(n, n % 2)
}

fn wire_at(n: usize, host: usize) -> String {
    format!("h{n}-in:h{n}-out@{},transparent", ADDRESSES[host])
}

#[test]
fn packets_pass_chains_of_two_to_nine_hops_over_two_hosts() {
    let hosts = Hosts::new(MAX_HOPS, 1);
    for count in 2..=MAX_HOPS {
        hosts.chain(&(0..count).map(wire).collect::<Vec<_>>());
        let counts = || {
            let hops = (0..count).map(|n| hosts.hop_packets(n));
            hops.chain([hosts.entered()]).collect::<Vec<_>>()
        };
        let before = counts();
        hosts.client.assert_answers("10.7.0.2", 20);
        // A slow answer makes ping send another request.
        eventually(&format!("all packets pass {count} hops"), || {
            let passed = counts()
                .into_iter()
                .zip(&before)
                .map(|(now, before)| now - before);
            let passed: Vec<_> = passed.collect();
            passed[count] >= 40 && passed.iter().all(|n| *n == passed[count])
        });
    }
    let seconds = tcp_echo(&hosts.client, &hosts.server, "10.7.0.2", 2 << 20);
    println!("{MAX_HOPS} hops: {:.0} Mb/s each way", 16.8 / seconds);
    let counters = [0, 1].map(|n| hosts.hosts[n].counters("path7"));
    let dropped = counters.map(|c| (c.dropped_malformed, c.dropped_unknown, c.dropped_too_long));
    assert_eq!(dropped, [(0, 0, 0); 2]);
}

#[test]
fn a_chain_and_its_hops_come_and_go_without_loss() {
    let hosts = Hosts::new(4, 1);
    let orders: [&[usize]; 4] = [&[0, 1], &[0, 3, 1], &[1, 2], &[3, 0, 1, 2]];
    let chain_of = |order: &[usize]| order.iter().map(|n| wire(*n)).collect::<Vec<_>>();
    let echo = Echo::start(&hosts);
    for round in 0..9 {
        hosts.chain(&chain_of(orders[round % orders.len()]));
    }
    eventually("packets enter the chain", || hosts.entered() >= 100);
    let entered = hosts.entered();
    echo.expect_all(&hosts);
    let echo = Echo::start(&hosts);
    echo.go_on(FLOWS);
    hosts.remove();
    echo.go_on(3 * FLOWS);
    let sent = echo.expect_all(&hosts);
    println!("{entered} packets of the chain, {sent} beside it");
}

/// A hop has instances of the weights 1 and 3 at the two hosts; another hop comes and goes. The hosts
/// get a definition while an earlier one waits, or after that.
#[test]
fn flows_keep_their_instances_on_two_hosts_while_a_hop_comes_and_goes() {
    let hosts = Hosts::new(4, 1);
    let [first, second] = ADDRESSES;
    let both = format!("h0-in:h0-out@{first}+h1-in:h1-out*3@{second},transparent");
    let orders = [
        vec![both.clone()],
        vec![wire(3), both.clone()],
        vec![both.clone(), wire(3)],
    ];
    hosts.chain(&orders[0]);
    let echo = Echo::start(&hosts);
    for (round, answers) in [0, 5, 25, 100, 0, 50, 10, 150].into_iter().enumerate() {
        let hops = &orders[(round + 1) % orders.len()];
        hosts.set(round % 2, hops);
        hosts.set(1 - round % 2, hops);
        echo.go_on(answers);
    }
    hosts.chain(&orders[1]);
    let of = |n: usize| hosts.hosts[n].counters(&format!("h{n}-in")).tx_packets;
    let before = [0, 1].map(of);
    let passed = || [0, 1].map(|n| of(n) - before[n]);
    eventually("packets pass", || passed().iter().sum::<u64>() > 100);
    let passed = passed();
    assert!(passed[0] > 0 && passed[1] > passed[0], "{passed:?}");
    echo.expect_all(&hosts);
}

#[test]
fn a_dead_host_blocks_its_hop_or_is_passed_by() {
    let mut hosts = Hosts::new(2, 0);
    hosts.chain(&[wire(0), wire(1)]);
    hosts.client.assert_answers("10.7.0.2", 10);
    hosts.hosts[1].stop();
    eventually("the first host notices", || {
        hosts.info(0)["live_pairs"] == json!([1, 0])
    });
    hosts.client.assert_silence("10.7.0.2", 5);
    let hop = &hosts.info(0)["hop_counters"][1];
    assert!(hop["dropped"].as_u64().unwrap() >= 5, "{hop}");
    // The other policy; the dead host cannot say that it has it.
    let id = chain();
    hosts.hosts[0].client().chain_remove(&id).unwrap();
    hosts.set_with(0, &[wire(0), wire(1) + ",bypass"], "--restored");
    eventually("the chain goes on without the host", || hosts.is_changed(0));
    hosts.client.assert_answers("10.7.0.2", 10);
    assert!(hosts.hop_packets(0) >= 20);
}

#[test]
fn strangers_and_taken_numbers_are_refused() {
    let hosts = Hosts::new(2, 1);
    hosts.chain(&[wire(0), wire(1)]);
    let refused = |change: Value, text: &str| {
        let mut set = hosts.info(0);
        let fields = ["counters", "hop_counters", "live_pairs", "hosts"];
        let object = set.as_object_mut().unwrap();
        fields.iter().for_each(|field| drop(object.remove(*field)));
        set["chain"] = "other".into();
        for (key, value) in change.as_object().unwrap() {
            set[key] = value.clone();
        }
        let set = serde_json::from_value(set).unwrap();
        let error = hosts.hosts[0].client().chain_set(&set).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(json!({}), "path.number: another chain at 192.0.2.1 has 7");
    let elsewhere = json!({"number": 8, "local": "192.0.2.9", "hosts": ["192.0.2.9", "192.0.2.2"]});
    let mut classifiers = hosts.info(0)["classifiers"].clone();
    for classifier in classifiers.as_array_mut().unwrap() {
        classifier["host"] = "192.0.2.2".into();
    }
    let hops = json!([{"pairs": [{"ingress": "h0-in", "egress": "h0-out"}]}]);
    let change = json!({"path": elsewhere, "classifiers": classifiers, "hops": hops});
    refused(change, "path.local: 192.0.2.9 is not an address");
    // Datagrams of a host that is no peer count as malformed, and change nothing.
    let before = hosts.hosts[0].counters("path7").dropped_malformed;
    hosts.hosts[1].namespace.ip("addr add 192.0.2.3/24 dev nic");
    let send = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
        s.bind(('192.0.2.3', 0)); \
        h = bytes([12, 0, 0, 4, 0, 0, 7, 0, 15, 198, 1, 3, 0, 0, 14, 254]); \
        s.sendto(h + bytes(16) + bytes(60), ('192.0.2.1', 4790))";
    let namespace = &hosts.hosts[1].namespace.0;
    ok("ip", &["netns", "exec", namespace, "python3", "-c", send]);
    eventually("valed counts the stranger", || {
        hosts.hosts[0].counters("path7").dropped_malformed == before + 1
    });
    hosts.client.assert_answers("10.7.0.2", 10);
}
