// SPDX-License-Identifier: Apache-2.0
//! The functions of scripts: arithmetic, comparison, text. They need nothing but their parameter.
use core::cmp::Ordering;

use click_core::text;

use super::format::sprintf;
use crate::decimal;
use crate::prelude::*;

/// A number: an integer as long as it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    /// Parses decimal, hexadecimal and octal integers, and decimal fractions.
    pub fn parse(word: &str) -> Option<Self> {
        let (negative, digits) = word.strip_prefix('-').map_or((false, word), |d| (true, d));
        if let Some(n) = click_core::value::number(digits).and_then(|n| i64::try_from(n).ok()) {
            return Some(Self::Whole(if negative { -n } else { n }));
        }
        let plain = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
        let real = word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().all(plain);
        decimal::parse(word).filter(|_| real).map(Self::Real)
    }

    #[expect(clippy::cast_precision_loss, reason = "that is what a fraction costs")]
    fn real(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Real(r) => r,
        }
    }

    fn show(self) -> String {
        match self {
            Self::Whole(n) => n.to_string(),
            Self::Real(r) => decimal::show(r),
        }
    }
}

fn words(param: &str) -> Vec<String> {
    text::split_words(param)
        .iter()
        .map(|w| text::unquote(w))
        .collect()
}

/// The message about a value for a function.
fn wrong(name: &str, what: &str, value: &str) -> String {
    format!("{name}: {}", expected(what, value))
}

fn numbers(name: &str, param: &str) -> Result<Vec<Number>, String> {
    let parse = |w: &String| Number::parse(w).ok_or_else(|| wrong(name, "a number", w));
    words(param).iter().map(parse).collect()
}

fn booleans(name: &str, param: &str) -> Result<Vec<bool>, String> {
    words(param).iter().map(|w| boolean(name, w)).collect()
}

/// Parses true or false.
pub fn boolean(name: &str, word: &str) -> Result<bool, String> {
    match word {
        "true" | "1" | "yes" | "on" | "t" | "y" => Ok(true),
        "false" | "0" | "no" | "off" | "f" | "n" => Ok(false),
        _ => Err(wrong(name, "true or false", word)),
    }
}

/// A function of its own name and its parameter.
type Function = fn(&str, &str) -> Result<String, String>;

/// All functions, by name.
pub const FUNCTIONS: [(&str, Function); 32] = [
    ("add", |name, param| {
        fold(name, param, i64::checked_add, |a, b| a + b)
    }),
    ("sub", |name, param| {
        fold(name, param, i64::checked_sub, |a, b| a - b)
    }),
    ("mul", |name, param| {
        fold(name, param, i64::checked_mul, |a, b| a * b)
    }),
    ("div", |name, param| {
        fold(name, param, whole_quotient, |a, b| a / b)
    }),
    ("idiv", |_, param| idiv(param)),
    ("min", |name, param| {
        fold(name, param, |a, b| Some(a.min(b)), f64::min)
    }),
    ("max", |name, param| {
        fold(name, param, |a, b| Some(a.max(b)), f64::max)
    }),
    ("mod", remainder),
    ("rem", remainder),
    ("neg", |name, param| {
        one(name, param, i64::checked_neg, |r| -r)
    }),
    ("abs", |name, param| {
        one(
            name,
            param,
            i64::checked_abs,
            |r| if r < 0.0 { -r } else { r },
        )
    }),
    ("eq", |name, param| compare(name, param, Ordering::is_eq)),
    ("ne", |name, param| compare(name, param, Ordering::is_ne)),
    ("lt", |name, param| compare(name, param, Ordering::is_lt)),
    ("gt", |name, param| compare(name, param, Ordering::is_gt)),
    ("le", |name, param| compare(name, param, Ordering::is_le)),
    ("ge", |name, param| compare(name, param, Ordering::is_ge)),
    ("not", |name, param| {
        boolean(name, &text::unquote(param)).map(|b| (!b).to_string())
    }),
    ("and", |name, param| {
        booleans(name, param).map(|b| b.iter().all(|b| *b).to_string())
    }),
    ("or", |name, param| {
        booleans(name, param).map(|b| b.iter().any(|b| *b).to_string())
    }),
    ("nand", |name, param| {
        booleans(name, param).map(|b| (!b.iter().all(|b| *b)).to_string())
    }),
    ("nor", |name, param| {
        booleans(name, param).map(|b| (!b.iter().any(|b| *b)).to_string())
    }),
    ("if", |_, param| choose(param)),
    ("in", |_, param| {
        let words = words(param);
        let found = words
            .split_first()
            .is_some_and(|(a, rest)| rest.contains(a));
        Ok(found.to_string())
    }),
    ("first", |_, param| {
        Ok(text::split_words(param)
            .into_iter()
            .next()
            .unwrap_or_default())
    }),
    ("length", |_, param| Ok(param.len().to_string())),
    ("unquote", |_, param| Ok(text::unquote(param))),
    ("sprintf", |_, param| sprintf(&words(param))),
    ("htons", |name, param| {
        swapped(name, param, u64::from(u16::MAX))
    }),
    ("ntohs", |name, param| {
        swapped(name, param, u64::from(u16::MAX))
    }),
    ("htonl", |name, param| {
        swapped(name, param, u64::from(u32::MAX))
    }),
    ("ntohl", |name, param| {
        swapped(name, param, u64::from(u32::MAX))
    }),
];

