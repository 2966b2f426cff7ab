// SPDX-License-Identifier: Apache-2.0
//! What a connection occupies in the store.
//!
//! xenstored bounds this for guests only. Each client of its socket counts as domain 0, which has no quota.
use std::collections::VecDeque;

use xenstore::{Code, Header, Kind};

/// Watches of a connection: valed has one for each port of 64 switches with 256 ports, and for each preconnected vif.
pub const MAX_WATCHES: usize = 20_000;
/// Bytes of a watch, which are its path and its token: the name of a port.
pub const WATCH_BYTES: u32 = 512;
/// Open transactions of a connection, as xenstored allows a guest.
pub const MAX_TRANSACTIONS: usize = 10;
/// Requests within the open transactions together, since the store notes each node that they name.
pub const MAX_STEPS: usize = 1024;

/// Counts by the store's answers, which come in the order of the requests.
#[derive(Default)]
pub struct Account {
    /// The types of the requests without an answer.
    asked: VecDeque<u32>,
    watches: usize,
    transactions: usize,
    steps: usize,
}

impl Account {
    /// Notes a request on its way to the store.
    ///
    /// # Errors
    /// With xenstored's code: `E2BIG` for a watch, `ENOSPC` for a transaction that is too much.
    pub fn ask(&mut self, header: Header) -> Result<(), Code> {
        let is = |kind: Kind| header.kind == kind as u32;
        if header.tx_id != 0 && !is(Kind::TransactionEnd) {
            take(&mut self.steps, MAX_STEPS, Code::NoSpace)?;
        }
        if is(Kind::Watch) && header.len > WATCH_BYTES {
            return Err(Code::TooBig);
        }
        if is(Kind::Watch) {
            take(&mut self.watches, MAX_WATCHES, Code::TooBig)?;
        }
        if is(Kind::TransactionStart) {
            take(&mut self.transactions, MAX_TRANSACTIONS, Code::NoSpace)?;
        }
        self.asked.push_back(header.kind);
        Ok(())
    }

    /// Notes the answer to the first request that has none.
    pub fn answered(&mut self, kind: u32, payload: &[u8]) {
        let Some(asked) = self.asked.pop_front() else {
            return;
        };
        let is = |kind: Kind| asked == kind as u32;
        let has_failed = kind == Kind::Error as u32;
        // A transaction that has to be repeated is over, too.
        let is_over = !has_failed || payload == b"EAGAIN\0";
        if is(Kind::Watch) && has_failed || is(Kind::Unwatch) && !has_failed {
            self.watches = self.watches.saturating_sub(1);
        }
        if is(Kind::TransactionStart) && has_failed || is(Kind::TransactionEnd) && is_over {
            self.transactions = self.transactions.saturating_sub(1);
        }
        if self.transactions == 0 {
            self.steps = 0;
        }
    }
}

/// Counts one more, up to `most`.
fn take(count: &mut usize, most: usize, code: Code) -> Result<(), Code> {
    if *count == most {
        return Err(code);
    }
    *count += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: u32 = Kind::Read as u32;
    const FAILED: u32 = Kind::Error as u32;

    fn request(kind: Kind, tx_id: u32) -> Header {
        Header {
            kind: kind as u32,
            req_id: 1,
            tx_id,
            len: WATCH_BYTES,
        }
    }

    /// A request and its answer.
    fn done(account: &mut Account, kind: Kind, answer: (u32, &[u8])) -> Result<(), Code> {
        account.ask(request(kind, 0))?;
        account.answered(answer.0, answer.1);
        Ok(())
    }

    #[test]
    fn watches_have_a_bound_that_only_the_store_frees() {
        let mut account = Account::default();
        for _ in 0..MAX_WATCHES {
            done(&mut account, Kind::Watch, (FAILED, b"EEXIST\0")).unwrap();
            done(&mut account, Kind::Watch, (OK, b"OK\0")).unwrap();
        }
        let one_more = |account: &mut Account| account.ask(request(Kind::Watch, 0));
        assert_eq!(one_more(&mut account), Err(Code::TooBig));
        done(&mut account, Kind::Unwatch, (FAILED, b"ENOENT\0")).unwrap();
        assert_eq!(one_more(&mut account), Err(Code::TooBig));
        done(&mut account, Kind::Unwatch, (OK, b"OK\0")).unwrap();
        assert_eq!(one_more(&mut account), Ok(()));
        assert_eq!(
            one_more(&mut account),
            Err(Code::TooBig),
            "it is on its way"
        );
    }

    #[test]
    fn a_watch_has_few_bytes() {
        let long = Header {
            len: WATCH_BYTES + 1,
            ..request(Kind::Watch, 0)
        };
        assert_eq!(Account::default().ask(long), Err(Code::TooBig));
    }

    #[test]
    fn transactions_have_a_bound() {
        let mut account = Account::default();
        for _ in 0..MAX_TRANSACTIONS {
            done(&mut account, Kind::TransactionStart, (OK, b"7\0")).unwrap();
        }
        let start = request(Kind::TransactionStart, 0);
        assert_eq!(account.ask(start), Err(Code::NoSpace));
        done(&mut account, Kind::TransactionEnd, (FAILED, b"ENOENT\0")).unwrap();
        assert_eq!(account.ask(start), Err(Code::NoSpace));
        done(&mut account, Kind::TransactionEnd, (FAILED, b"EAGAIN\0")).unwrap();
        assert_eq!(account.ask(start), Ok(()));
    }

    #[test]
    fn the_requests_of_open_transactions_have_a_bound() {
        let mut account = Account::default();
        for _ in 0..2 {
            done(&mut account, Kind::TransactionStart, (OK, b"7\0")).unwrap();
            for _ in 0..MAX_STEPS {
                account.ask(request(Kind::Read, 7)).unwrap();
                account.answered(FAILED, b"ENOENT\0");
            }
            assert_eq!(account.ask(request(Kind::Read, 7)), Err(Code::NoSpace));
            account.ask(request(Kind::TransactionEnd, 7)).unwrap();
            account.answered(OK, b"OK\0");
        }
    }
}
