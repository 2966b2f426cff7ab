// SPDX-License-Identifier: Apache-2.0
//! Handlers of the router itself, and the texts that describe it.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::engine::Engine;
use crate::handler_info::{HandlerDecl, HandlerInfo};
use crate::traffic::Traffic;

/// A handler of the router.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Global {
    Version,
    List,
    Classes,
    Config,
    FlatConfig,
    Requirements,
    Handlers,
    Packages,
    Pool,
    Graph,
    Stop,
}

/// All of them.
pub const ALL: [(HandlerDecl, Global); 11] = [
    (HandlerDecl::read("version"), Global::Version),
    (HandlerDecl::read("list"), Global::List),
    (HandlerDecl::read("classes"), Global::Classes),
    (HandlerDecl::read("config"), Global::Config),
    (HandlerDecl::read("flatconfig"), Global::FlatConfig),
    (HandlerDecl::read("requirements"), Global::Requirements),
    (HandlerDecl::read("handlers"), Global::Handlers),
    (HandlerDecl::read("packages"), Global::Packages),
    (HandlerDecl::read("pool"), Global::Pool),
    (HandlerDecl::read("graph"), Global::Graph),
    (HandlerDecl::command("stop"), Global::Stop),
];

impl Global {
    pub fn is_writable(self) -> bool {
        self == Self::Stop
    }

    /// The value; `None` if it cannot be read.
    pub fn read(self, engine: &mut Engine) -> Option<String> {
        if self == Self::Graph {
            return Some(engine.graph_text());
        }
        let engine = &*engine;
        let lines = |items: &[String]| items.iter().map(|i| format!("{i}\n")).collect::<String>();
        let plan = &engine.plan;
        let names = || {
            engine
                .slots
                .iter()
                .take(plan.written)
                .map(|s| s.name.clone())
                .collect::<Vec<_>>()
        };
        Some(match self {
            Self::Version => env!("CARGO_PKG_VERSION").to_string(),
            Self::List => format!("{}\n{}", plan.written, lines(&names())),
            Self::Classes => plan.class_names.iter().map(|c| format!("{c}\n")).collect(),
            Self::Config if is_compact(engine) => engine.flat_text(),
            Self::Config => plan.sources.text().to_string(),
            Self::FlatConfig => engine.flat_text(),
            Self::Requirements => lines(
                &plan
                    .flat
                    .requirements
                    .iter()
                    .map(|r| format!("{} {}", r.kind, r.value))
                    .collect::<Vec<_>>(),
            ),
            Self::Handlers => engine.global_handlers().map(handler_line).collect(),
            Self::Packages => "click\nclickos\n".to_string(),
            Self::Pool => {
                let pool = &engine.pool;
                format!(
                    "in_use {}\nlimit {}\nrefused {}\n",
                    pool.in_use(),
                    pool.limit(),
                    pool.refused()
                )
            }
            Self::Graph | Self::Stop => return None,
        })
    }

    pub fn write(self, engine: &mut Engine) {
        if self == Self::Stop {
            engine.stops = engine.stops.saturating_add(1);
        }
    }
}

/// True if the configuration asks the engine not to keep its text.
fn is_compact(engine: &Engine) -> bool {
    let mut requirements = engine.plan.flat.requirements.iter();
    requirements.any(|r| r.kind == "compact_config")
}

fn handler_line(h: HandlerInfo) -> String {
    let flags = match (h.read, h.write) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, _) => "w",
    };
    format!("{}\t{flags}\n", h.name)
}

impl Engine {
    /// The elements, the connections, and the counts of both; this read starts them or keeps them going.
    fn graph_text(&mut self) -> String {
        let outputs = self.slots.iter().map(|slot| slot.outputs.len());
        let new = || Box::new(Traffic::new(outputs, self.now_ns));
        let traffic = self.traffic.get_or_insert_with(new);
        traffic.renew(self.now_ns);
        let (plan, slots) = (&self.plan, &self.slots);
        let mut out = format!("watched_ns {}\n", self.now_ns - traffic.since_ns);
        for (index, e) in plan.flat.elements[..plan.written].iter().enumerate() {
            let _ = writeln!(
                out,
                "element {} {} {}",
                e.name,
                e.class,
                traffic.drops(index)
            );
        }
        for c in &plan.flat.connections {
            let (from, to) = (&slots[c.from.0].name, &slots[c.to.0].name);
            let pull = plan.graph.output_is_pull(c.from.0, c.from.1);
            let kind = if pull { "pull" } else { "push" };
            let count = traffic.passed(c.from.0, c.from.1);
            let _ = write!(
                out,
                "connection {from} {} {to} {} {kind} ",
                c.from.1, c.to.1
            );
            let _ = writeln!(out, "{} {}", count.packets, count.bytes);
        }
        out
    }

    pub(crate) fn flat_text(&self) -> String {
        self.flat_text_of(self.plan.written)
    }

    /// The first `elements` elements and all connections.
    pub(crate) fn flat_text_of(&self, elements: usize) -> String {
        let mut flat = self.plan.flat.clone();
        flat.elements.truncate(elements);
        for (index, element) in flat.elements.iter_mut().enumerate() {
            element.config = self.config(index).to_string();
        }
        flat.to_string()
    }

    pub(crate) fn handlers_text(&self, index: usize) -> String {
        self.handlers_of(index)
            .into_iter()
            .map(handler_line)
            .collect()
    }

    /// The ports of an element as Click's `ports` handler prints them.
    pub(crate) fn ports_text(&self, index: usize) -> String {
        let slot = &self.slots[index];
        let mut out = String::new();
        for (output, count) in [(false, slot.inputs.len()), (true, slot.outputs.len())] {
            let what = if output { "output" } else { "input" };
            let _ = writeln!(out, "{count} {what}{}", if count == 1 { "" } else { "s" });
            for port in 0..count {
                let _ = writeln!(out, "{}", self.port_line(index, output, port));
            }
        }
        out
    }

    fn port_line(&self, index: usize, output: bool, port: usize) -> String {
        let graph = &self.plan.graph;
        let pull = if output {
            graph.output_is_pull(index, port)
        } else {
            graph.input_is_pull(index, port)
        };
        let kind = if pull { "pull" } else { "push" };
        let agnostic = if graph.is_agnostic(index, output, port) {
            "~"
        } else {
            ""
        };
        let mut ends = Vec::new();
        for c in &self.plan.flat.connections {
            if output && c.from == (index, port) {
                ends.push(format!("[{}] {}", c.to.1, self.slots[c.to.0].name));
            } else if !output && c.to == (index, port) {
                ends.push(format!("{} [{}]", self.slots[c.from.0].name, c.from.1));
            }
        }
        format!("{kind}{agnostic}\t-\t{}", ends.join(", "))
    }
}
