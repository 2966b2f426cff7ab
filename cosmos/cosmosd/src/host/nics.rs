// SPDX-License-Identifier: Apache-2.0
//! Vifs of stock netback that are preconnected in the pool (docs/adr/0098-guest-pool.md).
//!
//! Netback and guest have connected. The interface in dom0 is down and on no bridge.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Domain;
use crate::base::error::{Error, Result};
use crate::base::text::escape;
use crate::spec::Nic;
use crate::store::{Change, Store};

/// The hotplug script that libxl takes if it is given none.
pub const DEFAULT_SCRIPT: &str = "/etc/xen/scripts/vif-bridge";
/// How long a hotplug script may take, as for libxl.
const SCRIPT: Duration = Duration::from_secs(10);

/// Changes to the store between libxl's making of the preconnected vifs and the start of their guest. The
/// guest sees no address, and netback waits for no script.
pub fn hide(domain: &Domain) -> Vec<Change> {
    let of = |devid| {
        let (front, back) = (front(domain.domid, devid), back(domain.domid, devid));
        let status = Change::write(
            format!("/local/domain/0/{back}/hotplug-status"),
            "connected",
        );
        [Change::remove(format!("{front}/mac")), status]
    };
    domain.preconnected.nics().flat_map(of).collect()
}

/// Gives the preconnected vifs of a taken guest their bridges, by the host's hotplug script.
pub fn rehome(domain: &Domain, script: &str, store: &dyn Store) -> Result<()> {
    let nics = domain.nics.iter();
    for nic in nics.filter(|nic| domain.preconnected.has_nic(nic.devid)) {
        store.apply(&described(domain.domid, nic, script))?;
        run(script, domain.domid, nic.devid).map_err(|e| told(domain.domid, nic, store, e))?;
    }
    Ok(())
}

/// The error of a script, with the script's own words.
fn told(domid: u16, nic: &Nic, store: &dyn Store, error: Error) -> Error {
    let path = format!("/local/domain/0/{}/hotplug-error", back(domid, nic.devid));
    match store.read(&path) {
        Ok(Some(words)) => Error::new(error.code, format!("{}: {}", error.message, escape(&words))),
        _ => error,
    }
}

/// The addresses, for the guest.
pub fn addresses(domain: &Domain) -> Vec<Change> {
    let nics = domain.nics.iter();
    let preconnected = nics.filter(|nic| domain.preconnected.has_nic(nic.devid));
    let of = |nic: &Nic| {
        let front = front(domain.domid, nic.devid);
        let mtu = Change::write(format!("{front}/mtu"), nic.mtu.to_string());
        [
            mtu,
            Change::write(format!("{front}/mac"), nic.mac.to_string()),
        ]
    };
    preconnected.flat_map(of).collect()
}

fn front(domid: u16, devid: u32) -> String {
    format!("/local/domain/{domid}/device/vif/{devid}")
}

/// Relative to the directory of dom0, as scripts get it.
fn back(domid: u16, devid: u32) -> String {
    format!("backend/vif/{domid}/{devid}")
}

/// The keys by which the script, libxl and netback know the vif.
fn described(domid: u16, nic: &Nic, script: &str) -> Vec<Change> {
    let keys = [
        ("bridge", nic.bridge.clone()),
        ("script", script.to_owned()),
        ("mac", nic.mac.to_string()),
        ("mtu", nic.mtu.to_string()),
    ];
    let back = format!("/local/domain/0/{}", back(domid, nic.devid));
    let libxl = format!("/libxl/{domid}/device/vif/{}", nic.devid);
    let of = |folder: &str| {
        let write = |(key, value): &(&str, String)| {
            Change::write(format!("{folder}/{key}"), value.as_str())
        };
        keys.iter().map(write).collect::<Vec<_>>()
    };
    [of(&back), of(&libxl)].concat()
}

/// Runs the script as libxl does.
fn run(script: &str, domid: u16, devid: u32) -> Result<()> {
    let place = format!("{script}: vif{domid}.{devid}");
    let named = |e: std::io::Error| Error::internal(&place, e);
    let mut child = Command::new(script)
        .args(["online", "type_if=vif"])
        .env("script", script)
        .env("XENBUS_TYPE", "vif")
        .env("XENBUS_PATH", back(domid, devid))
        .env("XENBUS_BASE_PATH", "backend")
        .env("vif", format!("vif{domid}.{devid}"))
        .stdin(Stdio::null())
        .spawn()
        .map_err(named)?;
    let is_over = is_over(&child, SCRIPT).map_err(named);
    if !matches!(is_over, Ok(true)) {
        // It has ended already if that fails.
        let _ = child.kill();
    }
    let status = child.wait().map_err(named)?;
    match is_over? && status.success() {
        true => Ok(()),
        false => Err(Error::internal(&place, format!("it failed: {status}"))),
    }
}

