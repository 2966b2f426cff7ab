// SPDX-License-Identifier: Apache-2.0
//! Alerts as lines of EVE JSON, the newest of them.
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::fmt::{self, Display, Write};

use super::rules::Meta;
use crate::guard::ends::{Ends, address};
use crate::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;
/// Whose alert it is: rules, and the inspection itself.
pub const OF_RULES: u8 = 1;
pub const OF_ENGINE: u8 = 2;
/// Bits of a number that every reader of JSON knows exactly.
const EXACT: u64 = (1 << 53) - 1;

/// An alert.
pub struct Alert {
    pub at_ns: u64,
    pub ends: Ends,
    pub generator: u8,
    pub is_blocked: bool,
    pub meta: Rc<Meta>,
}

/// The newest alerts.
pub struct Ring {
    alerts: VecDeque<Alert>,
    most: usize,
    pub count: u64,
}

impl Ring {
    pub fn new(most: usize) -> Self {
        Self {
            alerts: VecDeque::new(),
            most,
            count: 0,
        }
    }

    /// Adds an alert; the first one goes for it.
    pub fn add(&mut self, alert: Alert) {
        self.count += 1;
        if self.alerts.len() == self.most {
            self.alerts.pop_front();
        }
        self.alerts.push_back(alert);
    }

    /// Alerts that are not there any more.
    pub fn lost(&self) -> u64 {
        self.count - self.alerts.len() as u64
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Alert> {
        self.alerts.iter()
    }

    pub fn clear(&mut self) {
        self.alerts.clear();
        self.count = 0;
    }
}

/// A text within the quotes of JSON.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                ' '..='~' => f.write_char(c)?,
                // a terminal obeys more than the controls of ASCII
                c => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .try_for_each(|unit| write!(f, "\\u{unit:04x}"))?,
            }
        }
        Ok(())
    }
}

/// A time as EVE has it, in UTC.
struct Time(u64);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / SECOND_NS, self.0 % SECOND_NS / 1000);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+0000"
        )
    }
}

/// The date of a day since 1970: a year begins in March, so that a leap day is its last one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, date)
}

fn protocol(number: u8) -> String {
    match number {
        1 => "ICMP".into(),
        6 => "TCP".into(),
        17 => "UDP".into(),
        58 => "IPv6-ICMP".into(),
        _ => format!("{number:03}"),
    }
}

impl Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ends, meta) = (&self.ends, &self.meta);
        let forward = ends.hash(&[3, 5, 7, 11]) ^ ends.reverse().hash(&[3, 5, 7, 11]);
        let action = if self.is_blocked {
            "blocked"
        } else {
            "allowed"
        };
        write!(
            f,
            "{{\"timestamp\":\"{}\",\"flow_id\":{}",
            Time(self.at_ns),
            forward & EXACT
        )?;
        write!(
            f,
            ",\"event_type\":\"alert\",\"src_ip\":\"{}\",\"src_port\":{}",
            address(ends.source),
            ends.sport
        )?;
        write!(
            f,
            ",\"dest_ip\":\"{}\",\"dest_port\":{}",
            address(ends.destination),
            ends.dport
        )?;
        write!(
            f,
            ",\"proto\":\"{}\",\"alert\":{{\"action\":\"{action}\"",
            protocol(ends.protocol)
        )?;
        write!(
            f,
            ",\"gid\":{},\"signature_id\":{},\"rev\":{}",
            self.generator, meta.sid, meta.rev
        )?;
        write!(
            f,
            ",\"signature\":\"{}\",\"category\":\"{}\"",
            Quoted(&meta.message),
            Quoted(&meta.class)
        )?;
        writeln!(f, ",\"severity\":{}}}}}", meta.priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_a_calendar() {
        let text = |seconds: u64| Time(seconds * SECOND_NS + 123_456_789).to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.123456+0000");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00.123456+0000");
        assert_eq!(text(1_709_251_199), "2024-02-29T23:59:59.123456+0000");
        assert_eq!(text(4_107_542_400), "2100-03-01T00:00:00.123456+0000");
    }

    #[test]
    fn the_newest_alerts_stay_and_texts_are_quoted() {
        let alert = |sid| Alert {
            at_ns: 0,
            ends: Ends {
                source: crate::guard::ends::mapped(0x0a00_0001),
                destination: 1,
                sport: 1,
                dport: 2,
                protocol: 17,
            },
            generator: OF_RULES,
            is_blocked: false,
            meta: Rc::new(Meta {
                sid,
                message: "a\"b\\c\n\u{9b}\u{202e}\u{1f600}".into(),
                ..Meta::default()
            }),
        };
        let mut ring = Ring::new(2);
        (1..=3).for_each(|sid| ring.add(alert(sid)));
        assert_eq!((ring.lost(), ring.count), (1, 3));
        let sids: Vec<u32> = ring.iter().map(|alert| alert.meta.sid).collect();
        assert_eq!(sids, [2, 3]);
        let line = alert(7).to_string();
        assert!(
            line.contains(r#""signature":"a\"b\\c\u000a\u009b\u202e\ud83d\ude00""#),
            "{line}"
        );
        assert!(
            line.contains(r#""src_ip":"10.0.0.1","src_port":1,"dest_ip":"::1""#),
            "{line}"
        );
        assert!(line.ends_with("}}\n"));
    }
}
