// SPDX-License-Identifier: Apache-2.0
//! The ControlSocket protocol.
use click_run::control::command::{Taken, take};

/// Any bytes of a peer, in pieces: the commands do not depend on how they arrive.
pub fn control(data: &[u8]) {
    let whole = commands(data, data.len().max(1));
    for size in [1, 7, 100] {
        assert_eq!(commands(data, size), whole);
    }
}

fn commands(data: &[u8], size: usize) -> Vec<Taken> {
    let (mut input, mut list) = (Vec::new(), Vec::new());
    let pieces = data.chunks(size);
    let last = pieces.len();
    for (number, piece) in (1..).zip(pieces) {
        input.extend(piece);
        loop {
            match take(&mut input, number == last) {
                Taken::Partial => break,
                taken @ Taken::Whole(_) => list.push(taken),
                taken @ Taken::TooLong(..) => {
                    list.push(taken);
                    return list;
                }
            }
        }
    }
    list
}
