// SPDX-License-Identifier: Apache-2.0
//! Alerts as lines of EVE JSON, the newest of them.
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::fmt::{self, Display, Write};

use super::rules::Meta;
use crate::calendar::Time;
use crate::guard::ends::{Ends, address};
use crate::prelude::*;
use crate::syslog::{Severity, Shared};

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
    /// Where they are written, too.
    pub log: Option<Shared>,
}

impl Ring {
    pub fn new(most: usize) -> Self {
        Self {
            alerts: VecDeque::new(),
            most,
            count: 0,
            log: None,
        }
    }

    /// Adds an alert; the first one goes for it.
    pub fn add(&mut self, alert: Alert) {
        self.count += 1;
        if let Some(log) = &self.log {
            let mut log = log.borrow_mut();
            log.write(Some(alert.at_ns), Severity::Warning, "alert", &alert);
        }
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
            "{{\"timestamp\":\"{}+0000\",\"flow_id\":{}",
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
