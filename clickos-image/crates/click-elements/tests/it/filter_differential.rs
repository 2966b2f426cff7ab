// SPDX-License-Identifier: Apache-2.0
//! IPFilter against an evaluator that shares nothing with it: random rules, random packets.

use click_core::{Progress, Router};
use proptest::prelude::*;

use crate::devices::{devices, environment};

/// A packet as the naive evaluator sees it.
#[derive(Clone, Debug)]
struct Packet {
    protocol: u8,
    source: [u8; 4],
    destination: [u8; 4],
    ttl: u8,
    tos: u8,
    fragment: u16,
    transport: Vec<u8>,
}

impl Packet {
    fn bytes(&self, id: u16) -> Vec<u8> {
        let length = u16::try_from(20 + self.transport.len())
            .unwrap()
            .to_be_bytes();
        let mut bytes = vec![0x45, self.tos, length[0], length[1]];
        bytes.extend(id.to_be_bytes());
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([self.ttl, self.protocol, 0, 0]);
        bytes.extend(self.source);
        bytes.extend(self.destination);
        bytes.extend(&self.transport);
        bytes
    }

    fn first(&self) -> bool {
        self.fragment % 0x2000 == 0
    }

    fn number(&self, at: usize) -> Option<u32> {
        if self.first() && self.transport.len() >= at + 2 {
            return Some(u32::from(self.transport[at]) * 256 + u32::from(self.transport[at + 1]));
        }
        None
    }
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Src,
    Dst,
    Any,
    Both,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
}

#[derive(Clone, Debug)]
enum Rule {
    True,
    Protocol(u8),
    Host(Which, [u8; 4], bool),
    Net(Which, [u8; 4], u8),
    Port(&'static str, Which, Op, u32),
    MaskedPort(Which, u32, u32),
    Flag(&'static str, u8),
    Ttl(Op, u32),
    Tos(u32, u32),
    Fragment(bool),
    IcmpType(Op, u32),
    /// Of IPv6, which no packet here is.
    Six(&'static str),
    Not(Box<Rule>),
    And(Box<Rule>, Box<Rule>),
    Or(Box<Rule>, Box<Rule>),
    If(Box<Rule>, Box<Rule>, Box<Rule>),
}

fn text_of(which: Which) -> &'static str {
    match which {
        Which::Src => "src",
        Which::Dst => "dst",
        Which::Any => "src or dst",
        Which::Both => "src and dst",
    }
}

fn operator(op: Op) -> &'static str {
    match op {
        Op::Eq => "==",
        Op::Ne => "!=",
        Op::Lt => "<",
        Op::Gt => ">",
        Op::Le => "<=",
        Op::Ge => ">=",
    }
}

fn dotted(a: [u8; 4]) -> String {
    format!("{}.{}.{}.{}", a[0], a[1], a[2], a[3])
}

impl Rule {
    fn text(&self) -> String {
        match self {
            Self::True => "true".into(),
            Self::Protocol(p) => format!("ip proto {p}"),
            Self::Host(w, a, true) => format!("{} host != {}", text_of(*w), dotted(*a)),
            Self::Host(w, a, false) => format!("{} host {}", text_of(*w), dotted(*a)),
            Self::Net(w, a, len) => format!("{} net {}/{len}", text_of(*w), dotted(*a)),
            Self::Port(p, w, op, v) => format!("{} {p} port {} {v}", text_of(*w), operator(*op)),
            Self::MaskedPort(w, mask, v) => format!("{} port & {mask} == {v}", text_of(*w)),
            Self::Flag(name, _) => format!("tcp opt {name}"),
            Self::Ttl(op, v) => format!("ip ttl {} {v}", operator(*op)),
            Self::Tos(mask, v) => format!("ip tos & {mask} {v}"),
            Self::Fragment(true) => "ip frag".into(),
            Self::Fragment(false) => "ip unfrag".into(),
            Self::IcmpType(op, v) => format!("icmp type {} {v}", operator(*op)),
            Self::Six(text) => (*text).into(),
            Self::Not(a) => format!("not ({})", a.text()),
            Self::And(a, b) => format!("({}) and ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({}) || ({})", a.text(), b.text()),
            Self::If(a, b, c) => format!("(({}) ? ({}) : ({}))", a.text(), b.text(), c.text()),
        }
    }

