// SPDX-License-Identifier: Apache-2.0
//! Messages of DHCP (RFC 2131) as a relay agent sees them, and its option (RFC 3046).
use click_core::ArgContext;

use crate::prelude::*;

/// Places in a message.
const OP: usize = 0;
const HARDWARE: usize = 1;
const HOPS: usize = 3;
const TRANSACTION: usize = 4;
const GIADDR: usize = 24;
const CLIENT: usize = 28;
/// Fields that have options, too, if the option of this code says so (RFC 2132, section 9.3).
const SERVER_NAME: core::ops::Range<usize> = 44..108;
const FILE: core::ops::Range<usize> = 108..236;
const COOKIE_AT: usize = 236;
const OPTIONS: usize = 240;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// Ethernet, and bytes of its addresses.
const ETHERNET: [u8; 2] = [1, 6];
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Codes of options.
const PAD: u8 = 0;
const END: u8 = 255;
const OVERLOAD: u8 = 52;
const AGENT: u8 = 82;
/// Codes in the agent's option: where the client is, and who it is.
const CIRCUIT: u8 = 1;
const REMOTE: u8 = 2;
/// Relays that a message may have passed (RFC 1542, section 4.1.1).
const MAX_HOPS: u8 = 16;
/// Bytes of a text in the agent's option.
const MAX_TEXT: usize = 64;

/// A text in the agent's option; without one it is left out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AgentText(pub String);

impl FromArg for AgentText {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let text = text.trim();
        match text.len() {
            0..=MAX_TEXT if text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) => {
                Ok(Self(text.into()))
            }
            0..=MAX_TEXT => Err(format!(
                "expected plain characters, got \"{}\"",
                text.shown()
            )),
            length => Err(format!("{length} characters, the most is {MAX_TEXT}")),
        }
    }
}

/// Why a message is not relayed, or not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not a message of DHCP, or not of an Ethernet client.
    Malformed,
    /// Another agent has relayed it, or too many have.
    Relayed,
    /// A client has put an agent's option into it (RFC 3046, section 2.1), or another client's address.
    Forged,
    /// It comes from another server, or belongs to another agent.
    Stranger,
    /// The agent's option did not fit into it; it was relayed without.
    NoRoom,
    /// It does not fit into a packet.
    Long,
    /// No client has asked for it.
    Unasked,
}

/// All faults, in the order of their counts.
pub const FAULTS: [&str; 7] = [
    "malformed",
    "relayed",
    "forged",
    "stranger",
    "no room",
    "too long",
    "unasked",
];

/// Where the options end, and which are of agents.
#[derive(Default)]
struct Options {
    end: usize,
    /// Options of agents, in the order of their places.
    agents: Vec<core::ops::Range<usize>>,
    /// The same in the fields for names.
    hidden: Vec<core::ops::Range<usize>>,
}

/// Walks through the options in a part of a message; returns where they end.
fn walk(
    message: &[u8],
    part: core::ops::Range<usize>,
    mut see: impl FnMut(u8, core::ops::Range<usize>),
) -> Option<usize> {
    let part_end = part.end;
    let message = message.get(..part_end)?;
    let mut at = part.start;
    loop {
        match *message.get(at)? {
            PAD => at += 1,
            END => return Some(at),
            code => {
                let next = at + 2 + usize::from(*message.get(at + 1)?);
                message.get(at..next)?;
                see(code, at..next);
                at = next;
            }
        }
    }
}

impl Options {
    /// Walks through the options of a message, those in the fields for names included.
    fn of(message: &[u8]) -> Option<Self> {
        let (mut made, mut fields) = (Self::default(), 0);
        made.end = walk(message, OPTIONS..message.len(), |code, range| match code {
            AGENT => made.agents.push(range),
            OVERLOAD => fields |= message[range].get(2).copied().unwrap_or_default(),
            _ => {}
        })?;
        for (bit, part) in [(1, FILE), (2, SERVER_NAME)] {
            if fields & bit != 0 {
                walk(message, part, |code, range| {
                    if code == AGENT {
                        made.hidden.push(range);
                    }
                })?;
            }
        }
        Some(made)
    }

    /// True if an agent has put options into the message, or somebody in its name.
    fn has_agent(&self) -> bool {
        !self.agents.is_empty() || !self.hidden.is_empty()
    }
}

/// What a request and its answers have in common: the transaction and the client's Ethernet address.
pub type Question = ([u8; 4], [u8; 6]);

/// The question of a message that was relayed, or is to be.
pub fn question(message: &[u8]) -> Option<Question> {
    let transaction = message.get(TRANSACTION..)?.first_chunk()?;
    Some((*transaction, *message.get(CLIENT..)?.first_chunk()?))
}

