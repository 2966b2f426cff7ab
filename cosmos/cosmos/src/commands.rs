// SPDX-License-Identifier: Apache-2.0
//! One method for each command.

use std::cell::RefCell;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use control_socket::{Client, ClientError, Signature};
use cosmos_proto::answer::{Guest, Handler, Image, Stranger};
use cosmos_proto::{
    Console, Done, Named, NoArgs, OfGuest, OfImage, OfRouter, Param, Place, Read, Rid, Share,
    TimeoutMs, Uuid, VifLink, Writes, verb,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::doctor::{Check, Machine};
use crate::output::{as_json, fields, printable, table, text};
use crate::progress::Progress;
use crate::{Cpu, Format, Write, doctor};

/// Time for the daemon itself, besides that of the guest: a busy host builds or undoes a domain in
/// tens of seconds.
const MARGIN: Duration = Duration::from_secs(120);

/// Seconds that saving or restoring may take.
const LONG_S: u64 = 120;

/// Exit status: the daemon or the guest refused or failed.
pub const REFUSED: u8 = 1;
/// Exit status: the command line is wrong.
pub const USAGE: u8 = 2;
/// Exit status: the host has no such guest.
pub const NO_GUEST: u8 = 3;
/// Exit status: the daemon did not answer.
pub const UNREACHABLE: u8 = 4;

/// Why a command failed, and the program's exit status.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Failure>;

/// A value with its type's check; the error names the place, as the daemon's does.
pub fn checked<R, T: TryFrom<R, Error = String>>(place: &str, raw: R) -> Result<T> {
    T::try_from(raw).map_err(|e| failed(format!("{place}: {e}")))
}

/// The router of a number.
pub fn rid(number: u8) -> Result<Rid> {
    checked("rid", u64::from(number))
}

/// The time that a guest has for an answer.
pub fn timeout_ms(seconds: u64) -> Result<TimeoutMs> {
    checked("timeout_ms", seconds.saturating_mul(1000))
}

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

    pub fn socket(&self) -> &'a Path {
        self.socket
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn cpu(&self, args: &Cpu) -> Result<()> {
        let cpu = cosmos_proto::Cpu {
            pin: args.pin,
            weight: args.weight,
            cap_percent: args.cap,
        };
        let uuid = self.resolve(&args.guest)?;
        self.finish(&self.call::<verb::SetCpu>(&Share { uuid, cpu })?)
    }

    pub fn save(&self, guest: &str) -> Result<()> {
        let begun = Instant::now();
        let answer = self.call_long::<verb::Save>(guest)?;
        let seconds = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let saved = json!({"guest": guest, "bytes": answer.bytes, "seconds": seconds});
        self.print(&saved, || fields(&saved))
    }

    pub fn restore(&self, guest: &str) -> Result<()> {
        let answer = self.call_long::<verb::Restore>(guest)?;
        self.print(&answer, || fields(&answer))
    }

    /// Saving and restoring take as long as the guest's memory is large.
    fn call_long<V: Signature<Args = OfGuest>>(&self, guest: &str) -> Result<V::Answer> {
        let args = self.of_guest(guest)?;
        let _progress = Progress::begin(&format!("{} {guest}", V::NAME));
        self.call_for::<V>(&args, LONG_S)
    }

    /// Tells what the host lacks; fails if it is anything.
    pub fn doctor(&self, valed: &Path) -> Result<()> {
        let mut checks = vec![doctor::listening("cosmosd", self.socket)];
        checks.push(doctor::listening("valed", valed));
        checks.extend(doctor::kept(valed));
        let host = self.call::<verb::DescribeHost>(&NoArgs {}).ok();
        let machine = Machine::new("/");
        let kind = host.as_ref().map(|host| host.host_kind == "xen");
        if kind.unwrap_or_else(|| machine.is_xen()) {
            checks.extend(machine.xen());
        }
        if let Some(host) = host {
            let known = self.call::<verb::ListImages>(&NoArgs {});
            let known = known.map_or(0, |known| known.images.len());
            checks.extend(doctor::host(&host, known));
            checks.push(doctor::strangers(&self.strangers()));
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
        let images = self.call::<verb::ListImages>(&NoArgs {})?.images;
        self.print(&images, || images_table(&images))
    }

    pub fn remove_image(&self, sha256: &str) -> Result<()> {
        let sha256 = sha256.to_owned().try_into().map_err(usage)?;
        self.finish(&self.call::<verb::RemoveImage>(&OfImage { sha256 })?)
    }

    pub fn destroy(&self, guest: &str) -> Result<()> {
        let uuid = match self.resolve(guest) {
            Err(failure) if failure.status == NO_GUEST => return self.finish(&Done {}),
            other => other?,
        };
        self.finish(&self.call::<verb::Destroy>(&OfGuest { uuid })?)
    }

    pub fn remove_vif(&self, guest: &str, devid: u32) -> Result<()> {
        let place = Place {
            uuid: self.resolve(guest)?,
            devid,
            domid: None,
        };
        self.finish(&self.call::<verb::RemoveVif>(&place)?)
    }

    pub fn set_vif(&self, guest: &str, devid: u32, link_up: bool) -> Result<()> {
        let link = VifLink {
            uuid: self.resolve(guest)?,
            devid,
            domid: None,
            link_up,
        };
        self.finish(&self.call::<verb::SetVif>(&link)?)
    }

    pub fn simple<V: Signature<Args = OfGuest, Answer = Done>>(&self, guest: &str) -> Result<()> {
        self.finish(&self.call::<V>(&self.of_guest(guest)?)?)
    }

    pub fn list(&self) -> Result<()> {
        let guests = self.call::<verb::List>(&NoArgs {})?.guests;
        let strangers = match self.format {
            Format::Table => self.strangers(),
            Format::Json => Vec::new(),
        };
        self.print(&guests, || guests_table(&guests, &strangers))
    }

    /// Domains of others that look like guests; none on a host whose daemon knows of none.
    fn strangers(&self) -> Vec<Stranger> {
        let answer = self.call::<verb::ListStrangers>(&NoArgs {});
        answer.map_or_else(|_| Vec::new(), |answer| answer.strangers)
    }

    pub fn info(&self, guest: &str) -> Result<()> {
        let info = self.call::<verb::Info>(&self.of_guest(guest)?)?;
        self.print(&info, || fields(&info))
    }

    pub fn host(&self) -> Result<()> {
        let host = self.call::<verb::DescribeHost>(&NoArgs {})?;
        self.print(&host, || fields(&host))
    }

    pub fn read(&self, guest: &str, rid: u8, handler: &str, raw: bool) -> Result<()> {
        let args = Read {
            uuid: self.resolve(guest)?,
            rid: self::rid(rid)?,
            name: checked("name", handler)?,
            param: Param::default(),
            timeout_ms: TimeoutMs::default(),
        };
        let answer = self.call::<verb::ReadHandler>(&args)?;
        let value = answer.value.clone();
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
        let writes = pairs.map(|pair| Ok((checked("writes", &*pair[0])?, pair[1].clone())));
        let request = Writes {
            uuid: self.resolve(&args.guest)?,
            rid: rid(args.router.rid)?,
            writes: writes.collect::<Result<_>>()?,
            change_id: None,
            has_secrets: false,
            timeout_ms: timeout_ms(args.timeout.timeout)?,
        };
        self.finish(&self.call_for::<verb::WriteHandlers>(&request, args.timeout.timeout)?)
    }

    pub fn handlers(&self, guest: &str, rid: u8) -> Result<()> {
        let uuid = self.resolve(guest)?;
        let answer = self.call::<verb::ListHandlers>(&OfRouter {
            uuid,
            rid: self::rid(rid)?,
            timeout_ms: TimeoutMs::default(),
        })?;
        self.print(&answer.handlers, || handlers_table(&answer.handlers))
    }

    pub fn console(&self, guest: &str, max_bytes: u64) -> Result<()> {
        let uuid = self.resolve(guest)?;
        let answer = self.call::<verb::ReadConsole>(&Console { uuid, max_bytes })?;
        self.print(&answer, || printable(&answer.text))
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
    pub fn resolve(&self, guest: &str) -> Result<Uuid> {
        if let Ok(uuid) = guest.to_lowercase().try_into() {
            return Ok(uuid);
        }
        let name = guest.to_owned();
        match &self.call::<verb::Find>(&Named { name })?.uuids[..] {
            [uuid] => Ok(uuid.clone()),
            [] => Err(Failure {
                status: NO_GUEST,
                message: format!("no guest {guest:?} on this host"),
            }),
            _ => Err(failed(format!(
                "{guest}: several guests have this name; use the UUID"
            ))),
        }
    }

    pub fn of_guest(&self, guest: &str) -> Result<OfGuest> {
        self.resolve(guest).map(|uuid| OfGuest { uuid })
    }

    pub fn call<V: Signature>(&self, args: &V::Args) -> Result<V::Answer> {
        self.call_for::<V>(args, 0)
    }

    /// Calls a verb that waits for the guest, which has `seconds` for it.
    pub fn call_for<V: Signature>(&self, args: &V::Args, seconds: u64) -> Result<V::Answer> {
        self.call_by(V::NAME, None, args, seconds)
    }

    /// As [`Self::call_for`]. A daemon that does not know the verb is asked by its name before 1.0.
    pub fn call_renamed<V, Old>(&self, args: &V::Args, seconds: u64) -> Result<V::Answer>
    where
        V: Signature,
        Old: Signature<Args = V::Args, Answer = V::Answer>,
    {
        self.call_by(V::NAME, Some(Old::NAME), args, seconds)
    }

    /// Calls a verb, by its older name if the daemon does not know the other one.
    fn call_by<Args, Answer>(
        &self,
        name: &str,
        older: Option<&str>,
        args: &Args,
        seconds: u64,
    ) -> Result<Answer>
    where
        Args: Serialize,
        Answer: DeserializeOwned,
    {
        let odd = |e: serde_json::Error| failed(format!("{name}: {e}"));
        let json = || serde_json::to_value(args).map_err(odd);
        let answer = match (self.call_value(name, json()?, seconds), older) {
            (Err(ClientError::Api(error)), Some(older)) if error.is_unknown_verb() => {
                self.call_value(older, json()?, seconds)
            }
            (answer, _) => answer,
        };
        serde_json::from_value(answer?).map_err(odd)
    }

    fn call_value(
        &self,
        verb: &str,
        args: Value,
        seconds: u64,
    ) -> std::result::Result<Value, ClientError> {
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
        answer
    }

    /// Ends a command that has nothing to tell a person; programs read its answer.
    pub fn finish(&self, answer: &impl Serialize) -> Result<()> {
        self.print(answer, String::new)
    }

    pub fn print(&self, value: &impl Serialize, for_people: impl FnOnce() -> String) -> Result<()> {
        match self.format {
            Format::Json => emit(&format!("{:#}\n", as_json(value))),
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

fn guests_table(guests: &[Guest], strangers: &[Stranger]) -> String {
    let row = |guest: &Guest| {
        vec![
            guest.uuid.to_string(),
            guest.name.clone(),
            guest.domid.to_string(),
            guest.state.clone(),
            guest.memory_mib.to_string(),
            format!("{:.1}", guest.cpu_time_ns as f64 / 1e9),
            guest.config_name.clone(),
        ]
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
    let stranger = |of: &Stranger| {
        let domid = of.domid.to_string();
        let known = [of.uuid.as_str(), &of.name, &domid, "stranger", "", "", ""];
        known.map(str::to_owned).to_vec()
    };
    let mut rows: Vec<_> = guests.iter().map(row).collect();
    rows.extend(strangers.iter().map(stranger));
    table(&headings, &rows)
}

fn images_table(images: &[Image]) -> String {
    let row = |image: &Image| vec![image.sha256.clone(), image.size.to_string()];
    table(
        &["SHA-256", "Bytes"],
        &images.iter().map(row).collect::<Vec<_>>(),
    )
}

fn handlers_table(handlers: &[Handler]) -> String {
    let mark = |has: bool| if has { "yes".into() } else { String::new() };
    let row = |h: &Handler| vec![h.name.clone(), mark(h.read), mark(h.write)];
    table(
        &["Handler", "Read", "Write"],
        &handlers.iter().map(row).collect::<Vec<_>>(),
    )
}

pub fn line_of(data: &Value) -> String {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use control_socket::{ApiError, Peer, Roles, Server, Service, Typed, Verb};

    /// A cosmosd of before 1.0, with the verbs of a source.
    struct Older;

    impl Older {
        fn commit(&self, _: &Peer, _: OfGuest) -> std::result::Result<Done, ApiError> {
            Ok(Done {})
        }

        fn refuse(
            &self,
            _: &Peer,
            _: cosmos_proto::MigrateBegin,
        ) -> std::result::Result<Done, ApiError> {
            Err(ApiError::new("busy", "not now"))
        }
    }

    impl Service for Older {
        fn verbs() -> &'static [Verb<Self>] {
            const VERBS: &[Verb<Older>] = &[
                Verb::of::<verb::MoveSettle>(&Typed(Older::commit)),
                Verb::of::<verb::MoveCancel>(&Typed(Older::refuse)),
            ];
            VERBS
        }
    }

    #[test]
    fn an_older_daemon_is_asked_by_the_names_that_it_knows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.sock");
        let uid = rustix::process::getuid().as_raw();
        let roles: Roles = serde_json::from_value(json!({"operator": [uid]})).unwrap();
        let server = Server::bind(&path, roles).unwrap();
        let stopper = server.stopper();
        let thread = std::thread::spawn(move || server.serve(Arc::new(Older)).unwrap());
        let uuid: Uuid = "00000000-0000-4000-8000-000000000001"
            .to_owned()
            .try_into()
            .unwrap();
        let session = Session::new(&path, Format::Json);
        let of = OfGuest { uuid: uuid.clone() };
        let done = session.call_renamed::<verb::CommitMigration, verb::MoveSettle>(&of, 1);
        assert_eq!(done.unwrap(), Done {});
        let timeout_ms = TimeoutMs::default();
        let cancel = cosmos_proto::MigrateBegin { uuid, timeout_ms };
        let refused = session.call_renamed::<verb::CancelMigration, verb::MoveCancel>(&cancel, 1);
        assert_eq!(refused.unwrap_err().message, "busy: not now");
        let unknown = session.call_renamed::<verb::Pause, verb::Unpause>(&of, 1);
        assert!(unknown.unwrap_err().message.contains("\"unpause\""));
        drop(session);
        stopper.stop();
        thread.join().unwrap();
    }
}
