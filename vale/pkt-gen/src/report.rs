// SPDX-License-Identifier: Apache-2.0
//! Prints rates during a run and totals at its end.
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::arguments::{Arguments, Format, Function};

/// Counts frames; prints the rate once a second to standard error.
pub struct Report {
    function: Function,
    pub packets: u64,
    pub bytes: u64,
    /// First and last frame.
    span: Option<(Instant, Instant)>,
    next_line: Instant,
    packets_at_last_line: u64,
    /// Figures that a function adds to the totals.
    pub extra: Vec<(&'static str, Value)>,
}

impl Report {
    pub fn new(arguments: &Arguments) -> Self {
        let next_line = Instant::now() + Duration::from_secs(1);
        Self {
            function: arguments.function,
            packets: 0,
            bytes: 0,
            span: None,
            next_line,
            packets_at_last_line: 0,
            extra: Vec::new(),
        }
    }

    /// Counts a burst.
    pub fn count(&mut self, packets: u64, bytes: u64) {
        let now = Instant::now();
        self.packets += packets;
        self.bytes += bytes;
        if packets > 0 {
            self.span = Some((self.span.map_or(now, |(first, _)| first), now));
        }
        if now >= self.next_line {
            eprintln!("{:>12} packets/s", self.packets - self.packets_at_last_line);
            self.packets_at_last_line = self.packets;
            self.next_line = now + Duration::from_secs(1);
        }
    }

    /// The time since the last frame, if there is one.
    pub fn silence(&self) -> Option<Duration> {
        self.span.map(|(_, last)| last.elapsed())
    }

    pub fn totals(&self, format: Format) -> String {
        let seconds = self
            .span
            .map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let pps = if seconds > 0.0 {
            self.packets as f64 / seconds
        } else {
            0.0
        };
        let function = format!("{:?}", self.function).to_lowercase();
        if format == Format::Json {
            let mut all = json!({"function": function, "packets": self.packets, "bytes": self.bytes, "seconds": seconds, "pps": pps});
            for (name, value) in &self.extra {
                all[*name] = value.clone();
            }
            return all.to_string();
        }
        let extra: Vec<_> = self
            .extra
            .iter()
            .map(|(name, value)| format!(", {name} {value}"))
            .collect();
        let (packets, bytes) = (self.packets, self.bytes);
        format!(
            "{function}: {packets} packets, {bytes} bytes in {seconds:.3} s, {pps:.0} packets/s{}",
            extra.concat()
        )
    }
}
