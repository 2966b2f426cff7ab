// SPDX-License-Identifier: Apache-2.0
//! Transactions: all of several changes, or none.
use super::Client;
use crate::error::{Code, Error};
use crate::perms::Perm;
use crate::request::{Request, Tx};

/// Tries of a transaction that other writers get in the way of.
const TRIES: u32 = 100;

impl Client {
    /// Runs `body` in a transaction and commits it; runs it again while others get in the way.
    ///
    /// # Errors
    /// The first error of `body` (nothing is written then), or `EAGAIN` after 100 tries.
    pub fn transaction<T>(
        &mut self,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..TRIES {
            let tx = Tx::from_reply(&self.call(&Request::transaction_start())?)?;
            let result = body(&mut Transaction { client: self, tx });
            let ended = self.call(&Request::transaction_end(tx, result.is_ok()));
            match (result, ended) {
                (Err(error), _) => return Err(error),
                (Ok(_), Err(error)) if error.is(Code::Again) => {}
                (Ok(_), Err(error)) => return Err(error),
                (Ok(value), Ok(_)) => return Ok(value),
            }
        }
        Err(Error::Store {
            code: Code::Again,
            path: "transaction".into(),
        })
    }
}

/// The requests of [`Client`] within one transaction.
pub struct Transaction<'a> {
    client: &'a mut Client,
    tx: Tx,
}

impl Transaction<'_> {
    /// As [`Client::read`].
    pub fn read(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        self.client.read(self.tx, path)
    }

    /// As [`Client::read_opt`].
    pub fn read_opt(&mut self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        self.client.read_opt(self.tx, path)
    }

    /// As [`Client::write`].
    pub fn write(&mut self, path: &str, value: &[u8]) -> Result<(), Error> {
        self.client.write(self.tx, path, value)
    }

    /// As [`Client::mkdir`].
    pub fn mkdir(&mut self, path: &str) -> Result<(), Error> {
        self.client.mkdir(self.tx, path)
    }

    /// As [`Client::rm`].
    pub fn rm(&mut self, path: &str) -> Result<(), Error> {
        self.client.rm(self.tx, path)
    }

    /// As [`Client::directory`].
    pub fn directory(&mut self, path: &str) -> Result<Vec<String>, Error> {
        self.client.directory(self.tx, path)
    }

    /// As [`Client::set_perms`].
    pub fn set_perms(&mut self, path: &str, perms: &[Perm]) -> Result<(), Error> {
        self.client.set_perms(self.tx, path, perms)
    }

    /// For requests of [`Transaction::all`].
    pub fn tx(&self) -> Tx {
        self.tx
    }

    /// Makes changes, requests of this transaction, at once.
    ///
    /// # Errors
    /// As [`Client::do_all`].
    pub fn all(&mut self, changes: &[Request]) -> Result<(), Error> {
        self.client.do_all(changes)
    }
}
