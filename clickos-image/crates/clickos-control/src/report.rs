// SPDX-License-Identifier: Apache-2.0
//! Text for a person that fits into one store value.
use alloc::format;
use alloc::string::String;
use core::fmt::Display;

/// Bytes of the `error` node at most.
pub(crate) const REPORT_MAX: usize = 1900;
/// Kept free for the line that counts what was left out.
const COUNT_LINE: usize = 32;

/// One item a line; what does not fit is counted in the last line.
pub(crate) fn lines<T: Display>(items: &[T]) -> String {
    let mut out = String::new();
    for (done, item) in items.iter().enumerate() {
        let line = format!("{item}");
        let last = done + 1 == items.len();
        let room = REPORT_MAX - if last { 0 } else { COUNT_LINE };
        if out.len() + 1 + line.len() > room {
            let left = items.len() - done;
            if out.is_empty() {
                out.push_str(clip(&line, room - COUNT_LINE));
                return more(out, left - 1);
            }
            return more(out, left);
        }
        if done > 0 {
            out.push('\n');
        }
        out.push_str(&line);
    }
    out
}

fn more(mut out: String, left: usize) -> String {
    if left > 0 {
        out.push_str(&format!("\n({left} more)"));
    }
    out
}

/// The beginning of `text`, at most `max` bytes, cut between characters.
pub(crate) fn clip(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn few_lines_stay() {
        assert_eq!(lines(&["a:1:2: x", "a:3:4: y"]), "a:1:2: x\na:3:4: y");
        assert_eq!(lines::<&str>(&[]), "");
    }

    #[test]
    fn many_are_counted() {
        let items = vec!["x".repeat(99); 100];
        let text = lines(&items);
        assert!(text.len() <= REPORT_MAX, "{}", text.len());
        assert_eq!(text.lines().last(), Some("(82 more)"));
        assert_eq!(text.lines().count(), 19);
    }

    #[test]
    fn a_giant_is_cut_between_characters() {
        for items in [vec!["é".repeat(2000)], vec!["é".repeat(2000); 3]] {
            assert!(lines(&items).len() <= REPORT_MAX);
        }
        assert_eq!(clip("aé", 2), "a");
    }
}
