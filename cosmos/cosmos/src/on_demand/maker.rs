// SPDX-License-Identifier: Apache-2.0
//! Makes and destroys guests next to the loop that takes frames.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cosmos_proto::{Cpu, OfGuest, Spec, Uuid, answer, verb};
use ipnet::Ipv4Net;
use rustix::pipe::{PipeFlags, pipe_with};
use vale_proto::{Allowed, PortName, SwitchName};

use super::frame;
use crate::commands::{Result, Session, checked, failed, usage};
use crate::{Format, create, vif};

/// Guests that are made at a time; a host builds more than these no faster.
const WORKERS: usize = 4;

/// Keys that each guest gets its own value for.
const OWN_KEYS: [&str; 2] = ["mac=", "port="];

/// The common part of all guests.
pub struct Template {
    spec: Spec,
    vifs: Vec<String>,
    cpu: Option<Cpu>,
    seconds: u64,
}

impl Template {
    /// The first interface says where the guests are.
    pub fn new(spec: Spec, vifs: Vec<String>, cpu: Option<Cpu>, seconds: u64) -> Result<Self> {
        let keys = |text: &&String| {
            let mut parts = text.split(',');
            parts.any(|part| OWN_KEYS.iter().any(|key| part.starts_with(key)))
        };
        if let Some(text) = vifs.iter().find(keys) {
            let message = "each guest gets its own mac and port; leave both out";
            return Err(usage(format!("vif {text:?}: {message}")));
        }
        if spec.vifs.first().is_none_or(|vif| vif.devid != 0) {
            let message = "the first interface has to be one of a switch";
            return Err(usage(format!("on-demand: {message}")));
        }
        Ok(Self {
            spec,
            vifs,
            cpu,
            seconds,
        })
    }

    /// The switch and the segment whose frames ask for guests.
    pub fn place(&self) -> (&SwitchName, u32) {
        let first = &self.spec.vifs[0];
        (&first.switch, first.segment)
    }

    /// The name of the guest for an address; the host knows it after a restart of this program.
    pub fn name(&self, address: Ipv4Addr) -> String {
        let (switch, segment) = self.place();
        format!("react-{switch}-{segment}-{address}")
    }

    /// The address whose guest this is, made by this program or an earlier run. Tenants choose names of guests, but
    /// no names of ports.
    pub fn address_of(&self, guest: &answer::Guest) -> Option<Ipv4Addr> {
        let (switch, segment) = self.place();
        let address = guest.name.rsplit('-').next()?.parse().ok()?;
        let first = guest.vifs.iter().find(|vif| vif.devid == 0)?;
        let port = port_of(segment, address);
        let has_port = (&first.switch, first.segment, &first.port) == (switch, segment, &port);
        (has_port && guest.name == self.name(address)).then_some(address)
    }

    /// The request for the guest of an address.
    fn spec(&self, address: Ipv4Addr) -> Result<Spec> {
        let uuid = Uuid::try_from(create::random_uuid()?).map_err(usage)?;
        let vifs = vif::parse_all(&self.vifs, &uuid).map_err(usage)?;
        let mut spec = Spec {
            name: checked("name", self.name(address))?,
            vifs: vifs.ports,
            nics: vifs.nics,
            config: checked(
                "config",
                format!("{}{}", variables(address), self.spec.config),
            )?,
            uuid,
            ..self.spec.clone()
        };
        let first = &mut spec.vifs[0];
        first.mac = frame::mac_of(address);
        first.port = port_of(first.segment, address);
        if !self.vifs[0].contains("security=") && first.allowed.is_empty() {
            // Else the switch would send it what is for guests that are not there yet.
            first.allowed.push(own(address));
            first.port_security = true;
        }
        Ok(spec)
    }
}

/// Variables of the configuration. They go before its first line, so that errors name its own lines.
fn variables(address: Ipv4Addr) -> String {
    let mac = frame::mac_of(address);
    format!("define($ADDRESS {address}, $MAC {mac}); ")
}

/// The only address that a guest may send from, if its file names no other.
fn own(address: Ipv4Addr) -> Allowed {
    let ip = Ipv4Net::from(address).into();
    Allowed { mac: None, ip }
}

/// The first port of the guest for an address.
pub fn port_of(segment: u32, address: Ipv4Addr) -> PortName {
    let name = format!("r{segment:x}{:08x}", u32::from(address));
    name.parse().expect("15 letters and digits are a name")
}

enum Job {
    Make(Ipv4Addr),
    Destroy(Ipv4Addr, Uuid),
}

/// The end of a job.
pub enum Outcome {
    Made(Ipv4Addr, Uuid, f64),
    Refused(Ipv4Addr, String),
    Gone(Ipv4Addr, Uuid),
}

/// The threads that talk to cosmosd.
pub struct Maker {
    jobs: Sender<Job>,
    outcomes: Receiver<Outcome>,
    wake: OwnedFd,
    under_way: Cell<usize>,
}

