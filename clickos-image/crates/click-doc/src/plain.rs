// SPDX-License-Identifier: Apache-2.0
//! Writes a page as text for a terminal of 80 columns.
use crate::page::{Page, Paragraph};

const COLUMNS: usize = 80;
const INDENT: &str = "  ";

/// The page as text.
pub fn write(page: &Page) -> String {
    let mut text = format!("{} ({})\n", page.name, page.group);
    wrap(&mut text, INDENT, INDENT, &page.summary);
    for section in &page.sections {
        text.push_str(&format!("\n{}\n", section.title));
        for paragraph in &section.paragraphs {
            add(&mut text, paragraph);
        }
    }
    text
}

fn add(text: &mut String, paragraph: &Paragraph) {
    match paragraph.is_item {
        true => wrap(text, "  * ", "    ", &paragraph.text),
        false => wrap(text, INDENT, INDENT, &paragraph.text),
    }
}

/// Adds words in lines of at most `COLUMNS` characters; a longer word has a line of its own.
fn wrap(text: &mut String, first: &str, others: &str, words: &str) {
    let mut line = first.to_string();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            text.push_str(&line);
            text.push('\n');
            line = others.to_string();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    #[test]
    fn long_lines_are_wrapped() {
        let mut text = String::new();
        wrap(&mut text, "* ", "  ", &format!("{} b", "a".repeat(77)));
        assert_eq!(text, format!("* {}\n  b\n", "a".repeat(77)));
        let mut text = String::new();
        wrap(&mut text, "* ", "  ", &format!("{} b", "a".repeat(76)));
        assert_eq!(text, format!("* {} b\n", "a".repeat(76)));
    }

    #[test]
    fn no_line_of_several_words_is_too_long() {
        for entry in click_elements_os::entries() {
            let text = write(&Page::new(entry));
            for line in text.lines().filter(|l| l.chars().count() > COLUMNS) {
                assert_eq!(line.split_whitespace().count(), 1, "{line}");
            }
        }
    }

    #[test]
    fn a_page() {
        let text = write(&Page::new(find::entry("CheckLength").unwrap()));
        assert!(text.starts_with("CheckLength (standard)\n  Lets packets up to a length pass.\n"));
        assert!(text.contains("\nHandlers\n  * `length` (read, write): LENGTH.\n"));
        assert!(text.ends_with(
            "\nCodes\n  Arguments by position or keyword `LENGTH`.\n  Ports `1/1-2`, processing `a/ah`, flow \
             `x/x`; group `standard`.\n"
        ));
    }
}