/// The result of a function.
pub fn call(name: &str, param: &str) -> Result<String, String> {
    match FUNCTIONS.iter().find(|(n, _)| *n == name) {
        Some((name, function)) => function(name, param),
        None => Err(format!("{name}: no such function")),
    }
}

fn fold(
    name: &str,
    param: &str,
    whole: impl Fn(i64, i64) -> Option<i64>,
    real: impl Fn(f64, f64) -> f64,
) -> Result<String, String> {
    let numbers = numbers(name, param)?;
    let step = |a: Number, b: Number| match (a, b) {
        (Number::Whole(x), Number::Whole(y)) => {
            whole(x, y).map_or_else(|| Number::Real(real(a.real(), b.real())), Number::Whole)
        }
        _ => Number::Real(real(a.real(), b.real())),
    };
    let result = numbers.into_iter().reduce(step);
    result
        .map(Number::show)
        .ok_or_else(|| wrong(name, "numbers", param))
}

fn whole_quotient(a: i64, b: i64) -> Option<i64> {
    (a.checked_rem(b)? == 0).then(|| a.checked_div(b)).flatten()
}

fn idiv(param: &str) -> Result<String, String> {
    let quotient = fold("idiv", param, i64::checked_div, |a, b| a / b)?;
    let whole = quotient.split('.').next().unwrap_or_default();
    if whole.parse::<i64>().is_err() {
        return Err("idiv: division by zero".to_string());
    }
    Ok(whole.to_string())
}

fn remainder(name: &str, param: &str) -> Result<String, String> {
    let [a, b] = numbers(name, param)?[..] else {
        return Err(wrong(name, "two numbers", param));
    };
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => a
            .checked_rem(b)
            .map(|r| r.to_string())
            .ok_or_else(|| format!("{name}: division by zero")),
        _ if name == "mod" => Err(wrong(name, "integers", param)),
        _ => Ok(Number::Real(a.real() % b.real()).show()),
    }
}

fn one(
    name: &str,
    param: &str,
    whole: impl Fn(i64) -> Option<i64>,
    real: impl Fn(f64) -> f64,
) -> Result<String, String> {
    let [n] = numbers(name, param)?[..] else {
        return Err(wrong(name, "one number", param));
    };
    let exact = match n {
        Number::Whole(w) => whole(w).map(Number::Whole),
        Number::Real(_) => None,
    };
    Ok(exact.unwrap_or_else(|| Number::Real(real(n.real()))).show())
}

/// Compares numbers, or text if one of the two is no number.
fn compare(name: &str, param: &str, holds: fn(Ordering) -> bool) -> Result<String, String> {
    let words = words(param);
    let [a, b] = &words[..] else {
        return Err(wrong(name, "two values", param));
    };
    let order = match (Number::parse(a), Number::parse(b)) {
        (Some(Number::Whole(a)), Some(Number::Whole(b))) => Some(a.cmp(&b)),
        (Some(a), Some(b)) => a.real().partial_cmp(&b.real()),
        _ => Some(a.as_bytes().cmp(b.as_bytes())),
    };
    Ok(order.is_some_and(holds).to_string())
}

fn choose(param: &str) -> Result<String, String> {
    let words = text::split_words(param);
    let (condition, yes, no) = match &words[..] {
        [c, y] => (c, y.as_str(), ""),
        [c, y, n] => (c, y.as_str(), n.as_str()),
        _ => return Err(wrong("if", "a condition and one or two values", param)),
    };
    let chosen = if boolean("if", &text::unquote(condition))? {
        yes
    } else {
        no
    };
    Ok(chosen.to_string())
}

/// A number of 16 or 32 bits with its octets in the other order, as on Click's usual hosts.
fn swapped(name: &str, param: &str, most: u64) -> Result<String, String> {
    let number = click_core::value::number(&text::unquote(param)).filter(|n| *n <= most);
    let number =
        number.ok_or_else(|| wrong(name, &format!("a number of at most {most}"), param))?;
    let bits = 64 - most.leading_zeros();
    Ok((number.swap_bytes() >> (64 - bits)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, param: &str) -> String {
        call(name, param).unwrap()
    }

    #[test]
    fn numbers_stay_integers_while_they_can() {
        assert_eq!(value("add", "1 2 3"), "6");
        assert_eq!(value("div", "75 2.5 5"), "6");
        assert_eq!(value("div", "7 2"), "3.5");
        assert_eq!(value("idiv", "7 2"), "3");
        assert_eq!(value("add", "0.1 0.2"), "0.3");
        assert_eq!(value("add", "9223372036854775807 1"), "9223372036854780000");
        assert_eq!(value("neg", "-9223372036854775807"), "9223372036854775807");
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (name, param) in [
            ("add", "x"),
            ("add", ""),
            ("mod", "1 0"),
            ("idiv", "1 0"),
            ("eq", "1"),
            ("if", "x y z"),
            ("htons", "65536"),
        ] {
            assert!(call(name, param).is_err(), "{name} {param}");
        }
        assert!(call("nothing", "").is_err());
    }

    #[test]
    fn octets_change_places() {
        assert_eq!(value("htons", "6"), "1536");
        assert_eq!(value("htonl", &value("ntohl", "6")), "6");
    }
}
