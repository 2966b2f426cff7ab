// SPDX-License-Identifier: Apache-2.0
//! What a router reaches of this machine: files, standard output, sockets, signals, time.
use std::cell::{Cell, OnceCell, RefCell};
use std::io::{Write, stderr};
use std::os::fd::BorrowedFd;
use std::rc::{Rc, Weak};

use click_core::{
    ConfigError, Device, DeviceRequest, HandlerDecl, Host, Named, ReadFile, ServerSocket, Tun,
    TunRequest, WriteFile,
};
use click_threads::Member;

use crate::chatter::Chatter;
use crate::clock::Clock;
use crate::files;
use crate::interfaces;
#[cfg(feature = "tun")]
use crate::kernel_tun::KernelTun;
use crate::listener::Listeners;
use crate::output::{self, Output};
use crate::packet_socket::PacketSocket;
use crate::report::report_notice;
use crate::signals::{Signals, kill};
use crate::system_names::SystemNames;

/// Something that is open and may have news.
pub trait Watched {
    /// Where they come in.
    fn file(&self) -> BorrowedFd<'_>;
}

/// This machine, and the program around the router.
pub struct Machine {
    /// The time the router runs in.
    pub clock: Clock,
    /// The sockets its elements listen on.
    pub listeners: RefCell<Listeners>,
    /// Receivers of the console's lines.
    pub chatter: RefCell<Chatter>,
    /// The signals its elements wait for.
    pub signals: RefCell<Signals>,
    /// The names of services and protocols.
    system_names: SystemNames,
    /// The network interfaces they opened.
    devices: RefCell<Vec<Weak<RefCell<dyn Watched>>>>,
    /// A configuration that a handler asks for.
    pub wanted: RefCell<Option<String>>,
    /// True if a handler may ask for one.
    pub reconfigurable: bool,
    /// True if notices of elements are printed.
    pub notices: Cell<bool>,
    /// The number of the thread that the router runs on.
    pub thread: u8,
    /// The thread among those of its configuration, if there are several.
    pub member: OnceCell<Rc<Member>>,
}

impl Machine {
    /// A machine with nothing open.
    pub fn new(clock: Clock, reconfigurable: bool, notices: bool) -> Self {
        Self {
            clock,
            listeners: RefCell::default(),
            chatter: RefCell::default(),
            signals: RefCell::default(),
            system_names: SystemNames::default(),
            devices: RefCell::default(),
            wanted: RefCell::default(),
            reconfigurable,
            notices: Cell::new(notices),
            thread: 0,
            member: OnceCell::new(),
        }
    }

    /// The same machine for a router on another thread: thread 0 has the sockets and the signals, and prints notices.
    pub fn of_thread(thread: u8, clock: Clock) -> Self {
        Self {
            thread,
            ..Self::new(clock, false, false)
        }
    }

    /// Passes a line of the console to its listeners, which are thread 0's.
    pub fn tell(&self, line: &[u8]) {
        match self.member.get().filter(|_| self.thread > 0) {
            Some(member) => member.send_line(line),
            None => self.chatter.borrow_mut().tell(line),
        }
    }

    /// Refuses what only thread 0 can do.
    fn only_on_thread_0(&self, what: &str) -> Result<(), String> {
        match self.thread {
            0 => Ok(()),
            thread => Err(format!(
                "{what} belong to thread 0, the element runs on thread {thread}"
            )),
        }
    }

    /// The network interfaces that are open.
    pub fn devices(&self) -> Vec<Rc<RefCell<dyn Watched>>> {
        self.devices.borrow_mut().retain(|d| d.strong_count() > 0);
        self.devices
            .borrow()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Wakes the router when something comes in.
    fn watch<T: Watched + 'static>(&self, device: &Rc<RefCell<T>>) {
        let device: Rc<RefCell<dyn Watched>> = device.clone();
        self.devices.borrow_mut().push(Rc::downgrade(&device));
    }

