// SPDX-License-Identifier: Apache-2.0
//! Installing, swapping, halting and removing routers as the toolstack requests.
use crate::control::Control;
use crate::node;
use crate::report;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_core::{Limits, memory};
use click_lang::archive::Archive;
use clickos_protocol::ROOT;
use xenstore::Error;
use xenstore::Store;

/// Reads at once of a requested router that changes meanwhile.
const TRIES: u32 = 8;
const NAME_MAX: usize = 255;
const DEFAULT_NAME: &str = "config";
/// Bytes of a text that come out of the reserve.
const SMALL: usize = 16 << 10;
const GENERATION: &str = "generation";
/// The nodes whose events lead to a look at the requested router.
const REQUESTS: [&str; 2] = ["status", GENERATION];
/// Pieces of a configuration that are read at once.
const AT_ONCE: usize = 32;

/// The state of a router's requests so far.
#[derive(Default)]
pub(crate) struct Handled {
    pub(crate) generation: Option<u64>,
    /// Hash of the text that was installed last.
    text: Option<u64>,
    /// The guest's last value of `state`.
    state: String,
    /// Its last value of `error`.
    error: String,
    /// The next watch event of `state` is that of the guest's own write. Two writes may cause one
    /// event only.
    pub(crate) echo: bool,
}

impl Handled {
    /// A router without an answer so far gets this word.
    fn tell(&mut self, word: &str) {
        if self.state.is_empty() {
            self.state = format!("{word} 0");
        }
    }

    /// Word, generation and error of the last answer.
    fn last(&self) -> Option<(String, u64, String)> {
        let (word, generation) = self.state.split_once(' ')?;
        Some((word.into(), generation.parse().ok()?, self.error.clone()))
    }
}

/// A requested router as the store has it.
struct RouterSpec {
    generation: Option<u64>,
    status: Option<Vec<u8>>,
    name: String,
    text: Text,
}

impl RouterSpec {
    fn halted(&self) -> Result<bool, String> {
        match self.status.as_deref() {
            None | Some(b"Running" | b"") => Ok(false),
            Some(b"Halted") => Ok(true),
            Some(_) => Err("status: expected Running or Halted".to_string()),
        }
    }
}

/// The nodes of a spec, as they were read one after the other.
struct Nodes {
    generation: Option<Vec<u8>>,
    status: Option<Vec<u8>>,
    name: Option<Vec<u8>>,
    first: Option<Vec<u8>>,
    generation_after: Option<Vec<u8>>,
    seed: Option<Vec<u8>>,
    pieces: usize,
}

enum Text {
    /// No pieces: the toolstack has taken them away, or there never were any.
    None,
    Whole(Vec<u8>),
    Bad(String),
}

impl<S: Store> Control<S> {
    /// Looks at the requested router. `by_hand`: its `status` was written, which is what a person
    /// does; without that only a new generation counts.
    ///
    /// The events of one request must lead to one answer. Any of them may be missing, because an
    /// equal one of the request before still waited; so the rest is dropped before the nodes are
    /// read, and what arrives while they are read leads to another look.
    pub(crate) async fn look_at_spec(&mut self, rid: u8, mut by_hand: bool) -> Result<(), Error> {
        // A router's first spec, for which somebody waits who starts a guest, is read at once.
        let known = self.handled.contains_key(&rid);
        if known && !by_hand && !self.is_new(rid, self.generation(rid).await?) {
            return Ok(());
        }
        for left in (0..TRIES).rev() {
            by_hand |= self.drop_announced(rid);
            if let Some(spec) = self.read_spec(rid).await?
                && (left == 0 || !self.is_announced(rid))
            {
                self.next_round().await;
                return match by_hand || self.is_new(rid, spec.generation) {
                    true => self.fulfil(rid, spec).await,
                    false => Ok(()),
                };
            }
        }
        Ok(())
    }

    /// True if an event of a request for this router waits.
    fn is_announced(&self, rid: u8) -> bool {
        REQUESTS.map(|key| self.link.has_event(&node::of_router(rid, key))) != [false; 2]
    }

    /// Drops the events of requests for this router; true if its `status` was written.
    fn drop_announced(&self, rid: u8) -> bool {
        let [status, _] = REQUESTS.map(|key| self.link.drop_event(&node::of_router(rid, key)));
        status
    }

