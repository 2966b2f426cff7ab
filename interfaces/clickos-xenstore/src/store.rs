// SPDX-License-Identifier: Apache-2.0
//! The store as a guest's threads see it: requests are waited for without blocking.
use crate::{Code, Error, Notify, Page, Request, RingClient, Tx, WatchEvent, names};
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::Poll;

/// A non-blocking connection to the store.
pub trait Store {
    /// Moves data in both directions; called often.
    fn pump(&mut self);
    /// Takes a request, which the next [`Store::pump`] sends; others may be under way.
    ///
    /// # Errors The error that broke the connection.
    fn submit(&mut self, request: &Request) -> Result<(), Error>;
    /// The next answer, in the order of the requests, once it is there.
    fn poll_reply(&mut self) -> Option<Result<Vec<u8>, Error>>;
    /// The next watch event.
    ///
    /// # Errors
    /// `EventsLost` once after some were lost; otherwise what broke the connection.
    fn poll_event(&mut self) -> Result<Option<WatchEvent>, Error>;
    /// True if a watch event of this path waits.
    fn has_event(&self, path: &str) -> bool;
    /// Drops the watch event of this path; true if one waited.
    fn drop_event(&mut self, path: &str) -> bool;
}

impl<P: Page, N: Notify> Store for RingClient<P, N> {
    fn pump(&mut self) {
        RingClient::pump(self);
    }
    fn submit(&mut self, request: &Request) -> Result<(), Error> {
        RingClient::submit(self, request)
    }
    fn poll_reply(&mut self) -> Option<Result<Vec<u8>, Error>> {
        RingClient::poll_reply(self)
    }
    fn poll_event(&mut self) -> Result<Option<WatchEvent>, Error> {
        RingClient::poll_event(self)
    }
    fn has_event(&self, path: &str) -> bool {
        RingClient::has_event(self, path)
    }
    fn drop_event(&mut self, path: &str) -> bool {
        RingClient::drop_event(self, path)
    }
}

/// The store's requests as asynchronous functions.
pub struct StoreConnection<S> {
    store: Rc<RefCell<S>>,
    /// The events of this link's watches.
    token: String,
}

impl<S: Store> StoreConnection<S> {
    /// Requests over `store`, whose watches bear `token`.
    pub fn new(store: Rc<RefCell<S>>, token: &str) -> Self {
        let token = token.into();
        Self { store, token }
    }

