// SPDX-License-Identifier: Apache-2.0
//! What a host lacks to run guests: one line a check, each with what to do.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use cosmos_proto::answer::{Host, Stranger};
use serde_json::{Value, json};
use vale_proto::{KeptList, ValeClient};

/// Daemons of the Xen store, each with its description.
const STORES: [(&str, &str); 2] = [
    ("oxenstored", "the Xen store, by oxenstored"),
    (
        "xenstored",
        "the Xen store, by xenstored; with many guests oxenstored is quicker",
    ),
];

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// The fault and its cure; empty without a fault.
    pub advice: Option<String>,
}

impl Check {
    pub fn new(name: impl Into<String>, good: bool, advice: &str) -> Self {
        Self {
            name: name.into(),
            advice: (!good).then(|| advice.to_owned()),
        }
    }

    pub fn json(&self) -> Value {
        json!({"check": self.name, "ok": self.advice.is_none(), "advice": self.advice})
    }

    pub fn row(&self) -> Vec<String> {
        let mark = if self.advice.is_none() { "ok" } else { "LACKS" };
        let advice = self.advice.clone().unwrap_or_default();
        vec![mark.into(), self.name.clone(), advice]
    }
}

/// A machine, as its files show it.
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    fn says(&self, path: &str, words: &str) -> bool {
        let text = std::fs::read_to_string(self.root.join(path));
        text.is_ok_and(|text| text.contains(words))
    }

    /// Runs this system under Xen, or is it prepared to?
    pub fn is_xen(&self) -> bool {
        self.says("sys/hypervisor/type", "xen") || self.has("proc/xen/capabilities")
    }

    /// Requirements of a Xen host, below its daemons.
    pub fn xen(&self) -> Vec<Check> {
        let mut checks = vec![Check::new(
            "this is dom0",
            self.says("proc/xen/capabilities", "control_d"),
            "boot Xen with this system as dom0, and mount xenfs on /proc/xen",
        )];
        for device in ["privcmd", "evtchn", "gntdev"] {
            let advice = format!("modprobe xen-{device}");
            let found = self.has(&format!("dev/xen/{device}"));
            checks.push(Check::new(format!("/dev/xen/{device}"), found, &advice));
        }
        checks.push(self.store());
        let console = self.running("xenconsoled");
        let advice = "consoles of guests; start it: xenconsoled";
        checks.push(Check::new("xenconsoled", console, advice));
        checks
    }

    /// The daemon, of two, that keeps the Xen store.
    fn store(&self) -> Check {
        let found = STORES.iter().find(|(program, _)| self.running(program));
        let name = found.map_or("the Xen store", |(_, name)| name);
        let advice = "start it: systemctl start xen (or xenstored, as the system calls it)";
        Check::new(name, found.is_some(), advice)
    }

    fn running(&self, program: &str) -> bool {
        let processes = std::fs::read_dir(self.root.join("proc"));
        let mut names = processes
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| std::fs::read_to_string(entry.path().join("comm")).ok());
        names.any(|name| name.trim() == program)
    }
}

/// True if somebody listens at a socket.
pub fn listening(name: &str, socket: &Path) -> Check {
    let advice = format!("start {name}; no process listens at {}", socket.display());
    Check::new(name, UnixStream::connect(socket).is_ok(), &advice)
}

/// Domains that look like guests: both would answer to the same address.
pub fn strangers(strangers: &[Stranger]) -> Check {
    let advice = strangers.iter().map(|of| {
        let (domid, uuid) = (of.domid, &of.uuid);
        format!("domain {domid} carries {uuid}, not by cosmosd: xl destroy {domid}")
    });
    let advice = advice.collect::<Vec<_>>().join("; ");
    Check::new(
        "no domain of others with a guest's UUID or name",
        strangers.is_empty(),
        &advice,
    )
}

/// The commands of vale-ctl that valed keeps. None if it does not show them to this user.
pub fn kept(socket: &Path) -> Option<Check> {
    let list = ValeClient::connect(socket).and_then(|mut client| client.kept_list());
    list.ok().map(|list| check_kept(&list))
}

fn check_kept(list: &KeptList) -> Check {
    let waiting = list.kept.iter().filter(|kept| kept.waits.is_some());
    let advice = match (&list.fault, waiting.count()) {
        (Some(fault), _) => fault.clone(),
        (None, count) => format!("{count} are not; vale-ctl kept says why"),
    };
    let is_good = list.fault.is_none() && list.kept.iter().all(|kept| kept.waits.is_none());
    Check::new("kept commands of vale-ctl are in force", is_good, &advice)
}

