// SPDX-License-Identifier: Apache-2.0
//! IPFilter with packets of IPv6 against an evaluator that knows them as fields, not as bytes.

use click_core::{Environment, Progress, Router};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::devices::{devices, environment};

/// A packet; its number is in the flow label.
#[derive(Clone, Debug)]
struct Packet {
    class: u8,
    hops: u8,
    ends: [u8; 2],
    /// Kinds of its extension headers.
    chain: Vec<u8>,
    /// Of a fragment header behind them: its offset, and whether more follow.
    fragment: Option<(u16, bool)>,
    upper: u8,
    body: Vec<u8>,
    /// Bytes that are cut off after its fixed header.
    left: usize,
}

const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

impl Packet {
    /// The kinds of its headers behind the first, the fragment header's included.
    fn kinds(&self) -> Vec<u8> {
        let fragment = self.fragment.map(|_| FRAGMENT);
        self.chain.iter().copied().chain(fragment).collect()
    }

    fn bytes(&self, number: u16) -> Vec<u8> {
        let kinds = self.kinds();
        let following = |n: usize| kinds.get(n).copied().unwrap_or(self.upper);
        let mut rest = Vec::new();
        for (n, kind) in kinds.iter().enumerate() {
            let mut header = vec![following(n + 1), 0, 0, 0, 0, 0, 0, 0];
            match (*kind, self.fragment) {
                (FRAGMENT, Some((offset, more))) => {
                    header[2..4].copy_from_slice(&(offset << 3 | u16::from(more)).to_be_bytes());
                }
                // the others have 16 bytes, this one counts words
                (AUTHENTICATION, _) => (header[1], _) = (2, header.resize(16, 0)),
                _ => (header[1], _) = (1, header.resize(16, 0)),
            }
            rest.extend(header);
        }
        rest.extend(&self.body);
        rest.truncate(self.left);
        let [high, low] = number.to_be_bytes();
        let mut bytes = vec![0x60 | self.class >> 4, self.class << 4, high, low];
        bytes.extend((rest.len() as u16).to_be_bytes());
        bytes.extend([following(0), self.hops]);
        for end in self.ends {
            bytes.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, end / 4]);
            bytes.extend([0, 0, 0, 0, 0, 0, 0, end]);
        }
        bytes.extend(rest);
        bytes
    }

    /// Bytes that are there of what begins after that many headers.
    fn left_behind(&self, headers: usize) -> usize {
        let kinds = self.kinds();
        let len = |kind: &u8| if *kind == FRAGMENT { 8 } else { 16 };
        self.left
            .saturating_sub(kinds[..headers].iter().map(len).sum())
    }

    /// Headers that can be read: those that are whole, at most eight, none behind that of a later fragment.
    fn readable(&self) -> usize {
        let kinds = self.kinds();
        let whole = (0..kinds.len())
            .filter(|n| self.left_behind(*n) >= if kinds[*n] == FRAGMENT { 8 } else { 16 });
        whole.count().min(8)
    }

    fn sees_all(&self) -> bool {
        self.readable() == self.kinds().len()
    }

    fn protocol(&self) -> u8 {
        self.kinds()
            .get(self.readable())
            .copied()
            .unwrap_or(self.upper)
    }

    /// The fragment header's fields, if that can be read.
    fn seen_fragment(&self) -> Option<(u16, bool)> {
        self.fragment.filter(|_| self.sees_all())
    }

    fn transport(&self) -> &[u8] {
        let is_later = self.fragment.is_some_and(|(offset, _)| offset > 0);
        let kinds = self.kinds().len();
        match self.sees_all() && !is_later && ![59, 60].contains(&self.upper) {
            true => &self.body[..self.body.len().min(self.left_behind(kinds))],
            false => &[],
        }
    }

    fn byte(&self, protocols: &[u8], at: usize) -> Option<u8> {
        let fits = protocols.contains(&self.protocol());
        self.transport().get(at).copied().filter(|_| fits)
    }

    fn port(&self, protocols: &[u8], at: usize) -> Option<u16> {
        let high = self.byte(protocols, at)?;
        Some(u16::from_be_bytes([high, self.byte(protocols, at + 1)?]))
    }
}

