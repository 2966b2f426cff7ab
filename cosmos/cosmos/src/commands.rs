// SPDX-License-Identifier: Apache-2.0
//! One method for each command.

use std::cell::RefCell;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use control_socket::{Client, ClientError};
use serde_json::{Value, json};

use crate::doctor::{Check, Machine};
use crate::output::{fields, printable, table, text};
use crate::progress::Progress;
use crate::{Cpu, Format, Write, doctor};

/// Time for the daemon itself, beside that of the guest: a busy host builds or undoes a domain in
/// tens of seconds.
const MARGIN: Duration = Duration::from_secs(120);

/// Seconds that saving or restoring may take.
const LONG_S: u64 = 120;

/// Exit statuses: the daemon or the guest refused or failed; the command line is wrong; there is
/// no such guest; the daemon cannot be reached or did not answer.
pub const REFUSED: u8 = 1;
pub const USAGE: u8 = 2;
pub const NO_GUEST: u8 = 3;
pub const UNREACHABLE: u8 = 4;

/// Why a command failed, and the program's exit status.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Failure>;

pub fn failed(message: impl Into<String>) -> Failure {
    Failure {
        status: REFUSED,
        message: message.into(),
    }
}

pub fn usage(message: impl Into<String>) -> Failure {
    Failure {
        status: USAGE,
        message: message.into(),
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Connection(message) => Self {
                status: UNREACHABLE,
                message,
            },
            ClientError::Api(e) if e.code == "no-such-guest" => Self {
                status: NO_GUEST,
                message: e.message,
            },
            ClientError::Api(e) => failed(format!("{}: {}", e.code, e.message)),
        }
    }
}

/// A daemon, and how its answers are printed.
pub struct Session<'a> {
    socket: &'a Path,
    format: Format,
    /// Opened by the first call.
    client: RefCell<Option<Client>>,
}

