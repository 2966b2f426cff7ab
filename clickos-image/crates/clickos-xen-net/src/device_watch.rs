// SPDX-License-Identifier: Apache-2.0
//! Which network devices the guest has: the directories `device/vif` and `device/vale`. They come and go while
//! the guest runs.
use crate::frontend::{Identity, NO_ADDRESS};
use crate::platform::Platform;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use ring::SLOTS_RANGE;
use xenstore::{Error, Store, StoreConnection};

/// Devices one guest may have.
const MAX: usize = 64;
const DEFAULT_MTU: u16 = 1500;
const MTU_MAX: u16 = 9000;
const DEFAULT_SLOTS: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Vif,
    Vale { slots: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub class: Class,
    pub devid: u32,
    pub identity: Identity,
}

impl Found {
    /// The frontend's directory, relative to the domain's.
    pub fn directory(&self) -> String {
        directory(self.class == Class::Vif, self.devid)
    }
}

fn directory(is_vif: bool, devid: u32) -> String {
    let class = if is_vif { "vif" } else { "vale" };
    format!("device/{class}/{devid}")
}

/// What the search remembers of a device.
struct Present {
    devid: u32,
    is_vif: bool,
    /// It has no address yet, so it is found again when it changes.
    is_preconnected: bool,
}

/// Results of the search, and its state.
#[derive(Default)]
pub(crate) struct Progress {
    /// Found and not taken yet.
    pub found: Vec<Found>,
    /// Numbers of devices whose directory the toolstack has removed.
    pub gone: Vec<u32>,
    /// There may be more to be found at once.
    pub busy: bool,
    /// The first look, at the devices from before the guest's start, is over.
    looked: bool,
    /// Devices that were found and are there yet.
    present: Vec<Present>,
    /// Directories that were complained of.
    refused: Vec<String>,
}

impl Progress {
    /// Takes what was found and what has gone since the last call.
    pub fn take(&mut self) -> (Vec<Found>, Vec<u32>) {
        (
            core::mem::take(&mut self.found),
            core::mem::take(&mut self.gone),
        )
    }

    /// Notes the devices that are not there any more; their numbers are free.
    fn part(&mut self, is_listed: &dyn Fn(u32, bool) -> bool) {
        let gone = &mut self.gone;
        self.present.retain(|device| {
            let stays = is_listed(device.devid, device.is_vif);
            if !stays {
                gone.push(device.devid);
            }
            stays
        });
    }

    /// True for the number of a device with an address.
    fn is_known(&self, devid: u32) -> bool {
        let mut present = self.present.iter();
        present.any(|device| device.devid == devid && !device.is_preconnected)
    }

    fn note(&mut self, found: &Found) {
        self.present.retain(|device| device.devid != found.devid);
        self.present.push(Present {
            devid: found.devid,
            is_vif: found.class == Class::Vif,
            is_preconnected: found.identity.is_preconnected(),
        });
    }
}

/// Finds devices as the toolstack makes them; what is wrong with one is said on the console once. A
/// number belongs to one device: the first one takes it. A preconnected device is found again when it
/// changes: it may have got its address (docs/adr/0098-guest-pool.md).
pub(crate) struct Search<P, S> {
    pub link: StoreConnection<S>,
    pub platform: Rc<P>,
    pub progress: Rc<RefCell<Progress>>,
}

impl<P: Platform, S: Store> Search<P, S> {
    /// Serves until the connection to the store breaks; gives what broke it.
    pub async fn run(self) -> Error {
        self.progress.borrow_mut().busy = true;
        let mut result = self.link.watch("device").await;
        loop {
            match result {
                Err(error) if error.is_fatal() => return error,
                Err(error) => {
                    self.platform.say(&format!("device: {error}"));
                    self.progress.borrow_mut().looked = true;
                }
                Ok(()) => {}
            }
            result = match self.event().await {
                Ok(true) => self.look().await,
                other => other.map(drop),
            };
            self.progress.borrow_mut().looked = true;
        }
    }

    /// Waits for an event; true if it may be about a device that is not known. The store answers
    /// a watch before it sends the watch's first event, so the search is busy until that event.
    async fn event(&self) -> Result<bool, Error> {
        let mut event = pin!(self.link.event());
        let event = poll_fn(|context| {
            let event = event.as_mut().poll(context);
            let mut progress = self.progress.borrow_mut();
            progress.busy = event.is_ready() || !progress.looked;
            event
        });
        let Some(event) = event.await? else {
            return Ok(true);
        };
        let mut parts = event.path.split('/').skip(2);
        let devid = parts.next().and_then(|id| id.parse().ok());
        let is_directory = parts.next().is_none();
        Ok(is_directory || devid.is_none_or(|id| !self.progress.borrow().is_known(id)))
    }

