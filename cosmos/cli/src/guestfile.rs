// SPDX-License-Identifier: Apache-2.0
//! Guest files: what is to be created, in the style of xl's configuration files.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Told after the flags of `create`.
pub const HELP: &str = "\
A guest file:
  name = \"fw\"
  memory = 8                        # MiB
  config = \"firewall.click\"         # beside this file
  vif = [ 'mac=02:00:00:00:00:01,bridge=vale0,port=fw-0,segment=101,ip=10.0.0.5',
          'bridge=vale0,port=fw-1,segment=102' ]
  write = [ ['fw.config', 'allow icmp, deny all'] ]

Keys of a vif on a switch: mac, bridge (vale0 and so on), port, segment, ip (once for each
allowed address), mtu, slots, security (on or off; on if an ip is given). With the name of a
bridge of dom0 it is a vif of stock netback, with the keys mac, bridge and mtu. What is missing
is chosen.

Example:
  cosmos create --name wire --config wire.click --vif port=a,segment=1 --vif port=b,segment=2";

/// The contents of a guest file.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestFile {
    pub name: Option<String>,
    pub uuid: Option<String>,
    pub memory: Option<u32>,
    pub config: Option<PathBuf>,
    pub image: Option<PathBuf>,
    pub image_sha256: Option<String>,
    pub vif: Vec<String>,
    pub write: Vec<(String, String)>,
}

/// Reads a guest file; the path of its configuration is relative to it.
pub fn load(path: &Path) -> Result<GuestFile, String> {
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
    let mut file: GuestFile = toml::from_str(&text).map_err(|e| named(&e))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    file.config = file.config.map(|config| folder.join(config));
    file.image = file.image.map(|image| folder.join(image));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_help_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.cfg");
        let example: String = HELP
            .lines()
            .skip(1)
            .take(7)
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::write(&path, example).unwrap();
        let file = load(&path).unwrap();
        assert_eq!(file.name.as_deref(), Some("fw"));
        assert_eq!(file.config, Some(dir.path().join("firewall.click")));
        assert_eq!(file.vif.len(), 2);
        assert_eq!(
            file.write,
            [("fw.config".to_owned(), "allow icmp, deny all".to_owned())]
        );
    }

    #[test]
    fn mistakes_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.cfg");
        assert!(load(&path).unwrap_err().contains("fw.cfg"));
        std::fs::write(&path, "memroy = 8\n").unwrap();
        let error = load(&path).unwrap_err();
        assert!(
            error.contains("fw.cfg") && error.contains("memroy"),
            "{error}"
        );
    }
}