    /// Sends requests at once and waits for all their answers.
    async fn call_all(&self, requests: Vec<Request>) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
        for request in &requests {
            self.store.borrow_mut().submit(request)?;
        }
        self.store.borrow_mut().pump();
        let mut replies = Vec::new();
        poll_fn(|_| {
            let mut store = self.store.borrow_mut();
            replies.extend(core::iter::from_fn(|| store.poll_reply()));
            match replies.len() < requests.len() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
        Ok(replies)
    }

    async fn call(&self, request: Request) -> Result<Vec<u8>, Error> {
        let replies = self.call_all([request].into()).await?;
        replies.into_iter().next().expect("one for each request")
    }

    /// The next watch event, `None` when some were lost.
    pub async fn event(&self) -> Result<Option<WatchEvent>, Error> {
        poll_fn(|_| match self.store.borrow_mut().poll_event() {
            Ok(None) => Poll::Pending,
            Ok(event) => Poll::Ready(Ok(event)),
            Err(Error::EventsLost) => Poll::Ready(Ok(None)),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await
    }

    /// True if an event of this path waits to be taken.
    pub fn has_event(&self, path: &str) -> bool {
        self.store.borrow().has_event(path)
    }

    /// Drops the event of this path, whose change the caller is going to read; true if one waited.
    pub fn drop_event(&self, path: &str) -> bool {
        self.store.borrow_mut().drop_event(path)
    }

    /// Watches a node and all below it; one event comes at once, if it was not watched before.
    pub async fn watch(&self, path: &str) -> Result<(), Error> {
        match self.call(Request::watch(path, &self.token)?).await {
            Err(error) if error.is(Code::Exists) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Makes a node of no value, watches it, and gives the children it had before: all at once.
    pub async fn adopt(&self, path: &str) -> Result<Vec<String>, Error> {
        let requests = [
            Request::write(Tx::NONE, path, b"")?,
            Request::watch(path, &self.token)?,
            Request::directory(Tx::NONE, path)?,
        ];
        let mut replies = self.call_all(requests.into()).await?;
        let children = replies.pop().expect("one for each request");
        replies.into_iter().try_for_each(|reply| reply.map(drop))?;
        names_of(children)
    }

    /// Reads a value; `None` if it is missing or kept from us.
    pub async fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        none_if_missing(self.call(Request::read(Tx::NONE, path)?).await)
    }

    /// Reads values, all at once.
    pub async fn read_all(&self, paths: &[String]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let requests = paths.iter().map(|path| Request::read(Tx::NONE, path));
        let replies = self.call_all(requests.collect::<Result<_, _>>()?).await?;
        replies.into_iter().map(none_if_missing).collect()
    }

    /// Reads texts, all at once; what is no text counts as missing.
    pub async fn texts(&self, paths: &[String]) -> Result<Vec<Option<String>>, Error> {
        let values = self.read_all(paths).await?.into_iter();
        let text = |value: Option<Vec<u8>>| value.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(values.map(text).collect())
    }

    /// Reads values and then the names of a node's children, all at once; no names if there are
    /// more of them than a message takes.
    pub async fn read_and_list(
        &self,
        paths: &[String],
        folder: &str,
    ) -> Result<(Vec<Option<Vec<u8>>>, Option<Vec<String>>), Error> {
        let requests = paths.iter().map(|path| Request::read(Tx::NONE, path));
        let requests = requests.chain([Request::directory(Tx::NONE, folder)]);
        let mut replies = self.call_all(requests.collect::<Result<_, _>>()?).await?;
        let children = replies.pop().expect("one for each request");
        let values: Result<_, _> = replies.into_iter().map(none_if_missing).collect();
        let names = match children {
            Err(error) if error.is(Code::TooBig) => None,
            children => Some(names_of(children)?),
        };
        Ok((values?, names))
    }

    /// The children's names.
    pub async fn list(&self, path: &str) -> Result<Vec<String>, Error> {
        names_of(self.call(Request::directory(Tx::NONE, path)?).await)
    }

    /// The names of the children of several nodes, all at once.
    pub async fn list_all(&self, paths: &[&str]) -> Result<Vec<Vec<String>>, Error> {
        let requests = paths.iter().map(|path| Request::directory(Tx::NONE, path));
        let replies = self.call_all(requests.collect::<Result<_, _>>()?).await?;
        replies.into_iter().map(names_of).collect()
    }

    /// Writes a value.
    pub async fn write(&self, path: &str, value: &[u8]) -> Result<(), Error> {
        self.call(Request::write(Tx::NONE, path, value)?)
            .await
            .map(drop)
    }

    /// Writes values in their order, all at once; one that the store refuses keeps none of the
    /// others from being written.
    pub async fn write_all(&self, values: &[(String, &[u8])]) -> Result<(), Error> {
        let request = |(path, value): &(String, &[u8])| Request::write(Tx::NONE, path, value);
        let requests = values.iter().map(request).collect::<Result<_, _>>()?;
        let replies = self.call_all(requests).await?;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    /// Removes a node and all below it.
    pub async fn remove(&self, path: &str) -> Result<(), Error> {
        none_if_missing(self.call(Request::rm(Tx::NONE, path)?).await).map(drop)
    }
}

/// A node that is missing has no children.
fn names_of(reply: Result<Vec<u8>, Error>) -> Result<Vec<String>, Error> {
    none_if_missing(reply)?.map_or_else(|| Ok(Vec::new()), |bytes| names(&bytes))
}

/// A node that is missing or that the toolstack keeps from us is no value.
fn none_if_missing<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(error) if error.is(Code::NoEntry) || error.is(Code::Access) => Ok(None),
        result => result.map(Some),
    }
}
