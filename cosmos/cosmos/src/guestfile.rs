// SPDX-License-Identifier: Apache-2.0
//! Guest files: what is to be created, in the style of xl's configuration files.

use std::path::{Path, PathBuf};

use cosmos_proto::Cpu;
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

Of xl's keys it has name, uuid, memory, kernel (the image), vif, cpus (one processor, or \"all\"),
cpu_weight and cap; vcpus is 1, disk is empty; type, on_poweroff, on_reboot and on_crash are the
host's, whatever the file says.

Example:
  cosmos create --name wire --config wire.click --vif port=a,segment=1 --vif port=b,segment=2";

/// The contents of a guest file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestFile {
    pub name: Option<String>,
    pub uuid: Option<String>,
    pub memory: Option<u32>,
    pub config: Option<PathBuf>,
    #[serde(alias = "kernel")]
    pub image: Option<PathBuf>,
    pub image_sha256: Option<String>,
    pub vif: Vec<String>,
    pub write: Vec<(String, String)>,
    /// The processor to run on, as xl writes it: a number, or "all".
    cpus: Option<toml::Value>,
    cpu_weight: Option<u16>,
    cap: Option<u16>,
    // Keys of xl's files that a guest of Click has only one value for.
    vcpus: Option<u32>,
    maxmem: Option<u32>,
    disk: Vec<String>,
    // Settings that the host decides for all guests alike.
    #[serde(rename = "type")]
    _kind: Option<String>,
    #[serde(rename = "on_poweroff")]
    _on_poweroff: Option<String>,
    #[serde(rename = "on_reboot")]
    _on_reboot: Option<String>,
    #[serde(rename = "on_crash")]
    _on_crash: Option<String>,
}

impl GuestFile {
    /// Refuses what xl could do and a guest of Click cannot.
    fn check(&self) -> Result<(), String> {
        if let Some(vcpus) = self.vcpus.filter(|n| *n != 1) {
            return Err(format!("vcpus: a guest has 1, got {vcpus}"));
        }
        if !self.disk.is_empty() {
            return Err("disk: a guest has none".into());
        }
        match (self.memory, self.maxmem) {
            (memory, Some(most)) if memory != Some(most) => {
                Err(format!("maxmem: expected that of memory, got {most}"))
            }
            _ => Ok(()),
        }
    }

    /// The argument of the verb `cpu`, if the file has one.
    pub fn cpu(&self) -> Result<Option<Cpu>, String> {
        let pin = self.cpus.as_ref().map(pin).transpose()?.flatten();
        let (weight, cap) = (self.cpu_weight, self.cap);
        if pin.is_none() && weight.is_none() && cap.is_none() {
            return Ok(None);
        }
        let usual = Cpu::default();
        Ok(Some(Cpu {
            pin,
            weight: weight.unwrap_or(usual.weight),
            cap_percent: cap.unwrap_or(usual.cap_percent),
        }))
    }
}

fn pin(cpus: &toml::Value) -> Result<Option<u16>, String> {
    let text = cpus
        .as_str()
        .map_or_else(|| cpus.to_string(), str::to_owned);
    if text == "all" {
        return Ok(None);
    }
    let number = text.parse().map(Some);
    number.map_err(|_| format!("cpus: expected one processor or \"all\", got {text:?}"))
}

/// Reads a guest file; the path of its configuration is relative to it.
pub fn load(path: &Path) -> Result<GuestFile, String> {
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
    let mut file: GuestFile = toml::from_str(&text).map_err(|e| named(&e))?;
    file.check().map_err(|e| named(&e))?;
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
    fn a_file_of_xl_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.cfg");
        let text = "name = 'g'\ntype = 'pvh'\nkernel = 'clickos'\nmemory = 8\nvcpus = 1\n\
                    vif = ['bridge=br0']\ndisk = []\ncpus = '1'\ncap = 50\n\
                    on_crash = 'preserve'\nconfig = 'g.click'\n";
        std::fs::write(&path, text).unwrap();
        let file = load(&path).unwrap();
        assert_eq!(file.image, Some(dir.path().join("clickos")));
        let cpu = file.cpu().unwrap().unwrap();
        assert_eq!((cpu.pin, cpu.cap_percent), (Some(1), 50));
        for (line, words) in [
            ("vcpus = 2", "vcpus: a guest has 1, got 2"),
            ("disk = ['phy:/dev/sda,xvda,w']", "disk: a guest has none"),
            ("memory = 8\nmaxmem = 16", "maxmem: expected that of memory"),
            ("pci = ['01:00.0']", "pci"),
        ] {
            std::fs::write(&path, line).unwrap();
            assert!(load(&path).unwrap_err().contains(words), "{line}");
        }
        std::fs::write(&path, "cpus = '0-3'").unwrap();
        assert!(load(&path).unwrap().cpu().unwrap_err().contains("0-3"));
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
