// SPDX-License-Identifier: Apache-2.0
//! Cuts a byte stream from the store into messages.
use crate::error::{Code, Error};
use crate::request::strings;
use crate::wire::{HEADER_LEN, Header, Kind, PAYLOAD_MAX};
use alloc::string::String;
use alloc::vec::Vec;

/// Most bytes of a list of names that a socket brings.
const LISTING_MAX: usize = 1 << 20;

/// A change below a watched path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEvent {
    /// The changed path.
    pub path: String,
    /// The token given with the watch.
    pub token: String,
}

/// A message from the store.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// The answer to the request with this number; the payload, or the store's error.
    Reply {
        req_id: u32,
        kind: u32,
        result: Result<Vec<u8>, Code>,
    },
    Event(WatchEvent),
}

/// Collects bytes until a message is whole; holds at most one message and what one read gave.
pub struct Decoder {
    bytes: Vec<u8>,
    listing_max: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            listing_max: PAYLOAD_MAX,
        }
    }
}

impl Decoder {
    /// For the daemon's socket: there oxenstored (4.17) sends every list of names whole, and it
    /// knows no `DIRECTORY_PART`.
    pub fn of_socket() -> Self {
        Self {
            listing_max: LISTING_MAX,
            ..Self::default()
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message off, if it is whole.
    ///
    /// # Errors
    /// [`Error::Protocol`] for a message longer than allowed or a broken event.
    pub fn take(&mut self) -> Result<Option<Message>, Error> {
        let Some(header) = self.header() else {
            return Ok(None);
        };
        let len = header.len as usize;
        if len > PAYLOAD_MAX && header.kind != Kind::Directory as u32 {
            return Err(Error::Protocol("message longer than 4096 bytes"));
        }
        if len > self.listing_max {
            return Err(Error::Protocol(
                "list longer than 4096 bytes, of a socket 1 MiB",
            ));
        }
        if self.bytes.len() < HEADER_LEN + len {
            return Ok(None);
        }
        let payload = self.bytes[HEADER_LEN..HEADER_LEN + len].to_vec();
        self.bytes.drain(..HEADER_LEN + len);
        message(header, payload).map(Some)
    }

    fn header(&self) -> Option<Header> {
        self.bytes.first_chunk().map(Header::from_bytes)
    }
}

fn message(header: Header, payload: Vec<u8>) -> Result<Message, Error> {
    if header.kind == Kind::WatchEvent as u32 {
        return event(&payload).map(Message::Event);
    }
    let failed = header.kind == Kind::Error as u32;
    let result = if failed {
        Err(Code::from_payload(&payload))
    } else {
        Ok(payload)
    };
    Ok(Message::Reply {
        req_id: header.req_id,
        kind: header.kind,
        result,
    })
}

fn event(payload: &[u8]) -> Result<WatchEvent, Error> {
    let mut parts = strings(payload)?.into_iter();
    match (parts.next(), parts.next()) {
        (Some(path), Some(token)) => Ok(WatchEvent { path, token }),
        _ => Err(Error::Protocol("watch event without path and token")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(kind: u32, payload: &[u8]) -> Vec<u8> {
        let header = Header {
            kind,
            req_id: 7,
            tx_id: 0,
            len: payload.len() as u32,
        };
        [&header.to_bytes()[..], payload].concat()
    }

    #[test]
    fn message_in_pieces() {
        let mut decoder = Decoder::default();
        for byte in bytes(2, b"value") {
            assert_eq!(decoder.take().unwrap(), None);
            decoder.push(&[byte]);
        }
        let reply = Message::Reply {
            req_id: 7,
            kind: 2,
            result: Ok(b"value".to_vec()),
        };
        assert_eq!(decoder.take().unwrap(), Some(reply));
        assert_eq!(decoder.take().unwrap(), None);
    }

    #[test]
    fn errors_and_events() {
        let mut decoder = Decoder::default();
        decoder.push(&bytes(16, b"ENOENT\0"));
        decoder.push(&bytes(15, b"/a\0tok\0"));
        let reply = Message::Reply {
            req_id: 7,
            kind: 16,
            result: Err(Code::NoEntry),
        };
        assert_eq!(decoder.take().unwrap(), Some(reply));
        let event = WatchEvent {
            path: "/a".into(),
            token: "tok".into(),
        };
        assert_eq!(decoder.take().unwrap(), Some(Message::Event(event)));
    }

    #[test]
    fn lying_length_is_refused_before_memory_is_taken() {
        let mut decoder = Decoder::default();
        decoder.push(
            &Header {
                kind: 2,
                req_id: 0,
                tx_id: 0,
                len: u32::MAX,
            }
            .to_bytes(),
        );
        assert!(matches!(decoder.take(), Err(Error::Protocol(_))));
    }

    #[test]
    fn a_socket_brings_long_lists_and_nothing_else_that_long() {
        let list = b"name\0".repeat(1000);
        let of = |decoder: Decoder, kind: u32, payload: &[u8]| {
            let mut decoder = decoder;
            decoder.push(&bytes(kind, payload));
            decoder.take()
        };
        let whole = of(Decoder::of_socket(), 1, &list).unwrap().unwrap();
        assert!(matches!(whole, Message::Reply { result: Ok(payload), .. } if payload == list));
        for (decoder, kind, payload) in [
            (Decoder::of_socket(), 2, &list),
            (Decoder::of_socket(), 1, &vec![b'x'; LISTING_MAX + 1]),
            (Decoder::default(), 1, &list),
        ] {
            let error = of(decoder, kind, payload).unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{kind}: {error}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(data in proptest::collection::vec(any::<u8>(), 0..9000)) {
            let mut decoder = Decoder::default();
            decoder.push(&data);
            while let Ok(Some(_)) = decoder.take() {}
        }

        #[test]
        fn event_payloads_never_panic(data in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = event(&data);
        }
    }
}