fn is_message(message: &[u8], op: u8) -> bool {
    let cookie = message.get(COOKIE_AT..OPTIONS);
    cookie == Some(&COOKIE) && message[OP] == op && message[HARDWARE..HARDWARE + 2] == ETHERNET
}

/// The agent's option; empty without texts.
fn agent_option(circuit: &AgentText, remote: &AgentText) -> Vec<u8> {
    let mut option = vec![AGENT, 0];
    for (code, text) in [(CIRCUIT, &circuit.0), (REMOTE, &remote.0)] {
        if !text.is_empty() {
            option.extend([code, text.len() as u8]);
            option.extend(text.bytes());
        }
    }
    match option.len() - 2 {
        0 => Vec::new(),
        length => {
            option[1] = length as u8;
            option
        }
    }
}

/// The request of a client as servers get it, of at most `most` bytes, and a fault that did not stop it.
pub fn request(
    message: &[u8],
    giaddr: Ipv4Addr,
    (circuit, remote): (&AgentText, &AgentText),
    most: usize,
) -> Result<(Vec<u8>, Option<Fault>), Fault> {
    if !is_message(message, REQUEST) {
        return Err(Fault::Malformed);
    }
    if message[GIADDR..GIADDR + 4] != [0; 4] || message[HOPS] >= MAX_HOPS {
        return Err(Fault::Relayed);
    }
    let options = Options::of(message).ok_or(Fault::Malformed)?;
    if options.has_agent() {
        return Err(Fault::Forged);
    }
    if options.end >= most {
        return Err(Fault::Long);
    }
    let option = agent_option(circuit, remote);
    let fits = options.end + option.len() < most;
    let mut made = message.to_vec();
    if fits && !option.is_empty() {
        // the last option; what was after the end was filling
        made.truncate(options.end);
        made.extend(option);
        made.push(END);
        made.resize(made.len().max(message.len()), PAD);
    }
    made.truncate(most);
    made[HOPS] += 1;
    made[GIADDR..GIADDR + 4].copy_from_slice(&giaddr.octets());
    Ok((made, (!fits).then_some(Fault::NoRoom)))
}

