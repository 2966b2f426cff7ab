// SPDX-License-Identifier: Apache-2.0
//! The guest's link to the store: the mapped ring, and a FIFO for each direction's events.
use crate::inherited::Store;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use xenstore::page::MappedPage;
use xenstore::{Notify, Request, RingClient, Tx};

/// How long last words may wait for room in the ring.
const LAST_TRIES: u32 = 50;

/// The store's connection as the control thread uses it.
pub(crate) type Client = RingClient<MappedPage, ToStore>;

/// The connection and the store's events.
pub(crate) struct Link {
    pub client: Client,
    pub events: FromStore,
}

impl Link {
    /// Maps the ring and closes its descriptor. With the descriptor the guest could shorten the
    /// file, which would kill the store.
    pub(crate) fn map(store: Store) -> Result<Self, String> {
        nonblocking(&store.to_store).map_err(|e| format!("store.to_store: {e}"))?;
        nonblocking(&store.from_store).map_err(|e| format!("store.from_store: {e}"))?;
        Self::of(store)
    }

    /// The same, where both FIFOs never wait.
    pub(crate) fn of(store: Store) -> Result<Self, String> {
        let page = MappedPage::map(&store.ring).map_err(|e| format!("store.ring: {e}"))?;
        let client = RingClient::new(
            page,
            ToStore {
                fifo: store.to_store,
            },
        );
        Ok(Self {
            client,
            events: FromStore {
                fifo: Some(store.from_store),
            },
        })
    }
}

fn nonblocking(fifo: &OwnedFd) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fifo)?;
    rustix::fs::fcntl_setfl(fifo, flags | rustix::fs::OFlags::NONBLOCK)
}

/// Events for the store.
pub(crate) struct ToStore {
    fifo: OwnedFd,
}

impl Notify for ToStore {
    fn notify(&mut self) {
        // A full FIFO has events the store has not seen; without a reader the store is gone.
        let _ = rustix::io::write(&self.fifo, &[1]);
    }
}

/// Events of the store.
pub(crate) struct FromStore {
    fifo: Option<OwnedFd>,
}

impl FromStore {
    /// The descriptor to wait for; `None` when the store is gone.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.fifo.as_ref().map(|fifo| fifo.as_fd())
    }

    /// Takes all events.
    pub(crate) fn drain(&mut self) {
        let Some(fifo) = &self.fifo else { return };
        let mut events = [0; 256];
        match rustix::io::read(fifo, &mut events) {
            Ok(1..) | Err(Errno::AGAIN | Errno::INTR) => {}
            // The end: no process will ever write again, and a wait for it would never sleep.
            Ok(0) | Err(_) => self.fifo = None,
        }
    }
}

/// Writes `data/clickos/panic` as well as can be.
pub(crate) fn last_words(client: &mut Client, text: &str) {
    let text: String = text.chars().take(500).collect();
    let path = format!("{}/panic", clickos_protocol::ROOT);
    let Ok(request) = Request::write(Tx::NONE, &path, text.as_bytes()) else {
        return;
    };
    client.submit_last(&request);
    for _ in 0..LAST_TRIES {
        if client.is_sent() || client.broken().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
        client.pump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn last_words_are_put_into_the_ring_even_while_a_request_is_under_way() {
        let memfd = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::empty()).unwrap();
        rustix::fs::ftruncate(&memfd, 4096).unwrap();
        let mut file = std::fs::File::from(memfd.try_clone().unwrap());
        let (from_store, to_store) = rustix::pipe::pipe().unwrap();
        let mut link = Link::map(Store {
            ring: memfd,
            to_store,
            from_store,
        })
        .unwrap();
        link.client
            .submit(&Request::read(Tx::NONE, "name").unwrap())
            .unwrap();
        last_words(&mut link.client, &"why it ended ".repeat(100));
        let mut page = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut page).unwrap();
        let text = String::from_utf8_lossy(&page);
        assert!(
            text.contains("data/clickos/panic\0why it ended why"),
            "{text:?}"
        );
        link.events.drain(); // One event for each of the two messages.
        assert!(link.events.descriptor().is_some());
        drop(link.client);
        link.events.drain();
        assert!(
            link.events.descriptor().is_none(),
            "the store's end is not noticed"
        );
    }
}
