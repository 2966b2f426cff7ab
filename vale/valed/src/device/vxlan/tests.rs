// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::device::vxlan::free_port::free_port;

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

/// An endpoint at 127.0.0.1 with the peers 127.0.0.2 and 127.0.0.3, all at one free port.
struct Net {
    tunnels: Tunnels,
    peers: [UdpSocket; 2],
    local: SocketAddr,
}

impl Net {
    fn new() -> Self {
        let port = free_port(&["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
        let peers = ["127.0.0.2", "127.0.0.3"].map(|ip| UdpSocket::bind((ip, port)).unwrap());
        peers.iter().for_each(|p| p.set_nonblocking(true).unwrap());
        Self {
            tunnels: Tunnels::at(port),
            peers,
            local: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }

    fn open(&self, vni: u32) -> io::Result<VxlanPort> {
        let peers = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap());
        let local = self.local.ip();
        self.tunnels.open(&Vxlan {
            vni,
            local,
            peers: peers.to_vec(),
        })
    }

    fn send(&self, peer: usize, vni: u32, frame: &[u8]) {
        let datagram = [&header(vni)[..], frame].concat();
        self.peers[peer].send_to(&datagram, self.local).unwrap();
    }

    /// The frames that each peer gets now.
    fn received(&self) -> [Option<Vec<u8>>; 2] {
        self.peers.each_ref().map(|peer| {
            let mut buffer = [0; 2048];
            let len = peer.recv(&mut buffer).ok()?;
            parse(&buffer[..len]).map(|(_, frame)| frame.to_vec())
        })
    }
}

fn frame(to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.resize(len, 0x5a);
    frame
}

fn fetch(port: &mut VxlanPort, burst: &mut Burst) -> Vec<Vec<u8>> {
    port.take_event();
    port.fetch(burst);
    burst
        .frames
        .iter()
        .map(|(bytes, _)| bytes.clone())
        .collect()
}

fn push(port: &mut VxlanPort, frame: &[u8], counters: &mut Counters, now: Nanoseconds) {
    let mut bytes = frame.to_vec();
    let taken = RxFrame {
        bytes: &mut bytes,
        rest: None,
        offload: TxOffload::default(),
    };
    let mut out = TxFrame::new(taken, 14, 14).unwrap();
    out.now = now;
    port.push(&mut out, &mut Buffers::default(), counters);
}

#[test]
fn networks_of_one_socket_keep_apart_and_each_has_one_port() {
    let net = Net::new();
    let (mut one, mut two) = (net.open(101).unwrap(), net.open(102).unwrap());
    assert_eq!(
        net.open(101).err().unwrap().kind(),
        ErrorKind::AlreadyExists
    );
    let (first, second) = (frame(A, B, 60), frame(B, A, 1514));
    net.send(0, 101, &first);
    net.send(1, 102, &second);
    net.send(1, 103, &second);
    let mut burst = Burst::default();
    assert_eq!(fetch(&mut one, &mut burst), [first]);
    assert_eq!(fetch(&mut two, &mut burst), [second]);
    assert!(fetch(&mut one, &mut burst).is_empty());
    drop(one);
    assert!(net.open(101).is_ok(), "its port is gone");
}

#[test]
fn a_known_station_costs_one_datagram_and_the_others_reach_told_peers_only() {
    let net = Net::new();
    let mut port = net.open(7).unwrap();
    let (mut burst, mut counters) = (Burst::default(), Counters::default());
    let to_b = frame(B, A, 60);
    push(&mut port, &to_b, &mut counters, 0);
    assert_eq!(net.received(), [Some(to_b.clone()), Some(to_b.clone())]);
    net.send(1, 7, &frame(A, B, 60));
    fetch(&mut port, &mut burst);
    push(&mut port, &to_b, &mut counters, 0);
    assert_eq!(net.received(), [None, Some(to_b.clone())]);
    let group = frame([0xff; 6], A, 60);
    push(&mut port, &group, &mut counters, 0);
    assert_eq!(net.received(), [Some(group.clone()), Some(group)]);
    let hour = 3_600_000_000_000;
    push(&mut port, &to_b, &mut counters, hour);
    assert_eq!(net.received(), [Some(to_b.clone()), Some(to_b)]);
    assert_eq!((counters.tx_packets, counters.tx_bytes), (7, 7 * 60));
}

#[test]
fn strangers_and_wrong_datagrams_are_refused_and_the_inbox_is_bounded() {
    let net = Net::new();
    let (mut port, mut other) = (net.open(7).unwrap(), net.open(8).unwrap());
    let mut burst = Burst::default();
    let stranger = UdpSocket::bind("127.0.0.4:0").unwrap();
    let good = [&header(7)[..], &frame(A, B, 60)].concat();
    stranger.send_to(&good, net.local).unwrap();
    net.send(0, 7, &[0; 13]);
    net.send(0, 7, &[0; ring::LONGEST + 1]);
    for nothing in [&[][..], &[8; 7], &[0; 100]] {
        net.peers[0].send_to(nothing, net.local).unwrap();
    }
    assert!(fetch(&mut port, &mut burst).is_empty());
    assert_eq!(port.malformed(), 3);
    // Only the port of another network reads the socket.
    let mut sent = 0;
    while port.malformed() == 3 {
        net.send(0, 7, &frame(A, B, 60));
        sent += 1;
        fetch(&mut other, &mut burst);
    }
    let rounds = (0..10).map(|_| fetch(&mut port, &mut burst).len());
    assert_eq!((sent, rounds.sum::<usize>()), (257, 256));
}

#[test]
fn other_peers_come_and_go_while_known_stations_stay_known() {
    let net = Net::new();
    let mut port = net.open(7).unwrap();
    let (mut burst, mut counters) = (Burst::default(), Counters::default());
    net.send(1, 7, &frame(A, B, 60));
    fetch(&mut port, &mut burst);
    port.set_peers(&["127.0.0.3".parse().unwrap(), "127.0.0.5".parse().unwrap()]);
    let (to_b, group) = (frame(B, A, 60), frame([0xff; 6], A, 60));
    push(&mut port, &to_b, &mut counters, 0);
    assert_eq!(net.received(), [None, Some(to_b.clone())]);
    assert_eq!(
        counters.tx_packets, 1,
        "the new peer has the place of the one that left"
    );
    net.send(0, 7, &to_b);
    assert!(fetch(&mut port, &mut burst).is_empty());
    assert_eq!(port.malformed(), 1);
    port.set_peers(&["127.0.0.2".parse().unwrap()]);
    push(&mut port, &to_b, &mut counters, 0);
    push(&mut port, &group, &mut counters, 0);
    assert_eq!(net.received(), [Some(to_b), None]);
    net.send(0, 7, &group);
    assert_eq!(fetch(&mut port, &mut burst), [group]);
}

/// Only root may keep more datagrams than the system's usual limit.
#[test]
fn a_burst_waits_for_a_busy_switch_as_root() {
    const BURSTS: usize = 4000;
    let net = Net::new();
    let mut port = net.open(7).unwrap();
    (0..BURSTS).for_each(|_| net.send(0, 7, &frame(A, B, 64)));
    let mut burst = Burst::default();
    let mut came = 0;
    for _ in 0..BURSTS {
        match fetch(&mut port, &mut burst).len() {
            0 => break,
            count => came += count,
        }
    }
    assert_eq!(came, BURSTS);
}
