// SPDX-License-Identifier: Apache-2.0
//! Guest files: what is to be created, in the style of xl's configuration files.

use std::path::{Path, PathBuf};

use cosmos_proto::Cpu;

use crate::output::printable;
use crate::xl_syntax::{self, Setting, Value};

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

The syntax is that of xl.cfg(5). Keys of xl's files:
  name, uuid, memory, kernel    the last one is the image
  cpus, cpu_weight, cap         one processor, or \"all\"
  vcpus                         threads that forward; more than 1 on hosts of the kind process
  maxmem, maxvcpus, disk        the values of memory and of vcpus, and an empty list
  type, on_poweroff, on_reboot, on_crash
                                the host's, whatever the file says
  extra, cmdline, root          ignored, with a note
Keys of xl's vifs:
  vifname                       the port
  devid                         the place in the list
  type                          vif or vale
  script                        vif-vale, or vif-bridge on a bridge of dom0

Example:
  cosmos create --name wire --config wire.click --vif port=a,segment=1 --vif port=b,segment=2";

/// The contents of a guest file.
#[derive(Debug, Default, PartialEq)]
pub struct GuestFile {
    pub name: Option<String>,
    pub uuid: Option<String>,
    pub memory: Option<u32>,
    pub vcpus: Option<u32>,
    pub config: Option<PathBuf>,
    pub image: Option<PathBuf>,
    pub image_sha256: Option<String>,
    pub vif: Vec<String>,
    pub write: Vec<(String, String)>,
    /// Settings that the image has no use for.
    notes: Vec<String>,
    /// The processor to run on, as xl writes it: a number, or "all".
    cpus: Option<String>,
    cpu_weight: Option<u16>,
    cap: Option<u16>,
    maxmem: Option<u32>,
    maxvcpus: Option<u32>,
}

impl GuestFile {
    /// Takes one statement of the file.
    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match key {
            "name" => self.name = Some(text(value)?),
            "uuid" => self.uuid = Some(text(value)?),
            "memory" => self.memory = Some(number(value)?),
            "maxmem" => self.maxmem = Some(number(value)?),
            "config" => self.config = Some(text(value)?.into()),
            "image" | "kernel" => self.image = Some(text(value)?.into()),
            "image_sha256" => self.image_sha256 = Some(text(value)?),
            "vif" => {
                self.vif = list(value)?
                    .into_iter()
                    .map(text)
                    .collect::<Result<_, _>>()?
            }
            "write" => {
                self.write = list(value)?
                    .into_iter()
                    .map(pair)
                    .collect::<Result<_, _>>()?
            }
            "cpus" => self.cpus = Some(one_of_many(value)?),
            "cpu_weight" => self.cpu_weight = Some(number(value)?),
            "cap" => self.cap = Some(number(value)?),
            "vcpus" => self.vcpus = Some(number(value)?),
            "maxvcpus" => self.maxvcpus = Some(number(value)?),
            "disk" if list(value.clone())?.is_empty() => {}
            "disk" => return Err("a guest has none".into()),
            // Settings that the host decides for all guests alike.
            "type" | "on_poweroff" | "on_reboot" | "on_crash" => drop(text(value)?),
            "extra" | "cmdline" | "root" => {
                drop(text(value)?);
                self.notes
                    .push(format!("{key}: ignored, the image reads no command line"));
            }
            "click" => return Err("this key is called config here".into()),
            _ => return Err("unknown key; cosmos create --help lists the known ones".into()),
        }
        Ok(())
    }

    /// Refuses what xl could do and a guest of Click cannot.
    fn check(&self) -> Result<(), String> {
        match (self.memory, self.maxmem) {
            (memory, Some(most)) if memory != Some(most) => {
                Err(format!("maxmem: expected that of memory, got {most}"))
            }
            _ => match (self.vcpus, self.maxvcpus) {
                (vcpus, Some(most)) if vcpus.unwrap_or(1) != most => {
                    Err(format!("maxvcpus: expected that of vcpus, got {most}"))
                }
                _ => Ok(()),
            },
        }
    }

    /// The argument of the verb `cpu`, if the file has one.
    pub fn cpu(&self) -> Result<Option<Cpu>, String> {
        let pin = self.cpus.as_deref().map(pin).transpose()?.flatten();
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

fn text(value: Value) -> Result<String, String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::List(values) => Err(format!(
            "expected one value, got a list of {}",
            values.len()
        )),
    }
}

fn list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::List(values) => Ok(values),
        Value::Text(text) => Err(format!("expected a list, got {text:?}")),
    }
}

