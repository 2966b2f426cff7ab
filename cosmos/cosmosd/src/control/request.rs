// SPDX-License-Identifier: Apache-2.0
//! Handler requests. Both sides write pieces; the side that asked removes them.

use clickos_protocol::{
    ANSWER_NODES, Answer, Command, Joined, Joiner, Marks, REQUEST_MAX, TOOLSTACK_PIECE, split,
};
use cosmos_proto::answer::Handler;

use super::Router;
use super::slots::{Kind, Slot};
use crate::error::{Code, Error, Result};
use crate::spec::Write;
use crate::store::{Change, Seen};

/// Reads a handler.
pub fn read(router: Router<'_>, name: &str, param: &str) -> Result<String> {
    ask(router, &Command::Read { name, param }).map(text)
}

/// Writes handlers: all of them, or none.
pub fn write(router: Router<'_>, writes: &[Write]) -> Result<()> {
    if writes.is_empty() {
        return Ok(());
    }
    let writes = writes
        .iter()
        .map(|(name, value)| (&**name, value.as_bytes()));
    ask(router, &Command::Write(writes.collect())).map(drop)
}

/// A request that is written and not answered yet.
pub struct Asked<'a> {
    router: Router<'a>,
    seq: u32,
    seen: Seen,
    _place: Slot<'a>,
}

/// Writes a request for handlers' values, after `begin` took its number in the store.
pub fn begin_write<'a>(
    router: Router<'a>,
    writes: &[Write],
    begin: impl FnOnce(u32) -> Result<()>,
) -> Result<Asked<'a>> {
    let writes = writes.iter();
    let writes = writes.map(|(name, value)| (&**name, value.as_bytes()));
    let request = encode(&Command::Write(writes.collect()))?;
    let _place = enter(&router)?;
    let seq = router.requests.seq();
    begin(seq)?;
    let seen = router.signals.seen();
    send(&router, seq, &request)?;
    Ok(Asked {
        router,
        seq,
        seen,
        _place,
    })
}

impl Asked<'_> {
    /// Waits for the answer. The nodes stay there.
    pub fn settle(self) -> Result<Marks> {
        outcome(await_answer(&self.router, self.seq, self.seen)?).map(|data| Marks::parse(&data))
    }
}

/// Lists the handlers.
pub fn handlers(router: Router<'_>) -> Result<Vec<Handler>> {
    let list = text(ask(router, &Command::Handlers)?);
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

/// A handler's value; bytes that are not text become `\xNN`.
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

fn ask(router: Router<'_>, command: &Command<'_>) -> Result<Vec<u8>> {
    let request = encode(command)?;
    let _place = enter(&router)?;
    let seq = router.requests.seq();
    let response = exchange(&router, seq, &request);
    // In this order the guest need not look whether its answer was taken.
    let forgotten = router.store.apply(&[
        Change::remove(router.path(&format!("response/{seq}"))),
        Change::remove(router.path(&format!("request/{seq}"))),
    ]);
    let response = response?;
    forgotten?;
    outcome(response)
}

fn encode(command: &Command<'_>) -> Result<Vec<u8>> {
    let request = command.encode();
    if request.len() > REQUEST_MAX {
        let got = request.len();
        let message = format!("the request has {got} bytes, the limit is {REQUEST_MAX}");
        return Err(Error::bad_request(message));
    }
    Ok(request)
}

fn enter<'a>(router: &Router<'a>) -> Result<Slot<'a>> {
    let slots = &router.requests.slots;
    slots.enter(router.rid, Kind::Request, router.deadline)
}

