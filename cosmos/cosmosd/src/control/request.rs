// SPDX-License-Identifier: Apache-2.0
//! Handler requests. Both sides write pieces; the side that asked removes them.

use clickos_protocol::{
    ANSWER_NODES, Answer, Command, Joined, Joiner, Marks, REQUEST_MAX, TOOLSTACK_PIECE, split,
};
use cosmos_proto::answer::Handler;

use super::Router;
use super::slots::{Kind, Slot};
use crate::base::error::{Code, Error, Result};
use crate::spec::Write;
use crate::store::{Change, Seen};
use std::time::Instant;

/// Reads a handler.
pub fn read(router: Router<'_>, name: &str, param: &str) -> Result<String> {
    ask(router, &Command::Read { name, param }).map(text)
}

/// Requests of one batch that are on their way at a time: half of a router's places.
const WINDOW: usize = 8;

/// Characters that an error of one of several reads keeps: a guest may say 256 KiB in each.
const ERROR_CHARS: usize = 600;

/// Reads handlers by their names and parameters, each for itself. Several requests are on their way at a time, so that they
/// wait for the guest together. Values beyond `limit` bytes in all become errors.
///
/// # Errors
/// Those after which the guest answers nothing more in time: `timeout`, `dead-guest`, `store`.
pub fn read_many(
    router: Router<'_>,
    reads: &[(&str, &str)],
    limit: usize,
) -> Result<Vec<Result<String>>> {
    let mut values = Vec::with_capacity(reads.len());
    let mut room = Room { limit, bytes: 0 };
    while values.len() < reads.len() {
        let left = &reads[values.len()..];
        let places = enter_some(&router, left.len().min(WINDOW))?;
        let read = read_at_once(&router, &left[..places.len()])?;
        values.extend(read.into_iter().map(|value| room.take(value)));
    }
    Ok(values)
}

/// The room for the answers of a batch in memory.
struct Room {
    limit: usize,
    bytes: usize,
}

impl Room {
    fn take(&mut self, value: Result<String>) -> Result<String> {
        match value {
            Ok(value) if self.bytes + value.len() > self.limit => {
                let (bytes, limit) = (self.bytes + value.len(), self.limit);
                let message = format!("the values have {bytes} bytes, the limit is {limit}");
                Err(Error::new(Code::TooLong, message))
            }
            Ok(value) => {
                self.bytes += value.len();
                Ok(value)
            }
            Err(Error { code, message, .. }) => {
                let message: String = message.chars().take(ERROR_CHARS).collect();
                Err(Error::new(code, message))
            }
        }
    }
}

/// Waits for one place, and takes those of `limit` that are free.
fn enter_some<'a>(router: &Router<'a>, limit: usize) -> Result<Vec<Slot<'a>>> {
    let mut places = vec![enter(router)?];
    while places.len() < limit {
        let now = Instant::now();
        match router.requests.slots.enter(router.rid, Kind::Request, now) {
            Ok(place) => places.push(place),
            Err(_) => break,
        }
    }
    Ok(places)
}

fn read_at_once(router: &Router<'_>, reads: &[(&str, &str)]) -> Result<Vec<Result<String>>> {
    let mut requests = Vec::with_capacity(reads.len());
    for (name, param) in reads {
        let request = encode(&Command::Read { name, param })?;
        requests.push((router.requests.seq(), request));
    }
    let seen = router.signals.seen();
    let answers = send(router, &requests).and_then(|()| {
        let answers = requests
            .iter()
            .map(|(seq, _)| match await_answer(router, *seq, seen) {
                Err(e) if is_last(&e) => Err(e),
                answer => Ok(answer),
            });
        answers.collect::<Result<Vec<_>>>()
    });
    let forgotten = forget(router, requests.iter().map(|(seq, _)| *seq));
    let answers = answers?;
    forgotten?;
    let values = answers.into_iter();
    Ok(values
        .map(|answer| answer.and_then(outcome).map(text))
        .collect())
}

/// True if no later answer comes in time.
fn is_last(error: &Error) -> bool {
    matches!(error.code, Code::Timeout | Code::DeadGuest | Code::Store)
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
pub struct PendingRequest<'a> {
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
) -> Result<PendingRequest<'a>> {
    let writes = writes.iter();
    let writes = writes.map(|(name, value)| (&**name, value.as_bytes()));
    let request = encode(&Command::Write(writes.collect()))?;
    let _place = enter(&router)?;
    let seq = router.requests.seq();
    begin(seq)?;
    let seen = router.signals.seen();
    send(&router, &[(seq, request)])?;
    Ok(PendingRequest {
        router,
        seq,
        seen,
        _place,
    })
}

