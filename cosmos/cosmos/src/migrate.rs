// SPDX-License-Identifier: Apache-2.0
//! The command `migrate` (docs/adr/0070-live-migration.md). It halts a guest, copies its configurations and
//! handlers' values to a guest of another host, and lets that one run.
//!
//! The two never run at the same time. Routers run on the target only after the source has committed
//! that they do not run there again by themselves. If the command or a daemon ends before that, the
//! source lets them run again. The target undoes its copy unless the command says `migrate-finish`.

use std::time::Instant;

use control_socket::Signature;
use cosmos_proto::answer::{Guest, Halted, Router};
use cosmos_proto::{
    Done, History, Install, MigrateBegin, MigrateFinish, NoArgs, OfGuest, OfRouter, Run, Spec,
    TimeoutMs, Uuid, verb,
};
use serde_json::{Value, json};

use crate::Migrate;
use crate::commands::{
    Failure, NO_GUEST, REFUSED, Result, Session, checked, failed, rid, timeout_ms,
};
use crate::element_state::{self, Skipped};
use crate::output::fields;
use crate::progress::Progress;

/// The target's guest starts with this router 0; the source's replaces it, halted.
const PLACEHOLDER: &str = "Idle -> Discard;";

impl Session<'_> {
    pub fn migrate(&self, args: &Migrate) -> Result<()> {
        let target = Session::new(&args.to, self.format());
        let uuid = self.resolve(&args.guest)?;
        let mut journey = Journey {
            source: self,
            target: &target,
            uuid,
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

struct Journey<'a> {
    source: &'a Session<'a>,
    target: &'a Session<'a>,
    /// The guest that moves.
    uuid: Uuid,
    seconds: u64,
    /// True if the target may have a guest of this move: it is never another's that is destroyed.
    is_made: bool,
    routers: Vec<Router>,
    steps: Vec<(&'static str, f64)>,
    begun: Instant,
    progress: Progress,
}

impl Journey<'_> {
    fn travel(&mut self) -> Result<Value> {
        self.describe()?;
        self.end("describe", "halting it");
        let Halted { routers, changes } = self.halt()?;
        self.routers = routers;
        let arrived = self.arrive();
        let (domid, skipped) = arrived.map_err(|why| self.go_back(why))?;
        // From here on the target's guest is the only one that runs.
        self.set_going(changes).map_err(|why| self.recall(why))?;
        self.end("start", "destroying the old guest");
        self.source
            .call::<verb::Destroy>(&self.guest())
            .map_err(|why| self.duplicate(why))?;
        self.end("destroy", "done");
        Ok(json!({
            "uuid": self.uuid, "domid": domid, "steps_ms": self.steps,
            "not_carried": skipped,
        }))
    }

    /// The command checks all that it can before it halts the guest.
    fn describe(&self) -> Result<()> {
        let info = self.source.call::<verb::Info>(&self.guest())?;
        let (name, state) = (&info.name, &info.state);
        if state != "running" {
            return Err(failed(format!(
                "{name} is {state}; only a running guest moves"
            )));
        }
        match self.target.call::<verb::Info>(&self.guest()) {
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
        self.check_image(&info.image_sha256)
    }

    fn check_image(&self, sha256: &str) -> Result<()> {
        let host = self.target.call::<verb::DescribeHost>(&NoArgs {})?;
        if host.engine_sha256.as_deref() == Some(sha256) {
            return Ok(());
        }
        let known = self.target.call::<verb::ListImages>(&NoArgs {})?;
        if known.images.iter().any(|image| image.sha256 == sha256) {
            return Ok(());
        }
        let message = format!("the target lacks the image {sha256}; give it with image-add");
        Err(failed(message))
    }

    /// Halts the routers, and keeps others from changing the guest as long as this connection
    /// lives.
    fn halt(&self) -> Result<Halted> {
        let args = self.of_source()?;
        self.ask::<verb::BeginMigration, verb::MoveBegin>(self.source, &args)
    }

    /// Lets the routers run that ran.
    fn run(&self, host: &Session<'_>) -> Result<()> {
        let mut ran = self.routers.iter().filter(|router| !router.is_halted());
        ran.try_for_each(|router| {
            let args = Run {
                uuid: self.uuid.clone(),
                rid: rid(router.rid)?,
                run: true,
                timeout_ms: self.timeout_ms()?,
            };
            host.call_for::<verb::RunRouter>(&args, self.seconds)
                .map(drop)
        })
    }

    /// Lets the guest of the target stay, and run.
    fn set_going(&self, changes: History) -> Result<()> {
        let ran = self.routers.iter().filter(|router| !router.is_halted());
        let args = MigrateFinish {
            uuid: self.uuid.clone(),
            routers: ran.map(|router| router.rid).collect(),
            changes,
            timeout_ms: self.timeout_ms()?,
        };
        self.ask::<verb::FinishMigration, verb::MoveArrive>(self.target, &args)
            .map(drop)
    }

    /// Makes the guest on the target, with halted routers in the source's state.
    fn arrive(&mut self) -> Result<(u16, Vec<Skipped>)> {
        self.end("halt", "copying its state");
        // Before it was halted its ports could still change.
        let info = self.source.call::<verb::Info>(&self.guest())?;
        let mut skipped = Vec::new();
        let mut carried = Vec::new();
        for router in &self.routers {
            let (state, left) = element_state::read(self.source, &self.of_router(router.rid)?)?;
            carried.push(state);
            skipped.extend(left);
        }
        self.end("copy", "creating it on the target");
        let domid = self.create(info)?;
        self.end("create", "giving it its state");
        if self.routers.iter().all(|router| router.rid != 0) {
            self.install(0, "", "none")?;
        }
        for (router, state) in self.routers.iter().zip(&carried) {
            self.install(router.rid, &state.config, &router.config_name)?;
            state.write(self.target, &self.of_router(router.rid)?, self.seconds)?;
        }
        self.ask::<verb::CommitMigration, verb::MoveSettle>(self.source, &self.guest())?;
        self.end("restore", "starting it");
        Ok((domid, skipped))
    }

    fn create(&mut self, info: Guest) -> Result<u16> {
        let args = Spec {
            uuid: info.uuid,
            name: checked("name", info.name)?,
            image_sha256: info.image_sha256,
            memory_mib: checked("memory_mib", u64::from(info.memory_mib))?,
            vcpus: checked("vcpus", u64::from(info.vcpus))?,
            vifs: info.vifs,
            nics: info.nics,
            kernel: None,
            config: checked("config", PLACEHOLDER)?,
            config_name: checked("config_name", info.config_name)?,
            writes: Vec::new(),
            number: 0,
            has_secrets: false,
            hold: false,
            replace: false,
            timeout_ms: self.timeout_ms()?,
        };
        let created = self.ask::<verb::ReceiveMigration, verb::MoveReceive>(self.target, &args);
        // A refused guest does not exist; without an answer it may.
        self.is_made = !matches!(
            &created,
            Err(Failure {
                status: REFUSED,
                ..
            })
        );
        Ok(created?.domid)
    }

    /// Installs a halted router on the target; an empty configuration removes it.
    fn install(&self, rid: u8, config: &str, config_name: &str) -> Result<()> {
        let args = Install {
            uuid: self.uuid.clone(),
            rid: self::rid(rid)?,
            config: checked("config", config)?,
            config_name: checked("config_name", config_name)?,
            halted: true,
            change_id: None,
            timeout_ms: self.timeout_ms()?,
        };
        let installed = self
            .target
            .call_for::<verb::InstallRouter>(&args, self.seconds);
        installed.map(drop)
    }

    /// Undoes a move whose target has not run: the source continues.
    fn go_back(&mut self, why: Failure) -> Failure {
        self.progress.step("undoing it");
        let now = self.go_on();
        match self.unmake() {
            Ok(()) => because(&why, &now),
            Err(e) => {
                let left = format!("{now}; destroy the remaining copy there: {}", e.message);
                because(&why, &left)
            }
        }
    }

    fn unmake(&self) -> Result<()> {
        match self.is_made {
            true => self
                .target
                .call::<verb::Destroy>(&self.guest())
                .map(|Done {}| ()),
            false => Ok(()),
        }
    }

    /// Lets the source's routers run again; tells how they are.
    fn go_on(&self) -> String {
        let cancelled = self.of_source().and_then(|args| {
            self.ask::<verb::CancelMigration, verb::MoveCancel>(self.source, &args)
        });
        // A daemon that lost this connection has forgotten the move.
        match cancelled.map(drop).or_else(|_| self.run(self.source)) {
            Ok(()) => "it continues where it was".to_owned(),
            Err(e) => format!("it may be halted here: {}", e.message),
        }
    }

    /// The target's routers may run, so the source's must not, unless the target says that they
    /// are gone.
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

    /// Calls a verb that waits for the guest.
    fn ask<V, Old>(&self, host: &Session<'_>, args: &V::Args) -> Result<V::Answer>
    where
        V: Signature,
        Old: Signature<Args = V::Args, Answer = V::Answer>,
    {
        host.call_renamed::<V, Old>(args, self.seconds)
    }

    fn guest(&self) -> OfGuest {
        let uuid = self.uuid.clone();
        OfGuest { uuid }
    }

    fn of_router(&self, rid: u8) -> Result<OfRouter> {
        let uuid = self.uuid.clone();
        let rid = self::rid(rid)?;
        let timeout_ms = TimeoutMs::default();
        Ok(OfRouter {
            uuid,
            rid,
            timeout_ms,
        })
    }

    fn of_source(&self) -> Result<MigrateBegin> {
        Ok(MigrateBegin {
            uuid: self.uuid.clone(),
            timeout_ms: self.timeout_ms()?,
        })
    }

    /// The time that the guest has for an answer.
    fn timeout_ms(&self) -> Result<TimeoutMs> {
        timeout_ms(self.seconds)
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
