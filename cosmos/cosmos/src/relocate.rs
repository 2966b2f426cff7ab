// SPDX-License-Identifier: Apache-2.0
//! The command `move`: a guest is halted, its configurations, handlers' values and counters are
//! copied to a guest of another host, and that one runs on (docs/adr/0015-move.md).
//!
//! The two never run at once: routers run on the target only after the source has settled that
//! they will not run there again by themselves. Until then, whatever becomes of this command or
//! of either daemon, the source lets them run again, and the target undoes what it has until it
//! is told that the guest has arrived: no copy is left halted.

use std::time::Instant;

use serde_json::{Value, json};

use crate::Move;
use crate::carried::{self, Skipped};
use crate::commands::{Failure, NO_GUEST, REFUSED, Result, Session, failed};
use crate::output::{fields, text};
use crate::progress::Progress;

/// What the target's guest is created with, in the place of its router 0, which comes halted.
const PLACEHOLDER: &str = "Idle -> Discard;";

impl Session<'_> {
    pub fn relocate(&self, args: &Move) -> Result<()> {
        let target = Session::new(&args.to, self.format());
        let uuid = self.resolve(&args.guest)?;
        let mut journey = Journey {
            source: self,
            target: &target,
            guest: json!({"uuid": uuid}),
            seconds: args.timeout.timeout,
            is_made: false,
            routers: Vec::new(),
            steps: Vec::new(),
            begun: Instant::now(),
            progress: Progress::begin("looking at both hosts"),
        };
        let moved = journey.travel();
        drop(journey);
        let moved = moved?;
        self.print(&moved, || fields(&moved))
    }
}

/// A router that moves.
struct Routed {
    rid: u8,
    config_name: String,
    runs: bool,
}

impl Routed {
    fn of(listed: &Value) -> Self {
        Self {
            rid: listed["rid"].as_u64().unwrap_or(0) as u8, // The daemon gives 0 to 63.
            config_name: text(&listed["config_name"]),
            runs: listed["state"] != json!("Halted"),
        }
    }
}

struct Journey<'a> {
    source: &'a Session<'a>,
    target: &'a Session<'a>,
    /// The guest's `uuid`, as arguments of a verb.
    guest: Value,
    seconds: u64,
    /// True if the target may have a guest of this move: it is never another's that is destroyed.
    is_made: bool,
    routers: Vec<Routed>,
    steps: Vec<(&'static str, f64)>,
    begun: Instant,
    progress: Progress,
}

