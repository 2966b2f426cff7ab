// SPDX-License-Identifier: Apache-2.0
//! Messages of syslog (RFC 5424) that elements write, until an element `Syslog` sends them over UDP (RFC 5426).
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;
use core::fmt::Display;

use click_core::ArgContext;
use click_core::memory::{RESERVE, has_room};
use click_core::text::split_words;
use click_wire::{ipv4, udp};

use crate::calendar::Time;
use crate::ip_packet::encapsulate;
use crate::prelude::*;

/// Messages that wait at most, and bytes of one.
const MAX: usize = 256;
const MAX_BYTES: usize = 1400;
/// Memory without which a message is lost; what is logged leaves it free.
pub const MESSAGE_ROOM: usize = RESERVE + 2 * MAX_BYTES;
/// Messages are sent this often.
const TICK_NS: u64 = 100_000_000;
const TICKS_PER_S: u32 = 10;
const PORT: u16 = 514;
/// The facility local0 (RFC 5424, section 6.2.1).
const FACILITY: u8 = 16;
const TTL: u8 = 64;

/// How important a message is.
#[derive(Clone, Copy)]
pub enum Severity {
    /// Of alerts, which need regular expressions.
    #[cfg_attr(not(feature = "regex"), allow(dead_code))]
    Warning = 4,
    Info = 6,
}

struct Message {
    at_ns: Option<u64>,
    severity: Severity,
    kind: &'static str,
    text: String,
}

/// Messages that wait.
#[derive(Default)]
pub struct Log {
    is_on: bool,
    waiting: VecDeque<Message>,
    lost: u64,
    /// A random number for the target, so that another log has another one.
    era: u32,
}

/// A log that several elements write to.
pub type Shared = Rc<RefCell<Log>>;

impl Log {
    /// A number that changes with the target, 0 without one.
    pub fn era(&self) -> u32 {
        if self.is_on { self.era } else { 0 }
    }

    /// True if a message would not be lost.
    pub fn has_place(&self) -> bool {
        self.waiting.len() < MAX && has_room(MESSAGE_ROOM)
    }

    /// Adds a message of a kind, which has the time `at_ns`, or that at which it is sent. It is lost if it has no place.
    pub fn write(
        &mut self,
        at_ns: Option<u64>,
        severity: Severity,
        kind: &'static str,
        text: &dyn Display,
    ) {
        if !self.is_on {
            return;
        }
        if !self.has_place() {
            self.lost += 1;
            return;
        }
        let text = text.to_string();
        self.waiting.push_back(Message {
            at_ns,
            severity,
            kind,
            text,
        });
    }
}

/// The log of the element of this name.
///
/// # Errors
/// There is no such element.
pub fn log_of(ctx: &mut Context<'_>, name: &str) -> Result<Shared, String> {
    let found = ctx.peer(name, |element| {
        let syslog = element.as_any().downcast_ref::<Syslog>();
        syslog.map(|syslog| syslog.log.clone())
    });
    let missing = || format!("LOG: \"{}\" is not a Syslog", name.shown());
    found.flatten().ok_or_else(missing)
}

/// Where messages go; nowhere without an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Target {
    address: Ipv4Addr,
    port: u16,
}

const NOWHERE: Target = Target {
    address: Ipv4Addr::UNSPECIFIED,
    port: PORT,
};

impl FromArg for Target {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let (address, port) = match words.as_slice() {
            [] => return Ok(NOWHERE),
            [address] => (address, PORT),
            [address, port] => (address, u16::from_arg(port, at)?),
            _ => return Err(expected("ADDRESS [PORT]", text)),
        };
        let address = Ipv4Addr::from_arg(address, at)?;
        if address.is_multicast() || address.is_broadcast() || address.is_loopback() {
            return Err(format!("{address} is not the address of a host"));
        }
        match port {
            0 => Err("port 0, expected 1 to 65535".into()),
            port => Ok(Self { address, port }),
        }
    }
}

impl Target {
    fn is_set(self) -> bool {
        !self.address.is_unspecified()
    }
}

