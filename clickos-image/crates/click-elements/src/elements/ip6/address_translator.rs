// SPDX-License-Identifier: Apache-2.0
//! Replaces IPv6 addresses and ports of hosts behind it.
//!
//! # Synopsis
//! `AddressTranslator(COUNT [, PORTS, MAPPING, ...], DYNAMIC [, DYNAMIC_PORTS, INWARD, MAPPED, ...])`: first come COUNT fixed
//! mappings, unless COUNT is 0. Each MAPPING is `INNER MAPPED`, both IPv6 addresses, or where the boolean PORTS is true
//! `INNER PORT MAPPED PORT`. If the boolean DYNAMIC is true, further mappings are made for unknown senders of packets at
//! input 0 or, where INWARD is true, for unknown destinations of packets at input 1. DYNAMIC_PORTS says with what: if it is
//! false, each host gets one of the addresses MAPPED; if it is true, MAPPED is `ADDRESS FIRST LAST` and each flow gets a
//! port of that address. Where no address or port is left, one of those that were silent for five minutes is taken.
//! # Ports
//! 2/2, agnostic. Packets begin with their IPv6 header. Those from inside come in by input 0, get their source replaced, and
//! leave by output 0; those for them come in by input 1, get their destination replaced, and leave by output 1. TCP, UDP
//! and echo messages of ICMPv6, whose identifier takes the place of a port, are translated, and errors about them;
//! everything else, and what has no mapping, is dropped.
//! # Handlers
//! * `size` (read): mappings made for packets. `drops` (read): packets dropped.
//! # Differences from Click
//! Fixed mappings and dynamic ports work together. The element translates back fixed ports and
//! ports given to destinations (INWARD). Identifiers of ICMPv6 echo messages are ports. An error
//! goes to the sender of the packet it quotes, which is translated too; Click replaces only its own
//! address. Other ICMPv6 messages and further arguments are refused. Checksums are updated, so
//! wrong ones remain wrong. An address or port that was silent for five minutes may be reused.
//! # Example
//! `at :: AddressTranslator(1, 0, ::ffff:0.0.0.2 ::1.0.0.1, 1, 1, 0, ::ffff:18.26.4.116 1300 1310);`
use click_core::text::split_words;

