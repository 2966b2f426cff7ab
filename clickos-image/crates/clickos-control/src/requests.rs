// SPDX-License-Identifier: Apache-2.0
//! Handler requests of programs and their answers.
use crate::control::Control;
use crate::node;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use click_core::{ANSWER_COPIES, memory};
use clickos_protocol::{ANSWER_MAX, ANSWER_NODES, Answer, Command, GUEST_PIECE, Joined, Joiner};
use xenstore::Error;
use xenstore::Store;

/// Answers that were not taken away yet.
const OPEN_MAX: usize = 16;
/// Requests that wait; more are not seen until the toolstack touches them again.
const WAITING_MAX: usize = 1024;
/// Pieces of an answer that are written at once.
const AT_ONCE: usize = 32;
/// Pieces of the longest answer to a write that was made: a line marks each write.
#[cfg(feature = "relink")]
const RETOLD: usize =
    (clickos_protocol::WRITES_MAX * "1023 command\n".len()).div_ceil(GUEST_PIECE) + 1;
/// Bytes of an answer that come out of the reserve.
const SMALL: usize = 16 << 10;
/// Bytes of a request besides the handlers' values.
const OVERHEAD_MAX: usize = 64 << 10;

/// Requests under way.
#[derive(Default)]
pub(crate) struct Requests {
    /// Answered, and the answer still there.
    open: BTreeMap<(u8, u32), Open>,
    waiting: VecDeque<(u8, u32)>,
}

/// An answer that was not taken away yet.
struct Open {
    nodes: usize,
    /// To be told again to a store that lost it; empty for a long one, which no write has.
    #[cfg(feature = "relink")]
    pieces: Vec<Vec<u8>>,
}

impl Open {
    fn of(pieces: &[Vec<u8>]) -> Self {
        Self {
            nodes: pieces.len(),
            #[cfg(feature = "relink")]
            pieces: match pieces.len() <= RETOLD {
                true => pieces.to_vec(),
                false => Vec::new(),
            },
        }
    }
}

