// SPDX-License-Identifier: Apache-2.0
//! The arguments of one element: bound to names once, then read by the element's `build`.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use click_lang::{did_you_mean, text, tidy};

use crate::config::arg::{Arg, ArgKind};
use crate::config::environment::Environment;
use crate::config::names::{Definition, Names};
use crate::config::value::{FromArg, Shown};

/// The environment in which an element reads its arguments.
#[derive(Clone, Copy)]
pub struct ArgContext<'a> {
    /// Devices and limits.
    pub environment: &'a Environment,
    /// Names for addresses.
    pub names: &'a Names,
    /// The element's name, for names local to its compound.
    pub element: &'a str,
}

/// The arguments of an element that is being built or configured again.
pub struct Args<'a> {
    spec: &'static [Arg],
    values: Vec<Option<String>>,
    rest: Vec<String>,
    arg_context: ArgContext<'a>,
    ports: (usize, usize),
    errors: Vec<String>,
    /// Errors that are only counted.
    beyond: usize,
    defined: Vec<(String, Definition)>,
    notices: Vec<String>,
}

/// Bytes of a value that may be a key, at least; more than an IPv4 address has.
const SECRET: usize = 16;
/// Errors about one element that are kept.
const ERRORS: usize = 100;

/// Results of reading an element's arguments, besides the element.
pub(crate) struct ParsedArgs {
    pub errors: Vec<String>,
    pub notices: Vec<String>,
    pub defined: Vec<(String, Definition)>,
}

impl<'a> Args<'a> {
    /// Binds `config` to the arguments of a class.
    pub fn bind(
        spec: &'static [Arg],
        config: &str,
        ports: (usize, usize),
        arg_context: ArgContext<'a>,
    ) -> Self {
        let mut args = Self {
            spec,
            values: spec.iter().map(|_| None).collect(),
            rest: Vec::new(),
            arg_context,
            ports,
            errors: Vec::new(),
            beyond: 0,
            defined: Vec::new(),
            notices: Vec::new(),
        };
        let given = text::split_args(config);
        let free = given
            .into_iter()
            .filter_map(|arg| args.by_keyword(arg))
            .collect::<Vec<_>>();
        free.into_iter().for_each(|arg| args.by_position(arg));
        args
    }

    /// Takes `KEYWORD value`; gives back what is not one.
    fn by_keyword(&mut self, arg: String) -> Option<String> {
        let (word, value) = text::shift_word(&arg);
        let known = |a: &Arg| a.name == word && a.kind != ArgKind::Rest;
        let Some(index) = self.spec.iter().position(known) else {
            return Some(arg);
        };
        let lone = value.is_empty() && self.spec[index].kind != ArgKind::Keyword;
        if lone {
            return Some(arg);
        }
        self.values[index] = Some(value);
        None
    }

    fn by_position(&mut self, arg: String) {
        let (word, value) = text::shift_word(&arg);
        let mut spec = self.spec.iter().zip(&self.values);
        let free = spec.position(|(a, v)| {
            v.is_none() && matches!(a.kind, ArgKind::Mandatory | ArgKind::Optional)
        });
        let has_rest = self.spec.iter().any(|a| a.kind == ArgKind::Rest);
        let keyword_like = !value.is_empty() && looks_like_keyword(&word);
        match free {
            Some(index) if self.spec[index].kind == ArgKind::Mandatory || !keyword_like => {
                self.values[index] = Some(arg);
            }
            _ if has_rest => self.rest.push(arg),
            _ if keyword_like => {
                let hint = did_you_mean(&word, self.spec.iter().map(|a| a.name));
                self.note(format!("unknown argument {word}{hint}"));
            }
            _ if arg.is_empty() => {}
            // it may be the end of a secret with a comma
            _ if self.has_secrets() => {
                self.note("too many arguments".to_string());
            }
            _ => self.note(format!("too many arguments: \"{}\"", arg.shown())),
        }
    }

    /// Keeps an error; beyond a number that a person can use it is only counted.
    #[cold]
    #[inline(never)]
    fn note(&mut self, mut message: String) {
        if self.errors.len() == ERRORS {
            self.beyond += 1;
            return;
        }
        tidy(&mut message);
        self.errors.push(message);
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let Some(index) = self.spec.iter().position(|a| a.name == name) else {
            self.note(format!("{name}: the class does not declare this argument"));
            return None;
        };
        let value = self.values[index].clone().filter(|v| !v.is_empty());
        if value.is_none() && self.spec[index].kind == ArgKind::Mandatory {
            self.note(format!("{name}: required argument missing"));
        }
        value
    }