    fn is_new(&self, rid: u8, generation: Option<u64>) -> bool {
        let last = self
            .handled
            .get(&rid)
            .and_then(|handled| handled.generation);
        generation.is_some() && generation != last
    }

    async fn generation(&self, rid: u8) -> Result<Option<u64>, Error> {
        let value = self.link.read(&node::of_router(rid, GENERATION)).await?;
        Ok(value.and_then(decimal))
    }

    /// Reads a requested router; `None` if it changed meanwhile.
    ///
    /// The toolstack may give random bits with it: they are new to a guest that was booted long
    /// before, and a processor may have none.
    async fn read_spec(&self, rid: u8) -> Result<Option<RouterSpec>, Error> {
        let nodes = self.read_nodes(rid).await?;
        let name = nodes.name.and_then(good_name);
        let name = name.unwrap_or_else(|| DEFAULT_NAME.to_string());
        let text = self
            .read_text(rid, &name, nodes.first, nodes.pieces)
            .await?;
        let generation = nodes.generation.and_then(decimal);
        let now = match nodes.pieces {
            0 | 1 => nodes.generation_after.and_then(decimal),
            _ => self.generation(rid).await?,
        };
        if now != generation {
            return Ok(None);
        }
        if let Some(given) = nodes.seed {
            self.routers.borrow_mut().mix_seed(&given);
        }
        Ok(Some(RouterSpec {
            generation,
            status: nodes.status,
            name,
            text,
        }))
    }

    /// Reads a requested router's nodes all at once, with the first piece, which is mostly the only
    /// one.
    async fn read_nodes(&self, rid: u8) -> Result<Nodes, Error> {
        let keys = [GENERATION, "status", "config_name", "config/0", GENERATION];
        let mut paths = Vec::from(keys.map(|key| node::of_router(rid, key)));
        paths.push(node::seed());
        let folder = node::of_router(rid, "config");
        let (values, names) = self.link.read_and_list(&paths, &folder).await?;
        let mut values = values.into_iter();
        let mut next = || values.next().flatten();
        Ok(Nodes {
            generation: next(),
            status: next(),
            name: next(),
            first: next(),
            generation_after: next(),
            seed: next(),
            // A list that no message takes is that of a text beyond all limits.
            pieces: names.map_or(usize::MAX, |names| {
                names.iter().filter_map(|n| node::number(n)).count()
            }),
        })
    }

    /// The configuration of `n` pieces, after the first one.
    async fn read_text(
        &self,
        rid: u8,
        name: &str,
        first: Option<Vec<u8>>,
        pieces: usize,
    ) -> Result<Text, Error> {
        if pieces == 0 {
            return Ok(Text::None);
        }
        let limits = self.routers.borrow().environment().limits;
        let mut config = Config::new(name, limits);
        let mut added = config.add(first);
        for start in (1..pieces).step_by(AT_ONCE) {
            if added.is_err() {
                break;
            }
            let numbers = start..pieces.min(start + AT_ONCE);
            let path = |n| node::of_router(rid, &format!("config/{n}"));
            let paths: Vec<String> = numbers.map(path).collect();
            let mut values = self.link.read_all(&paths).await?.into_iter();
            added = values.try_for_each(|value| config.add(value));
        }
        Ok(match added {
            Ok(()) => Text::Whole(config.text),
            Err(error) => Text::Bad(error),
        })
    }

    async fn fulfil(&mut self, rid: u8, spec: RouterSpec) -> Result<(), Error> {
        let new = self.is_new(rid, spec.generation);
        self.handled.entry(rid).or_default().generation = spec.generation;
        if matches!(spec.text, Text::None) && !new && !self.routers.borrow().contains(rid) {
            return Ok(());
        }
        let (word, error) = match self.apply(rid, &spec, new) {
            Ok(word) => (word, String::new()),
            Err(error) => (self.after_refusal(rid, &spec, new), error),
        };
        self.answer_spec(rid, spec.generation.unwrap_or(0), word, &error)
            .await
    }

