// SPDX-License-Identifier: Apache-2.0
//! Several requests at once: they take the time of one.
use super::{Client, none_if_missing};
use crate::error::Error;
use crate::request::{Request, Tx};
use crate::wire::Kind;

impl Client {
    /// Sends requests without waiting for the answers in between, in order; gives what the store
    /// answered each of them.
    ///
    /// # Errors
    /// A broken connection only: a refused request does not keep the later ones from being done.
    pub fn call_all(&mut self, requests: &[Request]) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
        let mut answers = Vec::with_capacity(requests.len());
        for window in requests.chunks(self.stream.window()) {
            let first = self.send(window)?;
            for (request, req_id) in window.iter().zip(first..) {
                match self.answer(request, req_id) {
                    Err(error) if error.is_fatal() => return Err(error),
                    answer => answers.push(answer),
                }
            }
        }
        Ok(answers)
    }

    /// Reads values, `None` where there is no such node.
    ///
    /// # Errors
    /// The first but a missing node.
    pub fn read_all(&mut self, tx: Tx, paths: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let requests = paths.iter().map(|path| Request::read(tx, path));
        let answers = self.call_all(&requests.collect::<Result<Vec<_>, _>>()?)?;
        answers.into_iter().map(none_if_missing).collect()
    }

    /// Makes changes, one after the other. A missing node is no error.
    ///
    /// # Errors
    /// The first that the store refused; the others are made all the same.
    pub fn do_all(&mut self, changes: &[Request]) -> Result<(), Error> {
        let answers = self.call_all(changes)?;
        let mut done = changes.iter().zip(answers);
        done.try_for_each(|(change, answer)| match change.kind {
            Kind::Rm => none_if_missing(answer).map(drop),
            _ => answer.map(drop),
        })
    }
}
