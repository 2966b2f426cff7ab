// SPDX-License-Identifier: Apache-2.0
//! An IPFilter with a switch in front decides and counts as one without.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use click_core::{Device, Environment, MemoryDevice, Progress, Router};
use click_elements::registry;
use clickos_offload::{Action, Rule, View, first};
use proptest::prelude::*;

/// A guest's router, and the rules that it gave the switch.
struct Bench {
    router: Router,
    device: Rc<RefCell<MemoryDevice>>,
    requests: Rc<RefCell<click_core::offload::OffloadRegistry>>,
    rules: Vec<Rule>,
    hits: Vec<u64>,
    now: u64,
}

impl Bench {
    fn new(list: &str, offload: bool) -> Self {
        Self::behind("CheckIPHeader", list, offload)
    }

    /// One whose filter is behind other elements.
    fn behind(way: &str, list: &str, offload: bool) -> Self {
        let device = Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, 1])));
        let environment = Environment {
            devices: BTreeMap::from([(0, device.clone() as Rc<RefCell<dyn Device>>)]),
            ..Environment::new()
        };
        let requests = Rc::clone(&environment.offload);
        let config = format!(
            "FromDevice(0) -> Strip(14) -> {way} -> fw :: IPFilter({list})
                -> Unstrip(14) -> Queue(1000) -> ToDevice(0);"
        );
        let router = Router::build("fw.click", &config, &registry(), environment, 1);
        let mut router = router.unwrap_or_else(|e| panic!("{list}: {}", e[0]));
        if offload {
            router
                .write_handlers(&[("fw.offload", b"true")], 1)
                .unwrap();
        }
        let taken = requests.borrow_mut().take_requests();
        let text = taken.first().map_or("", |request| &request.text);
        let rules: Vec<Rule> = text.lines().skip(1).map(|l| l.parse().unwrap()).collect();
        let hits = vec![0; rules.len()];
        Self {
            router,
            device,
            requests,
            rules,
            hits,
            now: 1,
        }
    }

    /// Lets the switch decide a frame, and then the guest. True if it passed both.
    fn passes(&mut self, frame: &[u8]) -> bool {
        let found = View::of(frame, frame.len()).and_then(|view| first(&self.rules, &view));
        if let Some(rule) = found {
            self.hits[rule] += 1;
            if self.rules[rule].action == Action::Drop {
                return false;
            }
        }
        self.device.borrow_mut().input.push_back(frame.to_vec());
        for _ in 0..1000 {
            self.now += 1000;
            if self.router.run(self.now) != Progress::Worked {
                break;
            }
        }
        !std::mem::take(&mut self.device.borrow_mut().output).is_empty()
    }

    fn fw_hits(&mut self) -> String {
        let counts = self
            .hits
            .iter()
            .map(|n| format!(" {n}"))
            .collect::<String>();
        self.requests
            .borrow_mut()
            .answer(0, &format!("1 ok\n1 9{counts}"));
        let read = self.router.read_handler("fw.hits", "", self.now).unwrap();
        String::from_utf8(read).unwrap()
    }
}

const RULES: [&str; 24] = [
    "deny tcp dst port 80",
    "deny udp",
    "deny src 10.0.0.0/30",
    "deny src host 10.0.0.1 && dst port 1 or 2 or 5",
    "deny not tcp",
    "deny ip tos 184",
    "deny ip dscp 46",
    "deny ip ttl 64",
    "deny ip frag",
    "deny port 3",
    "deny src port > 3",
    "deny host 10.0.0.2",
    "deny icmp type 8",
    "deny tcp opt syn",
    "deny not dst port 80",
    "deny ip unfrag and udp",
    "allow tcp",
    "allow icmp",
    "allow src host 10.0.0.3",
    "allow dst port 53",
    "allow ip ttl 1",
    "allow ip frag",
    "allow src net 10.0.0.0/31 and udp",
    "deny all",
];

/// What the firewalls have in front of their rules.
const REASSEMBLED: &str = "CheckIPHeader(BADSRC 10.0.0.5 10.0.0.6, ROUTED true) -> IPReassembler";

