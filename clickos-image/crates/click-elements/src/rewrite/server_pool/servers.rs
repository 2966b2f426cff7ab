// SPDX-License-Identifier: Apache-2.0
//! The servers of a pool, and the choice among them.
use alloc::collections::BTreeMap;
#[cfg(services)]
use alloc::rc::Rc;
use alloc::rc::Weak;
use core::cell::RefCell;
use core::net::IpAddr;

use click_core::ArgContext;
use click_core::text::split_words;

use crate::carried;
use crate::flows::{FlowId, FlowTable, wanted};
use crate::prelude::*;
use crate::rewrite::mapper::{Map, point};
use crate::rewrite::pattern::{Draw, Outputs};

/// A new flow asks each server, so their number bounds its time.
pub const MAX: usize = 256;

/// Addresses with commas or blanks between them, each once.
#[derive(Clone, Default)]
pub struct Addresses(pub Vec<IpAddr>);

/// Reads an address of either version, as far as the pool has servers of it.
pub fn address(text: &str, at: ArgContext<'_>) -> Result<IpAddr, String> {
    let address = match text.parse() {
        Ok(six) if cfg!(services) => IpAddr::V6(six),
        _ => Ipv4Addr::from_arg(text, at).map(IpAddr::V4)?,
    };
    let is_mapped = matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    if is_mapped || address.is_unspecified() || address.is_multicast() {
        return Err(format!("server {address}: expected the address of a host"));
    }
    Ok(address)
}

impl FromArg for Addresses {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let mut all = Self::default();
        for word in split_words(&text.replace(',', " ")) {
            all.add(address(&word, at)?)?;
        }
        Ok(all)
    }
}

impl Addresses {
    /// Adds an address.
    ///
    /// # Errors It is there, or there are too many.
    pub fn add(&mut self, address: IpAddr) -> Result<(), String> {
        if self.0.contains(&address) {
            return Err(format!("server {address} is given twice"));
        }
        if self.0.len() >= MAX {
            return Err(format!("too many servers, the most is {MAX}"));
        }
        self.0.push(address);
        Ok(())
    }

    pub fn text(&self) -> String {
        let words: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        words.join(", ")
    }
}

/// The sequence numbers of a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// That of the server's first byte.
    pub first: u32,
    /// That behind the request.
    pub end: u32,
}

/// A probe on its way.
#[derive(Clone, Copy)]
pub struct Probe {
    /// The number that the answer repeats.
    pub number: u32,
    pub sent_ns: u64,
    /// Once its connection is open and it was asked by HTTP.
    pub asked: Option<Asked>,
    /// Why it fails, if the server said so.
    pub failed: Option<Outcome>,
}

/// A server.
#[derive(Clone)]
pub struct Server {
    pub address: IpAddr,
    pub up: bool,
    /// Probes in a row without an answer.
    pub misses: u32,
    /// The last probe; `None` if its answer came.
    pub awaited: Option<Probe>,
    /// An answer came that the other guest of a pair does not know of.
    is_news: bool,
    flows: u64,
    pub counts: Counts,
}

/// What became of a server's probes.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub probes: u64,
    pub failures: u64,
    /// Time from the last probe that was answered to its answer.
    pub answer_ns: u64,
    pub last: Outcome,
}

/// What became of the last probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    #[default]
    Unknown,
    Answered,
    Silence,
    Refused,
    /// The status of HTTP that was not expected; 0 if the answer was not of HTTP.
    Status(u16),
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Unknown => "-",
            Self::Answered => "answered",
            Self::Silence => "no answer",
            Self::Refused => "refused",
            Self::Status(0) => "no HTTP",
            Self::Status(status) => return write!(f, "status {status}"),
        })
    }
}

impl Server {
    fn new(address: IpAddr, up: bool) -> Self {
        Self {
            address,
            up,
            misses: 0,
            awaited: None,
            is_news: false,
            flows: 0,
            counts: Counts::default(),
        }
    }

    /// An answer came, here or at the other guest of a pair.
    pub fn answered(&mut self, is_news: bool) {
        (self.up, self.misses, self.awaited) = (true, 0, None);
        self.is_news = is_news;
    }
}

/// The first line of servers as text.
const HEAD: &str = "servers 1";

/// Flows that have servers.
pub trait Served {
    /// Says the address of each flow's server, and how many flows it is.
    fn each(&self, see: &mut dyn FnMut(IpAddr, u64));
}

