// SPDX-License-Identifier: Apache-2.0
//! Hostile frames at every function of the catalog: none makes the engine panic, keeps a buffer, or becomes many.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use click_core::{Device, Environment, Limits, MemoryDevice, Progress, Router};

const VALUES: &str = "define($LEFT_IP 10.9.1.1, $LEFT_MAC 02:00:00:09:01:01, $LEFT_NET 10.9.1.0/24, $LEFT_MTU 1500,
    $LEFT_GW 10.9.1.254, $RIGHT_IP 10.9.2.1, $RIGHT_MAC 02:00:00:09:02:01, $RIGHT_NET 10.9.2.0/24, $RIGHT_MTU 1500,
    $RIGHT_GW 10.9.2.254, $PORT_IP 10.9.1.1, $PORT_IP6 2001:db8:1::1,
    $PORT_MAC 02:00:00:09:01:01, $PUBLIC 10.9.2.64, $PORTS 20000-20399,
    $PORTS_FIRST 1024, $PORTS_LAST 65535, $BLOCK 64, $FLOWS 256, $SUBSCRIBER_FLOWS 64, $FILTERING endpoint-independent,
    $SUBSCRIBERS 10.9.1.0/24, $SUBSCRIBERS6 2001:db8:9::/56, $RADIUS_SIGNED true, $LEFT_IP6 2001:db8:1::1, $RIGHT_IP6 2001:db8:2::1, $LEFT_NET6 2001:db8:1::/64,
    $RIGHT_NET6 2001:db8:2::/64, $LEFT_GW6 ::, $RIGHT_GW6 ::, $SERVER6 2001:db8:2::77, $ENTERPRISE 9, $RELAYS6 true, $REMOTE 10.8.0.0/24, $PEER 10.9.2.77, $VNI 7, $SERVER 10.9.2.77, $THRESHOLD 1, $SAMPLE 2, $MAPPING true,
    $SOURCE_ATTEMPTS 25, $SESSIONS 16, $SERVICE_PORT 8080, $HEALTH_PORT 0, $SECOND_DNS 10.9.2.79, $DNS 10.9.2.78,
    $LOGIN PAP, $IDLE 60, $COLLECTOR 10.9.2.77, $ACTIVE 60);\n";

/// Frames of each seed, and seeds.
const FRAMES: usize = 1000;
const SEEDS: u64 = 2;
/// Packets that a router of these tests has.
const BUFFERS: usize = 512;
/// The most frames that leave for one that came, and for the time that passes.
const MAX_OUT: usize = 2;
const BY_THEMSELVES: usize = 600;
/// The most slices of the router's work for one frame.
const MAX_TURNS: usize = 20;
const SECOND_NS: u64 = 1_000_000_000;

fn templates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vnfd-templates")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The configurations by name, each with the libraries that it requires.
pub fn functions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(templates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_string();
        let file = folder.join(format!("Files/{name}.click"));
        if !file.exists() {
            continue;
        }
        let mut whole = VALUES.to_string();
        for line in text(&file).lines() {
            match line
                .strip_prefix("require(library ")
                .and_then(|rest| rest.strip_suffix(");"))
            {
                Some(library) => whole += &text(&templates().join("library").join(library)),
                None => whole += line,
            }
            whole.push('\n');
        }
        // only this one takes a network of public addresses
        if name == "cgn" {
            whole = whole.replacen("$PUBLIC 10.9.2.64", "$PUBLIC 10.9.2.64/30", 1);
        }
        found.push((name, whole));
    }
    found.sort();
    found
}

/// The generator splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

const OWN: &[&[u8]] = &[
    &[10, 9, 1, 1],
    &[10, 9, 2, 1],
    &[10, 9, 2, 64],
    &[10, 9, 1, 77],
    &[10, 9, 2, 77],
    &[10, 8, 0, 5],
    &[255, 255, 255, 255],
    &[0, 0, 0, 0],
    &[224, 0, 0, 1],
];

fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// An IPv4 packet, mostly with a good header; `depth` bounds packets inside errors and tunnels.
fn ipv4(random: &mut Random, depth: usize) -> Vec<u8> {
    let protocol = [1, 6, 17, 17, 47, 50, 4, 41, 108][random.below(9)];
    let ports = |random: &mut Random| {
        let known: [u16; 12] = [53, 67, 68, 80, 21, 8080, 500, 4789, 6000, 20_000, 20_001, 1];
        let [a, b] = known[random.below(12)].to_be_bytes();
        let [c, d] = known[random.below(12)].to_be_bytes();
        vec![a, b, c, d]
    };
    let mut payload = match protocol {
        1 => vec![
            [8, 0, 3, 5, 11, 12, 13][random.below(7)],
            random.below(3) as u8,
            0,
            0,
            0,
            0,
            0,
            1,
        ],
        6 => {
            let mut tcp = ports(random);
            tcp.extend([
                0,
                0,
                0,
                1,
                0,
                0,
                0,
                1,
                0x50,
                random.below(64) as u8,
                4,
                0,
                0,
                0,
                0,
                0,
            ]);
            tcp
        }
        17 => {
            let mut udp = ports(random);
            udp.extend([0, 40, 0, 0]);
            udp
        }
        _ => vec![0, 0, 8, 0],
    };
    match random.below(3) {
        0 if depth > 0 => payload.extend(ipv4(random, depth - 1)),
        1 => payload.extend((0..random.below(300)).map(|n| n as u8)),
        _ => payload.extend(vec![0; random.below(32)]),
    }
    if protocol == 1 {
        let sum = sum(&payload);
        payload[2..4].copy_from_slice(&sum);
    }
    let length = ((20 + payload.len()) as u16).to_be_bytes();
    let fragment =
        [0u16, 0, 0, 0x4000, 0x2000, 0x2001, 1, 185, 0x3fff][random.below(9)].to_be_bytes();
    let ttl = [0, 1, 2, 64, 64, 255][random.below(6)];
    let mut packet = vec![0x45, 0, length[0], length[1], 0, random.below(3) as u8];
    packet.extend(fragment);
    packet.extend([ttl, protocol, 0, 0]);
    packet.extend(random.one_of(OWN));
    packet.extend(random.one_of(OWN));
    let sum = sum(&packet);
    packet[10..12].copy_from_slice(&sum);
    packet.extend(payload);
    packet
}

fn ipv6(random: &mut Random) -> Vec<u8> {
    let mut packet = vec![
        0x60,
        0,
        0,
        0,
        0,
        32,
        [58, 58, 17, 6, 0, 44][random.below(6)],
        [255, 64, 1, 0][random.below(4)],
    ];
    for _ in 0..2 {
        let mut address = vec![0x20, 1, 0x0d, 0xb8, 0, 1 + random.below(2) as u8];
        address.resize(15, 0);
        address.push(random.below(4) as u8);
        packet.extend(address);
    }
    packet.extend([
        [135, 136, 128, 1, 2, 3][random.below(6)],
        0,
        0,
        0,
        0x60,
        0,
        0,
        0,
    ]);
    packet.extend((0..24).map(|_| random.below(256) as u8));
    packet
}

/// A frame with any kind of tags in front, and some bytes changed or missing.
fn frame(random: &mut Random) -> Vec<u8> {
    let own = [
        [2, 0, 0, 9, 1, 1],
        [2, 0, 0, 9, 2, 1],
        [255; 6],
        [2, 0, 0, 0, 0, 5],
    ];
    let mut frame = own[random.below(4)].to_vec();
    frame.extend([2, 0, 0, 0, 0, 9]);
    for _ in 0..[0, 0, 0, 0, 1, 2, 3, 40][random.below(8)] {
        let tags: [&[u8]; 2] = [&[0x81, 0, 0, 0], &[0x88, 0xa8, 0, 7]];
        frame.extend(tags[random.below(2)]);
    }
    let (kind, packet): (&[u8], _) = match random.below(8) {
        0 => {
            let mut arp = vec![
                0,
                1,
                8,
                0,
                6,
                4,
                0,
                1 + random.below(2) as u8,
                2,
                0,
                0,
                0,
                0,
                9,
            ];
            arp.extend(random.one_of(OWN));
            arp.extend([0; 6]);
            arp.extend(random.one_of(OWN));
            (&[8, 6], arp)
        }
        1 => (&[0x86, 0xdd], ipv6(random)),
        2 => (&[0x88, 0x63], vec![0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]),
        3 => (
            &[0x88, 0x64],
            vec![0x11, 0, 0, 1, 0, 6, 0xc0, 0x21, 1, 1, 0, 4],
        ),
        _ => (&[8, 0], ipv4(random, 2)),
    };
    frame.extend(kind);
    frame.extend(packet);
    for _ in 0..[0, 0, 1, 4][random.below(4)] {
        let at = random.below(frame.len());
        frame[at] = random.below(256) as u8;
    }
    if random.below(8) == 0 {
        frame.truncate(1 + random.below(frame.len()));
    }
    frame.resize(frame.len().max(14), 0);
    frame
}

