// SPDX-License-Identifier: Apache-2.0
//! One peer of a control socket: its bytes in, its bytes out, its commands.
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;

use click_core::ControlOptions;
use rustix::net::{Shutdown, shutdown};

use super::command::{Command, MAX_DATA, MAX_LINE, Taken, split, take};
use super::{Service, code, llrpc};
use crate::listener::Stream;

const GREETING: &[u8] = b"Click::ControlSocket/1.3\r\n";
/// Answers are not made while this many bytes wait to be taken.
const MAX_OUTPUT: usize = 1 << 20;
/// Commands answered in one poll.
const MAX_COMMANDS: usize = 64;

/// A peer.
pub struct Connection {
    stream: Box<dyn Stream>,
    /// The element whose socket it came through.
    element: String,
    options: ControlOptions,
    input: Vec<u8>,
    output: Vec<u8>,
    /// No more input comes, or none is wanted.
    ended: bool,
    broken: bool,
}

impl Connection {
    pub fn new(stream: Box<dyn Stream>, element: String, options: ControlOptions) -> Self {
        Self {
            stream,
            element,
            options,
            input: Vec::new(),
            output: GREETING.to_vec(),
            ended: false,
            broken: false,
        }
    }

    pub fn element(&self) -> &str {
        &self.element
    }

    pub fn options(&self) -> &ControlOptions {
        &self.options
    }

    /// Where something can come in.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// True if nothing can be said any more.
    pub fn is_over(&self) -> bool {
        self.broken || (self.ended && self.output.is_empty())
    }

    /// Reads, answers, writes; returns whether there was anything to do.
    pub fn serve(&mut self, service: &mut dyn Service) -> bool {
        let received = self.receive();
        let mut answered = 0;
        while answered < MAX_COMMANDS && self.output.len() < MAX_OUTPUT {
            match take(&mut self.input, self.ended) {
                Taken::Whole(command) => self.answer(&command, service),
                Taken::Partial => break,
                Taken::TooLong(code, text) => {
                    self.say(code, text);
                    self.quit();
                }
            }
            answered += 1;
        }
        self.send() || received || answered > 0
    }

    fn receive(&mut self) -> bool {
        let mut buffer = [0; 16_384];
        if self.ended || self.input.len() > MAX_LINE + MAX_DATA {
            return false;
        }
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(n) => {
                self.input.extend(&buffer[..n]);
                return true;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.broken = true,
        }
        false
    }

    fn send(&mut self) -> bool {
        let mut sent = false;
        while !self.output.is_empty() && !self.broken {
            match self.stream.write(&self.output) {
                Ok(n) if n > 0 => {
                    self.output.drain(..n);
                    sent = true;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => self.broken = true,
            }
        }
        sent
    }

    fn quit(&mut self) {
        self.input.clear();
        self.ended = true;
    }

    fn say(&mut self, code: u16, text: &str) {
        // a text of several lines has a dash behind the code of all but the last
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let sign = if number + 1 < lines.len() { '-' } else { ' ' };
            self.output
                .extend(format!("{code}{sign}{line}\r\n").bytes());
        }
    }

    fn answer(&mut self, command: &Command, service: &mut dyn Service) {
        let (word, rest) = split(&command.line);
        let (name, value) = split(rest);
        let upper = word.to_ascii_uppercase();
        let data = command.data.as_deref();
        match upper.as_str() {
            "" => {}
            "HELP" => self.say(code::OK, HELP),
            "QUIT" | "CLOSE" => {
                self.say(code::OK, "Goodbye!");
                self.quit();
            }
            _ if !COMMANDS.contains(&upper.as_str()) => {
                let word = word.escape_debug();
                self.say(
                    code::UNIMPLEMENTED,
                    &format!("Command '{word}' unimplemented"),
                );
            }
            _ if name.is_empty() => self.say(code::SYNTAX, "Wrong number of arguments"),
            "READ" | "GET" => self.read(name, value.as_bytes(), service),
            "WRITE" | "SET" => self.write(name, value.as_bytes(), service),
            "CHECKREAD" | "CHECKWRITE" => self.check(name, upper == "CHECKWRITE", service),
            "LLRPC" => self.llrpc(name, data.unwrap_or_default(), service),
            _ => match data {
                None => self.say(code::SYNTAX, &format!("Syntax error in '{upper}'")),
                Some(data) if upper.starts_with("READ") => self.read(name, data, service),
                Some(data) => self.write(name, data, service),
            },
        }
    }

