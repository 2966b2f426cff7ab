// SPDX-License-Identifier: Apache-2.0
//! A handler write that an element does on an event.
use click_core::{ArgContext, text};

use crate::prelude::*;

/// `HANDLER [VALUE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerCall {
    name: String,
    value: String,
}

impl HandlerCall {
    /// Does the write behind the work of the element, and of those that called it, before the packets
    /// that it sends after this. So the write may call the handlers of all of them.
    pub fn make_later(&self, ctx: &mut Context<'_>) {
        ctx.call_later(&self.name, &self.value);
    }

    /// Does the write now, for an element that decides by what the write changes. The caller is in its
    /// place, so the write may call its handlers. An error goes to the console.
    pub fn make_from<T: Element + Default>(&self, ctx: &mut Context<'_>, caller: &mut T) {
        ctx.with_me(caller, |ctx| {
            if let Err(error) = ctx.write_handler(&self.name, &self.value) {
                let line = format!("{}: {error}", ctx.name());
                ctx.print(&line);
            }
        });
    }

    /// The call with `value` instead of the variable `$name` or `${name}`.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let all = self.value.replace(&format!("${{{name}}}"), value);
        let bare = format!("${name}");
        let mut parts = all.split(&bare);
        let mut expanded = parts.next().unwrap_or("").to_string();
        for part in parts {
            let longer_name = part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            expanded += if longer_name { &bare } else { value };
            expanded += part;
        }
        Self {
            name: self.name.clone(),
            value: expanded,
        }
    }

    /// The error of a call that leads nowhere, for `initialize`.
    pub fn check(&self, ctx: &Context<'_>) -> Result<(), String> {
        match ctx.handler_info(&self.name) {
            Some(handler) if handler.write => Ok(()),
            Some(_) => Err(format!("{}: the handler cannot be written", self.name)),
            None => Err(format!("{}: no such handler", self.name)),
        }
    }
}

impl FromArg for HandlerCall {
    fn from_arg(arg: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let (name, value) = text::shift_word(arg);
        if name.is_empty() {
            return Err("expected HANDLER [VALUE], got nothing".to_string());
        }
        let value = text::unquote(&value);
        Ok(Self { name, value })
    }
}

impl core::fmt::Display for HandlerCall {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {}", self.name, self.value)
    }
}

/// `N HANDLER [VALUE]`: the call is made once, when a count reaches N.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountCall {
    at: u64,
    call: HandlerCall,
}

impl CountCall {
    /// The rest until the count is N; `None` behind N.
    pub fn left(&self, count: u64) -> Option<u64> {
        self.at.checked_sub(count).filter(|left| *left > 0)
    }

    /// The call.
    pub fn call(&self) -> &HandlerCall {
        &self.call
    }

    /// N.
    pub fn count(&self) -> u64 {
        self.at
    }

    /// The same call, when a count reaches this.
    #[must_use]
    pub fn at(self, at: u64) -> Self {
        Self { at, ..self }
    }
}

impl FromArg for CountCall {
    fn from_arg(arg: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let (count, call) = text::shift_word(arg);
        Ok(Self {
            at: u64::from_arg(&count, at)?,
            call: HandlerCall::from_arg(&call, at)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_whole_words() {
        let call = |value: &str| HandlerCall {
            name: "s.run".to_string(),
            value: value.to_string(),
        };
        assert_eq!(call("$t ${t}x $to").with("t", "1.5"), call("1.5 1.5x $to"));
        assert_eq!(call("t").with("t", "1.5"), call("t"));
    }
}
