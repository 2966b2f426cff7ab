// SPDX-License-Identifier: Apache-2.0
//! Which overload of a compound element class fits, and what its parameters are then.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ast::Formal;
use crate::body::{Body, Class, CompoundClass};
use crate::text;

/// Candidates that an error names.
const CANDIDATES: usize = 16;
/// Steps of work for an instance without anything in it.
const INSTANCE: usize = 64;

pub enum Selected<'b, 'a> {
    Compound(&'b Body<'a>, Vec<(String, String)>),
    Native(&'a str),
}

/// Steps of work to choose an overload and make an instance.
pub fn cost(class: &CompoundClass<'_>, config_bytes: usize, args: usize) -> usize {
    let of_body = |body: &Body<'_>| {
        let keywords = body
            .formals
            .iter()
            .filter(|f| !f.keyword.is_empty())
            .count();
        let defines = body.defines.iter().map(|(n, v)| n.len() + v.len());
        let own = body.members.len() + body.links.len() + body.formals.len() + args;
        let searched = keywords.saturating_mul(config_bytes);
        own.saturating_add(searched).saturating_add(defines.sum())
    };
    let mut steps = INSTANCE.saturating_add(config_bytes);
    let mut at = Some(class);
    while let Some(class) = at {
        steps = class
            .overloads
            .iter()
            .map(of_body)
            .fold(steps, usize::saturating_add);
        at = match &class.extends {
            Some(Class::Compound(next)) => Some(next),
            _ => None,
        };
    }
    steps
}

/// Chooses the overload that fits ports and arguments; one whose arguments fit is the second choice.
pub fn select<'b, 'a>(
    class: &'b CompoundClass<'a>,
    args: &[String],
    ports: (usize, usize),
) -> Result<Selected<'b, 'a>, String> {
    let mut second = None;
    let mut candidates: Vec<(&str, &Body<'_>)> = Vec::new();
    let mut at = class;
    loop {
        for body in &at.overloads {
            candidates.push((at.name, body));
            if let Some(values) = assign(&body.formals, args) {
                if (body.inputs, body.outputs) == ports {
                    return Ok(Selected::Compound(body, values));
                }
                second = Some((body, values));
            }
        }
        match &at.extends {
            Some(Class::Compound(next)) => at = next,
            Some(Class::Native(name)) => return Ok(Selected::Native(name)),
            _ => break,
        }
    }
    match second {
        Some((body, values)) if candidates.len() == 1 => Ok(Selected::Compound(body, values)),
        _ => {
            let arguments = counted(args.len(), "argument");
            let ports = ports_in_words(ports);
            let shown = candidates.iter().take(CANDIDATES);
            let shown: Vec<_> = shown.map(|(name, body)| signature(name, body)).collect();
            Err(format!(
                "nothing fits {arguments}, {ports}; candidates: {}",
                shown.join("; ")
            ))
        }
    }
}

fn signature(name: &str, body: &Body<'_>) -> String {
    let formal = |f: &Formal<'_>| {
        format!(
            "{}{}${}",
            f.keyword,
            if f.keyword.is_empty() { "" } else { " " },
            f.name
        )
    };
    let formals: Vec<String> = body.formals.iter().map(formal).collect();
    let name = if name.is_empty() {
        "compound element"
    } else {
        name
    };
    let ports = ports_in_words((body.inputs, body.outputs));
    format!("{name}({})[{ports}]", formals.join(", "))
}

fn ports_in_words((inputs, outputs): (usize, usize)) -> String {
    let inputs = counted(inputs, "input");
    format!("{inputs}, {}", counted(outputs, "output"))
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Gives parameters their values; `None` if the arguments do not fit.
fn assign(formals: &[Formal<'_>], args: &[String]) -> Option<Vec<(String, String)>> {
    let keywords: Vec<&str> = formals
        .iter()
        .map(|f| f.keyword)
        .filter(|k| !k.is_empty())
        .collect();
    if keywords.is_empty() {
        let fits = formals.len() == args.len();
        return fits.then(|| {
            formals
                .iter()
                .zip(args)
                .map(|(f, a)| (f.name.to_string(), a.clone()))
                .collect()
        });
    }
    let mut left: Vec<Option<&String>> = args.iter().map(Some).collect();
    let mut values = Vec::new();
    for formal in formals {
        let value = match formal.keyword {
            "" => left.get_mut(values.len())?.take()?.clone(),
            "__REST__" => {
                let rest: Vec<&str> = left
                    .iter_mut()
                    .filter_map(Option::take)
                    .map(String::as_str)
                    .collect();
                rest.join(", ")
            }
            keyword => {
                let is_it =
                    |a: &&mut Option<&String>| a.is_some_and(|a| text::shift_word(a).0 == keyword);
                text::shift_word(left.iter_mut().find(is_it)?.take()?).1
            }
        };
        values.push((formal.name.to_string(), value));
    }
    left.iter().all(Option::is_none).then_some(values)
}
