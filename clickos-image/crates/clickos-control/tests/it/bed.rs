// SPDX-License-Identifier: Apache-2.0
//! A guest on the simulated store, the toolstack's part, and an element made for these tests.
use click_core::class::optional;
use click_core::handler::{Text, command, edit, read, read_write};
use click_core::{Args, Built, Change, Class, Context, Element, Entry, Environment, HandlerError};
use click_core::{Progress, Registry, View};
use clickos_control::Guest;
use clickos_control::simulator::{Connection, Simulator};
use clickos_protocol::{Answer, Command, Joined, Joiner, TOOLSTACK_PIECE, config_pieces, split};
use std::cell::RefCell;
use std::rc::Rc;
use xenstore::{Access, Perm};

/// `Cell(VALUE)`: keeps a value. Handlers: `value` (read, write; refuses `bad`), `fail` (read;
/// always refuses), `random` (read; a number drawn at the start). `big` (read) returns as many
/// bytes as its parameter, or the value, says.
pub const CELL: Class = Class {
    name: "Cell",
    ports: "0/0",
    args: &[optional("VALUE")],
    handlers: &[
        read_write(
            "value",
            |cell: &mut Cell, _| Ok(cell.value.clone()),
            Cell::set,
        ),
        edit("add", Cell::set),
        command("announce", |cell: &Cell, _, _| {
            let value = format!("{} announced", cell.value);
            Ok(Change::of(move |cell: &mut Cell, _| cell.value = value))
        }),
        read("big", Cell::big),
        read("fail", |_, _| Err(dead())),
        read("random", |cell, _| Ok(cell.drawn.to_string())),
        read_write("dead", |_, _| Err(dead()), |_, _, _| Err(refused())),
    ],
    build: |args: &mut Args<'_>| -> Built {
        let value = args.or("VALUE", String::new())?;
        Some(Box::new(Cell { value, drawn: 0 }))
    },
    ..Class::DEFAULT
};

struct Cell {
    value: String,
    drawn: u64,
}

fn dead() -> HandlerError {
    HandlerError::rejected("it is dead")
}

fn refused() -> HandlerError {
    HandlerError::rejected("expected something good")
}

impl Cell {
    fn set(&self, _: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        if value == "bad" {
            return Err(refused());
        }
        let value = value.to_string();
        Ok(Change::of(move |cell: &mut Cell, _| cell.value = value))
    }

    fn big(&mut self, view: &mut View<'_>) -> Text {
        let given = Some(view.param()).filter(|param| !param.is_empty());
        let size = given.unwrap_or(&self.value).parse();
        Ok("x".repeat(size.map_err(HandlerError::rejected)?))
    }
}

impl Element for Cell {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.drawn = ctx.random();
        Ok(())
    }

    fn take_state(&mut self, _: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Cell>() {
            self.value = old.value.clone();
        }
    }
}

/// The domain of the guest.
pub const DOMID: u16 = 5;

/// Store, guest and toolstack.
pub struct Bed {
    pub store: Simulator,
    pub connection: Rc<RefCell<Connection>>,
    pub console: Rc<RefCell<Vec<String>>>,
    guest: Guest<Connection>,
    now_ns: u64,
    generation: u64,
    seq: u32,
}

impl Bed {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A bed whose store is prepared before the guest starts.
    pub fn with(prepare: impl FnOnce(&Simulator)) -> Self {
        let entry = Entry {
            class: &CELL,
            group: "test",
            source: "",
        };
        Self::of(Registry::new(&[entry], &["ToDump"]), prepare)
    }

    /// A bed whose guest has these elements.
    pub fn of(registry: Registry, prepare: impl FnOnce(&Simulator)) -> Self {
        let store = Simulator::new();
        let connection = Rc::new(RefCell::new(store.domain(DOMID)));
        prepare(&store);
        let console = Rc::new(RefCell::new(Vec::new()));
        let lines = Rc::clone(&console);
        let mut environment = Environment::new();
        environment.console = Rc::new(move |line: &str| lines.borrow_mut().push(line.to_string()));
        environment.limits.config_bytes = 100_000;
        environment.limits.handler_bytes = 100_000;
        environment.limits.file_bytes = 10_000;
        let guest = Guest::new(
            Rc::clone(&connection),
            registry,
            environment,
            Some(|| 5 << 20),
        );
        let mut bed = Self {
            store,
            connection,
            console,
            guest,
            now_ns: 1,
            generation: 0,
            seq: 0,
        };
        bed.run();
        bed
    }

    /// Runs the guest until it asks the store nothing any more.
    pub fn run(&mut self) {
        for _ in 0..10_000 {
            let before = (self.store.requests(), self.store.pending(DOMID));
            (0..8).for_each(|_| {
                self.now_ns += 1_000_000;
                self.guest.run(self.now_ns);
            });
            if before == (self.store.requests(), 0) || self.lost() {
                return;
            }
        }
        panic!("the guest does not come to rest");
    }

    /// Saves and restores the guest: a new domain's part of the store is empty.
    pub fn restore(&mut self) {
        self.store
            .remove(&format!("/local/domain/{DOMID}/data/clickos"));
        self.guest.resume();
        self.run();
    }

    /// The store begins again, and the guest gets a link to it.
    pub fn relink(&mut self) {
        self.store
            .remove(&format!("/local/domain/{DOMID}/data/clickos"));
        self.guest.relink();
        self.run();
    }

