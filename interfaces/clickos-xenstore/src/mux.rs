// SPDX-License-Identifier: Apache-2.0
//! One connection to the store for several threads of a guest.
//!
//! Each user gets the answers to its own requests, in their order, as if the connection were its
//! own. Watch events go to the user whose token they bear. After a resume the toolstack has made a
//! new connection, of which the store knows nothing. Then [`Mux::reconnect`] sets all watches again
//! and repeats the requests under way. Its users only see that all they watch may have changed.
use crate::events::Events;
use crate::{Error, Request, Store, StoreConnection, WatchEvent};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

/// Watch events kept for one user.
const EVENTS_MAX: usize = 1024;

/// The shared connection.
pub struct Mux<S> {
    store: S,
    users: Vec<User>,
    /// Requests without an answer, in their order.
    under_way: VecDeque<(Asker, Request)>,
    broken: Option<Error>,
}

/// The user that waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    User(usize),
    /// A watch that is set again; no user waits for the answer.
    Own,
}

struct User {
    token: String,
    /// Requests without an answer.
    waiting: usize,
    replies: VecDeque<Result<Vec<u8>, Error>>,
    events: Events<EVENTS_MAX>,
    watches: Vec<Request>,
}

impl<S: Store> Mux<S> {
    /// Shares this connection.
    pub fn new(store: S) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            store,
            users: Vec::new(),
            under_way: VecDeque::new(),
            broken: None,
        }))
    }

    /// A user's connection; all its watches bear `token`, which no other user has.
    pub fn handle(mux: &Rc<RefCell<Self>>, token: &str) -> Handle<S> {
        let mut shared = mux.borrow_mut();
        shared.users.push(User {
            token: token.into(),
            waiting: 0,
            replies: VecDeque::new(),
            events: Events::default(),
            watches: Vec::new(),
        });
        let user = shared.users.len() - 1;
        let mux = Rc::clone(mux);
        Handle { mux, user }
    }

    /// As [`Mux::handle`], with the requests as asynchronous functions.
    pub fn link(mux: &Rc<RefCell<Self>>, token: &str) -> StoreConnection<Handle<S>> {
        let handle = Rc::new(RefCell::new(Self::handle(mux, token)));
        StoreConnection::new(handle, token)
    }

    /// True if an answer or an event waits for its user, so that no user should sleep. A user that
    /// waits for an answer takes no events, and users of a broken connection may be gone.
    pub fn has_news(&self) -> bool {
        let listens = |user: &User| user.waiting == 0 && !user.events.is_empty();
        let has = |user: &User| !user.replies.is_empty() || listens(user);
        self.broken.is_none() && self.users.iter().any(has)
    }

    /// True if no request is under way: nothing is lost if the connection is replaced now.
    pub fn is_quiet(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The connection itself, for last words.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Continues with a new connection after a resume.
    pub fn reconnect(&mut self, store: S) {
        self.store = store;
        self.broken = None;
        let watches = self.users.iter().flat_map(|user| &user.watches).cloned();
        let mut again: VecDeque<_> = watches.map(|watch| (Asker::Own, watch)).collect();
        let lost = core::mem::take(&mut self.under_way).into_iter();
        again.extend(lost.filter(|(asker, _)| *asker != Asker::Own));
        for (asker, request) in again {
            self.send(asker, request);
        }
        self.pump();
    }

    fn send(&mut self, asker: Asker, request: Request) {
        let sent = self.store.submit(&request);
        self.under_way.push_back((asker, request));
        if let Err(error) = sent {
            self.fail(&error);
        }
    }

    fn pump(&mut self) {
        self.store.pump();
        while !self.under_way.is_empty() {
            let Some(reply) = self.store.poll_reply() else {
                break;
            };
            self.answered(reply);
        }
        self.take_events();
    }

    fn answered(&mut self, reply: Result<Vec<u8>, Error>) {
        if let Some((Asker::User(user), request)) = self.under_way.pop_front() {
            self.users[user].answered(request, reply);
        }
    }

    fn fail(&mut self, error: &Error) {
        while !self.under_way.is_empty() {
            self.answered(Err(error.clone()));
        }
        self.broken = Some(error.clone());
    }

    fn take_events(&mut self) {
        loop {
            match self.store.poll_event() {
                Ok(None) => return,
                Ok(Some(event)) => self.deliver(event),
                Err(Error::EventsLost) => self.users.iter_mut().for_each(|u| u.events.lose()),
                Err(error) => return self.broken = Some(error),
            }
        }
    }

    fn deliver(&mut self, event: WatchEvent) {
        if let Some(user) = self.users.iter_mut().find(|u| u.token == event.token) {
            user.events.keep(event);
        }
    }
}

