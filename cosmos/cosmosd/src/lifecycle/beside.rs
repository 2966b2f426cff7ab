// SPDX-License-Identifier: Apache-2.0
//! The actions of others on this host: they pause and unpause guests, and make domains that look like
//! guests.

use std::sync::Arc;
use std::time::Duration;

use log::{info, warn};

use cosmos_proto::answer;

use crate::base::error::{Code, Error, Result};
use crate::guest::{Guest, State};
use crate::host::{Domain, Stranger};
use crate::site::Site;
use crate::spec::Uuid;

/// Pause between two looks: no host tells of a pause.
const PAUSE: Duration = Duration::from_secs(2);

/// Looks for as long as the daemon lives.
pub fn looks_loop(site: &Site) {
    loop {
        std::thread::sleep(PAUSE);
        if let Err(e) = look_beside(site) {
            warn!("looking for paused guests: {e}");
        }
    }
}

/// Follows what others did to the guests.
pub fn look_beside(site: &Site) -> Result<()> {
    let paused = site.host.paused()?;
    for guest in site.table.all() {
        let now = paused.get(&guest.domain.domid);
        if now.is_some_and(|now| differs(guest.state(), *now)) {
            follow(site, &guest)?;
        }
    }
    Ok(())
}

/// A verb may have done it: this waits for none, and asks the host again.
fn follow(site: &Site, guest: &Arc<Guest>) -> Result<()> {
    let Some(_owner) = guest
        .try_lock_lifecycle()
        .filter(|_| site.table.is_current(guest))
    else {
        return Ok(());
    };
    let Some(now) = site.host.paused()?.get(&guest.domain.domid).copied() else {
        return Ok(());
    };
    if differs(guest.state(), now) {
        let (state, word) = match now {
            true => (State::Paused, "paused"),
            false => (State::Running, "unpaused"),
        };
        info!("guest {}: {word} by others", guest.domain.uuid);
        turn_to(site, guest, state);
    }
    Ok(())
}

/// Notes that a guest is paused or unpaused, and tells subscribers.
pub fn turn_to(site: &Site, guest: &Guest, state: State) {
    guest.set_state(state, "");
    site.tell(guest);
    if guest.unreachable().is_some() {
        site.watchers.announced.add([guest.domain.domid]);
    }
}

/// Domains that somebody else made, and that carry the UUID or the name of a guest.
pub fn strangers(site: &Site) -> Result<answer::Strangers> {
    let strangers = site.host.strangers()?.into_iter();
    let strangers = strangers.filter_map(|stranger| {
        let uuid = guest_of(site, &stranger)?;
        let Stranger { domid, name, .. } = stranger;
        Some(answer::Stranger { domid, uuid, name })
    });
    let strangers = strangers.collect();
    Ok(answer::Strangers { strangers })
}

/// The UUID of the guest that a domain looks like. cosmosd names domains by their guests' UUIDs,
/// those of the pool "pool UUID". A name of this form is therefore that of a guest.
fn guest_of(site: &Site, stranger: &Stranger) -> Option<Uuid> {
    let guests = site.table.all();
    if guests.iter().any(|g| is_its_own(&g.domain, stranger)) {
        return None;
    }
    let alike = guests.iter().find(|g| looks_like(&g.domain, stranger));
    let known = alike.map(|guest| guest.domain.uuid.clone());
    let (name, of_pool) = (&stranger.name, stranger.name.strip_prefix("pool "));
    known.or_else(|| Uuid::try_from(of_pool.unwrap_or(name).to_owned()).ok())
}

/// Refuses to make a domain while another one carries its UUID or its name: both would answer to
/// the same address.
pub fn check_strangers(site: &Site, domain: &Domain) -> Result<()> {
    let strangers = site.host.strangers()?;
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
    use super::{look_beside, strangers};
    use crate::base::error::Code;
    use crate::lifecycle::pause;
    use crate::testing::{World, of, spec, uuid};
    use std::time::Duration;

    fn state(world: &World) -> String {
        world.info(&uuid(1)).unwrap().state
    }

    #[test]
    fn a_pause_by_others_is_followed_and_taken_back() {
        let world = World::running();
        let events = world.site.events.subscribe();
        look_beside(&world.site).unwrap();
        assert_eq!(state(&world), "running");
        world.host.set_paused(1, true);
        look_beside(&world.site).unwrap();
        assert_eq!(state(&world), "paused");
        look_beside(&world.site).unwrap();
        pause::unpause(&world.site, &of(1)).unwrap();
        assert_eq!(state(&world), "running");
        look_beside(&world.site).unwrap();
        assert_eq!(state(&world), "running");
        pause::pause(&world.site, &of(1)).unwrap();
        world.host.set_paused(1, false);
        look_beside(&world.site).unwrap();
        assert_eq!(state(&world), "running");
        let told = std::iter::from_fn(|| events.wait(Duration::ZERO).ok());
        let told: Vec<_> = told.map(|event| event.data["state"].clone()).collect();
        assert_eq!(told, ["paused", "running", "paused", "running"]);
    }

    #[test]
    fn a_guest_that_somebody_owns_is_left_alone() {
        let world = World::running();
        let guest = world.site.table.get(&uuid(1)).unwrap();
        world.host.set_paused(1, true);
        let owner = guest.lock_lifecycle();
        look_beside(&world.site).unwrap();
        assert_eq!(state(&world), "running");
        drop(owner);
        look_beside(&world.site).unwrap();
        assert_eq!(state(&world), "paused");
    }

    #[test]
    fn a_domain_of_the_same_uuid_or_name_keeps_a_guest_from_being_made() {
        let other = "00000000-0000-4000-8000-00000000ffff";
        for (of, name) in [(uuid(1).as_str(), "x"), (other, uuid(1).as_str())] {
            let world = World::new();
            world.host.put_stranger(77, of, name);
            let error = world.create(&spec(1)).err().unwrap();
            assert_eq!(error.code, Code::Exists);
            assert!(error.message.contains("xl destroy 77"), "{error}");
            assert_eq!(world.remains(), Vec::<String>::new());
            world.create(&spec(2)).unwrap();
        }
    }

    #[test]
    fn strangers_are_listed_with_the_guest_they_look_like() {
        let world = World::running();
        let listed = || -> Vec<_> {
            let strangers = strangers(&world.site).unwrap().strangers.into_iter();
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
