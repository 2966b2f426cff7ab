// SPDX-License-Identifier: Apache-2.0
//! What a rule looks for: texts with their places, and regular expressions.
use super::text::{content_bytes, fault, number, quoted};
use crate::inspect::pcre::Pcre;
use crate::prelude::*;

/// Bytes of a content.
const LONGEST: usize = 255;
/// Contents and regular expressions of a rule.
const MAX: usize = 16;
/// The largest place or distance.
const FARTHEST: u32 = 65_535;

/// A text, and where it may stand.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// In lower case, if case does not count.
    pub bytes: Vec<u8>,
    pub is_negated: bool,
    pub no_case: bool,
    /// The prefilter looks for this one.
    pub is_fast: bool,
    /// From the start of the data.
    pub offset: Option<u32>,
    pub depth: Option<u32>,
    /// From the end of the text before.
    pub distance: Option<i32>,
    pub within: Option<u32>,
}

impl Content {
    /// True if its place counts from the text before.
    pub fn is_relative(&self) -> bool {
        self.distance.is_some() || self.within.is_some()
    }

    /// True if its place counts from the start of the data.
    pub fn is_placed(&self) -> bool {
        self.offset.is_some() || self.depth.is_some()
    }
}

/// A text or a regular expression.
#[derive(Debug)]
pub enum Part {
    Content(Content),
    Pcre(Box<Pcre>),
}

impl Part {
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Content(content) => Some(content),
            Self::Pcre(_) => None,
        }
    }
}

/// Adds the option `content` or `pcre`.
pub fn add(parts: &mut Vec<Part>, keyword: &str, value: &str) -> Result<(), String> {
    if parts.len() == MAX {
        return Err(format!(
            "{keyword}: {} in a rule, the limit is {MAX}",
            MAX + 1
        ));
    }
    let (is_negated, text) = quoted(keyword, value)?;
    if keyword == "pcre" {
        let pcre = Pcre::of(text, is_negated).map_err(|reason| fault(keyword, value, &reason))?;
        parts.push(Part::Pcre(Box::new(pcre)));
        return Ok(());
    }
    let bytes = content_bytes(text).map_err(|reason| fault(keyword, value, reason))?;
    if !(1..=LONGEST).contains(&bytes.len()) {
        let length = bytes.len();
        return Err(format!(
            "{keyword}: {length} bytes, the limit is {LONGEST}, and one at least"
        ));
    }
    parts.push(Part::Content(Content {
        bytes,
        is_negated,
        ..Content::default()
    }));
    Ok(())
}

/// Applies an option to the content before it; false if it is another one.
pub fn modify(parts: &mut [Part], keyword: &str, value: &str) -> Result<bool, String> {
    let known = [
        "nocase",
        "rawbytes",
        "fast_pattern",
        "startswith",
        "offset",
        "depth",
        "distance",
        "within",
    ];
    if !known.contains(&keyword) {
        return Ok(false);
    }
    let Some(Part::Content(content)) = parts.last_mut() else {
        return Err(format!("{keyword}: expected a content in front of it"));
    };
    let far = || number(keyword, value, FARTHEST);
    match keyword {
        "nocase" => content.no_case = true,
        "fast_pattern" => content.is_fast = true,
        "startswith" => {
            content.offset = Some(0);
            content.depth = u32::try_from(content.bytes.len()).ok();
        }
        "offset" => content.offset = Some(far()?),
        "depth" => content.depth = Some(far()?),
        "within" => content.within = Some(far()?),
        "distance" => content.distance = Some(signed(keyword, value)?),
        _ => {}
    }
    Ok(true)
}

fn signed(keyword: &str, value: &str) -> Result<i32, String> {
    let (sign, digits) = value
        .strip_prefix('-')
        .map_or((1, value), |digits| (-1, digits));
    let size = number(keyword, digits, FARTHEST)?;
    Ok(sign * i32::try_from(size).unwrap_or(i32::MAX))
}

/// Checks the contents of a whole rule, and makes them ready.
pub fn finish(parts: &mut [Part]) -> Result<(), String> {
    for part in parts.iter_mut() {
        if let Part::Content(Content {
            bytes,
            no_case: true,
            ..
        }) = part
        {
            bytes.make_ascii_lowercase();
        }
    }
    check(parts)
}

fn check(parts: &[Part]) -> Result<(), String> {
    for (at, part) in parts.iter().enumerate() {
        let is_behind_pcre = at > 0 && matches!(parts[at - 1], Part::Pcre(_));
        match part {
            Part::Content(content) => check_content(content, is_behind_pcre)?,
            Part::Pcre(pcre) if pcre.is_relative && is_behind_pcre => {
                return Err("pcre: R counts from a content in front of it".into());
            }
            Part::Pcre(_) => {}
        }
    }
    let mut contents = parts.iter().filter_map(Part::content);
    if !parts.is_empty() && contents.all(|content| content.is_negated) {
        return Err("content: at least one without ! is needed".into());
    }
    Ok(())
}

fn check_content(content: &Content, is_behind_pcre: bool) -> Result<(), String> {
    let length = content.bytes.len();
    if content.is_relative() && content.is_placed() {
        return Err("content: distance and within do not go with offset and depth".into());
    }
    if content.is_relative() && is_behind_pcre {
        return Err("distance: counts from a content, and a pcre is in front of it".into());
    }
    for (keyword, room) in [("depth", content.depth), ("within", content.within)] {
        if let Some(room) = room.filter(|room| (*room as usize) < length) {
            return Err(format!(
                "{keyword}: {room}, and the content has {length} bytes"
            ));
        }
    }
    if content.is_fast && content.is_negated {
        return Err("fast_pattern: not with a content with !".into());
    }
    Ok(())
}