impl User {
    fn answered(&mut self, request: Request, reply: Result<Vec<u8>, Error>) {
        self.waiting -= 1;
        if request.is_watch() && reply.is_ok() && !self.watches.contains(&request) {
            self.watches.push(request);
        }
        self.replies.push_back(reply);
    }
}

/// One user's view of a shared connection.
pub struct Handle<S> {
    mux: Rc<RefCell<Mux<S>>>,
    user: usize,
}

impl<S: Store> Store for Handle<S> {
    fn pump(&mut self) {
        self.mux.borrow_mut().pump();
    }

    fn submit(&mut self, request: &Request) -> Result<(), Error> {
        let mut mux = self.mux.borrow_mut();
        if let Some(error) = &mux.broken {
            return Err(error.clone());
        }
        mux.users[self.user].waiting += 1;
        mux.send(Asker::User(self.user), request.clone());
        Ok(())
    }

    fn poll_reply(&mut self) -> Option<Result<Vec<u8>, Error>> {
        self.mux.borrow_mut().users[self.user].replies.pop_front()
    }

    fn poll_event(&mut self) -> Result<Option<WatchEvent>, Error> {
        let mut mux = self.mux.borrow_mut();
        let event = mux.users[self.user].events.take()?;
        match (&event, &mux.broken) {
            (None, Some(error)) => Err(error.clone()),
            _ => Ok(event),
        }
    }

    fn has_event(&self, path: &str) -> bool {
        self.mux.borrow().users[self.user].events.has(path)
    }