    /// Forgets what elements asked for that are not there any more.
    pub fn keep_elements(&self, is_kept: impl Fn(&str) -> bool) {
        self.listeners.borrow_mut().keep(&is_kept);
        self.chatter.borrow_mut().keep(&is_kept);
        self.signals.borrow_mut().keep(&is_kept);
    }
}

const WITHOUT_HOTCONFIG: [HandlerDecl; 1] = [HandlerDecl::read_write("timewarp")];
const WITH_HOTCONFIG: [HandlerDecl; 2] = [
    HandlerDecl::read_write("timewarp"),
    HandlerDecl::command("hotconfig"),
];

/// A factor of time's speed; `nowait` is 0.
fn warp(value: &str) -> Option<f64> {
    match value {
        "nowait" | "simulation" => Some(0.0),
        number => number
            .parse()
            .ok()
            .filter(|f: &f64| *f >= 0.0 && f.is_finite()),
    }
}

impl Host for Machine {
    fn print(&self, text: &str) -> bool {
        // there is no place for an error after standard output closed
        let _ = Output.write(text.as_bytes()).and_then(|()| output::flush());
        true
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        files::open(path)
    }

    fn create_file(&self, path: &str, append: bool) -> Result<Box<dyn WriteFile>, String> {
        files::create(path, append)
    }

    fn service(&self, name: &str, protocol: &str) -> Option<u16> {
        self.system_names.service(name, protocol)
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        self.system_names.protocol(name)
    }

    fn notice(&self, notice: &ConfigError) -> bool {
        if self.notices.get() {
            // there is no place for an error after standard error closed
            let _ = writeln!(stderr(), "{}", report_notice(notice));
        }
        true
    }

    fn listen(&self, socket: &ServerSocket) -> Result<String, String> {
        self.only_on_thread_0("control sockets")?;
        self.listeners.borrow_mut().listen(socket)
    }

    fn open_device(&self, request: &DeviceRequest) -> Result<Rc<RefCell<dyn Device>>, String> {
        let device = Rc::new(RefCell::new(PacketSocket::open(request)?));
        if request.receives {
            self.watch(&device);
        }
        Ok(device)
    }

    fn interfaces(&self) -> Vec<(String, Named)> {
        interfaces::all()
    }

    #[cfg(not(feature = "tun"))]
    fn open_tun(&self, _request: &TunRequest) -> Result<Tun, String> {
        Err("/dev/net/tun: this program opens no interfaces".to_string())
    }

    #[cfg(feature = "tun")]
    fn open_tun(&self, request: &TunRequest) -> Result<Tun, String> {
        let opened = KernelTun::open(request)?;
        let name = opened.name.clone();
        let device = Rc::new(RefCell::new(opened));
        self.watch(&device);
        Ok(Tun { name, device })
    }

    fn watch_signal(&self, element: &str, signal: &str) -> Result<(), String> {
        self.only_on_thread_0("signals")?;
        self.signals.borrow_mut().watch(element, signal)
    }

    fn forget_signals(&self, element: &str) {
        self.signals.borrow_mut().keep(|name| name != element);
    }

    fn kill(&self, signal: &str, process: &str) -> Result<(), String> {
        kill(signal, process)
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn handlers(&self) -> &'static [HandlerDecl] {
        if self.reconfigurable {
            &WITH_HOTCONFIG
        } else {
            &WITHOUT_HOTCONFIG
        }
    }

    fn read_handler(&self, name: &str) -> Option<String> {
        (name == "timewarp").then(|| self.clock.warp().to_string())
    }

    fn check_write(&self, name: &str, value: &str) -> Result<(), String> {
        if self.member.get().is_some() {
            return Err("not possible while the router runs on several threads (-j)".to_string());
        }
        if name == "timewarp" && warp(value.trim()).is_none() {
            let got = value.escape_debug();
            return Err(format!(
                "expected a factor of at least 0, or nowait, got \"{got}\""
            ));
        }
        Ok(())
    }

    fn write_handler(&self, name: &str, value: &str) {
        match name {
            "timewarp" => self.clock.set_warp(warp(value.trim()).unwrap_or(1.0)),
            _ => *self.wanted.borrow_mut() = Some(value.to_string()),
        }
    }
}
