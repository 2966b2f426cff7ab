// SPDX-License-Identifier: Apache-2.0
//! The arguments of a class: their names, and how a configuration gives them.

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// By position or keyword, and it must be there.
    Mandatory,
    /// By position or keyword.
    Optional,
    /// By keyword only.
    Keyword,
    /// All positional arguments that are left.
    Rest,
}

/// An argument of a class.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// Its keyword, in capital letters.
    pub name: &'static str,
    /// How it is given.
    pub kind: ArgKind,
}

/// An argument that must be given, by position or keyword.
pub const fn mandatory(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Mandatory,
    }
}

/// An argument that may be given by position or keyword.
pub const fn optional(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Optional,
    }
}

/// An argument that may be given by keyword.
pub const fn keyword(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Keyword,
    }
}

/// All positional arguments that are left.
pub const fn rest(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Rest,
    }
}