impl<'a> Session<'a> {
    pub fn new(socket: &'a Path, format: Format) -> Self {
        Self {
            socket,
            format,
            client: RefCell::default(),
        }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn cpu(&self, args: &Cpu) -> Result<()> {
        let cpu = json!({"pin": args.pin, "weight": args.weight, "cap_percent": args.cap});
        let request = json!({"uuid": self.resolve(&args.guest)?, "cpu": cpu});
        self.finish(&self.call("cpu", request)?)
    }

    pub fn save(&self, guest: &str) -> Result<()> {
        let begun = Instant::now();
        let answer = self.call_long("save", guest)?;
        let seconds = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let saved = json!({"guest": guest, "bytes": answer["bytes"], "seconds": seconds});
        self.print(&saved, || fields(&saved))
    }

    pub fn restore(&self, guest: &str) -> Result<()> {
        let answer = self.call_long("restore", guest)?;
        self.print(&answer, || fields(&answer))
    }

    /// Saving and restoring take as long as the guest's memory is large.
    fn call_long(&self, verb: &str, guest: &str) -> Result<Value> {
        let request = json!({"uuid": self.resolve(guest)?});
        let _progress = Progress::begin(&format!("{verb} {guest}"));
        self.call_for(verb, request, LONG_S)
    }

    /// Tells what the host lacks; fails if it is anything.
    pub fn doctor(&self, valed: &Path) -> Result<()> {
        let mut checks = vec![doctor::listening("cosmosd", self.socket)];
        checks.push(doctor::listening("valed", valed));
        let host = self.call("host", json!({})).unwrap_or_default();
        let machine = Machine::new("/");
        if host["host_kind"] == json!("xen") || (host.is_null() && machine.is_xen()) {
            checks.extend(machine.xen());
        }
        if host.is_object() {
            let images = self.call("image-list", json!({})).unwrap_or_default();
            let known = images["images"].as_array().map_or(0, Vec::len);
            checks.extend(doctor::host(&host, known));
        }
        let lacking = checks.iter().filter(|c| c.advice.is_some()).count();
        let all: Value = checks.iter().map(Check::json).collect();
        self.print(&all, || {
            let rows: Vec<_> = checks.iter().map(Check::row).collect();
            table(&["", "Check", "What to do"], &rows)
        })?;
        match lacking {
            0 => Ok(()),
            n => Err(failed(format!("this host lacks {n} of {}", checks.len()))),
        }
    }

    pub fn add_image(&self, path: &Path) -> Result<()> {
        let added = json!({"sha256": self.give(path)?});
        self.print(&added, || fields(&added))
    }

    pub fn images(&self) -> Result<()> {
        let answer = self.call("image-list", json!({}))?;
        let images = &answer["images"];
        self.print(images, || {
            images_table(images.as_array().map_or(&[], Vec::as_slice))
        })
    }

    pub fn remove_image(&self, sha256: &str) -> Result<()> {
        self.finish(&self.call("image-remove", json!({"sha256": sha256}))?)
    }

    pub fn destroy(&self, guest: &str) -> Result<()> {
        let uuid = match self.resolve(guest) {
            Err(failure) if failure.status == NO_GUEST => return self.finish(&json!({})),
            other => other?,
        };
        self.finish(&self.call("destroy", json!({"uuid": uuid}))?)
    }

    pub fn remove_vif(&self, guest: &str, devid: u32) -> Result<()> {
        let request = json!({"uuid": self.resolve(guest)?, "devid": devid});
        self.finish(&self.call("vif-remove", request)?)
    }

    pub fn set_vif(&self, guest: &str, devid: u32, link_up: bool) -> Result<()> {
        let uuid = self.resolve(guest)?;
        let request = json!({"uuid": uuid, "devid": devid, "link_up": link_up});
        self.finish(&self.call("vif-set", request)?)
    }

    pub fn simple(&self, verb: &str, guest: &str) -> Result<()> {
        self.finish(&self.call(verb, json!({"uuid": self.resolve(guest)?}))?)
    }

    pub fn list(&self) -> Result<()> {
        let answer = self.call("list", json!({}))?;
        let guests = &answer["guests"];
        self.print(guests, || {
            guests_table(guests.as_array().map_or(&[], Vec::as_slice))
        })
    }

    pub fn info(&self, guest: &str) -> Result<()> {
        let info = self.call("info", json!({"uuid": self.resolve(guest)?}))?;
        self.print(&info, || fields(&info))
    }

    pub fn host(&self) -> Result<()> {
        let host = self.call("host", json!({}))?;
        self.print(&host, || fields(&host))
    }

    pub fn read(&self, guest: &str, rid: u8, handler: &str, raw: bool) -> Result<()> {
        let request = json!({"uuid": self.resolve(guest)?, "rid": rid, "name": handler});
        let answer = self.call("handler-read", request)?;
        let value = text(&answer["value"]);
        self.print(&answer, || if raw { value } else { for_reader(&value) })
    }

    pub fn write(&self, args: &Write) -> Result<()> {
        let pairs = args.writes.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(usage(format!(
                "write: {:?} has no value",
                pairs.remainder()[0]
            )));
        }
        let request = json!({
            "uuid": self.resolve(&args.guest)?, "rid": args.router.rid,
            "writes": pairs.collect::<Vec<_>>(), "timeout_ms": args.timeout.timeout * 1000,
        });
        self.finish(&self.call_for("handler-write", request, args.timeout.timeout)?)
    }

    pub fn handlers(&self, guest: &str, rid: u8) -> Result<()> {
        let request = json!({"uuid": self.resolve(guest)?, "rid": rid});
        let answer = self.call("handler-list", request)?;
        let handlers = &answer["handlers"];
        self.print(handlers, || {
            handlers_table(handlers.as_array().map_or(&[], Vec::as_slice))
        })
    }

    pub fn console(&self, guest: &str, max_bytes: u64) -> Result<()> {
        let request = json!({"uuid": self.resolve(guest)?, "max_bytes": max_bytes});
        let answer = self.call("console", request)?;
        self.print(&answer, || printable(&text(&answer["text"])))
    }

