// SPDX-License-Identifier: Apache-2.0
//! What others do beside this daemon: they pause a guest or let it go on, and make domains that look
//! like guests.

use std::sync::Arc;
use std::time::Duration;

use log::{info, warn};

use cosmos_proto::answer;

use crate::error::{Code, Error, Result};
use crate::guest::{Guest, State};
use crate::host::{Domain, Stranger};
use crate::spec::Uuid;
use crate::toolstack::Toolstack;

/// Pause between two looks: no host tells of a pause.
const PAUSE: Duration = Duration::from_secs(2);

impl Toolstack {
    /// Looks for as long as the daemon lives.
    pub fn keep_looking(&self) {
        loop {
            std::thread::sleep(PAUSE);
            if let Err(e) = self.look_beside() {
                warn!("looking for paused guests: {e}");
            }
        }
    }

    /// Follows what others did to the guests.
    pub fn look_beside(&self) -> Result<()> {
        let paused = self.host.paused()?;
        for guest in self.table.all() {
            let now = paused.get(&guest.domain.domid);
            if now.is_some_and(|now| differs(guest.state(), *now)) {
                self.follow(&guest)?;
            }
        }
        Ok(())
    }

    /// A verb may have done it: this waits for none, and asks the host again.
    fn follow(&self, guest: &Arc<Guest>) -> Result<()> {
        let Some(_owner) = guest.try_own().filter(|_| self.is_current(guest)) else {
            return Ok(());
        };
        let Some(now) = self.host.paused()?.get(&guest.domain.domid).copied() else {
            return Ok(());
        };
        if differs(guest.state(), now) {
            let (state, word) = match now {
                true => (State::Paused, "paused"),
                false => (State::Running, "let go on"),
            };
            info!("guest {}: somebody {word} it", guest.domain.uuid);
            self.turn_to(guest, state);
        }
        Ok(())
    }

    /// Notes that a guest is paused or goes on, and tells subscribers.
    pub fn turn_to(&self, guest: &Guest, state: State) {
        guest.set_state(state, "");
        self.tell(guest);
        if guest.unreachable().is_some() {
            self.watchers.announced.add([guest.domain.domid]);
        }
    }

    /// Domains that somebody else made, and that carry the UUID or the name of a guest.
    pub fn strangers(&self) -> Result<Vec<answer::Stranger>> {
        let strangers = self.host.strangers()?.into_iter();
        let named = strangers.filter_map(|stranger| {
            let uuid = self.guest_of(&stranger)?;
            let Stranger { domid, name, .. } = stranger;
            Some(answer::Stranger { domid, uuid, name })
        });
        Ok(named.collect())
    }

    /// The UUID of the guest that a domain looks like. cosmosd names domains by their guests' UUIDs.
    /// A name of this form is therefore that of a guest.
    fn guest_of(&self, stranger: &Stranger) -> Option<Uuid> {
        let guests = self.table.all();
        if guests.iter().any(|g| is_its_own(&g.domain, stranger)) {
            return None;
        }
        let alike = guests.iter().find(|g| looks_like(&g.domain, stranger));
        let known = alike.map(|guest| guest.domain.uuid.clone());
        known.or_else(|| Uuid::try_from(stranger.name.clone()).ok())
    }

    /// Refuses to make a domain while another one carries its UUID or its name: both would answer to
    /// the same address.
    pub fn check_strangers(&self, domain: &Domain) -> Result<()> {
        let strangers = self.host.strangers()?;
        let alike = strangers
            .iter()
            .find(|stranger| looks_like(domain, stranger) && !is_its_own(domain, stranger));
        match alike {
            None => Ok(()),
            Some(Stranger { domid, .. }) => {
                let message = format!(
                    "uuid: domain {domid} of this host carries {} and is not cosmosd's; end it: xl \
                     destroy {domid}",
                    domain.uuid
                );
                Err(Error::new(Code::Exists, message))
            }
        }
    }
}