    /// The handler that a peer means by `name`, with the proxy in front.
    fn handler(&self, name: &str, service: &mut dyn Service) -> Result<String, (u16, String)> {
        let name = numbered(name, service)?;
        Ok(match self.options.proxy.as_str() {
            "" => name,
            proxy => format!("{proxy}.{name}"),
        })
    }

    fn read(&mut self, name: &str, param: &[u8], service: &mut dyn Service) {
        let param = String::from_utf8_lossy(param).into_owned();
        let value = self.handler(name, service);
        match value.and_then(|handler| service.read(&handler, &param)) {
            Ok(value) => self.say_data(&format!("Read handler '{name}' OK"), &value),
            Err((code, text)) => self.say(code, &text),
        }
    }

    fn say_data(&mut self, text: &str, value: &[u8]) {
        self.say(code::OK, text);
        let head = format!("DATA {}\r\n", value.len());
        self.output
            .extend(head.bytes().chain(value.iter().copied()));
    }

    fn write(&mut self, name: &str, value: &[u8], service: &mut dyn Service) {
        if self.options.read_only {
            self.say(code::PERMISSION, &format!("Permission denied for '{name}'"));
            return;
        }
        let handler = self.handler(name, service);
        match handler.and_then(|handler| service.write(&handler, value)) {
            Ok(()) => self.say(code::OK, &format!("Write handler '{name}' OK")),
            Err((code, text)) => self.say(code, &text),
        }
    }

    fn check(&mut self, name: &str, write: bool, service: &mut dyn Service) {
        let what = if write { "Write" } else { "Read" };
        if write && self.options.read_only {
            self.say(code::PERMISSION, &format!("Permission denied for '{name}'"));
            return;
        }
        let handler = self.handler(name, service);
        match handler.and_then(|handler| service.check(&handler, write)) {
            Ok(()) => self.say(code::OK, &format!("{what} handler '{name}' OK")),
            Err((code, text)) => self.say(code, &text),
        }
    }

    fn llrpc(&mut self, name: &str, data: &[u8], service: &mut dyn Service) {
        match llrpc::call(name, data, self.options.read_only, service) {
            Ok(value) => self.say_data(&format!("LLRPC '{name}' OK"), &value),
            Err((code, text)) => self.say(code, &text),
        }
    }
}

/// `NUMBER.HANDLER` is a handler of the element with that number.
fn numbered(name: &str, service: &mut dyn Service) -> Result<String, (u16, String)> {
    let Some((element, handler)) = name.split_once('.') else {
        return Ok(name.to_string());
    };
    match element.parse::<usize>() {
        Ok(number) => match service.element(number) {
            Some(element) => Ok(format!("{element}.{handler}")),
            None => Err((
                code::NO_SUCH_ELEMENT,
                format!("No element named '{element}'"),
            )),
        },
        Err(_) => Ok(name.to_string()),
    }
}

const COMMANDS: [&str; 12] = [
    "READ",
    "GET",
    "WRITE",
    "SET",
    "READDATA",
    "WRITEDATA",
    "SETDATA",
    "READUNTIL",
    "WRITEUNTIL",
    "CHECKREAD",
    "CHECKWRITE",
    "LLRPC",
];

const HELP: &str = "Commands supported:
READ handler [arg...]   call read handler, return result
READDATA handler len    call read handler with len data bytes
READUNTIL handler term  call read handler with lines up to term
WRITE handler [arg...]  call write handler
WRITEDATA handler len   call write handler with len data bytes
WRITEUNTIL handler term call write handler with lines up to term
CHECKREAD handler       check if read handler is valid
CHECKWRITE handler      check if write handler is valid
LLRPC elt#number [len]  call LLRPC with len data bytes
HELP                    print this
QUIT                    close connection";

impl Drop for Connection {
    fn drop(&mut self) {
        // a connection the program was started with has a second descriptor, which would keep it open;
        // the peer may be gone already
        let _ = shutdown(&self.stream, Shutdown::Both);
    }
}