    /// Runs the guest a few times.
    pub fn step(&mut self, times: u32) {
        for _ in 0..times {
            self.now_ns += 1_000_000;
            self.guest.run(self.now_ns);
        }
    }

    /// One round of the guest's loop. The devices are up or not; true if the guest has work.
    pub fn round(&mut self, settled: bool) -> bool {
        self.now_ns += 1_000_000;
        self.guest.set_controlled(settled);
        self.guest.run(self.now_ns) == Progress::Worked
    }

    /// Why the guest ends now.
    pub fn ended(&self) -> Option<&'static str> {
        self.guest.ended(self.now_ns)
    }

    /// Lets time pass.
    pub fn pass(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    pub fn lost(&self) -> bool {
        self.guest.lost().is_some()
    }

    pub fn node(&self, what: &str) -> String {
        format!("/local/domain/{DOMID}/data/clickos/{what}")
    }

    /// Text of a node below the guest's root.
    pub fn text(&self, what: &str) -> Option<String> {
        self.store.text(&self.node(what))
    }

    fn put(&self, what: &str, value: &[u8]) {
        self.store.write(&self.node(what), value);
        let perms = [Perm::new(Access::None, 0), Perm::new(Access::Read, DOMID)];
        self.store.set_perms(&self.node(what), &perms);
    }

    /// Writes as a person does: without care for permissions.
    pub fn by_hand(&mut self, what: &str, value: &str) {
        self.store.write(&self.node(what), value.as_bytes());
        self.run();
    }

    /// Removes a node and all below it, as a person does.
    pub fn remove(&mut self, what: &str) {
        let node = self.node(what);
        self.store.remove(node.trim_end_matches('/'));
        self.run();
    }

    /// Requests a router without running the guest; gives its generation.
    pub fn request_router(&mut self, rid: u8, config: &[u8], status: &str) -> u64 {
        self.generation += 1;
        self.store.remove(&self.node(&format!("{rid}/config")));
        self.put(&format!("{rid}/config"), b"");
        for (n, piece) in config_pieces(config).enumerate() {
            self.put(&format!("{rid}/config/{n}"), piece);
        }
        self.put(&format!("{rid}/config_name"), b"fw.click");
        self.put(&format!("{rid}/status"), status.as_bytes());
        self.put(
            &format!("{rid}/generation"),
            self.generation.to_string().as_bytes(),
        );
        self.generation
    }

    /// Installs a configuration and takes the pieces away; gives the state's word and the error.
    pub fn install(&mut self, rid: u8, config: &str) -> (String, String) {
        let generation = self.request_router(rid, config.as_bytes(), "Running");
        self.run();
        self.answer(rid, generation)
    }

    pub fn answer(&mut self, rid: u8, generation: u64) -> (String, String) {
        let state = self.text(&format!("{rid}/state")).expect("a state");
        let word = state.strip_suffix(&format!(" {generation}"));
        let word = word.unwrap_or_else(|| panic!("{state}: not of generation {generation}"));
        self.store.remove(&self.node(&format!("{rid}/config")));
        self.run();
        (
            word.to_string(),
            self.text(&format!("{rid}/error")).unwrap_or_default(),
        )
    }

    /// Writes a request without running the guest.
    pub fn ask(&mut self, rid: u8, request: &[u8]) -> u32 {
        self.seq += 1;
        for (n, piece) in split(request, TOOLSTACK_PIECE).iter().enumerate() {
            self.put(&format!("{rid}/request/{}/{n}", self.seq), piece);
        }
        self.seq
    }

    /// The answer to a request, if it is there as a whole.
    pub fn response(&self, rid: u8, seq: u32) -> Option<(u16, String)> {
        let (code, data) = self.response_bytes(rid, seq)?;
        Some((code, String::from_utf8(data).unwrap()))
    }

    /// The same when it is no text.
    pub fn response_bytes(&self, rid: u8, seq: u32) -> Option<(u16, Vec<u8>)> {
        let mut joiner = Joiner::new(1 << 20);
        for piece in 0.. {
            let value = self
                .store
                .read(&self.node(&format!("{rid}/response/{seq}/{piece}")))?;
            match joiner.add(&value) {
                Joined::More => {}
                Joined::Whole => break,
                other => panic!("piece {piece}: {other:?}"),
            }
        }
        let answer = Answer::parse(joiner.data()).unwrap();
        Some((answer.code, answer.data))
    }

    pub fn take_away(&mut self, rid: u8, seq: u32) {
        self.store
            .remove(&self.node(&format!("{rid}/response/{seq}")));
        self.store
            .remove(&self.node(&format!("{rid}/request/{seq}")));
        self.run();
    }

    /// Asks, waits, takes away.
    pub fn request(&mut self, rid: u8, request: &[u8]) -> (u16, String) {
        let seq = self.ask(rid, request);
        self.run();
        let response = self.response(rid, seq).expect("an answer");
        self.take_away(rid, seq);
        response
    }

    pub fn read(&mut self, rid: u8, name: &str) -> (u16, String) {
        self.request(rid, &Command::Read { name, param: "" }.encode())
    }

    pub fn write(&mut self, rid: u8, writes: &[(&str, &str)]) -> (u16, String) {
        let writes = writes
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        self.request(rid, &Command::Write(writes).encode())
    }
}