    async fn look(&self) -> Result<(), Error> {
        let lists = self.link.list_all(&["device/vif", "device/vale"]).await?;
        let is_listed = |devid: u32, is_vif: bool| {
            let names = &lists[usize::from(!is_vif)];
            names.iter().any(|name| name.parse() == Ok(devid))
        };
        self.progress.borrow_mut().part(&is_listed);
        for (names, is_vif) in lists.iter().zip([true, false]) {
            for devid in names.iter().filter_map(|name| name.parse().ok()) {
                let is_known = self.progress.borrow().is_known(devid);
                if !is_known {
                    let device = describe(&self.link, is_vif, devid).await?;
                    self.add(&directory(is_vif, devid), device);
                }
            }
        }
        Ok(())
    }

    fn add(&self, place: &str, device: Result<Found, String>) {
        let mut progress = self.progress.borrow_mut();
        match device {
            Ok(device) if progress.present.len() < MAX => {
                progress.note(&device);
                progress.found.push(device);
            }
            result => {
                let why = result.err().unwrap_or("is one device too many".into());
                if progress.refused.len() < MAX && !progress.refused.iter().any(|p| p == place) {
                    progress.refused.push(place.into());
                    self.platform.say(&format!("{place}/{why}"));
                }
            }
        }
    }
}

async fn describe<S: Store>(
    link: &StoreConnection<S>,
    is_vif: bool,
    devid: u32,
) -> Result<Result<Found, String>, Error> {
    let place = directory(is_vif, devid);
    let paths = ["mac", "mtu", "slots"].map(|key| format!("{place}/{key}"));
    let mut values = link.texts(&paths).await?.into_iter();
    let mut next = || values.next().flatten();
    let (mac, mtu, slots) = (next(), next(), next());
    let found = || {
        let slots = parse("slots", slots, DEFAULT_SLOTS, |s| {
            SLOTS_RANGE.contains(s) && s.is_power_of_two()
        })?;
        let identity = Identity {
            mac: mac.as_deref().map_or(Ok(NO_ADDRESS), parse_mac)?,
            mtu: parse("mtu", mtu, DEFAULT_MTU, |mtu| (68..=MTU_MAX).contains(mtu))?,
        };
        let class = if is_vif {
            Class::Vif
        } else {
            Class::Vale { slots }
        };
        Ok(Found {
            class,
            devid,
            identity,
        })
    };
    Ok(found())
}

/// A number, or `default` if the key is missing.
fn parse<T: core::str::FromStr>(
    key: &str,
    value: Option<String>,
    default: T,
    is_good: impl Fn(&T) -> bool,
) -> Result<T, String> {
    let Some(text) = value else {
        return Ok(default);
    };
    let number = text.parse().ok().filter(is_good);
    number.ok_or_else(|| format!("{key}: {:.20} is not usable", text.escape_default()))
}

fn parse_mac(text: &str) -> Result<[u8; 6], String> {
    let mut mac = [0; 6];
    let mut bytes = text.split(':');
    for byte in &mut mac {
        let digits = bytes.next().filter(|d| d.len() == 2);
        *byte = digits
            .and_then(|d| u8::from_str_radix(d, 16).ok())
            .ok_or_else(|| bad_mac(text))?;
    }
    match bytes.next() {
        None if mac[0] & 1 == 0 => Ok(mac),
        _ => Err(bad_mac(text)),
    }
}

fn bad_mac(text: &str) -> String {
    format!(
        "mac: {:.20} is not an address of a device",
        text.escape_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(
            parse_mac("00:16:3E:00:0a:ff"),
            Ok([0, 0x16, 0x3e, 0, 10, 255])
        );
        for bad in [
            "",
            "00:16:3e:00:00",
            "00:16:3e:00:00:00:00",
            "01:16:3e:00:00:00",
            "0:16:3e:00:00:+1",
            "é",
        ] {
            assert!(parse_mac(bad).unwrap_err().starts_with("mac: "));
        }
    }

    #[test]
    fn numbers() {
        let good = |n: &u16| *n > 5;
        assert_eq!(parse("mtu", None, 9, good), Ok(9));
        assert_eq!(parse("mtu", Some("7".into()), 9, good), Ok(7));
        for bad in ["", "5", "65536", "x\u{1b}"] {
            assert!(
                parse("mtu", Some(bad.into()), 9, good)
                    .unwrap_err()
                    .starts_with("mtu: ")
            );
        }
    }
}
