// SPDX-License-Identifier: Apache-2.0
//! A script's own handlers, as the script itself calls them.
use click_core::text;

use super::{HANDLERS, Script};
use crate::prelude::*;

impl Script {
    /// Takes the first word off a variable.
    pub(super) fn shift(&mut self, name: &str) -> String {
        let Some((_, value)) = self.variables.iter_mut().find(|(n, _)| n == name) else {
            return String::new();
        };
        let (first, rest) = text::shift_word(value);
        self.variable_bytes -= value.len() - rest.len();
        *value = rest;
        first
    }
}

/// The handler's own name if `name` leads to the script that is running.
pub(super) fn local<'a>(ctx: &Context<'_>, name: &'a str) -> Option<&'a str> {
    let Some((element, handler)) = name.rsplit_once('.') else {
        return is_own(name).then_some(name);
    };
    let own = ctx.name();
    let mine = own == element || own.strip_suffix(element).is_some_and(|o| o.ends_with('/'));
    mine.then_some(handler)
}

/// True if a name without an element is one of the script's handlers.
pub(super) fn is_own(name: &str) -> bool {
    HANDLERS.iter().any(|h| h.name == name)
}

pub(super) fn random(view: &mut View<'_>) -> Result<String, String> {
    let number = |word: &String| u32::try_from(click_core::value::number(word)?).ok();
    let words = text::split_words(view.param());
    let mut ctx = view.ctx();
    let numbers: Option<Vec<u32>> = words.iter().map(number).collect();
    let (low, high) = match numbers.as_deref() {
        Some([]) => return Ok(ctx.random_u32().to_string()),
        Some([n]) if *n > 0 => (0, n - 1),
        Some([low, high]) if low <= high => (*low, *high),
        _ => return Err("random: expected nothing, N > 0, or two numbers in order".to_string()),
    };
    Ok(ctx.random_range(low, high).to_string())
}

pub(super) fn accessible(view: &mut View<'_>, read: bool) -> bool {
    let names = text::split_words(view.param());
    let ctx = &view.ctx();
    names.iter().all(|n| match local(ctx, n) {
        Some(own) => {
            let mut all = HANDLERS.iter().map(Handler::decl);
            all.any(|h| h.name == own && if read { h.read } else { h.write })
        }
        None => ctx
            .handler_info(n)
            .is_some_and(|h| if read { h.read } else { h.write }),
    })
}

pub(super) fn cat(view: &mut View<'_>, quote: bool) -> Result<String, String> {
    let host = view.ctx().host().ok_or("cat: there are no files here")?;
    let bytes = host
        .read_file(&text::unquote(view.param()))
        .map_err(|e| format!("cat: {e}"))?;
    let content = String::from_utf8_lossy(&bytes).into_owned();
    Ok(if quote {
        text::quote(&content)
    } else {
        content
    })
}

/// Sends a signal to processes: `SIGNAL PROCESS...`.
pub(super) fn kill(view: &mut View<'_>) -> Result<String, String> {
    let host = view
        .ctx()
        .host()
        .ok_or("kill: there are no processes here")?;
    let words = text::split_words(view.param());
    let Some((signal, processes @ [_, ..])) = words.split_first() else {
        return Err("kill: expected a signal and processes".to_string());
    };
    let mut processes = processes.iter();
    processes.try_for_each(|process| host.kill(signal, process))?;
    Ok(String::new())
}