fn differs(state: State, is_paused: bool) -> bool {
    match state {
        State::Running => is_paused,
        State::Paused => !is_paused,
        _ => false,
    }
}

fn looks_like(domain: &Domain, stranger: &Stranger) -> bool {
    let (uuid, handle) = (domain.uuid.as_str(), domain.handle.as_str());
    stranger.uuid == uuid || stranger.uuid == handle || stranger.name == uuid
}

/// True for the domain itself while it is being made or ended.
fn is_its_own(domain: &Domain, stranger: &Stranger) -> bool {
    stranger.domid == domain.domid && stranger.uuid == domain.handle.as_str()
}

#[cfg(test)]
mod tests {
    use crate::error::Code;
    use crate::testing::{World, spec, uuid};
    use std::time::Duration;

    fn state(world: &World) -> String {
        world.toolstack.info(&uuid(1)).unwrap().state
    }

    fn running() -> World {
        let world = World::new();
        world.toolstack.create(&spec(1)).unwrap();
        world
    }

    #[test]
    fn a_pause_by_others_is_followed_and_taken_back() {
        let world = running();
        let events = world.toolstack.events.subscribe();
        world.toolstack.look_beside().unwrap();
        assert_eq!(state(&world), "running");
        world.host.set_paused(1, true);
        world.toolstack.look_beside().unwrap();
        assert_eq!(state(&world), "paused");
        world.toolstack.look_beside().unwrap();
        world.toolstack.unpause(&uuid(1)).unwrap();
        assert_eq!(state(&world), "running");
        world.toolstack.look_beside().unwrap();
        assert_eq!(state(&world), "running");
        world.toolstack.pause(&uuid(1)).unwrap();
        world.host.set_paused(1, false);
        world.toolstack.look_beside().unwrap();
        assert_eq!(state(&world), "running");
        let told = std::iter::from_fn(|| events.wait(Duration::ZERO).ok());
        let told: Vec<_> = told.map(|event| event.data["state"].clone()).collect();
        assert_eq!(told, ["paused", "running", "paused", "running"]);
    }

    #[test]
    fn a_guest_that_somebody_owns_is_left_alone() {
        let world = running();
        let guest = world.toolstack.table.get(&uuid(1)).unwrap();
        world.host.set_paused(1, true);
        let owner = guest.own();
        world.toolstack.look_beside().unwrap();
        assert_eq!(state(&world), "running");
        drop(owner);
        world.toolstack.look_beside().unwrap();
        assert_eq!(state(&world), "paused");
    }

    #[test]
    fn a_domain_of_the_same_uuid_or_name_keeps_a_guest_from_being_made() {
        let other = "00000000-0000-4000-8000-00000000ffff";
        for (of, name) in [(uuid(1).as_str(), "x"), (other, uuid(1).as_str())] {
            let world = World::new();
            world.host.put_stranger(77, of, name);
            let error = world.toolstack.create(&spec(1)).err().unwrap();
            assert_eq!(error.code, Code::Exists);
            assert!(error.message.contains("xl destroy 77"), "{error}");
            assert_eq!(world.remains(), Vec::<String>::new());
            world.toolstack.create(&spec(2)).unwrap();
        }
    }

    #[test]
    fn strangers_are_listed_with_the_guest_they_look_like() {
        let world = running();
        let listed = || -> Vec<_> {
            let strangers = world.toolstack.strangers().unwrap().into_iter();
            strangers.map(|s| (s.domid, s.uuid)).collect()
        };
        world
            .host
            .put_stranger(1, uuid(1).as_str(), uuid(1).as_str());
        world.host.put_stranger(5, uuid(9).as_str(), "storage");
        assert!(listed().is_empty());
        world.host.put_stranger(77, uuid(1).as_str(), "again");
        world
            .host
            .put_stranger(78, uuid(9).as_str(), uuid(3).as_str());
        assert_eq!(listed(), [(77, uuid(1)), (78, uuid(3))]);
    }
}
