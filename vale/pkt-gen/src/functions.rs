// SPDX-License-Identifier: Apache-2.0
//! The functions of `-f`: tx, rx, ping, pong.
use std::time::{Duration, Instant};

use serde_json::json;

use crate::arguments::Arguments;
use crate::frame::{Protocol, build, build_ping, ping_number, readdress, turn_around};
use crate::link::Link;
use crate::pcap;
use crate::report::Report;

const SLEEP: Duration = Duration::from_millis(100);
const PING_WAIT: Duration = Duration::from_secs(1);
const PING_RATE: u64 = 10;

/// Paces to a rate; 0 is no limit.
struct Pacer {
    rate: u64,
    begin: Instant,
}

impl Pacer {
    fn new(rate: u64) -> Self {
        Self {
            rate,
            begin: Instant::now(),
        }
    }

    /// Returns the part of `wanted` frames to send now, after `sent` frames; 0 after a short sleep.
    fn grant(&self, sent: u64, wanted: u64) -> u64 {
        if self.rate == 0 {
            return wanted;
        }
        let due = (self.begin.elapsed().as_secs_f64() * self.rate as f64) as u64 + 1;
        if due <= sent {
            let ahead = (sent + 1 - due) as f64 / self.rate as f64;
            std::thread::sleep(Duration::from_secs_f64(ahead).min(SLEEP));
        }
        due.saturating_sub(sent).min(wanted)
    }
}

/// Sends one frame over and over, or the frames of a pcap.
pub fn tx(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let mut frames = match &arguments.pcap {
        None => vec![build(arguments, Protocol::Udp, 0)?],
        Some(path) => pcap::read(path)?,
    };
    let once = if arguments.pcap.is_some() {
        frames.len() as u64
    } else {
        u64::MAX
    };
    let count = if arguments.count > 0 {
        arguments.count
    } else {
        once
    };
    frames
        .iter_mut()
        .for_each(|frame| readdress(frame, arguments));
    let mut frames = frames.iter().cycle();
    let (mut link, pace) = (Link::attach(arguments)?, Pacer::new(arguments.rate));
    while report.packets < count && !link.is_over() {
        let wanted = u64::from(arguments.burst).min(count - report.packets);
        let (mut sent, mut bytes) = (0, 0);
        for frame in frames
            .by_ref()
            .take(pace.grant(report.packets, wanted) as usize)
        {
            if !link.send(frame)? {
                break;
            }
            sent += 1;
            bytes += frame.len() as u64;
        }
        link.publish()?;
        report.count(sent, bytes);
    }
    link.drain()
}

/// Receives and counts.
pub fn rx(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let mut link = Link::attach(arguments)?;
    let idle = arguments.idle(None);
    let is_enough = |report: &Report| arguments.count > 0 && report.packets >= arguments.count;
    let is_silent = |report: &Report| {
        idle.zip(report.silence())
            .is_some_and(|(most, is)| is >= most)
    };
    while !is_enough(report) && !is_silent(report) && !link.is_over() {
        let (mut packets, mut bytes) = (0, 0);
        while packets < u64::from(arguments.burst) {
            let Some(frame) = link.receive() else { break };
            packets += 1;
            bytes += frame.len() as u64;
        }
        report.count(packets, bytes);
        if packets == 0 {
            link.sleep(idle.unwrap_or(SLEEP))?;
        } else {
            link.publish()?;
        }
    }
    Ok(())
}

/// Sends each frame back.
pub fn pong(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let mut link = Link::attach(arguments)?;
    let mut lost = 0u64;
    while (arguments.count == 0 || report.packets < arguments.count) && !link.is_over() {
        let (mut packets, mut bytes) = (0, 0);
        while packets < u64::from(arguments.burst) {
            let Some((length, sent)) = link.echo(turn_around) else {
                break;
            };
            packets += 1;
            bytes += length as u64;
            lost += u64::from(!sent);
        }
        report.count(packets, bytes);
        if packets == 0 {
            link.sleep(SLEEP)?
        } else {
            link.publish()?
        }
    }
    report.extra.push(("not_sent", json!(lost)));
    link.drain()
}

/// Measures the round trip time.
pub fn ping(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let mut link = Link::attach(arguments)?;
    let rate = if arguments.rate > 0 {
        arguments.rate
    } else {
        PING_RATE
    };
    let wait = arguments.idle(Some(PING_WAIT)).unwrap_or(PING_WAIT);
    let (pace, mut times) = (Pacer::new(rate), Vec::new());
    while (arguments.count == 0 || report.packets < arguments.count) && !link.is_over() {
        if pace.grant(report.packets, 1) == 0 {
            continue;
        }
        let frame = build_ping(arguments, report.packets)?;
        let begin = Instant::now();
        link.send(&frame)?;
        link.publish()?;
        if await_echo(&mut link, report.packets, begin + wait)? && times.len() < 1_000_000 {
            times.push(begin.elapsed().as_nanos() as u64);
        }
        report.count(1, frame.len() as u64);
    }
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get(times.len().saturating_sub(1) * part / 100)
            .map(|ns| *ns as f64 / 1000.0)
    };
    report.extra.push(("received", json!(times.len())));
    report.extra.push((
        "rtt_us",
        json!({"min": at(0), "p50": at(50), "p99": at(99), "max": at(100)}),
    ));
    Ok(())
}

fn await_echo(link: &mut Link, number: u64, end: Instant) -> Result<bool, String> {
    loop {
        while let Some(frame) = link.receive() {
            if ping_number(frame) == Some(number) {
                link.publish()?;
                return Ok(true);
            }
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || link.is_over() {
            return Ok(false);
        }
        link.sleep(left)?;
    }
}