/// The answer of a server as clients get it: without the agent's option.
pub fn answer(message: &[u8], giaddr: Ipv4Addr) -> Result<Vec<u8>, Fault> {
    if !is_message(message, REPLY) {
        return Err(Fault::Malformed);
    }
    if message[GIADDR..GIADDR + 4] != giaddr.octets() {
        return Err(Fault::Stranger);
    }
    let options = Options::of(message).ok_or(Fault::Malformed)?;
    let mut made = message.to_vec();
    for agent in options.agents.into_iter().rev() {
        made.drain(agent);
    }
    made.resize(message.len(), PAD);
    for agent in options.hidden {
        made[agent].fill(PAD);
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 1);

    fn message(op: u8, giaddr: Ipv4Addr, options: &[u8]) -> Vec<u8> {
        let mut made = vec![0; OPTIONS];
        (made[OP], made[HARDWARE], made[HARDWARE + 1]) = (op, 1, 6);
        made[GIADDR..GIADDR + 4].copy_from_slice(&giaddr.octets());
        made[COOKIE_AT..].copy_from_slice(&COOKIE);
        made.extend(options);
        made
    }

    fn text(text: &str) -> AgentText {
        AgentText(text.into())
    }

    fn relayed(message: &[u8], most: usize) -> Result<(Vec<u8>, Option<Fault>), Fault> {
        request(message, OWN, (&text("p7"), &text("")), most)
    }

    #[test]
    fn the_option_is_the_last_one_and_goes_on_the_way_back() {
        let asked = message(REQUEST, Ipv4Addr::UNSPECIFIED, &[53, 1, 1, 0, END, 0, 0]);
        let (sent, fault) = relayed(&asked, 1472).unwrap();
        assert_eq!(fault, None);
        assert_eq!(
            sent[OPTIONS..],
            [53, 1, 1, 0, AGENT, 4, CIRCUIT, 2, b'p', b'7', END]
        );
        assert_eq!(
            (sent[HOPS], &sent[GIADDR..GIADDR + 4]),
            (1, &[10, 9, 1, 1][..])
        );
        let mut answered = sent.clone();
        answered[OP] = REPLY;
        let got = answer(&answered, OWN).unwrap();
        assert_eq!(got[OPTIONS..], [53, 1, 1, 0, END, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer(&answered, Ipv4Addr::LOCALHOST), Err(Fault::Stranger));
        assert_eq!(answer(&sent, OWN), Err(Fault::Malformed));
    }

    /// A message whose field for the file's name has options.
    fn overloaded(op: u8, giaddr: Ipv4Addr, fields: u8, inner: &[u8]) -> Vec<u8> {
        let mut made = message(op, giaddr, &[OVERLOAD, 1, fields, END]);
        made[FILE][..inner.len()].copy_from_slice(inner);
        made[SERVER_NAME][..inner.len()].copy_from_slice(inner);
        made
    }

    #[test]
    fn options_in_the_fields_for_names_hide_no_agent() {
        let none = Ipv4Addr::UNSPECIFIED;
        for fields in 1..=3 {
            let forged = overloaded(REQUEST, none, fields, &[AGENT, 2, 1, 0, END]);
            assert_eq!(relayed(&forged, 1472).map(drop), Err(Fault::Forged));
            let cut = overloaded(REQUEST, none, fields, &[12, 200]);
            assert_eq!(relayed(&cut, 1472).map(drop), Err(Fault::Malformed));
            let answered = overloaded(REPLY, OWN, fields, &[12, 1, 65, AGENT, 2, 1, 0, END]);
            let got = Options::of(&answer(&answered, OWN).unwrap()).unwrap();
            assert!(!got.has_agent());
        }
        // these are names
        let named = overloaded(REQUEST, none, 0, &[AGENT, 2, 1, 0, END]);
        assert!(relayed(&named, 1472).is_ok());
    }

    #[test]
    fn all_options_of_agents_go_on_the_way_back() {
        let answered = message(REPLY, OWN, &[82, 1, 1, 53, 1, 2, 82, 0, END]);
        let got = answer(&answered, OWN).unwrap();
        assert_eq!(got[OPTIONS..], [53, 1, 2, END, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn filling_makes_no_packet_too_long() {
        let none = Ipv4Addr::UNSPECIFIED;
        let mut asked = message(REQUEST, none, &[53, 1, 1, END]);
        asked.resize(1400, PAD);
        let (sent, fault) = relayed(&asked, 548).unwrap();
        assert_eq!((sent.len(), fault), (548, None));
        let long = message(
            REQUEST,
            none,
            &[&[12, 255], &[65; 255][..], &[END]].concat(),
        );
        assert_eq!(relayed(&long, 497).map(drop), Err(Fault::Long));
        assert_eq!(relayed(&long, 498).unwrap().1, Some(Fault::NoRoom));
    }

    #[test]
    fn both_texts_make_one_option() {
        let option = agent_option(&text("a"), &text("bc"));
        assert_eq!(option, [82, 7, 1, 1, b'a', 2, 2, b'b', b'c']);
        assert!(agent_option(&text(""), &text("")).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_relayed_without() {
        let asked = message(REQUEST, Ipv4Addr::UNSPECIFIED, &[53, 1, 1, END]);
        for (most, fault) in [(249, Some(Fault::NoRoom)), (250, None)] {
            let (sent, found) = relayed(&asked, most).unwrap();
            assert_eq!(found, fault);
            assert!(sent.len() <= most);
        }
    }

    #[test]
    fn others_are_refused() {
        let none = Ipv4Addr::UNSPECIFIED;
        for (bad, fault) in [
            (message(REPLY, none, &[END]), Fault::Malformed),
            (message(REQUEST, none, &[]), Fault::Malformed),
            (message(REQUEST, none, &[53, 9, 1, END]), Fault::Malformed),
            (message(REQUEST, OWN, &[END]), Fault::Relayed),
            (message(REQUEST, none, &[82, 1, 1, END]), Fault::Forged),
        ] {
            assert_eq!(relayed(&bad, 1472).map(drop), Err(fault));
        }
        let mut far = message(REQUEST, none, &[END]);
        far[HOPS] = MAX_HOPS;
        assert_eq!(relayed(&far, 1472).map(drop), Err(Fault::Relayed));
        assert_eq!(relayed(&far[..239], 1472).map(drop), Err(Fault::Malformed));
    }

    proptest! {
        #[test]
        fn whatever_options_come(options in prop::collection::vec(any::<u8>(), 0..80), op in 1u8..3, fields in 0u8..4) {
            let options = [&[OVERLOAD, 1, fields][..], &options].concat();
            let mut asked = message(op, Ipv4Addr::UNSPECIFIED, &options);
            asked[FILE][..options.len()].copy_from_slice(&options);
            if let Ok((sent, _)) = relayed(&asked, 300) {
                prop_assert!(sent.len() <= 300);
            }
            asked[GIADDR..GIADDR + 4].copy_from_slice(&OWN.octets());
            if let Ok(got) = answer(&asked, OWN) {
                prop_assert!(!Options::of(&got).is_some_and(|options| options.has_agent()));
            }
        }
    }
}