/// The daemon's report about its host.
pub fn host(host: &Host, images: usize) -> Vec<Check> {
    let free_mib = host.memory_mib.saturating_sub(host.memory_used_mib);
    vec![
        Check::new(
            "an image to run",
            host.engine_sha256.is_some() || images > 0,
            "give one with: cosmos image-add FILE",
        ),
        room(host),
        Check::new(
            "memory for a guest of 8 MiB",
            free_mib >= 8,
            "destroy guests, or raise memory_mib in cosmosd's configuration",
        ),
        Check::new(
            "room for one more guest",
            host.guests < host.max_guests,
            "destroy guests, or raise max_guests in cosmosd's configuration",
        ),
    ]
}

/// The folders where each guest has files; the reason names the one that is full.
fn room(host: &Host) -> Check {
    let fault = host.faults.iter().find(|fault| fault.part == "state_dir");
    Check {
        name: "room for the files of a guest".to_owned(),
        advice: fault.map(|fault| format!("make room: {}", fault.reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosmos_proto::answer::Fault;

    fn lacking(checks: &[Check]) -> Vec<&str> {
        let bad = checks.iter().filter(|check| check.advice.is_some());
        bad.map(|check| check.name.as_str()).collect()
    }

    #[test]
    fn a_machine_without_xen_lacks_all_of_it() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::new(root.path());
        let checks = machine.xen();
        assert_eq!(lacking(&checks).len(), checks.len());
        assert!(!machine.is_xen());
    }

    #[test]
    fn what_is_there_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/xen/capabilities", "control_d\n");
        put("dev/xen/privcmd", "");
        put("dev/xen/evtchn", "");
        put("dev/xen/gntdev", "");
        put("proc/7/comm", "xenstored\n");
        let named = |checks: &[Check], words: &str| checks.iter().any(|c| c.name.contains(words));
        assert!(Machine::new(root.path()).is_xen());
        let checks = Machine::new(root.path()).xen();
        assert_eq!(lacking(&checks), ["xenconsoled"]);
        assert!(named(&checks, "by xenstored"));
        put("proc/7/comm", "oxenstored\n");
        let checks = Machine::new(root.path()).xen();
        assert_eq!(lacking(&checks), ["xenconsoled"]);
        assert!(named(&checks, "by oxenstored"));
    }

    #[test]
    fn kept_commands_that_are_not_in_force_are_told() {
        let list = |waits: Value, fault: Value| {
            let args = json!({"switch": "vale0", "port": "a"});
            let request = json!({"verb": "port-remove", "args": args});
            let kept = json!([{"request": request, "waits": waits}]);
            let list = json!({"kept": kept, "fault": fault});
            check_kept(&serde_json::from_value(list).unwrap()).advice
        };
        assert_eq!(list(Value::Null, Value::Null), None);
        let advice = list(json!("no interface"), Value::Null).unwrap();
        assert!(advice.starts_with("1 are not"), "{advice}");
        assert_eq!(list(Value::Null, json!("bad file")).unwrap(), "bad file");
    }

    #[test]
    fn a_full_host_is_told() {
        let empty = Host {
            host_kind: "process".to_owned(),
            memory_mib: 64,
            memory_used_mib: 0,
            cpus: 1,
            max_vcpus: 1,
            vcpus_used: 0,
            guests: 0,
            pooled: 0,
            max_guests: 4,
            uptime_s: 1,
            version: "1".to_owned(),
            engine_sha256: Some("e5".to_owned()),
            faults: Vec::new(),
        };
        assert!(lacking(&host(&empty, 0)).is_empty());
        let full = Host {
            memory_used_mib: 60,
            guests: 4,
            engine_sha256: None,
            ..empty
        };
        assert_eq!(lacking(&host(&full, 0)).len(), 3);
        assert_eq!(lacking(&host(&full, 1)).len(), 2);
        let fault = |part: &str| Fault {
            part: part.to_owned(),
            reason: "state_dir: No space left on device (os error 28)".to_owned(),
        };
        let told = |part: &str| {
            room(&Host {
                faults: vec![fault(part)],
                ..full.clone()
            })
        };
        assert!(told("state_dir").advice.unwrap().contains("No space left"));
        assert_eq!(told("valed").advice, None);
    }

    #[test]
    fn a_domain_that_looks_like_a_guest_is_told() {
        assert_eq!(strangers(&[]).advice, None);
        let uuid = "00000000-0000-4000-8000-000000000001".to_owned();
        let check = strangers(&[Stranger {
            domid: 77,
            uuid: uuid.clone().try_into().unwrap(),
            name: "again".to_owned(),
        }]);
        let advice = check.advice.unwrap();
        assert!(
            advice.contains(&uuid) && advice.ends_with("xl destroy 77"),
            "{advice}"
        );
    }

    #[test]
    fn a_socket_without_a_daemon_is_told() {
        let check = listening("valed", Path::new("/nonexistent/valed.sock"));
        assert!(check.advice.unwrap().contains("start valed"));
    }
}
