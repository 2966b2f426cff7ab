// SPDX-License-Identifier: Apache-2.0
//! A script's own handlers, as the script itself calls them.
use click_core::text;

use super::{Script, functions};
use crate::prelude::*;

impl Script {
    /// Handlers that belong to the script itself; `None` if it has no such one.
    pub(super) fn own(
        &mut self,
        ctx: &mut Context<'_>,
        handler: &str,
        param: &str,
    ) -> Option<Result<String, String>> {
        Some(Ok(match handler {
            "get" => match self.variable(param.trim()) {
                Some(value) => value.to_string(),
                None => {
                    return Some(Err(format!(
                        "get: there is no variable \"{}\"",
                        param.escape_debug()
                    )));
                }
            },
            "shift" => self.shift(param.trim()),
            "vars" => self
                .variables
                .iter()
                .map(|(n, v)| format!("{n} {v}\n"))
                .collect(),
            "status" => self.status.to_string(),
            "now" => {
                let now = ctx.now_ns();
                format!("{}.{:09}", now / 1_000_000_000, now % 1_000_000_000)
            }
            "random" => return Some(random(ctx, param)),
            "readable" | "writable" => accessible(ctx, handler == "readable", param).to_string(),
            "cat" | "catq" => return Some(cat(ctx, param, handler == "catq")),
            "kill" => return Some(kill(ctx, param)),
            _ if self.exported.iter().any(|e| e == handler) => self.variable(handler)?.to_string(),
            _ => return functions::call(handler, param),
        }))
    }

    /// Takes the first word off a variable.
    fn shift(&mut self, name: &str) -> String {
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
    super::HANDLERS.iter().any(|h| h.name == name)
}

fn random(ctx: &mut Context<'_>, param: &str) -> Result<String, String> {
    let number = |word: &String| u32::try_from(click_core::value::number(word)?).ok();
    let words = text::split_words(param);
    let numbers: Option<Vec<u32>> = words.iter().map(number).collect();
    let (low, high) = match numbers.as_deref() {
        Some([]) => return Ok(ctx.draw().to_string()),
        Some([n]) if *n > 0 => (0, n - 1),
        Some([low, high]) if low <= high => (*low, *high),
        _ => return Err("random: expected nothing, N > 0, or two numbers in order".to_string()),
    };
    Ok(ctx.draw_from(low, high).to_string())
}

fn accessible(ctx: &Context<'_>, read: bool, param: &str) -> bool {
    let names = text::split_words(param);
    names.iter().all(|n| match local(ctx, n) {
        Some(own) => super::HANDLERS
            .iter()
            .any(|h| h.name == own && if read { h.read } else { h.write }),
        None => ctx
            .handler_info(n)
            .is_some_and(|h| if read { h.read } else { h.write }),
    })
}

fn cat(ctx: &Context<'_>, param: &str, quote: bool) -> Result<String, String> {
    let host = ctx.host().ok_or("cat: there are no files here")?;
    let bytes = host
        .read_file(&text::unquote(param))
        .map_err(|e| format!("cat: {e}"))?;
    let content = String::from_utf8_lossy(&bytes).into_owned();
    Ok(if quote {
        text::quote(&content)
    } else {
        content
    })
}

/// Sends a signal to processes: `SIGNAL PROCESS...`.
fn kill(ctx: &Context<'_>, param: &str) -> Result<String, String> {
    let host = ctx.host().ok_or("kill: there are no processes here")?;
    let words = text::split_words(param);
    let Some((signal, processes @ [_, ..])) = words.split_first() else {
        return Err("kill: expected a signal and processes".to_string());
    };
    let mut processes = processes.iter();
    processes.try_for_each(|process| host.kill(signal, process))?;
    Ok(String::new())
}
