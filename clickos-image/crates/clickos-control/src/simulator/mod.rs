// SPDX-License-Identifier: Apache-2.0
//! An in-memory Xen store for tests: permissions, quota, watches as xenstored has them, and faults.
mod connection;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use xenstore::{Access, Code, Kind, Perm, WatchEvent};

pub use connection::Connection;

/// xenstored's default limits for a domain.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    pub nodes: usize,
    pub value_bytes: usize,
    pub watches: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            nodes: 1000,
            value_bytes: 2048,
            watches: 128,
        }
    }
}

#[derive(Clone)]
struct Node {
    value: Vec<u8>,
    perms: Vec<Perm>,
}

struct Watch {
    domid: u16,
    path: String,
    relative: bool,
    token: String,
}

/// Faults to come.
#[derive(Default)]
struct Faults {
    /// Answer writes whose path ends so with this error.
    refuse: Option<(String, Code)>,
    lose_events: bool,
    /// Events stay in the store; answers pass them.
    holds_events: bool,
    broken: bool,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<String, Node>,
    watches: Vec<Watch>,
    events: BTreeMap<u16, VecDeque<WatchEvent>>,
    quota: Quota,
    faults: Faults,
    requests: u64,
    writes: Vec<String>,
}

/// The store, with the toolstack's rights.
#[derive(Clone, Default)]
pub struct Simulator {
    state: Rc<RefCell<State>>,
}

impl Simulator {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes that the toolstack makes for a new domain, and its connection.
    pub fn domain(&self, domid: u16) -> Connection {
        let home = format!("/local/domain/{domid}");
        let private = [Perm::new(Access::None, 0), Perm::new(Access::Read, domid)];
        self.write(&home, b"");
        self.set_perms(&home, &private);
        self.write(&format!("{home}/data"), b"");
        self.set_perms(&format!("{home}/data"), &[Perm::new(Access::None, domid)]);
        Connection::new(self.clone(), domid)
    }

    /// Writes as dom0.
    pub fn write(&self, path: &str, value: &[u8]) {
        let result = self.state.borrow_mut().write(0, path, value);
        result.expect("dom0 may write everywhere");
    }

    /// Sets permissions as dom0.
    pub fn set_perms(&self, path: &str, perms: &[Perm]) {
        let mut state = self.state.borrow_mut();
        state.nodes.get_mut(path).expect("the node is there").perms = perms.to_vec();
        state.fire(path);
    }

    /// Reads as dom0.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.state
            .borrow()
            .nodes
            .get(path)
            .map(|node| node.value.clone())
    }

    /// Reads text as dom0.
    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path)
            .map(|value| String::from_utf8_lossy(&value).to_string())
    }

    /// Removes a node and all below it, as dom0.
    pub fn remove(&self, path: &str) {
        let _ = self.state.borrow_mut().remove(0, path);
    }

    /// The children's names.
    pub fn list(&self, path: &str) -> Vec<String> {
        self.state.borrow().children(path)
    }

    /// Nodes that a domain owns.
    pub fn owned(&self, domid: u16) -> usize {
        self.state.borrow().owned(domid)
    }

    /// Paths that a domain has written so far, in order.
    pub fn writes(&self) -> Vec<String> {
        self.state.borrow().writes.clone()
    }

    /// How many watch events a domain has not taken.
    pub fn pending(&self, domid: u16) -> usize {
        self.state
            .borrow()
            .events
            .get(&domid)
            .map_or(0, VecDeque::len)
    }

    /// How many requests domains have made.
    pub fn requests(&self) -> u64 {
        self.state.borrow().requests
    }

    /// Changes the quota.
    pub fn set_quota(&self, quota: Quota) {
        self.state.borrow_mut().quota = quota;
    }

    /// Lets the next write of a domain to a path with this end fail.
    pub fn refuse_write(&self, path_end: &str, code: Code) {
        self.state.borrow_mut().faults.refuse = Some((path_end.to_string(), code));
    }

    /// Throws away what domains have not taken, and tells them that events were lost.
    pub fn lose_events(&self) {
        let mut state = self.state.borrow_mut();
        state.events.clear();
        state.faults.lose_events = true;
    }

    /// Drops the events of a path that domains have not taken, as if they met an equal one.
    pub fn drop_event(&self, path: &str) {
        let mut state = self.state.borrow_mut();
        let queues = state.events.values_mut();
        queues.for_each(|queue| queue.retain(|event| event.path != path));
    }

    /// Keeps events from domains, or lets them come.
    pub fn hold_events(&self, holds: bool) {
        self.state.borrow_mut().faults.holds_events = holds;
    }

    /// Breaks every domain's connection for good.
    pub fn break_connections(&self) {
        self.state.borrow_mut().faults.broken = true;
    }

    /// Gives domains an event for this path although nothing changed.
    pub fn fire(&self, path: &str) {
        self.state.borrow_mut().fire(path);
    }
}

impl State {
    fn may(&self, domid: u16, path: &str, write: bool) -> Result<(), Code> {
        if domid == 0 {
            return Ok(());
        }
        let mut at = path;
        let node = loop {
            if let Some(node) = self.nodes.get(at) {
                break node;
            }
            let Some(cut) = at.rfind('/') else {
                return Err(Code::Access);
            };
            at = &at[..cut];
        };
        let owner = node.perms[0].domid == domid;
        let entry = node.perms[1..]
            .iter()
            .find(|p| p.domid == domid)
            .unwrap_or(&node.perms[0]);
        let wanted = if write { Access::Write } else { Access::Read };
        let granted = owner || entry.access == Access::Both || entry.access == wanted;
        if granted { Ok(()) } else { Err(Code::Access) }
    }

