// SPDX-License-Identifier: Apache-2.0
//! A store in memory with a guest behind it that answers at once, for unit tests.
//!
//! The guest refuses configurations with the word `Bad`, is silent to those with `Silent`, and
//! knows the handlers `fw.config` (refuses `bad`) and `c.count`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use xenstore::Perm;

use super::{Change, Store, Watchers};
use crate::base::error::Result;
use crate::base::faults::FaultInjector;

type Node = (Vec<u8>, Vec<Perm>);

#[derive(Default)]
pub struct SimStore {
    faults: Arc<FaultInjector>,
    nodes: Mutex<BTreeMap<String, Node>>,
    introduced: Mutex<BTreeSet<u16>>,
    handlers: Mutex<BTreeMap<u16, String>>,
    watchers: Mutex<Option<Arc<Watchers>>>,
    requests: AtomicUsize,
    is_slow: AtomicBool,
}

impl SimStore {
    pub fn with(faults: Arc<FaultInjector>) -> Self {
        Self {
            faults,
            ..Self::default()
        }
    }

    /// Sends changes that are [put](Self::put) from now on to `watchers`.
    pub fn report_to(&self, watchers: &Arc<Watchers>) {
        *self.watchers.lock().unwrap() = Some(Arc::clone(watchers));
    }

    /// The guest's version.
    pub fn announce(&self, domid: u16) {
        let version = format!("/local/domain/{domid}/data/clickos/version");
        self.put(&version, "clickos 0 protocol 1");
    }

    /// The store begins again, with nothing in it.
    pub fn clear(&self) {
        self.nodes.lock().unwrap().clear();
        self.introduced.lock().unwrap().clear();
    }

    /// Lets guests read requests and answer nothing, until they answer all of them.
    pub fn hold_answers(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::Relaxed);
        let open = |key: &String| key.contains("/request/") && key.ends_with("/0");
        for path in self.keys().iter().filter(|key| open(key)) {
            self.answer(path);
        }
    }

    /// The text of a node.
    pub fn value(&self, path: &str) -> Option<String> {
        self.text(path)
    }

    /// The requests that a real store would have had so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn count(&self, requests: usize) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
    }

    pub fn introduced(&self) -> Vec<u16> {
        self.introduced.lock().unwrap().iter().copied().collect()
    }

    pub fn keys(&self) -> Vec<String> {
        self.nodes.lock().unwrap().keys().cloned().collect()
    }

    pub fn perms(&self, path: &str) -> String {
        let nodes = self.nodes.lock().unwrap();
        let perms: Vec<String> = nodes[path].1.iter().map(Perm::to_string).collect();
        perms.join(" ")
    }

    /// The rule a guest has in force.
    pub fn rule(&self, domid: u16) -> Option<String> {
        self.handlers.lock().unwrap().get(&domid).cloned()
    }

    /// A write of a guest, or of somebody else.
    pub fn put(&self, path: &str, value: &str) {
        let entry = (value.into(), Vec::new());
        self.nodes.lock().unwrap().insert(path.into(), entry);
        if let Some(watchers) = &*self.watchers.lock().unwrap() {
            watchers.changed(path);
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        let nodes = self.nodes.lock().unwrap();
        nodes
            .get(path)
            .map(|(value, _)| String::from_utf8(value.clone()).unwrap())
    }

    /// The guest's answer to a change.
    fn answer(&self, path: &str) {
        let parts: Vec<&str> = path.split('/').collect();
        let [
            "",
            "local",
            "domain",
            domid,
            "data",
            "clickos",
            rid,
            ref key @ ..,
        ] = parts[..]
        else {
            return;
        };
        let root = format!("/local/domain/{domid}/data/clickos/{rid}");
        match key {
            ["generation"] => self.answer_wish(&root),
            ["request", _, "0"] if self.is_slow.load(Ordering::Relaxed) => {}
            ["request", seq, "0"] => self.answer_request(&root, domid.parse().unwrap(), seq),
            _ => {}
        }
    }

    fn answer_wish(&self, root: &str) {
        let generation = self.text(&format!("{root}/generation")).unwrap();
        let config = self.text(&format!("{root}/config/0")).unwrap_or_default();
        let name = self.text(&format!("{root}/config_name")).unwrap();
        let (word, error) = if config.contains("Silent") {
            return;
        } else if config.contains("Bad") {
            ("Error", format!("{name}:1:1: no element class \"Bad\""))
        } else if self.text(&format!("{root}/status")).as_deref() == Some("Halted") {
            ("Halted", String::new())
        } else {
            ("Running", String::new())
        };
        self.put(&format!("{root}/error"), &error);
        self.put(&format!("{root}/state"), &format!("{word} {generation}"));
    }

    fn answer_request(&self, root: &str, domid: u16, seq: &str) {
        // Each piece begins with a mark; the first one is written last.
        let pieces = (0..).map_while(|n| self.text(&format!("{root}/request/{seq}/{n}")));
        let request: String = pieces.map(|piece| piece[1..].to_owned()).collect();
        let mut rules = self.handlers.lock().unwrap();
        let rule = rules.entry(domid).or_insert_with(|| "allow all".into());
        let answer = match &*request {
            "handlers" => "200 fw.config rw\nc.count r\n".to_owned(),
            "read fw.config" => format!("200 {rule}"),
            "read c.count" => return,
            lookup if lookup.starts_with("read fw.lookup ") => {
                format!("200 {}", &lookup["read fw.lookup ".len()..])
            }
            "read version" if root.ends_with("/0") => "200 0".to_owned(),
            "read version" => "540 router is not installed".to_owned(),
            read if read.starts_with("read ") => "510 no such element".to_owned(),
            writes if writes.contains("\nbad\n") => "520 fw.config: bad rule".to_owned(),
            writes if writes.starts_with("writes ") => {
                *rule = writes.lines().nth_back(0).unwrap().to_owned();
                let is_command = writes.contains(".reset ");
                let marks = if is_command { "0 command\n" } else { "" };
                format!("200 {marks}")
            }
            _ => "500 ?".to_owned(),
        };
        drop(rules);
        // In two pieces, as a longer answer would be.
        let (first, second) = answer.split_at(4);
        self.put(&format!("{root}/response/{seq}/0"), &format!("+{first}"));
        self.put(&format!("{root}/response/{seq}/1"), &format!(".{second}"));
    }

    fn remove(&self, path: &str) {
        let below = format!("{path}/");
        self.nodes
            .lock()
            .unwrap()
            .retain(|key, _| key != path && !key.starts_with(&below));
    }
}