impl Served for FlowTable {
    fn each(&self, see: &mut dyn FnMut(IpAddr, u64)) {
        for (_, flow) in self.iter() {
            see(flow.ids[1].source.into(), 1);
        }
    }
}

/// The servers of a pool.
pub struct Servers {
    /// The flows that are open.
    served: Vec<Weak<RefCell<dyn Served>>>,
    pub all: Vec<Server>,
    pub draining: Addresses,
    /// The state of a server that was never probed.
    pub begin_up: bool,
}

impl Servers {
    /// No servers.
    pub fn new(begin_up: bool) -> Self {
        Self {
            served: Vec::new(),
            all: Vec::new(),
            draining: Addresses::default(),
            begin_up,
        }
    }

    /// Flows that get servers from now on.
    pub fn serve(&mut self, flows: Weak<RefCell<dyn Served>>) {
        self.served.retain(|known| known.strong_count() > 0);
        if !self.served.iter().any(|known| known.ptr_eq(&flows)) {
            self.served.push(flows);
        }
    }

    /// How many flows of each server are open.
    fn open(&self) -> BTreeMap<IpAddr, u64> {
        let mut open = BTreeMap::new();
        for flows in self.served.iter().filter_map(Weak::upgrade) {
            let mut see = |server, count| *open.entry(server).or_default() += count;
            flows.borrow().each(&mut see);
        }
        open
    }

    /// Replaces the servers; those that stay keep their state.
    pub fn set(&mut self, addresses: &Addresses) {
        let server = |address: &IpAddr| {
            let known = self.all.iter().find(|s| s.address == *address);
            known
                .cloned()
                .unwrap_or(Server::new(*address, self.begin_up))
        };
        self.all = addresses.0.iter().map(server).collect();
    }

    pub fn addresses(&self) -> Addresses {
        Addresses(self.all.iter().map(|s| s.address).collect())
    }

    /// The value of the handler `changes`: servers that have answered since the last reading, as many as fit.
    pub fn changes(&mut self, view: &View<'_>) -> Text {
        let Some(mut left) = wanted(view)? else {
            self.all.iter_mut().for_each(|s| s.is_news = s.up);
            return Ok(String::new());
        };
        let mut text = String::new();
        for server in self.all.iter_mut().filter(|server| server.is_news) {
            let head = if text.is_empty() { HEAD } else { "" };
            let line = format!("{head}\n{}", server.address);
            let Some(rest) = left.checked_sub(line.len()) else {
                break;
            };
            (left, server.is_news) = (rest, false);
            text += &line;
        }
        Ok(text)
    }

    /// Reads such a text.
    pub fn parse(text: &str) -> Result<Vec<IpAddr>, HandlerError> {
        carried::parse(HEAD, text, |words| match words {
            [address] => address.parse().ok(),
            _ => None,
        })
    }

    /// Servers have answered the other guest.
    pub fn merge(&mut self, answered: &[IpAddr]) {
        let known = self.all.iter_mut();
        let known = known.filter(|server| answered.contains(&server.address));
        known.for_each(|server| server.answered(false));
    }

    fn takes_flows(&self, server: &Server) -> bool {
        server.up && !self.draining.0.contains(&server.address)
    }

    /// The server for a source address, of the same version (rendezvous hashing, Thaler and Ravishankar 1998).
    fn choose(&self, source: IpAddr) -> Option<usize> {
        let own = folded(source);
        let hash = |server: &Server| point(own ^ point(folded(server.address)));
        let able = self.all.iter().enumerate();
        let able = able.filter(|(_, server)| {
            server.address.is_ipv4() == source.is_ipv4() && self.takes_flows(server)
        });
        able.max_by_key(|(_, server)| hash(server)).map(|(n, _)| n)
    }

    /// The server for a flow from a source address.
    pub fn server(&self, source: IpAddr) -> Option<IpAddr> {
        self.choose(source).map(|n| self.all[n].address)
    }

    /// A server got a flow.
    pub fn count(&mut self, server: IpAddr) {
        let known = self.all.iter_mut().find(|s| s.address == server);
        known.into_iter().for_each(|server| server.flows += 1);
    }

    /// The server for a new flow from a source address.
    fn take(&mut self, source: IpAddr) -> Option<IpAddr> {
        let n = self.choose(source)?;
        let server = &mut self.all[n];
        server.flows += 1;
        Some(server.address)
    }

