// SPDX-License-Identifier: Apache-2.0
//! Combines several configurations into one.
#![forbid(unsafe_code)]
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use click_lang::Flat;
use click_run::combine::{Device, Link, combine, fuse};
use click_run::tool;

/// Combines several Click configurations into one; click-uncombine extracts them again.
///
/// A component without a name is named by its number: router1, router2 ...
#[derive(Debug, Parser)]
#[command(name = "click-combine", version, disable_version_flag = true)]
struct Options {
    /// Write to FILE ("-", the default, is standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The next component's name is NAME
    #[arg(short, long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Read a component from FILE ("-" is standard input)
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<String>,

    /// A component's text
    #[arg(short, long = "expression", value_name = "EXPR")]
    expressions: Vec<String>,

    /// Lead packets from an element or device of one component to one of another
    #[arg(short, long = "link", value_name = "FROM.ELEMENT=TO.ELEMENT")]
    links: Vec<Link>,

    /// Give an end of the chain another device
    #[arg(short, long = "device", value_name = "NAME.DEVICE=DEVICE")]
    devices: Vec<Device>,

    /// Write no archive; that is always so
    #[arg(short, long)]
    config: bool,

    /// Write a configuration that runs: links move packets, and click-uncombine cannot take it apart
    #[arg(long)]
    fuse: bool,

    /// Print the version
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    version: Option<bool>,

    /// FILE, NAME=FILE or NAME:FILE is a component, NAME.ELEMENT=NAME.ELEMENT a link
    #[arg(value_name = "FILE | NAME=FILE | LINK")]
    rest: Vec<String>,
}

fn main() -> ExitCode {
    let matches = Options::command().get_matches();
    let options = Options::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let text = combined(&options, &matches).map(|flat| flat.to_string());
    tool::finish(text, options.output.as_deref())
}

/// A word of the command line whose place matters.
enum Word<'a> {
    Name(&'a str),
    File(&'a str),
    Expression(&'a str),
    Rest(&'a str),
}

/// An option's name, its values, and the words that they are.
type List<'a> = (&'static str, &'a [String], fn(&'a str) -> Word<'a>);

/// These words in their order.
fn words<'a>(options: &'a Options, matches: &ArgMatches) -> Vec<Word<'a>> {
    let lists: [List<'a>; 4] = [
        ("names", &options.names, Word::Name),
        ("files", &options.files, Word::File),
        ("expressions", &options.expressions, Word::Expression),
        ("rest", &options.rest, Word::Rest),
    ];
    let mut placed = Vec::new();
    for (id, values, word) in lists {
        let places = matches.indices_of(id).into_iter().flatten();
        placed.extend(places.zip(values).map(|(at, value)| (at, word(value))));
    }
    placed.sort_by_key(|(at, _)| *at);
    placed.into_iter().map(|(_, word)| word).collect()
}

/// The components so far, and what comes next.
#[derive(Default)]
struct Components {
    list: Vec<(String, Flat)>,
    next_name: Option<String>,
}

impl Components {
    fn name_next(&mut self, name: &str) -> Result<(), String> {
        if let Some(before) = self.next_name.replace(name.to_string()) {
            return Err(format!(
                "\"{name}\": the next component is named \"{before}\""
            ));
        }
        match is_name(name) {
            true => Ok(()),
            false => Err(format!(
                "\"{name}\": a component is named with letters, digits, _ and @, not only digits, and / between"
            )),
        }
    }

    fn add(&mut self, expression: Option<&str>, file: Option<&str>) -> Result<(), String> {
        let number = self.list.len() + 1;
        let name = self
            .next_name
            .take()
            .unwrap_or_else(|| format!("router{number}"));
        let flat = tool::flat(expression, file.map(Path::new))?;
        self.list.push((name, flat));
        Ok(())
    }
}

fn combined(options: &Options, matches: &ArgMatches) -> Result<Flat, String> {
    let (mut components, mut links) = (Components::default(), options.links.clone());
    for word in words(options, matches) {
        match word {
            Word::Name(name) => components.name_next(name)?,
            Word::File(file) => components.add(None, Some(file))?,
            Word::Expression(text) => components.add(Some(text), None)?,
            Word::Rest(text) => match (text.split_once(':'), text.split_once('=')) {
                (Some((name, file)), _) => {
                    components.name_next(name)?;
                    components.add(None, Some(file))?;
                }
                (None, Some((name, _))) if name.contains('.') => links.push(text.parse()?),
                (None, Some((name, file))) => {
                    components.name_next(name)?;
                    components.add(None, Some(file))?;
                }
                (None, None) => components.add(None, Some(text))?,
            },
        }
    }
    if components.list.is_empty() {
        return Err("expected components: FILE, NAME=FILE or -e EXPR".to_string());
    }
    let whole = combine(components.list, &links, &options.devices)?;
    if options.fuse {
        return fuse(whole, &click_elements_os::registry());
    }
    Ok(whole)
}

/// Click's identifiers; a slash lies between two others.
fn is_name(name: &str) -> bool {
    let letters = |part: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@';
        part.chars().all(known) && part.chars().any(|c| !c.is_ascii_digit())
    };
    name.split('/').all(letters)
}