    fn holds(&self, p: &Packet) -> bool {
        match self {
            Self::True => true,
            Self::Protocol(n) => p.protocol == *n,
            Self::Host(w, a, negated) => both(*w, p.source == *a, p.destination == *a) != *negated,
            Self::Net(w, a, len) => both(
                *w,
                in_net(p.source, *a, *len),
                in_net(p.destination, *a, *len),
            ),
            Self::Port(protocol, w, op, v) => port(p, protocol, *w, *op, |n| n, *v),
            Self::MaskedPort(w, mask, v) => port(p, "", *w, Op::Eq, |n| n & mask, v & mask),
            Self::Flag(_, bit) => {
                p.protocol == 6 && p.first() && p.transport.get(13).is_some_and(|f| f & bit != 0)
            }
            Self::Ttl(op, v) => relation(*op, u32::from(p.ttl), *v),
            Self::Tos(mask, v) => u32::from(p.tos) & mask == v & mask,
            Self::Fragment(wanted) => (p.fragment & 0x3fff != 0) == *wanted,
            Self::IcmpType(op, v) => {
                let kind = p.transport.first().filter(|_| p.protocol == 1 && p.first());
                kind.is_some_and(|k| relation(*op, u32::from(*k), *v))
            }
            Self::Six(_) => false,
            Self::Not(a) => !a.holds(p),
            Self::And(a, b) => a.holds(p) && b.holds(p),
            Self::Or(a, b) => a.holds(p) || b.holds(p),
            Self::If(a, b, c) => {
                if a.holds(p) {
                    b.holds(p)
                } else {
                    c.holds(p)
                }
            }
        }
    }
}

fn both(which: Which, source: bool, destination: bool) -> bool {
    match which {
        Which::Src => source,
        Which::Dst => destination,
        Which::Any => source || destination,
        Which::Both => source && destination,
    }
}

fn in_net(address: [u8; 4], net: [u8; 4], len: u8) -> bool {
    (0..len).all(|bit| {
        let (byte, mask) = (usize::from(bit / 8), 0x80 >> (bit % 8));
        address[byte] & mask == net[byte] & mask
    })
}

fn relation(op: Op, a: u32, b: u32) -> bool {
    match op {
        Op::Eq => a == b,
        Op::Ne => a != b,
        Op::Lt => a < b,
        Op::Gt => a > b,
        Op::Le => a <= b,
        Op::Ge => a >= b,
    }
}

/// `!=`, `<=` and `<` are the opposite of `==`, `>` and `>=` of the whole directive, as in Click:
/// `src or dst port < 80` means that both are.
fn port(
    p: &Packet,
    protocol: &str,
    which: Which,
    op: Op,
    of: impl Fn(u32) -> u32,
    value: u32,
) -> bool {
    let fits = match protocol {
        "tcp" => p.protocol == 6,
        "udp" => p.protocol == 17,
        _ => p.protocol == 6 || p.protocol == 17,
    };
    let needed = match which {
        Which::Src => [Some(0), None],
        Which::Dst => [None, Some(2)],
        _ => [Some(0), Some(2)],
    };
    let [s, d] = needed.map(|at| at.map(|at| p.number(at)));
    if !fits || s == Some(None) || d == Some(None) {
        return false;
    }
    let (plain, negated) = match op {
        Op::Ne => (Op::Eq, true),
        Op::Le => (Op::Gt, true),
        Op::Lt => (Op::Ge, true),
        other => (other, false),
    };
    let test = |n: Option<Option<u32>>| n.flatten().is_some_and(|n| relation(plain, of(n), value));
    both(which, test(s), test(d)) != negated
}

fn address() -> impl Strategy<Value = [u8; 4]> {
    (0u8..2, 0u8..2, 0u8..3).prop_map(|(a, b, c)| [10, a, b * 255, c])
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        Just(Which::Src),
        Just(Which::Dst),
        Just(Which::Any),
        Just(Which::Both)
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::Eq),
        Just(Op::Ne),
        Just(Op::Lt),
        Just(Op::Gt),
        Just(Op::Le),
        Just(Op::Ge)
    ]
}

