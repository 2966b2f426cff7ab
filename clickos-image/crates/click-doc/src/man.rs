// SPDX-License-Identifier: Apache-2.0
//! Writes a page in man(7)'s macros, for `man -l -`.
use std::fmt::Write as _;

use crate::page::{Page, Paragraph};

/// The page as input of troff.
pub fn write(page: &Page) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        ".TH {} 7 \"\" \"ClickOS {version}\" \"Elements of Click\"\n",
        page.name
    );
    let _ = writeln!(text, ".SH NAME\n{} \\- {}", page.name, words(&page.summary));
    for section in &page.sections {
        let _ = writeln!(text, ".SH {}", section.title.to_uppercase());
        for paragraph in &section.paragraphs {
            add(&mut text, paragraph);
        }
    }
    text
}

fn add(text: &mut String, paragraph: &Paragraph) {
    let opening = match paragraph.is_item {
        true => ".IP \\(bu 2",
        false => ".PP",
    };
    let _ = writeln!(text, "{opening}\n{}", words(&paragraph.text));
}

/// Words with their code in bold. A zero-width `\&` keeps a first `.` or `'` from being a request.
fn words(text: &str) -> String {
    let mut out = String::from("\\&");
    let mut is_code = false;
    for c in text.chars() {
        match c {
            '`' => {
                is_code = !is_code;
                out.push_str(if is_code { "\\fB" } else { "\\fR" });
            }
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            _ => out.push(c),
        }
    }
    if is_code {
        out.push_str("\\fR");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troff_reads_words_as_they_are() {
        assert_eq!(words(".x `a-b` \\n"), "\\&.x \\fBa\\-b\\fR \\en");
        assert_eq!(words("'`open"), "\\&\\(aq\\fBopen\\fR");
    }

    #[test]
    fn only_our_macros_begin_lines() {
        let macros = [".TH ", ".SH ", ".PP", ".IP "];
        for entry in click_elements_os::entries() {
            for line in write(&Page::new(entry)).lines() {
                let is_request = line.starts_with(['.', '\'']);
                let is_ours = macros.iter().any(|m| line.starts_with(m));
                assert!(!is_request || is_ours, "{line}");
            }
        }
    }
}
