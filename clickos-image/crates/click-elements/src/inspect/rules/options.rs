// SPDX-License-Identifier: Apache-2.0
//! The options of a rule.
use alloc::rc::Rc;

use super::content;
use super::set::Names;
use super::text::{fault, number, quoted, shown};
use super::{Meta, Part};
use crate::inspect::threshold::Threshold;
use crate::prelude::*;

/// Options of a rule.
const MAX: usize = 64;
/// Characters of a message or a class.
const LONGEST: usize = 200;

/// When a rule holds, by what is known of its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowUse {
    /// Both sides have sent something, or have not.
    pub established: Option<bool>,
    /// 0 for packets to the server, 1 for those to the client.
    pub way: Option<u8>,
}

/// What a rule does with the bits of a flow, a bit for each name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitUse {
    pub is_set: u64,
    pub is_not_set: u64,
    pub set: u64,
    pub unset: u64,
    /// The rule makes no alert.
    pub no_alert: bool,
}

impl BitUse {
    /// True if a flow with these bits is one that the rule asks for.
    pub fn holds(&self, bits: u64) -> bool {
        bits & self.is_set == self.is_set && bits & self.is_not_set == 0
    }

    /// Rules that change bits are asked before those that need them.
    pub fn order(&self) -> u8 {
        let (changes, needs) = (
            self.set | self.unset != 0,
            self.is_set | self.is_not_set != 0,
        );
        match (changes, needs) {
            (true, false) => 0,
            (true, true) => 1,
            _ => 2,
        }
    }
}

/// All options of a rule.
#[derive(Debug, Default)]
pub struct Options {
    pub flow: FlowUse,
    pub parts: Vec<Part>,
    pub bits: BitUse,
    pub threshold: Option<Threshold>,
    pub meta: Rc<Meta>,
}

impl Options {
    /// Reads options; `names` are the bits of flows.
    pub fn of(options: &[(&str, &str)], names: &mut Names) -> Result<Self, String> {
        if options.len() > MAX {
            return Err(format!("{} options, the limit is {MAX}", options.len()));
        }
        let (mut found, mut meta) = (Self::default(), Meta::default());
        meta.priority = 3;
        for (keyword, value) in options {
            found.add(keyword, value, &mut meta, names)?;
        }
        if meta.sid == 0 {
            return Err("sid: expected a number from 1, got none".into());
        }
        content::finish(&mut found.parts)?;
        found.meta = Rc::new(meta);
        Ok(found)
    }

    fn add(
        &mut self,
        keyword: &str,
        value: &str,
        meta: &mut Meta,
        names: &mut Names,
    ) -> Result<(), String> {
        match keyword {
            "msg" => meta.message = text(keyword, quoted(keyword, value)?.1)?.replace('\\', ""),
            "classtype" => meta.class = text(keyword, value)?,
            "sid" => meta.sid = number(keyword, value, u32::MAX)?,
            "rev" => meta.rev = number(keyword, value, u32::MAX)?,
            "priority" => meta.priority = number(keyword, value, 255)? as u8,
            "reference" | "metadata" => {}
            "content" | "pcre" => content::add(&mut self.parts, keyword, value)?,
            "flow" => self.flow = flow(value)?,
            "flowbits" => bits(&mut self.bits, value, names)?,
            "noalert" => self.bits.no_alert = true,
            "threshold" | "detection_filter" => {
                self.threshold = Some(Threshold::of(keyword, value)?);
            }
            _ if content::modify(&mut self.parts, keyword, value)? => {}
            _ => return Err(format!("{}: this keyword is not taken", shown(keyword))),
        }
        Ok(())
    }
}

fn text(keyword: &str, value: &str) -> Result<String, String> {
    let length = value.len();
    if length > LONGEST {
        return Err(format!("{keyword}: {length} bytes, the limit is {LONGEST}"));
    }
    Ok(value.into())
}

fn flow(value: &str) -> Result<FlowUse, String> {
    let mut found = FlowUse::default();
    for word in value.split(',').map(str::trim) {
        match word {
            "established" => found.established = Some(true),
            "not_established" => found.established = Some(false),
            "to_server" | "from_client" => found.way = Some(0),
            "to_client" | "from_server" => found.way = Some(1),
            "stateless" => {}
            _ => return Err(fault("flow", word, "this word is not taken")),
        }
    }
    Ok(found)
}

fn bits(found: &mut BitUse, value: &str, names: &mut Names) -> Result<(), String> {
    let (verb, name) = value.split_once(',').unwrap_or((value, ""));
    let (verb, name) = (verb.trim(), name.trim());
    if verb == "noalert" && name.is_empty() {
        found.no_alert = true;
        return Ok(());
    }
    let field = match verb {
        "set" => &mut found.set,
        "unset" => &mut found.unset,
        "isset" => &mut found.is_set,
        "isnotset" => &mut found.is_not_set,
        _ => {
            return Err(fault(
                "flowbits",
                verb,
                "expected set, unset, isset, isnotset or noalert",
            ));
        }
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(fault(
            "flowbits",
            name,
            "expected a name of letters, digits, . _ and -",
        ));
    }
    *field |= names.bit(name)?;
    Ok(())
}