impl Journey<'_> {
    fn travel(&mut self) -> Result<Value> {
        self.describe()?;
        self.end("describe", "halting it");
        self.routers = self.halt()?;
        let arrived = self.arrive();
        let (domid, skipped) = arrived.map_err(|why| self.go_back(why))?;
        // From here on the target's guest is the only one that runs.
        self.set_going().map_err(|why| self.recall(why))?;
        self.end("start", "destroying the old guest");
        self.source
            .call("destroy", self.guest.clone())
            .map_err(|why| self.duplicate(why))?;
        self.end("destroy", "done");
        Ok(json!({
            "uuid": self.guest["uuid"], "domid": domid, "steps_ms": self.steps,
            "not_carried": skipped,
        }))
    }

    /// The command checks all that it can before it halts the guest.
    fn describe(&self) -> Result<()> {
        let info = self.source.call("info", self.guest.clone())?;
        let name = text(&info["name"]);
        if info["state"] != json!("running") {
            let state = text(&info["state"]);
            return Err(failed(format!(
                "{name} is {state}; only a running guest moves"
            )));
        }
        match self.target.call("info", self.guest.clone()) {
            Err(Failure {
                status: NO_GUEST, ..
            }) => {}
            Err(other) => return Err(other),
            Ok(_) => {
                let message =
                    format!("the target has {name} already; destroy it where it is not to run");
                return Err(failed(message));
            }
        }
        self.check_image(&info["image_sha256"])
    }

    fn check_image(&self, sha256: &Value) -> Result<()> {
        let host = self.target.call("host", json!({}))?;
        if host["engine_sha256"] == *sha256 {
            return Ok(());
        }
        let known = self.target.call("image-list", json!({}))?;
        let mut images = known["images"].as_array().into_iter().flatten();
        if images.any(|image| image["sha256"] == *sha256) {
            return Ok(());
        }
        let message = format!(
            "the target has not the image {}; give it with image-add",
            text(sha256)
        );
        Err(failed(message))
    }

    /// Halts the routers, and keeps others from changing the guest as long as this connection
    /// lives.
    fn halt(&self) -> Result<Vec<Routed>> {
        let listed = self.timed(self.source, "move-begin", json!({}))?;
        let listed = listed["routers"].as_array().into_iter().flatten();
        Ok(listed.map(Routed::of).collect())
    }

    /// Lets the routers run that ran.
    fn run(&self, host: &Session<'_>) -> Result<()> {
        let mut ran = self.routers.iter().filter(|router| router.runs);
        ran.try_for_each(|router| {
            let args = json!({"rid": router.rid, "run": true});
            self.timed(host, "router-run", args).map(drop)
        })
    }

    /// Lets the guest of the target stay, and run.
    fn set_going(&self) -> Result<()> {
        let ran = self.routers.iter().filter(|router| router.runs);
        let rids: Vec<u8> = ran.map(|router| router.rid).collect();
        let args = json!({"routers": rids});
        self.timed(self.target, "move-arrive", args).map(drop)
    }

    /// Makes the guest on the target, with halted routers in the source's state.
    fn arrive(&mut self) -> Result<(Value, Vec<Skipped>)> {
        self.end("halt", "copying its state");
        // Before it was halted its ports could still change.
        let info = self.source.call("info", self.guest.clone())?;
        let mut skipped = Vec::new();
        let mut carried = Vec::new();
        for router in &self.routers {
            let (state, left) = carried::read(self.source, &self.of_router(router.rid))?;
            carried.push(state);
            skipped.extend(left);
        }
        self.end("copy", "creating it on the target");
        let domid = self.create(&info)?;
        self.end("create", "giving it its state");
        if self.routers.iter().all(|router| router.rid != 0) {
            self.install(0, "", "none")?;
        }
        for (router, state) in self.routers.iter().zip(&carried) {
            self.install(router.rid, &state.config, &router.config_name)?;
            state.write(self.target, &self.of_router(router.rid), self.seconds)?;
        }
        self.source.call("move-settle", self.guest.clone())?;
        self.end("restore", "starting it");
        Ok((domid, skipped))
    }

    fn create(&mut self, info: &Value) -> Result<Value> {
        let args = json!({
            "uuid": info["uuid"], "name": info["name"], "image_sha256": info["image_sha256"],
            "memory_mib": info["memory_mib"], "vifs": info["vifs"], "nics": info["nics"],
            "config": PLACEHOLDER, "config_name": info["config_name"], "writes": [],
            "timeout_ms": self.seconds * 1000,
        });
        let created = self.target.call_for("move-receive", args, self.seconds);
        // A refused guest does not exist; without an answer it may.
        self.is_made = !matches!(
            &created,
            Err(Failure {
                status: REFUSED,
                ..
            })
        );
        Ok(created?["domid"].clone())
    }

    /// Installs a halted router on the target; an empty configuration removes it.
    fn install(&self, rid: u8, config: &str, config_name: &str) -> Result<()> {
        let args = json!({
            "rid": rid, "config": config, "config_name": config_name, "halted": true,
        });
        self.timed(self.target, "router-install", args).map(drop)
    }

    /// Undoes a move whose target has not run: the source goes on.
    fn go_back(&mut self, why: Failure) -> Failure {
        self.progress.step("undoing it");
        let now = self.go_on();
        match self.unmake() {
            Ok(()) => because(&why, &now),
            Err(e) => {
                let left = format!("{now}; destroy what is left of it there: {}", e.message);
                because(&why, &left)
            }
        }
    }

    fn unmake(&self) -> Result<()> {
        match self.is_made {
            true => self.target.call("destroy", self.guest.clone()).map(drop),
            false => Ok(()),
        }
    }

    /// Lets the source's routers run again; tells how they are.
    fn go_on(&self) -> String {
        let cancelled = self.timed(self.source, "move-cancel", json!({}));
        // A daemon that lost this connection has forgotten the move.
        match cancelled.map(drop).or_else(|_| self.run(self.source)) {
            Ok(()) => "it goes on where it was".to_owned(),
            Err(e) => format!("it may be halted here: {}", e.message),
        }
    }

    /// Nobody knows whether the target's routers run, so the source's must not, unless the target
    /// says that they are gone.
    fn recall(&mut self, why: Failure) -> Failure {
        self.progress.step("undoing it");
        match self.unmake() {
            Ok(()) => because(&why, &self.go_on()),
            Err(_) => because(
                &why,
                "it is halted here: if the target has it, destroy it here, else start it here",
            ),
        }
    }

    fn duplicate(&self, why: Failure) -> Failure {
        because(&why, "it has moved, and is halted here: destroy it here")
    }

    fn of_router(&self, rid: u8) -> Value {
        self.with(json!({"rid": rid}))
    }

    /// Calls a verb that waits for the guest.
    fn timed(&self, host: &Session<'_>, verb: &str, args: Value) -> Result<Value> {
        let mut args = self.with(args);
        args["timeout_ms"] = json!(self.seconds * 1000);
        host.call_for(verb, args, self.seconds)
    }

    fn with(&self, mut args: Value) -> Value {
        args["uuid"] = self.guest["uuid"].clone();
        args
    }

    fn end(&mut self, step: &'static str, next: &str) {
        let ms = self.begun.elapsed().as_secs_f64() * 1000.0;
        self.steps.push((step, (ms * 1000.0).round() / 1000.0));
        self.begun = Instant::now();
        self.progress.step(next);
    }
}

fn because(why: &Failure, now: &str) -> Failure {
    Failure {
        status: why.status,
        message: format!("{}; {now}", why.message),
    }
}
