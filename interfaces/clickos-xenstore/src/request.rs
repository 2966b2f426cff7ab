// SPDX-License-Identifier: Apache-2.0
//! Requests: a type, a transaction and a checked payload, the same for socket and ring.
use crate::error::Error;
use crate::perms::Perm;
use crate::wire::{HEADER_LEN, Header, Kind, PAYLOAD_MAX, check_path};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A transaction of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tx(pub(crate) u32);

impl Tx {
    /// Outside of any transaction.
    pub const NONE: Tx = Tx(0);

    /// Reads the answer to [`Request::transaction_start`].
    ///
    /// # Errors
    /// [`Error::Protocol`] if it is not a transaction's number.
    pub fn from_reply(reply: &[u8]) -> Result<Tx, Error> {
        let id = text(reply)
            .ok()
            .and_then(|t| t.parse().ok())
            .filter(|id| *id != 0);
        id.map(Tx).ok_or(Error::Protocol("bad transaction number"))
    }
}

/// One request, valid by construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) kind: Kind,
    pub(crate) tx: Tx,
    pub(crate) path: String,
    pub(crate) payload: Vec<u8>,
}

impl Request {
    fn new(kind: Kind, tx: Tx, path: &str, rest: &[u8]) -> Result<Self, Error> {
        check_path(path)?;
        let mut payload = Vec::with_capacity(path.len() + 1 + rest.len());
        payload.extend_from_slice(path.as_bytes());
        payload.push(0);
        payload.extend_from_slice(rest);
        if payload.len() > PAYLOAD_MAX {
            return Err(Error::TooBig {
                len: payload.len(),
                limit: PAYLOAD_MAX,
            });
        }
        Ok(Self {
            kind,
            tx,
            path: path.to_string(),
            payload,
        })
    }

    fn plain(kind: Kind, strings: &[&str]) -> Self {
        let payload = strings.iter().flat_map(|s| s.bytes().chain([0])).collect();
        Self {
            kind,
            tx: Tx::NONE,
            path: String::new(),
            payload,
        }
    }

    /// Reads a node's value.
    pub fn read(tx: Tx, path: &str) -> Result<Self, Error> {
        Self::new(Kind::Read, tx, path, b"")
    }

    /// Writes a node's value; missing nodes on the way are made.
    pub fn write(tx: Tx, path: &str, value: &[u8]) -> Result<Self, Error> {
        Self::new(Kind::Write, tx, path, value)
    }

    /// Makes an empty node unless it exists.
    pub fn mkdir(tx: Tx, path: &str) -> Result<Self, Error> {
        Self::new(Kind::Mkdir, tx, path, b"")
    }

    /// Removes a node and all below it; removing nothing is fine if the parent exists.
    pub fn rm(tx: Tx, path: &str) -> Result<Self, Error> {
        Self::new(Kind::Rm, tx, path, b"")
    }

    /// Lists the children's names.
    pub fn directory(tx: Tx, path: &str) -> Result<Self, Error> {
        Self::new(Kind::Directory, tx, path, b"")
    }

    /// Lists a part of the children's names, from a byte offset, for lists beyond one message.
    pub fn directory_part(tx: Tx, path: &str, offset: usize) -> Result<Self, Error> {
        Self::new(
            Kind::DirectoryPart,
            tx,
            path,
            alloc::format!("{offset}\0").as_bytes(),
        )
    }

    /// Reads a node's permissions.
    pub fn get_perms(tx: Tx, path: &str) -> Result<Self, Error> {
        Self::new(Kind::GetPerms, tx, path, b"")
    }

    /// Sets a node's permissions; the first entry names the owner.
    pub fn set_perms(tx: Tx, path: &str, perms: &[Perm]) -> Result<Self, Error> {
        let rest: String = perms.iter().map(|p| alloc::format!("{p}\0")).collect();
        Self::new(Kind::SetPerms, tx, path, rest.as_bytes())
    }

    /// Watches a node and all below it. The store answers with one event at once.
    pub fn watch(path: &str, token: &str) -> Result<Self, Error> {
        Self::new(Kind::Watch, Tx::NONE, path, &terminated(token)?)
    }

    /// Ends a watch.
    pub fn unwatch(path: &str, token: &str) -> Result<Self, Error> {
        Self::new(Kind::Unwatch, Tx::NONE, path, &terminated(token)?)
    }

    /// Asks whether a domain is connected and not dying; the answer is `T` or `F`.
    pub fn is_introduced(domid: u16) -> Self {
        Self::plain(Kind::IsDomainIntroduced, &[&domid.to_string()])
    }

