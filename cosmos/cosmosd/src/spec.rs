// SPDX-License-Identifier: Apache-2.0
//! The rules between the fields of what a guest is to be. The types check each field.

use std::collections::HashSet;
use std::fmt;

use control_socket::quoted;
use vale_proto::Kind;

use crate::base::error::{Error, Result};

pub use cosmos_proto::{
    Cpu, HandlerName, Kernel, Link, MAX_VIFS, Nic, Param, Sha256Text, Spec, Uuid, Vif, Write,
};

/// Bytes of the kernel's random numbers.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Error::internal("getrandom", e))?;
    Ok(bytes)
}

/// Checks the rules between fields, before anything is built.
pub fn check_spec(spec: &Spec) -> Result<()> {
    check_devices(&spec.vifs, &spec.nics)?;
    if spec.kernel.is_some() {
        return match spec.config.is_empty() && spec.writes.is_empty() {
            true => Ok(()),
            false => Err(Error::bad_request(
                "kernel: a guest whose kernel is not Click's takes no config and no writes",
            )),
        };
    }
    if spec.config.is_empty() {
        return Err(Error::bad_request(
            "config: a new guest needs a configuration",
        ));
    }
    Ok(())
}

fn check_devices(vifs: &[Vif], nics: &[Nic]) -> Result<()> {
    limit("vifs and nics", vifs.len() + nics.len(), MAX_VIFS)?;
    let (mut devids, mut ports) = (HashSet::new(), HashSet::new());
    let all = vifs.iter().map(|vif| vif.devid);
    for devid in all.chain(nics.iter().map(|nic| nic.devid)) {
        if devid as usize >= MAX_VIFS || !devids.insert(devid) {
            let last = MAX_VIFS - 1;
            let message = format!("vifs: devid {devid}: expected each of 0 to {last} at most once");
            return Err(Error::bad_request(message));
        }
    }
    for vif in vifs {
        let place = format!("vifs: devid {}", vif.devid);
        vif.port_add(Kind::Process, 0)
            .check()
            .map_err(|e| Error::bad_request(format!("{place}: {e}")))?;
        if !ports.insert((&vif.switch, &vif.port)) {
            let message = format!("{place}: port {} is used twice", vif.place());
            return Err(Error::bad_request(message));
        }
    }
    nics.iter().try_for_each(check_nic)
}

/// The bridge is named as Linux names interfaces; the smallest MTU is IPv4's.
fn check_nic(nic: &Nic) -> Result<()> {
    let place = format!("nics: devid {}", nic.devid);
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let (name, mtu) = (nic.bridge.as_bytes(), nic.mtu);
    if !(1..=15).contains(&name.len()) || !name.iter().all(|byte| good(*byte)) {
        let message = format!(
            "{place}: bridge: expected 1 to 15 of A-Z, a-z, 0-9, '.', '_', '-', got {}",
            quoted(&nic.bridge)
        );
        return Err(Error::bad_request(message));
    }
    if mtu < 68 {
        return Err(out_of_range("nics: mtu", mtu, &(68..=u16::MAX)));
    }
    Ok(())
}

/// The name and the parameter of each of several reads.
pub fn pairs<'a>(names: &'a [HandlerName], params: &'a [Param]) -> Result<Vec<(&'a str, &'a str)>> {
    if !params.is_empty() && params.len() != names.len() {
        let (names, params) = (names.len(), params.len());
        return Err(Error::bad_request(format!(
            "params: {params} parameters for {names} names"
        )));
    }
    let params = params.iter().map(|param| &**param);
    let params = params.chain(std::iter::repeat(""));
    Ok(names.iter().map(|name| &**name).zip(params).collect())
}

fn limit(key: &str, count: usize, limit: usize) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "{key}: {count} is above the limit of {limit}"
    )))
}

fn out_of_range<T: fmt::Display>(key: &str, got: T, range: &std::ops::RangeInclusive<T>) -> Error {
    let (low, high) = (range.start(), range.end());
    Error::bad_request(format!("{key}: expected {low} to {high}, got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{linux, nic, spec};

    #[test]
    fn a_good_one_passes() {
        check_spec(&spec(1)).unwrap();
        check_spec(&linux(1)).unwrap();
    }

    #[test]
    fn a_kernel_takes_no_configuration() {
        let mut both = linux(1);
        both.config = spec(1).config;
        let error = check_spec(&both).unwrap_err();
        assert!(error.message.starts_with("kernel: "), "{error}");
        both = linux(1);
        both.writes = spec(1).writes;
        check_spec(&both).unwrap_err();
    }

    #[test]
    fn bad_arguments_are_named() {
        type Change = fn(&mut Spec);
        let cases: [(&str, Change); 7] = [
            ("config: a new guest", |s| s.config = Default::default()),
            ("vifs: devid 1: expected each", |s| s.vifs[0].devid = 1),
            ("vifs: devid 1: port vale0:g1-0 is used twice", |s| {
                s.vifs[1].port = s.vifs[0].port.clone()
            }),
            ("vifs: devid 0: segment: 0 is outside", |s| {
                s.vifs[0].segment = 0
            }),
            ("vifs: devid 1: expected each", |s| s.nics = vec![nic(1)]),
            ("nics: devid 2: bridge: expected 1 to 15", |s| {
                s.nics = vec![nic(2)];
                s.nics[0].bridge = "br0; reboot".into();
            }),
            ("nics: mtu: expected 68", |s| {
                s.nics = vec![nic(2)];
                s.nics[0].mtu = 0;
            }),
        ];
        for (words, change) in cases {
            let mut bad = spec(1);
            change(&mut bad);
            let error = check_spec(&bad).unwrap_err();
            assert!(error.message.starts_with(words), "{words}: {error}");
        }
    }
}
