// SPDX-License-Identifier: Apache-2.0
//! Permissions of a node: `n5` gives nothing, `r5` reading, `w5` writing, `b5` both to domain 5.
//!
//! The first entry of a list names the owner, and its letter is what every other domain may do.
use crate::error::Error;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A domain's rights on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    None,
    Read,
    Write,
    Both,
}

/// One entry of a permission list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perm {
    pub access: Access,
    pub domid: u16,
}

impl Perm {
    /// Entry that gives `access` to `domid` (as first entry: owner and everybody's access).
    pub fn new(access: Access, domid: u16) -> Self {
        Self { access, domid }
    }

    fn letter(self) -> char {
        match self.access {
            Access::None => 'n',
            Access::Read => 'r',
            Access::Write => 'w',
            Access::Both => 'b',
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let access = match text.bytes().next()? {
            b'n' => Access::None,
            b'r' => Access::Read,
            b'w' => Access::Write,
            b'b' => Access::Both,
            _ => return None,
        };
        Some(Self {
            access,
            domid: text[1..].parse().ok()?,
        })
    }
}

impl fmt::Display for Perm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.letter(), self.domid)
    }
}

/// Reads the answer to a request for permissions.
///
/// # Errors
/// [`Error::Protocol`] for an empty list or an entry that is no permission.
pub fn parse_list(strings: &[String]) -> Result<Vec<Perm>, Error> {
    let parsed: Option<Vec<_>> = strings.iter().map(|s| Perm::parse(s)).collect();
    parsed
        .filter(|list| !list.is_empty())
        .ok_or(Error::Protocol("bad permission list"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn round_trip() {
        let list = [
            Perm::new(Access::None, 0),
            Perm::new(Access::Read, 5),
            Perm::new(Access::Write, 6),
            Perm::new(Access::Both, 65535),
        ];
        let strings: Vec<String> = list.iter().map(|p| p.to_string()).collect();
        assert_eq!(strings, ["n0", "r5", "w6", "b65535"]);
        assert_eq!(parse_list(&strings).unwrap(), list);
    }

    #[test]
    fn garbage_is_refused() {
        for bad in ["", "x5", "r", "r-1", "r65536", "ré"] {
            assert!(parse_list(&[bad.to_string()]).is_err(), "{bad}");
        }
        assert!(parse_list(&[]).is_err());
    }
}
