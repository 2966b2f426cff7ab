// SPDX-License-Identifier: Apache-2.0
//! Errors of libcosmos.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use crate::ffi;

/// `enum cosmos_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Invalid,
    NoMemory,
    NotFound,
    Exists,
    BadImage,
    Host,
    Store,
    Timeout,
    Dead,
}

impl Code {
    /// In the header's order; a number of a newer library is a failure of the host.
    fn of(number: c_int) -> Self {
        const CODES: [Code; 9] = [
            Code::Invalid,
            Code::NoMemory,
            Code::NotFound,
            Code::Exists,
            Code::BadImage,
            Code::Host,
            Code::Store,
            Code::Timeout,
            Code::Dead,
        ];
        let index = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
        CODES.get(index).copied().unwrap_or(Code::Host)
    }
}

/// The reason, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An argument that cannot be given to C.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: Code::Invalid,
            message: message.into(),
        }
    }
}

/// Makes a call that may write an error.
pub(crate) fn call(body: impl FnOnce(*mut ffi::Error) -> c_int) -> Result<()> {
    let mut error = ffi::Error {
        code: 0,
        message: [0; ffi::MESSAGE_BYTES],
    };
    match body(&raw mut error) {
        0 => Ok(()),
        code => Err(Error {
            code: Code::of(code),
            message: text(&error.message),
        }),
    }
}

/// Text in a field of fixed size.
pub(crate) fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|c| *c as u8).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_headers() {
        assert_eq!(Code::of(1), Code::Invalid);
        assert_eq!(Code::of(9), Code::Dead);
        assert_eq!((Code::of(10), Code::of(-3)), (Code::Host, Code::Host));
    }

    #[test]
    fn a_message_ends_at_its_nul_or_its_field() {
        let mut field = [b'x' as c_char; 4];
        assert_eq!(text(&field), "xxxx");
        field[1] = 0;
        assert_eq!(text(&field), "x");
    }

    #[test]
    fn a_failed_call_has_its_message() {
        let failed = call(|error| {
            assert!(!error.is_null());
            4
        });
        assert_eq!(failed.unwrap_err().code, Code::Exists);
        assert_eq!(call(|_| 0), Ok(()));
    }
}
