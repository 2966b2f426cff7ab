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
    /// True for a key or a password: no error repeats it, nor does `config` once a handler has set it.
    pub is_secret: bool,
}

/// An argument that must be given, by position or keyword.
pub const fn mandatory(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Mandatory,
        is_secret: false,
    }
}

/// An argument that may be given by position or keyword.
pub const fn optional(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Optional,
        is_secret: false,
    }
}

/// An argument that may be given by keyword.
pub const fn keyword(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Keyword,
        is_secret: false,
    }
}

/// A key or a password, given by keyword.
pub const fn secret(name: &'static str) -> Arg {
    Arg {
        is_secret: true,
        ..keyword(name)
    }
}

/// All positional arguments that are left.
pub const fn rest(name: &'static str) -> Arg {
    Arg {
        name,
        kind: ArgKind::Rest,
        is_secret: false,
    }
}