    fn exists(&self, path: &str) -> Result<&Node, Code> {
        self.nodes.get(path).ok_or(Code::NoEntry)
    }

    fn children(&self, path: &str) -> Vec<String> {
        let prefix = format!("{path}/");
        let below = self.nodes.keys().filter_map(|p| p.strip_prefix(&prefix));
        let names: BTreeSet<_> = below.filter_map(|rest| rest.split('/').next()).collect();
        names.into_iter().map(String::from).collect()
    }

    fn owned(&self, domid: u16) -> usize {
        self.nodes
            .values()
            .filter(|node| node.perms[0].domid == domid)
            .count()
    }

    fn write(&mut self, domid: u16, path: &str, value: &[u8]) -> Result<(), Code> {
        self.may(domid, path, true)?;
        if domid != 0 && value.len() >= self.quota.value_bytes {
            return Err(Code::NoSpace);
        }
        self.make(domid, path)?;
        self.nodes.get_mut(path).ok_or(Code::Io)?.value = value.to_vec();
        self.fire(path);
        Ok(())
    }

    fn make(&mut self, domid: u16, path: &str) -> Result<(), Code> {
        if self.nodes.contains_key(path) {
            return Ok(());
        }
        let parent = path
            .rfind('/')
            .map(|cut| &path[..cut])
            .filter(|p| !p.is_empty());
        let mut perms = [Perm::new(Access::None, 0)].to_vec();
        if let Some(parent) = parent {
            self.make(domid, parent)?;
            perms = self.nodes[parent].perms.clone();
        }
        if domid != 0 {
            perms[0].domid = domid;
            if self.owned(domid) >= self.quota.nodes {
                return Err(Code::NoSpace);
            }
        }
        self.nodes.insert(
            path.to_string(),
            Node {
                value: Vec::new(),
                perms,
            },
        );
        Ok(())
    }

    fn remove(&mut self, domid: u16, path: &str) -> Result<(), Code> {
        self.may(domid, path, true)?;
        self.exists(path)?;
        self.fire(path);
        let below = format!("{path}/");
        self.nodes
            .retain(|p, _| p != path && !p.starts_with(&below));
        Ok(())
    }

    fn fire(&mut self, path: &str) {
        let mut due = Vec::new();
        for watch in &self.watches {
            let rest = path.strip_prefix(&watch.path);
            let below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            if below && self.may(watch.domid, path, false).is_ok() {
                due.push((watch.domid, watch.shown(path), watch.token.clone()));
            }
        }
        for (domid, path, token) in due {
            self.events
                .entry(domid)
                .or_default()
                .push_back(WatchEvent { path, token });
        }
    }

    fn serve(&mut self, domid: u16, kind: u32, payload: &[u8]) -> Result<Vec<u8>, Code> {
        self.requests += 1;
        let end = payload.iter().position(|b| *b == 0).ok_or(Code::Invalid)?;
        let name = core::str::from_utf8(&payload[..end]).map_err(|_| Code::Invalid)?;
        let (path, rest) = (absolute(domid, name), &payload[end + 1..]);
        if kind == Kind::Read as u32 {
            self.may(domid, &path, false)?;
            return Ok(self.exists(&path)?.value.clone());
        }
        if kind == Kind::Directory as u32 {
            self.may(domid, &path, false)?;
            self.exists(&path)?;
            return Ok(self
                .children(&path)
                .iter()
                .flat_map(|n| n.bytes().chain([0]))
                .collect());
        }
        if kind == Kind::Write as u32 {
            self.writes.push(name.to_string());
            let refused = self
                .faults
                .refuse
                .take_if(|(end, _)| path.ends_with(end.as_str()));
            refused.map_or(Ok(()), |(_, code)| Err(code))?;
            self.write(domid, &path, rest)?;
        } else if kind == Kind::Rm as u32 {
            self.remove(domid, &path)?;
        } else if kind == Kind::Watch as u32 {
            self.watch(domid, name, path, rest)?;
        } else {
            return Err(Code::NoSystemCall);
        }
        Ok(b"OK\0".to_vec())
    }

    fn watch(&mut self, domid: u16, name: &str, path: String, rest: &[u8]) -> Result<(), Code> {
        if self.watches.iter().filter(|w| w.domid == domid).count() >= self.quota.watches {
            return Err(Code::NoSpace);
        }
        let token = String::from_utf8_lossy(rest)
            .trim_end_matches('\0')
            .to_string();
        let same = |w: &Watch| w.domid == domid && w.path == path && w.token == token;
        if self.watches.iter().any(same) {
            return Err(Code::Exists);
        }
        let event = WatchEvent {
            path: name.to_string(),
            token: token.clone(),
        };
        let relative = !name.starts_with('/');
        self.watches.push(Watch {
            domid,
            path,
            relative,
            token,
        });
        self.events.entry(domid).or_default().push_back(event);
        Ok(())
    }
}

impl Watch {
    fn shown(&self, path: &str) -> String {
        let home = format!("/local/domain/{}/", self.domid);
        let short = path.strip_prefix(&home).filter(|_| self.relative);
        short.unwrap_or(path).to_string()
    }
}

fn absolute(domid: u16, path: &str) -> String {
    if path.starts_with('/') {
        path.to_string()
    } else {
        format!("/local/domain/{domid}/{path}")
    }
}
