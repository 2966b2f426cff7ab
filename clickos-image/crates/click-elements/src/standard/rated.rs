// SPDX-License-Identifier: Apache-2.0
//! A rate in packets or in bytes with a burst: what `RatedUnqueue` and `RatedSplitter` and their
//! `Bandwidth` variants share.
use crate::prelude::*;
use crate::standard::bandwidth::Bandwidth;
use crate::standard::token_bucket::TokenBucket;
use click_core::class::Arg;

/// The counted unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes of packets.
    Bytes,
}

/// Arguments of the classes that count packets.
pub const PACKET_ARGS: &[Arg] = &[
    mandatory("RATE"),
    keyword("BURST_DURATION"),
    keyword("BURST_SIZE"),
];
/// Arguments of the classes that count bytes.
pub const BYTE_ARGS: &[Arg] = &[
    mandatory("RATE"),
    keyword("BURST_DURATION"),
    keyword("BURST_BYTES"),
];

/// Bytes that must be there before a packet goes, as in Click: more than any packet has.
const BYTE_THRESHOLD: u64 = 131_072;
/// The burst unless it is said: that many nanoseconds of the rate.
const BURST: Span = Span { ns: 20_000_000 };

impl Unit {
    /// Tokens that must be there before a packet goes.
    pub fn threshold(self) -> u64 {
        match self {
            Self::Packets => 1,
            Self::Bytes => BYTE_THRESHOLD,
        }
    }

    /// Tokens a packet takes.
    pub fn cost(self, packet: &Packet) -> u64 {
        match self {
            Self::Packets => 1,
            Self::Bytes => packet.len() as u64,
        }
    }

    /// Reads argument RATE.
    pub fn rate(self, args: &mut Args<'_>) -> Option<u64> {
        match self {
            Self::Packets => args.need("RATE"),
            Self::Bytes => args.need::<Bandwidth>("RATE").map(|b| b.0),
        }
    }

    /// Reads a value for handler `rate`.
    pub fn parse(self, view: &View<'_>, value: &str) -> Result<u64, HandlerError> {
        match self {
            Self::Packets => view.parse(value),
            Self::Bytes => view.parse::<Bandwidth>(value).map(|b| b.0),
        }
    }

    /// A rate as handlers print it.
    pub fn show(self, rate: u64) -> Text {
        match self {
            Self::Packets => text(rate),
            Self::Bytes => text(Bandwidth(rate)),
        }
    }
}

/// How much may pass at once.
#[derive(Clone, Copy)]
enum Burst {
    /// The tokens of the rate in this time.
    Time(Span),
    /// A number of tokens.
    Tokens(u64),
}

/// A rate with a burst.
pub struct Rated {
    pub unit: Unit,
    burst: Burst,
    pub bucket: TokenBucket,
}

impl Rated {
    /// Reads RATE, BURST_DURATION and BURST_SIZE or BURST_BYTES.
    pub fn from_args(args: &mut Args<'_>, unit: Unit) -> Option<Self> {
        let size = match unit {
            Unit::Packets => "BURST_SIZE",
            Unit::Bytes => "BURST_BYTES",
        };
        let rate = unit.rate(args);
        let (time, tokens) = (args.opt("BURST_DURATION"), args.opt(size));
        let burst = match (time?, tokens?) {
            (Some(_), Some(_)) => {
                args.error(size, "expected this or BURST_DURATION, got both");
                return None;
            }
            (None, Some(tokens)) => Burst::Tokens(tokens),
            (time, None) => Burst::Time(time.unwrap_or(BURST)),
        };
        let rate = rate?;
        Some(Self {
            unit,
            burst,
            bucket: TokenBucket::new(rate, capacity(unit, burst, rate)),
        })
    }

    /// Changes the rate, and with it a burst that is a time.
    pub fn set_rate(&mut self, rate: u64) {
        self.bucket
            .assign(rate, capacity(self.unit, self.burst, rate));
    }

    /// Takes over how full another bucket is.
    pub fn take_level(&mut self, old: &Self) {
        self.bucket.take_level(&old.bucket);
    }

    /// True if a packet may pass; then its tokens are taken.
    pub fn admit(&mut self, packet: &Packet) -> bool {
        let may = self.bucket.tokens() >= self.unit.threshold();
        if may {
            self.bucket.remove(self.unit.cost(packet));
        }
        may
    }
}

fn capacity(unit: Unit, burst: Burst, rate: u64) -> u64 {
    let tokens = match burst {
        Burst::Tokens(tokens) => tokens,
        Burst::Time(time) => {
            let tokens = u128::from(rate) * u128::from(time.ns) / 1_000_000_000;
            u64::try_from(tokens).unwrap_or(u64::MAX)
        }
    };
    match unit {
        Unit::Packets => tokens.max(1),
        Unit::Bytes => tokens.saturating_add(BYTE_THRESHOLD),
    }
}
