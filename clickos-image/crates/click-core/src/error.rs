// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a handler.
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use click_lang::tidy;

use crate::config::value::Shown;

/// Why a handler call failed; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// The call itself is malformed.
    Syntax {
        /// The name as given.
        name: String,
        /// Its fault.
        message: String,
    },
    /// There is no such element.
    NoSuchElement {
        /// The handler's full name.
        name: String,
    },
    /// The element has no such handler.
    NoSuchHandler {
        /// The handler's full name.
        name: String,
    },
    /// The element refused the value.
    Rejected {
        /// The handler's full name; empty until the router fills it in.
        name: String,
        /// Why.
        message: String,
    },
    /// The handler cannot be read, or cannot be written.
    NotPermitted {
        /// The handler's full name.
        name: String,
        /// `read` or `written`.
        message: String,
    },
}

impl HandlerError {
    /// An element's refusal of a value; the router adds the handler's name.
    pub fn rejected(message: impl ToString) -> Self {
        Self::of_message(message.to_string())
    }

    #[cold]
    #[inline(never)]
    fn of_message(message: String) -> Self {
        Self::Rejected {
            name: String::new(),
            message: tidied(message),
        }
    }

    /// There is no element of this handler's full name.
    pub(crate) fn no_element(name: &str) -> Self {
        let name = tidied(name.into());
        Self::NoSuchElement { name }
    }

    /// The element has no handler of this full name.
    pub(crate) fn no_handler(name: &str) -> Self {
        let name = tidied(name.into());
        Self::NoSuchHandler { name }
    }

    /// The refusal of a read with a parameter by a handler that takes none.
    pub fn takes_no_parameter(param: &str) -> Self {
        let shown = param.shown();
        Self::rejected(format!("the handler takes no parameter, got \"{shown}\""))
    }

    /// The code in answers of a guest (`docs/control-protocol.md`). The codes are those of Click's
    /// ControlSocket except that of `Syntax`, which there also means an unknown request.
    pub fn code(&self) -> u16 {
        match self {
            Self::Syntax { .. } => 501,
            Self::NoSuchElement { .. } => 510,
            Self::NoSuchHandler { .. } => 511,
            Self::Rejected { .. } => 520,
            Self::NotPermitted { .. } => 530,
        }
    }

    /// The full name of the handler that was called.
    pub fn name(&self) -> &str {
        match self {
            Self::Syntax { name, .. }
            | Self::NoSuchElement { name }
            | Self::NoSuchHandler { name }
            | Self::Rejected { name, .. }
            | Self::NotPermitted { name, .. } => name,
        }
    }

    /// Why the call failed, without the handler's name.
    pub fn into_message(self) -> String {
        match self {
            Self::Syntax { message, .. }
            | Self::Rejected { message, .. }
            | Self::NotPermitted { message, .. } => message,
            Self::NoSuchElement { .. } | Self::NoSuchHandler { .. } => self.to_string(),
        }
    }

    /// The error with the full name of the handler.
    #[must_use]
    pub fn named(mut self, full: &str) -> Self {
        if let Self::Rejected { name, .. } = &mut self {
            *name = tidied(full.into());
        }
        self
    }
}

#[inline(never)]
fn tidied(mut text: String) -> String {
    tidy(&mut text);
    text
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchElement { name } => write!(f, "{name}: no such element"),
            Self::NoSuchHandler { name } => write!(f, "{name}: no such handler"),
            Self::Syntax { name, message }
            | Self::Rejected { name, message }
            | Self::NotPermitted { name, message } => write!(f, "{name}: {message}"),
        }
    }
}

impl core::error::Error for HandlerError {}