/// Waits until a process has ended; false if it takes too long.
fn is_over(child: &Child, most: Duration) -> std::io::Result<bool> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let mut ready = [PollFd::new(&pidfd, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: most.as_secs() as i64,
        tv_nsec: 0,
    };
    Ok(poll(&mut ready, Some(&timeout))? > 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::base::faults::FaultInjector;
    use crate::store::sim::SimStore;
    use crate::testing::{domain, nic};

    /// A domain with a preconnected vif of netback, number 2, and another one.
    fn taken() -> Domain {
        let mut domain = domain(7);
        domain.nics = vec![nic(2), nic(3)];
        (domain.preconnected.vifs, domain.preconnected.nics) = (2, 1);
        domain
    }

    fn text(change: &Change) -> String {
        match change {
            Change::Write { path, value, .. } => {
                format!("{path} = {}", String::from_utf8_lossy(value))
            }
            Change::Remove { path } => format!("no {path}"),
        }
    }

    /// A script, written by a process of its own: a child that another test
    /// forks would keep our descriptor open, and the script's text busy.
    fn script(dir: &tempfile::TempDir, body: &str) -> String {
        let path = dir.path().join("script").display().to_string();
        let text = format!("#!/bin/sh\n{body}\n");
        let write = r#"printf %s "$1" >"$2" && chmod 755 "$2""#;
        let status = Command::new("sh")
            .args(["-c", write, "sh", &text, &path])
            .status();
        assert!(status.unwrap().success());
        path
    }

    #[test]
    fn only_preconnected_vifs_are_written_about() {
        let texts: Vec<_> = hide(&taken()).iter().map(text).collect();
        assert_eq!(
            texts,
            [
                "no /local/domain/7/device/vif/2/mac",
                "/local/domain/0/backend/vif/7/2/hotplug-status = connected"
            ]
        );
        let texts: Vec<_> = addresses(&taken()).iter().map(text).collect();
        assert_eq!(
            texts,
            [
                "/local/domain/7/device/vif/2/mtu = 1500",
                "/local/domain/7/device/vif/2/mac = 02:00:00:00:ff:02"
            ]
        );
        assert!(hide(&domain(7)).is_empty() && addresses(&domain(7)).is_empty());
    }

    #[test]
    fn the_script_gets_what_libxl_gives_it() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let body = format!(
            "echo $vif $XENBUS_PATH $XENBUS_TYPE $XENBUS_BASE_PATH $* >>{}",
            out.display()
        );
        let script = script(&dir, &body);
        let store = Arc::new(SimStore::with(Arc::new(FaultInjector::default())));
        store.put("/local/domain/0/backend/vif/7/2/bridge", "xenbr0");
        rehome(&taken(), &script, &*store).unwrap();
        assert_eq!(
            fs::read_to_string(&out).unwrap(),
            "vif7.2 backend/vif/7/2 vif backend online type_if=vif\n"
        );
        for folder in ["/local/domain/0/backend/vif/7/2", "/libxl/7/device/vif/2"] {
            let value = |key| store.value(&format!("{folder}/{key}")).unwrap();
            assert_eq!(value("bridge"), "br0");
            assert_eq!(value("script"), script);
        }
    }

    #[test]
    fn the_words_of_a_script_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let failing = script(&dir, "exit 1");
        let store = Arc::new(SimStore::with(Arc::new(FaultInjector::default())));
        store.put("/local/domain/0/backend/vif/7/2/hotplug-error", "no mac");
        let error = rehome(&taken(), &failing, &*store).unwrap_err();
        assert!(error.message.ends_with("exit status: 1: no mac"), "{error}");
    }

    #[test]
    fn a_script_that_fails_or_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let failing = script(&dir, "exit 3");
        let error = run(&failing, 7, 2).unwrap_err();
        assert!(
            error.message.contains("vif7.2: it failed: exit status: 3"),
            "{error}"
        );
        let error = run("/nonexistent", 7, 2).unwrap_err();
        assert!(error.message.contains("/nonexistent: vif7.2"), "{error}");
    }

    #[test]
    fn a_script_that_takes_too_long_is_noticed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!is_over(&child, Duration::ZERO).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