    fn state(&self, server: &Server) -> &'static str {
        match (server.up, self.draining.0.contains(&server.address)) {
            (false, _) => "down",
            (true, true) => "draining",
            (true, false) => "up",
        }
    }

    pub fn status(&self) -> String {
        let line = |s: &Server| format!("{} {} {}\n", s.address, self.state(s), s.flows);
        self.all.iter().map(line).collect()
    }

    /// A line for each server: address, state, flows that it got, those that are open, probes, failed probes,
    /// microseconds of the last answer, and what became of the last probe.
    pub fn statistics(&self) -> String {
        let open = self.open();
        let line = |s: &Server| {
            let Counts {
                probes,
                failures,
                answer_ns,
                last,
            } = s.counts;
            let answer_us = answer_ns / 1000;
            let (state, open) = (self.state(s), open.get(&s.address).unwrap_or(&0));
            format!(
                "{} {state} {} {open} {probes} {failures} {answer_us} {last}\n",
                s.address, s.flows
            )
        };
        self.all.iter().map(line).collect()
    }
}

/// 32 bits of an address. Those of IPv4 are the address itself, so that clients keep their servers.
fn folded(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(four) => four.into(),
        IpAddr::V6(_) if !cfg!(services) => 0,
        IpAddr::V6(six) => {
            let bits = u128::from(six);
            let words = [96, 64, 32, 0].map(|shift| (bits >> shift) as u32);
            words.into_iter().fold(0, |sum, word| point(sum ^ word))
        }
    }
}

/// The rewriter's outputs for flows and answers.
const OUTPUTS: Outputs = [0, 1];

impl Map for Servers {
    fn rewrite(
        &mut self,
        id: FlowId,
        _map: u16,
        _draw: Draw<'_>,
        _taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<(FlowId, Outputs)> {
        match self.take(id.source.into())? {
            IpAddr::V4(destination) => Some((FlowId { destination, ..id }, OUTPUTS)),
            IpAddr::V6(_) => None,
        }
    }

    #[cfg(services)]
    fn serves(&mut self, flows: &Rc<RefCell<FlowTable>>) {
        let flows: Rc<RefCell<dyn Served>> = flows.clone();
        self.serve(Rc::downgrade(&flows));
    }

    fn beyond(&self, outputs: usize) -> Option<u16> {
        OUTPUTS
            .into_iter()
            .find(|port| usize::from(*port) >= outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(count: u8) -> Servers {
        let address = |n| IpAddr::from([10, 0, 0, n]);
        let addresses = (0..count).map(address).collect();
        let mut servers = Servers::new(true);
        servers.set(&Addresses(addresses));
        servers
    }

    fn choices(servers: &Servers) -> Vec<Option<IpAddr>> {
        let source = |n: u32| Ipv4Addr::from(0x0a01_0000 + n).into();
        let choice = |n| Some(servers.all[servers.choose(source(n))?].address);
        (0..4096).map(choice).collect()
    }

    #[test]
    fn servers_get_even_shares() {
        let chosen = choices(&pool(8));
        for server in pool(8).all {
            let got = chosen.iter().filter(|c| **c == Some(server.address));
            assert!((400..630).contains(&got.count()), "{}", server.address);
        }
    }

    #[test]
    fn only_clients_of_a_lost_server_move() {
        let mut servers = pool(8);
        let before = choices(&servers);
        servers.all[3].up = false;
        let lost = Some(servers.all[3].address);
        for (old, new) in before.iter().zip(choices(&servers)) {
            assert_ne!(new, lost);
            assert!(*old == lost || *old == new, "{old:?} became {new:?}");
        }
    }

    #[test]
    fn answers_of_the_other_guest_count() {
        let mut servers = pool(3);
        servers.begin_up = false;
        servers.all[1].answered(true);
        assert_eq!(Servers::parse("servers 1\n10.0.0.1").unwrap().len(), 1);
        for bad in ["", "servers 2\n", "servers 1\n10.0.0.1 up", "servers 1\nx"] {
            assert!(Servers::parse(bad).is_err(), "{bad}");
        }
        servers.all[2].up = false;
        servers.merge(&[servers.all[2].address, Ipv4Addr::LOCALHOST.into()]);
        let news = servers.all.iter().map(|s| (s.up, s.is_news));
        let expected = [(true, false), (true, true), (true, false)];
        assert_eq!(news.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_server_no_flow() {
        let mut servers = pool(1);
        servers.draining = servers.addresses();
        assert_eq!(servers.choose(Ipv4Addr::LOCALHOST.into()), None);
    }
}
