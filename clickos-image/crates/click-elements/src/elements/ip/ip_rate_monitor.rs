// SPDX-License-Identifier: Apache-2.0
//! Measures how much hosts and networks send and get.
//!
//! # Synopsis
//! `IPRateMonitor(TYPE, RATIO, THRESH [, MEMORY, ANNO])`: what is counted a second, TYPE PACKETS or BYTES, is averaged over
//! about two seconds, first for each network `A.*`. Where one sends or gets at least THRESH, the networks `A.B.*` in it are
//! looked at as well, and so on to single hosts; once a second what is within a network below an eighth of THRESH is
//! forgotten. Each packet is counted with the probability RATIO, THRESH is meant as if it were 1. MEMORY limits the memory
//! used, in KiB (at least 100; default 0: the router's limit of table entries). Unless ANNO (default true) is false, packets
//! get the two rates of the smallest network known as annotations, for CompareBlock.
//! # Ports
//! 1-2/1-2, agnostic. Packets at input 0 are counted for their source, those at input 1 for their destination; they leave
//! by the output with that number. Packets need a marked IP header, without one they pass.
//! # Handlers
//! * `look` (read): first, how many times 8 ms have passed since the start or `reset`; then a line for each network: sent, got.
//! * `thresh` (read): THRESH times RATIO. `mem` (read): bytes used. `memmax` (read, write): MEMORY.
//! * `anno_level` (write): `ADDRESS LEVEL SECONDS`: for so long, what ADDRESS is in is divided LEVEL times only (0 to 3).
//! * `reset` (write): forgets everything.
//! # Differences from Click
//! Rates are averages over about two seconds, shown in thousandths. When MEMORY is used up, packets
//! get the rates of the smallest known network. The router's limit of table entries bounds the
//! networks. LLRPC is missing. The unit of `memmax` is KiB (Click shows bytes).
//! # Example
//! `... -> [0] m :: IPRateMonitor(PACKETS, 0.5, 256, 600) -> ...; ... -> [1] m [1] -> ...`
use click_core::text::split_words;
use click_core::{ArgContext, Listing};
use click_wire::ipv4;

use crate::networks::{Amount, NETWORK_BYTES, Networks};
use crate::prelude::*;
use crate::standard::probability::Probability;
use crate::standard::rate_anno::{FORWARD, REVERSE};

pub static ELEMENT: Class = Class {
    name: "IPRateMonitor",
    ports: "1-2/1-2",
    flow: "#/#",
    args: &[
        mandatory("TYPE"),
        mandatory("RATIO"),
        mandatory("THRESH"),
        optional("MEMORY"),
        optional("ANNO"),
    ],
    handlers: &[
        read("look", |me: &mut IPRateMonitor, view| me.look_text(view)),
        read("thresh", |me, _| text(me.networks.thresh_milli / 1000)),
        read("mem", |me, _| text(me.networks.known() * NETWORK_BYTES)),
        read_write(
            "memmax",
            |me, _| text(me.memory_kib),
            set!(|me, kib, ctx| {
                me.memory_kib = kib;
                me.networks.limit(capacity(kib, me.most), ctx.now_ns());
            }),
        ),
        write(
            "anno_level",
            set!(|me, hold: Hold, ctx| {
                let until_ns = ctx.now_ns() + u64::from(hold.seconds) * SECOND_NS;
                let address = hold.address.octets();
                me.networks.keep_whole(address, hold.level, until_ns);
            }),
        ),
        command(
            "reset",
            run!(|me, ctx| {
                me.networks.clear();
                me.reset_ns = ctx.now_ns();
            }),
        ),
    ],
    build: |a| {
        let (kind, ratio) = (a.need("TYPE"), a.need::<Probability>("RATIO"));
        let (thresh, annotates) = (a.need::<u32>("THRESH"), a.or("ANNO", true));
        let memory = a.or("MEMORY", 0);
        let (kind, ratio, memory_kib) = (kind?, ratio?, memory?);
        let most = a.environment().limits.table_entries;
        Some(Box::new(IPRateMonitor {
            kind,
            ratio,
            annotates: annotates?,
            memory_kib,
            most,
            networks: Networks::new(
                (f64::from(thresh?) * 1000.0 * ratio.0) as u64,
                capacity(memory_kib, most),
            ),
            reset_ns: 0,
            folded_ns: 0,
        }))
    },
    ..Class::DEFAULT
};

