// SPDX-License-Identifier: Apache-2.0
//! One peer of the control socket: its bytes in, its bytes out, its commands.
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// What the commands call. Errors are a code of the protocol and a text.
pub trait Service {
    /// Reads a handler.
    ///
    /// # Errors
    /// Code and text.
    fn read(&mut self, name: &str, param: &str) -> Result<Vec<u8>, (u16, String)>;
    /// Writes a handler.
    ///
    /// # Errors
    /// Code and text.
    fn write(&mut self, name: &str, value: &[u8]) -> Result<(), (u16, String)>;
    /// Whether a handler can be read, or written.
    ///
    /// # Errors
    /// Code and text if it cannot.
    fn check(&mut self, name: &str, write: bool) -> Result<(), (u16, String)>;
}

const GREETING: &[u8] = b"Click::ControlSocket/1.3\r\n";
/// Bytes of a command line.
const MAX_LINE: usize = 65_536;
/// Bytes of a value given with a command.
const MAX_DATA: usize = 1 << 20;
/// Answers are not made while this many bytes wait to be taken.
const MAX_OUTPUT: usize = 1 << 20;
/// Commands answered in one poll.
const MAX_COMMANDS: usize = 64;

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A peer.
pub struct Connection {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// No more input comes, or none is wanted.
    ended: bool,
    broken: bool,
}

/// A command that has arrived whole.
struct Command {
    line: String,
    data: Option<Vec<u8>>,
}

impl Connection {
    pub fn new_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(Box::new(stream)))
    }

    pub fn new_unix(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(Box::new(stream)))
    }

    fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            input: Vec::new(),
            output: GREETING.to_vec(),
            ended: false,
            broken: false,
        }
    }

    /// Whether nothing can be said any more.
    pub fn is_over(&self) -> bool {
        self.broken || (self.ended && self.output.is_empty())
    }

    /// Reads, answers, writes; returns whether there was anything to do.
    pub fn serve(&mut self, service: &mut dyn Service) -> bool {
        let received = self.receive();
        let mut answered = 0;
        while answered < MAX_COMMANDS && self.output.len() < MAX_OUTPUT {
            let Some(command) = self.command() else { break };
            self.answer(&command, service);
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

    /// Takes a whole command off the input.
    fn command(&mut self) -> Option<Command> {
        let Some(end) = self.input.iter().position(|b| *b == b'\n') else {
            if self.input.len() > MAX_LINE {
                self.say(500, "Command line too long");
                self.quit();
            }
            // what is left when the peer ends is a line too
            if !self.ended || self.input.is_empty() {
                return None;
            }
            self.input.push(b'\n');
            return self.command();
        };
        let line = String::from_utf8_lossy(&self.input[..end])
            .trim()
            .to_string();
        let Some(size) = data_size(&line) else {
            self.input.drain(..=end);
            return Some(Command { line, data: None });
        };
        if size > MAX_DATA {
            self.say(501, "Too much data");
            self.quit();
            return None;
        }
        if self.input.len() <= end + size {
            if self.ended {
                self.input.clear();
            }
            return None;
        }
        let data = Some(self.input[end + 1..=end + size].to_vec());
        self.input.drain(..=end + size);
        Some(Command { line, data })
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
        let data = command.data.as_deref();
        match word.to_ascii_uppercase().as_str() {
            "" => {}
            "READ" | "GET" if !name.is_empty() => self.read(name, value, service),
            "READDATA" if data.is_some() => {
                let param = String::from_utf8_lossy(data.unwrap_or_default()).into_owned();
                self.read(name, &param, service);
            }
            "WRITE" | "SET" if !name.is_empty() => self.write(name, value.as_bytes(), service),
            "WRITEDATA" if data.is_some() => self.write(name, data.unwrap_or_default(), service),
            "CHECKREAD" if !name.is_empty() => self.check(name, false, service),
            "CHECKWRITE" if !name.is_empty() => self.check(name, true, service),
            "HELP" => self.say(200, HELP),
            "QUIT" | "CLOSE" => {
                self.say(200, "Goodbye!");
                self.quit();
            }
            "READ" | "GET" | "READDATA" | "WRITE" | "SET" | "WRITEDATA" | "CHECKREAD"
            | "CHECKWRITE" => self.say(500, &format!("Wrong arguments for '{word}'")),
            _ => self.say(
                500,
                &format!("Unimplemented command '{}'", word.escape_debug()),
            ),
        }
    }

    fn read(&mut self, name: &str, param: &str, service: &mut dyn Service) {
        match service.read(name, param) {
            Ok(value) => {
                self.say(200, &format!("Read handler '{name}' OK"));
                self.output
                    .extend(format!("DATA {}\r\n", value.len()).bytes());
                self.output.extend(value);
            }
            Err((code, text)) => self.say(code, &text),
        }
    }

    fn write(&mut self, name: &str, value: &[u8], service: &mut dyn Service) {
        match service.write(name, value) {
            Ok(()) => self.say(200, &format!("Write handler '{name}' OK")),
            Err((code, text)) => self.say(code, &text),
        }
    }

    fn check(&mut self, name: &str, write: bool, service: &mut dyn Service) {
        let what = if write { "Write" } else { "Read" };
        match service.check(name, write) {
            Ok(()) => self.say(200, &format!("{what} handler '{name}' OK")),
            Err((code, text)) => self.say(code, &text),
        }
    }
}

const HELP: &str = "Commands supported:
READ handler [arg...]   call read handler, return result
READDATA handler len    call read handler with len data bytes
WRITE handler [arg...]  call write handler
WRITEDATA handler len   call write handler with len data bytes
CHECKREAD handler       check if read handler is valid
CHECKWRITE handler      check if write handler is valid
HELP                    print this
QUIT                    close connection";

fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// How many bytes follow a line, if it is of a command that data follow.
fn data_size(line: &str) -> Option<usize> {
    let (word, rest) = split(line);
    let with_data = ["READDATA", "WRITEDATA"].contains(&word.to_ascii_uppercase().as_str());
    with_data.then(|| split(rest).1.parse().ok()).flatten()
}