type Leaf = (&'static str, fn(&Packet) -> bool);

const TCP: &[u8] = &[6];
const BOTH: &[u8] = &[6, 17];

/// Rules, and what they mean.
const LEAVES: [Leaf; 31] = [
    ("ip6", |_| true),
    ("true", |_| true),
    ("ip vers 6", |_| true),
    ("ip vers 4", |_| false),
    ("src host 10.0.0.1", |_| false),
    ("ip ttl 64", |_| false),
    ("src host 2001:db8::1", |p| p.ends[0] == 1),
    ("dst 2001:db8:0:1::5", |p| p.ends[1] == 5),
    ("host 2001:db8::2", |p| p.ends.contains(&2)),
    ("src and dst host 2001:db8::2", |p| p.ends == [2, 2]),
    ("host != 2001:db8::3", |p| !p.ends.contains(&3)),
    ("dst net 2001:db8::/64", |p| p.ends[1] < 4),
    ("net 2001:db8:0:1::/64", |p| p.ends.iter().any(|e| *e > 3)),
    ("src net 2001:db8::4/126", |_| false),
    ("src net 2001:db8:0:1::4/127", |p| {
        [4, 5].contains(&p.ends[0])
    }),
    ("dst net ::/0", |_| true),
    ("ip6 proto 17", |p| p.protocol() == 17),
    ("tcp", |p| p.protocol() == 6),
    ("ip6 dst tcp port 80", |p| p.port(TCP, 2) == Some(80)),
    ("src port 80 or 81", |p| {
        [Some(80), Some(81)].contains(&p.port(BOTH, 0))
    }),
    ("dst port > 80", |p| p.port(BOTH, 2).is_some_and(|n| n > 80)),
    ("tcp opt syn", |p| {
        p.byte(TCP, 13).is_some_and(|f| f & 2 > 0)
    }),
    ("icmp6 type 128", |p| p.byte(&[58], 0) == Some(128)),
    ("icmp6 type echo-reply", |p| p.byte(&[58], 0) == Some(129)),
    ("icmp type 8", |_| false),
    ("ip6 hlim < 2", |p| p.hops < 2),
    ("ip6 tos 184", |p| p.class == 184),
    ("ip6 dscp 46", |p| p.class >> 2 == 46),
    ("ip6 ce", |p| p.class & 3 == 3),
    ("ip frag", |p| {
        p.seen_fragment().is_some_and(|(at, more)| at > 0 || more)
    }),
    ("ip6 hidden", |p| {
        [0, 43, 44, 51, 60, 135].contains(&p.protocol())
    }),
];

/// A rule.
#[derive(Clone, Debug)]
enum Rule {
    Leaf(usize),
    Not(Box<Rule>),
    And(Box<[Rule; 2]>),
    Or(Box<[Rule; 2]>),
}

impl Rule {
    fn text(&self) -> String {
        match self {
            Self::Leaf(n) => LEAVES[*n].0.into(),
            Self::Not(a) => format!("not ({})", a.text()),
            Self::And(of) => format!("({}) and ({})", of[0].text(), of[1].text()),
            Self::Or(of) => format!("({}) or ({})", of[0].text(), of[1].text()),
        }
    }

    fn holds(&self, packet: &Packet) -> bool {
        match self {
            Self::Leaf(n) => LEAVES[*n].1(packet),
            Self::Not(a) => !a.holds(packet),
            Self::And(of) => of.iter().all(|rule| rule.holds(packet)),
            Self::Or(of) => of.iter().any(|rule| rule.holds(packet)),
        }
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let leaf = (0..LEAVES.len()).prop_map(Rule::Leaf);
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = || [inner.clone(), inner.clone()].prop_map(Box::new);
        prop_oneof![
            inner.clone().prop_map(|rule| Rule::Not(Box::new(rule))),
            pair().prop_map(Rule::And),
            pair().prop_map(Rule::Or),
        ]
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let port = || prop::sample::select(vec![0u16, 79, 80, 81, 443]);
    let chain = prop::sample::select(vec![0u8, 43, AUTHENTICATION, 60, 135]);
    let chain = prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(chain.clone(), 1..4),
        1 => prop::collection::vec(chain, 7..10),
    ];
    let fragment =
        prop::option::weighted(0.3, (prop::sample::select(vec![0u16, 0, 9]), any::<bool>()));
    let upper = prop::sample::select(vec![6u8, 17, 58, 59, 50]);
    let kind = prop::sample::select(vec![0u8, 2, 128, 129]);
    let length = prop_oneof![3 => Just(20usize), 1 => 0usize..20];
    let left = prop_oneof![4 => Just(usize::MAX), 1 => 0usize..60];
    let class = prop::sample::select(vec![0u8, 184, 187, 3]);
    let hops = prop::sample::select(vec![0u8, 1, 2, 64]);
    let outer = (class, hops, [0u8..8, 0u8..8], chain, fragment, upper);
    (outer, port(), port(), kind, length, left).prop_map(
        |((class, hops, ends, chain, fragment, upper), source, destination, kind, length, left)| {
            let mut body = [source.to_be_bytes(), destination.to_be_bytes()].concat();
            body.resize(20, 0);
            body[13] = kind;
            if upper == 58 {
                body[0] = kind;
            }
            body.truncate(length);
            let mut packet = Packet {
                class,
                hops,
                ends,
                chain,
                fragment,
                upper,
                body,
                left,
            };
            let headers = packet.kinds().len();
            let all = usize::MAX - packet.left_behind_all(headers);
            packet.left = left.min(all + packet.body.len());
            packet
        },
    )
}

impl Packet {
    /// What would be left of all bytes after that many headers.
    fn left_behind_all(&self, headers: usize) -> usize {
        let whole = Self {
            left: usize::MAX,
            ..self.clone()
        };
        whole.left_behind(headers)
    }
}

/// The output of each packet.
fn filtered(rules: &[String], packets: &[Packet]) -> Vec<Option<usize>> {
    let config = format!(
        "FromDevice(0) -> MarkIP6Header -> f :: IPFilter({});
         f[0] -> ToDevice(0); f[1] -> ToDevice(1); f[2] -> ToDevice(2);",
        rules.join(", ")
    );
    let devices = devices::<3>();
    let environment = environment(&devices);
    let registry = click_elements::registry();
    let router = Router::build("t", &config, &registry, environment, 1);
    let mut router = router.unwrap_or_else(|e| panic!("{config}: {}", e[0]));
    let frames = (0..).zip(packets).map(|(n, p)| p.bytes(n));
    devices[0].borrow_mut().input.extend(frames);
    while router.run(1) == Progress::Worked {}
    let mut outputs = vec![None; packets.len()];
    for (number, device) in devices.iter().enumerate() {
        for frame in std::mem::take(&mut device.borrow_mut().output) {
            let packet = usize::from(u16::from_be_bytes([frame[2], frame[3]]));
            outputs[packet] = Some(number);
        }
    }
    outputs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn agrees_with_the_naive_evaluator(
        rules in prop::collection::vec((0usize..3, rule()), 1..8),
        packets in prop::collection::vec(packet(), 40),
        many: bool,
    ) {
        // rules of IPv4 that make the list long
        let others = (0..if many { 90 } else { 0 }).map(|n| format!("0 src host 10.0.0.{n}"));
        let own = rules.iter().map(|(output, rule)| format!("{output} {}", rule.text()));
        let texts: Vec<_> = others.chain(own).collect();
        for (packet, got) in packets.iter().zip(filtered(&texts, &packets)) {
            let found = rules.iter().find(|(_, rule)| rule.holds(packet));
            let wanted = found.map(|(output, _)| *output);
            prop_assert_eq!(got, wanted, "{:?}\n{}", packet, texts.join("\n"));
        }
    }
}

/// The rules as they were understood mean the same.
#[test]
fn rules_are_shown_in_their_own_language() {
    let packets: Vec<Packet> = {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let strategy = prop::collection::vec(packet(), 200);
        strategy.new_tree(&mut runner).unwrap().current()
    };
    for (text, _) in LEAVES {
        let shown = shown(text);
        let [first, again] = [text, &shown].map(|t| filtered(&[format!("0 {t}")], &packets));
        assert_eq!(first, again, "{text}: {shown}");
    }
}

fn shown(text: &str) -> String {
    let config = format!("Idle -> f :: IPFilter(0 {text}) -> Discard;");
    let registry = click_elements::registry();
    let router = Router::build("t", &config, &registry, Environment::new(), 1);
    let mut router = router.unwrap_or_else(|e| panic!("{text}: {}", e[0]));
    let rules = String::from_utf8(router.read_handler("f.rules", "", 1).unwrap()).unwrap();
    rules.trim().split('\t').nth(2).unwrap().to_string()
}

#[test]
fn wrong_words_name_the_cure() {
    for (text, words) in [
        ("ip hlim 5", "\"hlim\" is a field of ip6"),
        ("ip6 ttl 5", "\"ttl\" is a field of ip"),
        ("ip6 src host 10.0.0.1", "expected an address of IPv6"),
        ("ip src host 2001:db8::1", "belongs to ip6"),
        ("net 2001:db8::/129", "expected a network"),
        ("hidden", "\"hidden\" is a field of ip6"),
    ] {
        let config = format!("Idle -> f :: IPFilter(0 {text}) -> Discard;");
        let registry = click_elements::registry();
        let error = Router::build("t", &config, &registry, Environment::new(), 1);
        let error = error.err().map(|e| e[0].to_string()).unwrap_or_default();
        assert!(error.contains(words), "{text}: {error}");
    }
}