use crate::ip6::Address;
use crate::ip6::bindings::{At, Bindings, Detail, Dynamic, Pool};
use crate::ip6::naming::{End, Endpoint, rename};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AddressTranslator",
    ports: "2/2",
    flow: "#/#",
    args: &[mandatory("COUNT"), rest("MAPPING")],
    handlers: &[
        read("size", |me: &mut AddressTranslator, _| {
            text(me.dynamic.as_ref().map_or(0, Dynamic::len))
        }),
        read("drops", |me, _| text(me.drops)),
    ],
    build: |a| {
        let count = a.need("COUNT")?;
        let texts = a.rest().to_vec();
        let mut list = List {
            args: a,
            texts: texts.iter(),
        };
        let (fixed, dynamic) = (list.fixed(count)?, list.dynamic()?);
        list.end()?;
        Some(Box::new(AddressTranslator {
            fixed,
            dynamic,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

/// The arguments after the first one.
struct List<'a, 'b, 'c> {
    args: &'a mut Args<'b>,
    texts: core::slice::Iter<'c, String>,
}

impl List<'_, '_, '_> {
    fn error(&mut self, message: impl ToString) {
        self.args.error("MAPPING", message);
    }

    fn text(&mut self, what: &str) -> Option<String> {
        let text = self.texts.next().cloned();
        if text.is_none() {
            self.error(format!("{what} is missing"));
        }
        text
    }

    fn flag(&mut self, what: &str) -> Option<bool> {
        let text = self.text(what)?;
        self.args.parse("MAPPING", &text)
    }

    /// The words of an argument, which have to be as many as those of `form`.
    fn words<const N: usize>(&mut self, form: &str) -> Option<[String; N]> {
        let text = self.text(form)?;
        let words = split_words(&text).try_into().ok();
        if words.is_none() {
            self.error(format!("expected {form}, got \"{}\"", text.shown()));
        }
        words
    }

    fn endpoint(&mut self, address: &str, port: &str) -> Option<Endpoint> {
        let address = self.args.parse("MAPPING", address);
        let port = self.args.parse("MAPPING", port);
        Some(Endpoint {
            address: address?,
            port: port?,
        })
    }

    fn fixed(&mut self, count: usize) -> Option<Bindings> {
        let ports = count > 0 && self.flag("PORTS")?;
        let detail = if ports { Detail::Port } else { Detail::Address };
        let mut bindings = Bindings::new(detail);
        for _ in 0..count {
            let [inner, inner_port, mapped, mapped_port] = match ports {
                true => self.words("INNER PORT MAPPED PORT")?,
                false => {
                    let [inner, mapped] = self.words("INNER MAPPED")?;
                    [inner, "0".into(), mapped, "0".into()]
                }
            };
            let inner = self.endpoint(&inner, &inner_port);
            bindings.fix(inner?, self.endpoint(&mapped, &mapped_port)?);
        }
        Some(bindings)
    }

    fn dynamic(&mut self) -> Option<Option<Dynamic>> {
        if !self.flag("DYNAMIC")? {
            return Some(None);
        }
        let ports = self.flag("DYNAMIC_PORTS")?;
        let grows = match self.flag("INWARD")? {
            true => End::Destination,
            false => End::Source,
        };
        let pool = if ports {
            self.ports()
        } else {
            self.addresses()
        };
        Some(Some(Dynamic::new(pool?, grows)))
    }

    fn addresses(&mut self) -> Option<Pool> {
        let texts = self.texts.by_ref();
        let addresses = texts.map(|text| self.args.parse::<Address>("MAPPING", text));
        Some(Pool::Addresses(addresses.collect::<Option<_>>()?))
    }

    fn ports(&mut self) -> Option<Pool> {
        let [address, first, last] = self.words("ADDRESS FIRST LAST")?;
        let first = self.endpoint(&address, &first)?;
        let last: u16 = self.args.parse("MAPPING", &last)?;
        let most = self.args.environment().limits.flows;
        let count = (usize::from(last) + 1).saturating_sub(first.port.into());
        if !(1..=most).contains(&count) {
            self.error(format!("{count} ports are out of range, it is 1 to {most}"));
            return None;
        }
        Some(Pool::Ports(first, count))
    }

    /// Complains about arguments that are left.
    fn end(&mut self) -> Option<()> {
        let left = self.texts.len();
        if left > 0 {
            self.error(format!("{left} arguments too many"));
        }
        (left == 0).then_some(())
    }
}

struct AddressTranslator {
    fixed: Bindings,
    dynamic: Option<Dynamic>,
    drops: u64,
}

impl AddressTranslator {
    fn translate(&mut self, ctx: &Context<'_>, port: usize, batch: &mut Batch) {
        let end = match port {
            0 => End::Source,
            _ => End::Destination,
        };
        let mut names = At {
            fixed: &mut self.fixed,
            dynamic: self.dynamic.as_mut(),
            now_ns: ctx.now_ns(),
        };
        let before = batch.len();
        batch.uniqueify();
        batch.retain_mut(|packet| rename(packet.data_mut(), end, &mut names));
        self.drops += (before - batch.len()) as u64;
    }
}

impl Element for AddressTranslator {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        self.translate(ctx, port, &mut batch);
        ctx.push(port, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(port, max);
        self.translate(ctx, port, &mut batch);
        batch
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        self.drops = old.drops;
        let (Some(new), Some(made)) = (&self.dynamic, &old.dynamic) else {
            return;
        };
        if new.is_like(made) {
            self.dynamic = old.dynamic.take();
        }
    }
}