/// The fragments of a frame's packet, of that many units of 8 bytes each, if its header is right.
fn fragments(frame: &[u8], units: usize) -> Option<Vec<Vec<u8>>> {
    let header = usize::from(frame[14] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let is_whole = frame[20] & 0x3f == 0 && frame[21] == 0;
    let body = &frame[14 + header..14 + total];
    let pieces = body.chunks(units * 8).enumerate();
    let piece = |(n, piece): (usize, &[u8])| {
        let is_last = (n + 1) * units * 8 >= body.len();
        let mut packet = frame[14..14 + header].to_vec();
        packet[2..4].copy_from_slice(&((header + piece.len()) as u16).to_be_bytes());
        let field = (n * units) as u16 | if is_last { 0 } else { 0x2000 };
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        packet[10..12].fill(0);
        let words = packet
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let sum: u32 = words.sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        [&frame[..14], &packet, piece].concat()
    };
    (is_whole && !body.is_empty()).then(|| pieces.map(piece).collect())
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let port = prop::sample::select(vec![0u16, 1, 2, 3, 4, 5, 53, 80, 8 << 8]);
    let protocol = prop::sample::select(vec![1u8, 6, 17, 47]);
    let tos = prop::sample::select(vec![0u8, 184, 185]);
    let ttl = prop::sample::select(vec![1u8, 64]);
    let fragment = prop::sample::select(vec![0u16, 0, 0, 0x2000, 5]);
    let ends = (0u8..5, 0u8..5, port.clone(), port);
    let odd = (
        any::<bool>(),
        0usize..40,
        prop::sample::select(vec![5u8, 5, 6]),
    );
    (ends, protocol, tos, ttl, fragment, odd).prop_map(
        |((from, to, source, destination), protocol, tos, ttl, fragment, (broken, len, words))| {
            let header = usize::from(words) * 4;
            let mut ip = vec![0x40 | words, tos, 0, (header + len) as u8, 0, 0];
            ip.extend(fragment.to_be_bytes());
            ip.extend([ttl, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
            ip.resize(header, 1);
            let words = ip.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum: u32 = words.sum();
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            ip[10..12].copy_from_slice(&(sum ^ u16::from(broken && len == 7)).to_be_bytes());
            let mut body = [source.to_be_bytes(), destination.to_be_bytes()].concat();
            body.resize(40, 2);
            ip.extend(&body[..len]);
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
            frame.extend(ip);
            frame.resize(frame.len().max(60), 0);
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn switch_and_guest_together_decide_as_the_guest_alone(
        list in prop::collection::vec(prop::sample::select(RULES.to_vec()), 1..6),
        frames in prop::collection::vec(frame(), 40),
    ) {
        let list = list.join(", ");
        let (mut alone, mut both) = (Bench::new(&list, false), Bench::new(&list, true));
        for frame in &frames {
            prop_assert_eq!(alone.passes(frame), both.passes(frame), "{}: {:?}", list, both.rules);
        }
        prop_assert_eq!(alone.fw_hits(), both.fw_hits(), "{}", list);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn fragments_pass_the_switch_if_their_packet_passes_the_guest(
        list in prop::collection::vec(prop::sample::select(RULES.to_vec()), 1..6),
        frames in prop::collection::vec((frame(), 1usize..4, any::<bool>()), 20),
    ) {
        let list = list.join(", ");
        let [mut alone, mut both] = [false, true].map(|on| Bench::behind(REASSEMBLED, &list, on));
        for (id, (frame, units, reversed)) in frames.iter().enumerate() {
            let mut frame = frame.clone();
            frame[19] = id as u8;
            let Some(mut parts) = fragments(&frame, *units) else { continue };
            if *reversed {
                parts.reverse();
            }
            let passes = |bench: &mut Bench| {
                parts.iter().fold(false, |passed, part| bench.passes(part) | passed)
            };
            prop_assert_eq!(passes(&mut alone), passes(&mut both), "{}: {:?}", list, both.rules);
        }
    }
}

#[test]
fn of_fragments_the_switch_drops_what_all_have() {
    let offloaded = |list: &str| {
        let rules = Bench::behind(REASSEMBLED, list, true).rules;
        let rules: Vec<_> = rules.iter().map(ToString::to_string).collect();
        rules.join("; ")
    };
    assert_eq!(
        offloaded("deny udp dst port 53, allow tcp dst port 80, deny all"),
        "drop proto 17 dport 53; pass proto 6; drop ip; drop ip"
    );
    assert_eq!(offloaded("deny ip tos 184, allow all"), "");
}

#[test]
fn decided_rules_are_offloaded_and_others_pass() {
    let rules = |list: &str| {
        let rules = Bench::new(list, true).rules;
        rules
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(
        rules("allow icmp, deny udp dst port 53, deny src net 10.0.0.0/8, allow all"),
        "pass proto 1; drop proto 17 dport 53; drop src 10.0.0.0/8"
    );
    assert_eq!(rules("allow tcp"), "pass proto 6; drop ip");
    assert_eq!(
        rules("deny ip ttl 1, deny tcp dst port 80, allow all"),
        "",
        "a rule that the switch cannot express hides those behind it"
    );
    assert_eq!(
        rules("deny tcp opt syn, deny udp, allow all"),
        "pass proto 6; drop proto 17"
    );
    let many = (1..200).map(|n| format!("deny udp dst port {}", 2 * n));
    let many = many.collect::<Vec<_>>().join(", ");
    let offloaded = Bench::new(&format!("{many}, allow all"), true).rules;
    assert!((50..=64).contains(&offloaded.len()), "{}", offloaded.len());
}