impl PendingRequest<'_> {
    /// Waits for the answer. The nodes stay there.
    pub fn wait_response(self) -> Result<Marks> {
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
    let response = exchange(&router, seq, request);
    let forgotten = forget(&router, [seq]);
    let response = response?;
    forgotten?;
    outcome(response)
}

/// Removes requests and their answers. In this order the guest need not look whether its answer
/// was taken.
fn forget(router: &Router<'_>, seqs: impl IntoIterator<Item = u32>) -> Result<()> {
    let nodes =
        |seq| ["response", "request"].map(|of| Change::remove(router.path(&format!("{of}/{seq}"))));
    let changes: Vec<_> = seqs.into_iter().flat_map(nodes).collect();
    router.store.apply(&changes)
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

/// Writes requests by their numbers. Their pieces get the permissions of the node above all
/// requests, which this function makes first. A request of one piece is therefore one write.
fn send(router: &Router<'_>, requests: &[(u32, Vec<u8>)]) -> Result<()> {
    let is_open = router.requests.is_open(router.rid);
    let folder = (!is_open).then(|| router.node("request", ""));
    let pieces = requests.iter().flat_map(|(seq, request)| {
        let pieces = split(request, TOOLSTACK_PIECE).into_iter().enumerate();
        pieces.map(move |(n, piece)| {
            let path = router.path(&format!("request/{seq}/{n}"));
            Change::write(path, piece)
        })
    });
    let changes: Vec<_> = folder.into_iter().chain(pieces).collect();
    router.store.commit(&changes)?;
    router.requests.set_open(router.rid);
    Ok(())
}

fn exchange(router: &Router<'_>, seq: u32, request: Vec<u8>) -> Result<Answer> {
    let seen = router.signals.seen();
    send(router, &[(seq, request)])?;
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
    Err(Error::new(code, crate::base::text::escape(&response.data)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Requests;
    use crate::store::sim::SimStore;
    use crate::store::{Signals, Watchers};
    use std::sync::Arc;
    use std::time::Duration;

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
    fn the_answers_of_a_batch_are_bounded() {
        let mut room = Room { limit: 4, bytes: 0 };
        let long = Error::new(Code::HandlerError, "\u{e4}".repeat(9000));
        let values = ["12", "345", "67", ""].map(|value| Ok(value.to_owned()));
        let taken: Vec<_> = values
            .into_iter()
            .chain([Err(long)])
            .map(|value| room.take(value).map_err(|e| (e.code, e.message)))
            .collect();
        let value = |text: &str| Ok(text.to_owned());
        let too_long = "the values have 5 bytes, the limit is 4".to_owned();
        let error = Err((Code::TooLong, too_long));
        let cut = Err((Code::HandlerError, "\u{e4}".repeat(ERROR_CHARS)));
        assert_eq!(taken, [value("12"), error, value("67"), value(""), cut]);
    }

    #[test]
    fn several_reads_leave_places_and_end_at_the_deadline() {
        let (store, signals) = (SimStore::default(), Arc::new(Signals::default()));
        let requests = Requests::default();
        let router = |deadline| Router {
            store: &store,
            signals: &signals,
            requests: &requests,
            domid: 1,
            rid: 0,
            deadline,
        };
        let later = router(Instant::now() + PATIENCE);
        let first = enter_some(&later, WINDOW).unwrap();
        let second = enter_some(&later, WINDOW - 1).unwrap();
        // One place is left, so a batch continues with one request at a time.
        let third = enter_some(&later, WINDOW).unwrap();
        assert_eq!([first.len(), second.len(), third.len()], [8, 7, 1]);
        drop((first, second, third));
        // The simulated guest leaves this handler unanswered.
        let reads = ["version", "c.count", "version"].map(|name| (name, ""));
        let error = read_many(router(Instant::now()), &reads, 1000).unwrap_err();
        assert_eq!(error.code, Code::Timeout);
        let left: Vec<_> = store
            .keys()
            .into_iter()
            .filter(|key| key.contains("/request/"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
        // Its places are free again.
        assert_eq!(enter_some(&later, 100).unwrap().len(), 16);
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
            let asked = scope.spawn(|| exchange(&router, 7, b"read c.count".to_vec()));
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