    /// The value of a mandatory argument; `None` if it is missing or wrong, which is noted.
    pub fn need<T: FromArg>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        self.parse(name, &text)
    }

    /// The value of an argument or `default`; `None` if it is wrong, which is noted.
    pub fn or<T: FromArg>(&mut self, name: &str, default: T) -> Option<T> {
        match self.text(name) {
            Some(text) => self.parse(name, &text),
            None => Some(default),
        }
    }

    /// The value of an argument if it is given; outer `None` if it is wrong, which is noted.
    pub fn opt<T: FromArg>(&mut self, name: &str) -> Option<Option<T>> {
        match self.text(name) {
            Some(text) => self.parse(name, &text).map(Some),
            None => Some(None),
        }
    }

    /// The remaining positional arguments.
    pub fn rest(&self) -> &[String] {
        &self.rest
    }

    /// Parses a piece of an argument; an error is noted under `name`.
    pub fn parse<T: FromArg>(&mut self, name: &str, text: &str) -> Option<T> {
        match T::from_arg(text, self.arg_context) {
            Ok(value) => Some(value),
            Err(message) => {
                self.refuse(name, text, &message);
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, name: &str, text: &str, message: &str) {
        match self.misspelt_secret(name, text) {
            Some(misspelt) => self.note(misspelt),
            None if self.repeats_secret(text, message) => {
                let hidden = format!("wrong value of {} bytes", text.len());
                self.note_about(name, &hidden);
            }
            None => self.note_about(name, message),
        }
    }

    /// What is wrong with a positional argument that begins with a keyword like that of a secret. Other messages would
    /// repeat the value.
    fn misspelt_secret(&self, name: &str, text: &str) -> Option<String> {
        let is_rest = |a: &Arg| a.kind == ArgKind::Rest && a.name == name;
        let (word, value) = text::shift_word(text);
        if value.is_empty() || !looks_like_keyword(&word) || !self.spec.iter().any(is_rest) {
            return None;
        }
        let secrets = self.spec.iter().filter(|a| a.is_secret);
        let hint = did_you_mean(&word, secrets.map(|a| a.name));
        (!hint.is_empty()).then(|| format!("unknown argument {word}{hint}"))
    }

    /// True if a message about an argument shows what may be a secret in a wrong place: a word as long as keys are.
    fn repeats_secret(&self, text: &str, message: &str) -> bool {
        let may_be_key = |word: &&str| word.bytes().any(|b| b.is_ascii_alphabetic());
        let words = text.split_whitespace().filter(may_be_key);
        let mut beginnings = words.filter_map(|word| word.get(..SECRET));
        self.has_secrets() && beginnings.any(|beginning| message.contains(beginning))
    }

    fn has_secrets(&self) -> bool {
        self.spec.iter().any(|a| a.is_secret)
    }

    /// Notes that an argument is wrong.
    pub fn error(&mut self, name: &str, message: impl ToString) {
        self.note_about(name, &message.to_string());
    }

    #[cold]
    #[inline(never)]
    fn note_about(&mut self, name: &str, message: &str) {
        self.note(format!("{name}: {message}"));
    }

    /// Notes something about the element that is no error.
    pub fn notice(&mut self, message: impl ToString) {
        self.notices.push(message.to_string());
    }

    /// Defines a name for addresses, for elements built later.
    pub fn define(&mut self, name: &str, addresses: &[String]) {
        let value = Definition::Addresses(addresses.to_vec());
        self.defined.push((name.to_string(), value));
    }

    /// Defines a name for the annotation at `offset`, for elements built later.
    pub fn define_annotation(&mut self, name: &str, offset: usize) {
        let value = Definition::Annotation(offset);
        self.defined.push((name.to_string(), value));
    }

    /// Defines what a name stands for where this kind of thing is expected, for elements built later.
    pub fn define_meaning(&mut self, kind: &'static str, name: &str, value: &str) {
        let value = Definition::Meaning(kind, value.to_string());
        self.defined.push((name.to_string(), value));
    }

    /// How many inputs the element has.
    pub fn inputs(&self) -> usize {
        self.ports.0
    }

    /// How many outputs the element has.
    pub fn outputs(&self) -> usize {
        self.ports.1
    }

    /// Devices and limits.
    pub fn environment(&self) -> &'a Environment {
        self.arg_context.environment
    }

    /// Where names are looked up.
    pub fn arg_context(&self) -> ArgContext<'a> {
        self.arg_context
    }

    /// What was made of the arguments, if nothing is wrong with them.
    ///
    /// # Errors
    /// What is wrong, a line for each.
    pub fn checked<T>(self, made: Option<T>) -> Result<T, String> {
        let errors = self.finish().errors;
        let made = made.filter(|_| errors.is_empty());
        made.ok_or_else(|| errors.join("\n"))
    }

    /// The errors, the notices and the defined names.
    pub(crate) fn finish(mut self) -> ParsedArgs {
        if self.beyond > 0 {
            let message = format!("{} more errors are not shown", self.beyond);
            self.errors.push(message);
        }
        ParsedArgs {
            errors: self.errors,
            notices: self.notices,
            defined: self.defined,
        }
    }
}

fn looks_like_keyword(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.:".contains(c))
}