    fn drop_event(&mut self, path: &str) -> bool {
        self.mux.borrow_mut().users[self.user].events.drop_of(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tx;
    use alloc::string::ToString;
    use alloc::vec;

    /// A connection that answers each request with its path, when told to.
    #[derive(Default)]
    struct Echo {
        sent: Rc<RefCell<Vec<String>>>,
        replies: VecDeque<Vec<u8>>,
        answers: bool,
        events: VecDeque<Result<WatchEvent, Error>>,
    }

    impl Store for Echo {
        fn pump(&mut self) {}
        fn submit(&mut self, request: &Request) -> Result<(), Error> {
            self.sent.borrow_mut().push(request.path().to_string());
            self.replies.push_back(request.path().into());
            Ok(())
        }
        fn poll_reply(&mut self) -> Option<Result<Vec<u8>, Error>> {
            let ready = self.answers.then(|| self.replies.pop_front());
            ready.flatten().map(Ok)
        }
        fn poll_event(&mut self) -> Result<Option<WatchEvent>, Error> {
            self.events.pop_front().transpose()
        }
        fn has_event(&self, _: &str) -> bool {
            false
        }
        fn drop_event(&mut self, _: &str) -> bool {
            false
        }
    }

    fn echo(answers: bool) -> (Echo, Rc<RefCell<Vec<String>>>) {
        let echo = Echo {
            answers,
            ..Echo::default()
        };
        let sent = Rc::clone(&echo.sent);
        (echo, sent)
    }

    fn read(path: &str) -> Request {
        Request::read(Tx::NONE, path).unwrap()
    }

    fn event(token: &str) -> WatchEvent {
        let (path, token) = ("p".into(), token.into());
        WatchEvent { path, token }
    }

    #[test]
    fn users_get_their_own_answers_in_their_order() {
        let (store, sent) = echo(false);
        let mux = Mux::new(store);
        let mut users: Vec<_> = ["a", "b"].map(|t| Mux::handle(&mux, t)).into();
        for (user, path) in [(0, "x"), (1, "y"), (0, "z")] {
            users[user].submit(&read(path)).unwrap();
        }
        assert_eq!(*sent.borrow(), ["x", "y", "z"]);
        mux.borrow_mut().store_mut().answers = true;
        users[1].pump();
        let answer = |path: &str| Some(Ok(path.into()));
        assert_eq!(users[0].poll_reply(), answer("x"));
        assert_eq!(users[0].poll_reply(), answer("z"));
        assert_eq!(users[0].poll_reply(), None);
        assert_eq!(users[1].poll_reply(), answer("y"));
    }

    #[test]
    fn events_go_to_the_token_and_their_loss_to_all() {
        let (mut store, _) = echo(true);
        store.events = vec![Ok(event("b")), Ok(event("nobody"))].into();
        let mux = Mux::new(store);
        let (mut a, mut b) = (Mux::handle(&mux, "a"), Mux::handle(&mux, "b"));
        a.pump();
        assert_eq!(a.poll_event(), Ok(None));
        assert_eq!(b.poll_event(), Ok(Some(event("b"))));
        mux.borrow_mut().store_mut().events = vec![Err(Error::EventsLost)].into();
        a.pump();
        for user in [&mut a, &mut b] {
            assert_eq!(user.poll_event(), Err(Error::EventsLost));
            assert_eq!(user.poll_event(), Ok(None));
        }
    }

    #[test]
    fn a_user_drops_its_own_events_of_a_path_only() {
        let (mut store, _) = echo(true);
        store.events = vec![Ok(event("a")), Ok(event("b"))].into();
        let mux = Mux::new(store);
        let (mut a, mut b) = (Mux::handle(&mux, "a"), Mux::handle(&mux, "b"));
        a.pump();
        assert!(a.has_event("p") && !a.has_event("pp"));
        assert!(!a.drop_event("pp") && a.drop_event("p") && !a.drop_event("p"));
        assert!(!a.has_event("p"));
        assert_eq!(a.poll_event(), Ok(None));
        assert_eq!(b.poll_event(), Ok(Some(event("b"))));
    }

    #[test]
    fn a_reconnect_sets_watches_again_and_repeats_the_request_under_way() {
        let mux = Mux::new(echo(true).0);
        let mut user = Mux::handle(&mux, "a");
        user.submit(&Request::watch("w", "a").unwrap()).unwrap();
        user.pump();
        user.poll_reply().unwrap().unwrap();
        mux.borrow_mut().store_mut().answers = false;
        user.submit(&read("x")).unwrap();
        let (store, sent) = echo(true);
        mux.borrow_mut().reconnect(store);
        assert_eq!(*sent.borrow(), ["w", "x"]);
        assert_eq!(user.poll_reply(), Some(Ok(b"x".to_vec())));
        assert_eq!(user.poll_reply(), None);
    }

    #[test]
    fn nobody_sleeps_on_news_and_a_quiet_connection_can_be_replaced() {
        let mux = Mux::new(echo(false).0);
        let mut user = Mux::handle(&mux, "a");
        let state = || (mux.borrow().has_news(), mux.borrow().is_quiet());
        mux.borrow_mut().store_mut().events = vec![Ok(event("a"))].into();
        user.pump();
        assert_eq!(state(), (true, true));
        user.submit(&read("x")).unwrap();
        assert_eq!(state(), (false, false));
        mux.borrow_mut().store_mut().answers = true;
        user.pump();
        assert_eq!(state(), (true, true));
        let broken = vec![Ok(event("a")), Err(Error::Protocol("bad"))];
        mux.borrow_mut().store_mut().events = broken.into();
        user.pump();
        assert_eq!(state(), (false, true));
    }

    #[test]
    fn a_broken_connection_is_told_to_everybody() {
        let (mut store, _) = echo(true);
        store.events = vec![Err(Error::Protocol("bad"))].into();
        let mux = Mux::new(store);
        let mut user = Mux::handle(&mux, "a");
        user.pump();
        assert!(user.submit(&read("x")).unwrap_err().is_fatal());
        assert!(user.poll_event().unwrap_err().is_fatal());
    }
}
