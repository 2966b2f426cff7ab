// SPDX-License-Identifier: Apache-2.0
//! Handlers for element_nodes: one store node each, made when asked for.
use crate::control::Control;
use crate::node::{self, Handler};
use crate::report::REPORT_MAX;
use crate::router_spec::hash;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use xenstore::Error;
use xenstore::Store;

/// Element nodes the guest makes at most.
const NODES_MAX: usize = 64;

/// The element nodes that the guest made.
#[derive(Default)]
pub(crate) struct ElementNodes {
    /// By path; with the hash of a value we wrote until its watch event came.
    nodes: BTreeMap<String, Option<u64>>,
}

impl ElementNodes {
    /// True if an event of this value is the echo of our own write; asked once per event.
    fn is_echo(&mut self, path: &str, value: &[u8]) -> bool {
        let ours = self.nodes.get_mut(path).and_then(Option::take);
        ours == Some(hash(value))
    }

    /// Forgets the nodes of a router that has ended.
    pub(crate) fn forget(&mut self, rid: u8) {
        let prefix = node::of_router(rid, "");
        self.nodes.retain(|path, _| !path.starts_with(&prefix));
    }

    fn has_room_for(&self, path: &str) -> bool {
        self.nodes.contains_key(path) || self.nodes.len() < NODES_MAX
    }
}

impl<S: Store> Control<S> {
    /// An element node changed: a person writes a handler, or it is what we just wrote.
    pub(crate) async fn element_written(
        &mut self,
        rid: u8,
        handler: &Handler,
    ) -> Result<(), Error> {
        let path = node::element(rid, handler);
        let Some(value) = self.link.read(&path).await? else {
            self.element_nodes.nodes.remove(&path);
            return Ok(());
        };
        if self.element_nodes.is_echo(&path, &value) {
            return Ok(());
        }
        let name = handler.full_name();
        let result = self
            .routers
            .borrow_mut()
            .write(rid, &name, &value, self.now_ns());
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.tell(rid, &error).await,
        }
    }

    /// A read request was written (or removed: then there is nothing to do).
    pub(crate) async fn read_requested(&mut self, rid: u8, handler: &Handler) -> Result<(), Error> {
        if self
            .link
            .read(&node::read_request(rid, handler))
            .await?
            .is_none()
        {
            return Ok(());
        }
        let name = handler.full_name();
        let result = self.routers.borrow_mut().read(rid, &name, self.now_ns());
        let shown = match result {
            Ok(data) => self.show(rid, handler, &name, &data).await?,
            Err(error) => Err(error),
        };
        match shown {
            Ok(()) => Ok(()),
            Err(error) => self.tell(rid, &error).await,
        }
    }

    async fn show(
        &mut self,
        rid: u8,
        handler: &Handler,
        name: &str,
        data: &[u8],
    ) -> Result<Result<(), String>, Error> {
        if data.len() > REPORT_MAX {
            let len = data.len();
            return Ok(Err(format!(
                "{name}: value of {len} bytes, the limit is {REPORT_MAX}"
            )));
        }
        let path = node::element(rid, handler);
        if !self.element_nodes.has_room_for(&path) {
            return Ok(Err(format!(
                "{name}: {NODES_MAX} element nodes are made, remove some"
            )));
        }
        self.element_nodes
            .nodes
            .insert(path.clone(), Some(hash(data)));
        match self.link.write(&path, data).await {
            Err(error) if !error.is_fatal() => {
                self.element_nodes.nodes.remove(&path);
                Ok(Err(format!("{name}: {error}")))
            }
            result => result.map(Ok),
        }
    }
}
