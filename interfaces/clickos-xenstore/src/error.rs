// SPDX-License-Identifier: Apache-2.0
//! What can go wrong between a client and the store.
use alloc::string::String;
use core::fmt;

/// An error the store answers with (`xsd_errors` in `xen/io/xs_wire.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Invalid,
    Access,
    Exists,
    IsDirectory,
    NoEntry,
    NoMemory,
    NoSpace,
    Io,
    NotEmpty,
    NoSystemCall,
    ReadOnly,
    Busy,
    Again,
    IsConnected,
    TooBig,
    Permission,
}

const NAMES: [(Code, &str); 17] = [
    (Code::Invalid, "EINVAL"),
    (Code::Access, "EACCES"),
    (Code::Exists, "EEXIST"),
    (Code::IsDirectory, "EISDIR"),
    (Code::NoEntry, "ENOENT"),
    (Code::NoMemory, "ENOMEM"),
    (Code::NoSpace, "ENOSPC"),
    (Code::Io, "EIO"),
    (Code::NotEmpty, "ENOTEMPTY"),
    (Code::NoSystemCall, "ENOSYS"),
    (Code::ReadOnly, "EROFS"),
    (Code::Busy, "EBUSY"),
    (Code::Again, "EAGAIN"),
    (Code::IsConnected, "EISCONN"),
    (Code::TooBig, "E2BIG"),
    (Code::Permission, "EPERM"),
    // oxenstored's name for it.
    (Code::NoSpace, "EQUOTA"),
];

impl Code {
    /// Reads the payload of an error answer; a name this crate does not know is an I/O error.
    pub(crate) fn from_payload(payload: &[u8]) -> Self {
        let name = payload.strip_suffix(b"\0").unwrap_or(payload);
        let known = NAMES.iter().find(|(_, known)| known.as_bytes() == name);
        known.map_or(Code::Io, |(code, _)| *code)
    }

    /// The name on the wire, for example `ENOENT`.
    pub fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(code, _)| *code == self);
        known.map_or("EIO", |(_, name)| name)
    }
}

/// Why a request to the store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The store refused the request: its error and the path (empty when there is none).
    Store { code: Code, path: String },
    /// The path has a character or a length that the store does not take.
    BadPath(String),
    /// The request does not fit into one message.
    TooBig { len: usize, limit: usize },
    /// The other side broke the protocol; the connection is of no use any more.
    Protocol(&'static str),
    /// More watch events arrived than are kept, so the user has to read everything again.
    EventsLost,
    /// The connection failed or the answer did not come in time; it is of no use any more.
    Connection(String),
}

impl Error {
    /// True if the store answered with this code.
    pub fn is(&self, wanted: Code) -> bool {
        matches!(self, Error::Store { code, .. } if *code == wanted)
    }

    /// True if the connection is unusable after this error.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Error::Protocol(_) | Error::Connection(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Store { code, path } if path.is_empty() => write!(f, "store: {}", code.name()),
            Error::Store { code, path } => write!(f, "{path}: {}", code.name()),
            Error::BadPath(path) => write!(
                f,
                "{}: not a store path (A-Za-z0-9-/_@, at most 3072 bytes)",
                path.escape_default()
            ),
            Error::TooBig { len, limit } => {
                write!(f, "store message of {len} bytes, the limit is {limit}")
            }
            Error::Protocol(what) => write!(f, "store protocol: {what}"),
            Error::EventsLost => write!(f, "store: watch events were lost"),
            Error::Connection(what) => write!(f, "store connection: {what}"),
        }
    }
}

impl core::error::Error for Error {}
