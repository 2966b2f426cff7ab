// SPDX-License-Identifier: Apache-2.0
//! What comes and goes while the guest runs: vifs (docs/adr/0069), and links to the store
//! (docs/adr/0103).
use crate::arguments::mac;
use crate::console;
use crate::inherited::{PlugEnds, Store, VifResources};
use crate::link::Link;
use crate::vif::{self, Vif};
use click_packet::memory;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::Deserialize;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of a message at most.
const MESSAGE_MAX: usize = 1024;
/// Vifs of a guest at most, and bytes of the usual rings, of 512 slots.
const VIFS_MAX: usize = 16;
const BLOCK: usize = 512 * 2 * (8 + 2048) + 4 * 4096;
/// Descriptors of a vif: rings, kick, both ends of the wake pipe.
const DESCRIPTORS: usize = 4;
/// Descriptors of a link: ring, to the store, from the store.
const LINK_DESCRIPTORS: usize = 3;

/// A request of the toolstack.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Message {
    Plug {
        devid: u32,
        mac: String,
        mtu: u16,
    },
    Unplug {
        devid: u32,
    },
    /// A link to a store that began again; the guest's version in that store is the answer.
    Store {},
}

/// Address space for the rings of vifs to come, which the limit of the guest's memory counts. The
/// blocks are never touched, so they cost no memory.
struct Room {
    blocks: Vec<Vec<u8>>,
}

impl Room {
    /// Frees what rings need.
    fn take(&mut self, rings: &OwnedFd) {
        let bytes = rustix::fs::fstat(rings).map_or(0, |stat| stat.st_size);
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let left = self.blocks.len().saturating_sub(bytes.div_ceil(BLOCK));
        self.blocks.truncate(left);
    }

    /// Frees a block for something small.
    fn lend(&mut self) {
        self.blocks.pop();
    }

    /// Reserves blocks again, as far as there is room.
    fn give_back(&mut self, count: usize) {
        while self.blocks.len() < count {
            let mut block = Vec::new();
            if block.try_reserve_exact(BLOCK).is_err() {
                return;
            }
            self.blocks.push(block);
        }
    }
}

/// The guest's end of the socket.
pub(crate) struct Hotplug {
    ends: PlugEnds,
    room: Room,
    /// The newest link that came.
    link: Option<Link>,
}

impl Hotplug {
    /// To be called before the guest's memory is bounded: see [`Room`].
    pub(crate) fn new(ends: PlugEnds, vifs: usize) -> Self {
        let mut room = Room { blocks: Vec::new() };
        room.give_back(VIFS_MAX.saturating_sub(vifs));
        let link = None;
        Self { ends, room, link }
    }

    /// Takes the link to a new store, if one came.
    pub(crate) fn take_link(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// The descriptor to wait for.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ends.guest.as_fd()
    }

    /// Does what the messages that are there ask; true if the vifs changed.
    pub(crate) fn serve(&mut self, vifs: &mut Vec<Vif>) -> bool {
        let mut is_changed = false;
        while let Some((bytes, descriptors)) = self.receive() {
            let changed = match serde_json::from_slice(&bytes) {
                Ok(Message::Store {}) => {
                    self.relink(descriptors, vifs.len());
                    continue;
                }
                Ok(Message::Unplug { devid }) => {
                    self.unplug(devid, vifs);
                    Ok(Vec::new())
                }
                Ok(Message::Plug { devid, mac, mtu }) => {
                    self.plug((devid, &mac, mtu), descriptors, vifs)
                }
                Err(error) => Err(error.to_string()),
            };
            let answer = match changed {
                Ok(numbers) => {
                    is_changed = true;
                    serde_json::json!({ "fds": numbers })
                }
                Err(error) => serde_json::json!({ "error": error }),
            };
            // A full socket means that the toolstack waits for no answer.
            let _ = rustix::io::write(&self.ends.guest, answer.to_string().as_bytes());
        }
        is_changed
    }

    fn unplug(&mut self, devid: u32, vifs: &mut Vec<Vif>) {
        vifs.retain(|vif| vif.devid != devid);
        self.room.give_back(VIFS_MAX.saturating_sub(vifs.len()));
    }

    /// Returns the numbers by which the next switch finds the rings, and both events.
    fn plug(
        &mut self,
        (devid, address, mtu): (u32, &str, u16),
        descriptors: Vec<OwnedFd>,
        vifs: &mut Vec<Vif>,
    ) -> Result<Vec<i32>, String> {
        let count = descriptors.len();
        let [memfd, kick, wake, keep] = descriptors
            .try_into()
            .map_err(|_| format!("{count} descriptors, expected {DESCRIPTORS}"))?;
        let numbers = [&memfd, &kick, &wake].map(|fd: &OwnedFd| fd.as_raw_fd());
        let address = mac(address)?;
        let resources = VifResources {
            memfd,
            kick,
            wake,
            keep,
        };
        let vif = memory::undisturbed(|| {
            self.room.take(&resources.memfd);
            vif::map(devid, address, mtu, resources)
        })?;
        vifs.retain(|vif| vif.devid != devid);
        vifs.push(vif);
        Ok(numbers.into())
    }

    /// The page of a link is room for it: an earlier one is given up before the next comes.
    fn relink(&mut self, descriptors: Vec<OwnedFd>, vifs: usize) {
        let count = descriptors.len();
        let given: Result<[OwnedFd; LINK_DESCRIPTORS], _> = descriptors.try_into();
        let link = given
            .map_err(|_| format!("{count} descriptors, expected {LINK_DESCRIPTORS}"))
            .and_then(|[ring, to_store, from_store]| {
                let store = Store {
                    ring,
                    to_store,
                    from_store,
                };
                memory::undisturbed(|| {
                    self.room.lend();
                    Link::of(store)
                })
            });
        match link {
            Ok(link) => self.link = Some(link),
            Err(error) => {
                self.settle_link(vifs);
                console::line(&format!("link to a new store: {error}"));
            }
        }
    }

    /// Reserves the room that a link took.
    pub(crate) fn settle_link(&mut self, vifs: usize) {
        self.room.give_back(VIFS_MAX.saturating_sub(vifs));
    }

    fn receive(&self) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        let mut bytes = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg(&self.ends.guest, &mut parts, &mut ancillary, flags).ok()?;
        let rights = |message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        };
        let descriptors = ancillary.drain().filter_map(rights).flatten().collect();
        bytes.truncate(got.bytes);
        (got.bytes > 0).then_some((bytes, descriptors))
    }
}