    pub fn events(&self) -> Result<()> {
        let mut events = Client::connect(self.socket)?.events()?;
        loop {
            let event = events.next_event()?;
            let line = json!({"event": event.event, "data": event.data});
            match self.format {
                Format::Json => emit(&format!("{line}\n"))?,
                Format::Table => {
                    let words = printable(&line_of(&event.data));
                    emit(&format!("{:6} {words}\n", event.event))?;
                }
            }
        }
    }

    /// The UUID of a guest that is named by it, or by its name.
    pub fn resolve(&self, guest: &str) -> Result<String> {
        let is_uuid = guest.len() == 36 && guest.matches('-').count() == 4;
        if is_uuid {
            return Ok(guest.to_lowercase());
        }
        let answer = self.call("find", json!({"name": guest}))?;
        let uuids = answer["uuids"].as_array().map_or(&[][..], Vec::as_slice);
        match uuids {
            [uuid] => Ok(text(uuid)),
            [] => Err(Failure {
                status: NO_GUEST,
                message: format!("no guest {guest:?} on this host"),
            }),
            _ => Err(failed(format!(
                "{guest}: several guests have this name; use the UUID"
            ))),
        }
    }

    pub fn call(&self, verb: &str, args: Value) -> Result<Value> {
        self.call_for(verb, args, 0)
    }

    pub fn call_for(&self, verb: &str, args: Value, seconds: u64) -> Result<Value> {
        let mut slot = self.client.borrow_mut();
        let mut client = match slot.take() {
            Some(client) => client,
            None => Client::connect(self.socket)?,
        };
        client.set_timeout(MARGIN + Duration::from_secs(seconds));
        let answer = client.call(verb, args);
        if !matches!(answer, Err(ClientError::Connection(_))) {
            *slot = Some(client);
        }
        Ok(answer?)
    }

    /// Ends a command that has nothing to tell a person; programs read its answer.
    pub fn finish(&self, answer: &Value) -> Result<()> {
        self.print(answer, String::new)
    }

    pub fn print(&self, value: &Value, for_people: impl FnOnce() -> String) -> Result<()> {
        match self.format {
            Format::Json => emit(&format!("{value:#}\n")),
            Format::Table => emit(&for_people()),
        }
    }
}

/// Writes to standard output; a reader that has seen enough ends the program, without a word.
pub fn emit(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|e| failed(format!("standard output: {e}"))),
    }
}

fn guests_table(guests: &[Value]) -> String {
    let row = |guest: &Value| {
        let seconds = guest["cpu_time_ns"].as_u64().unwrap_or(0) as f64 / 1e9;
        let mut row: Vec<String> = ["uuid", "name", "domid", "state", "memory_mib"]
            .iter()
            .map(|key| text(&guest[*key]))
            .collect();
        row.extend([format!("{seconds:.1}"), text(&guest["config_name"])]);
        row
    };
    let headings = [
        "UUID",
        "Name",
        "Domid",
        "State",
        "MiB",
        "CPU s",
        "Configuration",
    ];
    table(&headings, &guests.iter().map(row).collect::<Vec<_>>())
}

fn images_table(images: &[Value]) -> String {
    let row = |image: &Value| vec![text(&image["sha256"]), text(&image["size"])];
    table(
        &["SHA-256", "Bytes"],
        &images.iter().map(row).collect::<Vec<_>>(),
    )
}

fn handlers_table(handlers: &[Value]) -> String {
    let mark = |value: &Value| {
        if *value == json!(true) {
            "yes".into()
        } else {
            String::new()
        }
    };
    let row = |h: &Value| vec![text(&h["name"]), mark(&h["read"]), mark(&h["write"])];
    table(
        &["Handler", "Read", "Write"],
        &handlers.iter().map(row).collect::<Vec<_>>(),
    )
}

fn line_of(data: &Value) -> String {
    let empty = serde_json::Map::new();
    let parts = data.as_object().unwrap_or(&empty).iter();
    parts
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A handler's value that ends with a newline, and is safe if a terminal shows it.
fn for_reader(value: &str) -> String {
    let mut text = match std::io::stdout().is_terminal() {
        true => printable(value),
        false => value.to_owned(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