fn port_number() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0u32),
        Just(22),
        Just(80),
        Just(1023),
        Just(1024),
        Just(0xffff)
    ]
}

const SIX: [&str; 6] = [
    "ip6",
    "ip6 tcp dst port 80",
    "src host 2001:db8::1",
    "net 2001:db8::/32",
    "ip6 hlim < 5",
    "ip6 frag",
];

fn rule() -> impl Strategy<Value = Rule> {
    let protocol = prop_oneof![Just("tcp"), Just("udp"), Just("")];
    let flag = prop_oneof![
        Just(("syn", 2u8)),
        Just(("ack", 16)),
        Just(("fin", 1)),
        Just(("rst", 4))
    ];
    let leaf = prop_oneof![
        Just(Rule::True),
        prop_oneof![Just(1u8), Just(6), Just(17), Just(47)].prop_map(Rule::Protocol),
        (which(), address(), any::<bool>()).prop_map(|(w, a, n)| Rule::Host(w, a, n)),
        (which(), address(), 0u8..=32).prop_map(|(w, a, l)| Rule::Net(w, a, l)),
        (protocol, which(), op(), port_number()).prop_map(|(p, w, o, v)| Rule::Port(p, w, o, v)),
        (which(), 1u32..0xffff, port_number()).prop_map(|(w, m, v)| Rule::MaskedPort(w, m, v)),
        flag.prop_map(|(n, b)| Rule::Flag(n, b)),
        (op(), prop_oneof![Just(0u32), Just(1), Just(64), Just(255)])
            .prop_map(|(o, v)| Rule::Ttl(o, v)),
        (1u32..256, 0u32..256).prop_map(|(m, v)| Rule::Tos(m, v)),
        any::<bool>().prop_map(Rule::Fragment),
        (op(), 0u32..12).prop_map(|(o, v)| Rule::IcmpType(o, v)),
        prop::sample::select(SIX.to_vec()).prop_map(Rule::Six),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed().prop_map(Rule::Not),
            (boxed(), boxed()).prop_map(|(a, b)| Rule::And(a, b)),
            (boxed(), boxed()).prop_map(|(a, b)| Rule::Or(a, b)),
            (boxed(), boxed(), boxed()).prop_map(|(a, b, c)| Rule::If(a, b, c)),
        ]
    })
}

