// SPDX-License-Identifier: Apache-2.0
//! The verbs of a daemon: one table entry each.

use std::os::fd::OwnedFd;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::message::Call;
use crate::typed::typed;
use crate::{
    ApiError, MAX_LINE, NoArgs, OPERATOR, Peer, SMALL_LINE, Signature, Size, Subscription,
};

/// The roles that may call a verb. [`OPERATOR`] always may.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Every peer that has a role.
    Any,
    /// Peers with one of these roles.
    Only(&'static [&'static str]),
}

impl Access {
    pub(crate) fn admits(self, peer: &Peer) -> bool {
        match self {
            Self::Any => !peer.roles.is_empty(),
            Self::Only(roles) => peer.has(OPERATOR) || roles.iter().any(|role| peer.has(role)),
        }
    }
}

/// The answer of a verb.
pub enum Reply {
    Value(Value),
    /// An answer with at most [`crate::MAX_FDS`] descriptors.
    WithFds(Value, Vec<OwnedFd>),
    /// An empty answer; from then on the connection carries only events.
    Events(Subscription),
}

fn json(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).expect("an answer's maps have text as keys")
}

/// The service of a daemon behind its socket. One thread per connection calls it.
pub trait Service: Sized + Send + Sync + 'static {
    /// Every verb; any other is a bad request.
    fn verbs() -> &'static [Verb<Self>];

    /// The peer's connection has ended, and none of its calls is under way.
    fn closed(&self, _peer: &Peer) {}
}

/// An entry of a daemon's table.
pub struct Verb<S: 'static> {
    pub name: &'static str,
    pub access: Access,
    size: Size,
    handler: &'static dyn Handler<S>,
}

impl<S> Verb<S> {
    /// A verb without a [`Signature`].
    pub const fn new(
        name: &'static str,
        access: Access,
        size: Size,
        handler: &'static dyn Handler<S>,
    ) -> Self {
        Self {
            name,
            access,
            size,
            handler,
        }
    }

    /// The entry of the verb `V`, whose types the function of the handler has.
    pub const fn of<V: Signature>(handler: &'static dyn Handler<S>) -> Self {
        Self::new(V::NAME, V::ACCESS, V::SIZE, handler)
    }

    /// Longest request line in bytes.
    pub fn max_line(&self) -> usize {
        match self.size {
            Size::Large => MAX_LINE,
            Size::Small | Size::Listing => SMALL_LINE,
        }
    }

    /// Parses the arguments, the text of a JSON object.
    fn prepare(&self, args: &str) -> Result<Work<S>, ApiError> {
        let call = self.handler.prepare(args);
        let call = call.map_err(|words| format!("{}: {words}", self.name));
        Ok(Work {
            is_listing: self.size == Size::Listing,
            call: call.map_err(ApiError::bad_request)?,
        })
    }
}

/// The number of a call, if the line has one, and the work that it asks for.
pub type Prepared<S> = (Option<u64>, Result<Work<S>, ApiError>);

/// Reads a line of `peer`. Checks verb, role and length before it looks at the arguments.
pub fn prepare<S: Service>(peer: &Peer, line: &[u8]) -> Prepared<S> {
    match Call::parse(line) {
        Ok(call) => (Some(call.id), prepare_call(peer, &call, line.len())),
        Err(error) => (None, Err(error)),
    }
}

fn prepare_call<S: Service>(
    peer: &Peer,
    call: &Call<'_>,
    bytes: usize,
) -> Result<Work<S>, ApiError> {
    let verb = S::verbs().iter().find(|verb| verb.name == call.verb);
    let Some(verb) = verb else {
        return Err(ApiError::unknown_verb(&call.verb));
    };
    if !verb.access.admits(peer) {
        let (name, uid, roles) = (verb.name, peer.uid, &peer.roles);
        let message = format!("{name}: uid {uid} has the roles {roles:?} only");
        return Err(ApiError::new("forbidden", message));
    }
    if bytes > verb.max_line() {
        return Err(too_long(verb.name, verb.max_line()));
    }
    verb.prepare(call.args())
}

