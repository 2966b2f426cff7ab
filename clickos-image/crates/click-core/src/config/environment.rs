// SPDX-License-Identifier: Apache-2.0
//! What a router lives in: devices, console, limits.
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::net::Ipv4Addr;

use click_lang::ConfigError;

use crate::random::{self, Entropy};

use crate::config::names::Named;
use crate::device::Device;
use crate::files::{ReadFile, WriteFile};
use crate::handler_info::HandlerDecl;
use crate::offload::OffloadRegistry;

/// A socket that an element has the program listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSocket {
    /// The element that asks for it.
    pub element: String,
    /// Where.
    pub address: ServerAddress,
    /// The protocol.
    pub protocol: Protocol,
}

/// A protocol on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// ControlSocket's: peers call handlers.
    Control(ControlOptions),
    /// ChatterSocket's: peers get the console's lines.
    Chatter(ChatterOptions),
}

/// Options of ControlSocket's protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlOptions {
    /// True if peers can read handlers and not write them.
    pub read_only: bool,
    /// The element whose handlers stand for all others; empty for none.
    pub proxy: String,
    /// True if the program reports connections.
    pub verbose: bool,
}

/// Options of ChatterSocket's protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatterOptions {
    /// True if the program greets peers.
    pub greeting: bool,
    /// True if peers get the console's lines; else another channel's, which stays empty.
    pub is_default: bool,
}

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// `PORT`, or `PORT+` for the first free one from there.
    Tcp {
        /// The port.
        port: String,
        /// True if only this machine can connect.
        local: bool,
    },
    /// The path of a UNIX socket.
    Unix(String),
    /// A socket the program was started with, by the number of its descriptor: it is the connection.
    Descriptor(u16),
}

/// A network interface of the machine that an element asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Its name.
    pub name: String,
    /// True if the program receives frames.
    pub receives: bool,
    /// True if the program also receives frames for other addresses.
    pub promiscuous: bool,
    /// True if the program also receives frames that the machine itself sends.
    pub outbound: bool,
    /// True if the machine's own network does not get the received frames.
    pub exclusive: bool,
    /// Octets received of a frame at most.
    pub snaplen: usize,
}

/// Octets of a whole file that are read at a time.
const PIECE: usize = 1 << 14;

/// An interface by which the machine itself sends and receives, made for an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunRequest {
    /// Its name; the machine chooses one if there is none.
    pub name: Option<String>,
    /// True if it carries Ethernet frames; else IP packets.
    pub ethernet: bool,
    /// The machine's address on it, and the length of the network's prefix; an interface that is there already keeps its
    /// own without one.
    pub address: Option<(Ipv4Addr, u8)>,
    /// Where the machine is to send what is for no other network.
    pub gateway: Option<Ipv4Addr>,
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// Largest packet, without an Ethernet header.
    pub mtu: u16,
}

/// Such an interface; it goes when the device goes.
pub struct Tun {
    /// Its name.
    pub name: String,
    /// The device receives the machine's packets, and the machine receives the device's.
    pub device: Rc<RefCell<dyn Device>>,
}