/// A rule as firewalls have them: some fields, each with a network, a number or a range.
fn plain() -> impl Strategy<Value = Rule> {
    let side = || prop_oneof![Just(Which::Src), Just(Which::Dst)];
    let protocol = prop_oneof![Just("tcp"), Just("udp"), Just("")];
    let field = prop_oneof![
        2 => (side(), address(), 8u8..=32).prop_map(|(w, a, l)| Rule::Net(w, a, l)),
        2 => (protocol, side(), op(), port_number()).prop_map(|(p, w, o, v)| Rule::Port(p, w, o, v)),
        1 => prop_oneof![Just(1u8), Just(6), Just(17)].prop_map(Rule::Protocol),
        1 => Just(Rule::Flag("syn", 2)),
    ];
    prop::collection::vec(field, 2..5).prop_map(|fields| {
        let and = |a: Rule, b| Rule::And(Box::new(a), Box::new(b));
        fields.into_iter().reduce(and).unwrap()
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let protocol = prop_oneof![Just(1u8), Just(6), Just(17), Just(47)];
    let ttl = prop_oneof![Just(0u8), Just(1), Just(63), Just(64), Just(255)];
    let fragment = prop_oneof![4 => Just(0u16), 1 => Just(0x4000), 1 => Just(0x2000), 1 => Just(5)];
    let length = prop_oneof![4 => Just(20usize), 1 => 0usize..20];
    let ports = (port_number(), port_number());
    let rest = (ports, any::<u8>(), 0u8..12, length, any::<bool>());
    (
        protocol,
        address(),
        address(),
        ttl,
        any::<u8>(),
        fragment,
        rest,
    )
        .prop_map(
            |(
                protocol,
                source,
                destination,
                ttl,
                tos,
                fragment,
                ((sport, dport), flags, icmp, length, is_icmp),
            )| {
                let mut transport = vec![0; 20];
                transport[..2].copy_from_slice(&sport.to_be_bytes()[2..]);
                transport[2..4].copy_from_slice(&dport.to_be_bytes()[2..]);
                transport[13] = flags;
                if is_icmp && protocol == 1 {
                    transport[0] = icmp;
                }
                transport.truncate(length);
                Packet {
                    protocol,
                    source,
                    destination,
                    ttl,
                    tos,
                    fragment,
                    transport,
                }
            },
        )
}

/// For each packet the output it came out of.
fn filtered(rules: &[(usize, Rule)], packets: &[Packet]) -> Vec<Option<usize>> {
    let texts: Vec<String> = rules
        .iter()
        .map(|(output, rule)| format!("{output} {}", rule.text()))
        .collect();
    let config = format!(
        "FromDevice(0) -> MarkIPHeader -> f :: IPFilter({});
         f[0] -> ToDevice(0); f[1] -> ToDevice(1); f[2] -> ToDevice(2);",
        texts.join(", ")
    );
    let devices = devices::<3>();
    let environment = environment(&devices);
    let mut router =
        Router::build("t", &config, &click_elements::registry(), environment, 1).unwrap();
    let ids = 0..u16::try_from(packets.len()).unwrap();
    devices[0]
        .borrow_mut()
        .input
        .extend(packets.iter().zip(ids).map(|(p, id)| p.bytes(id)));
    while router.run(1) == Progress::Worked {}
    let mut outputs = vec![None; packets.len()];
    for (number, device) in devices.iter().enumerate() {
        let sent = std::mem::take(&mut device.borrow_mut().output);
        let ids: Vec<u16> = sent
            .iter()
            .map(|f| u16::from_be_bytes([f[4], f[5]]))
            .collect();
        assert!(ids.is_sorted(), "packets changed their order");
        ids.iter()
            .for_each(|id| outputs[usize::from(*id)] = Some(number));
    }
    outputs
}

fn naive(rules: &[(usize, Rule)], packet: &Packet) -> Option<usize> {
    rules
        .iter()
        .find(|(_, rule)| rule.holds(packet))
        .map(|(output, _)| *output)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_naive_evaluator(
        rules in prop::collection::vec((0usize..3, rule()), 1..12),
        packets in prop::collection::vec(packet(), 40),
    ) {
        let got = filtered(&rules, &packets);
        for (packet, got) in packets.iter().zip(got) {
            let texts: Vec<String> = rules.iter().map(|(o, r)| format!("{o} {}", r.text())).collect();
            prop_assert_eq!(got, naive(&rules, packet), "{:?}\n{}", packet, texts.join("\n"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, ..ProptestConfig::default() })]

    #[test]
    fn agrees_for_many_rules(
        rules in prop::collection::vec((0usize..3, rule()), 300),
        packets in prop::collection::vec(packet(), 200),
    ) {
        let got = filtered(&rules, &packets);
        for (packet, got) in packets.iter().zip(got) {
            prop_assert_eq!(got, naive(&rules, packet), "{:?}", packet);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, ..ProptestConfig::default() })]

    #[test]
    fn agrees_for_a_thousand_plain_rules_in_any_order(
        (some, all) in prop::collection::vec((0usize..3, plain()), 1000)
            .prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
        packets in prop::collection::vec(packet(), 200),
    ) {
        for rules in [&all[..], &some[..100], &some[..10]] {
            let got = filtered(rules, &packets);
            for (packet, got) in packets.iter().zip(got) {
                prop_assert_eq!(got, naive(rules, packet), "{:?}", packet);
            }
        }
    }
}