impl Maker {
    pub fn start(socket: &Path, template: Arc<Template>) -> Result<Self> {
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (wake, waker) = pipe.map_err(|e| failed(format!("pipe: {e}")))?;
        let ((jobs, queue), (told, outcomes)) = (channel(), channel());
        let (queue, waker) = (Arc::new(Mutex::new(queue)), Arc::new(waker));
        for _ in 0..WORKERS {
            let worker = Worker {
                socket: socket.to_owned(),
                template: Arc::clone(&template),
                queue: Arc::clone(&queue),
                told: told.clone(),
                waker: Arc::clone(&waker),
            };
            std::thread::spawn(move || worker.run());
        }
        Ok(Self {
            jobs,
            outcomes,
            wake,
            under_way: Cell::default(),
        })
    }

    pub fn make(&self, address: Ipv4Addr) {
        self.order(Job::Make(address));
    }

    pub fn destroy(&self, address: Ipv4Addr, uuid: Uuid) {
        self.order(Job::Destroy(address, uuid));
    }

    /// Waits for all that was ordered.
    pub fn rest(&self) -> impl Iterator<Item = Outcome> {
        std::iter::from_fn(|| {
            let under_way = self.under_way.get();
            self.under_way.set(under_way.checked_sub(1)?);
            self.outcomes.recv().ok()
        })
    }

    fn order(&self, job: Job) {
        self.under_way.set(self.under_way.get() + 1);
        // The workers live as long as this.
        let _ = self.jobs.send(job);
    }

    /// Readable when there is an outcome.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    pub fn outcome(&self) -> Option<Outcome> {
        // Any number of wake-ups, also none.
        let _ = rustix::io::read(&self.wake, &mut [0; 64]);
        let outcome = self.outcomes.try_recv().ok()?;
        self.under_way.set(self.under_way.get() - 1);
        Some(outcome)
    }
}

struct Worker {
    socket: PathBuf,
    template: Arc<Template>,
    queue: Arc<Mutex<Receiver<Job>>>,
    told: Sender<Outcome>,
    waker: Arc<OwnedFd>,
}

impl Worker {
    /// Until the maker is dropped.
    fn run(&self) {
        let session = Session::new(&self.socket, Format::Json);
        while let Some(job) = self.next() {
            let outcome = match job {
                Job::Make(address) => match self.make(&session, address) {
                    Ok((uuid, ms)) => Outcome::Made(address, uuid, ms),
                    Err(failure) => Outcome::Refused(address, failure.message),
                },
                Job::Destroy(address, uuid) => self.destroy(&session, address, uuid),
            };
            // The end of the program leaves no receiver.
            let _ = self.told.send(outcome);
            let _ = rustix::io::write(&self.waker, &[0]);
        }
    }

    fn next(&self) -> Option<Job> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.recv().ok()
    }

    fn make(&self, session: &Session<'_>, address: Ipv4Addr) -> Result<(Uuid, f64)> {
        let (begun, spec) = (Instant::now(), self.template.spec(address)?);
        session.call_for::<verb::Create>(&spec, self.template.seconds)?;
        if let Some(cpu) = self.template.cpu {
            session.share(&spec.uuid, cpu)?;
        }
        Ok((spec.uuid, begun.elapsed().as_secs_f64() * 1e3))
    }

    fn destroy(&self, session: &Session<'_>, address: Ipv4Addr, uuid: Uuid) -> Outcome {
        let args = OfGuest { uuid };
        match session.call::<verb::Destroy>(&args) {
            Ok(_) => Outcome::Gone(address, args.uuid),
            Err(failure) => Outcome::Refused(address, failure.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UUID: &str = "3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2a11";

    fn vifs(switch: &str, segment: u32, port: &str) -> serde_json::Value {
        json!([{"devid": 0, "mac": "02:00:0a:00:00:07", "switch": switch, "port": port,
            "segment": segment, "port_security": false, "mtu": 1500, "slots": 256}])
    }

    fn guest(name: &str, vifs: &serde_json::Value) -> answer::Guest {
        let guest = json!({"uuid": UUID, "name": name, "domid": 1, "state": "running",
            "reason": "", "memory_mib": 8, "created_s": 0, "cpu_time_ns": 0, "image_sha256": "",
            "vifs": vifs, "nics": [], "config_name": "c", "incarnation": UUID, "number": 0,
            "held": false});
        serde_json::from_value(guest).unwrap()
    }

    #[test]
    fn a_server_that_a_tenant_named_like_a_guest_is_not_taken_over() {
        let spec = json!({"uuid": UUID, "name": "n", "image_sha256": "", "memory_mib": 8,
            "vifs": vifs("vale0", 7, "p"), "config": "", "config_name": "c"});
        let spec = serde_json::from_value(spec).unwrap();
        let template = Template::new(spec, vec!["segment=7".to_owned()], None, 1).unwrap();
        let address = Ipv4Addr::new(10, 0, 0, 7);
        let name = template.name(address);
        let taken = |name: &str, vifs: &serde_json::Value| template.address_of(&guest(name, vifs));
        let own = vifs("vale0", 7, "r70a000007");
        assert_eq!(taken(&name, &own), Some(address));
        for others in [
            vifs("vale0", 7, "tap0a000007-11"),
            vifs("vale1", 7, "r70a000007"),
            vifs("vale0", 8, "r70a000007"),
            json!([]),
        ] {
            assert_eq!(taken(&name, &others), None, "{others}");
        }
        assert_eq!(taken("react-vale0-7-10.0.0.8", &own), None);
        assert_eq!(taken("other", &own), None);
    }
}
