// SPDX-License-Identifier: Apache-2.0
//! Elements of the configuration that other threads run: calls of their handlers go there.
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::context::Context;
use crate::error::HandlerError;
use crate::handler_info::HandlerInfo;

/// A call of handlers of one thread's elements.
#[derive(Clone, Debug)]
pub enum Call {
    /// A read, with its parameter.
    Read(String, String),
    /// Writes: all of them or, on an error, none.
    Write(Vec<(String, Vec<u8>)>),
    /// Whether writes would be made now; none is.
    Check(Vec<(String, Vec<u8>)>),
    /// What the handler of this name is.
    Info(String),
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What was read.
    Text(String),
    /// The writes took place, or would.
    Written,
    /// The handler.
    Info(HandlerInfo),
}

/// The result of a call.
pub type Answered = Result<Answer, HandlerError>;

/// All threads of a configuration, as one of them sees them.
pub trait Threads {
    /// How many there are.
    fn count(&self) -> usize;
    /// The number of the thread that runs an element.
    fn home(&self, element: usize) -> usize;
    /// This thread's number; `None` if it runs the elements of all.
    fn own(&self) -> Option<usize>;
    /// Has another thread make a call. While this one waits, `serve` makes the calls of others.
    ///
    /// # Errors
    /// The call's, or that the thread does not answer.
    fn call(&self, thread: usize, call: Call, serve: &mut dyn FnMut(Call) -> Answered) -> Answered;
}

/// All threads, and the number of the one that runs an element.
pub(crate) type Home = (Rc<dyn Threads>, usize);

impl Engine {
    /// The number of the thread that runs an element.
    pub(crate) fn home_thread(&self, index: usize) -> String {
        let home = self.threads.as_ref().map_or(0, |t| t.home(index));
        home.to_string()
    }

    /// The thread that has the element of a handler's full name, if that is another one.
    pub(crate) fn thread_of(&self, handler: &str) -> Option<Home> {
        let threads = self.threads.as_ref()?;
        let own = threads.own()?;
        let (element, _) = handler.rsplit_once('.')?;
        let index = self.slots.iter().position(|s| s.name == element)?;
        let home = threads.home(index);
        (home != own).then(|| (Rc::clone(threads), home))
    }

    pub(crate) fn read_elsewhere(
        &mut self,
        name: &str,
        param: &str,
    ) -> Option<Result<String, HandlerError>> {
        let (threads, home) = self.thread_of(name)?;
        let call = Call::Read(name.to_string(), param.to_string());
        let answer = threads.call(home, call, &mut |call| self.answer(call));
        Some(answer.map(|answer| match answer {
            Answer::Text(text) => text,
            Answer::Written | Answer::Info(_) => String::new(),
        }))
    }

    /// The other thread that has the elements of all these handlers; none if they are this thread's.
    ///
    /// # Errors
    /// Writes of several threads could not be all or none.
    pub(crate) fn thread_of_all<'n>(
        &self,
        handlers: impl Iterator<Item = &'n str>,
    ) -> Result<Option<Home>, HandlerError> {
        if self.threads.is_none() {
            return Ok(None);
        }
        let mut handlers = handlers;
        let Some(first) = handlers.next() else {
            return Ok(None);
        };
        let found = self.thread_of(first);
        let home = found.as_ref().map(|(_, home)| *home);
        let is_other = |name: &&str| self.thread_of(name).map(|(_, home)| home) != home;
        match handlers.find(is_other) {
            Some(other) => Err(of_several(if home.is_none() { first } else { other })),
            None => Ok(found),
        }
    }

    /// Writes that belong to one other thread go there.
    pub(crate) fn write_elsewhere(
        &mut self,
        writes: &[(&str, &[u8])],
    ) -> Option<Result<(), HandlerError>> {
        let (threads, home) = match self.thread_of_all(writes.iter().map(|(name, _)| *name)) {
            Ok(found) => found?,
            Err(error) => return Some(Err(error)),
        };
        let owned = writes.iter().map(|(n, v)| (n.to_string(), v.to_vec()));
        let call = Call::Write(owned.collect());
        let answer = threads.call(home, call, &mut |call| self.answer(call));
        Some(answer.map(|_| ()))
    }

    /// Makes a call of another thread.
    pub(crate) fn answer(&mut self, call: Call) -> Answered {
        match call {
            Call::Read(name, param) => self.read_one(&name, &param).map(Answer::Text),
            Call::Info(name) => self.info(&name).map(Answer::Info),
            Call::Write(writes) => {
                let writes: Vec<_> = writes.iter().map(|(n, v)| (n.as_str(), &**v)).collect();
                self.write_one(&writes).map(|()| Answer::Written)
            }
            Call::Check(writes) => self.check_own(&writes).map(|()| Answer::Written),
        }
    }
}

fn of_several(name: &str) -> HandlerError {
    let message = "the writes of one call belong to elements of several threads; write them in one call for each thread";
    HandlerError::rejected(message).named(name)
}

impl Context<'_> {
    /// How many threads the program has.
    pub fn threads(&self) -> usize {
        self.engine.threads.as_ref().map_or(1, |t| t.count())
    }

    /// The number of the thread that runs the element.
    pub fn thread(&self) -> usize {
        let threads = self.engine.threads.as_ref();
        threads.map_or(0, |t| t.home(self.me))
    }
}
