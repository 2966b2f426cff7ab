// SPDX-License-Identifier: Apache-2.0
//! How a script calls handlers, and what it says of calls that fail.
use super::Script;
use super::expand::{split_call, unquoted};
use super::own::{is_own, local};
use crate::prelude::*;

/// A script's message about a call that failed, in Click's words.
fn told(error: &HandlerError, call: &str, access: &str) -> String {
    match error {
        HandlerError::NoSuchElement { name } => {
            let element = name.rsplit_once('.').map_or("", |(element, _)| element);
            format!("no element named '{element}'")
        }
        HandlerError::NoSuchHandler { name } | HandlerError::NotPermitted { name, .. } => {
            format!("no '{name}' {access} handler")
        }
        HandlerError::Syntax { message, .. } | HandlerError::Rejected { message, .. } => {
            let lines = message.lines().map(|line| format!("\n  {line}"));
            format!("While calling '{call}':{}", lines.collect::<String>())
        }
    }
}

/// A handler's name and its parameter, which may be quoted.
fn parts(call: &str, unquote: bool) -> (&str, String) {
    let (name, param) = split_call(call);
    let param = match unquote {
        true => unquoted(param),
        false => param.to_string(),
    };
    (name, param)
}

fn show(ctx: &mut Context<'_>, lines: &str) {
    lines.lines().for_each(|line| ctx.print(line));
}

impl Script {
    /// Says on the console what is wrong.
    pub(super) fn complain(&self, ctx: &mut Context<'_>, message: &str) {
        ctx.print(&self.own_words(ctx, message));
    }

    fn own_words(&self, ctx: &Context<'_>, message: &str) -> String {
        format!("{} :: {}: {message}", ctx.name(), self.class)
    }

    /// The text of an instruction `print`; none if the handler it names cannot be read.
    pub(super) fn printed(
        &mut self,
        ctx: &mut Context<'_>,
        text: &str,
        unquote: bool,
    ) -> Option<String> {
        let is_call = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '_');
        let value = self.text(ctx, text, false);
        if !is_call {
            return Some(unquoted(&value));
        }
        let (name, param) = parts(&value, unquote);
        self.value(ctx, name, &param)
    }

    /// The value of a handler as the script sees it: its own ones need no element in front.
    fn read_call(
        &mut self,
        ctx: &mut Context<'_>,
        name: &str,
        param: &str,
    ) -> Result<String, String> {
        if let Some(own) = local(ctx, name) {
            if let Some(result) = self.own(ctx, own, param) {
                return result.map_err(|message| self.own_words(ctx, &message));
            }
        }
        let value = ctx.read_handler(name, param);
        value.map_err(|error| told(&error, format!("{name} {param}").trim_end(), "read"))
    }

    /// The value of a handler; a failure goes to the console.
    pub(super) fn value(
        &mut self,
        ctx: &mut Context<'_>,
        name: &str,
        param: &str,
    ) -> Option<String> {
        let value = self.read_call(ctx, name, param);
        value.map_err(|lines| show(ctx, &lines)).ok()
    }

    /// Carries out an instruction `read`.
    pub(super) fn read_and_show(&mut self, ctx: &mut Context<'_>, call: &str, unquote: bool) {
        let call = self.text(ctx, call, false);
        let (name, param) = parts(&call, unquote);
        if let Some(value) = self.value(ctx, name, &param) {
            let own = is_own(name).then(|| format!("{}.", ctx.name()));
            ctx.print(&format!("{}{name}:", own.unwrap_or_default()));
            show(ctx, &value);
        }
    }

    /// Carries out an instruction `write`.
    pub(super) fn write_call(&mut self, ctx: &mut Context<'_>, call: &str, unquote: bool) {
        let call = self.text(ctx, call, false);
        let (name, value) = parts(&call, unquote);
        let result = match local(ctx, name) {
            Some(handler) => self
                .write_own(ctx, handler, &value)
                .map_err(|message| self.own_words(ctx, &message)),
            None => ctx
                .write_handler(name, &value)
                .map_err(|error| told(&error, call.trim(), "write")),
        };
        self.status = if result.is_ok() { 0 } else { -1 };
        if let Err(lines) = result {
            show(ctx, &lines);
        }
    }

    /// A write to a handler of the script that is running.
    fn write_own(&mut self, ctx: &Context<'_>, handler: &str, value: &str) -> Result<(), String> {
        match handler {
            "set" => self.set_from(ctx, value),
            _ => Err(format!(
                "{handler}: a running script cannot write this to itself"
            )),
        }
    }
}