    /// The word for a refused spec. A person's `status` counts for the router that is there, even
    /// next to a text that does not start.
    fn after_refusal(&mut self, rid: u8, spec: &RouterSpec, new: bool) -> &'static str {
        let mut routers = self.routers.borrow_mut();
        match spec.halted() {
            Ok(halted) if !new && routers.contains(rid) => {
                routers.set_halted(rid, halted);
                if halted { "Halted" } else { "Error" }
            }
            _ => "Error",
        }
    }

    /// Changes the router; gives the word for `state`, or the error.
    fn apply(&mut self, rid: u8, spec: &RouterSpec, new: bool) -> Result<&'static str, String> {
        let halted = spec.halted()?;
        match &spec.text {
            Text::Bad(error) => return Err(error.clone()),
            Text::None if new => self.remove(rid),
            Text::None => {}
            Text::Whole(text) if text.iter().all(u8::is_ascii_whitespace) => self.remove(rid),
            Text::Whole(text) => self.install(rid, &spec.name, text, new)?,
        }
        let mut routers = self.routers.borrow_mut();
        routers.set_halted(rid, halted);
        Ok(routers.state(rid))
    }

    fn remove(&mut self, rid: u8) {
        self.routers.borrow_mut().remove(rid);
        self.handled.entry(rid).or_default().text = None;
    }

    fn install(&mut self, rid: u8, name: &str, text: &[u8], new: bool) -> Result<(), String> {
        let hash = hash(text);
        let now_ns = self.now_ns();
        let handled = self.handled.entry(rid).or_default();
        if !new && handled.text == Some(hash) {
            return Ok(());
        }
        let archive = Archive::of(text).map_err(|error| format!("{name}: {error}"))?;
        let config = match &archive {
            Some(archive) => archive
                .config()
                .map_err(|error| format!("{name}: {error}"))?,
            None => text,
        };
        let config =
            core::str::from_utf8(config).map_err(|e| not_utf8(name, config, e.valid_up_to()))?;
        let mut routers = self.routers.borrow_mut();
        routers.install(rid, name, config, archive.as_ref(), now_ns)?;
        handled.text = Some(hash);
        Ok(())
    }

    /// The node that the toolstack waits for comes first. An empty `error` stays as it is.
    pub(crate) async fn answer_spec(
        &mut self,
        rid: u8,
        generation: u64,
        word: &str,
        error: &str,
    ) -> Result<(), Error> {
        let error = report::clip(error, report::REPORT_MAX);
        let state = format!("{word} {generation}");
        let free = self
            .free_bytes
            .map(|free_bytes| (free_bytes() >> 10).to_string());
        let mut values = Vec::new();
        if self.changes_error(rid, error) {
            values.push((node::of_router(rid, "error"), error.as_bytes()));
        }
        values.push((node::of_router(rid, "state"), state.as_bytes()));
        values.extend(free.iter().map(|kib| (node::memory(), kib.as_bytes())));
        self.link.write_all(&values).await?;
        let handled = self.handled.entry(rid).or_default();
        handled.state = state;
        handled.error = error.to_string();
        handled.echo = true;
        Ok(())
    }

    /// Tells an empty store the last answer for each router, and what else runs.
    pub(crate) async fn tell_states(&mut self) -> Result<(), Error> {
        let states = self.routers.borrow().states();
        for (rid, word) in states {
            self.handled.entry(rid).or_default().tell(word);
        }
        let told = self.handled.iter();
        let told: Vec<_> = told
            .filter_map(|(rid, h)| Some((*rid, h.last()?)))
            .collect();
        for (rid, (word, generation, error)) in told {
            self.answer_spec(rid, generation, &word, &error).await?;
        }
        Ok(())
    }

    /// A router's `state` changed: the guest wrote it, or a person did or removed it. Then the guest
    /// writes it again.
    pub(crate) async fn state_changed(&mut self, rid: u8) -> Result<(), Error> {
        let Some(handled) = self.handled.get_mut(&rid) else {
            return Ok(());
        };
        if core::mem::take(&mut handled.echo) {
            return Ok(());
        }
        let (path, state) = (node::of_router(rid, "state"), handled.state.clone());
        let there = self.link.read(&path).await?;
        if there.as_deref() == Some(state.as_bytes()) || !self.has_keys(rid).await? {
            return Ok(());
        }
        self.link.write(&path, state.as_bytes()).await?;
        self.handled.entry(rid).or_default().echo = true;
        Ok(())
    }

    /// True if a router has a node in the store; also after a restore, when the node may still be
    /// missing.
    pub(crate) async fn has_keys(&self, rid: u8) -> Result<bool, Error> {
        let names = self.link.list(ROOT).await?;
        Ok(self.resumed() || names.contains(&rid.to_string()))
    }

    /// Ends a router whose keys were removed, and forgets it.
    pub(crate) fn end_router(&mut self, rid: u8) {
        self.remove(rid);
        self.handled.remove(&rid);
        self.told.remove(&rid);
        self.element_nodes.forget(rid);
        self.say(&format!(
            "router {rid}: its keys were removed: it has ended"
        ));
    }

    /// True if a router's `error` node has to be written for this text; it is going to be.
    fn changes_error(&mut self, rid: u8, error: &str) -> bool {
        match error.is_empty() {
            true => self.told.remove(&rid),
            false => {
                self.told.insert(rid);
                true
            }
        }
    }

    /// Writes a router's `error` node.
    pub(crate) async fn tell(&mut self, rid: u8, error: &str) -> Result<(), Error> {
        self.changes_error(rid, error);
        let error = report::clip(error, report::REPORT_MAX);
        self.link
            .write(&node::of_router(rid, "error"), error.as_bytes())
            .await
    }
}

