// SPDX-License-Identifier: Apache-2.0
//! The users: names, addresses, rates, and apart from them passwords, which nothing reads back.
use alloc::collections::{BTreeMap, BTreeSet};

use click_core::ArgContext;
use click_core::text::{split_args, split_words, unquote};

use crate::prelude::*;
use crate::standard::bandwidth::Bandwidth;

/// Users of a server.
pub const USERS: usize = 4096;
/// Bytes of a name, and of a password.
const TEXT: usize = 64;

/// `NAME ADDRESS [DOWN UP]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The subscriber's name for itself.
    pub name: String,
    /// The address that it gets.
    pub address: Ipv4Addr,
    /// Bytes a second to the subscriber and from it; 0: without limit.
    pub rates: [u64; 2],
}

impl FromArg for User {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(&unquote(text));
        let (name, address, rates) = match words.as_slice() {
            [name, address] => (name, address, None),
            [name, address, down, up] => (name, address, Some([down, up])),
            _ => return Err(expected("NAME ADDRESS [DOWN UP]", text)),
        };
        let rate = |what: &str, text: &str| match Bandwidth::from_arg(text, at) {
            Ok(Bandwidth(rate)) => Ok(rate),
            Err(message) => Err(format!("{what}: {message}")),
        };
        let wrong = |e| format!("ADDRESS: {e}");
        Ok(Self {
            name: checked_name(name)?,
            address: Ipv4Addr::from_arg(address, at).map_err(wrong)?,
            rates: match rates {
                Some([down, up]) => [rate("DOWN", down)?, rate("UP", up)?],
                None => [0; 2],
            },
        })
    }
}

/// A user whose text is in no error, since it may be the end of a password.
pub struct Unshown(pub User);

impl FromArg for Unshown {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let words = split_words(&unquote(text)).len();
        let wrong = |_| format!("expected NAME ADDRESS [DOWN UP], got {words} words");
        User::from_arg(text, at).map(Self).map_err(wrong)
    }
}

impl core::fmt::Display for User {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [down, up] = self.rates.map(Bandwidth);
        write!(f, "{} {} {down} {up}", self.name, self.address)
    }
}

/// A name that lists and configurations can hold as it is.
pub fn checked_name(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b",\"'\\<>;()[]{}$".contains(&byte);
    match name.len() {
        1..=TEXT if name.bytes().all(plain) => Ok(name.into()),
        _ => Err(format!(
            "NAME: expected 1 to {TEXT} letters, digits or marks such as @ . _ -, got \"{}\"",
            name.shown()
        )),
    }
}

/// A user's name as an argument.
pub struct Name(pub String);

impl FromArg for Name {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        checked_name(unquote(text).trim()).map(Self)
    }
}

/// Users with different names and addresses, in the order of their names.
#[derive(Clone, Default)]
pub struct Users(BTreeMap<String, User>);

impl Users {
    /// Users that differ, and not too many.
    ///
    /// # Errors
    /// The fault.
    pub fn checked(users: Vec<User>) -> Result<Self, String> {
        if users.len() > USERS {
            return Err(format!("{} users, the limit is {USERS}", users.len()));
        }
        let (mut names, mut addresses) = (BTreeMap::new(), BTreeSet::new());
        for user in users {
            if !addresses.insert(user.address) {
                return Err(format!("two users have the address {}", user.address));
            }
            if let Some(other) = names.insert(user.name.clone(), user) {
                return Err(format!("two users have the name {}", other.name));
            }
        }
        Ok(Self(names))
    }

    /// These users, and one more instead of that of its name.
    ///
    /// # Errors
    /// Another user has its address, or there are too many.
    pub fn with(&self, user: User) -> Result<Self, String> {
        let mut users: Vec<User> = self
            .iter()
            .filter(|u| u.name != user.name)
            .cloned()
            .collect();
        users.push(user);
        Self::checked(users)
    }

    /// These users without one.
    pub fn without(&self, name: &str) -> Self {
        let mut users = self.clone();
        users.0.remove(name);
        users
    }

    /// All users.
    pub fn iter(&self) -> impl Iterator<Item = &User> {
        self.0.values()
    }

    /// The user of a name.
    pub fn get(&self, name: &str) -> Option<&User> {
        self.0.get(name)
    }
}

impl FromArg for Users {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let text = unquote(text);
        let parts = text
            .split([',', '\n'])
            .filter(|part| !part.trim().is_empty());
        let users: Result<Vec<_>, _> = parts.map(|part| User::from_arg(part.trim(), at)).collect();
        Self::checked(users?)
    }
}

impl core::fmt::Display for Users {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (n, user) in self.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{user}")?;
        }
        Ok(())
    }
}

/// Passwords by name. Their texts are in no error.
#[derive(Clone, Default)]
pub struct Passwords(BTreeMap<String, String>);

impl Passwords {
    /// The password of a name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(String::as_bytes)
    }
}

impl FromArg for Passwords {
    /// `NAME PASSWORD, ...`; a password with blanks or commas stands between quotes, and so may the whole text.
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let quoted = text.trim_start().starts_with('"');
        let text = if quoted { unquote(text) } else { text.into() };
        let mut passwords = BTreeMap::new();
        for part in split_args(&text) {
            let words = split_words(&part);
            let [name, password] = words.as_slice() else {
                return Err("expected NAME PASSWORD, ...".into());
            };
            let password = unquote(password);
            if password.is_empty() || password.len() > TEXT {
                return Err(format!("PASSWORD: expected 1 to {TEXT} bytes"));
            }
            // who swaps the two has the password here
            let wrong =
                |_| format!("NAME: expected 1 to {TEXT} letters, digits or marks such as @ . _ -");
            let name = checked_name(name).map_err(wrong)?;
            if passwords.contains_key(&name) {
                return Err(format!("two passwords of {name}"));
            }
            if passwords.len() == USERS {
                return Err(format!("more than {USERS} passwords"));
            }
            passwords.insert(name, password);
        }
        Ok(Self(passwords))
    }
}

/// Users and passwords.
#[derive(Default)]
pub struct Book {
    /// The users.
    pub users: Users,
    /// The passwords, also of users to come.
    pub passwords: Passwords,
}