/// The unit that the element counts.
enum Kind {
    Packets,
    Bytes,
}

impl FromArg for Kind {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        match text.to_ascii_uppercase().as_str() {
            "PACKETS" => Ok(Self::Packets),
            "BYTES" => Ok(Self::Bytes),
            _ => Err(format!(
                "expected PACKETS or BYTES, got \"{}\"",
                text.shown()
            )),
        }
    }
}

impl Kind {
    fn cost(&self, header: &ipv4::View<&[u8; ipv4::HEADER]>) -> u64 {
        match self {
            Self::Packets => 1,
            Self::Bytes => header.total_len() as u64,
        }
    }
}

/// Below this memory cannot be limited: all networks of the first level find room in it.
const MIN_KIB: usize = 100;

/// Networks that fit into that much memory, if that is limited.
fn capacity(memory_kib: usize, most: usize) -> usize {
    match memory_kib {
        0 => most,
        kib => most.min(kib.max(MIN_KIB).saturating_mul(1024) / NETWORK_BYTES),
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// The unit of time of `look`.
const TICK_NS: u64 = 8_000_000;

/// `ADDRESS LEVEL SECONDS`.
struct Hold {
    address: Ipv4Addr,
    level: usize,
    seconds: u32,
}

impl FromArg for Hold {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(text);
        let [address, level, seconds] = words.as_slice() else {
            let got = text.shown();
            return Err(format!("expected ADDRESS LEVEL SECONDS, got \"{got}\""));
        };
        let hold = Self {
            address: Ipv4Addr::from_arg(address, at)?,
            level: usize::from_arg(level, at)?,
            seconds: u32::from_arg(seconds, at)?,
        };
        if hold.level > 3 {
            return Err(format!("LEVEL: {level} is out of range, the most is 3"));
        }
        if hold.seconds == 0 {
            return Err("SECONDS: 0 is out of range, the least is 1".into());
        }
        Ok(hold)
    }
}

struct IPRateMonitor {
    kind: Kind,
    ratio: Probability,
    annotates: bool,
    memory_kib: usize,
    /// Networks that may be known where memory is not limited.
    most: usize,
    networks: Networks,
    reset_ns: u64,
    folded_ns: u64,
}

impl IPRateMonitor {
    fn look_at(&mut self, ctx: &mut Context<'_>, port: usize, batch: &mut Batch) {
        self.fold_sometimes(ctx.now_ns());
        for packet in batch.iter_mut() {
            self.count(ctx, port, packet);
        }
    }

    fn count(&mut self, ctx: &mut Context<'_>, port: usize, packet: &mut Packet) {
        let counts = f64::from((ctx.random_u32() >> 5) & 0xffff) <= self.ratio.0 * 65_536.0;
        let Some(bytes) = packet
            .network()
            .and_then(<[u8]>::first_chunk::<{ ipv4::HEADER }>)
        else {
            return;
        };
        let header = ipv4::View::new_unchecked(bytes);
        let address = match port {
            0 => header.source(),
            _ => header.destination(),
        };
        let amount = Amount {
            value: if counts { self.kind.cost(&header) } else { 0 },
            direction: port,
            now_ns: ctx.now_ns(),
        };
        let rates = self.networks.add(address.octets(), &amount);
        if let Some([sent, got]) = rates.filter(|_| self.annotates) {
            FORWARD.put(packet, sent / 1000);
            REVERSE.put(packet, got / 1000);
        }
    }

    fn fold_sometimes(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.folded_ns) >= SECOND_NS {
            self.folded_ns = now_ns;
            let little = self.networks.thresh_milli / 8;
            self.networks.fold(little, now_ns);
        }
    }
}

impl IPRateMonitor {
    fn look_text(&self, view: &View<'_>) -> Text {
        let ticks = view.now_ns().saturating_sub(self.reset_ns) / TICK_NS;
        let mut text = Listing::new(&view.arg_context().environment.limits);
        text.add(format_args!("{ticks}\n"));
        self.networks.look(&mut text, view.now_ns());
        Ok(text.finish())
    }
}

impl Element for IPRateMonitor {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        (self.reset_ns, self.folded_ns) = (ctx.now_ns(), ctx.now_ns());
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, port: usize, mut batch: Batch) {
        self.look_at(ctx, port, &mut batch);
        ctx.push(port, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(port, max);
        self.look_at(ctx, port, &mut batch);
        batch
    }
}
