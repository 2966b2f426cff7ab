// SPDX-License-Identifier: Apache-2.0
//! Where configurations and the libraries they require are read from.
use std::env;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use click_lang::{Limits, Sources};

/// What a configuration given as text is called in errors.
const EXPRESSION_NAME: &str = "config";

/// Reads a configuration: the text if there is one, else the file; "-" or none is standard input.
///
/// # Errors
/// Why the file cannot be read.
pub fn read(expression: Option<&str>, file: Option<&Path>) -> Result<Sources, String> {
    if let Some(text) = expression {
        return Ok(with_libraries(EXPRESSION_NAME, text.to_string()));
    }
    let (name, bytes) = match file.filter(|p| *p != Path::new("-")) {
        Some(path) => (path.display().to_string(), fs::read(path)),
        None => ("<stdin>".to_string(), all_of_stdin()),
    };
    let bytes = bytes.map_err(|e| format!("{name}: {e}"))?;
    let text = crate::archive::configuration(bytes).map_err(|e| format!("{name}: {e}"))?;
    Ok(with_libraries(&name, text))
}

fn all_of_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes).map(|_| bytes)
}

/// A configuration with the libraries it requires.
pub fn with_libraries(name: &str, text: String) -> Sources {
    let mut sources = Sources::new(name, text);
    sources.load_libraries(&find, &limits());
    sources
}

/// What a configuration of this program may use.
pub fn limits() -> Limits {
    Limits {
        config_bytes: 256 << 20,
        elements: 1 << 20,
        connections: 1 << 22,
        ports: 65_536,
    }
}

/// Finds a library: in the folders of CLICKPATH, and in the folder of the file that requires it.
fn find(name: &str, from: &str) -> Result<(String, String), String> {
    let around = match from.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => ".",
    };
    let path = candidates(name, around).into_iter().find(|p| p.is_file());
    let path = path.ok_or_else(|| format!("library '{name}' not found in CLICKPATH/conf"))?;
    let shown = path.display().to_string();
    let bytes = fs::read(&path).map_err(|e| format!("{shown}: {e}"))?;
    let text = crate::archive::configuration(bytes).map_err(|e| format!("{shown}: {e}"))?;
    Ok((shown, text))
}

fn candidates(name: &str, around: &str) -> Vec<PathBuf> {
    if name.starts_with('/') {
        return vec![PathBuf::from(name)];
    }
    let path = env::var_os("CLICKPATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|p| !p.as_os_str().is_empty());
    let mut list: Vec<PathBuf> = folders
        .flat_map(|p| {
            [
                p.join("conf").join(name),
                p.join("share/click").join(name),
                p.join(name),
            ]
        })
        .collect();
    list.push(Path::new(around).join(name));
    list
}