/// The parts of an operating system that a router can reach.
pub trait Host {
    /// Writes to standard output; false leaves it to the console, a line at a time.
    fn print(&self, text: &str) -> bool;
    /// Opens a file to read it; `-` is standard input.
    ///
    /// # Errors
    /// Why that is not possible, with its path.
    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String>;
    /// Creates or overwrites a file, or opens it to append to it; `-` is standard output.
    ///
    /// # Errors
    /// Why that is not possible, with its path.
    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String>;
    /// Reads a whole file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        let mut file = self.open_file(path)?;
        let (mut all, mut piece) = (Vec::new(), vec![0; PIECE]);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(all),
                read => all.extend_from_slice(&piece[..read]),
            }
        }
    }
    /// Overwrites a whole file, or appends to it.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn write_file(&self, path: &str, append: bool, data: &[u8]) -> Result<(), String> {
        self.create_file(path, append)?.write(data)
    }
    /// Tells of something about the configuration that is no error; false leaves it to the console.
    fn notice(&self, _notice: &ConfigError) -> bool {
        false
    }
    /// Speaks a protocol on a socket; returns where it listens.
    ///
    /// # Errors
    /// Why that is not possible.
    fn listen(&self, _socket: &ServerSocket) -> Result<String, String> {
        Err("there are no sockets here".to_string())
    }
    /// The names of its network interfaces, and their meanings.
    fn interfaces(&self) -> Vec<(String, Named)> {
        Vec::new()
    }
    /// The port of a service of `tcp` or `udp`, as the system knows it.
    fn service(&self, _name: &str, _protocol: &str) -> Option<u16> {
        None
    }
    /// The number of an IP protocol, as the system knows it.
    fn protocol(&self, _name: &str) -> Option<u8> {
        None
    }
    /// Opens a network interface.
    ///
    /// # Errors
    /// Why that is not possible.
    fn open_device(&self, request: &DeviceRequest) -> Result<Rc<RefCell<dyn Device>>, String> {
        Err(format!(
            "{}: not a device of a guest, which are 0, 1, ... in the order of its vifs",
            request.name
        ))
    }
    /// Makes an interface of the machine.
    ///
    /// # Errors
    /// Why that is not possible.
    fn open_tun(&self, _request: &TunRequest) -> Result<Tun, String> {
        Err("there are no network interfaces here".to_string())
    }
    /// Writes the handler `run` of `element` whenever a signal arrives (`INT`, `USR1`, `10` ...).
    ///
    /// # Errors
    /// There is no such signal, or it cannot be caught.
    fn watch_signal(&self, _element: &str, _signal: &str) -> Result<(), String> {
        Err("there are no signals here".to_string())
    }
    /// Does not call `element` any more when signals arrive.
    fn forget_signals(&self, _element: &str) {}
    /// Sends a signal to a process.
    ///
    /// # Errors
    /// There is no such signal or process.
    fn kill(&self, _signal: &str, _process: &str) -> Result<(), String> {
        Err("there are no processes here".to_string())
    }
    /// The number of the process the router runs in.
    fn process(&self) -> u32 {
        0
    }
    /// Handlers of the program around the router.
    fn handlers(&self) -> &'static [HandlerDecl] {
        &[]
    }
    /// Calls one of these handlers.
    fn read_handler(&self, _name: &str) -> Option<String> {
        None
    }
    /// Checks a value for one of these handlers.
    ///
    /// # Errors The fault of the value.
    fn check_write(&self, _name: &str, _value: &str) -> Result<(), String> {
        Ok(())
    }
    /// Takes a value that was checked.
    fn write_handler(&self, _name: &str, _value: &str) {}
}

/// Everything a router gets from its host.
#[derive(Clone)]
pub struct Environment {
    /// Devices by vif number.
    pub devices: BTreeMap<u32, Rc<RefCell<dyn Device>>>,
    /// Files and standard output, where there are any; in a guest, files in its memory.
    pub host: Option<Rc<dyn Host>>,
    /// Where Print and its like write, a line at a time without its line end.
    pub console: Rc<dyn Fn(&str)>,
    /// The configuration's limits.
    pub limits: Limits,
    /// The source of the router's random numbers.
    pub entropy: Entropy,
    /// Requests of elements for offload rules.
    pub offload: Rc<RefCell<OffloadRegistry>>,
    /// Classes that get an element in every configuration, such as `ClickOSControl`.
    pub implicit: Vec<String>,
}

impl Environment {
    /// No devices, a console that discards, default limits, and random numbers that everybody can foresee.
    pub fn new() -> Self {
        Self {
            devices: BTreeMap::new(),
            host: None,
            console: Rc::new(|_| {}),
            limits: Limits::default(),
            entropy: Entropy::new(&[0; random::KEY]),
            offload: Rc::default(),
            implicit: Vec::new(),
        }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::new()
    }
}

/// One of that many parts of all packets may wait in one element.
const WAITING_PART: usize = 16;

/// Limits of a configuration. Exceeding one is a `ConfigError` that names the limit.
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
    /// Steps of work from the text to a checked graph.
    pub steps: usize,
    /// Packets that exist at a time.
    pub packet_buffers: usize,
    /// Entries of one table: rules, routes, ARP entries; also arguments of one element.
    pub table_entries: usize,
    /// Flows of one table.
    pub flows: usize,
    /// Bytes of a value given to a handler.
    pub handler_bytes: usize,
    /// Bytes of a table, or of learned state, that a handler answers with.
    pub answer_bytes: usize,
    /// Bytes of all files of a guest, which are in its memory.
    pub file_bytes: usize,
    /// Packets that travel together at most; 1 gives Click's order packet by packet.
    pub batch: usize,
    /// Console lines a second; more are counted, not written.
    pub console_lines_per_s: u32,
    /// Bytes of memory that an installation leaves free; 0 does not look for them.
    pub reserve_bytes: usize,
    /// Threads that elements may have copies on.
    pub threads: usize,
}

impl Limits {
    /// The most packets that one element may let wait for the answer of another station. A station
    /// that never answers must not take the buffers of all others.
    pub fn waiting_packets(&self) -> usize {
        (self.packet_buffers / WAITING_PART).max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            config_bytes: 1 << 20,
            elements: 4096,
            connections: 16_384,
            ports: 1024,
            steps: 1 << 24,
            packet_buffers: 4096,
            table_entries: 65_536,
            flows: 65_536,
            handler_bytes: 1 << 20,
            answer_bytes: 1 << 20,
            file_bytes: 16 << 20,
            batch: 32,
            console_lines_per_s: 1000,
            reserve_bytes: 0,
            threads: 1,
        }
    }
}