impl Requests {
    fn wait(&mut self, key: (u8, u32)) {
        let known = self.open.contains_key(&key) || self.waiting.contains(&key);
        if !known && self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(key);
        }
    }

    fn next(&mut self) -> Option<(u8, u32)> {
        if self.open.len() < OPEN_MAX {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    fn nodes(&self) -> usize {
        self.open.values().map(|open| open.nodes).sum()
    }
}

impl<S: Store> Control<S> {
    /// A piece of a request was written.
    pub(crate) async fn request_arrived(&mut self, rid: u8, seq: u32) -> Result<(), Error> {
        self.requests.wait((rid, seq));
        self.serve_requests().await
    }

    /// The requester took an answer away.
    pub(crate) async fn response_gone(&mut self, rid: u8, seq: u32) -> Result<(), Error> {
        self.requests.open.remove(&(rid, seq));
        self.count_answers();
        self.serve_requests().await
    }

    /// The toolstack removed a request, perhaps before its answer came; the guest then removes the
    /// answer.
    pub(crate) async fn request_changed(&mut self, rid: u8, seq: u32) -> Result<(), Error> {
        let first = format!("{}/0", node::request(rid, seq));
        if self.requests.open.contains_key(&(rid, seq)) && self.link.read(&first).await?.is_none() {
            self.link.remove(&node::response(rid, seq)).await?;
            self.requests.open.remove(&(rid, seq));
            self.count_answers();
        }
        self.serve_requests().await
    }

    fn count_answers(&self) {
        let open = self.requests.open.len();
        self.routers.borrow_mut().set_answers(open);
    }

    /// Compares what is in the store with what is known.
    pub(crate) async fn look_at_requests(&mut self, rid: u8) -> Result<(), Error> {
        let names = self.link.list(&node::of_router(rid, "request")).await?;
        names
            .iter()
            .filter_map(|name| node::number(name))
            .for_each(|seq| {
                self.requests.wait((rid, seq));
            });
        let open: Vec<u32> = self
            .requests
            .open
            .keys()
            .filter(|k| k.0 == rid)
            .map(|k| k.1)
            .collect();
        for seq in open {
            self.request_changed(rid, seq).await?;
        }
        self.serve_requests().await
    }

    async fn serve_requests(&mut self) -> Result<(), Error> {
        while let Some((rid, seq)) = self.requests.next() {
            // The one that is carried out now counts, too.
            self.routers
                .borrow_mut()
                .set_answers(self.requests.open.len() + 1);
            if let Some((code, data)) = self.carry_out(rid, seq).await? {
                self.respond(rid, seq, code, data).await?;
            }
            self.count_answers();
        }
        Ok(())
    }

    /// Code and data of the answer; `None` if the request is not complete, or gone.
    async fn carry_out(&self, rid: u8, seq: u32) -> Result<Option<(u16, Vec<u8>)>, Error> {
        let limit = self.routers.borrow().environment().limits.handler_bytes + OVERHEAD_MAX;
        let mut joiner = Joiner::new(limit);
        for piece in 0_u32.. {
            let path = format!("{}/{piece}", node::request(rid, seq));
            let Some(value) = self.link.read(&path).await? else {
                return Ok(None);
            };
            match joiner.add(&value) {
                Joined::More => {}
                Joined::Whole => break,
                Joined::Malformed => return Ok(Some(failure(500, "piece without + or ."))),
                Joined::TooLong => {
                    let text = format!("request is longer than the limit of {limit} bytes");
                    return Ok(Some(failure(590, &text)));
                }
            }
        }
        Ok(Some(match Command::parse(joiner.data()) {
            Ok(command) => self.routers.borrow_mut().call(rid, &command, self.now_ns()),
            Err(error) => failure(500, &error),
        }))
    }

    async fn respond(&mut self, rid: u8, seq: u32, code: u16, data: Vec<u8>) -> Result<(), Error> {
        let size = data.len();
        let (code, data) = match size <= SMALL || memory::has_room(ANSWER_COPIES * size) {
            true => (code, data),
            false => failure(
                590,
                &format!("no memory is left for an answer of {size} bytes"),
            ),
        };
        let mut pieces = Answer { code, data }.encode();
        let free = ANSWER_NODES.saturating_sub(self.requests.nodes());
        if size > ANSWER_MAX || pieces.len() + OPEN_MAX > free {
            let limit = ANSWER_MAX.min(free.saturating_sub(OPEN_MAX) * GUEST_PIECE);
            pieces = refusal(&format!("answer of {size} bytes, the limit is {limit} now"));
        }
        self.requests.open.insert((rid, seq), Open::of(&pieces));
        match self.write_answer(rid, seq, &pieces).await {
            Err(error) if !error.is_fatal() => {
                let pieces = refusal(&format!("the answer was refused: {error}"));
                self.write_answer(rid, seq, &pieces).await
            }
            result => result,
        }
    }

    /// Tells the answers that are left to a store that lost them, and forgets all requests. The
    /// toolstack finds there what the guest did.
    #[cfg(feature = "relink")]
    pub(crate) async fn tell_answers(&mut self) -> Result<(), Error> {
        let lost = core::mem::take(&mut self.requests);
        for ((rid, seq), open) in lost.open {
            self.write_answer(rid, seq, &open.pieces).await?;
        }
        Ok(())
    }

    async fn write_answer(&self, rid: u8, seq: u32, pieces: &[Vec<u8>]) -> Result<(), Error> {
        let root = node::response(rid, seq);
        let numbered = pieces.iter().enumerate();
        let values: Vec<_> = numbered
            .map(|(number, piece)| (format!("{root}/{number}"), piece.as_slice()))
            .collect();
        for some in values.chunks(AT_ONCE) {
            if let Err(error) = self.link.write_all(some).await {
                self.link.remove(&root).await?;
                return Err(error);
            }
        }
        Ok(())
    }
}

fn failure(code: u16, text: &str) -> (u16, Vec<u8>) {
    (code, String::from(text).into_bytes())
}

fn refusal(text: &str) -> Vec<Vec<u8>> {
    let (code, data) = failure(590, text);
    Answer { code, data }.encode()
}
