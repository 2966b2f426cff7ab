// SPDX-License-Identifier: Apache-2.0
//! What a guest and its toolstack tell each other through the Xen store.
use clickos_protocol::{Answer, Command, Joiner};
use xenstore::{Decoder, Message};

use crate::router::choose;

/// Requests and answers in pieces: what was understood is understood again when it is written again.
pub fn protocol(data: &[u8]) {
    if let Ok(command) = Command::parse(data) {
        assert_eq!(Command::parse(&command.encode()), Ok(command.clone()));
    }
    if let Ok(answer) = Answer::parse(data) {
        let whole = answer.encode().concat();
        let _ = Answer::parse(&whole);
    }
    let mut joiner = Joiner::new(1000);
    let mut rest = data;
    while let Some((len, bytes)) = choose(rest, 300) {
        let (piece, behind) = bytes.split_at(len.min(bytes.len()));
        let _ = joiner.add(piece);
        assert!(joiner.data().len() <= 1000);
        rest = behind;
    }
}

/// The store's messages, in pieces: the same whatever the pieces are.
pub fn messages(data: &[u8]) {
    let whole = decoded(data, data.len().max(1));
    for size in [1, 5, 16] {
        assert_eq!(decoded(data, size), whole);
    }
}

fn decoded(data: &[u8], size: usize) -> (Vec<Message>, bool) {
    let (mut decoder, mut list) = (Decoder::default(), Vec::new());
    for piece in data.chunks(size) {
        decoder.push(piece);
        loop {
            match decoder.take() {
                Ok(Some(message)) => list.push(message),
                Ok(None) => break,
                Err(_) => return (list, true),
            }
        }
    }
    (list, false)
}