impl Store for SimStore {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.count(1);
        Ok(self
            .nodes
            .lock()
            .unwrap()
            .get(path)
            .map(|(value, _)| value.clone()))
    }

    fn read_all(&self, paths: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        paths.iter().map(|path| self.read(path)).collect()
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let below = format!("{path}/");
        let nodes = self.nodes.lock().unwrap();
        let names = nodes
            .keys()
            .filter_map(|key| key.strip_prefix(&below)?.split('/').next());
        Ok(names
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }

    fn apply(&self, changes: &[Change]) -> Result<()> {
        self.commit(changes)
    }

    fn commit(&self, changes: &[Change]) -> Result<()> {
        self.faults.call(kind_of(changes))?;
        self.count(changes.iter().map(requests_of).sum());
        for change in changes {
            match change {
                Change::Remove { path } => self.remove(path),
                Change::Write { path, value, perms } => {
                    let entry = (value.clone(), perms.clone().unwrap_or_default());
                    self.nodes.lock().unwrap().insert(path.clone(), entry);
                }
            }
        }
        for change in changes {
            if let Change::Write { path, .. } = change {
                self.answer(path);
            }
        }
        Ok(())
    }

    fn introduce(&self, domid: u16) -> Result<()> {
        self.faults.call("store.introduce")?;
        self.introduced.lock().unwrap().insert(domid);
        Ok(())
    }

    fn release(&self, domid: u16) -> Result<()> {
        self.introduced.lock().unwrap().remove(&domid);
        Ok(())
    }
}

/// A node is written, and then gets its permissions.
fn requests_of(change: &Change) -> usize {
    match change {
        Change::Write { perms: Some(_), .. } => 2,
        _ => 1,
    }
}

/// The purpose of a commit, as the name of a call that may fail.
fn kind_of(changes: &[Change]) -> &'static str {
    let writes = |part: &str| {
        changes
            .iter()
            .any(|c| matches!(c, Change::Write { path, .. } if path.contains(part)))
    };
    match (writes("/generation"), writes("/request/")) {
        (true, _) => "store.spec",
        (_, true) => "store.request",
        _ => "store.commit",
    }
}
