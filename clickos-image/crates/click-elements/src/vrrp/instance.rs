// SPDX-License-Identifier: Apache-2.0
//! The state machine of a virtual router (RFC 9568, section 6.4).

const NS_PER_CS: u64 = 10_000_000;
/// The priority of the owner of the addresses.
const OWNER: u8 = 255;
/// After another active router gave way, its neighbors may have the wrong port: a second round of
/// announcements is sent after this time.
const REPEAT_NS: u64 = 100 * NS_PER_CS;

/// What a virtual router does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Backup,
    Active,
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Backup => "backup",
            Self::Active => "active",
        })
    }
}

/// What an operator has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// 1 to 255; the highest becomes active.
    pub priority: u8,
    /// Time between advertisements in hundredths of a second.
    pub interval_cs: u16,
    /// A router of a higher priority takes over from one of a lower.
    pub preempts: bool,
}

/// What is to be sent after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Send {
    /// An advertisement of this priority.
    pub advertisement: Option<u8>,
    /// The virtual addresses, by gratuitous ARP.
    pub announcement: bool,
}

/// A virtual router.
#[derive(Debug)]
pub struct Instance {
    pub settings: Settings,
    state: State,
    /// The interval of the active router, which it advertises.
    active_interval_cs: u16,
    /// The next advertisement of an active router, or the end of a backup router's patience.
    due_ns: u64,
    repeat_ns: Option<u64>,
    transitions: u64,
    /// It gave way on request, and was not active since.
    has_resigned: bool,
}

impl Instance {
    /// A backup router, until no one is heard.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Backup,
            active_interval_cs: settings.interval_cs,
            due_ns: u64::MAX,
            repeat_ns: None,
            transitions: 0,
            has_resigned: false,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// How often it became active or backup.
    pub fn transitions(&self) -> u64 {
        self.transitions
    }

    /// When [`Instance::run`] has something to do.
    pub fn due_ns(&self) -> u64 {
        self.repeat_ns.unwrap_or(u64::MAX).min(self.due_ns)
    }

    fn skew_ns(&self) -> u64 {
        let rest = u64::from(OWNER) + 1 - u64::from(self.settings.priority);
        rest * u64::from(self.active_interval_cs) * NS_PER_CS / 256
    }

    fn active_down_ns(&self) -> u64 {
        3 * u64::from(self.active_interval_cs) * NS_PER_CS + self.skew_ns()
    }

    /// Begins (section 6.4.1).
    pub fn start(&mut self, now_ns: u64) -> Send {
        if self.settings.priority == OWNER {
            return self.become_active(now_ns);
        }
        self.due_ns = now_ns.saturating_add(self.active_down_ns());
        Send::default()
    }