/// Pieces of a configuration, joined.
struct Config<'a> {
    name: &'a str,
    limits: Limits,
    pieces: usize,
    text: Vec<u8>,
}

impl<'a> Config<'a> {
    fn new(name: &'a str, limits: Limits) -> Self {
        Self {
            name,
            limits,
            pieces: 0,
            text: Vec::new(),
        }
    }

    fn add(&mut self, piece: Option<Vec<u8>>) -> Result<(), String> {
        let (name, number) = (self.name, self.pieces);
        let (limit, reserve) = (self.limits.config_bytes, self.limits.reserve_bytes);
        let piece = piece.ok_or_else(|| format!("{name}: config/{number} is missing"))?;
        self.pieces += 1;
        let bytes = self.text.len() + piece.len();
        if bytes > limit {
            let error = "configuration is longer than the limit of";
            return Err(format!("{name}: {error} {limit} bytes"));
        }
        // The parser needs a copy of the text.
        if bytes > SMALL && !memory::has_room(reserve + 3 * bytes) {
            let (error, reserve) = ("its text leaves less than", reserve >> 10);
            return Err(format!(
                "{name}: {error} {reserve} KiB of the memory, the limit"
            ));
        }
        self.text.extend_from_slice(&piece);
        Ok(())
    }
}

fn decimal(value: Vec<u8>) -> Option<u64> {
    core::str::from_utf8(&value).ok()?.parse().ok()
}

fn good_name(value: Vec<u8>) -> Option<String> {
    let name = String::from_utf8(value).ok()?;
    let good = !name.is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_control);
    good.then_some(name)
}

fn not_utf8(name: &str, text: &[u8], at: usize) -> String {
    let line = 1 + text[..at].iter().filter(|b| **b == b'\n').count();
    let start = text[..at]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |end| end + 1);
    let column = 1 + String::from_utf8_lossy(&text[start..at]).chars().count();
    format!(
        "{name}:{line}:{column}: byte 0x{:02x} is not UTF-8 text",
        text[at]
    )
}

/// FNV-1a, to notice that a text is the one installed already. Not meant to resist forgery: only
/// the toolstack writes what is hashed.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_of_a_bad_byte() {
        let text = "ok\né\u{e9}".as_bytes();
        let text = [text, b"\xff"].concat();
        assert_eq!(
            not_utf8("a", &text, text.len() - 1),
            "a:2:3: byte 0xff is not UTF-8 text"
        );
        assert_eq!(
            not_utf8("a", b"\xff", 0),
            "a:1:1: byte 0xff is not UTF-8 text"
        );
    }

    #[test]
    fn names() {
        assert_eq!(good_name(b"fw.click".to_vec()).as_deref(), Some("fw.click"));
        for bad in [&b""[..], b"a\nb", b"\x1b[2J", b"\xff", &[b'x'; 256]] {
            assert_eq!(good_name(bad.to_vec()), None);
        }
    }
}
