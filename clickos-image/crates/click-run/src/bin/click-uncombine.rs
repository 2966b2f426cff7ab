// SPDX-License-Identifier: Apache-2.0
//! Extracts a component of a configuration that click-combine made.
#![forbid(unsafe_code)]
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use click_run::combine::split;
use click_run::tool;

/// Extracts a component from a combined Click configuration.
#[derive(Debug, Parser)]
#[command(name = "click-uncombine", version, disable_version_flag = true)]
struct Options {
    /// The component
    #[arg(short, long = "name", value_name = "NAME")]
    named: Option<String>,

    /// Write to FILE ("-", the default, is standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The combined configuration ("-" is standard input)
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    read: Option<PathBuf>,

    /// Print the version
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    version: Option<bool>,

    /// The combined configuration, standard input without one, and the component; each unless an option says it
    #[arg(value_name = "FILE | NAME", num_args = 0..=2)]
    rest: Vec<String>,
}

impl Options {
    /// The component, and the file it is in.
    fn parts(self) -> Result<(String, Option<PathBuf>), String> {
        let mut rest = self.rest.into_iter();
        let file = self.read.or_else(|| rest.next().map(PathBuf::from));
        let name = self.named.or_else(|| rest.next());
        match (name, rest.next()) {
            (Some(name), None) => Ok((name, file)),
            (None, _) => Err("expected the name of a component".to_string()),
            (_, Some(word)) => Err(format!("\"{word}\": too many arguments")),
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let output = options.output.clone();
    let text = options.parts().and_then(|(name, file)| {
        let flat = tool::flat(None, file.as_deref())?;
        split(flat, &name)
    });
    tool::finish(text.map(|flat| flat.to_string()), output.as_deref())
}
