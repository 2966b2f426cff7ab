// SPDX-License-Identifier: Apache-2.0
//! What a router lives in: devices, console, limits.
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::device::Device;

/// What scripts can reach of an operating system.
pub trait Host {
    /// Writes to standard output.
    fn print(&self, text: &str);
    /// Reads a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, String>;
    /// Writes a file anew, or appends to it.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn write_file(&self, path: &str, append: bool, data: &[u8]) -> Result<(), String>;
}

/// Everything a router gets from its host.
#[derive(Clone)]
pub struct Environment {
    /// Devices by vif number.
    pub devices: BTreeMap<u32, Rc<RefCell<dyn Device>>>,
    /// Files and standard output, where there are any; never in a guest.
    pub host: Option<Rc<dyn Host>>,
    /// Where Print and its like write, a line at a time without its line end.
    pub console: Rc<dyn Fn(&str)>,
    /// What a configuration may use.
    pub limits: Limits,
    /// Seed of the router's random numbers.
    pub seed: u64,
    /// Classes that get an element in every configuration, such as `ClickOSControl`.
    pub implicit: Vec<String>,
}

impl Environment {
    /// No devices, a console that discards, default limits.
    pub fn new() -> Self {
        Self {
            devices: BTreeMap::new(),
            host: None,
            console: Rc::new(|_| {}),
            limits: Limits::default(),
            seed: 0,
            implicit: Vec::new(),
        }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::new()
    }
}

/// What a configuration may use. Exceeding one is a `ConfigError` that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of configuration text, and of text made by expanding it.
    pub config_bytes: usize,
    /// Elements after flattening.
    pub elements: usize,
    /// Connections after flattening.
    pub connections: usize,
    /// Ports of one element, each way.
    pub ports: usize,
    /// Packets that exist at a time.
    pub packet_buffers: usize,
    /// Entries of one table: rules, routes, ARP entries.
    pub table_entries: usize,
    /// Flows of one table.
    pub flows: usize,
    /// Bytes of a value given to a handler.
    pub handler_bytes: usize,
    /// Packets that travel together at most; 1 gives Click's order packet by packet.
    pub batch: usize,
    /// Console lines a second; more are counted, not written.
    pub console_lines_per_s: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            config_bytes: 1 << 20,
            elements: 4096,
            connections: 16_384,
            ports: 1024,
            packet_buffers: 4096,
            table_entries: 65_536,
            flows: 65_536,
            handler_bytes: 1 << 20,
            batch: 32,
            console_lines_per_s: 1000,
        }
    }
}
