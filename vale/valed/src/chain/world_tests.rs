// SPDX-License-Identifier: Apache-2.0
//! Random chains of random functions, next to two transparent guests and a station behind a flat
//! uplink. Packets give a bounded number of frames.
//!
//! `VALE_WORLDS` and `VALE_SEED` make a longer or another run.
use super::super::super::uplinks::{request, uplink};
use super::*;

const SEED: u64 = 31;
const WORLDS: u64 = 300;
/// Frames of one world move for fewer rounds than this.
const ROUNDS: usize = 200;

fn number(variable: &str, usual: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(usual, |text| text.parse().expect(variable))
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The network function of a hop. Its chain may say something else.
#[derive(Clone, Copy, Debug)]
struct Function {
    /// It sends frames from its own address to the station that has the packet's destination.
    routes: bool,
    /// Frames that it makes of one.
    makes: usize,
    /// The word of the chain.
    transparent: bool,
    declared: u16,
    secure: bool,
}

impl Function {
    fn random(random: &mut Random) -> Self {
        Self {
            routes: random.coin(),
            makes: random.one_of(&[0, 1, 1, 1, 2, 5]),
            transparent: random.coin(),
            declared: random.one_of(&[1, 1, 1, 2, 3]),
            secure: random.coin(),
        }
    }

    fn output(self, frame: &[u8], own: Mac) -> Vec<u8> {
        let mut out = frame.to_vec();
        if self.routes && frame[12..14] == [8, 0] {
            out[..6].copy_from_slice(&mac(frame[33]).0);
            out[6..12].copy_from_slice(&own.0);
        }
        out
    }
}

/// A guest with two ports.
struct Box2 {
    ends: [Guest; 2],
    macs: [Mac; 2],
    function: Function,
}

impl Box2 {
    fn relay(&mut self) -> usize {
        let [left, right] = &mut self.ends;
        let from = [left.received(), right.received()];
        for (frame, (to, own)) in from
            .iter()
            .zip([(right, self.macs[1]), (left, self.macs[0])])
        {
            for frame in frame {
                let made = self.function.output(frame, own);
                (0..self.function.makes).for_each(|_| {
                    // A full ring loses frames.
                    let _ = to.ring.push(&made);
                });
            }
            let _ = to.ring.publish();
        }
        from.iter().map(Vec::len).sum()
    }
}

struct World {
    bench: Bench,
    /// The stations 1 and 2 have ports, station 3 is behind the uplink.
    stations: [Guest; 3],
    boxes: Vec<Box2>,
    hops: usize,
    /// Frames of a packet that the functions declare.
    copies: usize,
}

impl World {
    fn new(random: &mut Random) -> Self {
        let mut bench = Bench::new();
        let first = bench.try_add("a", secure(1)).unwrap();
        let second = bench.try_add("b", secure(2)).unwrap();
        let stations = [first, second, uplink(&mut bench, "up", json!({}))];
        let mut this = Self {
            bench,
            stations,
            boxes: Vec::new(),
            hops: 1 + random.below(5) as usize,
            copies: 1,
        };
        for n in 0..this.hops {
            let function = Function::random(random);
            this.copies *= function.makes.clamp(1, function.declared.into());
            this.add(n, function, [1, 1]);
        }
        this.set_chain(random);
        for n in 0..2 {
            let wire = Function {
                routes: false,
                makes: 1,
                transparent: true,
                declared: 1,
                secure: false,
            };
            let other = random.one_of(&[1, 2]);
            this.add(this.hops + n, wire, [1, other]);
        }
        this
    }

    fn add(&mut self, n: usize, function: Function, segments: [u32; 2]) {
        let macs = [0, 1].map(|side| mac((10 + 2 * n + side) as u8));
        let mut place = |side: usize| {
            let mut values = secure(macs[side].0[5]);
            // Tacker permits any source address at the ports of a routed function.
            values["allowed"] = json!([{"ip": "0.0.0.0/0"}]);
            if !function.secure {
                values["allowed"] = json!([]);
                values["port_security"] = json!(false);
            }
            values["segment"] = json!(segments[side]);
            let name = format!("h{n}-{}", ["in", "out"][side]);
            self.bench.try_add(&name, values).unwrap()
        };
        let ends = [place(0), place(1)];
        self.boxes.push(Box2 {
            ends,
            macs,
            function,
        });
    }

    fn set_chain(&mut self, random: &mut Random) {
        let hops = self.boxes.iter().enumerate().map(|(n, hop)| {
            json!({"pairs": [pair(n, 1)], "transparent": hop.function.transparent,
                "copies": hop.function.declared,
                "on_failure": random.one_of(&["block", "bypass"])})
        });
        let hops: Vec<_> = hops.collect();
        let classifier = match random.below(3) {
            0 => json!({"source_port": "a"}),
            1 => json!({"source": "10.0.0.0/24"}),
            _ => json!({"source": "10.0.0.0/24", "protocol": UDP}),
        };
        let args = json!({"switch": "vale0", "chain": "web", "segment": 1, "hops": hops,
            "classifiers": [classifier], "symmetric": random.coin()});
        let set: ChainSet = serde_json::from_value(args).unwrap();
        set.check().unwrap();
        let definition = Definition::new(set, None);
        self.bench.switch.set_chain(definition).unwrap();
        if random.below(4) == 0 {
            let hop = random.below(self.hops as u64);
            let port = format!("h{hop}-out").parse().unwrap();
            self.bench.switch.port_mut(&port).unwrap().face.link_up = false;
            self.bench.switch.resolve();
        }
    }

    /// Frames that the switch gave to ports.
    fn given(&self) -> u64 {
        self.bench
            .switch
            .infos()
            .map(|p| p.counters.tx_packets)
            .sum()
    }

    /// Sends a frame and lets all functions work until no frame moves. Returns the frames that the
    /// switch gave to ports.
    fn send(&mut self, station: usize, frame: &[u8]) -> u64 {
        let before = self.given();
        self.stations[station].send(frame);
        for _ in 0..ROUNDS {
            self.bench.round();
            self.stations.iter_mut().for_each(|s| drop(s.received()));
            let moved: usize = self.boxes.iter_mut().map(Box2::relay).sum();
            if moved == 0 {
                return self.given() - before;
            }
        }
        panic!("a storm after {frame:02x?}");
    }

    /// A packet between two stations.
    fn packet(random: &mut Random) -> (usize, Vec<u8>) {
        let from = random.below(3);
        let to = (from + 1 + random.below(2)) % 3;
        let ends = [from, to].map(|n| n as u8 + 1);
        let [source, destination] = ends.map(|n| Ipv4Addr::new(10, 0, 0, n));
        let port = 1000 + random.below(4) as u16;
        let mut frame = packet(
            (mac(ends[0]), mac(ends[1])),
            (source, destination),
            (port, 53),
            1,
        );
        if random.coin() {
            frame[23] = ICMP;
            frame[34..42].copy_from_slice(&[8, 0, 0, 0, 0, 1, 0, 1]);
        }
        (from as usize, frame)
    }
}

/// `k` packets give at most `k * (hops + 1)` frames, times the copies that the functions declare. A
/// frame to all stations, or to an unknown one, reaches each port once at most.
#[test]
fn packets_give_a_bounded_number_of_frames() {
    let (seed, worlds) = (number("VALE_SEED", SEED), number("VALE_WORLDS", WORLDS));
    println!("VALE_SEED={seed} VALE_WORLDS={worlds}");
    let (mut most, mut looped) = (0.0_f64, 0);
    for n in 0..worlds {
        let mut random = Random(seed.wrapping_add(n << 32));
        let mut world = World::new(&mut random);
        let ports = world.bench.switch.infos().count() as u64;
        let name = |world: &World| {
            let functions = world.boxes.iter().map(|b| b.function);
            format!("world {n}: {:?}", functions.collect::<Vec<_>>())
        };
        for station in [2, 0, 1] {
            let asks = request(mac(station as u8 + 1));
            let given = world.send(station, &asks);
            assert!(
                given < ports,
                "{given} frames of one request, {}",
                name(&world)
            );
        }
        let count = 1 + random.below(30);
        let given = (0..count).map(|_| {
            let (from, frame) = World::packet(&mut random);
            world.send(from, &frame)
        });
        let given: u64 = given.sum();
        let bound = count * (world.hops as u64 + 1) * world.copies as u64;
        let ratio = given as f64 / bound as f64;
        if ratio > most.max(1.0) {
            println!("{given} frames of {count}, {}", name(&world));
        }
        most = f64::max(most, ratio);
        looped += world.bench.switch.chains().next().unwrap().counters.looped;
    }
    println!("seen: {most:.3} of the permitted frames, {looped} frames cut");
    bounds::hold("max_chain_frames_ratio", most);
    assert!(
        most > 0.9 && looped > worlds,
        "the worlds ask for more than is permitted"
    );
}