pub(crate) fn too_long(what: &str, limit: usize) -> ApiError {
    ApiError::new("too-long", format!("{what}: longer than {limit} bytes"))
}

/// A call with its arguments parsed; it needs the line no more.
pub struct Work<S> {
    pub(crate) is_listing: bool,
    call: Ready<S>,
}

impl<S> Work<S> {
    /// Does the work with the descriptors that came with the line. Most verbs close them.
    pub fn run(self, service: &S, peer: &Peer, fds: Vec<OwnedFd>) -> Result<Reply, ApiError> {
        (self.call)(service, peer, fds)
    }
}

/// A verb's function with its arguments.
pub type Ready<S> = Box<dyn FnOnce(&S, &Peer, Vec<OwnedFd>) -> Result<Reply, ApiError>>;

/// Parses the arguments of a verb.
pub trait Handler<S>: Sync {
    fn prepare(&self, args: &str) -> Result<Ready<S>, String>;
}

/// A function with typed arguments and a typed answer. Their type bounds what a line can make the
/// daemon hold: it names every field (`deny_unknown_fields`) and bounds every sequence
/// ([`crate::at_most`]).
pub struct Typed<S, A, R, E>(pub fn(&S, &Peer, A) -> Result<R, E>);

impl<S, A, R, E> Handler<S> for Typed<S, A, R, E>
where
    S: 'static,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
    E: Into<ApiError> + 'static,
{
    fn prepare(&self, args: &str) -> Result<Ready<S>, String> {
        let (args, call) = (typed(args)?, self.0);
        Ok(Box::new(move |service, peer, _| {
            let answer = call(service, peer, args).map_err(E::into)?;
            Ok(Reply::Value(json(&answer)))
        }))
    }
}

/// As [`Typed`], for a function that takes the descriptors of the request and answers with some,
/// [`crate::MAX_FDS`] at most.
pub struct TypedWithFds<S, A, R, E>(pub WithFds<S, A, R, E>);

type WithFds<S, A, R, E> = fn(&S, &Peer, A, Vec<OwnedFd>) -> Result<(R, Vec<OwnedFd>), E>;

impl<S, A, R, E> Handler<S> for TypedWithFds<S, A, R, E>
where
    S: 'static,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
    E: Into<ApiError> + 'static,
{
    fn prepare(&self, args: &str) -> Result<Ready<S>, String> {
        let (args, call) = (typed(args)?, self.0);
        Ok(Box::new(move |service, peer, fds| {
            let (answer, fds) = call(service, peer, args, fds).map_err(E::into)?;
            Ok(Reply::WithFds(json(&answer), fds))
        }))
    }
}

/// A function that subscribes to events. Its verb has no arguments.
pub struct Subscribing<S>(pub fn(&S) -> Subscription);

impl<S: 'static> Handler<S> for Subscribing<S> {
    fn prepare(&self, args: &str) -> Result<Ready<S>, String> {
        let (_, subscribe): (NoArgs, _) = (typed(args)?, self.0);
        Ok(Box::new(move |service, _, _| {
            Ok(Reply::Events(subscribe(service)))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_for_a_peer_without_a_role() {
        let peer = |roles: &[&str]| Peer {
            uid: 7,
            pid: 0,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            connection: 0,
        };
        for access in [Access::Any, Access::Only(&[]), Access::Only(&["nova"])] {
            assert!(!access.admits(&peer(&[])), "{access:?}");
            assert!(access.admits(&peer(&[OPERATOR])), "{access:?}");
        }
        assert!(Access::Any.admits(&peer(&["agent"])));
        assert!(!Access::Only(&["nova"]).admits(&peer(&["agent"])));
        assert!(Access::Only(&["nova"]).admits(&peer(&["agent", "nova"])));
    }
}
