// SPDX-License-Identifier: Apache-2.0
//! Combines several configurations into one.
#![forbid(unsafe_code)]
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use click_lang::Flat;
use click_run::combine::{Device, Link, combine, fuse, rename};
use click_run::tool;

/// Combines several Click configurations into one; click-uncombine extracts them again.
#[derive(Debug, Parser)]
#[command(name = "click-combine", version)]
struct Options {
    /// Write to FILE ("-", the default, is standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

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
    #[arg(short, long)]
    fuse: bool,

    /// NAME=FILE is a component, NAME.ELEMENT=NAME.ELEMENT a link
    #[arg(required = true, value_name = "NAME=FILE | LINK")]
    rest: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let text = combined(&options).map(|flat| flat.to_string());
    tool::finish(text, options.output.as_deref())
}

fn combined(options: &Options) -> Result<Flat, String> {
    let (mut components, mut links) = (Vec::new(), options.links.clone());
    for word in &options.rest {
        let (name, rest) = word
            .split_once('=')
            .ok_or_else(|| format!("\"{word}\": expected NAME=FILE or a link"))?;
        if name.contains('.') {
            links.push(word.parse()?);
        } else if is_name(name) {
            components.push((name.to_string(), tool::flat(None, Some(Path::new(rest)))?));
        } else {
            return Err(format!(
                "\"{name}\": a component is named with letters, digits and _"
            ));
        }
    }
    let mut whole = combine(components, &links)?;
    rename(&mut whole, &options.devices)?;
    if options.fuse {
        return fuse(whole, &click_elements::registry());
    }
    Ok(whole)
}

/// Click's identifiers, without a slash.
fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}
