// SPDX-License-Identifier: Apache-2.0
//! Configurations packed with other files into an `ar` archive, as Click's tools leave them: the
//! member `config` is the configuration.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The first bytes of an archive.
const MAGIC: &[u8] = b"!<arch>\n";
/// Bytes of a member's header.
const HEADER: usize = 60;
/// Click allows a line above the archive that names a program to run it with.
const INTERPRETER: &[u8] = b"#!";
/// The configuration's name.
const CONFIG: &str = "config";

/// The configuration's text: that of an archive's member `config`, or all of the file.
///
/// # Errors
/// The archive is broken or has no configuration, or the text is not UTF-8.
pub fn configuration(bytes: &[u8]) -> Result<String, String> {
    let text = match Archive::of(bytes)? {
        Some(archive) => archive.config()?,
        None => bytes,
    };
    let text = core::str::from_utf8(text).map_err(|e| {
        let at = e.valid_up_to();
        format!("the text is not UTF-8 at byte {at}")
    })?;
    Ok(text.to_string())
}

/// An archive's members by name, in its order.
#[derive(Debug)]
pub struct Archive<'a>(Vec<(String, &'a [u8])>);

impl<'a> Archive<'a> {
    /// The archive, if these bytes are one.
    ///
    /// # Errors
    /// The archive is broken.
    pub fn of(bytes: &'a [u8]) -> Result<Option<Self>, String> {
        let start = archive_start(bytes);
        let members = start.map(|start| members(&bytes[start + MAGIC.len()..]));
        Ok(members.transpose()?.map(Self))
    }

    /// The configuration.
    ///
    /// # Errors
    /// There is none.
    pub fn config(&self) -> Result<&'a [u8], String> {
        let found = self.0.iter().find(|(name, _)| name == CONFIG);
        let missing = || format!("archive: no member '{CONFIG}'");
        found.map(|(_, data)| *data).ok_or_else(missing)
    }

    /// All the other members.
    pub fn files(&self) -> impl Iterator<Item = (&str, &'a [u8])> {
        // An index of symbols has no name.
        let is_file = |name: &str| name != CONFIG && !name.is_empty();
        let files = self.0.iter().filter(move |(name, _)| is_file(name));
        files.map(|(name, data)| (name.as_str(), *data))
    }
}

fn archive_start(bytes: &[u8]) -> Option<usize> {
    let first_line = bytes.iter().position(|b| *b == b'\n').map_or(0, |n| n + 1);
    let behind = if bytes.starts_with(INTERPRETER) {
        first_line
    } else {
        0
    };
    bytes[behind..].starts_with(MAGIC).then_some(behind)
}

fn members(mut rest: &[u8]) -> Result<Vec<(String, &[u8])>, String> {
    let (mut found, mut long_names) = (Vec::new(), &[][..]);
    while rest.len() >= HEADER {
        let (header, behind) = rest.split_at(HEADER);
        let size = field(&header[48..58]).parse::<usize>();
        let size = size.map_err(|_| "archive: a member's size is not a number".to_string())?;
        let data = behind.get(..size);
        let data = data.ok_or("archive: a member is longer than the file")?;
        match field(&header[..16]).as_str() {
            "//" => long_names = data,
            own => found.push(full_name(own, long_names, data)),
        }
        // Members begin at even places.
        rest = behind.get(size + size % 2..).unwrap_or_default();
    }
    Ok(found)
}

fn field(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_string()
}

/// A member's name: in the header, in the table of long names (`/12`), or in front of the data
/// (`#1/12`).
fn full_name<'a>(own: &str, long_names: &[u8], data: &'a [u8]) -> (String, &'a [u8]) {
    let before_data = own.strip_prefix("#1/").and_then(|n| n.parse().ok());
    if let Some((name, data)) = before_data.and_then(|n: usize| data.split_at_checked(n)) {
        return (field(name).trim_end_matches('\0').to_string(), data);
    }
    let offset = own.strip_prefix('/').and_then(|n| n.parse::<usize>().ok());
    let name = match offset.and_then(|n| long_names.get(n..)) {
        Some(names) => {
            let end = names.iter().position(|b| *b == b'\n');
            field(&names[..end.unwrap_or(names.len())])
        }
        None => own.to_string(),
    };
    (name.trim_end_matches('/').to_string(), data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn archive(members: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, data) in members {
            let header = format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
                0,
                0,
                0,
                644,
                data.len()
            );
            bytes.extend(header.bytes().chain(data.bytes()));
            bytes.extend((data.len() % 2 == 1).then_some(b'\n'));
        }
        bytes
    }

    #[test]
    fn the_member_config_is_found() {
        let own = archive(&[("other/", "odd"), ("config/", "Idle")]);
        assert_eq!(configuration(&own).unwrap(), "Idle");
        let bsd = archive(&[("#1/8", "config\0\0Null")]);
        assert_eq!(configuration(&bsd).unwrap(), "Null");
        let long = archive(&[("//", "a/\nconfig/\n"), ("/3", "Tee")]);
        assert_eq!(configuration(&long).unwrap(), "Tee");
        let mut with_line = b"#! /usr/bin/click\n".to_vec();
        with_line.extend(archive(&[("config", "Queue")]));
        assert_eq!(configuration(&with_line).unwrap(), "Queue");
    }

    #[test]
    fn the_others_are_files() {
        let bytes = archive(&[
            ("//", "a_long_file_name/\n"),
            ("/0", "1"),
            ("config/", "Idle"),
            ("b/", ""),
        ]);
        let found = Archive::of(&bytes).unwrap().unwrap();
        let files: Vec<_> = found.files().collect();
        assert_eq!(files, vec![("a_long_file_name", &b"1"[..]), ("b", b"")]);
        assert!(Archive::of(b"Idle").unwrap().is_none());
    }

    #[test]
    fn broken_archives_are_refused() {
        let mut cut = archive(&[("config/", "Idle")]);
        cut.truncate(70);
        assert!(configuration(&cut).unwrap_err().contains("longer than"));
        let none = archive(&[("other/", "x")]);
        assert!(configuration(&none).unwrap_err().contains("no member"));
        let mut number = archive(&[("config/", "x")]);
        number[8 + 48] = b'x';
        assert!(configuration(&number).unwrap_err().contains("not a number"));
        assert!(configuration(&[b'a', 0xff]).unwrap_err().contains("byte 1"));
        assert_eq!(configuration(b"Idle").unwrap(), "Idle");
    }
}
