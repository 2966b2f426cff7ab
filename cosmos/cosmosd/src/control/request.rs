// SPDX-License-Identifier: Apache-2.0
//! Handler requests: written in pieces, answered in pieces, removed by whoever asked.

use super::Router;
use super::slots::Kind;
use super::wire::{self, Collector, Response};
use crate::error::{Code, Error, Result};
use crate::spec::Write;
use crate::store::Change;

/// One handler as `handler-list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Handler {
    pub name: String,
    pub read: bool,
    pub write: bool,
}

/// Reads a handler.
pub fn read(router: Router<'_>, name: &str) -> Result<String> {
    let data = ask(router, format!("read {name}").as_bytes())?;
    Ok(text(data))
}

/// Writes handlers: all of them, or none.
pub fn write(router: Router<'_>, writes: &[Write]) -> Result<()> {
    if writes.is_empty() {
        return Ok(());
    }
    ask(router, &wire::encode_writes(writes)).map(drop)
}

/// Lists the handlers.
pub fn handlers(router: Router<'_>) -> Result<Vec<Handler>> {
    let list = text(ask(router, b"handlers")?);
    list.lines().map(parse_handler).collect()
}

fn parse_handler(line: &str) -> Result<Handler> {
    match line.rsplit_once(' ') {
        Some((name, mode @ ("r" | "w" | "rw"))) => Ok(Handler {
            name: name.to_owned(),
            read: mode != "w",
            write: mode != "r",
        }),
        _ => Err(Error::internal(
            "handler list",
            format!("the guest sent {line:.200?}"),
        )),
    }
}

/// What a handler gave; bytes that are not text are written as `\xNN`.
fn text(data: Vec<u8>) -> String {
    String::from_utf8(data).unwrap_or_else(|e| {
        let mut text = String::new();
        for chunk in e.as_bytes().utf8_chunks() {
            text.push_str(chunk.valid());
            chunk
                .invalid()
                .iter()
                .for_each(|b| text.push_str(&format!("\\x{b:02x}")));
        }
        text
    })
}

fn ask(router: Router<'_>, request: &[u8]) -> Result<Vec<u8>> {
    if request.len() > wire::MAX_REQUEST {
        let (got, limit) = (request.len(), wire::MAX_REQUEST);
        let message = format!("the request has {got} bytes, the limit is {limit}");
        return Err(Error::bad_request(message));
    }
    let _place = router
        .requests
        .slots
        .enter(router.rid, Kind::Request, router.deadline)?;
    let seq = router.requests.seq();
    let response = exchange(&router, seq, request);
    let forgotten = router.store.commit(&[
        Change::remove(router.path(&format!("request/{seq}"))),
        Change::remove(router.path(&format!("response/{seq}"))),
    ]);
    let response = response?;
    forgotten?;
    outcome(response)
}

fn exchange(router: &Router<'_>, seq: u32, request: &[u8]) -> Result<Response> {
    let pieces = wire::request_pieces(request).enumerate();
    let nodes = pieces.map(|(n, piece)| router.node(&format!("request/{seq}/{n}"), piece));
    router.store.commit(&nodes.collect::<Vec<_>>())?;
    let mut collector = Collector::default();
    let what = format!("router {}: handler request", router.rid);
    router.signals.wait(&what, router.deadline, || {
        loop {
            let next = router.path(&format!("response/{seq}/{}", collector.pieces()));
            let Some(piece) = router.store.read(&next)? else {
                return Ok(None);
            };
            if let Some(response) = collector.add(&piece)? {
                return Ok(Some(response));
            }
        }
    })
}

/// The codes are those of docs/control-protocol.md.
fn outcome(response: Response) -> Result<Vec<u8>> {
    let code = match response.code {
        200 => return Ok(response.data),
        501 | 590 => Code::BadRequest,
        510 | 540 => Code::NoSuchElement,
        511 => Code::NoSuchHandler,
        520 => Code::HandlerError,
        530 => Code::NotPermitted,
        _ => Code::Internal,
    };
    Err(Error::new(code, crate::host::escape(&response.data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_error() {
        for (number, code) in [
            (500, Code::Internal),
            (501, Code::BadRequest),
            (510, Code::NoSuchElement),
            (511, Code::NoSuchHandler),
            (520, Code::HandlerError),
            (530, Code::NotPermitted),
            (540, Code::NoSuchElement),
            (590, Code::BadRequest),
            (999, Code::Internal),
        ] {
            let error = outcome(Response {
                code: number,
                data: b"why\x1b".into(),
            })
            .unwrap_err();
            assert_eq!(error, Error::new(code, "why\\x1b"));
        }
        assert_eq!(
            outcome(Response {
                code: 200,
                data: b"7".into()
            }),
            Ok(b"7".into())
        );
    }

    #[test]
    fn handler_lines() {
        let handler = parse_handler("fw/filter.config rw").unwrap();
        assert!(handler.read && handler.write && handler.name == "fw/filter.config");
        assert!(!parse_handler("c.reset w").unwrap().read);
        for bad in ["", "c.count", "c.count x", "c.count r "] {
            assert!(parse_handler(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_shown() {
        assert_eq!(text(b"a\nb\xff\xc3\xa9".to_vec()), "a\nb\\xffé");
    }
}
