// SPDX-License-Identifier: Apache-2.0
//! What people and programs are shown.

use serde::Serialize;
use serde_json::Value;

/// Text from a guest, made safe for a terminal: newline and tab stay, CR LF is a newline, and
/// other control characters are escaped.
pub fn printable(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// A table with a line of headings; columns are as wide as their widest cell.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = vec![headings.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()];
    lines.extend(
        rows.iter()
            .map(|row| row.iter().map(|cell| printable(cell)).collect()),
    );
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// The fields of an object, one a line; fields that are lists or objects as JSON.
pub fn fields(object: &impl Serialize) -> String {
    let empty = serde_json::Map::new();
    let object = as_json(object);
    let rows = object.as_object().unwrap_or(&empty).iter();
    let rows: Vec<_> = rows
        .map(|(key, value)| vec![key.clone(), text(value)])
        .collect();
    table(&["Field", "Value"], &rows)
}

pub fn as_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("maps of a command have text as keys")
}

/// A value as text, without the quotes of JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_text_cannot_reach_the_terminal() {
        assert_eq!(
            printable("a\tb\r\n\n\r\u{1b}[2J\u{9b}é"),
            "a\tb\n\n\\u{d}\\u{1b}[2J\\u{9b}é"
        );
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["1".into(), "x".into()],
            vec!["long".into(), "y".into()],
        ];
        assert_eq!(table(&["A", "B"], &rows), "A     B\n1     x\nlong  y\n");
    }
}
