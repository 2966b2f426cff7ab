// SPDX-License-Identifier: Apache-2.0
//! The argument line that cosmosd sends on descriptor 3.
use crate::inherited;
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read};

/// Bytes of the line at most; a vif takes about 100.
const LINE_MAX: u64 = 64 << 10;
const VIFS_MAX: usize = 64;
/// A guest that was promised less may use this much all the same, as the smallest domain has it.
const HEAP_MIN_MIB: u64 = 4;

/// VCPUs of a guest at most.
const VCPUS_MAX: u8 = 8;

fn one() -> u8 {
    1
}

/// The argument line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    pub domid: u16,
    pub uid: u32,
    pub memory_mib: u64,
    /// Threads that forward.
    #[serde(default = "one")]
    pub vcpus: u8,
    pub seed: String,
    pub store: StoreFds,
    pub vifs: Vec<Vif>,
    pub root: i32,
    /// Without it the guest keeps the vifs that it started with.
    #[serde(default)]
    pub plug: Option<PlugFds>,
}

/// Descriptors of the socket on which vifs come and go: both of its ends.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlugFds {
    pub guest: i32,
    pub toolstack: i32,
}

/// Descriptors of the link to the store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreFds {
    pub ring: i32,
    pub to_store: i32,
    pub from_store: i32,
}

/// A vif and its descriptors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vif {
    pub devid: u32,
    pub mac: String,
    pub mtu: u16,
    pub memfd: i32,
    pub kick: i32,
    pub wake: i32,
}

impl Arguments {
    /// Reads the line; waits until cosmosd sends it.
    pub(crate) fn receive() -> Result<Self, String> {
        let file = inherited::argument_file()?;
        let mut line = Vec::new();
        let read = BufReader::new(file)
            .take(LINE_MAX)
            .read_until(b'\n', &mut line);
        read.map_err(|e| format!("descriptor 3: {e}"))?;
        if line.last() != Some(&b'\n') {
            return Err("descriptor 3: ended without an argument line".into());
        }
        Self::parse(&line)
    }

    fn parse(line: &[u8]) -> Result<Self, String> {
        let arguments: Self =
            serde_json::from_slice(line).map_err(|e| format!("argument line: {e}"))?;
        arguments
            .check()
            .map_err(|e| format!("argument line: {e}"))?;
        Ok(arguments)
    }

    fn check(&self) -> Result<(), String> {
        if self.uid == 0 {
            return Err("uid: 0 is not a guest's".into());
        }
        if self.memory_mib == 0 || self.memory_mib > 1 << 20 {
            return Err(format!(
                "memory_mib: {} is not in 1..=1048576",
                self.memory_mib
            ));
        }
        if !(1..=VCPUS_MAX).contains(&self.vcpus) {
            let got = self.vcpus;
            return Err(format!("vcpus: {got} is not in 1..={VCPUS_MAX}"));
        }
        if self.vifs.len() > VIFS_MAX {
            return Err(format!(
                "vifs: {} vifs, the limit is {VIFS_MAX}",
                self.vifs.len()
            ));
        }
        self.vifs
            .iter()
            .try_for_each(|vif| mac(&vif.mac).map(drop))?;
        self.seed().map(drop)
    }

    /// The key of the guest's random numbers.
    pub(crate) fn seed(&self) -> Result<[u8; 32], String> {
        let fault = || "seed: expected 64 hexadecimal digits".to_string();
        let digits: Option<Vec<u32>> = self.seed.chars().map(|c| c.to_digit(16)).collect();
        let digits = digits.filter(|d| d.len() == 64).ok_or_else(fault)?;
        Ok(std::array::from_fn(|n| {
            u8::try_from(digits[2 * n] << 4 | digits[2 * n + 1]).expect("two digits of 4 bits")
        }))
    }

    /// The memory that the guest may allocate.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.memory_mib.max(HEAP_MIN_MIB) << 20
    }

    /// All descriptors named, for the check that no number occurs twice.
    pub(crate) fn descriptors(&self) -> Vec<i32> {
        let store = [
            self.store.ring,
            self.store.to_store,
            self.store.from_store,
            self.root,
        ];
        let vifs = self
            .vifs
            .iter()
            .flat_map(|vif| [vif.memfd, vif.kick, vif.wake]);
        let plug = self.plug.iter().flat_map(|p| [p.guest, p.toolstack]);
        store.into_iter().chain(vifs).chain(plug).collect()
    }
}

/// A hardware address.
pub(crate) fn mac(text: &str) -> Result<[u8; 6], String> {
    let wrong = || format!("vifs: {text:?} is not a MAC address");
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|p| p.len() == 2 && !p.starts_with('+'));
        *byte = part
            .and_then(|p| u8::from_str_radix(p, 16).ok())
            .ok_or_else(wrong)?;
    }
    if parts.next().is_some() {
        Err(wrong())
    } else {
        Ok(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
        let mut line = serde_json::json!({
            "domid": 5, "uid": 200_005, "memory_mib": 8, "seed": "01".repeat(32),
            "store": {"ring": 4, "to_store": 5, "from_store": 6},
            "vifs": [{"devid": 0, "mac": "02:00:00:00:00:0a", "mtu": 1500,
                      "memfd": 7, "kick": 8, "wake": 9}],
            "root": 10,
        });
        change(&mut line);
        line.to_string().into_bytes()
    }

    fn error(change: impl Fn(&mut serde_json::Value)) -> String {
        Arguments::parse(&line(change)).unwrap_err()
    }

    #[test]
    fn the_line_of_the_contract() {
        let arguments = Arguments::parse(&line(|_| {})).unwrap();
        assert_eq!(mac(&arguments.vifs[0].mac).unwrap(), [2, 0, 0, 0, 0, 10]);
        assert_eq!(arguments.descriptors(), [4, 5, 6, 10, 7, 8, 9]);
        assert_eq!((arguments.heap_bytes(), arguments.vcpus), (8 << 20, 1));
        assert_eq!(arguments.seed().unwrap(), [1; 32]);
    }

    #[test]
    fn the_socket_for_vifs_is_optional() {
        let plug = serde_json::json!({"guest": 11, "toolstack": 12});
        let arguments = Arguments::parse(&line(|l| l["plug"] = plug.clone())).unwrap();
        assert_eq!(arguments.descriptors(), [4, 5, 6, 10, 7, 8, 9, 11, 12]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error(|l| l["uid"] = 0.into()).contains("uid: 0"));
        assert!(error(|l| l["memory_mib"] = 0.into()).contains("memory_mib: 0"));
        assert!(error(|l| l["vcpus"] = 0.into()).contains("vcpus: 0"));
        assert!(error(|l| l["vcpus"] = 9.into()).contains("vcpus: 9"));
        assert!(error(|l| l["seed"] = "xy".into()).contains("seed: expected 64"));
        assert!(error(|l| l["seed"] = "é".repeat(32).into()).contains("seed: expected 64"));
        assert!(error(|l| l["domid"] = 70000.into()).contains("70000"));
        assert!(error(|l| l["more"] = 1.into()).contains("more"));
        for mac in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "02-00-00-00-00-00",
            "+2:0:0:0:0:0",
        ] {
            assert!(
                error(|l| l["vifs"][0]["mac"] = mac.into()).contains("MAC"),
                "{mac}"
            );
        }
        assert!(
            Arguments::parse(b"{")
                .unwrap_err()
                .starts_with("argument line: ")
        );
    }
}
