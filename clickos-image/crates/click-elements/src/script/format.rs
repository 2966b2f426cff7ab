// SPDX-License-Identifier: Apache-2.0
//! `sprintf` of scripts: `%d %i %u %x %X %o %c %s %%` with flags, width and precision.
use super::functions::Number;
use crate::prelude::*;

/// Widths and precisions beyond this are cut, so that a format cannot ask for any amount of memory.
const MAX_WIDTH: usize = 1024;

#[derive(Default)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Formats `words[1..]` as `words[0]` says.
pub fn sprintf(words: &[String]) -> Result<String, String> {
    let Some((format, values)) = words.split_first() else {
        return Err("sprintf: expected a format, got nothing".to_string());
    };
    let (mut out, mut values) = (String::new(), values.iter());
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let (spec, conversion, behind) = spec(&rest[at + 1..])?;
        rest = behind;
        if conversion == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| miscounted(words))?;
        out.push_str(&padded(
            &spec,
            &converted(&spec, conversion, value)?,
            conversion != 's',
        ));
    }
    out.push_str(rest);
    match values.next() {
        Some(_) => Err(miscounted(words)),
        None => Ok(out),
    }
}

/// The message about more or less values than conversions.
fn miscounted(words: &[String]) -> String {
    let (format, given) = (words[0].shown(), words.len() - 1);
    format!("sprintf: expected a value for each conversion of \"{format}\", got {given}")
}

fn spec(text: &str) -> Result<(Spec, char, &str), String> {
    let (mut spec, mut chars) = (Spec::default(), text.char_indices().peekable());
    while let Some((_, c)) = chars.next_if(|(_, c)| "-0+ #".contains(*c)) {
        match c {
            '-' => spec.left = true,
            '0' => spec.zero = true,
            '+' => spec.plus = true,
            '#' => spec.alternate = true,
            _ => {}
        }
    }
    let mut in_precision = false;
    while let Some((_, c)) = chars.next_if(|(_, c)| c.is_ascii_digit() || *c == '.') {
        let digit = c.to_digit(10).map_or(0, |d| d as usize);
        match (&mut spec.precision, in_precision) {
            _ if c == '.' => (spec.precision, in_precision) = (Some(0), true),
            (Some(n), true) => *n = (*n * 10 + digit).min(MAX_WIDTH),
            _ => spec.width = (spec.width * 10 + digit).min(MAX_WIDTH),
        }
    }
    while chars.next_if(|(_, c)| "hlqjzt".contains(*c)).is_some() {}
    let (at, conversion) = chars.next().ok_or("sprintf: the format ends behind %")?;
    Ok((spec, conversion, &text[at + conversion.len_utf8()..]))
}

fn converted(spec: &Spec, conversion: char, value: &str) -> Result<String, String> {
    let whole = || match Number::parse(value) {
        Some(Number::Whole(n)) => Ok(n),
        _ => Err(format!(
            "sprintf: %{conversion}: expected an integer, got \"{}\"",
            value.shown()
        )),
    };
    let digits = |text: String| {
        let missing = spec.precision.unwrap_or(0).saturating_sub(text.len());
        "0".repeat(missing) + &text
    };
    let prefix = |p: &str| {
        if spec.alternate {
            p.to_string()
        } else {
            String::new()
        }
    };
    Ok(match conversion {
        'd' | 'i' | 'u' => {
            let n = whole()?;
            let sign = if n < 0 {
                "-"
            } else if spec.plus {
                "+"
            } else {
                ""
            };
            sign.to_string() + &digits(n.unsigned_abs().to_string())
        }
        'x' => prefix("0x") + &digits(format!("{:x}", whole()?)),
        'X' => prefix("0X") + &digits(format!("{:X}", whole()?)),
        'o' => prefix("0") + &digits(format!("{:o}", whole()?)),
        'c' => {
            let n = whole()?;
            let wrong = |_| format!("sprintf: %c: {n} is out of range, the most is 255");
            char::from(u8::try_from(n).map_err(wrong)?).to_string()
        }
        's' => value
            .chars()
            .take(spec.precision.unwrap_or(usize::MAX))
            .collect(),
        _ => {
            return Err(format!(
                "sprintf: unknown conversion %{}",
                conversion.escape_debug()
            ));
        }
    })
}

fn padded(spec: &Spec, text: &str, number: bool) -> String {
    let missing = spec.width.saturating_sub(text.chars().count());
    if spec.left {
        return text.to_string() + &" ".repeat(missing);
    }
    if !spec.zero || !number {
        return " ".repeat(missing) + text;
    }
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
    format!("{sign}{}{digits}", "0".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(words: &[&str]) -> Result<String, String> {
        sprintf(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn as_in_c() {
        assert_eq!(
            formatted(&["%05x|%-4d|%4s|%%", "127", "-5", "ab"]).unwrap(),
            "0007f|-5  |  ab|%"
        );
        assert_eq!(
            formatted(&[
                "%05d %+d %#X %.3d %.1s %c",
                "-7",
                "1",
                "255",
                "4",
                "xy",
                "65"
            ])
            .unwrap(),
            "-0007 +1 0XFF 004 x A"
        );
    }

    #[test]
    fn wrong_formats_are_errors() {
        for words in [
            &["%"][..],
            &["%d"],
            &["x", "1"],
            &["%d", "a"],
            &["%n", "1"],
            &[],
        ] {
            assert!(formatted(words).is_err(), "{words:?}");
        }
        assert_eq!(formatted(&["%99999999999d", "1"]).unwrap().len(), MAX_WIDTH);
    }
}
