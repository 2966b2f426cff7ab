// SPDX-License-Identifier: Apache-2.0
//! Handler requests of programs, as bytes and as a checked value.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most writes of one request.
pub const WRITES_MAX: usize = 1024;

/// A handler's name and the value for it.
pub type Write<'a> = (&'a str, &'a [u8]);

/// A handler request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Calls a read handler.
    Read { name: &'a str, param: &'a str },
    /// Calls write handlers, all or none.
    Write(Vec<Write<'a>>),
    /// Lists the handlers.
    Handlers,
}

impl<'a> Command<'a> {
    /// Reads a request.
    ///
    /// # Errors The fault.
    pub fn parse(request: &'a [u8]) -> Result<Self, String> {
        let (verb, rest) = cut(request, b' ').unwrap_or((request, b""));
        match verb {
            b"handlers" if rest.is_empty() => Ok(Command::Handlers),
            b"read" => {
                let (name, param) = cut(rest, b' ').unwrap_or((rest, b""));
                Ok(Command::Read {
                    name: text(name)?,
                    param: text(param)?,
                })
            }
            b"write" => {
                let (name, value) = cut(rest, b' ').unwrap_or((rest, b""));
                Ok(Command::Write([(text(name)?, value)].into()))
            }
            b"writes" => batch(rest),
            _ => Err("expected read, write, writes or handlers".into()),
        }
    }

    /// The request's bytes, as [`Command::parse`] reads them.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Command::Handlers => b"handlers".to_vec(),
            Command::Read { name, param: "" } => format!("read {name}").into_bytes(),
            Command::Read { name, param } => format!("read {name} {param}").into_bytes(),
            Command::Write(writes) => {
                let mut out = format!("writes {}\n", writes.len()).into_bytes();
                for (name, value) in writes {
                    out.extend_from_slice(format!("{name} {}\n", value.len()).as_bytes());
                    out.extend_from_slice(value);
                    out.push(b'\n');
                }
                out
            }
        }
    }
}

fn batch(rest: &[u8]) -> Result<Command<'_>, String> {
    let (count, mut rest) = cut(rest, b'\n').ok_or("writes: expected a count and a newline")?;
    let count = decimal(count).ok_or("writes: the count is not a number")?;
    if count > WRITES_MAX {
        return Err(format!("writes: {count} writes, the limit is {WRITES_MAX}"));
    }
    let mut writes = Vec::with_capacity(count);
    for number in 1..=count {
        let (write, after) =
            one_write(rest).ok_or_else(|| format!("writes: write {number} is malformed"))?;
        writes.push(write);
        rest = after;
    }
    if rest.is_empty() {
        Ok(Command::Write(writes))
    } else {
        Err(format!("writes: {} bytes after the last write", rest.len()))
    }
}

fn one_write(bytes: &[u8]) -> Option<(Write<'_>, &[u8])> {
    let (line, rest) = cut(bytes, b'\n')?;
    let (name, len) = cut(line, b' ')?;
    let (value, rest) = rest.split_at_checked(decimal(len)?)?;
    Some(((text(name).ok()?, value), rest.strip_prefix(b"\n")?))
}

fn cut(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == at)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    core::str::from_utf8(bytes).map_err(|_| "a handler's name or parameter is not UTF-8".into())
}

fn decimal(digits: &[u8]) -> Option<usize> {
    let good = !digits.is_empty() && digits.len() <= 9 && digits.iter().all(u8::is_ascii_digit);
    core::str::from_utf8(digits)
        .ok()
        .filter(|_| good)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn single_requests() {
        let read = |name, param| Ok(Command::Read { name, param });
        assert_eq!(Command::parse(b"read c.count"), read("c.count", ""));
        assert_eq!(
            Command::parse(b"read r.lookup 1.2.3.4 x"),
            read("r.lookup", "1.2.3.4 x")
        );
        assert_eq!(Command::parse(b"handlers"), Ok(Command::Handlers));
        let write: (&str, &[u8]) = ("f.config", b"allow icmp,\n deny all\xff");
        let bytes = b"write f.config allow icmp,\n deny all\xff";
        assert_eq!(Command::parse(bytes), Ok(Command::Write(vec![write])));
        assert_eq!(
            Command::parse(b"write c.reset"),
            Ok(Command::Write(vec![("c.reset", b"")]))
        );
    }

    #[test]
    fn batches() {
        let bytes = b"writes 2\nfw.config 21\nallow icmp,\ndeny all\n\nc.reset 0\n\n";
        let writes: Vec<(&str, &[u8])> =
            vec![("fw.config", b"allow icmp,\ndeny all\n"), ("c.reset", b"")];
        let command = Command::Write(writes);
        assert_eq!(Command::parse(bytes), Ok(command.clone()));
        assert_eq!(command.encode(), bytes);
        assert_eq!(Command::parse(b"writes 0\n"), Ok(Command::Write(vec![])));
    }

    #[test]
    fn malformed() {
        for bad in [
            &b""[..],
            b"reset",
            b"READ x",
            b"handlers x",
            b"writes",
            b"writes 1",
            b"writes x\n",
            b"writes -1\n",
            b"writes 1\n",
            b"writes 1\na\n\n",
            b"writes 1\na 5\nxy\n",
            b"writes 1\na 2\nxy",
            b"writes 1\na 1\nxy\n",
            b"writes 1\na 2\nxy\nz",
            b"writes 1025\n",
            b"writes 99999999999999999999\n",
            b"writes 1\na 4294967295\nx\n",
            b"read \xff",
            b"write \xff x",
        ] {
            assert!(Command::parse(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(data in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Command::parse(&data);
            let _ = Command::parse(&[b"writes 2\n", &data[..]].concat());
        }

        #[test]
        fn parse_undoes_encode(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..5),
        ) {
            let command = Command::Write(values.iter().map(|v| ("e.h", &v[..])).collect());
            let bytes = command.encode();
            prop_assert_eq!(Command::parse(&bytes), Ok(command));
        }
    }
}
