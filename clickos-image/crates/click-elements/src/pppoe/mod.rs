// SPDX-License-Identifier: Apache-2.0
//! An access concentrator: PPPoE (RFC 2516) with PPP's link, logins, IPv4 and IPv6 (RFC 1661, 1334, 1994, 1332, 5072).
//!
//! [`server::Server`] is the protocol on frames; the element `PPPoEServer` connects it to packets.
pub mod account;
pub mod book;
pub mod discovery;
pub mod layers;
pub mod login;
pub mod negotiation;
pub mod records;
pub mod server;
pub mod session;
pub mod six;
pub mod table;

use alloc::vec::Vec;

pub use crate::moment::{Moment, SECOND_NS};

/// The longest packet of a session: Ethernet's 1,500 bytes less PPPoE's header and PPP's protocol.
pub const MRU: u16 = 1492;
/// Seconds until a request is repeated (RFC 1661, section 4.6).
pub const RESTART_NS: u64 = 3 * SECOND_NS;
/// Requests without an answer before the peer counts as gone.
pub const REQUESTS: u8 = 10;

/// PPP packets of a session that wait to be sent.
#[derive(Default)]
pub struct Outbox(pub Vec<Vec<u8>>);

impl Outbox {
    /// Adds a control packet.
    pub fn control(&mut self, protocol: u16, code: u8, id: u8, data: &[u8]) {
        let length = u16::try_from(data.len() + click_wire::ppp::HEADER).unwrap_or(u16::MAX);
        let mut packet = Vec::with_capacity(data.len() + 6);
        packet.extend(protocol.to_be_bytes());
        packet.extend([code, id]);
        packet.extend(length.to_be_bytes());
        packet.extend(data);
        self.0.push(packet);
    }
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The subscriber ended it.
    Terminated,
    /// An operator did.
    Disconnected,
    /// The user is gone or has another address.
    Removed,
    /// The user has a newer session.
    Replaced,
    /// The subscriber does not answer any more.
    Dead,
    /// The login took too long.
    Timeout,
    /// Name or password are wrong.
    Login,
    /// Both ends do not agree on the link or on its addresses.
    Disagreed,
    /// A newer session needed its place.
    Evicted,
    /// The subscriber begins again with its link.
    Renegotiated,
    /// It lasted as long as a RADIUS server permits.
    Expired,
    /// It carried no packet for as long as a RADIUS server permits.
    Idle,
    /// No RADIUS server answered.
    Unanswered,
}

impl End {
    /// The word for it in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::Disconnected => "disconnected",
            Self::Removed => "removed",
            Self::Replaced => "replaced",
            Self::Dead => "dead",
            Self::Timeout => "timeout",
            Self::Login => "login",
            Self::Disagreed => "disagreed",
            Self::Evicted => "evicted",
            Self::Renegotiated => "renegotiated",
            Self::Expired => "session-timeout",
            Self::Idle => "idle-timeout",
            Self::Unanswered => "unanswered",
        }
    }

    /// Its number in Acct-Terminate-Cause (RFC 2866, section 5.10).
    pub fn cause(self) -> u32 {
        match self {
            Self::Terminated => 1,
            Self::Dead => 2,
            Self::Idle => 4,
            Self::Expired => 5,
            Self::Disconnected | Self::Removed => 6,
            Self::Replaced | Self::Evicted => 13,
            Self::Timeout | Self::Login | Self::Disagreed | Self::Unanswered => 17,
            Self::Renegotiated => 21,
        }
    }
}
