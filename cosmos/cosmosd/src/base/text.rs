// SPDX-License-Identifier: Apache-2.0
//! Bytes as text.

/// Makes a guest's bytes safe for a terminal. Newline and tab stay, and CR LF is a newline. Other
/// control characters and bytes that are not UTF-8 become `\xNN` or `\u{N}`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\r' if chars.peek() == Some(&'\n') => {}
                '\n' | '\t' => text.push(c),
                c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", c as u32)),
                c if is_unsafe(c) => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|b| text.push_str(&format!("\\x{b:02x}")));
    }
    text
}

/// Control characters beyond ASCII, and those that reorder what a reader sees.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_safe() {
        let bytes = b"ok\ttab\r\n\r\x1b[2J\x07\xff\xc2\x9b caf\xc3\xa9 \xe2\x80\xae";
        assert_eq!(
            escape(bytes),
            "ok\ttab\n\\x0d\\x1b[2J\\x07\\xff\\u{9b} café \\u{202e}"
        );
    }
}
