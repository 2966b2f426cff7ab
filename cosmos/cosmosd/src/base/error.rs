// SPDX-License-Identifier: Apache-2.0
//! The daemon's errors: a code of docs/interfaces.md and a text for a person.

use std::fmt;

/// The error codes of docs/interfaces.md, "cosmosd".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    BadRequest,
    NoSuchGuest,
    Exists,
    NoMemory,
    TooMany,
    BadImage,
    BadConfig,
    NoSuchElement,
    NoSuchHandler,
    HandlerError,
    NotPermitted,
    DeadGuest,
    Busy,
    /// A numbered change that came too late.
    Stale,
    Unsupported,
    Timeout,
    /// An answer would be above a limit.
    TooLong,
    Store,
    Switch,
    /// A folder of state takes no write; nothing has changed.
    StateDir,
    Internal,
}

impl Code {
    /// The code as it travels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::NoSuchGuest => "no-such-guest",
            Self::Exists => "exists",
            Self::NoMemory => "no-memory",
            Self::TooMany => "too-many",
            Self::BadImage => "bad-image",
            Self::BadConfig => "bad-config",
            Self::NoSuchElement => "no-such-element",
            Self::NoSuchHandler => "no-such-handler",
            Self::HandlerError => "handler-error",
            Self::NotPermitted => "not-permitted",
            Self::DeadGuest => "dead-guest",
            Self::Busy => "busy",
            Self::Stale => "stale",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timeout",
            Self::TooLong => "too-long",
            Self::Store => "store",
            Self::Switch => "switch",
            Self::StateDir => "state-dir",
            Self::Internal => "internal",
        }
    }
}

/// In place of what a guest said about values that have secrets.
const HIDDEN: &str =
    "writes: the guest refused them; the values have secrets, so its reason is not shown";

/// The answer to a request that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The error of a write, without the guest's words if the values have secrets: a guest may
    /// repeat a value in any spelling.
    pub fn of_write(self, has_secrets: bool) -> Self {
        match self.code {
            Code::NoSuchElement
            | Code::NoSuchHandler
            | Code::HandlerError
            | Code::NotPermitted
            | Code::BadRequest
            | Code::Internal
                if has_secrets =>
            {
                Self::new(self.code, HIDDEN)
            }
            _ => self,
        }
    }

    /// The error after a change that the guest may have taken: it is no refusal.
    pub fn after_change(self) -> Self {
        match self.code {
            Code::StateDir => Self::new(Code::Internal, self.message),
            _ => self,
        }
    }

    /// An error of this daemon's own surroundings: a file, a process.
    pub fn internal(place: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(Code::Internal, format!("{place}: {cause}"))
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;
