// SPDX-License-Identifier: Apache-2.0
//! Port counts, processing codes and flow codes in Click's notation.
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Push, pull, or whatever its neighbors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processing {
    /// Packets are given.
    Push,
    /// Packets are fetched.
    Pull,
    /// Either.
    Agnostic,
}

/// How many ports there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    least: usize,
    most: usize,
}

fn range(code: &str) -> Range {
    let number = |s: &str, absent: usize| s.parse().unwrap_or(absent);
    match code.split_once('-') {
        Some((least, most)) => Range {
            least: number(least, 0),
            most: number(most, usize::MAX),
        },
        None => Range {
            least: number(code, 0),
            most: number(code, 0),
        },
    }
}

/// Numbers of inputs and outputs of an element that uses `used` ports.
///
/// # Errors The side with too many ports (true: outputs), and its limit.
pub fn count(code: &str, used: (usize, usize)) -> Result<(usize, usize), (bool, usize)> {
    let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
    let (i, plus) = (range(inputs), outputs.strip_prefix('='));
    let Some(plus) = plus else {
        let o = range(outputs);
        return Ok((fit(i, used.0, false)?, fit(o, used.1, true)?));
    };
    let more = plus.len();
    let inputs = fit(i, used.0.max(used.1.saturating_sub(more)), false)?;
    Ok((inputs, inputs + more))
}

fn fit(range: Range, used: usize, output: bool) -> Result<usize, (bool, usize)> {
    if used > range.most {
        Err((output, range.most))
    } else {
        Ok(used.max(range.least))
    }
}

/// The processing of each input, or each output.
pub fn processing(code: &str, output: bool, ports: usize) -> Vec<Processing> {
    let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
    let letters = if output { outputs } else { inputs }.as_bytes();
    let at = |port: usize| match letters.get(port).or(letters.last()) {
        Some(b'h') => Processing::Push,
        Some(b'l') => Processing::Pull,
        _ => Processing::Agnostic,
    };
    (0..ports).map(at).collect()
}

/// True if packets can flow from an input to an output.
pub fn flows(code: &str, input: usize, output: usize) -> bool {
    let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
    let (from, to) = (sets(inputs), sets(outputs));
    let at =
        |list: &[String], port: usize| list.get(port).or(list.last()).cloned().unwrap_or_default();
    let (a, b) = (at(&from, input), at(&to, output));
    let meets = |set: &str, other: &str| match set.strip_prefix('^') {
        Some(not) => other.chars().any(|c| !not.contains(c)),
        None => set.chars().any(|c| other.contains(c) && c != '#'),
    };
    (a.contains('#') && b.contains('#') && input == output) || meets(&a, &b)
}

/// The letters of each port: `x`, or several in brackets.
fn sets(code: &str) -> Vec<String> {
    let mut list = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        if let Some((set, behind)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            list.push(set.to_string());
            rest = behind;
        } else {
            list.push(c.to_string());
            rest = &rest[c.len_utf8()..];
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_counts() {
        assert_eq!(count("1/1-2", (1, 1)), Ok((1, 1)));
        assert_eq!(count("1/1-2", (1, 3)), Err((true, 2)));
        assert_eq!(count("-/=", (0, 3)), Ok((3, 3)));
        assert_eq!(count("1/=+", (1, 2)), Ok((1, 2)));
        assert_eq!(count("0/0", (1, 0)), Err((false, 0)));
        assert_eq!(count("1-/1", (7, 1)), Ok((7, 1)));
    }

    #[test]
    fn flow_codes() {
        assert!(flows("x/x", 3, 5));
        assert!(!flows("x/y", 0, 0));
        assert!(flows("#/#", 2, 2) && !flows("#/#", 2, 1));
        assert!(flows("xy/x[xy]", 1, 1) && !flows("xy/x[xy]", 1, 0));
    }
}
