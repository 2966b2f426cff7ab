// SPDX-License-Identifier: Apache-2.0
//! Commands, taken whole off what a peer has sent.
use super::code;

/// Bytes of a command line.
pub const MAX_LINE: usize = 65_536;
/// Bytes of a value given with a command.
pub const MAX_DATA: usize = 1 << 20;

/// A command that has arrived whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// The command and its arguments.
    pub line: String,
    /// The data after the line.
    pub data: Option<Vec<u8>>,
}

/// The result of reading a peer's bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// A command.
    Whole(Command),
    /// More has to come.
    Partial,
    /// Something too long to go on with, as code and text.
    TooLong(u16, &'static str),
}

/// The data after a command's line.
enum Data<'a> {
    None,
    Bytes(usize),
    Until(&'a str),
}

/// The first word and the rest.
pub fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn data_of(line: &str) -> Data<'_> {
    let (word, rest) = split(line);
    let number = || split(rest).1.parse().ok();
    let count = match word.to_ascii_uppercase().as_str() {
        "READDATA" | "WRITEDATA" | "SETDATA" => number(),
        "LLRPC" => number().filter(|n| *n > 0),
        "READUNTIL" | "WRITEUNTIL" => return Data::Until(split(rest).1.trim_end()),
        _ => None,
    };
    count.map_or(Data::None, Data::Bytes)
}

/// Takes a whole command off `input`; `ended` tells that nothing more will come.
pub fn take(input: &mut Vec<u8>, ended: bool) -> Taken {
    let Some(end) = input.iter().position(|b| *b == b'\n') else {
        if input.len() > MAX_LINE {
            return Taken::TooLong(code::SYNTAX, "Command line too long");
        }
        // what is left when the peer ends is a line too
        if !ended || input.is_empty() {
            return Taken::Partial;
        }
        input.push(b'\n');
        return take(input, ended);
    };
    let line = String::from_utf8_lossy(&input[..end]).trim().to_string();
    let behind = end + 1;
    let found = match data_of(&line) {
        Data::None => Some((behind..behind, behind)),
        Data::Bytes(size) if size > MAX_DATA => {
            return Taken::TooLong(code::DATA_TOO_BIG, "Too much data");
        }
        Data::Bytes(size) => Some((behind..behind + size, behind + size)),
        Data::Until(term) => {
            until(&input[behind..], term).map(|(data, next)| (behind..behind + data, behind + next))
        }
    };
    match found.filter(|(data, _)| data.end <= input.len()) {
        Some((data, next)) => {
            let has_data = !matches!(data_of(&line), Data::None);
            let data = has_data.then(|| input[data].to_vec());
            input.drain(..next);
            Taken::Whole(Command { line, data })
        }
        None if input.len() > MAX_LINE + MAX_DATA => {
            Taken::TooLong(code::DATA_TOO_BIG, "Too much data")
        }
        None => {
            if ended {
                input.clear();
            }
            Taken::Partial
        }
    }
}

/// How many bytes come before the line `term`, and before what follows it.
fn until(input: &[u8], term: &str) -> Option<(usize, usize)> {
    let mut start = 0;
    while let Some(len) = input[start..].iter().position(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(&input[start..start + len]);
        if line.trim_end() == term {
            return Some((start, start + len + 1));
        }
        start += len + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(input: &str) -> (Command, String) {
        let mut bytes = input.as_bytes().to_vec();
        let Taken::Whole(command) = take(&mut bytes, false) else {
            panic!("{input:?} is not whole");
        };
        (command, String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn data_follow_lines() {
        for (input, line, data, rest) in [
            ("READ a.b\r\nx", "READ a.b", None, "x"),
            (
                "writedata a.b 3\nxyzREAD",
                "writedata a.b 3",
                Some("xyz"),
                "READ",
            ),
            (
                "WRITEUNTIL a.b END \na\n END\nEND\r\nr",
                "WRITEUNTIL a.b END",
                Some("a\n END\n"),
                "r",
            ),
            ("READUNTIL a.b\nx\n\nr", "READUNTIL a.b", Some("x\n"), "r"),
            ("LLRPC a#1 2\n12r", "LLRPC a#1 2", Some("12"), "r"),
            ("LLRPC a#1\nr", "LLRPC a#1", None, "r"),
            ("WRITEDATA a.b x\nr", "WRITEDATA a.b x", None, "r"),
        ] {
            let (command, left) = whole(input);
            let expected = Command {
                line: line.to_string(),
                data: data.map(|d| d.as_bytes().to_vec()),
            };
            assert_eq!((command, left.as_str()), (expected, rest), "{input:?}");
        }
    }

    #[test]
    fn what_is_not_whole_waits_and_what_is_too_long_ends() {
        for input in ["READ", "WRITEDATA a 5\n1234", "WRITEUNTIL a X\nxx\n", ""] {
            assert_eq!(take(&mut input.as_bytes().to_vec(), false), Taken::Partial);
        }
        assert!(matches!(
            take(&mut b"READ a".to_vec(), true),
            Taken::Whole(_)
        ));
        let mut cut = b"WRITEDATA a 5\n1".to_vec();
        assert_eq!((take(&mut cut, true), cut.len()), (Taken::Partial, 0));
        let long = vec![b'x'; MAX_LINE + 1];
        assert!(matches!(
            take(&mut long.clone(), false),
            Taken::TooLong(code::SYNTAX, _)
        ));
        let much = b"WRITEDATA a 99999999\n".to_vec();
        assert!(matches!(
            take(&mut much.clone(), false),
            Taken::TooLong(code::DATA_TOO_BIG, _)
        ));
    }
}
