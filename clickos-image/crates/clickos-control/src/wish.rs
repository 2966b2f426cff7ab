// SPDX-License-Identifier: Apache-2.0
//! Installing, swapping, halting and removing routers as the toolstack wishes.
use crate::control::Control;
use crate::node;
use crate::report;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use xenstore::Error;
use xenstore::Store;

/// How often a wish that changes while it is read is read again at once.
const TRIES: u32 = 8;
const NAME_MAX: usize = 255;
const DEFAULT_NAME: &str = "config";

/// What was done about a router's wishes so far.
#[derive(Default)]
pub(crate) struct Handled {
    pub(crate) generation: Option<u64>,
    /// Hash of the text that was installed last.
    text: Option<u64>,
}

/// A wish as it stands in the store.
struct Wish {
    generation: Option<u64>,
    status: Option<Vec<u8>>,
    name: String,
    text: Text,
}

enum Text {
    /// No pieces: the toolstack has taken them away, or there never were any.
    None,
    Whole(Vec<u8>),
    Bad(String),
}

impl<S: Store> Control<S> {
    /// Looks at the wish for a router. `by_hand`: its `status` was written, which is what a person
    /// does; without that only a new generation counts.
    pub(crate) async fn wish(&mut self, rid: u8, by_hand: bool) -> Result<(), Error> {
        for _ in 0..TRIES {
            let generation = self.generation(rid).await?;
            if !by_hand && !self.is_new(rid, generation) {
                return Ok(());
            }
            let wish = self.read_wish(rid, generation).await?;
            // Reading takes several requests: a wish that changed meanwhile is read again.
            if self.generation(rid).await? == generation {
                self.take_seed().await?;
                return self.fulfil(rid, wish).await;
            }
        }
        Ok(())
    }

    /// The toolstack may give random bits with a wish: they are new to a guest that was booted long
    /// before, and a processor may have none.
    async fn take_seed(&self) -> Result<(), Error> {
        if let Some(given) = self.link.read(&node::seed()).await? {
            self.routers.borrow_mut().mix_seed(&given);
        }
        Ok(())
    }

    fn is_new(&self, rid: u8, generation: Option<u64>) -> bool {
        let last = self
            .handled
            .get(&rid)
            .and_then(|handled| handled.generation);
        generation.is_some() && generation != last
    }

    async fn generation(&self, rid: u8) -> Result<Option<u64>, Error> {
        let value = self.link.read(&node::of_router(rid, "generation")).await?;
        Ok(value.and_then(|v| core::str::from_utf8(&v).ok()?.parse().ok()))
    }

    async fn read_wish(&self, rid: u8, generation: Option<u64>) -> Result<Wish, Error> {
        let status = self.link.read(&node::of_router(rid, "status")).await?;
        let name = self.link.read(&node::of_router(rid, "config_name")).await?;
        let name = name
            .and_then(good_name)
            .unwrap_or_else(|| DEFAULT_NAME.to_string());
        let text = self.read_text(rid, &name).await?;
        Ok(Wish {
            generation,
            status,
            name,
            text,
        })
    }

    async fn read_text(&self, rid: u8, name: &str) -> Result<Text, Error> {
        let root = node::of_router(rid, "config");
        let limit = self.routers.borrow().environment().limits.config_bytes;
        let names = self.link.list(&root).await?;
        let count = names.iter().filter_map(|name| node::number(name)).count();
        let mut text = Vec::new();
        for piece in 0..count {
            let Some(value) = self.link.read(&format!("{root}/{piece}")).await? else {
                return Ok(Text::Bad(format!("{name}: config/{piece} is missing")));
            };
            text.extend_from_slice(&value);
            if text.len() > limit {
                let error = "configuration is longer than the limit of";
                return Ok(Text::Bad(format!("{name}: {error} {limit} bytes")));
            }
        }
        Ok(if count == 0 {
            Text::None
        } else {
            Text::Whole(text)
        })
    }

    async fn fulfil(&mut self, rid: u8, wish: Wish) -> Result<(), Error> {
        let new = self.is_new(rid, wish.generation);
        self.handled.entry(rid).or_default().generation = wish.generation;
        if matches!(wish.text, Text::None) && !new && !self.routers.borrow().contains(rid) {
            return Ok(());
        }
        let result = self.apply(rid, &wish, new);
        self.answer_wish(rid, wish.generation.unwrap_or(0), result)
            .await
    }

    /// Changes the router; gives the word for `state`, or the error.
    fn apply(&mut self, rid: u8, wish: &Wish, new: bool) -> Result<&'static str, String> {
        let halted = match wish.status.as_deref() {
            None | Some(b"Running" | b"") => false,
            Some(b"Halted") => true,
            Some(_) => return Err("status: expected Running or Halted".to_string()),
        };
        match &wish.text {
            Text::Bad(error) => return Err(error.clone()),
            Text::None if new => self.remove(rid),
            Text::None => {}
            Text::Whole(text) if text.iter().all(u8::is_ascii_whitespace) => self.remove(rid),
            Text::Whole(text) => self.install(rid, &wish.name, text, new)?,
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
        let text = core::str::from_utf8(text).map_err(|e| not_utf8(name, text, e.valid_up_to()))?;
        let result = self.routers.borrow_mut().install(rid, name, text, now_ns);
        result.map_err(|errors| report::lines(&errors))?;
        handled.text = Some(hash);
        Ok(())
    }

    pub(crate) async fn answer_wish(
        &self,
        rid: u8,
        generation: u64,
        result: Result<&'static str, String>,
    ) -> Result<(), Error> {
        let (word, error) = match &result {
            Ok(word) => (*word, ""),
            Err(error) => ("Error", error.as_str()),
        };
        self.tell(rid, error).await?;
        self.tell_memory().await?;
        let state = format!("{word} {generation}");
        self.link
            .write(&node::of_router(rid, "state"), state.as_bytes())
            .await
    }

    /// Writes what the guest's memory has left, for whoever waits for the answer.
    async fn tell_memory(&self) -> Result<(), Error> {
        let Some(free_bytes) = self.free_bytes else {
            return Ok(());
        };
        let free_kib = (free_bytes() >> 10).to_string();
        self.link.write(&node::memory(), free_kib.as_bytes()).await
    }

    /// Writes a router's `error` node.
    pub(crate) async fn tell(&self, rid: u8, error: &str) -> Result<(), Error> {
        let error = report::clip(error, report::REPORT_MAX);
        self.link
            .write(&node::of_router(rid, "error"), error.as_bytes())
            .await
    }
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