/// Writes a request. Its pieces get the permissions of the node above all requests, which this
/// function makes first. A request of one piece is therefore one write.
fn send(router: &Router<'_>, seq: u32, request: &[u8]) -> Result<()> {
    let is_open = router.requests.is_open(router.rid);
    let folder = (!is_open).then(|| router.node("request", ""));
    let pieces = split(request, TOOLSTACK_PIECE).into_iter().enumerate();
    let pieces = pieces.map(|(n, piece)| {
        let path = router.path(&format!("request/{seq}/{n}"));
        Change::write(path, piece)
    });
    let changes: Vec<_> = folder.into_iter().chain(pieces).collect();
    router.store.commit(&changes)?;
    router.requests.set_open(router.rid);
    Ok(())
}

fn exchange(router: &Router<'_>, seq: u32, request: &[u8]) -> Result<Answer> {
    let seen = router.signals.seen();
    send(router, seq, request)?;
    await_answer(router, seq, seen)
}

fn await_answer(router: &Router<'_>, seq: u32, seen: Seen) -> Result<Answer> {
    let mut answer = Joiner::new(Answer::MAX);
    let mut next = 0;
    let what = format!("router {}: handler request", router.rid);
    let signals = router.signals;
    signals.wait_since(seen, &what, router.deadline, || {
        loop {
            let path = router.path(&format!("response/{seq}/{next}"));
            let Some(piece) = router.store.read(&path)? else {
                return Ok(None);
            };
            next += 1;
            if next > ANSWER_NODES {
                return Err(malformed()); // A guest could send bytes one by one for minutes.
            }
            match answer.add(&piece) {
                Joined::More => {}
                Joined::Whole => return parse(answer.data()).map(Some),
                Joined::Malformed => return Err(malformed()),
                Joined::TooLong => return Err(too_long()),
            }
        }
    })
}

fn parse(answer: &[u8]) -> Result<Answer> {
    Answer::parse(answer).map_err(|_| malformed())
}

fn malformed() -> Error {
    Error::internal("guest's answer", "not of the protocol")
}

fn too_long() -> Error {
    Error::internal("guest's answer", format!("above {} bytes", Answer::MAX))
}

/// The codes are those of docs/control-protocol.md.
pub fn outcome(response: Answer) -> Result<Vec<u8>> {
    let code = match response.code {
        200 => return Ok(response.data),
        501 | 590 => Code::BadRequest,
        510 | 540 => Code::NoSuchElement,
        511 => Code::NoSuchHandler,
        520 => Code::HandlerError,
        530 => Code::NotPermitted,
        _ => Code::Internal,
    };
    Err(Error::new(code, crate::text::escape(&response.data)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Requests;
    use crate::store::sim::SimStore;
    use crate::store::{Signals, Watchers};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(60);

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
            let error = outcome(Answer {
                code: number,
                data: b"why\x1b".into(),
            })
            .unwrap_err();
            assert_eq!(error, Error::new(code, "why\\x1b"));
        }
        assert_eq!(
            outcome(Answer {
                code: 200,
                data: b"7".into()
            }),
            Ok(b"7".into())
        );
    }

    #[test]
    fn an_answer_in_too_many_pieces_is_refused() {
        let (store, signals) = (SimStore::default(), Arc::new(Signals::default()));
        let watchers = Arc::new(Watchers::new(Box::new(|_, _| {})));
        watchers.insert(1, Arc::clone(&signals));
        store.report_to(&watchers);
        let (requests, deadline) = (Requests::default(), Instant::now() + PATIENCE);
        let router = Router {
            store: &store,
            signals: &signals,
            requests: &requests,
            domid: 1,
            rid: 0,
            deadline,
        };
        let answer = |n: usize, piece| store.put(&router.path(&format!("response/7/{n}")), piece);
        std::thread::scope(|scope| {
            // The simulated guest leaves this handler unanswered.
            let asked = scope.spawn(|| exchange(&router, 7, b"read c.count"));
            answer(0, "+200 ");
            (1..ANSWER_NODES).for_each(|n| answer(n, "+x"));
            while !asked.is_finished() {
                answer(ANSWER_NODES, ".x");
            }
            assert_eq!(asked.join().unwrap().unwrap_err(), malformed());
        });
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
