// SPDX-License-Identifier: Apache-2.0
//! Decimal fractions as arguments have them. The library's own parser is exact for any number of digits, and needs 14 KiB of an
//! image for that.
use crate::prelude::*;

/// Powers of ten up to the largest that is exact.
const EXACT: usize = 22;
const TEN: f64 = 10.0;
/// Digits that count; more are below what a fraction can hold.
const DIGITS: u32 = 19;
/// Beyond every number.
const FAR: i32 = 400;

/// Parses digits, maybe with a sign, a point and an exponent. The value is the nearest one for up to 15 digits and 22
/// places, and off by a few units of the last of 16 digits beyond that.
pub fn parse(text: &str) -> Option<f64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, text)) => (digits, exponent(text)?),
        None => (text, 0),
    };
    let (mut number, mut places, mut used) = (0u64, exponent, 0);
    let (mut has_digits, mut is_fraction) = (false, false);
    for byte in digits.bytes() {
        match byte {
            b'0'..=b'9' => {
                has_digits = true;
                if used < DIGITS {
                    number = number * 10 + u64::from(byte - b'0');
                    used += u32::from(number > 0);
                    places = places.saturating_sub(i32::from(is_fraction));
                } else {
                    places = places.saturating_add(i32::from(!is_fraction));
                }
            }
            b'.' if !is_fraction => is_fraction = true,
            _ => return None,
        }
    }
    let value = scaled(number as f64, places.clamp(-FAR, FAR));
    has_digits.then_some(if is_negative { -value } else { value })
}

/// An exponent; the most or the least number for one beyond.
fn exponent(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() {
        return None;
    }
    digits.bytes().try_fold(0i32, |sum, byte| {
        let digit = sign * i32::from(byte.is_ascii_digit().then(|| byte - b'0')?);
        Some(sum.saturating_mul(10).saturating_add(digit))
    })
}

/// A number times a power of ten.
fn scaled(number: f64, places: i32) -> f64 {
    let mut value = number;
    let mut left = places.unsigned_abs() as usize;
    while left > 0 && value != 0.0 && value.is_finite() {
        let step = left.min(EXACT);
        let power = (0..step).fold(1.0, |power, _| power * TEN);
        value = if places < 0 {
            value / power
        } else {
            value * power
        };
        left -= step;
    }
    value
}

/// A number with 15 digits, which is what a fraction is good for, without zeros at the end.
pub fn show(number: f64) -> String {
    let text = format!("{number:.14e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = digits.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let zeros = |count: usize| "0".repeat(count);
    let before = usize::try_from(exponent + 1).unwrap_or(0);
    let text = match digits.len() {
        0 => zeros(1),
        _ if before == 0 => {
            let between = exponent.unsigned_abs() as usize - 1;
            format!("0.{}{digits}", zeros(between))
        }
        length if length <= before => format!("{digits}{}", zeros(before - length)),
        _ => format!("{}.{}", &digits[..before], &digits[before..]),
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_number_is_refused() {
        for bad in [
            "", ".", "-", "1.2.3", "1e", "e5", "1 ", "x", "1e5e5", "--1", "1e+", "1e-", "1e1.0",
            "1e--1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse("1e999999999"), Some(f64::INFINITY));
        assert_eq!(parse("1e-999999999"), Some(0.0));
        assert_eq!(
            (parse(".5"), parse("5."), parse("+5")),
            (Some(0.5), Some(5.0), Some(5.0))
        );
    }

    #[test]
    fn long_texts_and_exponents_are_as_the_library_parses_them() {
        let zeros = "0".repeat(500);
        for text in [
            format!("0.{zeros}1e501"),
            format!("1{zeros}e-500"),
            format!("1{zeros}"),
            "0e99999999999".to_string(),
            "1e-99999999999".to_string(),
            "1e99999999999".to_string(),
        ] {
            let short: String = text.chars().take(20).collect();
            assert_eq!(parse(&text), text.parse().ok(), "{short}");
        }
    }

    #[test]
    fn other_numbers_are_shown_as_the_library_does() {
        for number in [0.0, -0.0, f64::INFINITY, f64::NAN, 1e22, 1.5e300, 1e-7] {
            assert_eq!(show(number), number.to_string());
        }
    }

    proptest! {
        #[test]
        fn as_the_library_parses(digits in 0u64..1_000_000_000_000_000, places in 0u32..16, sign: bool) {
            let (unit, sign) = (10u64.pow(places), if sign { "-" } else { "" });
            let width = places as usize;
            let text = format!("{sign}{}.{:0width$}", digits / unit, digits % unit);
            prop_assert_eq!(parse(&text), text.parse().ok());
            let text = format!("{sign}{digits}e-{places}");
            prop_assert_eq!(parse(&text), text.parse().ok());
        }

        #[test]
        fn nearly_as_the_library_parses(digits in "[0-9]{1,30}", places in -250i32..250) {
            let text = format!("{digits}e{places}");
            let (ours, theirs) = (parse(&text).unwrap(), text.parse::<f64>().unwrap());
            prop_assert!((ours - theirs).abs() <= theirs * 1e-13, "{ours} {theirs}");
        }

        #[test]
        fn as_the_library_shows(digits in -999_999_999_999_999i64..999_999_999_999_999, places in -30i32..30) {
            let number: f64 = format!("{digits}e{places}").parse().unwrap();
            prop_assert_eq!(show(number), number.to_string());
        }
    }
}
