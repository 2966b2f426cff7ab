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
    /// A read, with its parameter, and how many copies of the element answer together.
    Read(String, String, usize),
    /// Writes: all of them or, on an error, none.
    Write(Vec<(String, Vec<u8>)>),
    /// Writes that are checked, and wait under this number until they are settled.
    Prepare(u64, Vec<(String, Vec<u8>)>),
    /// The writes that wait under this number are made, or dropped.
    Settle(u64, bool),
    /// What the handler of this name is.
    Info(String),
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What was read.
    Text(String),
    /// The writes took place, or wait.
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
        copies: usize,
    ) -> Option<Result<String, HandlerError>> {
        let (threads, home) = self.thread_of(name)?;
        let call = Call::Read(name.to_string(), param.to_string(), copies);
        let answer = threads.call(home, call, &mut |call| self.answer(call));
        Some(answer.map(|answer| match answer {
            Answer::Text(text) => text,
            Answer::Written | Answer::Info(_) => String::new(),
        }))
    }

    /// Makes a call of another thread.
    pub(crate) fn answer(&mut self, call: Call) -> Answered {
        match call {
            Call::Read(name, param, copies) => {
                let text = self.read_copy(&name, &param, copies);
                text.map(Answer::Text)
            }
            Call::Info(name) => self.info(&name).map(Answer::Info),
            Call::Write(writes) => {
                let written = self.write_own(&borrowed(&writes));
                written.map(|()| Answer::Written)
            }
            Call::Prepare(number, writes) => {
                let waits = self.let_wait(number, &writes);
                waits.map(|()| Answer::Written)
            }
            Call::Settle(number, made) => {
                self.settle(number, made);
                Ok(Answer::Written)
            }
        }
    }
}

/// Writes as the engine takes them.
pub(crate) fn borrowed(writes: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    writes.iter().map(|(n, v)| (n.as_str(), &**v)).collect()
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