/// Frames of priority tags, cut at each length from the shortest one on.
const SHORTEST: usize = 14;
const SHORT: usize = 40;

fn tags() -> Vec<u8> {
    let tags = [0x81, 0, 0, 0].repeat(SHORT / 4);
    [[2, 0, 0, 9, 1, 1, 2, 0, 0, 0, 0, 9].to_vec(), tags].concat()
}

/// Sends the frames of a seed; the error says what they did.
fn attack(name: &str, config: &str, seed: u64) -> Result<(), String> {
    let devices: Vec<_> = (0..2)
        .map(|n| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 9, n + 1, 1]))))
        .collect();
    let dynamic = |d: &Rc<RefCell<MemoryDevice>>| -> Rc<RefCell<dyn Device>> { d.clone() };
    let environment = Environment {
        devices: (0..)
            .zip(devices.iter().map(dynamic))
            .collect::<BTreeMap<u32, _>>(),
        limits: Limits {
            packet_buffers: BUFFERS,
            ..Limits::default()
        },
        implicit: vec!["ClickOSControl".to_string()],
        ..Environment::new()
    };
    let registry = click_elements::registry();
    let built = Router::build(name, config, &registry, environment, 1);
    let mut router = built.map_err(|errors| format!("{name}: {}", errors[0]))?;
    // a guest without a share of a limit would let nothing pass
    let handlers = router.handlers();
    let names = handlers.iter().map(|handler| handler.name.as_str());
    let shares = names.filter(|name| name.ends_with(".share"));
    let writes: Vec<(&str, &[u8])> = shares.map(|name| (name, &b"1000000000"[..])).collect();
    let given = router.write_handlers(&writes, 1);
    given.map_err(|error| format!("{name}: {error:?}"))?;
    let (mut random, mut now_ns, mut sent) = (Random(seed), 1, 0);
    for n in 0..FRAMES {
        let frame = match n + SHORTEST {
            short @ ..SHORT => tags()[..short].to_vec(),
            _ => frame(&mut random),
        };
        let shown = format!("{frame:02x?}");
        devices[random.below(2)].borrow_mut().input.push_back(frame);
        now_ns += 1_000_000;
        let mut turns = (0..MAX_TURNS).map(|_| router.run(now_ns));
        if turns.all(|progress| progress == Progress::Worked) {
            return Err(format!("{name}, seed {seed}: it never rests after {shown}"));
        }
        if n % 16 == 0 {
            for device in &devices {
                sent += std::mem::take(&mut device.borrow_mut().output).len();
            }
        }
    }
    let most = MAX_OUT * FRAMES + BY_THEMSELVES;
    if sent > most {
        return Err(format!(
            "{name}, seed {seed}: {sent} frames left for {FRAMES}"
        ));
    }
    let waiting = router.packets_in_use();
    if waiting >= BUFFERS / 2 {
        return Err(format!("{name}, seed {seed}: {waiting} buffers are kept"));
    }
    for _ in 0..90 {
        now_ns += 10 * SECOND_NS;
        router.run(now_ns);
    }
    // reports wait for a collector that does not answer
    match router.packets_in_use() {
        kept if kept > BUFFERS / 16 => Err(format!(
            "{name}, seed {seed}: {kept} buffers are never free"
        )),
        _ => Ok(()),
    }
}

#[test]
fn hostile_frames_hurt_no_function_of_the_catalog() {
    let functions = functions();
    assert!(functions.len() >= 19, "{}", functions.len());
    let wrong: Vec<_> = functions
        .iter()
        .flat_map(|(name, config)| (1..=SEEDS).map(move |seed| attack(name, config, seed)))
        .filter_map(Result::err)
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}