    /// Starts a transaction; the answer is read by [`Tx::from_reply`].
    pub fn transaction_start() -> Self {
        Self::plain(Kind::TransactionStart, &[""])
    }

    /// Ends a transaction; the store answers `EAGAIN` if another change came between.
    pub fn transaction_end(tx: Tx, commit: bool) -> Self {
        let flag = if commit { "T" } else { "F" };
        Self {
            tx,
            ..Self::plain(Kind::TransactionEnd, &[flag])
        }
    }

    /// Connects a domain: its store ring's frame and event channel (dom0 only).
    pub fn introduce(domid: u16, frame: u64, evtchn_port: u32) -> Self {
        let numbers = [
            domid.to_string(),
            frame.to_string(),
            evtchn_port.to_string(),
        ];
        Self::plain(Kind::Introduce, &numbers.each_ref().map(|n| n.as_str()))
    }

    /// Disconnects a domain (dom0 only).
    pub fn release(domid: u16) -> Self {
        Self::plain(Kind::Release, &[&domid.to_string()])
    }

    /// The node it is about; empty if it is not about one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// True if it sets a watch.
    pub(crate) fn is_watch(&self) -> bool {
        self.kind == Kind::Watch
    }

    /// The message's bytes with this request number.
    pub fn encode(&self, req_id: u32) -> Vec<u8> {
        let header = Header {
            kind: self.kind as u32,
            req_id,
            tx_id: self.tx.0,
            // Every constructor keeps the payload within PAYLOAD_MAX.
            len: self.payload.len() as u32,
        };
        let mut out = Vec::with_capacity(HEADER_LEN + self.payload.len());
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&self.payload);
        out
    }
}

fn terminated(token: &str) -> Result<Vec<u8>, Error> {
    if token.contains('\0') {
        return Err(Error::Protocol("NUL in a watch token"));
    }
    Ok(token.bytes().chain([0]).collect())
}

/// Reads an answer that is one string.
pub(crate) fn text(reply: &[u8]) -> Result<&str, Error> {
    let bytes = reply.strip_suffix(b"\0").unwrap_or(reply);
    core::str::from_utf8(bytes).map_err(|_| Error::Protocol("answer is not text"))
}

/// Reads an answer that is a list of NUL-terminated strings.
pub(crate) fn strings(reply: &[u8]) -> Result<Vec<String>, Error> {
    if reply.is_empty() {
        return Ok(Vec::new());
    }
    let whole = text(
        reply
            .strip_suffix(b"\0")
            .ok_or(Error::Protocol("list without its end"))?,
    )?;
    Ok(whole.split('\0').map(String::from).collect())
}

/// Reads an answer that is a list of names, as of [`Request::directory`].
///
/// # Errors
/// [`Error::Protocol`] if the store sent something else.
pub fn names(reply: &[u8]) -> Result<Vec<String>, Error> {
    strings(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perms::Access;
    use alloc::vec;

    #[test]
    fn write_puts_no_nul_after_the_value() {
        let request = Request::write(Tx(3), "/a", b"v").unwrap();
        assert_eq!(request.payload, b"/a\0v");
        assert_eq!(request.encode(9).len(), 16 + 4);
    }

    #[test]
    fn perms_and_introduce_are_nul_terminated() {
        let perms = [Perm::new(Access::None, 0), Perm::new(Access::Read, 5)];
        assert_eq!(
            Request::set_perms(Tx::NONE, "/a", &perms).unwrap().payload,
            b"/a\0n0\0r5\0"
        );
        assert_eq!(Request::introduce(5, 1, 2).payload, b"5\x001\x002\0");
        assert_eq!(Request::release(5).payload, b"5\0");
    }

    #[test]
    fn too_big_is_refused() {
        let value = vec![0; PAYLOAD_MAX];
        let error = Request::write(Tx::NONE, "/a", &value).unwrap_err();
        assert_eq!(
            error,
            Error::TooBig {
                len: PAYLOAD_MAX + 3,
                limit: PAYLOAD_MAX
            }
        );
    }

    #[test]
    fn answers_are_checked() {
        assert_eq!(names(b"").unwrap(), Vec::<String>::new());
        assert_eq!(names(b"a\0b\0").unwrap(), ["a", "b"]);
        assert!(names(b"a").is_err());
        assert!(names(b"\xff\0").is_err());
        assert_eq!(Tx::from_reply(b"12\0").unwrap(), Tx(12));
        for bad in [&b""[..], b"0\0", b"-1\0", b"x\0", b"99999999999\0"] {
            assert!(Tx::from_reply(bad).is_err());
        }
    }
}
