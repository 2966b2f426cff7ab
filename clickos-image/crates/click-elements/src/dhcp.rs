// SPDX-License-Identifier: Apache-2.0
//! Messages of DHCP (RFC 2131) as a relay agent sees them, and its option (RFC 3046).
use click_core::Surroundings;

use crate::prelude::*;

/// Places in a message.
const OP: usize = 0;
const HARDWARE: usize = 1;
const HOPS: usize = 3;
const GIADDR: usize = 24;
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
const AGENT: u8 = 82;
/// Codes in the agent's option: where the client is, and who it is.
const CIRCUIT: u8 = 1;
const REMOTE: u8 = 2;
/// Relays that a message may have passed (RFC 1542, section 4.1.1).
const MOST_HOPS: u8 = 16;
/// Bytes of a text in the agent's option.
const MOST_TEXT: usize = 64;

/// A text in the agent's option; without one it is left out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AgentText(pub String);

impl FromArg for AgentText {
    fn from_arg(text: &str, _: Surroundings<'_>) -> Result<Self, String> {
        let text = text.trim();
        match text.len() {
            0..=MOST_TEXT if text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) => {
                Ok(Self(text.into()))
            }
            0..=MOST_TEXT => Err(format!(
                "expected plain characters, got \"{}\"",
                text.escape_debug()
            )),
            length => Err(format!("{length} characters, the most is {MOST_TEXT}")),
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
    /// A client has put an agent's option into it (RFC 3046, section 2.1).
    Forged,
    /// It comes from another server, or belongs to another agent.
    Stranger,
    /// The agent's option did not fit into it; it was relayed without.
    NoRoom,
}

/// All faults, in the order of their counts.
pub const FAULTS: [&str; 5] = ["malformed", "relayed", "forged", "stranger", "no room"];

/// Where the options end, and where the agent's one is.
struct Options {
    end: usize,
    agent: Option<core::ops::Range<usize>>,
}

impl Options {
    /// Walks through the options of a message.
    fn of(message: &[u8]) -> Option<Self> {
        let (mut at, mut agent) = (OPTIONS, None);
        loop {
            let code = *message.get(at)?;
            match code {
                PAD => at += 1,
                END => return Some(Self { end: at, agent }),
                _ => {
                    let next = at + 2 + usize::from(*message.get(at + 1)?);
                    if code == AGENT && agent.is_none() {
                        agent = Some(at..next);
                    }
                    at = next;
                }
            }
        }
    }
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
    if message[GIADDR..GIADDR + 4] != [0; 4] || message[HOPS] >= MOST_HOPS {
        return Err(Fault::Relayed);
    }
    let options = Options::of(message).ok_or(Fault::Malformed)?;
    if options.agent.is_some() {
        return Err(Fault::Forged);
    }
    let option = agent_option(circuit, remote);
    let fits = options.end + option.len() < most;
    let mut made = message.to_vec();
    if fits && !option.is_empty() {
        // the last option; what was behind the end was filling
        made.truncate(options.end);
        made.extend(option);
        made.push(END);
        made.resize(made.len().max(message.len()), PAD);
    }
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
    if let Some(agent) = options.agent {
        made.drain(agent);
        made.resize(message.len(), PAD);
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
        far[HOPS] = MOST_HOPS;
        assert_eq!(relayed(&far, 1472).map(drop), Err(Fault::Relayed));
        assert_eq!(relayed(&far[..239], 1472).map(drop), Err(Fault::Malformed));
    }

    proptest! {
        #[test]
        fn whatever_options_come(options in prop::collection::vec(any::<u8>(), 0..80), op in 1u8..3) {
            let asked = message(op, Ipv4Addr::UNSPECIFIED, &options);
            let _ = relayed(&asked, 300);
            let _ = answer(&message(op, OWN, &options), OWN);
        }
    }
}