    /// Does what is due.
    pub fn run(&mut self, now_ns: u64) -> Send {
        let mut send = Send::default();
        if self.due_ns <= now_ns {
            send = match self.state {
                State::Backup => self.become_active(now_ns),
                State::Active => self.advertise(now_ns),
            };
        }
        if self.repeat_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.repeat_ns = None;
            send.announcement = self.state == State::Active;
        }
        send
    }

    fn advertise(&mut self, now_ns: u64) -> Send {
        let interval_ns = u64::from(self.settings.interval_cs) * NS_PER_CS;
        self.due_ns = now_ns.saturating_add(interval_ns);
        Send {
            advertisement: Some(self.settings.priority),
            announcement: false,
        }
    }

    fn become_active(&mut self, now_ns: u64) -> Send {
        self.set_state(State::Active);
        self.has_resigned = false;
        self.active_interval_cs = self.settings.interval_cs;
        self.repeat_ns = Some(now_ns.saturating_add(REPEAT_NS));
        Send {
            announcement: true,
            ..self.advertise(now_ns)
        }
    }

    fn become_backup(&mut self, interval_cs: u16, now_ns: u64) {
        self.set_state(State::Backup);
        self.active_interval_cs = interval_cs;
        self.repeat_ns = None;
        self.due_ns = now_ns.saturating_add(self.active_down_ns());
    }

    fn set_state(&mut self, state: State) {
        self.transitions += u64::from(self.state != state);
        self.state = state;
    }

    /// An advertisement arrived. `is_higher` says whether the sender's address is the higher one, which
    /// decides between equal priorities.
    pub fn receive(
        &mut self,
        priority: u8,
        interval_cs: u16,
        is_higher: bool,
        now_ns: u64,
    ) -> Send {
        let own = self.settings.priority;
        // no other router has a say about the owner's addresses (section 7.1), unless the owner gave them up
        if own == OWNER && !self.has_resigned {
            return Send::default();
        }
        match (self.state, priority) {
            (State::Backup, 0) => {
                self.due_ns = now_ns.saturating_add(self.skew_ns());
                Send::default()
            }
            (State::Backup, _) => {
                if !self.settings.preempts || priority >= own {
                    self.active_interval_cs = interval_cs;
                    self.due_ns = now_ns.saturating_add(self.active_down_ns());
                }
                Send::default()
            }
            (State::Active, 0) => self.advertise(now_ns),
            (State::Active, _) if priority > own || priority == own && is_higher => {
                self.become_backup(interval_cs, now_ns);
                Send::default()
            }
            // The other one gives way to this advertisement; its neighbors hear where the addresses are.
            (State::Active, _) => {
                self.repeat_ns = Some(now_ns.saturating_add(REPEAT_NS));
                Send {
                    announcement: true,
                    ..self.advertise(now_ns)
                }
            }
        }
    }

    /// Gives way to the other router: it hears that this one leaves (priority 0). A router that does not preempt stays backup
    /// while it hears the other one, also the owner, which preempts without a request (section 6.1).
    pub fn resign(&mut self, now_ns: u64) -> Send {
        if self.state == State::Backup {
            return Send::default();
        }
        self.become_backup(self.settings.interval_cs, now_ns);
        self.has_resigned = true;
        Send {
            advertisement: Some(0),
            announcement: false,
        }
    }

    /// Takes over the state of this router's former configuration.
    pub fn take_from(&mut self, old: &Self) {
        self.state = old.state;
        self.active_interval_cs = old.active_interval_cs;
        (self.due_ns, self.repeat_ns) = (old.due_ns, old.repeat_ns);
        self.transitions = old.transitions;
        self.has_resigned = old.has_resigned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn instance(priority: u8) -> Instance {
        let settings = Settings {
            priority,
            interval_cs: 20,
            preempts: true,
        };
        let mut instance = Instance::new(settings);
        instance.start(0);
        instance
    }

    fn advertises(priority: u8) -> Send {
        Send {
            advertisement: Some(priority),
            announcement: false,
        }
    }

    #[test]
    fn a_backup_waits_three_intervals_and_its_skew() {
        let mut backup = instance(100);
        let due_ms = 600 + 200 * 156 / 256;
        assert_eq!(backup.due_ns() / MS, due_ms);
        assert_eq!(backup.run(due_ms * MS), Send::default());
        let send = backup.run((due_ms + 1) * MS);
        assert_eq!((send.advertisement, send.announcement), (Some(100), true));
        assert_eq!((backup.state(), backup.transitions()), (State::Active, 1));
        assert_eq!(backup.due_ns() / MS, due_ms + 201, "the next advertisement");
    }

    #[test]
    fn the_owner_is_active_from_the_start() {
        let mut owner = Instance::new(Settings {
            priority: 255,
            interval_cs: 20,
            preempts: true,
        });
        assert_eq!(owner.start(0).advertisement, Some(255));
        for priority in [0, 1, 255] {
            assert_eq!(owner.receive(priority, 20, true, 5), Send::default());
            assert_eq!(owner.state(), State::Active, "there is one owner");
        }
    }

    #[test]
    fn a_backup_obeys_higher_priorities_and_their_interval() {
        let mut backup = instance(100);
        backup.receive(200, 50, false, 500 * MS);
        assert_eq!(backup.due_ns() / MS, 500 + 1500 + 500 * 156 / 256);
        let due = backup.due_ns();
        backup.receive(50, 50, true, 600 * MS);
        assert_eq!(backup.due_ns(), due, "a lower priority is not obeyed");
        backup.settings.preempts = false;
        backup.receive(50, 50, true, 600 * MS);
        assert_eq!(backup.due_ns(), due + 100 * MS);
        backup.receive(0, 50, true, 700 * MS);
        assert_eq!(
            backup.due_ns() / MS,
            700 + 500 * 156 / 256,
            "the skew alone"
        );
    }

    #[test]
    fn of_two_active_routers_the_lower_one_gives_way() {
        let active = |priority| {
            let mut active = instance(priority);
            active.run(active.due_ns());
            active
        };
        let mut low = active(100);
        assert_eq!(low.receive(101, 30, false, 0), Send::default());
        assert_eq!((low.state(), low.transitions()), (State::Backup, 2));
        let mut equal = active(100);
        let send = equal.receive(100, 30, false, 0);
        assert_eq!(
            send,
            Send {
                announcement: true,
                ..advertises(100)
            }
        );
        equal.receive(100, 30, true, 0);
        assert_eq!(equal.state(), State::Backup);
        let mut high = active(101);
        assert_eq!(high.receive(0, 30, true, 0), advertises(101));
        assert_eq!(high.receive(100, 30, true, 0).advertisement, Some(101));
        assert_eq!(high.state(), State::Active);
    }

    #[test]
    fn one_that_resigns_says_so() {
        let mut active = instance(100);
        active.run(active.due_ns());
        assert_eq!(active.resign(5), advertises(0));
        assert_eq!(active.state(), State::Backup);
        assert_eq!(active.resign(5), Send::default());
    }

    /// An owner of the addresses.
    fn owner(preempts: bool) -> Instance {
        Instance::new(Settings {
            priority: OWNER,
            interval_cs: 20,
            preempts,
        })
    }

    /// Whether a backup router takes over from a lower one that it hears every 200 ms.
    fn takes_over(backup: &mut Instance, from_ms: u64) -> bool {
        (0..50).any(|n| {
            let now_ns = (from_ms + 200 * n) * MS;
            backup.receive(100, 20, false, now_ns);
            backup.run(now_ns);
            backup.state() == State::Active
        })
    }

    #[test]
    fn an_owner_that_resigned_takes_over_only_if_it_preempts() {
        for preempts in [false, true] {
            let mut owner = owner(preempts);
            owner.start(0);
            assert_eq!(owner.resign(5), advertises(0));
            assert_eq!(takes_over(&mut owner, 1), preempts);
        }
    }

    #[test]
    fn an_owner_that_resigned_takes_over_from_one_that_leaves_or_is_silent() {
        for leaves in [false, true] {
            let mut owner = owner(false);
            owner.start(0);
            owner.resign(5);
            assert!(!takes_over(&mut owner, 1));
            if leaves {
                owner.receive(0, 20, false, 10_000 * MS);
            }
            let due_ms = if leaves { 10_001 } else { 10_402 };
            owner.run((due_ms - 2) * MS);
            assert_eq!(owner.state(), State::Backup);
            assert_eq!(owner.run(due_ms * MS).advertisement, Some(OWNER));
            assert_eq!(owner.receive(100, 20, true, due_ms * MS), Send::default());
            assert_eq!(owner.state(), State::Active, "it is the owner again");
        }
    }

    #[test]
    fn an_owner_that_did_not_resign_preempts_in_any_case() {
        let mut backup = instance(50);
        backup.settings.preempts = false;
        assert!(!takes_over(&mut backup, 1));
        backup.settings.priority = OWNER;
        assert!(takes_over(&mut backup, 10_001));
    }

    #[test]
    fn a_hot_swap_keeps_a_resignation() {
        let mut old = owner(false);
        old.start(0);
        old.resign(5);
        let mut owner = owner(false);
        owner.take_from(&old);
        assert!(!takes_over(&mut owner, 1));
    }
}
