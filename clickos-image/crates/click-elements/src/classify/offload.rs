// SPDX-License-Identifier: Apache-2.0
//! The part of an IPFilter's decisions that the switch can take (docs/adr/0083-offloaded-rules.md).
use clickos_offload::{Action, IpPattern, MAX_RULES, MAX_TEXT, Range, Rule};

use super::region::{Cover, Region};
use super::values::Values;
use crate::headers::{Axis, Start};
use crate::prelude::*;
use click_core::text::split_args;

/// Rules of one box at most.
const MAX: usize = 8;
const TOS: Axis = Axis {
    start: Start::Ip4,
    at: 1,
    bytes: 1,
};
/// Where IPv4 begins in an Ethernet frame.
const ETHERNET: &str = "14";
/// The arguments of a `CheckIPHeader` behind it that only drops more: what no router forwards, and own sources.
const ROUTED: &str = "ROUTED true";
const BAD_SOURCES: &str = "BADSRC ";

/// A list of rules for the switch: each with the number of the filter's rule that it is a part of.
#[derive(Default)]
pub struct Offloaded {
    pub rules: Vec<(Rule, Option<usize>)>,
    bytes: usize,
    full: bool,
}

impl Offloaded {
    /// The drops of a list that come first and that the switch can express. It leaves all other packets to
    /// the guest: a rule that it cannot express becomes a larger one that passes. If the list judges packets that
    /// were `reassembled`, the switch passes each fragment of a packet that the list passes: it decides by what all
    /// fragments have, and by ports it only drops.
    pub fn of(covers: impl Iterator<Item = (Cover, bool)>, reassembled: bool) -> Self {
        let mut list = Self::default();
        for (n, (mut cover, drops)) in covers.enumerate() {
            cover.boxes.retain_mut(has_ip4);
            let exact = match drops && cover.exact {
                true => cover
                    .boxes
                    .iter()
                    .map(|region| exact(region, reassembled))
                    .collect::<Option<Vec<_>>>(),
                false => None,
            };
            match exact {
                Some(rules) => list.add(Action::Drop, rules.concat(), Some(n)),
                None => {
                    let hulls = cover.boxes.iter().map(|region| hull(region, reassembled));
                    list.add(Action::Pass, hulls.collect(), None);
                }
            }
        }
        // A packet that no rule matches is dropped.
        list.add(Action::Drop, vec![IpPattern::ANY], None);
        let drop = list
            .rules
            .iter()
            .rposition(|(rule, _)| rule.action == Action::Drop);
        list.rules.truncate(drop.map_or(0, |last| last + 1));
        list
    }

    /// Adds all parts of a rule, or none and no later rule.
    fn add(&mut self, action: Action, patterns: Vec<IpPattern>, of: Option<usize>) {
        let rules = patterns.into_iter().map(|ip| Rule {
            ip: Some(ip),
            ..Rule::new(action)
        });
        let rules: Vec<Rule> = rules.collect();
        let bytes: usize = rules.iter().map(|rule| rule.to_string().len() + 1).sum();
        self.full |= self.rules.len() + rules.len() > MAX_RULES || self.bytes + bytes > MAX_TEXT;
        if !self.full {
            self.bytes += bytes;
            // Nothing comes after a rule that leaves all packets to the guest.
            let ends = |rule: &Rule| rule.action == Action::Pass && rule.ip == Some(IpPattern::ANY);
            self.full = rules.iter().any(ends);
            self.rules.extend(rules.into_iter().map(|rule| (rule, of)));
        }
    }
}

/// Leaves of a box what it asks of IPv4; says whether such packets are in it.
fn has_ip4(region: &mut Region) -> bool {
    let is_open = region
        .iter()
        .all(|(axis, values)| !axis.is_ip6() || values.missing);
    region.retain(|(axis, _)| !axis.is_ip6());
    is_open
}

/// The patterns that match what is in a box, and nothing else.
fn exact(region: &Region, reassembled: bool) -> Option<Vec<IpPattern>> {
    let mut patterns = vec![IpPattern::ANY];
    for (axis, values) in region {
        let differs = reassembled && *axis == TOS;
        if differs || axis.is_transport() && values.missing {
            return None;
        }
        let mut next = Vec::new();
        for range in &values.ranges {
            for mut pattern in patterns.iter().copied() {
                set(&mut pattern, *axis, *range)?;
                next.push(pattern);
            }
        }
        patterns = next;
        (patterns.len() <= MAX).then_some(())?;
    }
    let is_clear = |ip: &IpPattern| {
        let has_ports = ip.source_port.is_some() || ip.destination_port.is_some();
        !has_ports || ip.protocol != IpPattern::ANY.protocol
    };
    patterns.iter().all(is_clear).then_some(patterns)
}

