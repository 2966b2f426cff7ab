// SPDX-License-Identifier: Apache-2.0
//! What the daemons share besides the socket: configuration, logs, termination.
use std::io;
use std::path::Path;

use log::LevelFilter;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Largest configuration file read, in bytes.
const MAX_CONFIG: u64 = 1 << 20;

/// Descriptors of a daemon, a few for each guest.
const DESCRIPTORS: u64 = 1 << 16;

/// Reads a TOML file; the error names the file, and line and column where it is wrong.
pub fn load_config<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let size = std::fs::metadata(path).map_err(|e| named(&e))?.len();
    if size > MAX_CONFIG {
        return Err(named(&format!(
            "{size} bytes are more than the limit of {MAX_CONFIG}"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
    toml::from_str(&text).map_err(|e| named(&e))
}

/// Sends the log to standard error, one line a record with time, level and module.
pub fn log_to_stderr(level: LevelFilter) {
    env_logger::Builder::new()
        .filter_level(level)
        .target(env_logger::Target::Stderr)
        .init();
}

/// Raises the limit of descriptors to what thousands of clients, guests and ports need. A daemon
/// that may not raise the hard limit takes what that allows.
pub fn raise_descriptor_limit() {
    let hard = getrlimit(Resource::Nofile).maximum;
    let wanted = hard.map(|hard| hard.max(DESCRIPTORS));
    let set = |current, maximum| setrlimit(Resource::Nofile, Rlimit { current, maximum });
    if let Err(e) = set(wanted, wanted).or_else(|_| set(hard, hard)) {
        log::warn!("descriptor limit stays as it is: {e}");
    }
}

/// SIGTERM and SIGINT, caught from here on.
pub struct Termination(Signals);

impl Termination {
    /// Catches the signals; to be called before any other thread is started.
    pub fn catch() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT]).map(Self)
    }

    /// Waits for one of them.
    pub fn wait(mut self) {
        self.0.forever().next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Config {
        socket: String,
    }

    #[test]
    fn a_wrong_file_is_named_with_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d.toml");
        assert!(load_config::<Config>(&path).unwrap_err().contains("d.toml"));
        std::fs::write(&path, "socket = \"s\"\nsokcet = 3\n").unwrap();
        let error = load_config::<Config>(&path).unwrap_err();
        assert!(
            error.contains("d.toml") && error.contains("line 2"),
            "{error}"
        );
        std::fs::write(&path, "socket = \"s\"\n").unwrap();
        assert_eq!(load_config::<Config>(&path).unwrap().socket, "s");
    }
}