/// Builds the element.
pub fn build(a: &mut Args<'_>) -> Built {
    let (source, name) = (a.need("SRC"), a.need::<String>("NAME"));
    let rate = a.or("RATE", 100u32);
    let (name, rate) = (name?, rate?);
    let is_name = (1..=48).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
    if !is_name {
        a.error(
            "NAME",
            expected("1 to 48 letters and signs without spaces", &name),
        );
        return None;
    }
    if rate == 0 {
        a.error("RATE", "0 messages, the least is 1");
        return None;
    }
    Some(Box::new(Syslog {
        source: source?,
        name,
        per_tick: rate.div_ceil(TICKS_PER_S),
        target: NOWHERE,
        log: Shared::default(),
        id: 0,
        sent: 0,
    }))
}

/// The element.
pub struct Syslog {
    source: Ipv4Addr,
    name: String,
    per_tick: u32,
    target: Target,
    log: Shared,
    id: u16,
    sent: u64,
}

/// Its handlers.
pub const HANDLERS: &[Handler<Syslog>; 4] = &[
    read_write(
        "target",
        |me: &mut Syslog, _| match me.target.is_set() {
            true => text(format!("{} {}", me.target.address, me.target.port)),
            false => text(""),
        },
        set!(|me: &mut Syslog, target, ctx| me.set_target(target, ctx)),
    ),
    read("sent", |me, _| text(me.sent)),
    read("waiting", |me, _| text(me.log.borrow().waiting.len())),
    read("lost", |me, _| text(me.log.borrow().lost)),
];

impl Syslog {
    fn set_target(&mut self, target: Target, ctx: &mut Context<'_>) {
        let mut log = self.log.borrow_mut();
        if target != self.target {
            log.era = (ctx.random() >> 32) as u32 | 1;
        }
        self.target = target;
        log.is_on = target.is_set();
        match log.is_on {
            true => ctx.set_timer(ctx.now_ns() + TICK_NS),
            false => log.waiting.clear(),
        }
    }

    fn line(&self, message: &Message, now_ns: u64) -> String {
        let priority = FACILITY * 8 + message.severity as u8;
        let (time, kind) = (Time(message.at_ns.unwrap_or(now_ns)), message.kind);
        let (source, name, text) = (self.source, &self.name, message.text.trim_end());
        format!("<{priority}>1 {time}Z {source} {name} - {kind} - {text}")
    }

    fn packet(&mut self, ctx: &mut Context<'_>, message: &Message) -> Option<Packet> {
        let line = self.line(message, ctx.now_ns());
        if line.len() > MAX_BYTES {
            return None;
        }
        let mut packet = ctx.pool().packet_from(line.as_bytes())?;
        if !packet.push(udp::HEADER) {
            return None;
        }
        let ports = udp::Repr {
            source: PORT,
            destination: self.target.port,
        };
        ports.emit(packet.data_mut(), self.source, self.target.address);
        let header = ipv4::Repr {
            tos: 0,
            id: self.id,
            fragment: 0,
            ttl: TTL,
            protocol: ipv4::UDP,
            source: self.source,
            destination: self.target.address,
            payload_len: 0,
        };
        self.id = self.id.wrapping_add(1);
        encapsulate(&mut packet, header).then_some(packet)
    }
}

impl Element for Syslog {
    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if !self.target.is_set() {
            return;
        }
        for _ in 0..self.per_tick {
            let Some(message) = self.log.borrow_mut().waiting.pop_front() else {
                break;
            };
            match self.packet(ctx, &message) {
                Some(packet) => {
                    self.sent += 1;
                    ctx.push_one(0, packet);
                }
                None => self.log.borrow_mut().lost += 1,
            }
        }
        ctx.set_timer(ctx.now_ns() + TICK_NS);
    }

    /// The target, the counts and what waits stay.
    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        (self.sent, self.id) = (old.sent, old.id);
        let mut before = old.log.borrow_mut();
        self.log.borrow_mut().lost = before.lost;
        self.log.borrow_mut().waiting = core::mem::take(&mut before.waiting);
        self.set_target(old.target, ctx);
        self.log.borrow_mut().era = before.era;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_place_is_lost_and_counted() {
        let mut log = Log::default();
        log.write(None, Severity::Info, "x", &"off");
        assert_eq!((log.waiting.len(), log.lost), (0, 0));
        log.is_on = true;
        (0..MAX + 3).for_each(|n| log.write(None, Severity::Info, "x", &n));
        assert_eq!((log.waiting.len(), log.lost), (MAX, 3));
    }
}
