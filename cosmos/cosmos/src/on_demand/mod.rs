// SPDX-License-Identifier: Apache-2.0
//! The command `on-demand`: a frame for an address without a guest makes one, and then goes through it
//! (docs/adr/0097-reactive-guests.md).
//!
//! The program has a port without an address in the guests' segment. The switch sends it what is for
//! all stations, and what is for none that it knows.

mod frame;
mod maker;
mod table;

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cosmos_proto::{NoArgs, verb};
use ipnet::Ipv4Net;
use ring::BUFFER_SIZE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use vale_link::Link;
use vale_proto::{Kind, PortAdd, PortId, SwitchName, ValeClient};

use self::maker::{Maker, Outcome, Template};
use self::table::{Step, Table};
use crate::commands::{Result, Session, emit, failed, usage};
use crate::{Create, Format, OnDemand, guestfile};

/// Between two looks at the counters of all guests.
const LOOK: Duration = Duration::from_secs(1);
/// Frames that are taken before the outcomes are looked at again.
const BURST: usize = 64;

impl Session<'_> {
    /// Runs until a signal, and then destroys its guests; an error leaves them.
    pub fn on_demand(&self, args: &OnDemand) -> Result<()> {
        let template = Arc::new(self.template(args)?);
        let mut reactor = Reactor::start(self, args, Arc::clone(&template))?;
        self.adopt(&mut reactor, &template)?;
        let ended = reactor.run();
        // Guests outlive a valed that ends; the next run takes them over.
        let keep = args.keep || ended.is_err();
        ended.and(reactor.end(keep))
    }

    fn template(&self, args: &OnDemand) -> Result<Template> {
        let file = guestfile::load(&args.file).map_err(usage)?;
        let (vifs, cpu) = (file.vif.clone(), file.cpu().map_err(usage)?);
        let spec = self.creation(&Create::of_file(args.timeout.timeout), file)?;
        Template::new(spec, vifs, cpu, args.timeout.timeout)
    }

    /// Takes over the guests that an earlier run has left.
    fn adopt(&self, reactor: &mut Reactor<'_>, template: &Template) -> Result<()> {
        let now = Instant::now();
        for guest in self.call::<verb::List>(&NoArgs {})?.guests {
            if let Some(address) = template.address_of(&guest) {
                reactor.table.adopt(address, guest.uuid, now);
            }
        }
        Ok(())
    }
}

struct Reactor<'a> {
    format: Format,
    valed: &'a Path,
    networks: &'a [Ipv4Net],
    switch: SwitchName,
    segment: u32,
    port: Link,
    maker: Maker,
    table: Table,
    stop: Arc<AtomicBool>,
    /// Frames asked for more guests than may run; told once.
    is_full: bool,
}

