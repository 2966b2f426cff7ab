// SPDX-License-Identifier: Apache-2.0
//! What RADIUS servers learn about a session: the attributes of its login and of its account (RFC 2865, RFC 2866).
use alloc::format;
use core::net::Ipv4Addr;

use super::session::Session;
use super::{End, SECOND_NS};
use crate::radius::packet::{Attributes, attribute};

/// PPPoE over Ethernet among NAS-Port-Type's values.
const PPPOE: u32 = 32;
/// Service-Type and Framed-Protocol of a subscriber of PPP.
const FRAMED: u32 = 2;
const PPP: u32 = 1;
/// Acct-Authentic: by a RADIUS server, or here.
const BY_SERVER: u32 = 1;
const LOCAL: u32 = 2;

/// A record's occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The session opens.
    Start,
    /// It continues.
    Interim,
    /// It is over.
    Stop(End),
}

/// This access server as its RADIUS servers know it.
#[derive(Clone, Copy, Debug)]
pub struct Nas<'n> {
    /// Its name.
    pub name: &'n str,
    /// Its address towards them.
    pub address: Ipv4Addr,
}

/// The attributes that a login and a record have in common.
pub fn about(session: &Session, user: &str, nas: Nas<'_>) -> Attributes {
    let mut all = Attributes::default();
    let [a, b, c, d, e, f] = session.mac;
    let station = format!("{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{f:02X}");
    all.put(attribute::USER_NAME, user.as_bytes());
    all.put(attribute::NAS_IP_ADDRESS, &nas.address.octets());
    all.put(attribute::NAS_IDENTIFIER, nas.name.as_bytes());
    all.number(attribute::NAS_PORT, session.id.into());
    all.number(attribute::NAS_PORT_TYPE, PPPOE);
    all.number(attribute::SERVICE_TYPE, FRAMED);
    all.number(attribute::FRAMED_PROTOCOL, PPP);
    all.put(attribute::CALLING_STATION_ID, station.as_bytes());
    all
}

/// A record of a session, if it has a user.
pub fn record(session: &Session, status: Status, nas: Nas<'_>, now_ns: u64) -> Option<Attributes> {
    let holder = session.holder.as_ref()?;
    let mut all = about(session, &holder.name, nas);
    let number = match status {
        Status::Start => 1,
        Status::Stop(_) => 2,
        Status::Interim => 3,
    };
    all.number(attribute::ACCT_STATUS_TYPE, number);
    let id = format!("{:016x}", session.account_id);
    all.put(attribute::ACCT_SESSION_ID, id.as_bytes());
    all.put(attribute::FRAMED_IP_ADDRESS, &holder.address.octets());
    if let Some(prefix) = session.prefix {
        let value = [&[0, 64][..], &prefix.to_be_bytes()].concat();
        all.put(attribute::FRAMED_IPV6_PREFIX, &value);
    }
    let by = if session.grant.is_some() {
        BY_SERVER
    } else {
        LOCAL
    };
    all.number(attribute::ACCT_AUTHENTIC, by);
    let seconds = |ns: u64| u32::try_from(ns / SECOND_NS).unwrap_or(u32::MAX);
    all.number(attribute::EVENT_TIMESTAMP, seconds(now_ns));
    for class in session.grant.iter().flat_map(|grant| &grant.classes) {
        all.put(attribute::CLASS, class);
    }
    if status == Status::Start {
        return Some(all);
    }
    let account = &session.account;
    let age_ns = now_ns.saturating_sub(account.since_ns);
    all.number(attribute::ACCT_SESSION_TIME, seconds(age_ns));
    // input is what the subscriber sends (RFC 2866, section 5.3)
    for (way, octets, words, packets) in [
        (
            &account.up,
            attribute::ACCT_INPUT_OCTETS,
            attribute::ACCT_INPUT_GIGAWORDS,
            attribute::ACCT_INPUT_PACKETS,
        ),
        (
            &account.down,
            attribute::ACCT_OUTPUT_OCTETS,
            attribute::ACCT_OUTPUT_GIGAWORDS,
            attribute::ACCT_OUTPUT_PACKETS,
        ),
    ] {
        let [count, bytes, _] = way.counts();
        let low = |number: u64| (number & u64::from(u32::MAX)) as u32;
        all.number(octets, low(bytes));
        all.number(words, low(bytes >> 32));
        all.number(packets, low(count));
    }
    if let Status::Stop(end) = status {
        all.number(attribute::ACCT_TERMINATE_CAUSE, end.cause());
    }
    Some(all)
}
