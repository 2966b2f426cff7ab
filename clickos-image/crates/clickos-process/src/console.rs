// SPDX-License-Identifier: Apache-2.0
//! The guest's console: its standard output, a file that cosmosd bounds and escapes.
use std::io::Write;

/// Writes one line. A full console is no reason to stop forwarding packets.
pub(crate) fn line(text: &str) {
    let mut line = Vec::with_capacity(text.len() + 1);
    line.extend_from_slice(text.as_bytes());
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&line).and_then(|()| out.flush());
}