impl<'a> Reactor<'a> {
    fn start(session: &Session<'_>, args: &'a OnDemand, template: Arc<Template>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|e| failed(format!("signal {signal}: {e}")))?;
        }
        let (switch, segment) = template.place();
        let switch = switch.clone();
        let add = port_of_program(switch.clone(), segment);
        Ok(Self {
            format: session.format(),
            valed: &args.valed,
            networks: &args.networks,
            switch,
            segment,
            port: Link::attach(&args.valed, &add).map_err(failed)?,
            maker: Maker::start(session.socket(), template)?,
            table: Table::new(args.most.into(), Duration::from_secs(args.idle)),
            stop,
            is_full: false,
        })
    }

    fn run(&mut self) -> Result<()> {
        let mut look = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            self.outcomes()?;
            self.frames()?;
            self.port.publish().map_err(failed)?;
            if look.elapsed() >= LOOK {
                self.look()?;
                look = Instant::now();
            }
            self.sleep(LOOK.saturating_sub(look.elapsed()))?;
        }
        Ok(())
    }

    fn frames(&mut self) -> Result<()> {
        let mut buffer = [0; BUFFER_SIZE];
        for _ in 0..BURST {
            let Some(length) = self.port.pop(&mut buffer) else {
                break;
            };
            let frame = &buffer[..length];
            match frame::wanted(frame) {
                Some(address) if self.networks.iter().any(|net| net.contains(&address)) => {
                    self.frame(address, frame)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn frame(&mut self, address: Ipv4Addr, frame: &[u8]) -> Result<()> {
        match self.table.frame(address, frame, Instant::now()) {
            Step::Make => self.maker.make(address),
            // The guest has got a group frame from its sender.
            Step::Send if !frame::is_group(frame) => self.send(frame),
            Step::Send | Step::Nothing => {}
            Step::Full if !self.is_full => {
                self.is_full = true;
                let why = "as many guests as may be run already";
                self.tell("full", address, &json!({"why": why}))?;
            }
            Step::Full => {}
        }
        Ok(())
    }

    fn outcomes(&mut self) -> Result<()> {
        while let Some(outcome) = self.maker.outcome() {
            let now = Instant::now();
            match outcome {
                Outcome::Made(address, uuid, ms) => {
                    for frame in self.table.made(address, uuid.clone(), now) {
                        self.send(&frame::readdressed(frame, address));
                    }
                    self.port.publish().map_err(failed)?;
                    let ms = (ms * 10.0).round() / 10.0;
                    self.tell("made", address, &json!({"uuid": uuid, "ms": ms}))?;
                }
                Outcome::Refused(address, why) => {
                    self.table.refused(address, now);
                    self.tell("refused", address, &json!({"why": why}))?;
                }
                Outcome::Gone(address, uuid) => {
                    self.is_full = false;
                    if self.table.gone(address) {
                        self.maker.make(address);
                    }
                    self.tell("gone", address, &json!({"uuid": uuid}))?;
                }
            }
        }
        Ok(())
    }

    /// A frame that finds no room is lost, as in any queue.
    fn send(&mut self, frame: &[u8]) {
        let _ = self.port.push(frame);
    }

    /// Destroys guests that are idle or have lost their port.
    fn look(&mut self) -> Result<()> {
        let switch = Some(self.switch.clone());
        let client = ValeClient::connect(self.valed);
        let found = client.and_then(|mut client| client.port_list(switch));
        let ports = found.map_err(|e| failed(e.to_string()))?;
        let sent = |address| {
            let name = maker::port_of(self.segment, address);
            let port = ports.iter().find(|port| port.port == name);
            port.map(|port| port.counters.rx_packets)
        };
        for (address, uuid) in self.table.idle(Instant::now(), sent) {
            self.maker.destroy(address, uuid);
        }
        Ok(())
    }

    /// Until a frame, an outcome, or the end of the time.
    fn sleep(&mut self, longest: Duration) -> Result<()> {
        if self.port.arm() {
            return Ok(());
        }
        let longest = Timespec::try_from(longest).map_err(|e| failed(e.to_string()))?;
        let wake = self.maker.wake_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(self.port.wake_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(wake, PollFlags::IN),
        ];
        // A signal ends it, too.
        let _ = poll(&mut fds, Some(&longest));
        self.port.disarm();
        match self.port.is_gone() {
            true => Err(failed("valed has closed the port; is valed running?")),
            false => Ok(()),
        }
    }

    /// Waits for what was ordered, and destroys the guests unless they are to stay.
    fn end(&mut self, keep: bool) -> Result<()> {
        for outcome in self.maker.rest() {
            let now = Instant::now();
            match outcome {
                Outcome::Made(address, uuid, _) => self.table.adopt(address, uuid, now),
                Outcome::Refused(address, _) => self.table.refused(address, now),
                Outcome::Gone(..) => {}
            }
        }
        if keep {
            return Ok(());
        }
        for (address, uuid) in self.table.running() {
            self.maker.destroy(address, uuid);
        }
        let left = self.maker.rest().filter_map(|outcome| match outcome {
            Outcome::Refused(address, why) => Some(format!("{address} is left behind: {why}")),
            _ => None,
        });
        match left.collect::<Vec<_>>() {
            left if left.is_empty() => Ok(()),
            left => Err(failed(left.join("; "))),
        }
    }

    fn tell(&self, event: &str, address: Ipv4Addr, data: &serde_json::Value) -> Result<()> {
        let line = json!({"event": event, "address": address, "data": data});
        match self.format {
            Format::Json => emit(&format!("{line}\n")),
            Format::Table => {
                let words = crate::commands::line_of(data);
                emit(&format!("{event:8} {address} {words}\n"))
            }
        }
    }
}

/// The program's port. It has no address, so the switch lets it send frames of other stations.
fn port_of_program(switch: SwitchName, segment: u32) -> PortAdd {
    let name = format!("react{segment}");
    let port = name.parse().expect("15 letters and digits are a name");
    PortAdd {
        mtu: vale_proto::SHORT_MTU,
        ..PortAdd::open(PortId { switch, port }, Kind::Process, segment)
    }
}