/// A value, or a list of one.
fn one_of_many(value: Value) -> Result<String, String> {
    match value {
        Value::List(mut values) if values.len() == 1 => text(values.remove(0)),
        value => text(value),
    }
}

/// A number as strtoul reads it with base 0: 12, 0x0c and 014 are the same.
fn number<N: TryFrom<u64>>(value: Value) -> Result<N, String> {
    let text = text(value)?;
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text.as_str(), 10),
    };
    let is_plain = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, radix).ok().filter(|_| is_plain);
    let number = number.ok_or_else(|| format!("expected a number, got {text:?}"))?;
    N::try_from(number).map_err(|_| format!("{number} is too large"))
}

fn pair(value: Value) -> Result<(String, String), String> {
    let mut both = list(value)?.into_iter();
    match (both.next(), both.next(), both.next()) {
        (Some(handler), Some(value), None) => Ok((text(handler)?, text(value)?)),
        _ => Err("expected [HANDLER, VALUE]".into()),
    }
}

fn pin(cpus: &str) -> Result<Option<u16>, String> {
    if cpus == "all" {
        return Ok(None);
    }
    let number = cpus.parse().map(Some);
    number.map_err(|_| format!("cpus: expected one processor or \"all\", got {cpus:?}"))
}

/// Reads a guest file, and tells on standard error what it ignores; the path of its configuration is relative to it.
pub fn load(path: &Path) -> Result<GuestFile, String> {
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
    let mut file = GuestFile::default();
    for Setting { line, key, value } in xl_syntax::parse(&text).map_err(|e| named(&e))? {
        let set = file.set(&key, value);
        set.map_err(|e| named(&format!("line {line}: {key}: {e}")))?;
    }
    file.check().map_err(|e| named(&e))?;
    for note in &file.notes {
        eprintln!("cosmos: {}", printable(&named(note)));
    }
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

    fn loaded(text: &str) -> Result<GuestFile, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("g.cfg");
        std::fs::write(&path, text).unwrap();
        load(&path)
    }

    #[test]
    fn a_file_of_xl_is_understood() {
        let text = "name = 'g'\ntype = 'pvh'\nkernel = '/boot/clickos'\nmemory = 8\nvcpus = 1\n\
                    vif = ['bridge=br0']\ndisk = []\ncpus = '1'\ncap = 50\n\
                    on_crash = 'preserve'\nconfig = 'g.click'\n";
        let file = loaded(text).unwrap();
        assert_eq!(file.image.as_deref(), Some(Path::new("/boot/clickos")));
        let cpu = file.cpu().unwrap().unwrap();
        assert_eq!((cpu.pin, cpu.cap_percent), (Some(1), 50));
        for (line, words) in [
            ("maxvcpus = 2", "maxvcpus: expected that of vcpus, got 2"),
            ("disk = ['phy:/dev/sda,xvda,w']", "disk: a guest has none"),
            ("memory = 8\nmaxmem = 16", "maxmem: expected that of memory"),
            ("pci = ['01:00.0']", "pci: unknown key"),
            (
                "click = 'd.click'",
                "line 1: click: this key is called config here",
            ),
            (
                "memory = 'a lot'",
                "memory: expected a number, got \"a lot\"",
            ),
            ("memory = '+8'", "memory: expected a number"),
            ("cap = 70000", "cap: 70000 is too large"),
            ("name = ['a']", "name: expected one value, got a list of 1"),
            ("vif = 'bridge=vale0'", "vif: expected a list"),
            ("write = [['a.b']]", "write: expected [HANDLER, VALUE]"),
        ] {
            let error = loaded(line).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let error = loaded("cpus = '0-3'").unwrap().cpu().unwrap_err();
        assert!(error.contains("0-3"), "{error}");
    }

    #[test]
    fn numbers_may_stand_in_quotes() {
        for memory in ["24", "'24'", "\"24\"", "0x18", "'030'"] {
            let file = loaded(&format!("memory = {memory}; vcpus = '1'; cpus = ['0']")).unwrap();
            assert_eq!(file.memory, Some(24), "{memory}");
            assert_eq!(file.cpu().unwrap().unwrap().pin, Some(0));
        }
    }

    #[test]
    fn what_the_image_cannot_use_is_told() {
        let file =
            loaded("name = 'a'; extra = 'console=hvc0'\nvif = [ '' ]\nmemory = 12; maxmem = 12")
                .unwrap();
        assert_eq!(file.vif, [""]);
        assert_eq!(
            file.notes,
            ["extra: ignored, the image reads no command line"]
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