/// A pattern that matches all that is in a box.
fn hull(region: &Region, reassembled: bool) -> IpPattern {
    let mut pattern = IpPattern::ANY;
    for (axis, Values { missing, ranges }) in region {
        let ends = ranges.first().zip(ranges.last());
        let differs = reassembled && (axis.is_transport() || *axis == TOS);
        if let (false, Some((first, last))) = (differs || axis.is_transport() && *missing, ends) {
            let _ = set(&mut pattern, *axis, (first.0, last.1));
        }
    }
    if pattern.protocol == IpPattern::ANY.protocol {
        (pattern.source_port, pattern.destination_port) = (None, None);
    }
    pattern
}

/// Bounds a field; none if the switch does not know it.
fn set(pattern: &mut IpPattern, axis: Axis, (first, last): (u32, u32)) -> Option<()> {
    let byte = || {
        Some(Range {
            first: u8::try_from(first).ok()?,
            last: u8::try_from(last).ok()?,
        })
    };
    let port = || {
        Some(Range {
            first: u16::try_from(first).ok()?,
            last: u16::try_from(last).ok()?,
        })
    };
    match axis {
        Axis::SOURCE => pattern.source = Range { first, last },
        Axis::DESTINATION => pattern.destination = Range { first, last },
        Axis::PROTOCOL => pattern.protocol = byte()?,
        TOS => pattern.tos = byte()?,
        Axis::SOURCE_PORT => pattern.source_port = Some(port()?),
        Axis::DESTINATION_PORT => pattern.destination_port = Some(port()?),
        _ => return None,
    }
    Some(())
}

/// The devices whose IPv4 packets all come to this element, unchanged but for their Ethernet header.
#[derive(Default, PartialEq, Eq)]
pub struct Devices {
    pub numbers: Vec<u32>,
    /// The packets of one at least are put together from fragments.
    pub reassembled: bool,
}

/// Finds these devices.
///
/// # Errors
/// It has no error of its own. The text names the element where the way from each device ends.
pub fn devices(ctx: &Context<'_>) -> Result<Devices, String> {
    let (mut devices, mut ends) = (Devices::default(), Vec::new());
    let mut index = 0;
    while let Some((class, config)) = ctx.class_and_config(index) {
        let first = split_args(config).into_iter().next().unwrap_or_default();
        let name = if first.is_empty() { "0" } else { &first };
        if class == "FromDevice" {
            match (leads_here(ctx, index), name.parse()) {
                (Ok(reassembled), Ok(device)) => {
                    devices.numbers.push(device);
                    devices.reassembled |= reassembled;
                }
                (Ok(_), Err(_)) => ends.push(format!("{name} has no number")),
                (Err(other), _) => ends.push(format!("{name} ends at {other}")),
            }
        }
        index += 1;
    }
    match devices.numbers.is_empty() {
        false => Ok(devices),
        true => Err(format!(
            "no device's packets all come here unchanged: {}",
            ends.join(", ")
        )),
    }
}

/// Follows the IPv4 packets from an element; says whether they are reassembled. The error is the element where they
/// may go elsewhere.
fn leads_here(ctx: &Context<'_>, from: usize) -> Result<bool, String> {
    let (mut at, mut output) = (from, 0);
    let (mut stripped, mut marked, mut reassembled) = (false, false, false);
    // No way is longer than the router has elements.
    for _ in 0..ctx.limits().elements {
        let Some((next, input)) = ctx.downstream_of(at, output) else {
            return Err(ctx.name_of(at).into());
        };
        if next == ctx.index() {
            return if marked {
                Ok(reassembled)
            } else {
                Err(ctx.name_of(at).into())
            };
        }
        let (class, config) = ctx.class_and_config(next).unwrap_or_default();
        let config = config.trim();
        let is_offset = config == if stripped { "" } else { ETHERNET };
        output = 0;
        match class {
            "Counter" | "Null" if input == 0 => {}
            "Strip" if config == ETHERNET && !stripped && !marked => stripped = true,
            "CheckIPHeader" | "MarkIPHeader" if is_offset => marked = true,
            "CheckIPHeader" if stripped && only_drops(config) => marked = true,
            "IPReassembler" if marked => reassembled = true,
            "Classifier" if !stripped => match output_of_ipv4(config) {
                Some(found) => output = found,
                None => return Err(ctx.name_of(next).into()),
            },
            _ => return Err(ctx.name_of(next).into()),
        }
        at = next;
    }
    Err(ctx.name_of(at).into())
}

/// True if a `CheckIPHeader` has no arguments but those that drop packets.
fn only_drops(config: &str) -> bool {
    let args = split_args(config);
    args.iter()
        .all(|arg| arg == ROUTED || arg.starts_with(BAD_SOURCES))
}

/// The output of a Classifier that gets all IPv4 packets.
fn output_of_ipv4(config: &str) -> Option<usize> {
    for (output, pattern) in split_args(config).iter().enumerate() {
        match pattern.as_str() {
            "12/0800" | "-" => return Some(output),
            other => {
                let ether_type = other
                    .split(' ')
                    .find_map(|clause| clause.strip_prefix("12/"))?;
                let is_other = ether_type.len() == 4
                    && ether_type.bytes().all(|b| b.is_ascii_hexdigit())
                    && ether_type != "0800";
                is_other.then_some(())?;
            }
        }
    }
    None
}
