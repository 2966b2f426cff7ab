// SPDX-License-Identifier: Apache-2.0
//! Where configurations and the libraries they require are read from.
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use click_lang::archive::{self, Archive};
use click_lang::{Limits, Memory, Sources};

/// The name in errors of a configuration given as text.
const EXPRESSION_NAME: &str = "config";

/// A configuration as it was given.
pub struct Given {
    /// Its text, and that of its libraries.
    pub sources: Sources,
    /// The other members of its archive, by name.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Where libraries are looked for, and what the program adds to each configuration.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Folders as in CLICKPATH.
    clickpath: OsString,
    own: String,
    /// Files of this machine are no libraries, as for a guest.
    without_libraries: bool,
}

impl Reader {
    /// Looks in the folders of `clickpath`, or else of the environment variable CLICKPATH.
    pub fn new(clickpath: Option<&Path>, own: String) -> Self {
        let given = clickpath.map(|p| p.as_os_str().to_os_string());
        let clickpath = given.or_else(|| env::var_os("CLICKPATH"));
        let clickpath = clickpath.unwrap_or_default();
        Self {
            clickpath,
            own,
            without_libraries: false,
        }
    }

    /// Reads no library from now on: a guest has none, and a configuration of others could name any file.
    pub fn forget_libraries(&mut self) {
        self.without_libraries = true;
    }

    /// Reads a configuration: the text if there is one, else the file; "-" or none is standard
    /// input.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn read(&self, expression: Option<&str>, file: Option<&Path>) -> Result<Given, String> {
        if let Some(text) = expression {
            return Ok(Given {
                sources: self.complete(EXPRESSION_NAME, text.to_string()),
                files: Vec::new(),
            });
        }
        let (name, bytes) = match file.filter(|p| *p != Path::new("-")) {
            Some(path) => (path.display().to_string(), fs::read(path)),
            None => ("<stdin>".to_string(), all_of_stdin()),
        };
        let bytes = bytes.map_err(|e| format!("{name}: {e}"))?;
        let text = archive::configuration(&bytes).map_err(|e| format!("{name}: {e}"))?;
        Ok(Given {
            sources: self.complete(&name, text),
            files: others(&bytes).map_err(|e| format!("{name}: {e}"))?,
        })
    }

    /// A configuration with the libraries it requires and what the program adds.
    pub fn complete(&self, name: &str, text: String) -> Sources {
        let mut sources = Sources::new(name, text);
        if !self.own.is_empty() {
            sources.append("command line", self.own.clone());
        }
        if !self.without_libraries {
            sources.load_libraries(&|name, from| self.find(name, from), &limits());
        }
        sources
    }

    /// Finds a library: in the folders of CLICKPATH, and in that of the file that requires it.
    fn find(&self, name: &str, from: &str) -> Result<(String, String), String> {
        let around = match from.rsplit_once('/') {
            Some(("", _)) => "/",
            Some((folder, _)) => folder,
            None => ".",
        };
        let mut candidates = self.candidates(name, around).into_iter();
        let path = candidates.find(|p| p.is_file());
        let path = path.ok_or_else(|| format!("library '{name}' not found in CLICKPATH/conf"))?;
        let shown = path.display().to_string();
        let bytes = fs::read(&path).map_err(|e| format!("{shown}: {e}"))?;
        let text = archive::configuration(&bytes).map_err(|e| format!("{shown}: {e}"))?;
        Ok((shown, text))
    }

    fn candidates(&self, name: &str, around: &str) -> Vec<PathBuf> {
        if name.starts_with('/') {
            return vec![PathBuf::from(name)];
        }
        let folders = env::split_paths(&self.clickpath).filter(|p| !p.as_os_str().is_empty());
        let places = |p: PathBuf| {
            [
                p.join("conf").join(name),
                p.join("share/click").join(name),
                p.join(name),
            ]
        };
        let mut list: Vec<PathBuf> = folders.flat_map(places).collect();
        list.push(Path::new(around).join(name));
        list
    }
}

/// The members of an archive besides the configuration.
fn others(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let archive = Archive::of(bytes)?;
    let files = archive.iter().flat_map(Archive::files);
    Ok(files
        .map(|(name, data)| (name.to_string(), data.to_vec()))
        .collect())
}

fn all_of_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes).map(|_| bytes)
}

/// Limits of a configuration of this program.
pub fn limits() -> Limits {
    Limits {
        config_bytes: 256 << 20,
        elements: 1 << 20,
        connections: 1 << 22,
        ports: 65_536,
        steps: 1 << 30,
        memory: Memory::UNBOUNDED,
    }
}
